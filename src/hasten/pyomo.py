"""hasten as a solver of Pyomo: `import hasten.pyomo`, then `SolverFactory("hasten").solve(model)`.

Importing this module registers it, with the solvers of `pyomo.environ` and the newer ones of `pyomo.contrib.solver`.
Imports `hasten.hosts` and the rooms below it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

from hasten.errors import ProgramError, SolverError
from hasten.hosts.asking import Asking, Outcome, handed_over, in_words, missing, outcome, refuse_options, start_of
from hasten.programs.adopting.modelling import Pyomo
from hasten.programs.answer import Answer
from hasten.programs.native import highs_is_elsewhere
from hasten.support.arrays import FloatArray

try:
    from pyomo.common.collections import ComponentMap
    from pyomo.common.config import ConfigValue
    from pyomo.contrib.solver.common.base import Availability, LegacySolverWrapper, SolverBase
    from pyomo.contrib.solver.common.config import BranchAndBoundConfig
    from pyomo.contrib.solver.common.factory import SolverFactory
    from pyomo.contrib.solver.common.results import Results, SolutionStatus, TerminationCondition
    from pyomo.contrib.solver.common.solution_loader import SolutionLoader
    from pyomo.contrib.solver.common.util import (
        NoDualsError,
        NoFeasibleSolutionError,
        NoOptimalSolutionError,
        NoReducedCostsError,
        NoSolutionError,
    )
    from pyomo.contrib.solver.solvers.highs import Highs
    from pyomo.environ import Objective
except ImportError as error:
    raise missing("pyomo", error) from None

OPTIONS = ("time_limit", "mip_rel_gap")
_ENDS = {
    Outcome.OPTIMAL: (TerminationCondition.convergenceCriteriaSatisfied, SolutionStatus.optimal),
    Outcome.FEASIBLE: (TerminationCondition.maxTimeLimit, SolutionStatus.feasible),
    Outcome.NOTHING: (TerminationCondition.maxTimeLimit, SolutionStatus.noSolution),
    Outcome.INFEASIBLE: (TerminationCondition.provenInfeasible, SolutionStatus.noSolution),
    Outcome.UNBOUNDED: (TerminationCondition.unbounded, SolutionStatus.noSolution),
    Outcome.FAILED: (TerminationCondition.error, SolutionStatus.noSolution),
}


class _Values(SolutionLoader):  # type: ignore[misc]
    """The values of an answer, for Pyomo to load into its model."""

    def __init__(self, model: Any, variables: list[Any], x: FloatArray | None) -> None:
        self._pyomo_model, self._variables, self._x = model, variables, x

    def get_number_of_solutions(self) -> int:
        return int(self._x is not None)

    def get_vars(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        if self._x is None:
            raise NoSolutionError()
        found: Mapping[Any, float] = ComponentMap(
            (each, round(value) if each.is_integer() else value)
            for each, value in zip(self._variables, self._x.tolist(), strict=True)
        )
        if vars_to_load is not None:
            found = ComponentMap((each, found[each]) for each in vars_to_load)
        return found

    def get_duals(self, cons_to_load: Sequence[Any] | None = None) -> dict[Any, float]:
        """Refuses: whole programs have none."""
        raise NoDualsError()

    def get_reduced_costs(self, vars_to_load: Sequence[Any] | None = None) -> Mapping[Any, float]:
        """Refuses: whole programs have none."""
        raise NoReducedCostsError()

    def load_import_suffixes(self) -> None:
        self._collect_and_clear_import_suffixes()


def _config() -> Any:
    """Returns the options, with what Pyomo's interface to Gurobi calls a start."""
    options = BranchAndBoundConfig()
    start = ConfigValue(domain=bool, default=False, description="Start from the values that the variables have.")
    options.declare("use_mipstart", start)
    return options


class Hasten(SolverBase):  # type: ignore[misc]
    """Answers with a proof where it can. A model that was solved before, with another objective, is recognised.

    Options are those of Pyomo's solvers: `time_limit`, `rel_gap` (without, recognised models are answered to
    optimality), `tee`, `load_solutions`, `raise_exception_on_nonoptimal_result`, and `use_mipstart`. Models without
    whole variables, and quadratic ones that are not over binaries, are handed to Pyomo's own interface to HiGHS;
    `handed` says why. `answer` is the last answer, None where it was handed over.
    """

    CONFIG = _config()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.answer: Answer | None = None
        self.handed = ""

    def available(self) -> Any:
        """Returns that it can be used."""
        return Availability.FullLicense

    def version(self) -> tuple[int, ...]:
        """Returns the version of hasten."""
        import hasten

        return tuple(int(part) for part in hasten.__version__.split("."))

    def solve(self, model: Any, **options: Any) -> Any:
        """Solves a model, and loads values into it."""
        config = self.config(value=options, preserve_implicit=True)
        given = config.solver_options.value()
        refuse_options(list(given), OPTIONS, "pyomo")
        if config.abs_gap is not None:
            raise SolverError("hasten.pyomo takes rel_gap, not abs_gap. Divide by the objective's size.")
        end, self.answer, self.handed = Pyomo(), None, ""
        variables = end._variables(model)
        if not any(each.is_integer() for each in variables) and not highs_is_elsewhere():
            return self._hand_over(model, config, "no variable is whole")

        def say(line: str) -> None:
            for stream in config.tee:
                stream.write(line + "\n")

        start = start_of(each.value for each in variables) if config.use_mipstart else None
        limit, gap = given.get("time_limit", config.time_limit), given.get("mip_rel_gap", config.rel_gap)
        began = time.perf_counter()
        try:
            answer = Asking(limit, gap, start, say).one(end.state(model))
        except ProgramError as why:
            return self._hand_over(model, config, str(why).rstrip("."))
        self.answer = answer
        return self._results(model, config, variables, answer, time.perf_counter() - began)

    def _results(self, model: Any, config: Any, variables: list[Any], answer: Answer, seconds: float) -> Any:
        """Returns an answer as Pyomo's results, and loads it."""
        results, end = Results(), outcome(answer)
        results.termination_condition, results.solution_status = _ENDS[end]
        if end is not Outcome.OPTIMAL and config.raise_exception_on_nonoptimal_result:
            raise NoOptimalSolutionError(in_words(answer))
        free = [at for at, each in enumerate(variables) if not each.fixed]
        x = None if answer.values_found is None else answer.x[free]
        results.solution_loader = _Values(model, [variables[at] for at in free], x)
        if any(True for _ in model.component_data_objects(Objective, active=True)):
            results.incumbent_objective = None if answer.values_found is None else answer.objective
            results.objective_bound = answer.bound if math.isfinite(answer.bound) else None
        results.solver_name, results.solver_version, results.solver_config = self.name, self.version(), config
        results.solver_log, results.timing_info.wall_time = in_words(answer), seconds
        if config.load_solutions:
            if answer.values_found is None:
                raise NoFeasibleSolutionError(in_words(answer))
            results.solution_loader.load_solution()
        return results

    def _hand_over(self, model: Any, config: Any, why: str) -> Any:
        self.handed = handed_over(why)
        for stream in config.tee:
            stream.write(self.handed + "\n")
        names = ("tee", "load_solutions", "raise_exception_on_nonoptimal_result", "time_limit", "rel_gap", "threads")
        options = {name: config.get(name).value() for name in names if config.get(name).value() is not None}
        return Highs().solve(model, solver_options=config.solver_options.value(), **options)


class _Legacy(LegacySolverWrapper, Hasten):  # type: ignore[misc]
    """The solver for `pyomo.environ.SolverFactory`, which starts from values with `warmstart=True`."""

    def warm_start_capable(self) -> bool:
        return True

    def solve(self, model: Any, *args: Any, warmstart: bool = False, **options: Any) -> Any:
        """Solves a model with the options of older solvers: `tee`, `timelimit`, `load_solutions`, `options`."""
        before, self.config.use_mipstart = self.config.use_mipstart, warmstart or self.config.use_mipstart
        try:
            return super().solve(model, *args, **options)
        finally:
            self.config.use_mipstart = before


SolverFactory.register("hasten", doc="Proved answers in microseconds")(Hasten, _Legacy)
