"""The slow, obvious version of each algorithm: it reads the Python objects, never the compiled arrays."""

from __future__ import annotations

import math
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem


class Answer(NamedTuple):
    """An optimum: its cost and its labels, or inf and None where there is none."""

    cost: float
    labels: tuple[int, ...] | None


def solve(problem: Problem) -> Answer:
    """Returns the cheapest valid labelling by enumeration; a tie goes to the first in `product`'s order."""
    best = Answer(math.inf, None)
    tables, rows = tables_of(problem), rows_of(problem)
    costs = [problem.costs_of(v).tolist() for v in range(problem.n_variables)]
    for labels in product(*(range(len(kind)) for kind in problem.structure.kinds)):
        if not all(holds(row, labels) for row in rows):
            continue
        terms = [costs[v][i] for v, i in enumerate(labels)]
        terms += [table[tuple(labels[v] for v in scope)] for scope, table in tables]
        total = math.inf if math.inf in terms else math.fsum(terms)
        if total < best.cost:
            best = Answer(total, labels)
    return best


def cost(problem: Problem, labels: tuple[int, ...]) -> float:
    """Returns what a labelling costs; inf if a label or a table forbids it. Rows do not count."""
    terms = [problem.costs_of(v)[i] for v, i in enumerate(labels)]
    terms += [table[tuple(labels[v] for v in scope)] for scope, table in tables_of(problem)]
    return math.inf if math.inf in terms else math.fsum(terms)


def valid(problem: Problem, labels: tuple[int, ...]) -> bool:
    """Whether no label, table or row forbids a labelling."""
    return cost(problem, labels) < math.inf and all(holds(row, labels) for row in rows_of(problem))


Table = tuple[tuple[int, ...], np.ndarray]
Row = tuple[dict[tuple[int, int], float], float, float]


def tables_of(problem: Problem) -> list[Table]:
    """Returns the scope and the table of each factor that has one, the problem's own before the schema's."""
    tables = []
    for f, factor in enumerate(problem.structure.factors):
        table = factor.kind.table
        own = problem.structure._slots
        if f in own.factors or factor.kind.index in own.kinds | own.free:  # where they are, only the graph knows
            at = problem.graph.table_at[f]
            table = problem.table[at : at + factor.kind.size].reshape(factor.kind.shape)
        if table is not None:
            tables.append((factor.scope, table))
    return tables


def rows_of(problem: Problem) -> list[Row]:
    """Returns each rule's weights by variable and label, and its limits."""
    kinds = problem.structure.kinds
    rows: list[Row] = []
    for rule in problem.structure.schema.rules.values():
        by_kind = {
            (v, i): weight for v, kind in enumerate(kinds) for i, weight in enumerate(rule.weights.get(kind.index, ()))
        }
        rows.append((by_kind, rule.low, rule.high))
    for rule in problem.structure.rules:
        weights: dict[tuple[int, int], float] = {}
        for v, label, weight in rule.terms:
            key = v, kinds[v].labels.index(label)
            weights[key] = weights.get(key, 0.0) + weight
        rows.append((weights, rule.low, rule.high))
    return rows


def limits(row: Row) -> tuple[float, float]:
    """Returns what a row may come to: exact where all weights are whole, else with 1e-6 to spare, also relatively."""
    weights, low, high = row
    if all(float(weight).is_integer() for weight in weights.values()):
        spare = [min(1e-6, 1e-9 * max(1.0, abs(limit))) for limit in (low, high)]
        least = low if math.isinf(low) else float(math.ceil(low - spare[0]))
        return least, high if math.isinf(high) else float(math.floor(high + spare[1]))
    return (
        low if math.isinf(low) else low - 1e-6 * max(1.0, abs(low)),
        high if math.isinf(high) else high + 1e-6 * max(1.0, abs(high)),
    )


def holds(row: Row, labels: tuple[int, ...]) -> bool:
    """Whether a labelling satisfies a row."""
    low, high = limits(row)
    value = math.fsum(row[0].get((v, i), 0.0) for v, i in enumerate(labels))
    return low <= value <= high


# Search: what the kernels `beam` and `arcs` do, from the definitions. A node is a dict of labels by variable.

Labels = dict[int, int]


class Candidate(NamedTuple):
    """A node: labels, path cost, heuristic, and the least that each unassigned variable can still cost."""

    labels: Labels
    g: float
    h: float
    ahead: dict[int, float]

    @property
    def rest(self) -> float:
        """The least that all unassigned variables can still cost."""
        return sum(self.ahead.values())

    @property
    def priority(self) -> float:
        """What the beam ranks by."""
        return self.g + self.h + self.rest


class Step(NamedTuple):
    """What a beam search did with one variable."""

    variable: int
    candidates: list[Candidate]  # those that no constraint removed
    gap: float  # the paper's Delta
    skipped: bool  # ranked by the heuristic alone
    beam: list[Candidate]


class Found(NamedTuple):
    """What a search found: labels (None at a dead end), the variables whose costs it computed, its steps."""

    labels: tuple[int, ...] | None
    computed: set[int]
    steps: list[Step]


def order_of(problem: Problem) -> list[int]:
    """Returns the variables in the order in which the search assigns them."""
    structure = problem.structure
    return list(range(len(structure.kinds)) if structure._order is None else structure._order)


def path_cost(problem: Problem, labels: Labels, computed: set[int]) -> float:
    """Returns the computed costs of a node's labels, and the finite entries of the tables it completes."""
    total = sum(float(problem.costs_of(v)[i]) for v, i in labels.items() if v in computed)
    for scope, table in tables_of(problem):
        if labels.keys() >= set(scope):
            entry = table[tuple(labels[v] for v in scope)]
            total += float(entry) if entry < math.inf else 0.0
    return total


def phi(problem: Problem, labels: Labels) -> np.ndarray:
    """Returns how often each label tuple stands in the completed learned factors of a node."""
    counts = np.zeros(problem.structure.schema.n_weights)
    for kind, scope in _learned(problem):
        if labels.keys() >= set(scope):
            counts[_feature(kind, scope, labels)] += 1
    return counts


def heuristic(problem: Problem, labels: Labels, weights: np.ndarray | None) -> float:
    """Returns -w·phi, adding factor after factor as the search completes them."""
    h = 0.0
    known: set[int] = set()
    for v in order_of(problem) if weights is not None else ():
        if v not in labels:
            break
        known.add(v)
        for kind, scope in _learned(problem):
            if v in scope and known >= set(scope):
                h -= float(weights[_feature(kind, scope, labels)])
    return h


def _learned(problem: Problem) -> list[tuple[FactorKind, tuple[int, ...]]]:
    return [(factor.kind, factor.scope) for factor in problem.structure.factors if factor.kind.learned]


def _feature(kind: FactorKind, scope: tuple[int, ...], labels: Labels) -> int:
    """Returns the speedup feature of a factor's labels: kind after kind, each with its tuples in order."""
    start = 0
    for other in kind._schema.factors.values():
        if other is kind:
            break
        start += other.size if other.learned else 0
    chosen = tuple(kind.roles[role].labels[labels[v]] for role, v in zip(kind.roles, scope, strict=True))
    return start + list(kind.tuples()).index(chosen)


def forbids(problem: Problem, labels: Labels) -> bool:
    """Whether a table forbids the labels of a node, or some row can no longer hold."""
    for scope, table in tables_of(problem):
        if labels.keys() >= set(scope) and table[tuple(labels[v] for v in scope)] == math.inf:
            return True
    domains = {v: range(len(kind)) for v, kind in enumerate(problem.structure.kinds)}
    domains |= {v: [i] for v, i in labels.items()}
    return any(not can_hold(row, domains) for row in rows_of(problem))


def can_hold(row: Row, domains: dict[int, Any]) -> bool:
    """Whether the least and the most that a row can be, over some labels of each variable, leave it room."""
    weights, (low, high) = row[0], limits(row)
    choices = [[weights.get((v, i), 0.0) for i in labels] for v, labels in domains.items()]
    if not all(choices):
        return False
    least, most = math.fsum(map(min, choices)), math.fsum(map(max, choices))
    return least <= high and most >= low


def least_cost(problem: Problem, labels: Labels, u: int) -> float:
    """Returns the least that a variable can cost with the tables that lack only it."""
    totals = problem.costs_of(u).tolist()
    for scope, table in tables_of(problem):
        if u in scope and labels.keys() >= set(scope) - {u}:
            for i in range(len(totals)):
                totals[i] += float(table[tuple((labels | {u: i})[v] for v in scope)])
    return min(totals)


def beam_search(
    problem: Problem,
    width: int = 1,
    weights: np.ndarray | None = None,
    enforce: bool = True,
    look_ahead: bool = False,
    theta: float = math.inf,
) -> Found:
    """Searches by the definitions; a variable's costs are read where they are computed, never before."""
    n_variables = problem.n_variables
    computed = set(range(n_variables)) if theta == math.inf else set()  # else: on demand
    ahead: dict[int, float] = {}
    if look_ahead and theta == math.inf:  # look-ahead uses costs that are known
        least = [min(problem.costs_of(u)) for u in range(n_variables)]
        ahead = {u: float(each) if each < math.inf else 0.0 for u, each in enumerate(least)}
    beam = [Candidate({}, 0.0, 0.0, ahead)]
    steps: list[Step] = []
    for k in order_of(problem):
        candidates = []
        for node in beam:
            for i in range(len(problem.structure.kinds[k])):
                labels = node.labels | {k: i}
                ahead, stuck = _look_ahead(problem, labels, node.ahead, k)
                if enforce and (stuck or forbids(problem, labels)):
                    continue
                candidates.append(Candidate(labels, 0.0, heuristic(problem, labels, weights), ahead))
        by_heuristic = sorted(candidates, key=lambda node: node.h)  # stable: a tie goes to the earlier one
        gap = math.inf
        if len(candidates) > width:
            gap = by_heuristic[width].h - by_heuristic[width - 1].h
        skipped = theta < math.inf and (theta == 0 or gap > theta)
        if skipped:
            kept = by_heuristic[:width]
        else:
            if theta < math.inf:
                computed.add(k)
                for v in beam[0].labels:
                    if len({node.labels[v] for node in beam}) > 1:
                        computed.add(v)
            candidates = [c._replace(g=path_cost(problem, c.labels, computed)) for c in candidates]
            if enforce:
                candidates = [c for c in candidates if c.g < math.inf]
            kept = sorted(candidates, key=lambda node: node.priority)[:width]
        beam = kept
        steps.append(Step(k, candidates, gap, skipped, beam))
        if not beam:
            return Found(None, computed, steps)
    if not n_variables and enforce and not all(holds(row, ()) for row in rows_of(problem)):
        return Found(None, computed, steps)
    if theta < math.inf and len(beam) > 1:  # the answer is chosen as every beam is, with room for one node
        beam = (
            sorted(beam, key=lambda node: node.h)
            if theta == 0 or _edge(beam) > theta
            else _settled(problem, beam, computed)
        )
        if enforce and beam[0].g == math.inf:
            return Found(None, computed, steps)
    return Found(tuple(beam[0].labels[v] for v in range(n_variables)), computed, steps)


def _edge(beam: list[Candidate]) -> float:
    first, second = sorted(node.h for node in beam)[:2]
    return second - first


def _settled(problem: Problem, beam: list[Candidate], computed: set[int]) -> list[Candidate]:
    """Computes the costs on which the nodes disagree, and ranks by path cost and heuristic."""
    computed |= {v for v in beam[0].labels if len({node.labels[v] for node in beam}) > 1}
    beam = [node._replace(g=path_cost(problem, node.labels, computed)) for node in beam]
    return sorted(beam, key=lambda node: node.g + node.h)


def _look_ahead(problem: Problem, labels: Labels, before: dict[int, float], k: int) -> tuple[dict[int, float], bool]:
    """Returns what each unassigned variable can still cost, and whether for one of them no label is left.

    Only a variable that some table lacks, now that `k` has a label, is looked at again; where no label is
    left for it, its old estimate stays.
    """
    after = {u: least for u, least in before.items() if u != k}
    stuck = False
    for u in after:
        opened = any(k in scope and u in scope and labels.keys() >= set(scope) - {u} for scope, _ in tables_of(problem))
        if opened:
            least = least_cost(problem, labels, u)
            stuck |= least == math.inf
            after[u] = least if least < math.inf else after[u]
    return after, stuck


Domains = dict[int, list[int]]


def supported(problem: Problem, domains: Domains) -> Domains:
    """Returns the labels with support in every table and row, removing the others until nothing changes."""
    while True:
        kept: Domains = {v: list(labels) for v, labels in domains.items()}
        for scope, table in tables_of(problem):
            allowed = [t for t in product(*(kept[v] for v in scope)) if table[t] < math.inf]
            for slot, v in enumerate(scope):
                kept[v] = [i for i in kept[v] if any(t[slot] == i for t in allowed)]
        for row in rows_of(problem):
            for v in kept:
                kept[v] = [i for i in kept[v] if can_hold(row, kept | {v: [i]})]
            if not can_hold(row, kept):
                return {v: [] for v in kept}
        if kept == domains:
            return kept
        domains = kept


def constrained_search(problem: Problem) -> tuple[int, ...] | None:
    """Gives each variable the cheapest label with which every domain keeps a label; None at a dead end."""
    domains: Domains = {
        v: [i for i, value in enumerate(problem.costs_of(v)) if value < math.inf] for v in range(problem.n_variables)
    }
    if any(not holds(row, ()) for row in rows_of(problem) if not any(row[0].values())):
        return None
    domains = supported(problem, domains)
    chosen: Labels = {}
    everything = set(range(problem.n_variables))
    for k in order_of(problem):
        by_cost = sorted(domains[k], key=lambda i: path_cost(problem, chosen | {k: i}, everything))
        for i in by_cost:
            trial = supported(problem, domains | {k: [i]})
            if all(trial.values()):
                domains, chosen[k] = trial, i
                break
        else:
            return None
    return tuple(chosen[v] for v in range(problem.n_variables))


# Learning: the paper's Algorithm 1, line by line. A node is a dict of labels by variable.


class Lesson(NamedTuple):
    """What Algorithm 1 did with one example: the weights after it, the mistake, the nodes compared."""

    weights: np.ndarray
    mistake: str  # "lost", "wrong" or nothing
    good: Candidate | None  # v*
    beam: list[Candidate]  # the nodes whose features were taken off


def algorithm_1(
    problems: list[Problem],
    answers: list[tuple[int, ...]],
    width: int = 1,
    epochs: int = 1,
    step: float = 1.0,
    enforce: bool = False,
    look_ahead: bool = False,
) -> list[Lesson]:
    """Runs the listing, and the variants that enforce constraints or look ahead; one lesson per example."""
    w = np.zeros(problems[0].structure.schema.n_weights)  # line 1
    lessons = []
    for _ in range(epochs):  # line 2
        for problem, y in zip(problems, answers, strict=True):  # lines 3 and 4
            beam, good = [first_node(problem, look_ahead)], None  # line 5
            while any(is_good(v, y) for v in beam) and len(beam[0].labels) < len(y):  # line 6
                candidates = breadth_expand(problem, beam, w, enforce)
                good = next((v for v in candidates if is_good(v, y)), None)
                beam = sorted(candidates, key=lambda v: v.priority)[:width]  # line 7
                if good is None:  # its constraints forbid the answer: there is nothing to learn
                    break
            mistake, compared = "", []
            if good is None and len(y):
                pass
            elif not any(is_good(v, y) for v in beam):  # line 9
                mistake, compared = "lost", beam
                set_good = {k: y[k] for k in beam[0].labels}  # line 10
                mean = sum(phi(problem, set_good) - phi(problem, v.labels) for v in beam) / len(beam)
                w = w + step * mean  # line 11
            elif not is_good(beam[0], y):  # line 12
                mistake, compared = "wrong", beam[:1]
                set_good = {k: y[k] for k in beam[0].labels}  # line 13
                w = w + step * (phi(problem, set_good) - phi(problem, beam[0].labels))  # line 14
            lessons.append(Lesson(w.copy(), mistake, good, compared))
    return lessons


def first_node(problem: Problem, look_ahead: bool) -> Candidate:
    """Returns the paper's I: no labels."""
    if not look_ahead:
        return Candidate({}, 0.0, 0.0, {})
    least = [float(min(problem.costs_of(u))) for u in range(problem.n_variables)]
    return Candidate({}, 0.0, 0.0, {u: each if each < math.inf else 0.0 for u, each in enumerate(least)})


def breadth_expand(problem: Problem, beam: list[Candidate], weights: np.ndarray, enforce: bool) -> list[Candidate]:
    """Returns the successors of a beam, node by node and label by label."""
    k = order_of(problem)[len(beam[0].labels)]
    everything = set(range(problem.n_variables))
    candidates = []
    for node in beam:
        for i in range(len(problem.structure.kinds[k])):
            labels = node.labels | {k: i}
            ahead, stuck = _look_ahead(problem, labels, node.ahead, k)
            g = path_cost(problem, labels, everything)
            if enforce and (stuck or g == math.inf or forbids(problem, labels)):
                continue
            candidates.append(Candidate(labels, g, heuristic(problem, labels, weights), ahead))
    return candidates


def is_good(node: Candidate, y: tuple[int, ...]) -> bool:
    """Whether a node is y-good: all its labels are the answer's."""
    return all(y[k] == i for k, i in node.labels.items())
