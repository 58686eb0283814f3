"""The solver on the program as it was given: what answers where nothing was recognised, or nothing proved."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol
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
from hasten.support.clock import LeftBehindError, Stop, run_waiting

MAX_DENSE = 40_000  # entries of a matrix that is multiplied as a whole
NATIVE = ("highs", "gurobi")  # solvers that take a program as it is
_FIELDS = ("low", "high", "whole", "row_first", "row_column", "row_weight", "row_low", "row_high")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """What a solver says of a program: costs are minimised, and know no constant."""

    status: Status
    x: FloatArray | None = None
    bound: float = -math.inf
    reason: str = ""


class Native(Protocol):
    """A program that a solver holds."""

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        ...


def highs_is_elsewhere() -> bool:
    """Whether HiGHS needs a process of its own: it cannot share one with OR-Tools."""
    return "ortools" in sys.modules and "highspy" not in sys.modules


def make_native(program: Statement, solver: str) -> Native:
    """Gives a program to a solver, by name."""
    if solver == "gurobi":
        return NativeGurobi(program)
    return NativeHighs(program)


class NativeHighs:
    """HiGHS, in a process of its own where it must."""

    def __init__(self, program: Statement) -> None:
        self._checked = Checker(program, "HiGHS")
        self._here: HighsProgram | None = None
        self._elsewhere: Child | None = None
        arrays = self._arrays = {name: getattr(program, name) for name in _FIELDS}
        if highs_is_elsewhere():
            self._elsewhere = Child(highs_program.__file__)
            finalize(self, self._elsewhere.end)
            self._elsewhere.ask({"program": {name: array.tolist() for name, array in arrays.items()}})
        else:
            load("highs")
            self._here = HighsProgram(arrays)

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        if self._here is not None:
            return _checked_answer(self._wait(self._here, cost, seconds), self._checked)
        assert self._elsewhere is not None
        answer = self._elsewhere.ask({"cost": cost.tolist(), "seconds": seconds})
        if answer is None:
            return Said(Status.FAILED, reason="The process of HiGHS ended over it.")
        return _checked_answer(highs_program.Said(*answer), self._checked)

    def _wait(self, here: HighsProgram, cost: FloatArray, seconds: float) -> highs_program.Said:
        """Runs HiGHS in a thread of its own, so that Ctrl-C gets through; what does not stop is left behind."""
        stop = Stop()
        here.stop = stop.is_set
        here.forget()  # a claim that cannot be checked is not taken from a warm start
        try:
            return run_waiting(lambda: here.run(cost, seconds), stop.set, time.monotonic() + seconds + LATE)
        except LeftBehindError:
            self._here = HighsProgram(self._arrays)
            return highs_program.Said(TIME)


class NativeGurobi:
    """Gurobi, with one thread; its tolerances are lowered once an answer holds within them only."""

    def __init__(self, program: Statement) -> None:
        arrays = {name: getattr(program, name) for name in _FIELDS}
        self._checked, self._strict = Checker(program, "Gurobi"), False
        self._program = GurobiProgram(arrays, open_environment(QUIET))

    def solve(self, cost: FloatArray, seconds: float) -> Said:
        """Minimises for some costs."""
        said = self._program.run(cost, seconds)
        try:
            found = _checked_answer(said, self._checked)
        except SolverWrong:
            if self._strict:
                raise
            self._strict = True
            self._program.set_options(TIGHT)
            return self.solve(cost, seconds)
        if found.status is Status.SOLVED and found.x is not None:
            return replace(found, bound=float(cost @ found.x))
        return found


def _checked_answer(said: highs_program.Said, checked: Checker) -> Said:
    """Returns a solver's answer with its values checked."""
    if said.word == INFEASIBLE:
        return Said(Status.INFEASIBLE, bound=math.inf)
    if said.word == highs_program.UNBOUNDED:
        return Said(Status.FAILED, reason=UNBOUNDED)
    if said.word not in (OPTIMAL, TIME):
        return Said(Status.FAILED, reason=f"{checked.name} says: {said.word}.")
    if said.x is None:
        return Said(Status.NO_TIME, bound=said.bound)
    x = checked(said.x)
    if said.word == OPTIMAL:
        return Said(Status.SOLVED, x, said.value)
    return Said(Status.TIME_LIMIT, x, said.bound)


class Checker:
    """Checks what a solver says of a program: exactly where rows are of whole numbers, else with a solver's slack."""

    def __init__(self, program: Statement, name: str) -> None:
        self._program, self.name = program, name
        self._row = np.arange(program.n_rows).repeat(np.diff(program.row_first))
        odd = (program.row_weight != np.rint(program.row_weight)) | ~program.whole[program.row_column]
        whole = np.bincount(self._row[odd], minlength=program.n_rows) == 0
        self._least, self._most = row_limits(program.row_low, program.row_high, whole)
        self._all_whole = bool(program.whole.all())
        self._dense: FloatArray | None = None
        if program.n_rows * program.n_columns <= MAX_DENSE:  # one product is faster than three steps
            self._dense = np.zeros((program.n_rows, program.n_columns))
            np.add.at(self._dense, (self._row, program.row_column), program.row_weight)

    def __call__(self, found: Sequence[float] | FloatArray) -> FloatArray:
        """Returns a solver's values, whole where they must be; those that break a row are refused."""
        program, values = self._program, np.asarray(found, dtype=np.float64)
        x: FloatArray = np.rint(values)
        if not self._all_whole:
            x = np.where(program.whole, x, values)
        np.maximum(x, program.low, out=x)
        np.minimum(x, program.high, out=x)
        x += 0.0  # no negative zero
        activity: FloatArray
        if self._dense is not None:
            activity = self._dense @ x
        else:
            summed = np.bincount(self._row, program.row_weight * x[program.row_column], program.n_rows)
            activity = np.asarray(summed, dtype=np.float64)
        if (activity < self._least).any() or (activity > self._most).any():
            row = program.rows[int(np.flatnonzero((activity < self._least) | (activity > self._most))[0])]
            raise SolverWrong(f"{self.name} returned values that break the row {row!r}.")
        return np.asarray(x)
