"""Families of small problems for one step of a proof each: what is cut, fixed, eliminated, counted, stated on demand.

Most of these steps are for large problems: on small ones elimination is faster, and comes first. So their trials lower
the constants of the library that decide it, by name (`CONSTANTS`). `reach.py` says how often a step is reached.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations
from random import Random
from typing import Any

from families import INF, Number, add_rule, draw_numbers, draw_table, put_rest
from problems import Described, describe

FEW_SUMS, SWEEPS = "hasten.proof.elimination.plan.FEW_SUMS", "hasten.proof.elimination.plan.SWEEPS"
MOST_UNFIXED = "hasten.proof.cut.persistency.MOST_UNFIXED"
WIDEST = "hasten.proof.buckets.plan.WIDEST"
Choices = dict[str, tuple[Any, ...]]


def cuts(draw: Random) -> Described:
    """Draws variables of two labels, or one, whose pairs are for agreeing once the labels of some are exchanged."""
    n = draw.randint(2, 8) if draw.random() < 0.9 else draw.randint(9, 11)
    described = describe([2, 1], [int(draw.random() < 0.05) for _ in range(n)])
    kinds, number = described["variables"], draw_numbers(draw)
    flips = [draw.randrange(2) if draw.random() < 0.5 else 0 for _ in range(n)]
    tables = [agreeing(draw, number) for _ in range(draw.choice((1, 1, 2)))]
    for table in tables:  # as it is, and with the labels of the first exchanged
        described["factors"] += [{"roles": [0, 0], "table": each} for each in (table, table[2:] + table[:2])]
    single = len(described["factors"])
    described["factors"] += [{"roles": [0], "table": draw_table(draw, (2,), number)}, {"roles": [0, 1], "table": None}]
    for u, v in _edges(draw, n):
        mine = (u, v) if draw.random() < 0.5 else (v, u)
        if kinds[u] == kinds[v] == 0:
            described["scopes"].append([2 * draw.randrange(len(tables)) + (flips[u] ^ flips[v]), list(mine)])
            if draw.random() < 0.1:
                table = agreeing(draw, number)
                table = table[2:] + table[:2] if flips[u] ^ flips[v] else table
                described["tables"].append([len(described["scopes"]) - 1, table])
        elif kinds[u] != kinds[v]:
            described["scopes"].append([single + 1, [u, v] if kinds[v] else [v, u]])
            described["tables"].append([len(described["scopes"]) - 1, [number(draw), number(draw)]])
    described["scopes"] += [[single, [v]] for v in range(n) if kinds[v] == 0 and draw.random() < 0.1]
    return _finish(draw, described, number, draw.choice((0, 0, 0, 1)))


def agreeing(draw: Random, number: Number) -> list[float]:
    """Draws a table of two variables that are for agreeing, by little or by much; some of it may be forbidden."""
    same, other = sorted(([number(draw), number(draw)] for _ in range(2)), key=math.fsum)
    if draw.random() < 0.25:
        other[draw.randrange(2)] = INF
        if draw.random() < 0.3:
            same[draw.randrange(2)] = INF
        elif draw.random() < 0.3:
            other = [INF, INF]
    return [same[0], other[0], other[1], same[1]]


def roofs(draw: Random) -> Described:
    """Draws variables of two labels, nearly all joined with each other, for agreeing and against it."""
    n = draw.randint(3, 8) if draw.random() < 0.9 else draw.randint(10, 11)
    described = describe([2, 1], [int(draw.random() < 0.03) for _ in range(n)])
    kinds, number = described["variables"], draw_numbers(draw)
    one, other = agreeing(draw, number), agreeing(draw, number)
    tables = [one, other[2:] + other[:2], *([number(draw) for _ in range(4)] for _ in range(draw.randint(0, 2)))]
    described["factors"] = [{"roles": [0, 0], "table": table} for table in tables]
    for u, v in combinations(range(n), 2):
        if kinds[u] == kinds[v] == 0 and draw.random() < 0.97:
            described["scopes"].append([draw.randrange(len(described["factors"])), [u, v]])
            if draw.random() < 0.2:
                table = [INF if draw.random() < 0.05 else number(draw) for _ in range(4)]
                described["tables"].append([len(described["scopes"]) - 1, table])
    return _finish(draw, described, number, 0)


def thin(draw: Random) -> Described:
    """Draws grids, rings and other graphs of few edges, and of some tables over three variables."""
    labels = draw.choice((2, 2, 3, 3, 4))
    n = draw.randint(4, {2: 10, 3: 6, 4: 5}[labels])
    described, number = describe([labels], [0] * n), draw_numbers(draw)
    roles = [[0, 0], [0, 0], [0, 0, 0]]
    described["factors"] = [{"roles": each, "table": draw_table(draw, (labels,) * len(each), number)} for each in roles]
    columns = draw.choice((2, 3, n))
    edges = {(v, w) for v in range(n) for w in (v + 1, v + columns) if w < n and (w % columns or w != v + 1)}
    edges |= {(v, v + 1) for v in range(n - 1) if draw.random() < 0.2} | (
        {(0, n - 1)} if draw.random() < 0.5 else set()
    )
    described["scopes"] = [[draw.randrange(2), list(edge)] for edge in sorted(edges)]
    if draw.random() < 0.3:
        described["scopes"].append([2, draw.sample(range(n), 3)])
    return put_rest(draw, described, number, 0)


def tallies(draw: Random) -> Described:
    """Draws chains, trees and stars under rules that count, most of them so that what is cheapest breaks one."""
    labels = draw.choice((2, 2, 3, 4))
    n, number = draw.randint(2, {2: 9, 3: 6, 4: 5}[labels]), draw_numbers(draw)
    described = describe([labels], [0] * n)
    described["factors"] = [{"roles": [0, 0], "table": draw_table(draw, (labels, labels), number)} for _ in range(2)]
    reach = draw.choice((1, 2, n))
    for v in range(1, n):
        above = draw.randrange(max(0, v - reach), v) if reach < n or draw.random() < 0.5 else 0
        if draw.random() < 0.9:
            described["scopes"].append([draw.randrange(2), draw.sample((v, above), 2)])
    put_rest(draw, described, number, 0)
    weight = draw.choice(
        (lambda _: 1.0, lambda draw: float(draw.randint(-2, 3)), lambda draw: 3.0 * draw.randint(0, 2))
    )
    for _ in range(draw.choice((1, 1, 2, 3))):
        add_rule(draw, described, weight)
    return described


def demanded(draw: Random) -> Described:
    """Draws an order of events, or anything else that is forbidden, or costs, over triples: a family, on demand."""
    n = draw.choice((3, 4, 4, 5))
    pairs = {pair: p for p, pair in enumerate(combinations(range(n), 2))}
    described, number = describe([2], [0] * len(pairs)), draw_numbers(draw)
    table = [0.0, INF, 0.0, 0.0, 0.0, 0.0, INF, 0.0]
    if draw.random() < 0.6:
        table = [draw.choice((0.0, 0.0, INF, abs(number(draw)))) for _ in range(8)]
        table[draw.randrange(8)] = INF  # one that says nothing is no family
    described["factors"] = [{"roles": [0, 0, 0], "table": table}, {"roles": [0, 0], "table": None}]
    described["factors"][1]["table"] = draw_table(draw, (2, 2), number)
    triples = [[pairs[a, b], pairs[b, c], pairs[a, c]] for a, b, c in combinations(range(n), 3)]
    described["scopes"] = [[0, triple] for triple in triples]
    for _ in range(draw.choice((0, 0, 1, 3))):
        described["scopes"].append([1, draw.sample(range(len(pairs)), 2)])
    described["costs"] = [[number(draw), number(draw)] for _ in pairs]
    if draw.random() < 0.3:
        add_rule(draw, described, lambda _: 1.0)
    described["structure_rules"] += described["own_rules"]  # problems share all that is not their costs
    return described | {"own_rules": [], "demanded": 0}


FAMILIES: dict[str, Callable[[Random], Described]] = {
    draws.__name__: draws for draws in (cuts, roofs, thin, tallies, demanded)
}
# What the settings of a family's trials are drawn from, where not from what those of others are.
SETTINGS: dict[str, Choices] = {
    "cuts": {"max_join": (None,)},
    "roofs": {"max_join": (None,)},
    "thin": {"max_join": (None,), "max_nodes": (0, 0, 0, 0, 0, 1, None), "max_sweeps": (1,)},
    "tallies": {"max_join": (None,)},
}
CONSTANTS: dict[str, Choices] = {
    "cuts": {FEW_SUMS: (0, 0, 8), SWEEPS: (0,)},
    "roofs": {FEW_SUMS: (0,), SWEEPS: (0,), MOST_UNFIXED: (600, 600, 0)},
    "thin": {FEW_SUMS: (0, 0, 0, 8), SWEEPS: (0,), WIDEST: (0.75, 1.0, 1.0)},
}


def _edges(draw: Random, n: int) -> list[tuple[int, int]]:
    """Draws which of some variables are joined: a ring, a grid, or some pairs."""
    every = list(combinations(range(n), 2))
    what, columns = draw.randrange(3), draw.choice((2, 3))
    if what == 0:
        return [(v, v + 1) for v in range(n - 1)] + ([(0, n - 1)] if n > 2 else [])
    if what == 1:
        return [(v, w) for v, w in every if w == v + columns or (w == v + 1 and w % columns)]
    share = draw.choice((0.3, 0.6, 1.0))
    return [pair for pair in every if draw.random() < share]


def _finish(draw: Random, described: Described, number: Number, n_rules: int) -> Described:
    """Adds costs and rules; the tables stay as they are."""
    kinds, variables = described["kinds"], described["variables"]
    forbidden = draw.choice((0.0, 0.0, 0.0, 0.1))
    described["costs"] = [
        [INF if draw.random() < forbidden else number(draw) for _ in range(kinds[k])] for k in variables
    ]
    for _ in range(n_rules):
        add_rule(draw, described, draw.choice((None, lambda _: 1.0)))
    return described
