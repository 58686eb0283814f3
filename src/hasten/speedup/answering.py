"""How the answers of a speedup come about: proved, solved, searched or learned, and audited."""

from __future__ import annotations

import logging
import math
import time
from dataclasses import replace

import numpy as np
from rich.console import Console

from hasten.errors import NotFittedError, SolverDisagrees
from hasten.learning.learner import Learner
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Status, same_labels
from hasten.proof.certifier import Certifier
from hasten.proof.loading import deadline_after
from hasten.solvers import Progress, Solver, is_ours, solve_all
from hasten.solvers.auto import AutoSolver
from hasten.solvers.failures import OnError, warn_of_failures
from hasten.speedup.agreeing import OnDisagreement, compare
from hasten.speedup.audit import Counters
from hasten.speedup.black_box import prove_or_solve, prove_or_solve_one, solve_one
from hasten.speedup.calibration import disagreeing
from hasten.speedup.choosing import Choice, Ways, answer, choose, doubted
from hasten.speedup.effort import EFFORTS, Schedule
from hasten.speedup.lifetime import learn_more
from hasten.speedup.mode import Mode
from hasten.speedup.parts import Limits
from hasten.speedup.settings import Settings
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.progress import show_progress

log = logging.getLogger(__name__)
PART, TRUSTED_PART = 64, 1024  # problems that learned mode takes at a time while it learns: not trusted, trusted


class Answering(Settings):
    """Answers as its settings say, counts what it did, and learns from the black box's answers."""

    @property
    def trusted(self) -> bool:
        """Whether search mode answers by search, and learned mode by what it learned; if not, the black box answers."""
        with self._lock:
            learned = self.mode != Mode.LEARNED or self._memory.choice is not None
            return self._memory.audit.trusted and learned

    @property
    def choice(self) -> Choice:
        """How learned mode answers, and why: what each way agreed on. `str` says it in a sentence."""
        with self._lock:
            if self._memory.choice is None:
                raise NotFittedError(
                    "This speedup has learned no tables yet. Call fit with mode='learned', or let it learn as it works."
                )
            return self._memory.choice

    def _in_parts(self, batch: Batch) -> Solutions:
        """Answers by what was learned; while that goes on, some problems at a time."""
        parts: list[Solutions] = []
        at = 0
        while at < len(batch) or not parts:
            trusted = self.trusted
            n = len(batch) if not self.learn else TRUSTED_PART if trusted else PART
            some = batch if at == 0 and n >= len(batch) else batch.select(range(at, min(at + n, len(batch))))
            parts.append(self._by_search(some) if trusted else self._by_proof(some))
            at += max(n, 1)
        return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts)

    def _by_search(self, batch: Batch) -> Solutions:
        """Trusts the search, or what was learned; asks the black box where that is invalid, doubted or audited."""
        found = self._found(batch)
        doubt = self._doubted(found)
        given = (found.valid | (not self.repair)) & ~doubt
        audited = np.zeros(len(batch), dtype=bool)
        with self._lock:
            audited[given] = self._memory.draw(int(given.sum()), self.audit)
        asked = np.flatnonzero(audited | ~given)
        if not asked.size:
            with self._lock:
                self._memory.count_all(found, 0)
                self._memory.note()
            return found
        mine = found.select(asked).resolved()
        exact, calls = self._exact(mine.batch)
        judged = audited[asked] & self._judges(exact)
        kept = self._outdone(exact, mine)
        answers = found.replace(asked, exact.replace(kept, mine.select(kept)) if kept.any() else exact)
        self._remember(answers, calls, self._agrees(mine, exact)[judged], mine.batch, exact)
        return answers

    def _by_proof(self, batch: Batch) -> Solutions:
        """Proves or solves everything; where the mode's own answers are not trusted, tries them in the shadow."""
        batch = batch.resolved()
        exact, calls = self._exact(batch)
        agreed = np.zeros(0, dtype=bool)
        if self.mode == Mode.SEARCH or (self.mode == Mode.LEARNED and self._memory.choice is not None):
            found = self._found(batch)
            agreed = self._agrees(found, exact)[self._judges(exact) & ~self._doubted(found)]
        self._remember(exact, calls, agreed, batch, exact)
        return exact

    def _proves_alone(self) -> bool:
        """Whether a single problem can be answered by a proof alone, the short way."""
        self._settle()
        more = self.learn or self.past or self._compares
        limited = self.time_limit is not None or self.call_limit is not None
        return self.mode == Mode.CERTIFIED and self.prove and not (more or limited)

    def _answer_one(self, problem: Problem) -> Solution:
        """Proves one problem without what only batches need, if that pays; else the solver answers."""
        self._check_schema(problem.structure)
        certifier, asked = self._certifier, self._asked
        if certifier is None or certifier.max_nodes != self.max_nodes:
            certifier = self._certifier = Certifier(max_nodes=self.max_nodes)
        if asked is not None and self.max_nodes is None and is_ours(asked):
            effort = EFFORTS.of(problem.structure.compiled, asked.name)
            answer = prove_or_solve_one(problem, certifier, self._solve_one, effort)
        else:
            answer = certifier(problem)
            if not answer.status.optimal:
                answer = self._solve_one(answer, math.inf, False)
        if answer.status is Status.FAILED:
            warn_of_failures(Solutions.of(problem.batch, [answer]))
        with self._lock:
            self._memory.count_one(answer)
            if not answer.proved:
                self._memory.note()
        return answer

    def _solve_one(self, found: Solution, seconds: float, alone: bool) -> Solution:
        """Asks the solver about one problem, for so many seconds, and counts that; `alone`: nothing else was tried."""
        on_error, harder = OnError.KEEP if alone else OnError(self.on_error), not alone and self.max_nodes is None
        answer, called = solve_one(found, self._solver, on_error, (seconds, math.inf), harder)
        self._count_asked()
        with self._lock:
            self._memory.count(Counters(solver_calls=int(called)))
        return answer

    @property
    def _asked(self) -> Solver | None:
        """The solver, if it was made already."""
        made = self._made
        return None if made is None or made[0] is not self.solver else made[2]

    def _exact(self, batch: Batch, progress: Progress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, and how often that took the solver; says where it failed."""
        deadline = deadline_after(self.call_limit)
        try:
            exact, calls = self._answered(batch, progress)
            if self._compares and self._proves and time.monotonic() < deadline:
                calls += self._compare(exact, None if self.call_limit is None else deadline - time.monotonic())
        except SolverDisagrees as dispute:
            if self.on_disagreement == OnDisagreement.RAISE or not self._compares:
                raise
            log.warning("From now on the solver is asked about every problem: %s", dispute)
            with self._lock:
                self._memory.follows = True
            exact, calls = self._answered(batch, progress)
        warn_of_failures(exact)
        self._count_asked()
        pool = self._pool()
        if pool is not None:
            pool.learn(exact)
        return exact, calls

    def _count_asked(self) -> None:
        """Counts whom `solver="auto"` asked."""
        with self._lock:
            solver = None if self._made is None else self._made[2]
            if isinstance(solver, AutoSolver) and solver.calls:
                self._memory.count(Counters(**{f"to_{name}": n for name, n in solver.calls.items()}))
                solver.calls.clear()

    def _answered(self, batch: Batch, progress: Progress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, without a look at whether it agrees with our proofs."""
        on_error = OnError(self.on_error)
        if not self._proves:
            limits = {"time_limit": self.time_limit, "call_limit": self.call_limit}
            return solve_all(self._solver(), batch, progress, on_error, **limits), len(batch)
        found = self._start(batch)
        return prove_or_solve(
            batch,
            self._solver,
            found=found,
            limits=Limits(self.time_limit, self.call_limit, self.max_nodes),
            n_jobs=self.n_jobs,
            progress=progress,
            on_error=on_error,
            schedule=self._schedule(batch) if found is None else None,
        )

    def _schedule(self, batch: Batch) -> Schedule | None:
        """Returns what decides whether to prove: for one structure, where how far is not set, with a solver of ours."""
        asked = self._asked
        if self.max_nodes is not None or len(batch.structures) != 1 or not (asked is None or is_ours(asked)):
            return None
        return Schedule(batch.structures[0], asked, self.time_limit is not None)

    def _start(self, batch: Batch) -> Solutions | None:
        """Returns the best past answers for a proof to start from, if they are kept."""
        pool = self._pool()
        return None if pool is None else pool.best(batch)

    def _compare(self, exact: Solutions, seconds: float | None) -> int:
        """Compares some proofs with a solver of the user's own; returns how many. One dispute is an error.

        Once `seconds` are over, it is asked no more.
        """
        proved = np.flatnonzero(exact.proved)
        with self._lock:
            drawn = proved[self._memory.draw_proofs(proved.size, self.audit)]
        if not drawn.size:
            return 0
        agreed, disputed = compare(exact, drawn, self._solver(), OnError(self.on_error), seconds)
        with self._lock:
            self._memory.count(Counters(audits=agreed.size, disagreements=int((~agreed).sum())))
        if disputed is not None:
            with self._lock:
                self._memory.count(Counters(solver_calls=drawn.size))
            raise disputed
        return int(drawn.size)

    def _judges(self, exact: Solutions) -> BoolArray:
        """Tells which answers of the black box others can be held against: optima, or all, if its word is enough."""
        return exact.optimal if self._proves else ~(exact.has(Status.NO_TIME) | exact.has(Status.FAILED))

    def _outdone(self, exact: Solutions, mine: Solutions) -> BoolArray:
        """Tells where the black box, out of time or failing, has none, or (if only its optima count) none as good."""
        left = ~exact.optimal & (mine.cost < exact.cost) if self._proves else ~self._judges(exact)
        return np.asarray(mine.valid & left)

    def _label(self, batch: Batch, answers: Answers | None) -> tuple[Answers, int]:
        """Returns the black box's answers, unless they are there, and how often that took the solver."""
        if answers is not None:
            return answers, 0
        if not self.progress:
            return self._exact(batch)
        with show_progress(Console(stderr=True)) as tell:
            return self._exact(batch, lambda done, of: tell("Labelling", done / of))

    def _remember(self, answers: Solutions, calls: int, agreed: BoolArray, batch: Batch, exact: Solutions) -> None:
        """Keeps what there is to know of some answers, and learns from those of the black box."""
        with self._lock:
            self._memory.count_all(answers, calls)
            self._memory.observe(agreed, self.min_agreement, "search" if self.mode == Mode.SEARCH else "learned way")
            self._memory.note()
            if self.learn and self.mode != Mode.LEARNED:
                self._memory.teach(batch, exact, self._new_learner)
        if self.learn and self.mode == Mode.LEARNED:
            self._learn_tables(batch, exact)

    def _learn_tables(self, batch: Batch, answers: Answers, now: bool = False) -> None:
        """Keeps answers to learn from, and chooses anew how to answer when there are enough new ones, or now."""
        level = self.min_agreement
        learn_more(self._memory, self._lock, batch, answers, self._chosen, self._answer_as, level, now)

    def _answer_as(self, choice: Choice, batch: Batch) -> Solutions:
        return answer(choice, self._memory.weights, batch, self._ways)

    def _chosen(self, batch: Batch, labels: IntArray, usable: IntArray) -> tuple[Choice, Learner | None]:
        ways = self._ways._replace(time_limit=None, call_limit=None)  # what is learned must not depend on the clock
        with show_progress(Console(stderr=True), quiet=not self.progress) as tell:
            return choose(self.schema, batch, labels, usable, ways, seed=self.seed, tell=tell)

    @property
    def _ways(self) -> Ways:
        return Ways(self._search_by, self._quiet_learner, self.max_nodes, self.n_jobs, self.time_limit, self.call_limit)

    def _quiet_learner(self) -> Learner:
        return replace(self._new_learner(), progress=False)

    def _found(self, batch: Batch) -> Solutions:
        """Answers in the mode's own way, trusted or not: by search, or by what was learned."""
        if self.mode != Mode.LEARNED:
            return self._search(batch)
        return self._answer_as(self.choice, batch.resolved())

    def _doubted(self, found: Solutions) -> BoolArray:
        """Tells where the black box would teach most: what was learned from other answers says something else."""
        if self.mode != Mode.LEARNED or not self.learn:
            return np.zeros(len(found), dtype=bool)
        return doubted(self.choice, found, self._ways)

    def _agrees(self, found: Solutions, exact: Solutions) -> BoolArray:
        """Tells which answers are the black box's: of the same cost or, in learned mode, the same labellings."""
        if self.mode == Mode.LEARNED:
            return same_labels(found.batch, found.values, exact.values)
        return ~disagreeing(found, exact)
