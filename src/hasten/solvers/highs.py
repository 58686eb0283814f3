"""HiGHS, the default: a warm linear program first, branch and bound only where its optimum is fractional."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.solvers import load
from hasten.solvers.base import ModelSolver, Outcome, checked_cost
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.highs_process import HighsProgram, Said
from hasten.solvers.objective import Objective
from hasten.support.arrays import IntArray
from hasten.support.clock import LONG, NEVER, Stop

SHORT = 0.05  # seconds: a problem that takes longer may have one after it that takes much longer
INTEGRAL = 1e-6  # how far from 0 or 1 a column may be
# Feasibility jump alone takes 5 ms, also where all else takes one.
HEURISTICS = ("feasibility_jump", "rens", "rins", "root_reduced_cost", "shifting", "zi_round")
WITHOUT_VALUES = {"infeasible": Status.INFEASIBLE, "time": Status.NO_TIME}
OPTIONS: dict[str, Any] = {
    "mip_detect_symmetry": False,
    "mip_heuristic_effort": 0.0,
    "mip_pool_soft_limit": 1,  # few cuts: the formulation is strong already
} | {f"mip_heuristic_run_{heuristic}": False for heuristic in HEURISTICS}


class _Until(Stop):
    """A request to stop at a time of `time.monotonic`."""

    def __init__(self, end: float) -> None:
        self.end = end

    def is_set(self) -> bool:
        """Whether it is that late."""
        return time.monotonic() >= self.end


class HighsModel:
    """A structure's linear program and, once it is needed, its integer program."""

    def __init__(
        self, graph: Graph, native: Mapping[str, Any], interruptible: bool, cuts: list[list[int]] | None = None
    ) -> None:
        self.formulation = formulate(graph, cuts or ()).scaled()
        self.first = graph.first
        self.columns = np.arange(self.formulation.n_columns, dtype=np.int32)
        self.settings = native, interruptible
        self.relaxation = _Program(self.formulation, False, *self.settings)
        self.whole: _Program | None = None
        self.took = LONG  # seconds for the last problem


class HighsSolver(ModelSolver[HighsModel]):
    """HiGHS, with one thread."""

    name = "highs"

    def _wait(self, problem: Problem, deadline: float) -> Solution:
        """Solves a problem in the calling thread if the last of its structure took little, and so does this one.

        Asking another thread takes up to half as long as a small problem.
        """
        compiled, began = problem.structure.compiled, time.monotonic()
        found, soon = None, min(deadline, began + LONG)
        if compiled in self._models and self._models[compiled][1].took < SHORT:
            try:
                found = self._solve_heeding(_Until(soon), problem, math.inf)
            except KeyboardInterrupt:
                self._forget(problem)
                raise
        if found is None or (found.status in (Status.NO_TIME, Status.TIME_LIMIT) and soon < deadline):
            found = super()._wait(problem, deadline)
        if compiled in self._models:
            self._models[compiled][1].took = time.monotonic() - began
        return found

    def _build(self, graph: Graph) -> HighsModel:
        load("highs")
        return HighsModel(graph, self.native, self.interruptible)

    def _check_native(self) -> None:
        load("highs")
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        for option, value in self.native.items():
            if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
                raise self._unknown(f"{option}={value!r}")

    def _build_with(self, graph: Graph, cuts: list[list[int]]) -> HighsModel:
        return HighsModel(graph, self.native, self.interruptible, cuts)

    def _run(self, model: HighsModel, problem: Problem, objective: Objective, deadline: float) -> Outcome:
        form, model.relaxation.stop = model.formulation, self._stop
        cost = np.concatenate([objective.label, objective.table[form.entry]])
        upper = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
        found = model.relaxation.solve(cost, upper, deadline)
        if found.status == "infeasible" and model.relaxation.warm:
            model.relaxation.forget()  # a claim that cannot be checked is not taken from a warm start
            found = model.relaxation.solve(cost, upper, deadline)
        if found.status in WITHOUT_VALUES:
            return Outcome(WITHOUT_VALUES[found.status], bound=0.0)
        labels = _labels(found, model.first)
        if found.status == "optimal" and labels is not None:
            cost_found = checked_cost(problem, labels, objective.original(found.value))
            if cost_found is not None:
                return Outcome(Status.SOLVED, labels, found.value, found.value, cost_found)
        if model.whole is None or deadline < math.inf:  # some versions count a limit from the first run
            model.whole = _Program(form, True, *model.settings)
        model.whole.stop = self._stop
        model.whole.forget()
        start = self._start_of(problem)
        if start is not None:
            model.whole.start_from(model.first[:-1] + start, form.n_labels)
        relaxed = found.bound
        found = model.whole.solve(cost, upper, deadline)
        bound = max(0.0, relaxed, found.bound)
        if found.status not in ("optimal", "time", "infeasible"):
            raise SolverError(f"HiGHS stopped early: {found.status}.")
        if found.x is None:
            return Outcome(WITHOUT_VALUES[found.status], bound=bound)
        labels = _labels(found, model.first)
        if labels is None:
            raise SolverError("HiGHS returned a fractional answer to an integer program.")
        return Outcome(Status.SOLVED if found.status == "optimal" else Status.TIME_LIMIT, labels, found.value, bound)


class _Program(HighsProgram):
    """The program of a formulation; only its costs and, where they differ, the upper bounds of its columns change."""

    def __init__(self, form: Formulation, whole: bool, native: Mapping[str, Any], interruptible: bool) -> None:
        n, self._upper, self.warm, self.stop = form.n_columns, ~form.dead, False, NEVER
        arrays = {"low": np.zeros(n), "high": self._upper, "whole": whole & (np.arange(n) < form.n_labels)}
        arrays |= {"row_low": form.low, "row_high": form.high}
        arrays |= {"row_first": form.row_first, "row_column": form.column, "row_weight": form.weight}
        super().__init__(arrays, OPTIONS | dict(native))
        self._interruptible = interruptible
        if not self.accepted:
            raise SolverError("HiGHS rejects the model; are the weights of some rule smaller than 1e-9 or above 1e15?")

    def solve(self, cost: Any, upper: Any, deadline: float) -> Said:
        """Optimises for some costs and allowed columns."""
        if isinstance(self.stop, _Until):
            deadline = min(deadline, self.stop.end)
        by_time = isinstance(self.stop, _Until) or not self._interruptible
        self.heed(None if by_time else self.stop.is_set)
        if not np.array_equal(upper, self._upper):
            self._highs.changeColsBounds(len(cost), self._columns, np.zeros(len(cost)), upper.astype(np.float64))
            self._upper = upper
        said = self.run(cost, deadline - time.monotonic())
        self.warm = self.warm or said.status != "infeasible"
        return said

    def start_from(self, chosen: IntArray, n_labels: int) -> None:
        """Gives HiGHS a labelling to start from: the columns of all labels; it works out the others."""
        values = np.zeros(n_labels)
        values[chosen] = 1.0
        with suppress(TypeError):  # older versions take whole solutions alone
            self._highs.setSolution(n_labels, self._columns[:n_labels], values)

    def forget(self) -> None:
        """Drops the last basis and solution."""
        super().forget()
        self.warm = False


def _labels(found: Said, first: IntArray) -> IntArray | None:
    """Returns the labels of an integral answer."""
    if found.x is None:
        return None
    z = np.array(found.x[: first[-1]])
    chosen = np.flatnonzero(z > 0.5)
    if len(chosen) != len(first) - 1:
        return None
    z[chosen] -= 1.0
    return None if np.abs(z).max() > INTEGRAL else chosen - first[:-1]
