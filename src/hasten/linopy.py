"""hasten as a solver of linopy: `import hasten.linopy`, then `model.solve("hasten")`.

Importing this module registers it: `linopy.available_solvers`. Imports `hasten.hosts` and the rooms below it.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any, ClassVar

import numpy as np

from hasten.errors import SolverError
from hasten.hosts.asking import Asking, Outcome, handed_over, in_words, missing, outcome, refuse_options, relative_gap
from hasten.programs.adopting.matrices import Linopy
from hasten.programs.answer import Answer
from hasten.programs.statement import Statement
from hasten.support.arrays import FloatArray

try:
    from linopy import solvers
    from linopy.constants import Solution, SolverReport, Status, TerminationCondition
    from linopy.solvers import Highs, _solution_from_labels
except ImportError as error:
    raise missing("linopy", error) from None

OPTIONS = ("time_limit", "mip_rel_gap", "start", "log_to_console")
_ENDS = {
    Outcome.OPTIMAL: TerminationCondition.optimal,
    Outcome.FEASIBLE: TerminationCondition.time_limit,
    Outcome.NOTHING: TerminationCondition.resource_interrupt,
    Outcome.INFEASIBLE: TerminationCondition.infeasible,
    Outcome.UNBOUNDED: TerminationCondition.unbounded,
    Outcome.FAILED: TerminationCondition.internal_solver_error,
}


class Hasten(Highs):  # type: ignore[misc]
    """Answers with a proof where it can. A model that was solved before, with another objective, is recognised.

    Options of `model.solve`: `time_limit` in seconds; `mip_rel_gap`, without which recognised models are answered to
    optimality; `start`, values like `model.solution`; `log_to_console`. Models without whole variables, and
    quadratic ones, are handed to linopy's own interface to HiGHS with all options of HiGHS; `handed` says why.
    `answer` is the last answer, None where it was handed over.
    """

    display_name: ClassVar[str] = "hasten"
    supports_persistent_update: ClassVar[bool] = False  # a model that is built anew is recognised

    @classmethod
    @cache
    def is_available(cls) -> bool:
        """Returns that it can be used."""
        return True

    def _build(self, **options: Any) -> None:
        """Builds without a file, whatever `io_api` says."""
        self.io_api = "direct"
        super()._build(**options)

    def _build_direct(self, **options: Any) -> None:
        model, self.io_api, self.handed = self.model, "direct", ""
        self._statement: Statement | None = None
        self.answer: Answer | None = None
        if model.is_quadratic or model.variables.semi_continuous or not len(model.binaries) + len(model.integers):
            linear = "it is quadratic" if model.is_quadratic else "no variable is whole, or one is semicontinuous"
            self.handed = handed_over(linear)
            if "start" in self.solver_options:
                raise SolverError(f"{self.handed} It takes no `start`.")
            super()._build_direct(set_names=False, log_fn=options.get("log_fn"))
            return
        refuse_options(list(self.solver_options), OPTIONS, "linopy")
        self.sense, self._statement = model.sense, Linopy().state(model)
        self.solver_model = self._statement
        self._cache_model_labels(model)

    def _run_direct(self, **files: Any) -> Any:
        if self._statement is None:
            if self.solver_options.get("log_to_console", True):
                print(self.handed)
            return super()._run_direct(**files)
        given = {name: path for name, path in files.items() if path is not None and name.endswith("_fn")}
        refuse_options([name for name in given if name in ("warmstart_fn", "basis_fn")], (*OPTIONS,), "linopy")
        say = print if self.solver_options.get("log_to_console", True) else None
        limit, gap = self.solver_options.get("time_limit"), self.solver_options.get("mip_rel_gap")
        began, answer = time.perf_counter(), Asking(limit, gap, self._start(), say).one(self._statement)
        self.answer = answer
        status = Status.from_termination_condition(_ENDS[outcome(answer)])
        status.legacy_status = in_words(answer)
        seconds, gap = time.perf_counter() - began, float(relative_gap(answer))
        solution = Solution()
        if answer.values_found is not None:
            primal = _solution_from_labels(answer.x, self._vlabels, self._n_vars)
            solution = Solution(primal, np.full(self._n_cons, np.nan), answer.objective)
        report = SolverReport(runtime=seconds, mip_gap=gap, dual_bound=answer.bound)
        return self._make_result(status, solution, solver_model=self._statement, report=report)

    def _start(self) -> FloatArray | None:
        """Returns the values to start from, if any were given, in the order of the model's columns."""
        given = self.solver_options.get("start")
        if given is None:
            return None
        values = np.full(self._n_vars, np.nan)
        for name, variable in self.model.variables.data.items():
            if name in given:
                labels = np.asarray(variable.labels.values).ravel()
                found = np.broadcast_to(np.asarray(given[name], dtype=np.float64), variable.shape).ravel()
                values[labels[labels >= 0]] = found[labels >= 0]
        return np.asarray(values[self._vlabels])


def _register() -> None:
    """Adds hasten to linopy's list, an enumeration that has no other way to grow."""
    names = solvers.SolverName
    if "Hasten" not in names.__members__:
        member = object.__new__(names)
        member._name_, member._value_, member.__objclass__ = "Hasten", "hasten", names
        names._member_names_.append("Hasten")
        names._member_map_["Hasten"] = names._value2member_map_["hasten"] = member
        solvers._SOLVER_PROBE_ORDER = (*solvers._SOLVER_PROBE_ORDER, "hasten")
        solvers.QUADRATIC_SOLVERS.append("hasten")
        type(solvers.quadratic_solvers)._filter = frozenset(solvers.QUADRATIC_SOLVERS)
    solvers.Hasten = Hasten
    for listed in (solvers.available_solvers, solvers.quadratic_solvers):  # they look once, when they are asked first
        listed.__dict__.pop("_names", None)


_register()
