"""The solver on the program as it was given: it answers where nothing was recognised, or nothing proved."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from weakref import finalize

import numpy as np

from hasten.errors import SolverWrong
from hasten.kernels.cells import row_limits
from hasten.model.solution import Status
from hasten.programs.answer import UNBOUNDED
from hasten.programs.statement import Statement
from hasten.solvers import highs_program, load
from hasten.solvers.base import LATE
from hasten.solvers.gurobi import QUIET, TIGHT, GurobiProgram, open_environment
from hasten.solvers.highs_program import INFEASIBLE, OPTIMAL, TIME, HighsProgram
from hasten.support.arrays import FloatArray
from hasten.support.child import Child
from hasten.support.clock import NEVER, LeftBehindError, Stop, now, run_waiting

NO_GAP = 1e-6  # relative: nothing is left to find out
_FIELDS = ("low", "high", "whole", "row_first", "row_column", "row_weight", "row_low", "row_high")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """A solver's answer to a program: costs are minimised, and know no constant."""

    status: Status
    x: FloatArray | None = None
    bound: float = -math.inf
    reason: str = ""


def highs_is_elsewhere() -> bool:
    """Whether HiGHS needs a process of its own: it cannot share one with OR-Tools."""
    return "ortools" in sys.modules and "highspy" not in sys.modules


class NativeHighs:
    """HiGHS, in a process of its own where it must."""

    def __init__(self, program: Statement) -> None:
        self._checked = Checker(program, "HiGHS")
        self._arrays = {name: getattr(program, name) for name in _FIELDS}
        self._elsewhere = Child(highs_program.__file__) if highs_is_elsewhere() else None
        if self._elsewhere is not None:
            finalize(self, self._elsewhere.end)
            self._elsewhere.ask({"program": {name: array.tolist() for name, array in self._arrays.items()}})
        else:
            load("highs")
            self._here = HighsProgram(self._arrays)

    def solve(
        self, cost: FloatArray, seconds: float, gap: float = 0.0, start: FloatArray | None = None, stop: Stop = NEVER
    ) -> Said:
        """Minimises for some costs, until another thread asks it to `stop`."""
        if self._elsewhere is None:
            asked = cost, seconds, gap, start
            said = self._wait(*asked) if stop is NEVER else self._run(*asked, stop)
            return _checked_answer(said, self._checked, gap)
        begin = None if start is None else start.tolist()
        heard = self._elsewhere.ask({"cost": cost.tolist(), "seconds": seconds, "gap": gap, "start": begin})
        if heard is None:
            return Said(Status.FAILED, reason="The process of HiGHS ended over it.")
        return _checked_answer(highs_program.Said(*heard), self._checked, gap)

    def _run(
        self, cost: FloatArray, seconds: float, gap: float, start: FloatArray | None, stop: Stop
    ) -> highs_program.Said:
        here = self._here
        here.stop = stop.is_set
        here.forget()  # a claim that cannot be checked is not taken from a warm start
        if start is not None:
            here.start_from(start)
        return here.run(cost, seconds, gap=gap)

    def _wait(self, cost: FloatArray, seconds: float, gap: float, start: FloatArray | None) -> highs_program.Said:
        """Runs HiGHS in a thread of its own, so that Ctrl-C gets through; a run that does not stop is left behind."""
        stop = Stop()
        try:
            return run_waiting(partial(self._run, cost, seconds, gap, start, stop), stop.set, now() + seconds + LATE)
        except LeftBehindError:
            best = self._here.best
            self._here = HighsProgram(self._arrays)
            return best or highs_program.Said(TIME)


class NativeGurobi:
    """Gurobi, with one thread; its tolerances are lowered once an answer holds within them only."""

    def __init__(self, program: Statement) -> None:
        arrays = {name: getattr(program, name) for name in _FIELDS}
        self._checked, self._strict, self._gap = Checker(program, "Gurobi"), False, 0.0
        self._program = GurobiProgram(arrays, open_environment(QUIET))

    def solve(
        self, cost: FloatArray, seconds: float, gap: float = 0.0, start: FloatArray | None = None, stop: Stop = NEVER
    ) -> Said:
        """Minimises for some costs; Gurobi is not asked to `stop`."""
        if gap != self._gap:
            self._gap = gap
            self._program.set_options({"MIPGap": gap})
        if start is not None:
            self._program.start_from(np.where(np.isnan(start), 1e101, start))  # Gurobi's sign for no value
        said = self._program.run(cost, seconds)
        try:
            found = _checked_answer(said, self._checked, gap)
        except SolverWrong:
            if self._strict:
                raise
            self._strict = True
            self._program.set_options(TIGHT)
            return self.solve(cost, seconds, gap, start)
        if found.status is Status.SOLVED and found.x is not None:
            return replace(found, bound=float(cost @ found.x))
        return found


def _checked_answer(said: highs_program.Said, checked: Checker, gap: float) -> Said:
    """Returns a solver's answer with its values checked; it says so where a gap was allowed and one is left."""
    if said.word == INFEASIBLE:
        return Said(Status.INFEASIBLE, bound=math.inf)
    if said.word not in (OPTIMAL, TIME):
        unbounded = said.word == highs_program.UNBOUNDED
        return Said(Status.FAILED, reason=UNBOUNDED if unbounded else f"{checked.name} says: {said.word}.")
    if said.x is None:
        return Said(Status.NO_TIME, bound=said.bound)
    x = checked(said.x)
    if said.word == OPTIMAL and gap and said.value - said.bound > NO_GAP * max(1.0, abs(said.value)):
        return Said(Status.WITHIN_GAP, x, said.bound)
    if said.word == OPTIMAL:
        return Said(Status.SOLVED, x, said.value)
    return Said(Status.TIME_LIMIT, x, said.bound)


Native = NativeHighs | NativeGurobi
NATIVE: dict[str, type[Native]] = {"highs": NativeHighs, "gurobi": NativeGurobi}  # take a program as it is


class Checker:
    """Checks a solver's values against the rows: exactly where weights are whole, else with a solver's slack."""

    def __init__(self, program: Statement, name: str) -> None:
        self._program, self.name = program, name
        self._row = program.row_of_term
        odd = (program.row_weight != np.rint(program.row_weight)) | ~program.whole[program.row_column]
        whole = np.bincount(self._row[odd], minlength=program.n_rows) == 0
        self._least, self._most = row_limits(program.row_low, program.row_high, whole)
        self._all_whole = bool(program.whole.all())

    def __call__(self, found: Sequence[float] | FloatArray) -> FloatArray:
        """Returns a solver's values, rounded where they must be whole; refuses values that break a row."""
        program, values = self._program, np.asarray(found, dtype=np.float64)
        x: FloatArray = np.rint(values)
        if not self._all_whole:
            x = np.where(program.whole, x, values)
        np.maximum(x, program.low, out=x)
        np.minimum(x, program.high, out=x)
        x += 0.0  # no negative zero
        activity = np.bincount(self._row, program.row_weight * x[program.row_column], program.n_rows)
        if (activity < self._least).any() or (activity > self._most).any():
            row = program.rows[int(np.flatnonzero((activity < self._least) | (activity > self._most))[0])]
            raise SolverWrong(f"{self.name} returned values that break the row {row!r}.")
        return np.asarray(x)
