"""HiGHS, the default: a warm linear program first, branch and bound only where its optimum is fractional."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from hasten.errors import SolverError, SolverWrong
from hasten.kernels.layout import Graph
from hasten.model.solution import Solution, Status
from hasten.solvers import load
from hasten.solvers.base import Asked, ModelSolver, Outcome, check
from hasten.solvers.formulation import formulate
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, TIGHT, TIME, HighsProgram, Said
from hasten.solvers.objective import Objective
from hasten.support.clock import LONG, Stop, now

SHORT = 0.05  # seconds: a problem that takes longer may have one after it that takes much longer
# The formulation is strong already, so few cuts are needed. Feasibility jump alone takes 5 ms, also where all else
# takes one.
HEURISTICS = ("feasibility_jump", "rens", "rins", "root_reduced_cost", "shifting", "zi_round")
STRONG = {
    "parallel": "off",
    "mip_detect_symmetry": False,
    "mip_heuristic_effort": 0.0,
    "mip_pool_soft_limit": 1,
    **{f"mip_heuristic_run_{heuristic}": False for heuristic in HEURISTICS},
}


class _Until(Stop):
    """A request to stop at a time of `now`."""

    def __init__(self, end: float) -> None:
        self.end = end

    def is_set(self) -> bool:
        return now() >= self.end


class HighsModel:
    """A structure's linear program and, once it is needed, its integer program."""

    def __init__(self, graph: Graph, cuts: Sequence[Sequence[int]], native: Mapping[str, Any]) -> None:
        self.formulation = formulate(graph, cuts).scaled()
        self.options = {**TIGHT, **STRONG, **native}
        self.relaxation = HighsProgram(self.formulation.arrays(whole=False), self.options)
        if not self.relaxation.accepted:
            raise SolverError("HiGHS rejects the model; are the weights of some rule smaller than 1e-9 or above 1e15?")
        self.integer: HighsProgram | None = None
        self.took = LONG  # seconds for the last problem


class HighsSolver(ModelSolver):
    """HiGHS, with one thread."""

    name = "highs"

    def _wait(self, asked: Asked) -> Solution:
        """Solves a problem in the calling thread if the last of its structure took little, and so does this one.

        Asking another thread takes up to half as long as a small problem.
        """
        problem, began = asked.problem, now()
        compiled, found, soon = problem.structure.compiled, None, min(asked.deadline, began + LONG)
        if compiled in self._models and self._models[compiled][1].took < SHORT:
            try:
                found = self._solve(asked._replace(stop=_Until(soon), deadline=math.inf))
            except KeyboardInterrupt:
                self._forget(problem)
                raise
        if found is None or (found.status in (Status.NO_TIME, Status.TIME_LIMIT) and soon < asked.deadline):
            found = super()._wait(asked)
        if compiled in self._models:
            self._models[compiled][1].took = now() - began
        return found

    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> HighsModel:
        load("highs")
        return HighsModel(graph, cuts, self.native)

    def _check_native(self) -> None:
        load("highs")
        import highspy

        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        for option, value in self.native.items():
            if highs.setOptionValue(option, value) == highspy.HighsStatus.kError:
                raise self._unknown(f"{option}={value!r}")

    def _run(self, model: HighsModel, objective: Objective, asked: Asked) -> Outcome:
        form, deadline, stop = model.formulation, asked.deadline, asked.stop
        cost, allowed = form.columns_of(objective)
        if isinstance(stop, _Until):
            deadline = min(deadline, stop.end)

        def run(program: HighsProgram) -> Said:
            program.stop = stop.is_set if self.interruptible and not isinstance(stop, _Until) else None
            return program.run(cost, deadline - now(), allowed)

        found = run(model.relaxation)
        if found.word == INFEASIBLE and model.relaxation.warm:
            model.relaxation.forget()  # a claim that cannot be checked is not taken from a warm start
            found = run(model.relaxation)
        if found.word in (INFEASIBLE, TIME):
            return Outcome(Status.INFEASIBLE if found.word == INFEASIBLE else Status.NO_TIME, bound=0.0)
        relaxed, labels = 0.0, None
        if found.word == OPTIMAL:
            relaxed, labels = found.bound, form.chosen(found.x)
        if labels is not None:
            with suppress(SolverWrong):
                checked = check(asked.problem, labels, objective.original(found.value), self.name)
                return Outcome(Status.SOLVED, labels, found.value, found.value, checked)
        if model.integer is None or deadline < math.inf:  # some versions count a limit from the first run
            model.integer = HighsProgram(form.arrays(whole=True), model.options)
        model.integer.forget()
        if asked.start is not None:
            model.integer.start_from(np.bincount(form.first[:-1] + asked.start, minlength=form.n_labels).astype(float))
        found = run(model.integer)
        bound = max(0.0, relaxed, found.bound)
        if found.word == INFEASIBLE or (found.word == TIME and found.x is None):
            return Outcome(Status.INFEASIBLE if found.word == INFEASIBLE else Status.NO_TIME, bound=bound)
        if found.x is None:
            raise SolverError(f"HiGHS stopped early: {found.word}.")
        labels = form.chosen(found.x)
        if labels is None:
            raise SolverError("HiGHS returned a fractional answer to an integer program.")
        return Outcome(Status.SOLVED if found.word == OPTIMAL else Status.TIME_LIMIT, labels, found.value, bound)


SOLVER = HighsSolver
