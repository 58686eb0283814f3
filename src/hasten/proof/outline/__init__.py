"""An outline: the steps by which a known optimum is shown to be one, for `hasten.certificates` to write down.

What is eliminated is only named; the rules of trees are counted on the way. Of what elimination leaves, kernels log a
proof (`hasten.proof.outline.search`). All numbers are those of the problem: its variables, tables and rows in their
order; what steps add is counted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import Any, cast

import numpy as np

from hasten.kernels.layout import Graph
from hasten.model.batch import ONLY, arrays_of
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.proof.elimination.plan import plan_reduction
from hasten.proof.elimination.reduction import Reduction
from hasten.proof.outline.search import CHILD, END, FORBIDDEN, LEAF, MOVE, OUT, PRICE, SPLIT, log_proof
from hasten.proof.tally.kernels import Tally
from hasten.proof.tally.plan import plan_tally
from hasten.support.clock import Clock, now

Step = tuple[Any, ...]  # a name, then what it needs: a line of a certificate
FEW_SUMS, MOST_SUMS = 50_000, 2_000_000  # that eliminating everything may take: at once, or if all else takes longer
SUMS_A_SECOND, NUMBERS_A_SECOND = 500_000, 50_000  # that are written and checked, at least
LARGE_JOIN = 50_000  # the most sums of one variable
SWEEPS = 1000, 4  # at the root, and at other nodes
DIVE_NODES = 400
NEAR = 0.05  # share of the optimum that the least of all costs may be below it to try without elimination
FEW_NUMBERS, MOST_NUMBERS = 20_000, 1 << 23  # of a log: untouched memory costs nothing
MOST_KEPT = 1 << 24  # numbers that levels keep


def outline(
    problem: Problem, enough: float, target: float, max_join: int | None = None, clock: Clock | None = None
) -> list[Step]:
    """Returns steps that show a bound of `enough`, as far as floating point can tell; sweeps aim at `target`.

    If that takes too many steps, or too long, they show less. Nothing is eliminated if `max_join` is 0: only messages,
    prices and splits are left.
    """
    least, shape, clock = _least(problem), problem.structure.compiled, clock or Clock()
    left = clock.deadline - now()
    if -math.inf < enough <= least:
        return [("sum",)]
    whole = None if max_join == 0 else shape.made(_whole)
    if whole is not None and whole[1] > SUMS_A_SECOND * left:
        whole = None
    near = enough - least <= NEAR * abs(enough) < math.inf  # few labels are left to decide
    plans = [0] * near + [0 if max_join == 0 else None] * (whole is None or whole[1] > FEW_SUMS)
    for each in plans:
        steps, done = _logged(problem, (enough, target), FEW_NUMBERS, each, clock)
        if done or now() >= clock.deadline:
            return steps
    if whole is not None:
        return [*whole[0], ("sum",)]
    most = max(FEW_NUMBERS, int(min(MOST_NUMBERS, NUMBERS_A_SECOND * (clock.deadline - now()))))
    return _logged(problem, (enough, target), most, 0 if max_join == 0 else None, clock)[0]


def _least(problem: Problem) -> float:
    """Returns the least that any labelling can cost: that of each variable and of each table by itself."""
    graph, table = problem.graph, problem.table
    with np.errstate(over="ignore"):
        total = float(np.minimum.reduceat(problem.cost, graph.first[:-1]).sum()) if len(problem.cost) else 0.0
    for at, size, n in zip(graph.soft_at.tolist(), graph.soft_size.tolist(), graph.soft_count.tolist(), strict=True):
        total += n * float(table[at : at + size].min())
    return total


class Scopes:
    """Which variables tables are over, by number, as eliminations go on."""

    def __init__(self, graph: Graph) -> None:
        scope, first = graph.scope.tolist(), graph.scope_first.tolist()
        self.of: dict[int, set[int]] = {}
        self.touching: dict[int, set[int]] = {}  # by variable
        self.n_tables, self.sizes = 0, np.diff(graph.first).tolist()
        self.n_sums = 0  # that all eliminations so far take
        for f, at in enumerate(graph.table_at.tolist()):
            if at >= 0:
                self.add(set(scope[first[f] : first[f + 1]]))

    def add(self, scope: set[int]) -> None:
        """Adds a table; one over a single variable has a number, too, but is part of its costs."""
        if len(scope) > 1:
            self.of[self.n_tables] = scope
            for v in scope:
                self.touching.setdefault(v, set()).add(self.n_tables)
        self.n_tables += 1

    def eliminate(self, v: int) -> Step:
        """Returns the step that eliminates a variable."""
        near = self.touching.pop(v, ())
        around = set[int]().union({v}, *(self.of[n] for n in near))
        for n in near:
            for u in self.of.pop(n) - {v}:
                self.touching[u].discard(n)
        self.n_sums += math.prod(self.sizes[u] for u in around)
        self.add(around - {v})
        return "eliminate", v

    def follow(self, reduction: Reduction) -> list[Step]:
        """Returns the steps of a plan."""
        pairs = zip(reduction.plan.variable.tolist(), reduction.plan.partner.tolist(), strict=True)
        return [self.eliminate(v) for pair in pairs for v in pair if v >= 0]


def _reduced(compiled: Compiled, max_join: int | None) -> Reduction:
    """Plans what to eliminate of a structure. Its rows stay as they are."""
    return plan_reduction(compiled.graph, max_join, cliques=False)


def _whole(compiled: Compiled) -> tuple[list[Step], int] | None:
    """Returns the steps that eliminate all of a structure, and how many sums they take, if that is affordable."""
    scopes, steps = Scopes(compiled.graph), list[Step]()
    if compiled.graph.row_low.size:
        tally = plan_tally(compiled)
        steps = [] if tally is None else list(_counted(compiled.graph, cast(Tally, tally.record), scopes))
    else:
        reductions = (plan_reduction(compiled.graph, most) for most in (None, LARGE_JOIN))
        for reduction in [next((each for each in reductions if each.complete), None)]:
            steps = [] if reduction is None else scopes.follow(reduction)
    return (steps, scopes.n_sums) if steps and scopes.n_sums <= MOST_SUMS else None


def _counted(graph: Graph, tally: Tally, scopes: Scopes) -> Iterator[Step]:
    """Yields steps that eliminate a forest, each variable before the one above it; a counter goes with it per row."""
    n = len(graph.row_low)
    terms: list[dict[int, list[float]]] = [{} for _ in range(n)]  # by row and variable: weights of labels
    row = np.arange(n).repeat(np.diff(graph.row_first)).tolist()
    cells = row, graph.row_variable.tolist(), graph.row_label.tolist(), graph.row_weight.tolist()
    for r, v, at, weight in zip(*cells, strict=True):
        terms[r].setdefault(v, [0.0] * scopes.sizes[v])[at - int(graph.first[v])] += weight
    counters: list[dict[int, int]] = [{} for _ in range(n)]  # by row, and by the variable that each goes with

    def count(r: int, variables: list[int], v: int) -> Step:
        """Returns the step that counts, as the checker does it; the counter goes with a variable."""
        low, high, weights = graph.row_least[r], graph.row_most[r], [terms[r].pop(u) for u in variables]
        least, most = (sum(pick(each, default=0.0) for each in terms[r].values()) for pick in (min, max))
        sums = {sum(each) for each in product(*map(set, weights))}
        loose = [x for x in sums if low <= x + least and x + most <= high]
        tight = [x for x in sums if x + least <= high and x + most >= low and x not in loose]
        counter = counters[r][v] = len(scopes.sizes)
        terms[r][counter] = [*loose[:1], *tight]
        scopes.sizes.append(len(terms[r][counter]))
        scopes.add({*variables, counter})
        return "count", [r], variables

    for v in tally.order.tolist():
        above = -1 if tally.above[v] == len(tally.order) else int(tally.above[v])
        for r in range(n):
            if v in terms[r]:
                yield count(r, [v], v)
        yield scopes.eliminate(v)
        for r, mine in enumerate(counters):
            if v in mine:
                merged = [mine.pop(v), *([mine[above]] if above in mine else [])]
                if len(merged) > 1 or above in terms[r]:
                    yield count(r, merged + [above] * (above in terms[r]), above)
                    yield from map(scopes.eliminate, merged)
                else:
                    mine[above] = merged[0]
    yield from [scopes.eliminate(counter) for mine in counters for counter in mine.values()]


def _logged(
    problem: Problem, goal: tuple[float, float], most: int, max_join: int | None, clock: Clock
) -> tuple[list[Step], bool]:
    """Returns the steps that kernels log for what an elimination leaves, and whether they show all."""
    reduction = problem.structure.compiled.made(_reduced, max_join)
    small, effort = reduction.graph, (*goal, *SWEEPS, DIVE_NODES)
    n_kept = small.first[-1] + small.row_low.size + small.scope.size * max(np.diff(small.first), default=0)
    n_levels = max(1, min(len(small.order) + 1, MOST_KEPT // max(int(n_kept), 1)))
    said, used = np.empty(most), np.zeros(2, dtype=np.int64)
    arrays = (*arrays_of(problem),)
    clock.run(lambda: log_proof(arrays, ONLY, reduction.addresses, effort, n_levels, (said, used), clock.watch()), 1e9)
    if not 0 < used[0] <= most:
        return [("sum",)], False
    scopes = Scopes(problem.graph)
    steps = scopes.follow(reduction)
    return steps + list(_replayed(iter(said[: used[0]].tolist()), problem.graph, reduction, scopes)), bool(used[1])


def _replayed(log: Iterator[float], graph: Graph, reduction: Reduction, scopes: Scopes) -> Iterator[Step]:
    """Yields the steps of a log: numbers of what an elimination leaves become those of the problem."""
    small, variable = reduction.graph, reduction.plan.keep.tolist()
    scope, factor, first = small.scope.tolist(), small.factor_of.tolist(), small.scope_first.tolist()
    arity, joined, sizes = np.diff(small.scope_first), iter(sorted(scopes.of)), np.diff(small.first).tolist()
    table = [next(joined) if at >= 0 and n > 1 else -1 for at, n in zip(small.table_at, arity, strict=True)]
    left: dict[int, list[int]] = {}  # labels of the variables that were split
    above = list[tuple[dict[int, list[int]], int, list[list[int]]]]()  # of each split: the same, the variable, parts
    for event in log:
        n = int(next(log))
        if event == SPLIT:
            above.append((left, n, []))
            yield "split", variable[n], above[-1][2]
        elif event == CHILD:
            left = above[-1][0] | {above[-1][1]: [n]}
            above[-1][2].append([n])
        elif event == END:
            left, v, parts = above.pop()
            if rest := [i for i in left.get(v, range(sizes[v])) if [i] not in parts]:
                parts.append(rest)
                yield ("sum",)
        elif event == OUT:
            reason, gone = int(next(log)), {int(next(log)) for _ in range(int(next(log)))}
            left[n] = [i for i in left.get(n, range(sizes[n])) if i not in gone]
            yield "split", variable[n], [left[n]] if reason == FORBIDDEN else [sorted(gone), left[n]]
            if reason >= 0:
                yield "count", [reason], []
            if reason != FORBIDDEN:
                yield ("sum",)
        elif event == MOVE:
            v, f = scope[n], factor[n]
            sent = [next(log) for _ in range(sizes[v])]
            chosen = [len(left.get(u, (0, 0))) == 1 for u in scope[first[f] : first[f + 1]]]
            if len(left.get(v, (0, 0))) > 1 and sum(chosen) < len(chosen) - 1:  # else it says nothing
                yield "move", table[f], variable[v], sent
        elif event == PRICE:
            yield "price", n, next(log)
        else:
            if n == LEAF:
                n = _broken(graph, {int(graph.first[variable[v]]) + i for v, each in left.items() for i in each})
            if n >= 0:
                yield "count", [n], []
            yield ("sum",)


def _broken(graph: Graph, labels: set[int]) -> int:
    """Returns a row that a labelling breaks by less than floating point can tell; -1 if there is none."""
    for r in range(len(graph.row_low)):
        cells = range(graph.row_first[r], graph.row_first[r + 1])
        total = sum(Fraction(graph.row_weight[c]) for c in cells if int(graph.row_label[c]) in labels)
        if total < graph.row_least[r] or total > graph.row_most[r]:
            return r
    return -1
