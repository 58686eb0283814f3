"""Proof: certifying an answer without a solver (the idea of the paper's §3.1, made exact).

Each step is taken only on the problems that the steps before it left open (`hasten.proof.steps`). *Cut* finds a
smallest cut of a network. *Look* tries the cheapest label of each variable, *repair* mends the few constraints that
these break. *Eliminate* minimises variables of low degree out, exactly; *tally* does so with counters of the rules.
*Persistency* fixes labels. *Sweep* sends messages, which raise a lower bound; *branch* searches under it. *Full
elimination* takes large tables. *Improve* goes on until the time is over, if time is limited. A labelling that costs no
more than the bound, within `TOLERANCE`, *is* an optimum of the integer program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, overload

import numpy as np

from hasten.kernels.layout import BatchArrays
from hasten.model.batch import ONLY, Batch, arrays_of, as_batch
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem, check_one
from hasten.model.solution import Solution, Solutions
from hasten.model.structure import Structure
from hasten.proof.improve import IMPROVING, Improvement
from hasten.proof.outcome import BOUND, LOOK, OPEN, OUTCOME, SIZE, STEP, STOPPED, Proofs, nothing_known
from hasten.proof.plan import MAX_SWEEPS, ProofPlan, Step, Work
from hasten.proof.ranking import MinMarginals, Ranking, best_labellings, min_marginals
from hasten.proof.recorder import traced
from hasten.proof.report import Report, solution_of, solutions_of, start_from
from hasten.proof.steps import AFTER_LOOKING, BEFORE_IMPROVING, prove
from hasten.support.checks import check_limit, check_switch, check_whole
from hasten.support.clock import NEVER, Clock, Stop, now
from hasten.trace.events import Trace

if TYPE_CHECKING:
    from hasten.certificates.writing import Certificate


@dataclass(frozen=True, slots=True)
class Certifier:
    """Proves the answer of a search, or finds and proves a better one.

    Effort, step by step (looking and repairing have no settings):

    max_join
        The most sums that eliminating one variable may take. 0 eliminates nothing. None, the default, eliminates
        the variables that are cheaper to eliminate than to leave.
    max_sweeps
        The most sweeps that raise the bound. At least 1; they end early once they gain too little to matter.
    max_nodes
        The most nodes of the branching. 0 does not branch. None allows 20,000, or 100,000 where few labels are left.
        On graphs of small treewidth it allows as many as take as long as full elimination. Where rules are left, which
        solvers may be better at, it allows 500, or a few milliseconds.

    Limits, in seconds of the wall clock. After that you get the best labelling and bound so far; the status says so:

    time_limit
        How long a problem may take. None, the default, is no limit.
    call_limit
        How long all problems of a call may take together. None, the default, is no limit.
    improve
        Whether to go on with a problem that stays open until its time is up, if that is limited and `max_nodes` is not
        given. True by default.
    """

    max_join: int | None = None
    max_sweeps: int = MAX_SWEEPS
    max_nodes: int | None = None
    time_limit: float | None = None
    call_limit: float | None = None
    improve: bool = True

    def __post_init__(self) -> None:
        if self.max_join is not None:
            check_whole("max_join", self.max_join)
        check_whole("max_sweeps", self.max_sweeps, least=1)
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)
        check_limit("time_limit", self.time_limit)
        check_limit("call_limit", self.call_limit)
        check_switch("improve", self.improve)

    @overload
    def __call__(self, problems: Problem, found: Solution | None = None, *, n_jobs: int = 1) -> Solution: ...
    @overload
    def __call__(
        self, problems: Batch | Sequence[Problem], found: Solutions | None = None, *, n_jobs: int = 1
    ) -> Solutions: ...
    def __call__(
        self,
        problems: Problem | Batch | Sequence[Problem],
        found: Solution | Solutions | None = None,
        *,
        n_jobs: int = 1,
    ) -> Solution | Solutions:
        """Certifies a problem or a batch, starting from the answers of a search, if given."""
        if isinstance(problems, Problem) and found is None:  # a batch of one, by the shortest path
            work = self._work_on_one(problems.structure, arrays_of(problems))
            prove(work, ONLY)
            return solution_of(problems, work.proofs)
        batch = as_batch(problems).resolved()
        if isinstance(found, Solution):
            found = Solutions.of(batch, [found])
        work = self._work_on(batch, found, n_jobs)
        prove(work, batch.order)
        answers = solutions_of(batch, work.proofs)
        return answers.only(problems) if isinstance(problems, Problem) else answers

    def after_looking(self, problem: Problem, bound: float, size: float) -> Solution:
        """Certifies a problem that looking left open, with the bound and the size of the terms that it returned."""
        work = self._work_on_one(problem.structure, arrays_of(problem))
        values, facts = work.proofs.values, work.proofs.facts
        values[BOUND, 0], values[SIZE, 0], facts[STEP, 0] = bound, size, LOOK
        prove(work, ONLY, AFTER_LOOKING)
        return solution_of(problem, work.proofs)

    def report(self, problems: Problem | Batch | Sequence[Problem], found: Solutions | None = None) -> Report:
        """Certifies a batch, and reports the last step, the sweeps and the nodes of each problem."""
        batch = as_batch(problems).resolved()
        work = self._work_on(batch, found, 1)
        prove(work, batch.order)
        return Report.of(batch, work.proofs)

    def improving(self, problem: Problem, found: Solution | None = None, stop: Stop = NEVER) -> Answers:
        """Returns an iterator: an answer at once, then each better one, and each higher bound, until one is proved.

        It also ends when time is up, or another thread sets `stop`. The last answer is the one that a call returns.
        Without a limit of time it goes on until an answer is proved: stop when one is good enough.

        >>> for answer in Certifier(time_limit=60).improving(problem):  # doctest: +SKIP
        ...     if answer.gap < 0.01 * abs(answer.cost):
        ...         break
        """
        check_one(problem)
        batch = problem.batch.resolved()
        work = self._work_on(batch, None if found is None else Solutions.of(batch, [found]), 1)
        if stop is not NEVER:
            work.clock = self._clock(1, stop)
        limits = [limit for limit in (self.time_limit, self.call_limit) if limit is not None]
        return Answers(problem, work, min(limits, default=math.inf))

    def best(self, problem: Problem, k: int = 10) -> Ranking:
        """Returns the `k` best labellings, in order, all of them if there are fewer; and whether that is proved.

        It takes up to `max_nodes` nodes, by default 1,000,000. `max_sweeps` and the limits of time count as well.
        """
        check_one(problem)
        return best_labellings(problem, k, self._plan(problem.structure.compiled), self._clock(1) or Clock())

    def min_marginals(self, problem: Problem) -> MinMarginals:
        """Returns the cost of the best labelling with each label, each proved as far as the effort goes.

        The limits of time are those of the whole call.
        """
        check_one(problem)
        clock = self._clock(1)
        if clock is None:
            return min_marginals(problem, self(problem), lambda batch, _: self(batch), math.inf)

        def certify(batch: Batch, seconds: float) -> Solutions:
            return replace(self, time_limit=None, call_limit=seconds)(batch)

        return min_marginals(problem, self(problem), certify, clock.deadline)

    def certificate(self, problem: Problem, answer: Solution | None = None) -> Certificate:
        """Certifies a problem and writes the proof down, in steps that `python -m hasten.certificate` checks.

        Writing takes longer than the proof. For a problem that stays open the certificate shows a lower bound. Its
        upper limit is the cost of `answer`, if given, or else of the answer found here. With `max_join=0` the proof
        sends messages and splits, and may be saved in VIPR's format. The limits of time are those of the whole call; a
        proof that takes longer is written as far as it comes, with the bound that it shows.
        """
        from hasten.certificates.writing import Certificate
        from hasten.proof.outline import outline

        check_one(problem)
        clock = self._clock(1)
        half = None if clock is None else max(0.0, 0.5 * (clock.deadline - now()))
        proof = replace(self, time_limit=None, call_limit=half)(problem)
        return Certificate.of(
            proof, partial(outline, max_join=self.max_join), answer, math.inf if clock is None else clock.deadline
        )

    def trace(self, problem: Problem, *, names: Sequence[str] | None = None) -> Trace:
        """Certifies slowly and returns a log of the steps: a value that prints, draws itself, and is plain data.

        `names` are what people call the variables, one for each. Limits of time do not count.
        """
        check_one(problem)
        unlimited = replace(self, time_limit=None, call_limit=None)
        return traced(problem, names, unlimited.report(problem), unlimited, self._plan(problem.structure.compiled))

    def _plan(self, shape: Compiled) -> ProofPlan:
        key = ProofPlan, self.max_join, self.max_sweeps, self.max_nodes
        return shape.plans.get(key) or shape.made(*key)

    def _work_on_one(self, structure: Structure, arrays: BatchArrays) -> Work:
        """Returns the work of proving one problem."""
        shape = structure.compiled
        work = Work(arrays, (self._plan(shape),), nothing_known(1, shape.graph.order.size))
        if self.time_limit is not None or self.call_limit is not None:
            work.clock, work.improves = self._clock(1), self.improve
        return work

    def _work_on(self, batch: Batch, found: Solutions | None, n_jobs: int) -> Work:
        """Returns the work of proving a batch. Only structures that some problem has are planned."""
        used, numbers = [0], batch.structure
        if len(batch.structures) > 1:
            unique, numbers = np.unique(batch.structure, return_inverse=True)
            used = unique.tolist()
        plans = [self._plan(batch.structures[s].compiled) for s in used if batch.structures]
        work = Work(batch.arrays, plans, start_from(batch, found))
        work.structure, work.n_jobs, work.clock = numbers, n_jobs, self._clock(len(batch))
        work.improves = self.improve
        return work

    def _clock(self, n: int, stop: Stop = NEVER) -> Clock | None:
        """Returns a clock for `n` problems, if there are limits; the time for planning counts as well."""
        if self.time_limit is None and self.call_limit is None and stop is NEVER:
            return None
        together = math.inf if self.call_limit is None else self.call_limit
        together = together if self.time_limit is None else min(together, n * self.time_limit)
        return Clock(self.time_limit, together, stop)


class Answers(Iterator[Solution]):
    """Answers, each cheaper than the one before or with a higher bound; the last one is proved, or time was up.

    Made by `Certifier.improving`. The proof pauses between two answers. `on_better`, if set, is called with each.
    """

    on_better: Callable[[Solution], None] | None = None

    def __init__(self, problem: Problem, work: Work, seconds: float, steps: Sequence[Step] = BEFORE_IMPROVING) -> None:
        self._problem, self._work, self._until = problem, work, now() + seconds
        self._begun = self._over = False
        prove(work, ONLY, steps)
        is_open = work.proofs.facts[OUTCOME, 0] == OPEN and work.taking(IMPROVING, ONLY).size
        self._improvement = Improvement(work, 0) if is_open else None

    @property
    def answer(self) -> Solution:
        """The best answer so far."""
        labels, values, facts = self._work.proofs
        batch = self._problem.batch.resolved()
        return solutions_of(batch, Proofs(labels.copy(), values.copy(), facts.copy())).only(self._problem)

    def __next__(self) -> Solution:
        if self._over:
            raise StopIteration
        begun, self._begun = self._begun, True
        if begun or self._improvement is None:
            self._over = not self._go(self._until, changed=True)
        return self.answer

    def within(self, seconds: float) -> Solution:
        """Returns the best answer after some more seconds, or once it is proved."""
        self._go(min(self._until, now() + seconds), changed=False)
        return self.answer

    def _go(self, until: float, changed: bool) -> bool:
        """Goes on until a time, or until the answer or the bound has `changed`; returns whether it stopped for that."""
        values, facts = self._work.proofs.values, self._work.proofs.facts
        known = values[:2, 0].tolist()
        while self._improvement is not None and self._improvement.go(until):
            if values[:2, 0].tolist() != known:
                known = values[:2, 0].tolist()
                if self.on_better is not None:
                    self.on_better(self.answer)
                if changed:
                    return True
        if facts[OUTCOME, 0] == OPEN and now() >= self._until < math.inf:
            facts[OUTCOME, 0] = STOPPED
        return False
