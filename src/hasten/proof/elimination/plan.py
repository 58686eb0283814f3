"""Exact elimination: variables of low degree are minimised out, once and for all, before anything is bounded.

Minimising a variable out of the factors that touch it leaves one table over its neighbours; nothing is lost. Which
variables go, and which sums that takes, depends on the structure alone: it is planned once, as flat lists of what to
add. Chains (as by Viterbi's algorithm) and trees are solved by that; entities and relations lose all relations.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hasten.kernels.cells import Rows, with_rows, with_scopes
from hasten.kernels.layout import Graph
from hasten.model.compiled import NO_INTS, Compiled, Fields, Form, TableLayout, cast
from hasten.model.structure import Structure
from hasten.proof.elimination.cliques import with_cliques
from hasten.proof.elimination.joins import (
    DERIVED,
    SILENT,
    STATIC,
    FactorTable,
    Join,
    Pattern,
    Signature,
    join_of,
    pattern_of,
)
from hasten.proof.elimination.kernels import Plan, Reduction
from hasten.support.arrays import IntArray, all_of, ints, offsets, ranges, sizes_of

FEW_SUMS = 768  # that eliminating a variable may always take, unless a limit is given
FEW_LEFT = 192  # where that leaves variables, which would be joined more densely
SWEEPS = 16  # over the tuples of its tables: the least cost of leaving a variable
MOST_ENTRIES = 2**22  # labellings of a step, of which tables allow some
SKIPPED = -1  # the price of a variable that was not worth its price
MAX_SCOPE = 32  # how many variables these may range over
NO_STEPS: Fields = {
    **dict.fromkeys(("variable", "partner", "label_at", "partner_at", "scope", "stride", "base", "form"), NO_INTS),
    **dict.fromkeys(("n_static", "n_derived", "entry_at", "sum_first", "sum_at", "sum_label", "sum_partner"), NO_INTS),
    **dict.fromkeys(("read_at", "reads", "joint", "joint_out", "joint_in", "n_labels"), NO_INTS),
    **dict.fromkeys(("out_first", "scope_first", "base_first"), offsets(())),
}


def addresses(structures: Iterable[Structure], max_join: int | None) -> IntArray:
    """Returns for each structure the addresses of its plan and of the graph that it leaves, for kernels."""
    none = np.zeros((0, 2), dtype=np.int64)
    return np.concatenate([none, *(reduce(structure.compiled, max_join).addresses for structure in structures)])


def reduce(compiled: Compiled, max_join: int | None = None) -> Reduction:
    """Plans the elimination of every variable that takes at most `max_join` sums; made once.

    None eliminates the variables that are cheaper to eliminate than to leave.
    """
    return compiled.made(_reduce, max_join)


def _reduce(compiled: Compiled, max_join: int | None) -> Reduction:
    return plan_reduction(compiled.graph, max_join)


def plan_reduction(graph: Graph, max_join: int | None, cliques: bool = True) -> Reduction:
    """Plans the elimination of a graph's variables, as `reduce` says; rows over pairs may become `cliques`."""
    in_rows = np.zeros(len(graph.order), dtype=bool)
    in_rows[graph.row_variable] = True
    if all_of(in_rows) and all_of(graph.table_at >= 0):
        reduction = _nothing(graph)
    else:
        elimination = Elimination(graph, max_join)
        reduction = elimination.run()
        most_sums = max([step.join.n_combos for step in elimination.steps], default=0)
        if max_join is None and len(reduction.graph.order) and most_sums > FEW_LEFT:
            reduction = Elimination(graph, None, FEW_LEFT).run()
    if reduction.graph.table_at.size or not cliques:
        return reduction
    return Reduction(reduction.plan, with_cliques(reduction.graph))


def _nothing(graph: Graph) -> Reduction:
    """Returns the plan that eliminates nothing: all stays as it was, tables included."""
    nothing = dict.fromkeys(("constant", "fold_from", "fold_to"), NO_INTS) | {"priced": _priced(graph)}
    keep, keep_label = np.arange(len(graph.order)), np.arange(int(graph.first[-1]))
    plan = Plan.pack(**NO_STEPS, **nothing, keep=keep, keep_label=keep_label, copy_from=np.arange(len(graph.table)))
    return Reduction(plan, graph)  # kernels know structures by their plans: each has its own


class Step(NamedTuple):
    """One step of a plan: who goes, and how."""

    group: tuple[int, ...]
    around: list[int]  # the neighbours
    join: Join
    tables: list[int]  # their numbers
    at: list[int]  # where the tables that are read start, in the order of reading


class Elimination:
    """The variables and tables that are left, and the steps so far.

    Tables that only forbid are not read, unless `reads` says so.
    """

    def __init__(
        self,
        graph: Graph,
        max_join: int | None,
        few_sums: int | None = None,
        reads: Callable[[Pattern], bool] = lambda _: False,
    ) -> None:
        self.graph = graph
        self.first: list[int] = graph.first.tolist()
        self.max_join = max_join
        self.few_sums = FEW_SUMS if few_sums is None else few_sums
        self.limit = MOST_ENTRIES if max_join is None else max_join
        self.sizes: list[int] = sizes_of(graph.first).tolist()
        self.tables: dict[int, FactorTable] = {}
        self.n_tables = 0  # so far; they are numbered as they come
        self.touching: list[set[int]] = [set() for _ in self.sizes]
        self.in_rows = set(graph.row_variable.tolist())
        self.n_entries = 0  # of derived tables
        self.steps: list[Step] = []
        self.constants: list[int] = []
        self.joins: dict[Signature, Join] = {}
        self._put_factors(reads)

    def _put_factors(self, reads: Callable[[Pattern], bool]) -> None:
        graph, sizes = self.graph, self.sizes
        soft, scopes, firsts = set(graph.soft_at.tolist()), graph.scope.tolist(), graph.scope_first.tolist()
        patterns: dict[int, Pattern] = {}
        for f, at in enumerate(graph.table_at.tolist()):
            if at < 0:
                continue
            scope = tuple(scopes[firsts[f] : firsts[f + 1]])
            if at not in patterns:
                shape = tuple([sizes[v] for v in scope])
                patterns[at] = pattern_of(~np.isposinf(graph.table[at : at + math.prod(shape)].reshape(shape)))
            self.put(FactorTable(scope, patterns[at], at, STATIC if at in soft or reads(patterns[at]) else SILENT))

    def add_variable(self, n_labels: int) -> int:
        """Adds a variable, whose labels come behind all others; returns its number."""
        self.sizes.append(n_labels)
        self.touching.append(set())
        self.first.append(self.first[-1] + n_labels)
        return len(self.sizes) - 1

    def run(self) -> Reduction:
        """Eliminates the cheapest variable again and again; returns the plan, and the graph of the rest."""
        self.eliminate()
        return self._finish()

    def eliminate(self) -> None:
        """Eliminates the cheapest variable again and again."""
        price = {v: self._price(v) for v in range(len(self.sizes)) if v not in self.in_rows}
        queue = [(join, v) for v, join in price.items()]
        heapq.heapify(queue)
        while queue:
            join, v = heapq.heappop(queue)
            if join != price.get(v):
                continue  # it is gone, or a later entry has its price
            if join > self.limit:
                break
            few = self.max_join is not None or join <= self.few_sums  # or it leaves no more than it takes away
            pays = few or join // self.sizes[v] <= sum([self.tables[f].pattern.size for f in self.touching[v]])
            step = self._with_partner(v) if pays else None
            if step is None:
                price[v] = SKIPPED  # until a neighbour goes
                continue
            for u in step.group:
                del price[u]
            self._take(step)
            for u in step.around:
                if u in price:
                    join = self._price(u)
                    if join != price[u]:
                        price[u] = join
                        heapq.heappush(queue, (join, u))

    def eliminate_in_rounds(self) -> None:
        """Eliminates together, round by round, variables that no table joins: few steps then wait for others."""
        left = set(range(len(self.sizes)))
        while left:
            prices = sorted((self._price(v), v) for v in left)
            most = min(prices[0][0] * max(self.sizes[v] for v in left), self.limit)
            near, gone = set[int](), set[int]()
            for _, v in prices:
                if v not in near and self._price(v) <= most:
                    around = {u for f in self.touching[v] for u in self.tables[f].scope} - {v}
                    self._take(self._step((v,), sorted(around)))
                    near |= around
                    gone.add(v)
            if not gone:
                return
            left -= gone

    def _pays(self, step: Step) -> bool:
        """Whether a step takes no more sums than leaving its variables would."""
        if self.max_join is not None or step.join.n_combos <= self.few_sums:
            return True
        return step.join.n_combos <= SWEEPS * sum([self.tables[f].pattern.n_tuples for f in step.tables])

    def _with_partner(self, v: int) -> Step | None:
        """Returns the step that eliminates `v`, with a neighbour where that takes fewer sums than two steps."""
        near = {v}.union(*[self.tables[f].scope for f in self.touching[v]])
        around = sorted(near - {v})
        alone = best = self._step((v,), around)
        if math.prod([self.sizes[u] for u in near]) > 4 * self.limit:
            return alone if self._pays(alone) else None
        fewest = math.inf
        for u in around:
            if u in self.in_rows or not all(near.issuperset(self.tables[f].scope) for f in self.touching[u]):
                continue  # together they would have more neighbours
            together = self._step((u, v), [w for w in around if w != u])
            n_combos = together.join.n_combos
            if n_combos < min(alone.join.n_combos + together.join.n_after, fewest):
                best, fewest = together, n_combos
        return best if self._pays(best) else None

    def _step(self, group: tuple[int, ...], around: list[int]) -> Step:
        """Returns the step that eliminates a group, given all its neighbours."""
        variables = (*around, *group)
        axis = dict(zip(variables, range(len(variables)), strict=True))
        touching = self.touching[group[0]] if len(group) == 1 else self.touching[group[0]] | self.touching[group[1]]
        numbers = sorted(touching)
        parts = []
        for f in numbers:
            scope, pattern, _, role = self.tables[f]
            parts.append((pattern, tuple([axis[u] for u in scope]), role))
        signature = tuple([self.sizes[u] for u in variables]), len(group), tuple(parts)
        join = self.joins.get(signature)
        if join is None:
            join = self.joins[signature] = join_of(signature)
        return Step(group, around, join, numbers, [self.tables[numbers[i]].at for i in join.order])

    def _price(self, v: int) -> int:
        """Returns how many sums eliminating a variable takes, or one more than allowed."""
        size = self.sizes[v]
        seen = {v}
        for f in self.touching[v]:
            for u in self.tables[f].scope:
                if u not in seen:
                    seen.add(u)
                    size *= self.sizes[u]
            if size > self.limit or len(seen) > MAX_SCOPE:
                return self.limit + 1
        return size

    def put(self, table: FactorTable) -> None:
        """Adds a table."""
        number = self.n_tables
        self.n_tables += 1
        self.tables[number] = table
        for v in table.scope:
            self.touching[v].add(number)

    def _take(self, step: Step) -> None:
        """Adds a step to the plan: its tables make way for the one that it derives."""
        for f in step.tables:
            for u in self.tables.pop(f).scope:
                self.touching[u].discard(f)
        self.steps.append(step)
        at, self.n_entries = self.n_entries, self.n_entries + step.join.n_out
        if step.around:
            self.put(FactorTable(tuple(step.around), step.join.out, at, DERIVED))
        else:
            self.constants.append(at)

    def _finish(self) -> Reduction:
        """Returns the plan, and the graph of the rest."""
        graph, sizes = self.graph, sizes_of(self.graph.first)
        is_kept = np.ones(len(sizes), dtype=bool)
        is_kept[[v for step in self.steps for v in step.group]] = False
        keep = is_kept.nonzero()[0]
        order = graph.order[is_kept[graph.order]]
        number = is_kept.cumsum() - 1
        first = offsets(sizes[keep])
        left = [table for _, table in sorted(self.tables.items())]
        folds = [table for table in left if table.role == DERIVED and len(table.scope) == 1]
        tables = [table for table in left if table.role != DERIVED or len(table.scope) > 1]
        fold_to = number[ints(table.scope[0] for table in folds)]
        factors, scope = self._kept_factors(tables)
        label = graph.row_label - (~is_kept).repeat(sizes).cumsum()[graph.row_label]  # all variables in rows stay
        rows = Rows(graph.row_first, label, graph.row_weight, graph.row_low, graph.row_high)
        small = with_rows(with_scopes(factors, first, number[order], number[scope]), rows)
        plan = Plan.pack(
            **(self.step_fields() if self.steps else NO_STEPS),
            constant=ints(self.constants),
            keep=keep,
            keep_label=ranges(graph.first[keep], sizes[keep]),
            fold_from=_spans_of(folds),
            fold_to=ranges(first[fold_to], sizes[keep[fold_to]]),
            copy_from=_spans_of([table for table in tables if table.role != DERIVED]),
            priced=_priced(graph),
        )
        return Reduction(plan, small)

    def step_fields(self) -> Fields:
        """Returns the fields of a plan for its sums."""
        steps, first = self.steps, ints(self.first)
        numbers: dict[Join, int] = {}
        form = ints(numbers.setdefault(step.join, len(numbers)) for step in steps)
        forms = list(numbers)
        variable = ints(step.group[-1] for step in steps)
        partner = ints(step.group[0] if len(step.group) > 1 else -1 for step in steps)
        shared, joint_out, joint_in = np.array([join.shared for join in forms]).T
        n_combos = ints(join.n_combos for join in forms)
        return {
            "variable": variable,
            "partner": partner,
            "label_at": first[variable],
            "partner_at": np.where(partner >= 0, first[partner], 0),
            "out_first": offsets(step.join.n_out for step in steps),
            "scope_first": offsets(len(step.around) for step in steps),
            "scope": ints(v for step in steps for v in step.around),
            "stride": _chained([step.join.out.stride for step in steps if step.around]),
            "base_first": offsets(len(step.at) for step in steps),
            "base": ints(place for step in steps for place in step.at),
            "form": form,
            "n_static": ints(join.n_static for join in forms),
            "n_derived": ints(len(join.order) - join.n_static for join in forms),
            "entry_at": offsets(join.n_out + 1 for join in forms)[:-1],
            "sum_first": _chained([offsets(join.counts) for join in forms]),
            "sum_at": offsets(n_combos)[:-1],
            "sum_label": _chained([join.labels[-1] for join in forms]),
            "sum_partner": _chained([join.labels[-2] if join.n_inside == 2 else 0 * join.labels[-1] for join in forms]),
            "read_at": offsets(join.n_combos * len(join.order) for join in forms)[:-1],
            "reads": _chained([join.reads for join in forms]),
            "joint": np.where([join.allows_all for join in forms], np.maximum(shared, -1), -1),
            "joint_out": joint_out,
            "joint_in": joint_in,
            "n_labels": ints(join.shape[-1] for join in forms),
        }

    def _kept_factors(self, tables: Sequence[FactorTable]) -> tuple[Graph, IntArray]:
        """Returns the tables that are left, each by itself, as they stand in scratch space, and their variables."""
        patterns, each = [table.pattern for table in tables], np.arange(len(tables))
        layout = TableLayout.of([pattern.table for pattern in patterns], each.tolist())
        arity = ints(len(table.scope) for table in tables)
        scope = ints(v for table in tables for v in table.scope)
        stride = _chained([pattern.stride for pattern in patterns])
        form = Form(arity, sizes_of(self.graph.first)[scope], stride, np.full(len(tables), -1))
        derived = np.fromiter((table.role == DERIVED for table in tables), dtype=bool, count=len(tables))
        copied = self.n_entries + offsets(np.where(derived, 0, ints(pattern.size for pattern in patterns)))[:-1]
        table_at = np.where(derived, ints(table.at for table in tables), copied)
        return Graph.start(**cast(form, each, layout) | {"table_at": table_at}), scope


def _priced(graph: Graph) -> IntArray:
    """Returns the factors whose tables do more than forbid."""
    starts = np.zeros(len(graph.table) + 1, dtype=bool)
    starts[graph.soft_at] = True
    return starts[graph.table_at].nonzero()[0]  # a factor without a table has -1: the last place, where none starts


def _chained(parts: Sequence[IntArray]) -> IntArray:
    return np.concatenate([NO_INTS, *parts])


def _spans_of(tables: Sequence[FactorTable]) -> IntArray:
    """Returns all places of some tables."""
    return ranges(ints(table.at for table in tables), ints(table.pattern.size for table in tables))
