"""Families of small problems, drawn at random: everything that the model has, and what is hard on floating point."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations, pairwise, permutations
from random import Random

from problems import Described, describe, shape_of

INF = math.inf
MOST = 1000  # labellings of a problem
TENTHS = (0.1, 0.2, 0.3, -0.1, 1 / 3, -2 / 3, 0.7)
CANCELLING = (1e12, -1e12, 1e12 + 0.5, -1e12 - 0.25, 1.0, -1.0, 1e-9, 0.0)
HUGE = (1e300, -1e300, math.nextafter(1e300, INF), -math.nextafter(1e300, 0), 1.0, -1e-300, 1e284, 0.0)
Number = Callable[[Random], float]


MAGNITUDES: dict[str, Number] = {
    "ties": lambda draw: float(draw.randint(-3, 3)),
    "eighths": lambda draw: draw.randint(-20, 20) / 8,
    "normal": lambda draw: 3 * draw.gauss(0, 1),
    "same": lambda draw: 1.25,
    "zero": lambda draw: 0.0,
    "spread": lambda draw: draw.gauss(0, 1) * 10 ** draw.uniform(-9, 12),
    "any": lambda draw: draw.choice((1, -1)) * 10 ** draw.uniform(-323, 296),
    "cancelling": lambda draw: draw.choice(CANCELLING),
    "huge": lambda draw: draw.choice(HUGE) / 1e5,
    "too huge": lambda draw: draw.choice(HUGE),  # beyond what is proved at all
    "near": lambda draw: draw.choice((1000, -1000)) + draw.gauss(0, 1) * 1e-4,
    "close": lambda draw: draw.choice((0, 1, -1)) + draw.randint(-4, 4) * 5e-7,  # around what a proof allows
    "denormal": lambda draw: draw.randint(-4, 4) * 5e-324,
    "barely normal": lambda draw: draw.gauss(0, 1) * 10 ** draw.uniform(-312, -305),
    "tiny": lambda draw: draw.gauss(0, 1) * 1e-300,
    "zeros": lambda draw: draw.choice((0.0, -0.0, -0.0, 1.0, -1.0)),
    "whole": lambda draw: float(draw.choice((1, -1)) * round(10 ** draw.uniform(0, 15))),
    "small": lambda draw: draw.gauss(0, 1) * 1e-7,
    "large": lambda draw: draw.gauss(0, 1) * 1e290,
}
COMMON = ("ties", "eighths", "normal", "normal", "same", "zero")
EXTREME = tuple(name for name in MAGNITUDES if name not in COMMON)


def _whole(low: float, high: float) -> Number:
    return lambda draw: float(draw.choice((1, -1)) * round(10 ** draw.uniform(low, high)))


def _broken(low: float, high: float) -> Number:
    return lambda draw: draw.choice((1, -1)) * 10 ** draw.uniform(low, high)


WEIGHTS: tuple[Number, ...] = (
    lambda draw: 1.0,
    lambda draw: float(draw.randint(-3, 3)),
    lambda draw: draw.randint(-4, 4) / 2,
    lambda draw: draw.choice(TENTHS),
    _whole(0, 10),
    _whole(9, 10),
    _broken(-9, 10),
    _broken(-9, -5),
    _broken(9, 10),
    lambda draw: draw.choice((1e9, -1e9, 1.0, -1.0, 0.5)),
    lambda draw: draw.choice((1e6, -1e6, 0.25, 1.0, 1e-6)),
)


def anything(draw: Random, magnitudes: tuple[str, ...] = COMMON, n_rules: int = 2) -> Described:
    """Draws kinds, factors of one to four roles, tables, rules and costs of all sorts."""
    kinds = [draw.choice((1, 2, 2, 3, 3, 4, 5)) for _ in range(draw.choice((1, 1, 2, 3)))]
    variables: list[int] = []
    for _ in range(draw.randint(1, 8) if draw.random() < 0.98 else 0):
        kind = draw.randrange(len(kinds))
        if math.prod(kinds[k] for k in variables) * kinds[kind] <= MOST:
            variables.append(kind)
    described = describe(kinds, variables)
    number = draw_numbers(draw, magnitudes)
    for f in range(draw.choice((0, 1, 2, 2, 3, 3))):
        roles = [draw.randrange(len(kinds)) for _ in range(draw.choice((1, 2, 2, 2, 3, 3, 4)))]
        described["factors"].append({"roles": roles, "table": None})
        if draw.random() < 0.75:
            described["factors"][f]["table"] = draw_table(draw, shape_of(described, f), number)
    for _ in range(draw.randint(0, 7)):
        _connect_somewhere(draw, described)
    return put_rest(draw, described, number, n_rules)


def extremes(draw: Random) -> Described:
    """Draws problems whose costs are of any magnitude, and cancel."""
    return anything(draw, EXTREME, n_rules=draw.choice((0, 0, 1)))


def rules(draw: Random) -> Described:
    """Draws a few variables under rules with weights of all magnitudes, whose limits are met or missed by a little."""
    kinds = [draw.choice((1, 2, 2, 3))]
    described = describe(kinds, [0] * draw.randint(1, 7 if kinds[0] < 3 else 5))
    return put_rest(draw, described, draw_numbers(draw, COMMON), draw.randint(1, 4), always=True)


def heavy(draw: Random) -> Described:
    """Draws yes/no variables under one rule whose weights are of 1e9 to 1e10 and not whole, with a limit of 0."""
    n = draw.choice((2, 3, 3, 4, 5, 6, 7, 8, 10, 14) if draw.random() < 0.3 else (3, 4, 5, 6))
    described = describe([2], [0] * n)
    number = draw_numbers(draw, ("normal", "normal", "ties", "close"))
    described["costs"] = [[number(draw), number(draw)] for _ in range(n)]
    weights = [draw.choice((1, -1)) * draw.uniform(1e9, 1e10) for _ in range(n)]
    if draw.random() < 0.7:  # some of them come to nothing, or nearly
        some = draw.sample(range(n), draw.randint(2, n))
        rest = -math.fsum(weights[v] for v in some[1:])
        for _ in range(draw.choice((0, 0, 1, 2))):
            rest = math.nextafter(rest, draw.choice((INF, -INF)))
        if abs(rest) <= 1e10:
            weights[some[0]] = rest
    low, high = draw.choice(((0.0, 0.0), (0.0, INF), (-INF, 0.0)))
    rule = {"terms": [[v, 1, weight] for v, weight in enumerate(weights)], "low": low, "high": high}
    described[draw.choice(("structure_rules", "own_rules"))].append(rule)
    return described


def entities(draw: Random) -> Described:
    """Draws entities and a relation for each ordered pair, as in the paper: two of many kinds, or three of few."""
    n, labels, relations = draw.choice(((2, 4, 6), (2, 3, 3), (3, 2, 2)))
    described = describe([labels, relations], [0] * n)
    table = [INF if draw.random() < 0.6 and r < relations - 1 else 0.0 for r in range(relations)] * labels**2
    table = [INF if draw.random() < 0.5 and at % relations < relations - 1 else x for at, x in enumerate(table)]
    both = [0.0 if relations - 1 in (a, b) else INF for a in range(relations) for b in range(relations)]
    described["factors"] = [{"roles": [0, 0, 1], "table": table}, {"roles": [1, 1], "table": both}]
    pairs = {}
    for source, target in permutations(range(n), 2):
        pairs[source, target] = len(described["variables"])
        described["variables"].append(1)
        described["scopes"].append([0, [source, target, pairs[source, target]]])
    described["scopes"] += [[1, [pairs[s, t], pairs[t, s]]] for s, t in combinations(range(n), 2)]
    return put_rest(draw, described, draw_numbers(draw), draw.choice((0, 0, 1)))


def chains(draw: Random) -> Described:
    """Draws sequences of tags."""
    return _graph(draw, lambda n: list(pairwise(range(n))), 8)


def trees(draw: Random) -> Described:
    """Draws trees, and forests."""
    return _graph(draw, lambda n: [(draw.randrange(v), v) for v in range(1, n) if draw.random() < 0.9], 9)


def grids(draw: Random) -> Described:
    """Draws grids of two or three rows."""
    columns = draw.choice((3, 4))

    def edges(n: int) -> list[tuple[int, int]]:
        return [(v, w) for v, w in combinations(range(n), 2) if w == v + columns or (w == v + 1 and w % columns)]

    return _graph(draw, edges, 10)


def cliques(draw: Random) -> Described:
    """Draws variables that are all joined with each other."""
    return _graph(draw, lambda n: list(combinations(range(n), 2)), 7)


def roles(draw: Random) -> Described:
    """Draws the arguments of a verb: each has a role or none, and each role occurs at most once, some exactly."""
    n_roles, n = draw.choice(((2, 6), (3, 5), (4, 4), (5, 4)))
    described = describe([n_roles], [0] * draw.randint(1, n))
    arguments = range(len(described["variables"]))
    for role in range(1, n_roles):
        low, high = draw.choice(((-INF, 1.0), (-INF, 1.0), (1.0, 1.0), (1.0, INF)))
        terms = [[v, role, 1.0] for v in arguments]
        described["structure_rules"].append({"terms": terms, "low": low, "high": high})
    if draw.random() < 0.4:  # a role that needs another
        terms = [[v, 0, 1.0] for v in arguments] + [[v, n_roles - 1, -1.0] for v in arguments]
        described["own_rules"].append({"terms": terms, "low": 0.0, "high": INF})
    number = draw_numbers(draw)
    if draw.random() < 0.4:
        described["factors"] = [{"roles": [0, 0], "table": draw_table(draw, (n_roles, n_roles), number)}]
        described["scopes"] = [[0, list(pair)] for pair in pairwise(arguments)]
    return put_rest(draw, described, number, 0)


def leftovers(draw: Random) -> Described:
    """Draws what is degenerate: no variables, one label each, no factors, parts, nothing that is valid."""
    what = draw.randrange(5)
    if what == 0:
        described = describe([draw.randint(1, 3)], [])
        return put_rest(draw, described, draw_numbers(draw), 1)
    kinds = [1] if what == 1 else [1, draw.choice((2, 3))]
    described = describe(kinds, [draw.randrange(len(kinds)) for _ in range(draw.randint(1, 6))])
    number = draw_numbers(draw)
    if what != 2:
        roles = [[k, j] for k in range(len(kinds)) for j in range(len(kinds))]
        described["factors"] = [{"roles": each, "table": None} for each in roles]
        for f in range(len(roles)):
            described["factors"][f]["table"] = draw_table(draw, shape_of(described, f), number)
        for _ in range(draw.randint(0, 3)):
            _connect_somewhere(draw, described)
    described = put_rest(draw, described, number, draw.choice((0, 1)))
    if what == 4:
        v = draw.randrange(len(described["variables"]))
        described["costs"][v] = [INF] * len(described["costs"][v])
    return described


def counted(draw: Random) -> Described:
    """Draws chains and trees under rules that count: small whole weights, limits around what some labelling has."""
    most, number = draw.choice((2, 6)), draw.choice((lambda _: 1.0, lambda draw: float(draw.randint(-2, 3))))
    described = _graph(draw, lambda n: [(v, draw.randrange(max(0, v - most), v)) for v in range(1, n)], 9)
    for _ in range(draw.randint(1, 3)):
        add_rule(draw, described, number)
    return described


def crowded(draw: Random) -> Described:
    """Draws rings with tables whose labels take room, of which overlapping stretches have little."""
    described = _graph(draw, lambda n: [(v, (v + 1) % n) for v in range(n) if n > 2], 8)
    n, labels = len(described["variables"]), described["kinds"][0]
    weight = draw.choice((lambda draw: float(draw.randint(0, 9)), lambda draw: 10 ** draw.uniform(0, 8)))
    room = [[weight(draw) for _ in range(labels)] for _ in range(n)]
    chosen = [draw.randrange(labels) for _ in range(n)]
    for begin in range(0, n, 2):
        some = sorted({(begin + x) % n for x in range(3)})
        terms = [[v, i, room[v][i]] for v in some for i in range(labels) if room[v][i]]
        limit = _missed(draw, math.fsum(room[v][chosen[v]] for v in some))
        if terms:  # a rule that counts nothing is refused
            described["structure_rules"].append({"terms": terms, "low": -INF, "high": limit})
    return described


FAMILIES: dict[str, Callable[[Random], Described]] = {
    draws.__name__: draws
    for draws in (
        anything,
        extremes,
        rules,
        heavy,
        entities,
        chains,
        trees,
        grids,
        cliques,
        roles,
        leftovers,
        counted,
        crowded,
    )
}


def _graph(draw: Random, edges: Callable[[int], list[tuple[int, int]]], most: int) -> Described:
    """Draws variables of one kind, joined in pairs."""
    labels = draw.choice((2, 2, 2, 3, 3, 4))
    n = draw.randint(1, min(most, int(math.log(MOST, labels))))
    described = describe([labels], [0] * n)
    number = draw_numbers(draw)
    described["factors"] = [{"roles": [0, 0], "table": draw_table(draw, (labels, labels), number)} for _ in range(2)]
    described["scopes"] = [[draw.randrange(2), list(edge)] for edge in edges(n)]
    return put_rest(draw, described, number, draw.choice((0, 0, 0, 1)))


def draw_numbers(draw: Random, magnitudes: tuple[str, ...] = ()) -> Number:
    """Draws where the numbers of a problem come from: often one magnitude, now and then two of them."""
    magnitudes = magnitudes or (COMMON if draw.random() < 0.7 else EXTREME)
    one, other = (MAGNITUDES[draw.choice(magnitudes)] for _ in range(2))
    if draw.random() < 0.7:
        return one
    return lambda draw: (one if draw.random() < 0.5 else other)(draw)


def draw_table(draw: Random, shape: tuple[int, ...], number: Number) -> list[float]:
    """Draws a table: hard, soft or both."""
    size, what = math.prod(shape), draw.randrange(3)
    table = [0.0 if what == 0 else number(draw) for _ in range(size)]
    if what != 1:
        share = draw.choice((0.1, 0.3, 0.5, 0.7))
        table = [INF if draw.random() < share else x for x in table]
    return table


def _connect_somewhere(draw: Random, described: Described) -> None:
    """Adds a factor between variables that differ, where there are some of its kinds."""
    if not described["factors"]:
        return
    f = draw.randrange(len(described["factors"]))
    scope: list[int] = []
    for k in described["factors"][f]["roles"]:
        fitting = [v for v, kind in enumerate(described["variables"]) if kind == k and v not in scope]
        if not fitting:
            return
        scope.append(draw.choice(fitting))
    described["scopes"].append([f, scope])


def put_rest(draw: Random, described: Described, number: Number, n_rules: int, always: bool = False) -> Described:
    """Adds costs, tables of the problem's own, rules and an order of search."""
    kinds, variables = described["kinds"], described["variables"]
    described["costs"] = [[number(draw) for _ in range(kinds[k])] for k in variables]
    if draw.random() < 0.2:
        described["costs"] = [[INF if draw.random() < 0.2 else x for x in each] for each in described["costs"]]
    for f, (kind, _) in enumerate(described["scopes"]):
        if draw.random() < 0.12:
            described["tables"].append([f, draw_table(draw, shape_of(described, kind), number)])
    for _ in range(n_rules):
        if always or draw.random() < 0.35:
            add_rule(draw, described)
    if draw.random() < 0.3:
        described["order"] = draw.sample(range(len(variables)), len(variables))
    return described


def add_rule(draw: Random, described: Described, weight: Number | None = None) -> None:
    """Adds a rule, for the schema, the structure or the problem, that some labelling meets or misses by a little."""
    kinds, variables = described["kinds"], described["variables"]
    weight = weight or draw.choice(WEIGHTS)
    labels = [draw.randrange(kinds[k]) for k in variables]
    if not variables or draw.random() < 0.25:
        counted = draw.sample(range(len(kinds)), draw.randint(1, len(kinds)))
        rule: Described = {"weights": [[k, [weight(draw) for _ in range(kinds[k])]] for k in counted]}
        by_kind = dict(rule["weights"])
        value = math.fsum(by_kind[k][labels[v]] for v, k in enumerate(variables) if k in by_kind)
        where = "rules"
    else:
        terms, sums = [], dict[tuple[int, int], float]()
        for _ in range(draw.randint(1, 2 * len(variables))):
            v = draw.randrange(len(variables))
            i, each = draw.randrange(kinds[variables[v]]), weight(draw)
            total = sums.get((v, i), 0.0) + each
            if abs(total) <= 1e10:  # more is refused
                terms.append([v, i, each])
                sums[v, i] = total
        rule = {"terms": terms}
        value = math.fsum(each for v, i, each in terms if labels[v] == i)
        where = draw.choice(("structure_rules", "own_rules"))
    limit = _missed(draw, value)
    how = draw.randrange(4)
    other = limit + abs(weight(draw))
    rule["low"], rule["high"] = ((limit, INF), (-INF, limit), (limit, limit), (limit, other))[how]
    described[where].append(rule)


def _missed(draw: Random, value: float) -> float:
    """Returns a value, or one that is next to it: by a float, by the slack of a rule, by one."""
    slack = 1e-6 * max(1.0, abs(value))
    off = draw.choice((0.0, 0.0, slack, -slack, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 1e-9, -1e-9))
    limit = value + off
    for _ in range(draw.choice((0, 0, 0, 1, 2))):
        limit = math.nextafter(limit, draw.choice((INF, -INF)))
    return limit
