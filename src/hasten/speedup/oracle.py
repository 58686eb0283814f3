"""The black box of a speedup: its solver, and the proofs that count as the solver's answers.

We prove optima of the problem that the schema states. A solver that knows more, a constraint or a preference that no
table states, has other optima, and no proof of ours can tell. So the first proofs are all compared with a solver of the
user's own, and later ones at the rate of audits. It agrees where its answer costs as much as the proved one; it
disagrees where its answer costs more, or where it finds none. A solver that ran out of time says nothing.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import SolverDisagrees, SolverError
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Answers, Solution, Solutions, Status
from hasten.proof.certifier import Certifier
from hasten.solvers import OnProgress, Solver, is_ours, make_solver, solve_all
from hasten.solvers.base import OnError, warn_of_failures
from hasten.speedup.black_box import REMEDIES, prove_or_solve, prove_or_solve_one, solve_one, unlimited
from hasten.speedup.effort import Effort, Schedule
from hasten.speedup.parts import Certified, as_answer
from hasten.speedup.pool import AnswerPool
from hasten.support.arrays import BoolArray
from hasten.support.clock import deadline_after, now
from hasten.support.terminal import show_progress
from hasten.support.threads import Lock
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup


class Oracle:
    """Answers as the black box of a speedup would: by its settings as they are, counting in its state."""

    def __init__(self, speedup: Speedup) -> None:
        self._speedup = speedup
        self._made: tuple[object, object, Solver] | None = None  # with the settings that it was made of
        self._certifier = Certifier()
        self._pool: AnswerPool | None = None
        self._lock = Lock()

    def __reduce__(self) -> tuple[type[Oracle], tuple[Speedup]]:
        return Oracle, (self._speedup,)  # a solver at work stays in its process

    @property
    def proves(self) -> bool:
        """Whether proofs count as the black box's answers: unless it is not exact."""
        return self._speedup.trust.prove

    @property
    def compares(self) -> bool:
        """Whether proofs are compared with the solver: it is the user's own."""
        return not is_ours(self._speedup.solver)

    @property
    def name(self) -> str:
        """The name of the solver, which need not have been made."""
        solver = self._speedup.solver
        return solver if isinstance(solver, str) else str(getattr(solver, "name", ""))

    @property
    def alone(self) -> bool:
        """Whether a proof is all that an answer takes: the solver is neither compared with nor learned from."""
        return self.proves and not self.compares and not self._speedup.learn

    @property
    def pool(self) -> AnswerPool | None:
        """The past answers, if they are to be kept."""
        answer = as_answer(self._speedup.answer)
        if not isinstance(answer, Certified) or not answer.past:
            return None
        with self._lock:
            if self._pool is None or self._pool.max_answers != answer.past:
                self._pool = AnswerPool(answer.past)
            return self._pool

    def solver(self) -> Solver:
        """Returns the solver, made when it is first needed."""
        speedup = self._speedup
        with self._lock:
            made, options = self._made, speedup.solver_options
            if made is None or made[0] is not speedup.solver or made[1] is not options:
                if made is not None and made[0] is not speedup.solver:  # another one, of which nothing is known
                    speedup._state.n_compared = 0
                made = self._made = speedup.solver, options, make_solver(speedup.solver, **(options or {}))
            return made[2]

    @property
    def _solver_made(self) -> Solver | None:
        made = self._made
        return None if made is None or made[0] is not self._speedup.solver else made[2]

    def ask(self, batch: Batch, progress: OnProgress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, and the number of calls of the solver; says where it failed."""
        deadline = deadline_after(self._speedup.limits.call_limit)
        exact, calls = self.answers(batch, progress)
        if self.compares and self.proves and now() < deadline:
            calls += self._compare(exact, None if deadline == math.inf else deadline - now())
        warn_of_failures(exact)
        if self.pool is not None:
            self.pool.learn(exact)
        return exact, calls

    def answers(self, batch: Batch, progress: OnProgress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, without comparing it with our proofs, and leaves no trace."""
        speedup, limits, on_error = self._speedup, self._speedup.limits, OnError(self._speedup.trust.on_error)
        if not self.proves:
            timed = {"time_limit": limits.time_limit, "call_limit": limits.call_limit}
            return solve_all(self.solver(), batch, on_error, progress=progress, **timed), len(batch)
        found, schedule = None if self.pool is None else self.pool.best(batch), None
        if len(batch.structures) == 1 and found is None and limits.max_nodes is None and not self.compares:
            schedule = Schedule(batch.structures[0], self.name, limits.time_limit is not None)
        return prove_or_solve(
            batch,
            self.solver,
            found=found,
            limits=limits,
            n_jobs=speedup.n_jobs,
            progress=progress,
            on_error=on_error,
            schedule=schedule,
        )

    def answer_one(self, problem: Problem) -> Solution:
        """Answers one problem by the shortest path, where neither learning, comparing nor limits are asked for."""
        speedup, solver = self._speedup, self._solver_made
        certifier, max_nodes = self._certifier, speedup.limits.max_nodes
        if certifier.max_nodes != max_nodes:
            certifier = self._certifier = Certifier(max_nodes=max_nodes)
        if solver is not None and max_nodes is None and is_ours(solver):
            effort = Effort.of(problem.structure.compiled, solver.name)
            answer = prove_or_solve_one(problem, certifier, self._solve_one, effort)
        else:
            answer = certifier(problem)
            if not answer.status.optimal:
                answer = self._solve_one(answer, math.inf, False)
        if answer.status is Status.FAILED:
            warn_of_failures(Solutions.of(problem.batch, [answer]))
        state = speedup._state
        with state.lock:
            state.count_one(answer)
            if not answer.proved:
                state.note()
        return answer

    def prove_one(self, problem: Problem, max_nodes: int) -> tuple[Solution, bool]:
        """Proves one problem within `max_nodes`; returns what was found, and whether it is proved, and then counted."""
        answer = unlimited(max_nodes)(problem)
        done = answer.status.optimal and self.alone
        if done:
            state = self._speedup._state
            with state.lock:
                state.count_one(answer)
        return answer, done

    def label(self, batch: Batch, answers: Answers | None) -> tuple[Answers, int]:
        """Returns the black box's answers, unless they are given, and the number of calls of the solver.

        On a terminal it shows a bar: the black box may be slow.
        """
        if answers is not None:
            return answers, 0
        with show_progress(quiet=not sys.stderr.isatty()) as progress:
            found, calls = self.ask(batch, lambda done, of: progress("Labelling", done / of))
        if len(batch) and found.has(Status.FAILED).all():
            raise SolverError(
                f"The solver failed on all {count(len(batch), 'problem')}: there is nothing to learn from. The first "
                f"time it said: {found[0].reason}"
            )
        return found, calls

    def judges(self, exact: Solutions) -> BoolArray:
        """Tells which answers of the black box others can be held against: optima, or all, if its word is enough."""
        return exact.optimal if self.proves else ~(exact.has(Status.NO_TIME) | exact.has(Status.FAILED))

    def outdone(self, exact: Solutions, mine: Solutions) -> BoolArray:
        """Tells where the black box, out of time or failing, has none, or (if only its optima count) none as good."""
        left = ~exact.optimal & (mine.cost < exact.cost) if self.proves else ~self.judges(exact)
        return np.asarray(mine.valid & left)

    def _solve_one(self, found: Solution, seconds: float, alone: bool) -> Solution:
        """Asks the solver about one problem, for so many seconds, and counts that; `alone`: nothing else was tried."""
        speedup, state = self._speedup, self._speedup._state
        on_error = OnError.KEEP if alone else OnError(speedup.trust.on_error)
        harder = not alone and speedup.limits.max_nodes is None
        answer, called = solve_one(found, self.solver, on_error, (seconds, math.inf), harder)
        with state.lock:
            state.counts["solver_calls"] += called
        return answer

    def _compare(self, exact: Solutions, seconds: float | None) -> int:
        """Compares some proofs with a solver of the user's own; returns how many. One dispute is an error.

        Once `seconds` are over, it is asked no more.
        """
        speedup, state, trust = self._speedup, self._speedup._state, self._speedup.trust
        proved = np.flatnonzero(exact.proved)
        with state.lock:
            drawn = proved[state.draw_proofs(proved.size, trust.audit, speedup.seed)]
        if not drawn.size:
            return 0
        solver = self.solver()
        said = solve_all(solver, exact.batch.select(drawn), OnError(trust.on_error), call_limit=seconds)
        warn_of_failures(said)
        numbers = zip(drawn.tolist(), said, strict=True)
        whys = {p: dispute(exact[p], each, solver.name) for p, each in numbers if each.status.optimal}
        disputes = [f"Problem {p}: {why}" for p, why in whys.items() if why is not None]
        with state.lock:
            state.counts.update(audits=len(whys), disagreements=len(disputes))
            state.counts["solver_calls"] += int(drawn.size) if disputes else 0  # which nobody else counts
        if disputes:
            raise SolverDisagrees(disputes[0])
        return int(drawn.size)


def dispute(proved: Solution, said: Solution, name: str) -> str | None:
    """Says in words how a solver's optimum contradicts a proved answer; None if they agree."""
    slack = TOLERANCE * max(1.0, abs(proved.cost))
    if proved.values is None:
        if said.values is None:
            return None
        return f"We proved that no labelling is valid, but {name} found one, {said.names}. Please report this as a bug."
    if said.values is None:
        differs = f"{name} says that no labelling is valid, but {proved.names} is"
    elif said.cost > proved.cost + slack:
        v = int(np.flatnonzero(said.labels != proved.labels)[0])
        differs = (
            f"{name} answers with a labelling that costs {said.cost:g}, but one of {proved.cost:g} is valid; the first "
            f"variable that differs is {v}: {said.names[v]!r} there, {proved.names[v]!r} here"
        )
    else:
        return None
    return f"{differs}. {REMEDIES}"
