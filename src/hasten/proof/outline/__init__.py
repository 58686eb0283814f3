"""An outline: the steps by which a known optimum is shown to be one, for `hasten.certificates` to write down.

What is eliminated is only named; the rules of trees are counted on the way. Of what elimination leaves, kernels log a
proof (`hasten.proof.outline.search`). All numbers are those of the problem: its variables, tables and rows in their
order; what steps add is counted on.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple, cast

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph
from hasten.model.batch import ONLY, arrays_of
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.proof.elimination.kernels import Reduction
from hasten.proof.elimination.plan import plan_reduction
from hasten.proof.outline.log import DONE, LEAF, MOVE, NUMBERS, PRICE, SPLIT, VIOLATED, WORDS
from hasten.proof.outline.search import log_proof
from hasten.proof.tally.plan import Tally, plan_tally
from hasten.support.clock import Clock

Step = tuple[Any, ...]  # a name, then what it needs: a line of a certificate
Plan = Callable[[Compiled], Reduction]
FEW_SUMS, MOST_SUMS = 50_000, 2_000_000  # that eliminating everything may take: at once, or if all else takes longer
LARGE_JOIN = 50_000  # the most sums of one variable
SWEEPS = 1000, 4  # at the root, and at other nodes
DIVE_NODES = 400
NEAR = 0.05  # share of the optimum that the least of all costs may be below it to try without elimination
FEW_WORDS, MOST_WORDS = 20_000, 1 << 23  # of a log: untouched memory costs nothing
MOST_KEPT = 1 << 24  # numbers that levels keep
MOST_LEVELS = 256


def outline(problem: Problem, enough: float, target: float, max_join: int | None = None) -> list[Step]:
    """Returns steps that show a bound of `enough`, as far as floating point can tell; sweeps aim at `target`.

    Nothing is eliminated if `max_join` is 0: only messages, prices and splits are left.
    """
    least, goal, shape, found = _least(problem), (enough, target), problem.structure.compiled, None
    if -math.inf < enough <= least:
        return [("sum",)]
    if enough - least <= NEAR * abs(enough) < math.inf:  # few labels are left to decide
        found = _logged(problem, goal, FEW_WORDS, _without_elimination)
    whole: Whole | None = None if max_join == 0 else shape.made(_whole)
    plan = _without_elimination if max_join == 0 else _without_cliques
    if found is None and (whole is None or whole.n_sums > FEW_SUMS):
        found = _logged(problem, goal, FEW_WORDS, plan)
    if found is None and whole is not None:
        found = [*whole.steps, ("sum",)]
    found = found or _logged(problem, goal, MOST_WORDS, plan)
    if found is None:
        raise ProblemError("The proof of this problem takes too many steps to write down.")
    return found


def _least(problem: Problem) -> float:
    """Returns the least that any labelling can cost: that of each variable and of each table by itself."""
    graph, table = problem.graph, problem.table
    with np.errstate(over="ignore"):
        total = float(np.minimum.reduceat(problem.cost, graph.first[:-1]).sum()) if len(problem.cost) else 0.0
    for at, size, n in zip(graph.soft_at.tolist(), graph.soft_size.tolist(), graph.soft_count.tolist(), strict=True):
        total += n * float(table[at : at + size].min())
    return total


class Whole(NamedTuple):
    """Steps that eliminate all of a structure, and how many sums they take."""

    steps: tuple[Step, ...]
    n_sums: int


class Scopes:
    """Which variables tables are over, by number, as eliminations go on."""

    def __init__(self, graph: Graph) -> None:
        scope, first = graph.scope.tolist(), graph.scope_first.tolist()
        given = [scope[first[f] : first[f + 1]] for f, at in enumerate(graph.table_at.tolist()) if at >= 0]
        self.of: dict[int, set[int]] = {}
        self.touching = defaultdict[int, set[int]](set)  # by variable
        self.n_tables, self.sizes = 0, np.diff(graph.first).tolist()
        self.n_sums = 0  # that all eliminations so far take
        for each in given:
            self.add(set(each))

    def add(self, scope: set[int]) -> None:
        """Adds a table; one over a single variable has a number, too, but is part of its costs."""
        if len(scope) > 1:
            self.of[self.n_tables] = scope
            for v in scope:
                self.touching[v].add(self.n_tables)
        self.n_tables += 1

    def eliminate(self, v: int) -> Iterator[Step]:
        """Yields the step that eliminates a variable."""
        near = self.touching.pop(v, ())
        around = set[int]().union({v}, *(self.of[n] for n in near))
        for n in near:
            for u in self.of.pop(n) - {v}:
                self.touching[u].discard(n)
        self.n_sums += math.prod(self.sizes[u] for u in around)
        self.add(around - {v})
        yield "eliminate", v


def _order(reduction: Reduction) -> Iterator[int]:
    """Yields the variables that a plan eliminates, in order."""
    plan = reduction.plan
    for v, partner in zip(plan.variable.tolist(), plan.partner.tolist(), strict=True):
        yield from (v,) if partner < 0 else (v, partner)


def _without_cliques(compiled: Compiled) -> Reduction:
    """Plans what to eliminate of a structure. Its rows stay as they are."""
    return plan_reduction(compiled.graph, None, cliques=False)


def _without_elimination(compiled: Compiled) -> Reduction:
    """Plans to eliminate nothing."""
    return plan_reduction(compiled.graph, 0, cliques=False)


def _whole(compiled: Compiled) -> Whole | None:
    """Returns the steps that eliminate all of a structure, if that is affordable."""
    graph = compiled.graph
    scopes, steps = Scopes(graph), list[Step]()
    if graph.row_low.size:
        tally = plan_tally(compiled)
        steps += () if tally is None else Counting(graph, scopes).run(cast(Tally, tally.record))
    else:
        reductions = (plan_reduction(graph, most) for most in (None, LARGE_JOIN))
        for reduction in [next((each for each in reductions if each.complete), None)]:
            steps += () if reduction is None else (step for v in _order(reduction) for step in scopes.eliminate(v))
    return Whole(tuple(steps), scopes.n_sums) if steps and scopes.n_sums <= MOST_SUMS else None


class Counting:
    """Eliminates a forest, each variable before the one above it, while counters go along for each row."""

    def __init__(self, graph: Graph, scopes: Scopes) -> None:
        self.scopes, n = scopes, len(graph.row_low)
        self.limits = list(zip(graph.row_least.tolist(), graph.row_most.tolist(), strict=True))
        self.terms: list[dict[int, list[float]]] = [{} for _ in range(n)]  # by row and variable: weights of labels
        row = np.arange(n).repeat(np.diff(graph.row_first)).tolist()
        cells = row, graph.row_variable.tolist(), graph.row_label.tolist(), graph.row_weight.tolist()
        for r, v, at, weight in zip(*cells, strict=True):
            weights = self.terms[r].setdefault(v, [0.0] * scopes.sizes[v])
            weights[at - int(graph.first[v])] += weight
        self.counters: list[dict[int, int]] = [{} for _ in range(n)]  # by row, and by the variable that each goes with

    def run(self, tally: Tally) -> Iterator[Step]:
        """Yields all steps."""
        top = len(tally.order)
        for v in tally.order.tolist():
            above = -1 if tally.above[v] == top else int(tally.above[v])
            for r, terms in enumerate(self.terms):
                if v in terms:
                    yield from self.count(r, [v], v)
            yield from self.scopes.eliminate(v)
            for r, counters in enumerate(self.counters):
                if v in counters:
                    mine = [counters.pop(v), *([counters[above]] if above in counters else [])]
                    if len(mine) > 1 or above in self.terms[r]:
                        yield from self.count(r, mine + [above] * (above in self.terms[r]), above)
                        for counter in mine:
                            yield from self.scopes.eliminate(counter)
                    else:
                        counters[above] = mine[0]
        for counters in self.counters:
            for counter in counters.values():
                yield from self.scopes.eliminate(counter)

    def count(self, r: int, variables: list[int], v: int) -> Iterator[Step]:
        """Yields the step that counts, as the checker does it; the counter goes with a variable."""
        terms, (low, high), scopes = self.terms[r], self.limits[r], self.scopes
        weights = [terms.pop(u) for u in variables]
        least, most = (sum(pick(each, default=0.0) for each in terms.values()) for pick in (min, max))
        sums = {sum(each) for each in product(*map(set, weights))}
        loose = [x for x in sums if low <= x + least and x + most <= high]
        tight = [x for x in sums if x + least <= high and x + most >= low and x not in loose]
        counter = len(scopes.sizes)
        terms[counter], self.counters[r][v] = [*loose[:1], *tight], counter
        scopes.sizes.append(len(terms[counter]))
        scopes.add({*variables, counter})
        yield "count", [r], variables


def _logged(problem: Problem, goal: tuple[float, float], most_words: int, plan: Plan) -> list[Step] | None:
    """Returns the steps that kernels log for what an elimination leaves; None if they take too many words."""
    reduction = problem.structure.compiled.made(plan)
    small, effort = reduction.graph, (*goal, *SWEEPS, DIVE_NODES)
    n_kept = small.first[-1] + small.row_low.size + 2 * small.scope.size * max(np.diff(small.first), default=0)
    n_levels = max(2, min(len(small.order) + 2, MOST_LEVELS, MOST_KEPT // max(int(n_kept), 1)))
    log = np.empty(most_words, dtype=np.int64), np.empty(most_words), np.zeros(3, dtype=np.int64)
    clock, arrays = Clock(), (*arrays_of(problem),)
    clock.run(lambda: log_proof(arrays, ONLY, reduction.addresses, effort, n_levels, log, clock.watch()), 1e9)
    words, numbers, used = log
    if not used[DONE] or used[WORDS] > most_words or used[NUMBERS] > most_words:
        return None
    scopes = Scopes(problem.graph)
    steps = [step for v in _order(reduction) for step in scopes.eliminate(v)]
    said = Replay(problem.graph, reduction, scopes)
    return steps + list(said.steps(iter(words[: used[WORDS]].tolist()), iter(numbers[: used[NUMBERS]].tolist())))


class Replay:
    """Reads a log: numbers of what is left become those of the problem."""

    def __init__(self, graph: Graph, reduction: Reduction, scopes: Scopes) -> None:
        small, self.graph = reduction.graph, graph
        self.variable: list[int] = reduction.plan.keep.tolist()
        tables = sorted(scopes.of)
        self.scope, self.factor = small.scope.tolist(), small.factor_of.tolist()
        arity, joined = np.diff(small.scope_first), iter(tables)
        self.table = [next(joined) if at >= 0 and n > 1 else -1 for at, n in zip(small.table_at, arity, strict=True)]
        first = small.scope_first.tolist()
        self.members = [self.scope[first[f] : first[f + 1]] for f in range(len(self.table))]
        self.sizes = np.diff(small.first).tolist()

    def steps(self, words: Iterator[int], numbers: Iterator[float]) -> Iterator[Step]:
        """Yields the steps. A message to a variable with one label, or of a table over one other, says nothing."""
        waiting: list[dict[int, int]] = [{}]  # for each part that is to come: the labels that are fixed
        for word in words:
            fixed = waiting[-1]
            if word == SPLIT:
                v, n = next(words), next(words)
                parts = [[next(words) for _ in range(next(words))] for _ in range(n)]
                yield "split", self.variable[v], parts
                waiting[-1:] = [fixed | {v: part[0]} if len(part) == 1 else fixed for part in reversed(parts)]
            elif word == MOVE:
                slot = next(words)
                v, f = self.scope[slot], self.factor[slot]
                sent = [next(numbers) for _ in range(self.sizes[v])]
                if v not in fixed and sum(u not in fixed for u in self.members[f]) > 1:
                    yield "move", self.table[f], self.variable[v], sent
            elif word == PRICE:
                yield "price", next(words), next(numbers)
            else:
                waiting.pop()
                if word == VIOLATED:
                    yield "count", [next(words)], []
                elif word == LEAF:
                    yield from self._broken(fixed)
                yield ("sum",)

    def _broken(self, fixed: dict[int, int]) -> Iterator[Step]:
        """Yields a row that a labelling breaks by less than floating point can tell, if there is one."""
        graph, labels = self.graph, {int(self.graph.first[self.variable[v]]) + i for v, i in fixed.items()}
        for r in range(len(graph.row_low)):
            cells = range(graph.row_first[r], graph.row_first[r + 1])
            total = sum(Fraction(graph.row_weight[c]) for c in cells if int(graph.row_label[c]) in labels)
            if total < graph.row_least[r] or total > graph.row_most[r]:
                yield "count", [r], []
                return
