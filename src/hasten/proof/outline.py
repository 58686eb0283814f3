"""An outline: the steps by which a known optimum is shown to be one, for `hasten.certificates` to write down.

What is eliminated is only named: a trees' rules are counted on the way, small tables follow from large ones. Of what is
left, kernels log a proof (`hasten.proof.branch.logged`). A largest flow is a way to send messages, too. All numbers are
those of the problem: its variables, its tables and rows in their order; what steps add is counted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph
from hasten.model.batch import ONLY, arrays_of
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.proof.branch.logged import DONE, LEAF, MOVE, NUMBERS, PRICE, SPLIT, SUM, VIOLATED, WORDS, log_proof
from hasten.proof.elimination.plan import plan_reduction
from hasten.proof.elimination.reduction import Reduction
from hasten.support.arrays import IntArray
from hasten.support.clock import Clock

Step = tuple[Any, ...]  # a name, then what it needs: a line of a certificate
MOST_SUMS = 2_000_000  # that checking an elimination of everything may take
LARGE_JOIN = 50_000  # the most sums of one variable
SWEEPS = 100, 4  # at the root, and at other nodes
DIVE_NODES = 400
MOST_WORDS, MOST_NUMBERS = 1 << 24, 1 << 23  # of a log: untouched memory costs nothing
MOST_KEPT = 1 << 24  # numbers that levels keep
MOST_LEVELS = 256


def outline(problem: Problem, enough: float, target: float) -> list[Step]:
    """Returns steps that show a bound of `enough`, as far as floating point can tell; sweeps aim at `target`."""
    shape, graph = problem.structure.compiled, problem.graph
    whole = shape.made(_whole)
    if whole is not None:
        return [*whole, ("sum",)]
    reduction = shape.made(_without_cliques)
    scopes = Scopes(graph)
    steps = [step for v in _order(reduction) for step in scopes.eliminate(v)]
    return steps + _logged(problem, reduction, scopes, (enough, target))


class Scopes:
    """Which variables tables are over, by number, as eliminations go on."""

    def __init__(self, graph: Graph) -> None:
        scope, first = graph.scope.tolist(), graph.scope_first.tolist()
        given = [scope[first[f] : first[f + 1]] for f, at in enumerate(graph.table_at.tolist()) if at >= 0]
        self.of = {n: set(each) for n, each in enumerate(given) if len(each) > 1}
        self.n_tables, self.sizes = len(given), np.diff(graph.first).tolist()
        self.n_sums = 0  # that all eliminations so far take

    def eliminate(self, v: int) -> Iterator[Step]:
        """Yields the step that eliminates a variable."""
        near = [n for n, scope in self.of.items() if v in scope]
        around = set[int]().union({v}, *(self.of.pop(n) for n in near))
        self.n_sums += math.prod(self.sizes[u] for u in around)
        if len(around) > 2:
            self.of[self.n_tables] = around - {v}
        self.n_tables += 1
        yield "eliminate", v


def _order(reduction: Reduction) -> Iterator[int]:
    """Yields the variables that a plan eliminates, in order."""
    plan = reduction.plan
    for v, partner in zip(plan.variable.tolist(), plan.partner.tolist(), strict=True):
        yield from (v,) if partner < 0 else (v, partner)


def _without_cliques(compiled: Compiled) -> Reduction:
    """Plans what to eliminate of a structure. Its rows stay as they are."""
    return plan_reduction(compiled.graph, None, cliques=False)


def _whole(compiled: Compiled) -> tuple[Step, ...] | None:
    """Returns the steps that eliminate all of a structure, if that takes few sums."""
    graph = compiled.graph
    if graph.row_low.size:
        return None
    for most in (None, LARGE_JOIN):
        reduction = plan_reduction(graph, most)
        if reduction.complete:
            scopes = Scopes(graph)
            steps = tuple(step for v in _order(reduction) for step in scopes.eliminate(v))
            return steps if scopes.n_sums <= MOST_SUMS else None
    return None


def _logged(problem: Problem, reduction: Reduction, scopes: Scopes, goal: tuple[float, float]) -> list[Step]:
    """Returns the steps that kernels log for what an elimination leaves."""
    small, effort = reduction.graph, (*goal, *SWEEPS, DIVE_NODES)
    n_kept = small.first[-1] + small.row_low.size + 2 * small.scope.size * max(np.diff(small.first), default=0)
    n_levels = max(2, min(len(small.order) + 2, MOST_LEVELS, MOST_KEPT // max(int(n_kept), 1)))
    log = np.empty(MOST_WORDS, dtype=np.int64), np.empty(MOST_NUMBERS), np.zeros(3, dtype=np.int64)
    clock, arrays = Clock(), (*arrays_of(problem),)
    clock.run(lambda: log_proof(arrays, ONLY, reduction.addresses, effort, n_levels, log, clock.watch()), 1e9)
    words, numbers, used = log
    if not used[DONE]:
        raise ProblemError("The proof of this problem takes too many steps to write down.")
    said = Replay(problem.graph, reduction, scopes)
    return list(said.steps(iter(words[: used[WORDS]].tolist()), iter(numbers[: used[NUMBERS]].tolist())))


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
        """Yields a row that a labelling breaks by less than floating point can tell."""
        return iter(())
