"""The objective that a solver minimises: a problem's costs, made easy on floating point and on integers.

Smallest costs are taken out, so that all are >= 0. Costs beyond a `range` (as when someone forbids with 1e9) are left
out at first: an optimum without them that costs no more than the range is the optimum. If that fails, the range is
widened a thousandfold. Tiny costs are measured in a tiny unit: solvers have absolute tolerances.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.problem import Problem
from hasten.support.arrays import BoolArray, FloatArray, IntArray

MAX_TOTAL = 2**52  # in whole numbers no labelling costs more than this: sums are exact in double precision too
MAX_SCALE = 2**40
WIDEN = 1e3
TINY = 1e-3  # where all costs are below this, their largest becomes the unit


@dataclass(frozen=True, slots=True, eq=False)
class Objective:
    """Costs >= 0, 0 where forbidden: a labelling's cost is `offset` plus `unit` times its cost here."""

    label: FloatArray  # (labels,) with the tables of single variables
    label_allowed: BoolArray
    table: FloatArray  # as the problem's; those of single variables do not count
    table_allowed: BoolArray
    offset: float
    unit: float
    complete: bool  # whether every finite cost is in it
    range: float  # an optimum that costs more, in the problem's own unit, is not proved; inf if complete
    layout: Layout

    def original(self, value: float) -> float:
        """Returns a value of this objective in the problem's own unit."""
        return self.offset + self.unit * value

    def rounded(self) -> WholeObjective:
        """Returns the objective in whole numbers, as fine as 64 bits allow."""
        total = self.layout.most(self.label, self.table)
        scale = float(2 ** math.floor(math.log2(min(MAX_SCALE, MAX_TOTAL / max(total, 1.0)))))
        label, table = np.rint(self.label * scale), np.rint(self.table * scale)
        wrong = self.layout.most(np.abs(label - self.label * scale), np.abs(table - self.table * scale))
        return WholeObjective(label.astype(np.int64), table.astype(np.int64), scale, wrong / scale)


@dataclass(frozen=True, slots=True, eq=False)
class WholeObjective:
    """An objective times `scale`, a power of two, rounded: for solvers that know no other costs."""

    label: IntArray
    table: IntArray
    scale: float
    error: float  # a labelling's cost differs by no more than this, in the objective's unit


class Tables(NamedTuple):
    """A problem's tables, each less its minimum."""

    cost: FloatArray
    finite: BoolArray
    span: float  # the largest finite cost
    offset: float  # the sum of the minima over the factors


class Layout:
    """Where a structure keeps the costs of labels and tables; made once for all its problems."""

    def __init__(self, graph: Graph) -> None:
        self.first = graph.first
        unary: list[tuple[int, int]] = []
        uses: dict[int, tuple[int, int]] = {}  # by table: its size, how many factors use it
        for f in range(len(graph.table_at)):
            at, scope = int(graph.table_at[f]), graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]]
            if at < 0:
                continue
            if len(scope) == 1:
                start, end = int(graph.first[scope[0]]), int(graph.first[scope[0] + 1])
                unary += [(start + i, at + i) for i in range(end - start)]
                continue
            size = int(np.prod(graph.first[scope + 1] - graph.first[scope]))
            uses[at] = size, uses.get(at, (size, 0))[1] + 1
        self.unary: IntArray = np.array(unary, dtype=np.int64).reshape(-1, 2)
        self.blocks = [(at, at + size, count) for at, (size, count) in uses.items()]
        self.sizes = np.diff(graph.first)
        self._schema_table = graph.table
        self._schema_lowered = self._lowered(graph.table)

    def tables(self, problem: Problem) -> Tables:
        """Returns a problem's tables, each less its minimum."""
        table, own = problem.table, self._schema_table
        same = table is own or np.array_equal(table, own)  # it brings none of its own
        return self._schema_lowered if same else self._lowered(table)

    def most(self, label: FloatArray, table: FloatArray) -> float:
        """Returns the most that a labelling may cost."""
        most = float(np.maximum.reduceat(label, self.first[:-1]).sum())
        return most + sum(float(table[at:end].max()) * count for at, end, count in self.blocks)

    def _lowered(self, table: FloatArray) -> Tables:
        lowered, offset = np.zeros_like(table), 0.0
        for at, end, count in self.blocks:
            least = float(table[at:end].min())
            offset += count * least
            lowered[at:end] = table[at:end] - least if np.isfinite(least) else np.inf
        finite = lowered < np.inf
        return Tables(lowered, finite, float(lowered.max(where=finite, initial=0.0)), offset)


def lower_bound(layout: Layout, problem: Problem) -> float:
    """Returns the sum of the smallest costs: inf if some variable or table allows nothing."""
    return _parts(layout, problem)[2]


def objectives(layout: Layout, problem: Problem, range: float) -> Iterator[Objective]:
    """Yields the objective with costs up to `range`, then wider ones, until every finite cost is in it.

    None at all if some variable or table allows nothing.
    """
    label, tables, offset = _parts(layout, problem)
    if offset == np.inf:
        return
    table, label_finite = tables.cost, label < np.inf
    span = max(float(label.max(where=label_finite, initial=0.0)), tables.span)
    unit = 2.0 ** math.floor(math.log2(span)) if 0.0 < span < TINY else 1.0  # a power of two: nothing is rounded
    while True:
        complete = span <= range
        label_allowed = label_finite if complete else label <= range
        table_allowed = tables.finite if complete else table <= range
        yield Objective(
            np.where(label_allowed, label / unit, 0.0),
            label_allowed,
            np.where(table_allowed, table / unit, 0.0),
            table_allowed,
            offset,
            unit,
            complete,
            np.inf if complete else range,
            layout,
        )
        if complete:
            return
        range, unit = range * WIDEN, unit * WIDEN


def _parts(layout: Layout, problem: Problem) -> tuple[FloatArray, Tables, float]:
    label = problem.cost
    if len(layout.unary):
        label = label.copy()
        np.add.at(label, layout.unary[:, 0], problem.table[layout.unary[:, 1]])
    least = np.minimum.reduceat(label, layout.first[:-1]) if len(layout.first) > 1 else np.zeros(0)
    tables = layout.tables(problem)
    total = float(least.sum()) + tables.offset
    if total == np.inf:
        return label, tables, np.inf
    return label - np.repeat(least, layout.sizes), tables, total


def check_precision(name: str, whole: WholeObjective, objective: Objective, value: float) -> None:
    """Raises an error if the optimum of rounded costs may not be the optimum of the costs."""
    left = 2 * whole.error * objective.unit  # the optimum's own rounding, and the answer's
    if left > TOLERANCE * max(1.0, abs(objective.original(value))):
        raise SolverError(
            f"{name} works with whole numbers; with costs this wide, an error of up to {left:.2g} is left. "
            'Use solver="highs", or inf instead of large costs for forbidden labels.'
        )
