"""Costs as whole numbers, for the solvers that know no others, and what that rounding may cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import TOLERANCE
from hasten.solvers.objective import Layout, Objective
from hasten.support.arrays import FloatArray, IntArray

MAX_TOTAL = 2**52  # no labelling costs more than this, so that sums are exact in double precision too
MAX_SCALE = 2**40


@dataclass(frozen=True, slots=True, eq=False)
class WholeObjective:
    """An objective times `scale`, a power of two, rounded."""

    label: IntArray
    table: IntArray
    scale: float
    error: float  # a labelling's cost differs by no more than this, in the objective's unit


class Rounding:
    """Which costs of a structure add up to a labelling's; made once for all its problems."""

    def __init__(self, graph: Graph) -> None:
        self.first = graph.first
        self.tables = Layout(graph).blocks

    def round(self, objective: Objective) -> WholeObjective:
        """Returns the objective in whole numbers, as fine as 64 bits allow."""
        total = self._most(objective.label, objective.table)
        scale = float(2 ** math.floor(math.log2(min(MAX_SCALE, MAX_TOTAL / max(total, 1.0)))))
        label, table = np.rint(objective.label * scale), np.rint(objective.table * scale)
        wrong = self._most(np.abs(label - objective.label * scale), np.abs(table - objective.table * scale))
        return WholeObjective(label.astype(np.int64), table.astype(np.int64), scale, wrong / scale)

    def _most(self, label: FloatArray, table: FloatArray) -> float:
        """Returns the most that a labelling may cost."""
        most = float(np.maximum.reduceat(label, self.first[:-1]).sum())
        return most + sum(float(table[at:end].max()) * count for at, end, count in self.tables)


def check_precision(name: str, whole: WholeObjective, objective: Objective, value: float) -> None:
    """Raises an error if the optimum of rounded costs may not be the optimum of the costs."""
    left = 2 * whole.error * objective.unit  # the optimum's own rounding, and the answer's
    if left > TOLERANCE * max(1.0, abs(objective.original(value))):
        raise SolverError(
            f"{name} works with whole numbers; with costs this wide, an error of up to {left:.2g} is left. "
            'Use solver="highs", or inf instead of large costs for what is forbidden.'
        )
