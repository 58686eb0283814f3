"""The black boxes: anything that answers `solve(problem) -> Solution`.

`make_solver` turns a name, an object with `solve`, or a plain function from problems to labels into a solver.
Packages are imported when their solver is first used, and only then.

Imports `hasten.model` and the rooms below it, never `hasten.search` or `hasten.proof`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from importlib.util import find_spec
from inspect import signature
from typing import Any, Protocol, cast, runtime_checkable

from hasten.errors import SolverError, SolverMissing
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Status
from hasten.solvers.base import OnError, answer, failed
from hasten.support.arrays import IntArray
from hasten.support.checks import brief
from hasten.support.clock import now

OnProgress = Callable[[int, int], object]  # how many are done, of how many


@runtime_checkable
class Solver(Protocol):
    """A black box. Its answers are optimal, or say that they are not."""

    @property
    def name(self) -> str:
        """The name in reports."""
        ...

    def solve(self, problem: Problem) -> Solution:
        """Returns the cheapest valid labelling, or says why there is none."""
        ...


AUTO = "auto"
# Each solver is a module of this room, whose `SOLVER` is its class, and a line here: the package that it comes in.
PACKAGES = {
    "brute": None,
    "highs": "highspy",
    "gurobi": "gurobipy",
    "toulbar2": "pytoulbar2",
    "cpsat": "ortools",
    AUTO: None,
}
MODELLING = {"gurobipy", "highspy", "ortools", "pulp", "pyomo"}  # their own solvers cannot be asked
INCOMPATIBLE = {"highspy": "ortools", "ortools": "highspy"}  # packages that cannot share a process


def make_solver(solver: str | Solver | Callable[[Problem], Any], **options: Any) -> Solver:
    """Returns a solver, by name with its options, or around an object or function of yours.

    solver
        A name (`available_solvers` lists them); an object with `solve(problem)`; or a function from a problem to its
        labels (numbers or names), to None if there is no valid labelling, or to a `Solution`. Answers from
        outside are scored and checked like all others.
    options
        Settings of a solver that is named: ours (`time_limit`, in seconds, `interruptible`), and those of
        its own package, by the names that they have there: `make_solver("highs", mip_rel_gap=0.01)`. Those that it does
        not know are refused.
    """
    check_solver(solver)
    if isinstance(solver, str):
        load(solver)
        kind = import_module(f"{__name__}.{solver}").SOLVER
        made: Solver = kind(**_sorted_options(solver, kind, options))
        return made
    if options:
        raise SolverError(f"Options ({', '.join(options)}) go with a solver's name; set yours up yourself.")
    if isinstance(solver, UserSolver) or is_ours(solver):
        return cast(Solver, solver)
    return UserSolver(solver)


def is_ours(solver: object) -> bool:
    """Whether a solver is one of hasten's own: it knows nothing but the problem."""
    return isinstance(solver, str) or type(solver).__module__ in {f"{__name__}.{name}" for name in PACKAGES}


def check_solver(solver: object) -> None:
    """Refuses objects that are no solvers, and solvers whose packages are missing. Imports nothing."""
    if not isinstance(solver, str):
        if not callable(getattr(solver, "solve", None)) and not callable(solver):
            raise SolverError(
                f"{brief(solver)} is not a solver. Pass a name ({', '.join(PACKAGES)}), an object with solve(problem), "
                "or a function from a problem to its labels."
            )
        library = type(solver).__module__.partition(".")[0]
        if library in MODELLING:
            raise SolverError(
                f"{type(solver).__name__} solves models of {library}, not problems. Pass a name: {', '.join(PACKAGES)}."
            )
        return
    if solver not in PACKAGES:
        raise SolverError(f"There is no solver {solver!r}. There are {', '.join(PACKAGES)}; or pass your own.")
    package = PACKAGES[solver]
    if package is not None and sys.modules.get(package) is None and find_spec(package) is None:
        raise _missing(solver, f"No module named {package!r}")


def _missing(name: str, why: object) -> SolverMissing:
    package = PACKAGES[name]
    return SolverMissing(f"{name} needs the package {package} ({why}). Install it: pip install {package}")


def _sorted_options(name: str, kind: Callable[..., Solver], options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns our own options, and under `native` those that are for the package to know."""
    known = list(signature(kind).parameters) if options else []
    others = {option: value for option, value in options.items() if option not in known}
    if others and "native" not in known:
        raise SolverError(f"{name} has no option {', '.join(others)}. It has {', '.join(known)}.")
    own = {option: value for option, value in options.items() if option in known}
    return own | {"native": dict(own.get("native") or {}) | others} if others else own


def solve_within(solver: Solver, problem: Problem, seconds: float, start: IntArray | None = None) -> Solution:
    """Asks a solver, which has so many seconds, and starts from a valid labelling, if it is one of ours."""
    if hasattr(solver, "interruptible"):  # one of ours: `hasten.solvers.base`; those of users keep their own limits
        ours: Any = solver
        found: Solution = ours.solve(problem, seconds if seconds < math.inf else None, start)
        return found
    return solver.solve(problem)


def available_solvers() -> dict[str, bool]:
    """Tells for each solver, by name, whether its package is installed."""
    found = {name: package is None or find_spec(package) is not None for name, package in PACKAGES.items()}
    return found | {AUTO: any(found[name] for name, package in PACKAGES.items() if package)}


def package_of(name: str) -> str | None:
    """Returns the package that a solver comes in; None for one of our own."""
    return PACKAGES[name]


def solve_all(
    solver: Solver,
    problems: Batch | Iterable[Problem],
    on_error: OnError = OnError.KEEP,
    *,
    time_limit: float | None = None,
    call_limit: float | None = None,
    progress: OnProgress | None = None,
) -> Solutions:
    """Solves many problems, one after the other, and tells `progress` of each.

    Where the solver fails, the answer has the status `FAILED` and a reason, unless `on_error` says to raise the error.
    A solver of ours has `time_limit` seconds for each, and `call_limit` for all; None is no limit. Once time is up,
    the rest is not asked: its status is `NO_TIME`.
    """
    batch, each = as_batch(problems).resolved(), math.inf if time_limit is None else time_limit
    deadline = math.inf if call_limit is None else now() + call_limit
    answers = []
    for p in range(len(batch)):
        problem, left = batch[p], deadline - now()
        try:
            late = left <= 0
            answers.append(answer(problem, Status.NO_TIME) if late else solve_within(solver, problem, min(each, left)))
        except Exception as error:
            if on_error is OnError.RAISE:
                raise
            answers.append(failed(problem, error))
        if progress is not None:
            progress(p + 1, len(batch))
    return Solutions.of(batch, answers)


def load(name: str) -> None:
    """Imports a solver's package, or says which one to install, or with which it cannot share a process."""
    package = PACKAGES[name]
    if package is None:
        return
    other = INCOMPATIBLE.get(package)
    if other in sys.modules and package not in sys.modules:
        raise SolverError(
            f"{name} needs {package}, which cannot share a process with {other}, loaded already. "
            "Run one of them in a process of its own (multiprocessing with spawn), or use another solver."
        )
    try:
        import_module(package)
    except ImportError as error:
        raise _missing(name, error) from None


class UserSolver:
    """A solver of yours, whose answers are scored and checked."""

    def __init__(self, solver: Any) -> None:
        self._call = solver.solve if callable(getattr(solver, "solve", None)) else solver
        self.name = str(getattr(solver, "name", getattr(solver, "__name__", type(solver).__name__)))

    def solve(self, problem: Problem) -> Solution:
        """Asks it, and checks its answer."""
        said = self._call(problem)
        if said is None:
            raise SolverError(
                f"{self.name} returned None. Return the labels of the problem, by number or name; where there are "
                "none that are valid, hasten.Status.INFEASIBLE; and where it ran out of time, hasten.Status.NO_TIME."
            )
        if said is Status.INFEASIBLE or said is Status.NO_TIME:
            return answer(problem, said)
        if not isinstance(said, Solution):
            return answer(problem, Status.SOLVED, problem.values(said), name=self.name)
        if said.values is None:
            return answer(problem, said.status, bound=said.bound)
        value = None if math.isnan(said.cost) else said.cost
        return answer(problem, said.status, problem.values(said.labels), value, said.bound, self.name)

    def __repr__(self) -> str:
        return f"UserSolver({self.name!r})"
