"""The base of all solvers: one call at a time, a model per structure, and every answer scored and checked anew.

A labelling that breaks a constraint, or whose cost is not the one claimed, is never returned: the solver is asked once
more with a fresh model, then `SolverWrong` is raised. Where a rule holds within the solver's tolerance alone, that
choice of labels is ruled out (a *cut*), a few times if need be.

A solver fails when it raises an error, or when its answer does not pass our check. The problem then keeps the best
labelling that is known without the solver, the status `FAILED` and the reason in words, unless it is to be an error.
"""

from __future__ import annotations

import logging
import math
import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import HastenError, SolverError, SolverMissing, SolverWrong
from hasten.kernels.layout import Graph
from hasten.kernels.score import row_holds, rows_hold, total_cost
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem, check_one
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.solvers.objective import Layout, Objective, lower_bound, objectives
from hasten.support.arrays import IntArray
from hasten.support.checks import Choices
from hasten.support.clock import NEVER, PATIENCE, LeftBehindError, Stop, now, run_waiting
from hasten.support.threads import renew_after_fork

log = logging.getLogger(__name__)
LATE = 0.02  # seconds after its own limit that a solver is asked to stop
MAX_CUTS = 20  # in one call
MAX_MODELS = 64  # that a solver keeps
LEFT_BEHIND: list[object] = []  # by a fork, half at work: not even to be destroyed


class Asked(NamedTuple):
    """A problem that a solver is asked about."""

    problem: Problem
    deadline: float = math.inf  # of `now`
    start: IntArray | None = None  # a valid labelling to start from
    stop: Stop = NEVER  # whether, and how, the solver is asked to stop


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A solver's answer, in the unit of the objective that it was given."""

    status: Status
    labels: IntArray | None = None
    value: float = math.inf
    bound: float = -math.inf
    cost: float | None = None  # of the labels, in the problem's own unit, if they were checked (`check`)


class BreaksRule(SolverWrong):
    """A solver's labelling breaks a rule; `cut` holds the labels, by number, that must not be chosen together."""

    def __init__(self, message: str, cut: list[int]) -> None:
        super().__init__(message)
        self.cut = cut


class BaseSolver(ABC):
    """A solver that answers one call at a time, within `time_limit` seconds of the wall clock; None is no limit.

    If it is `interruptible`, Ctrl-C and the limit get through whatever it is at: it works in a thread beside the
    caller's, and if it does not stop when it is asked to, it is left behind. If not, its own limit has to do.
    """

    name: ClassVar[str]

    def __init__(self, time_limit: float | None = None, interruptible: bool = True) -> None:
        if time_limit is not None and not (isinstance(time_limit, int | float | np.number) and time_limit >= 0):
            raise SolverError(f"A time limit is a number of seconds, or None for no limit; got {time_limit!r}.")
        self.time_limit = time_limit
        self.interruptible = interruptible
        self._lock = self._make_lock()
        renew_after_fork(self)

    def _make_lock(self) -> threading.Lock:
        return threading.Lock()

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self._lock = self._make_lock()

    def solve(self, problem: Problem, time_limit: float | None = None, start: IntArray | None = None) -> Solution:
        """Returns the cheapest valid labelling, or says that there is none, or that time ran out.

        `time_limit` is for this problem, where it is shorter than the solver's own. `start` is a valid labelling to
        start from, for solvers that can make use of it. It changes no optimum, only which of equally cheap ones it is.
        """
        limit = min(each for each in (self.time_limit, time_limit, math.inf) if each is not None)
        deadline = now() + limit
        check_one(problem)
        if not problem.structure.compiled.may_be_valid:
            return answer(problem, Status.INFEASIBLE)
        if not len(problem.graph.order):
            return answer(problem, Status.SOLVED, np.zeros(0, dtype=np.int64), 0.0, 0.0)
        with self._lock:
            if now() >= deadline:
                return answer(problem, Status.NO_TIME)
            asked = Asked(problem, deadline, start)
            return self._wait(asked) if self.interruptible else self._solve(asked)

    def _wait(self, asked: Asked) -> Solution:
        """Solves a problem in a thread of its own; a thread that is asked to stop and does not is left behind."""
        stop, left, problem = Stop(), asked.deadline - now(), asked.problem
        try:
            patience = PATIENCE if left == math.inf else PATIENCE + left / 40
            run = partial(self._solve, asked._replace(stop=stop))
            return run_waiting(run, stop.set, asked.deadline + LATE, patience=patience)
        except LeftBehindError:
            self._forget(problem)
            return answer(problem, Status.NO_TIME, bound=lower_bound(Layout(problem.graph), problem))
        except KeyboardInterrupt:
            self._forget(problem)
            raise

    def _forget(self, problem: Problem) -> None:  # noqa: B027, most have nothing to drop
        """Drops the model that a thread that was left behind still uses."""

    @abstractmethod
    def _solve(self, asked: Asked) -> Solution:
        """Solves a problem of at least one variable."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}(time_limit={self.time_limit})"


class ModelSolver(BaseSolver):
    """A solver with a model for each structure, of which it keeps the last used."""

    range: ClassVar[float] = 1e6  # see hasten.solvers.objective

    def __init__(
        self,
        time_limit: float | None = None,
        interruptible: bool = True,
        native: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(time_limit, interruptible)
        self.native = dict(native or {})
        if self.native:
            self._check_native()
        self.n_built = 0  # models, in all
        self._models: OrderedDict[Compiled, tuple[Layout, Any]] = OrderedDict()
        self._cuts: WeakKeyDictionary[Compiled, list[list[int]]] = WeakKeyDictionary()

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child, and forgets the models that another thread of its parent was using."""
        busy = self._lock.locked()
        super()._renew_locks()
        if busy:
            self._leave_models()

    def _leave_models(self) -> None:
        """Leaves the models as they are, and alone."""
        LEFT_BEHIND.append(self._models)
        self._models = OrderedDict()

    @abstractmethod
    def _build(self, graph: Graph, cuts: Sequence[Sequence[int]]) -> Any:
        """Makes the model of a structure, without costs, and with cuts, if it can have any."""

    @abstractmethod
    def _run(self, model: Any, objective: Objective, asked: Asked) -> Outcome:
        """Gives a model its costs and optimises."""

    def _check_native(self) -> None:
        raise self._unknown(*self.native)

    def _unknown(self, *options: str, why: object = "") -> SolverError:
        own = "time_limit, interruptible"
        return SolverError(
            f"{self.name} has no option {', '.join(options)}. It has {own}, and those of its package, spelled as there."
            + (f" ({why})" if why else "")
        )

    def _forget(self, problem: Problem) -> None:
        self._models.pop(problem.structure.compiled, None)

    def _solve(self, asked: Asked) -> Solution:
        compiled, last = asked.problem.structure.compiled, False
        for _ in range(MAX_CUTS):
            try:
                return self._attempt(asked)
            except SolverWrong as wrong:
                if self._models.pop(compiled, None) is None or last:
                    raise
                cuts = self._cuts.setdefault(compiled, [])
                if isinstance(wrong, BreaksRule) and wrong.cut not in cuts:
                    cuts.append(wrong.cut)
                else:
                    last = True
        return self._attempt(asked)

    def _attempt(self, asked: Asked) -> Solution:
        problem = asked.problem
        layout, model = self._model(problem)
        for objective in objectives(layout, problem, self.range):
            if asked.stop.is_set():
                return answer(problem, Status.NO_TIME)
            outcome = self._run(model, objective, asked)
            proved = objective.unit * outcome.value <= objective.range
            if outcome.status in (Status.SOLVED, Status.INFEASIBLE) and not (objective.complete or proved):
                continue  # the costs left out may matter
            bound = outcome.bound if objective.complete else min(outcome.bound, objective.range / objective.unit)
            if outcome.labels is None:
                return answer(problem, outcome.status, bound=objective.original(bound))
            value, bound, status = objective.original(outcome.value), objective.original(bound), outcome.status
            if self.native and status is Status.SOLVED and bound < value - TOLERANCE * max(1.0, abs(value)):
                status = Status.WITHIN_GAP
            return answer(problem, status, outcome.labels, value, bound, self.name, outcome.cost)
        return answer(problem, Status.INFEASIBLE)

    def prepare(self, problem: Problem) -> None:
        """Builds the model of a problem's structure now, if there is none, so that `solve` need not."""
        with self._lock:
            if len(problem.graph.order):
                self._model(problem)

    def _model(self, problem: Problem) -> tuple[Layout, Any]:
        compiled = problem.structure.compiled
        if compiled not in self._models:
            model = self._build(compiled.graph, self._cuts.get(compiled, ()))
            self._models[compiled] = Layout(compiled.graph), model
            self.n_built += 1
            while len(self._models) > MAX_MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(compiled)
        return self._models[compiled]


def answer(
    problem: Problem,
    status: Status,
    labels: IntArray | None = None,
    value: float | None = None,
    bound: float = -math.inf,
    name: str = "the solver",
    cost: float | None = None,
) -> Solution:
    """Returns a solver's answer as a solution, checked unless its `cost` is known from that; `value` is its claim."""
    n_costs = len(problem.graph.order)
    if labels is None:
        bound = math.inf if status is Status.INFEASIBLE else bound
        return Solution(problem, status, Source.SOLVER, None, math.inf, bound, False, n_costs)
    if cost is None:
        cost = check(problem, labels, value, name)
    bound = cost if status is Status.SOLVED else min(bound, cost)
    return Solution(problem, status, Source.SOLVER, labels, cost, bound, True, n_costs)


def check(problem: Problem, labels: IntArray, value: float | None, name: str) -> float:
    """Returns the cost of a solver's labelling, scored anew: every answer of every solver passes here, once.

    Raises an error if the labelling breaks a constraint, or does not cost `value`.
    """
    graph = problem.graph
    cost = float(total_cost(graph, problem.cost, problem.table, labels))
    if cost == math.inf or not rows_hold(graph, labels):
        broken = problem.check(labels[: problem.n_variables])
        message = f"{name} returned a labelling that breaks a constraint: {broken}."
        for r in range(len(graph.row_low)):
            if not row_holds(graph, r, labels):
                variables = np.unique(graph.row_variable[graph.row_first[r] : graph.row_first[r + 1]])
                raise BreaksRule(message, (graph.first[variables] + labels[variables]).tolist())
        raise SolverWrong(message)
    off = 0.0 if value is None else abs(value - cost) - TOLERANCE * max(1.0, abs(cost))
    if off > 0.0:
        rounding = 1e-14 * float(np.abs(problem.cost[graph.first[:-1] + labels]).sum())  # of large costs of both signs
        if off > rounding:
            raise SolverWrong(f"{name} says that its labelling costs {value!r}, but it costs {cost!r}.")
    return cost


class OnError(Choices):
    """The choices for when the solver fails on a problem."""

    KEEP = "keep"  # the other answers, and say of this one why there is none
    RAISE = "raise"


def failed(problem: Problem, error: Exception, found: Solution | None = None) -> Solution:
    """Returns the answer to a problem on which the solver failed: the best found before, and why there is no more."""
    if isinstance(error, SolverMissing):  # no problem can be solved
        raise error
    reason = str(error) if isinstance(error, HastenError) and str(error) else f"{type(error).__name__}: {error}"
    known = answer(problem, Status.FAILED) if found is None else found
    return replace(known, status=Status.FAILED, reason=reason)


def warn_of_failures(answers: Solutions) -> None:
    """Logs on how many problems the solver failed, if any, and the first reason."""
    if answers.reasons:
        first = min(answers.reasons)
        log.warning(
            "The solver failed on %d of %d problems. The first is problem %d: %s",
            len(answers.reasons),
            len(answers),
            first,
            answers.reasons[first],
        )
