"""HiGHS, the default: a warm linear program first, branch and bound only where its optimum is fractional."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import SolverError
from hasten.kernels.layout import Graph
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.solvers import load
from hasten.solvers.base import ModelSolver, Outcome, checked_cost
from hasten.solvers.formulation import Formulation, formulate
from hasten.solvers.objective import Objective
from hasten.support.arrays import IntArray
from hasten.support.clock import LONG, NEVER, Stop

SHORT = 0.05  # seconds: a problem that takes longer may have one after it that takes much longer
INTEGRAL = 1e-6  # how far from 0 or 1 a column may be
TIGHT = 1e-9  # tolerance of feasibility and gaps
# Feasibility jump alone takes 5 ms, also where all else takes one.
HEURISTICS = ("feasibility_jump", "rens", "rins", "root_reduced_cost", "shifting", "zi_round")


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
        found = model.relaxation.run(cost, upper, deadline)
        if found.status is Status.INFEASIBLE and model.relaxation.warm:
            model.relaxation.forget()  # a claim that cannot be checked is not taken from a warm start
            found = model.relaxation.run(cost, upper, deadline)
        if found.status is Status.NO_TIME or found.status is Status.INFEASIBLE:
            return Outcome(found.status, bound=0.0)
        labels = _labels(found, model.first)
        if found.status is Status.SOLVED and labels is not None:
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
        found = model.whole.run(cost, upper, deadline)
        bound = max(0.0, relaxed, found.bound)
        if found.status is Status.NO_TIME or found.status is Status.INFEASIBLE:
            return Outcome(found.status, bound=bound)
        labels = _labels(found, model.first)
        if found.status is None or labels is None:
            raise SolverError("HiGHS returned a fractional answer to an integer program.")
        return Outcome(found.status, labels, found.value, bound)


class _Found(NamedTuple):
    status: Status | None  # None if HiGHS did not say
    column: Any
    value: float
    bound: float


class _Program:
    """One HiGHS model; only its costs and, where they differ, the upper bounds of its columns change."""

    def __init__(
        self, form: Formulation, whole: bool, native: Mapping[str, Any] | None = None, interruptible: bool = False
    ) -> None:
        import highspy

        self._highspy = highspy
        self._whole = whole
        self._n_labels = form.n_labels
        self._columns = np.arange(form.n_columns, dtype=np.int32)
        self._upper = ~form.dead
        self.warm = False
        self.stop = NEVER
        highs = self._highs = highspy.Highs()
        options: dict[str, Any] = {
            "output_flag": False,
            "threads": 1,
            "parallel": "off",
            "mip_rel_gap": 0.0,
            "mip_abs_gap": TIGHT,
            "mip_feasibility_tolerance": TIGHT,
            "primal_feasibility_tolerance": TIGHT,
            "dual_feasibility_tolerance": TIGHT,
            "mip_detect_symmetry": False,
            "mip_heuristic_effort": 0.0,
            "mip_pool_soft_limit": 1,  # few cuts: the formulation is strong already
        }
        options |= {f"mip_heuristic_run_{heuristic}": False for heuristic in HEURISTICS}
        options |= native or {}
        for option, value in options.items():  # older versions lack some, which are then ignored
            highs.setOptionValue(option, value)
        self._events = [highs.cbSimplexInterrupt, highs.cbMipInterrupt] if interruptible else []
        self._listens = False
        lp = highspy.HighsLp()
        lp.num_col_, lp.num_row_ = form.n_columns, form.n_rows
        lp.col_cost_ = np.zeros(form.n_columns)
        lp.col_lower_, lp.col_upper_ = np.zeros(form.n_columns), self._upper.astype(np.float64)
        lp.row_lower_, lp.row_upper_ = form.low, form.high
        lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        lp.a_matrix_.start_ = form.row_first.astype(np.int32)
        lp.a_matrix_.index_ = form.column.astype(np.int32)
        lp.a_matrix_.value_ = form.weight
        if whole:
            kind = highspy.HighsVarType
            n_tuples = form.n_columns - form.n_labels
            lp.integrality_ = [kind.kInteger] * form.n_labels + [kind.kContinuous] * n_tuples
        if highs.passModel(lp) == highspy.HighsStatus.kError:
            raise SolverError("HiGHS rejects the model; are the weights of some rule smaller than 1e-9 or above 1e15?")

    def _listen(self, event: Any) -> None:
        """Tells HiGHS, which asks now and then, whether to stop; it would remember that from its last run."""
        event.data_in.user_interrupt = self.stop.is_set()

    def _heed(self) -> float:
        """Lets HiGHS ask whether to stop, if that is not a matter of time alone; returns when to stop at the latest.

        Being asked takes up to a tenth as long as a small problem.
        """
        listens = not isinstance(self.stop, _Until)
        if listens != self._listens:
            for event in self._events:
                if listens:
                    event.subscribe(self._listen)
                else:
                    event.clear()
            self._listens = listens
        return self.stop.end if isinstance(self.stop, _Until) else math.inf

    def run(self, cost: Any, upper: Any, deadline: float) -> _Found:
        """Optimises for some costs and allowed columns."""
        highs, status = self._highs, self._highspy.HighsModelStatus
        deadline = min(deadline, self._heed())
        if not np.array_equal(upper, self._upper):
            highs.changeColsBounds(len(cost), self._columns, np.zeros(len(cost)), upper.astype(np.float64))
            self._upper = upper
        highs.changeColsCost(len(cost), self._columns, cost)
        left = deadline - time.monotonic()
        highs.setOptionValue("time_limit", math.inf if left == math.inf else highs.getRunTime() + max(0.0, left))
        self.warm, was_warm = True, self.warm
        highs.run()
        said = highs.getModelStatus()
        if said in (status.kInfeasible, status.kUnboundedOrInfeasible):
            self.warm = was_warm
            return _Found(Status.INFEASIBLE, None, math.inf, math.inf)
        info = highs.getInfo()
        bound = info.mip_dual_bound if self._whole else -math.inf
        if said == status.kOptimal:
            value = info.objective_function_value
            return _Found(Status.SOLVED, highs.getSolution().col_value, value, bound if self._whole else value)
        if said in (status.kTimeLimit, status.kInterrupt):
            if self._whole and info.primal_solution_status == self._highspy.kSolutionStatusFeasible:
                column = highs.getSolution().col_value
                return _Found(Status.TIME_LIMIT, column, info.objective_function_value, bound)
            return _Found(Status.NO_TIME, None, math.inf, bound)
        if self._whole:
            raise SolverError(f"HiGHS stopped early: {highs.modelStatusToString(said)}.")
        return _Found(None, None, math.inf, -math.inf)

    def start_from(self, chosen: IntArray, n_labels: int) -> None:
        """Gives HiGHS a labelling to start from: the columns of all labels; it works out the others."""
        values = np.zeros(n_labels)
        values[chosen] = 1.0
        with suppress(TypeError):  # older versions take whole solutions alone
            self._highs.setSolution(n_labels, self._columns[:n_labels], values)

    def forget(self) -> None:
        """Drops the last basis and solution."""
        self._highs.clearSolver()
        self.warm = False


def _labels(found: _Found, first: IntArray) -> IntArray | None:
    """Returns the labels of an integral answer."""
    if found.column is None:
        return None
    z = np.array(found.column[: first[-1]])
    chosen = np.flatnonzero(z > 0.5)
    if len(chosen) != len(first) - 1:
        return None
    z[chosen] -= 1.0
    return None if np.abs(z).max() > INTEGRAL else chosen - first[:-1]
