"""The plan of a proof, made once for each structure, and the work of carrying it out.

A step of a proof is an object with two methods (`Step`): it plans itself for a structure, and it runs over open
problems. `hasten.proof.steps` lists the steps and runs them. A new step, or a new bound, is a module with an object of
this kind, and a line in that list.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Protocol

import numpy as np

from hasten.jit.records import Record
from hasten.kernels.layout import BatchArrays
from hasten.model.batch import ONLY
from hasten.model.compiled import Compiled
from hasten.proof.outcome import NOTHING_FIXED, OPEN, OUTCOME, STOPPED, Fixing, Proofs
from hasten.support import clock as clocks
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import LONG, NEVER_STOP, Clock, LeftBehindError, in_parallel, now
from hasten.support.threads import Work as Planning

MAX_SWEEPS = 100  # by default
LARGE = 2_000  # variables and slots of factors from which on planning may take long
MOST_SECONDS = 1e6  # that a thread can wait
BRIEF = 0.05  # seconds: a step that takes no longer is taken even where no time is left
NOTHING: dict[Any, object] = {}
NOBODY = np.zeros(0, dtype=np.int64)  # the numbers of no problems


@dataclass(frozen=True, eq=False)
class RecordPlan:
    """A plan that is one record."""

    record: Record
    seconds: float = 0.0
    n_sums: int = 0  # that carrying it out takes, where that is known

    @cached_property
    def addresses(self) -> IntArray:
        """(1,) where the record lies, for kernels."""
        return np.array([self.record.address])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return self.record.buffer.nbytes


class Step(Protocol):
    """A step of a proof."""

    def plan(self, plan: ProofPlan) -> Any:
        """Returns the step's plan for a structure; None if the step is not for it.

        A plan has the `seconds` that a problem takes at most, nearly always, and the `addresses` where kernels find it.
        """

    def run(self, work: Work, problems: IntArray) -> None:
        """Takes the step on some open problems whose structures have a plan for it."""


class ProofPlan:
    """How problems of one structure are proved with some effort: a part for each step, made when it is reached.

    max_join, max_sweeps, max_nodes
        The settings of the certifier; None leaves the choice to the steps.
    """

    def __init__(self, shape: Compiled, max_join: int | None, max_sweeps: int, max_nodes: int | None) -> None:
        self.shape: Compiled = weakref.proxy(shape)  # which keeps this plan
        self.max_join, self.max_sweeps, self.max_nodes = max_join, max_sweeps, max_nodes
        self.parts: dict[Step, Any] = {}
        self.begun: dict[Step, Planning[Any]] = {}  # by other threads

    def part(self, step: Step) -> Any:
        """Returns a step's plan for this structure, None if the step is not for it."""
        try:
            return self.parts[step]
        except KeyError:
            return self.parts.setdefault(step, step.plan(self))

    def part_until(self, step: Step, deadline: float) -> Any:
        """Returns a step's plan. Planning may take long: it goes on after the deadline, for a later call.

        Raises `LeftBehindError` if the plan is not ready in time.
        """
        if step in self.parts or len(self.shape.graph.scope) + len(self.shape.graph.order) < LARGE:
            return self.part(step)
        begun = self.begun.get(step)
        if begun is None or begun.ended.is_set():
            begun = self.begun[step] = Planning(partial(self.part, step))
            begun.begin()
        if not begun.ended.wait(min(max(0.0, deadline - now()), MOST_SECONDS)):
            raise LeftBehindError
        return begun.result


def plan_for(
    shape: Compiled, max_join: int | None = None, max_sweeps: int = MAX_SWEEPS, max_nodes: int | None = None
) -> ProofPlan:
    """Returns the plan for a shape with some effort, made once."""
    return shape.made(ProofPlan, max_join, max_sweeps, max_nodes)


class Work:
    """Problems that are being proved, and the state of their proofs."""

    structure: IntArray = ONLY  # (n,) the plan of each problem, by number, where there are several
    clock: Clock | None = None  # if time is limited, or once a step may take long
    n_jobs: int = 1
    fixing: Fixing = NOTHING_FIXED
    improves: bool = True  # whether to go on with open problems until time is up

    def __init__(self, arrays: BatchArrays, plans: Sequence[ProofPlan], proofs: Proofs) -> None:
        self.arrays, self.plans, self.proofs = arrays, plans, proofs
        self.plan = plans[0] if len(plans) == 1 else None  # of the only structure

    def still_open(self, problems: IntArray) -> IntArray:
        """Returns the problems that are still open."""
        outcomes = self.proofs.facts
        if len(problems) == 1 == outcomes.shape[1]:
            return problems if outcomes.item(OUTCOME) == OPEN else NOBODY
        left: IntArray = problems[outcomes[OUTCOME].take(problems) == OPEN]
        return left

    def taking(self, step: Step, problems: IntArray) -> IntArray:
        """Returns the problems whose structures have a plan for a step. No other structures are planned for."""
        deadline = math.inf if self.clock is None else self.clock.deadline
        if self.plan is not None:
            part = self.plan.part(step) if deadline == math.inf else self.plan.part_until(step, deadline)
            return problems if part is not None else NOBODY
        numbers, takes = self.structure[problems], np.zeros(len(self.plans), dtype=bool)
        for s in np.bincount(numbers).nonzero()[0].tolist():
            takes[s] = self.plans[s].part_until(step, deadline) is not None
        some: IntArray = problems[takes[numbers]]
        return some

    def plans_of(self, problems: IntArray) -> list[ProofPlan]:
        """Returns the plan of each problem."""
        if self.plan is not None:
            return [self.plan] * len(problems)
        return [self.plans[s] for s in self.structure[problems].tolist()]

    def addresses(self, step: Step, problems: IntArray) -> IntArray:
        """Returns where kernels find the plans of a step: a row for each problem. All of them take the step."""
        if self.plan is not None:
            rows: IntArray = self.plan.part(step).addresses
            return rows if len(problems) == 1 else rows.repeat(len(problems), axis=0)
        parts = [plan.parts.get(step) for plan in self.plans]
        none = np.zeros_like(next(part.addresses for part in parts if part is not None))
        table = np.concatenate([none if part is None else part.addresses for part in parts])
        found: IntArray = table[self.structure[problems]]
        return found

    def of_each(self, step: Step, problems: IntArray, name: str) -> FloatArray:
        """Returns an attribute of the plans of a step, as a number for each problem."""
        numbers = np.array([float(getattr(plan.parts.get(step), name, 0)) for plan in self.plans])
        return numbers[self.structure[problems]]

    def seconds(self, step: Step, problems: IntArray) -> float:
        """Returns how many seconds a step takes at most, nearly always, on these problems together."""
        if self.plan is not None:
            return float(self.plan.part(step).seconds * len(problems))
        return float(self.of_each(step, problems, "seconds").sum())

    def run(
        self,
        driver: Callable[..., None],
        problems: IntArray,
        *of_each: IntArray,
        seconds: float,
        anyway: float = 0.0,
        shared: tuple[Any, ...] = (),
        arrays: BatchArrays | None = None,
    ) -> None:
        """Runs a driver over problems, in threads, as long as the clock allows; it takes at most `seconds`.

        The driver is given the batch as a plain tuple, the problems, the proofs as a plain tuple, arrays with a row
        `of_each` problem, the values that all of them share, and a stop flag. It is not stopped if it takes less
        than `anyway` seconds.
        """
        proofs, clock = self.proofs, self.clock
        batch = self.arrays if arrays is None else arrays
        short = seconds <= LONG if clock is None else seconds * clocks.SLOWNESS <= anyway
        if len(problems) == 1 and short:
            driver((*batch,), problems, (*proofs,), *of_each, *shared, NEVER_STOP)
            return
        if clock is None:
            clock = self.clock = Clock()

        def run_some(begin_at: int, end_at: int) -> None:
            some = (each[begin_at:end_at] for each in of_each)
            stop = NEVER_STOP if short else clock.stop_flag()
            driver((*batch,), problems[begin_at:end_at], (*proofs,), *some, *shared, stop)

        share = partial(in_parallel, run_some, len(problems), self.n_jobs)
        if short:
            share()
        else:
            clock.run(share, seconds)


def take_steps(work: Work, problems: IntArray, steps: Sequence[Step]) -> None:
    """Takes each step in turn on the problems that are still open and whose structures have a plan for the step."""
    known = work.plan.parts if work.plan is not None else NOTHING
    for step in steps:
        if known.get(step, step) is None:  # the only structure has no plan for it
            continue
        try:
            some = work.taking(step, problems)
        except LeftBehindError:  # no time is left to plan the step
            work.proofs.facts[OUTCOME, problems] = STOPPED
            return
        if some.size:
            step.run(work, some)
            problems = work.still_open(problems)
            if not problems.size:
                return
