"""HiGHS, the default: a warm linear program first, branch and bound only where its optimum is fractional."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from hasten.errors import SolverError, SolverWrong
from hasten.kernels.layout import Graph
from hasten.model.solution import Status
from hasten.solvers import load
from hasten.solvers.base import Asked, ModelSolver, Outcome, check
from hasten.solvers.formulation import formulate
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, TIGHT, TIME, HighsProgram, Said
from hasten.solvers.objective import Objective
from hasten.support.clock import now

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


class HighsModel:
    """A structure's linear program and, once it is needed, its integer program."""

    def __init__(self, graph: Graph, cuts: Sequence[Sequence[int]], native: Mapping[str, Any]) -> None:
        self.formulation = formulate(graph, cuts).scaled()
        self.options = {**TIGHT, **STRONG, **native}
        self.relaxation = HighsProgram(self.formulation.arrays(whole=False), self.options)
        if not self.relaxation.accepted:
            raise SolverError("HiGHS rejects the model; are the weights of some rule smaller than 1e-9 or above 1e15?")
        self.integer: HighsProgram | None = None


class HighsSolver(ModelSolver):
    """HiGHS, with one thread."""

    name = "highs"

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
        form, deadline = model.formulation, asked.deadline
        cost, allowed = form.columns_of(objective)

        def run(program: HighsProgram) -> Said:
            program.stop = asked.stop.is_set if self.interruptible else None
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
            model.integer.start_from(form.columns_chosen(asked.start))
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
