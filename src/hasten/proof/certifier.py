"""Proof: certifying an answer without a solver (the idea of the paper's §3.1, made exact).

Steps, each only where the one before left something open: *look* whether the cheapest labels fit, *mend* the few
constraints that they break, *eliminate* variables of low degree exactly, *sweep* messages that raise a lower bound and
decode labellings from them, *branch*. What is a smallest cut of a network is *cut* instead. The kernels of each are in
`hasten.kernels.proof`. A labelling that costs no more than the bound, within `TOLERANCE`, *is* an optimum of the
integer program.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import overload

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import BatchArrays
from hasten.kernels.proof import several
from hasten.kernels.proof.certify import Effort
from hasten.kernels.proof.eliminated import eliminate_some
from hasten.kernels.proof.look import look_at_some
from hasten.kernels.proof.outcome import BOUND, GIVEN, OPEN, OUTCOME, SIZE, Proofs
from hasten.kernels.proof.tallied import count_some
from hasten.kernels.watching import Opener, compiled
from hasten.model.batch import ONLY, Batch, arrays_of, as_batch
from hasten.model.elimination import reduce
from hasten.model.problem import Problem, check_one
from hasten.model.relaxing import whole_plan
from hasten.model.solution import Solution, Solutions, Source
from hasten.model.structure import Structure
from hasten.model.tallying import tally_of
from hasten.proof.bounds import keep_bounds, take_loss
from hasten.proof.branching import SPEED, Messages, branch_open, branching
from hasten.proof.cutting import cut_batch, cut_single
from hasten.proof.eliminating import bounds_relax, goes_unseen, look_and_eliminate
from hasten.proof.loading import load_drivers
from hasten.proof.ranking import MinMarginals, Ranking, min_marginals, statuses
from hasten.proof.recorder import MOST_WORK, EnoughError, ProofRecorder, n_sums
from hasten.proof.report import STEPS, Report, given, solution_of
from hasten.proof.roofing import fix_batch, fix_one, without_others
from hasten.proof.thinning import MAX_NODES, NOTHING_FIXED, eliminate_one
from hasten.support.arrays import FloatArray, IntArray, plain
from hasten.support.checks import check_limit, check_vector, check_whole
from hasten.support.clock import LONG, UNWATCHED, Clock
from hasten.trace.events import ProofStep, Trace

Sums = tuple[FloatArray, IntArray]
NOTHING = np.zeros(0)
NO_SUMS: Sums = (NOTHING, np.zeros(0, dtype=np.int64))
NO_MESSAGES: Messages = (NOTHING, *NO_SUMS)
NO_VALUES, NO_FACTS = np.array([[np.inf], [-np.inf], [np.inf]]), np.array([[OPEN], [0], [GIVEN], [0], [0]])
FIRST_SWEEPS, ROW_SWEEPS = 2, 32  # before the first dive, without and with rows; more where that runs out of nodes
NODE_SWEEPS = 2  # at each split
DIVE_NODES = 2000
ROW_NODES = 500  # where rows are left at least
ROW_WORK = 2_000_000  # labels and cells that nodes may go through where rows are left: a few milliseconds
RANKED_NODES, RANKED_SWEEPS = 1_000_000, 32  # for the best labellings
MOST_RANKED = 50_000_000  # labels that are held
LARGEST = 1e100  # of the starting messages: any are correct that do not overflow


@dataclass(frozen=True, slots=True)
class Certifier:
    """Proves what a search found, or finds and proves something better.

    Effort, step by step (looking and mending have no settings):

    max_join
        The most sums that eliminating one variable may take. 0 eliminates nothing. None, the default, eliminates
        what is cheaper to eliminate than to leave.
    max_sweeps
        The most sweeps that raise the bound. At least 1; they end early once they gain too little to matter.
    max_nodes
        The most nodes of the branching. 0 does not branch. None allows 20,000; 100,000 where few labels are left; on
        thin graphs what takes as long as eliminating them; and only what takes a few milliseconds (and 500 at least)
        where rules are left, which solvers may be better at.

    Where the bound starts:

    messages
        Starting messages by factor kind, role and label. Any are correct; learned ones (`learn_messages`) save
        sweeps. They are those of the factors as declared, so they need `max_join=0`. None starts from zero.

    Limits, in seconds of the wall clock; what runs out of time has the best labelling and bound so far, and says so:

    time_limit
        How long a problem may take. None, the default, is no limit.
    call_limit
        How long all problems of a call may take together. None, the default, is no limit.
    """

    max_join: int | None = None
    max_sweeps: int = 100
    max_nodes: int | None = None
    messages: FloatArray | None = None
    time_limit: float | None = None
    call_limit: float | None = None

    def __post_init__(self) -> None:
        if self.max_join is not None:
            check_whole("max_join", self.max_join)
        check_whole("max_sweeps", self.max_sweeps, least=1)
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)
        check_limit("time_limit", self.time_limit)
        check_limit("call_limit", self.call_limit)
        if self.messages is not None:
            if self.max_join != 0:
                raise ProblemError("Learned messages speak of the factors as declared: use them with max_join=0.")
            object.__setattr__(self, "messages", check_vector("Starting messages", self.messages))

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
        """Certifies a problem or a batch, starting from what a search found, if given."""
        if isinstance(problems, Problem) and found is None:
            return self._certify_one(problems)
        batch = as_batch(problems).resolved()
        if isinstance(found, Solution):
            found = Solutions.of(batch, [found])
        answers = self._certify(batch, found, n_jobs).solutions
        return answers.only(problems) if isinstance(problems, Problem) else answers

    def after_looking(self, problem: Problem, bound: float, size: float) -> Solution:
        """Certifies a problem that looking left open, with the bound and the size of the terms that it returned."""
        arrays, proofs = arrays_of(problem), _nothing_known(problem.structure)
        proofs.values[BOUND, 0], proofs.values[SIZE, 0] = bound, size
        if not self._branch_at_once(problem.structure, arrays, proofs):
            self._go_on(problem, arrays, NO_MESSAGES, proofs, compiled)
        return solution_of(problem, proofs)

    def settle(self, structure: Structure, cost: FloatArray, bound: float, size: float) -> Proofs | None:
        """Does the same to costs without a problem around them, if it is known that only branching is left to do."""
        proofs = _nothing_known(structure)
        proofs.values[BOUND, 0], proofs.values[SIZE, 0] = bound, size
        arrays = BatchArrays(structure.compiled.place, cost, plain(structure.graph.table))
        return proofs if self._branch_at_once(structure, arrays, proofs) else None

    def _branch_at_once(self, structure: Structure, arrays: BatchArrays, proofs: Proofs) -> bool:
        """Sweeps and branches on what looking left open, if it is known that no other step comes after that."""
        last, bound = structure.compiled.branchings.get((self.max_join, self._effort)), proofs.values.item(BOUND)
        limited = self.time_limit is not None or self.call_limit is not None
        if last is None or not last.alone or limited or proofs.facts.item(OUTCOME) != OPEN:
            return False
        if bound == -math.inf and not last.needs_no_bound:
            return False
        last.run((*arrays,), last.reduction.addresses, NO_MESSAGES, last.effort, ONLY, (*proofs,), UNWATCHED)
        if proofs.values.item(BOUND) < bound:
            keep_bounds(proofs, ONLY, np.array([bound]))
        return True

    def report(self, problems: Problem | Batch | Sequence[Problem], found: Solutions | None = None) -> Report:
        """Certifies a batch and tells what it took."""
        return self._certify(as_batch(problems).resolved(), found, 1)

    def learn_messages(self, batch: Batch) -> FloatArray:
        """Returns starting messages: the averages, by factor kind and role, over the problems it proves by sweeping."""
        if self.max_join != 0:
            raise ProblemError("Messages speak of the factors as declared: learn them with max_join=0.")
        structures = _used(batch)
        if len({structure.schema.digest for structure in structures}) > 1:
            raise ProblemError(
                "Messages are those of one schema; these problems have several. Learn from one at a time."
            )
        n = structures[0].schema.n_messages if structures else 0
        total, count = np.zeros(n), np.zeros(n, dtype=np.int64)
        self._certify(batch.resolved(), None, 1, (total, count))
        return total / np.maximum(count, 1)

    def best(self, problem: Problem, k: int = 10) -> Ranking:
        """Returns the `k` best labellings, in order, all of them if there are fewer; and whether that is proved.

        It takes up to `max_nodes` nodes, by default 1,000,000. `max_sweeps` and the limits of time count as well.
        """
        check_one(problem)
        check_whole("k", k, least=1)
        n = min(int(k), problem.n_outputs)
        if n * max(1, problem.n_variables) > MOST_RANKED:
            raise ProblemError(
                f"{k:,} labellings of {problem.n_variables:,} variables are too many to hold: at most "
                f"{MOST_RANKED:,} labels in all. Ask for fewer."
            )
        one = problem.exact  # each labelling once
        arrays, reduction = arrays_of(one), reduce(one.structure.compiled, self.max_join)
        n_variables = len(one.graph.order)
        costs, slots = np.empty(n), np.empty(n, dtype=np.int64)
        labels = np.empty(n * n_variables, dtype=np.int64)
        values, facts = np.empty(2), np.empty(3, dtype=np.int64)
        found = several.Ranking(costs, slots, labels, values, facts)
        clock, sweeps = self._clock(1) or Clock(), min(RANKED_SWEEPS, self.max_sweeps)
        max_nodes = RANKED_NODES if self.max_nodes is None else max(self.max_nodes, 1)
        for nodes in dict.fromkeys((min(MAX_NODES, max_nodes), max_nodes)):  # the short way first
            seconds = SPEED * (reduction.size * (sweeps + nodes) + n_sums(reduction.plan))
            rank = several.rank_labellings
            clock.run(partial(rank, arrays, reduction.addresses, sweeps, nodes, ONLY, found, clock.watch()), seconds)
            if facts[several.RANKED_ALL] or clock.stopped:
                break
        proved, bound = bool(facts[several.RANKED_ALL]), float(values[several.RANKED_BOUND])
        n_found = int(facts[several.N_FOUND])
        bound = float(costs[0]) if proved and n_found else bound
        rows = labels.reshape(n, n_variables)
        solutions = tuple(
            Solution(problem, status, Source.BOUND, rows[slot], cost, min(bound, cost), True, n_variables)
            for status, slot, cost in zip(
                statuses(n_found, proved), slots[:n_found].tolist(), costs[:n_found].tolist(), strict=True
            )
        )
        return Ranking(problem, solutions, proved, bound, int(facts[several.RANKED_NODES]))

    def min_marginals(self, problem: Problem) -> MinMarginals:
        """Returns what the best labelling with each label costs, each proved as far as the effort goes."""
        check_one(problem)
        return min_marginals(problem, self(problem), self)

    def trace(self, problem: Problem, *, names: Sequence[str] | None = None) -> Trace[ProofStep]:
        """Certifies slowly and returns what it did, step by step: a value that prints, draws itself, and is plain data.

        `names` are what people call the variables, one for each. Limits of time do not count.
        """
        check_one(problem)
        unlimited = replace(self, time_limit=None, call_limit=None)
        report = unlimited.report(problem)
        step, n_sweeps, n_nodes = STEPS[report.step[0] - 1], int(report.n_sweeps[0]), int(report.n_nodes[0])
        reduction = reduce(problem.structure.compiled, self.max_join)
        recorder = ProofRecorder(problem, names, reduction, MOST_WORK, n_nodes)
        solution, watched = report.solutions.only(problem), True
        try:
            with recorder.watching():
                solution = unlimited(problem)
        except EnoughError:
            watched = False
        return recorder.trace(solution, watched, step, n_sweeps, n_nodes)

    def _certify_one(self, problem: Problem, opened: Opener = compiled) -> Solution:
        """Certifies one problem: as a batch of one, without what only batches need."""
        arrays, shape = arrays_of(problem), problem.structure.compiled
        messages = NO_MESSAGES
        if self.messages is not None:
            messages = (self._checked_messages((problem.structure,)), *NO_SUMS)
        proofs = _nothing_known(problem.structure)
        facts = proofs.facts
        cut = self.max_join is None and cut_single(problem, proofs, self._clock(1), opened)
        if not cut:
            facts[OUTCOME, 0] = OPEN
            if not goes_unseen(shape, self.max_join):
                opened(look_at_some)(arrays, ONLY, proofs)
        at_once = opened is compiled and self._branch_at_once(problem.structure, arrays, proofs)
        if facts[OUTCOME, 0] == OPEN and not at_once:
            self._go_on(problem, arrays, messages, proofs, opened)
        return solution_of(problem, proofs)

    def _go_on(self, problem: Problem, arrays: BatchArrays, messages: Messages, proofs: Proofs, opened: Opener) -> None:
        """Certifies one problem that looking, or a cut, left open."""
        shape, (_, values, facts) = problem.structure.compiled, proofs
        known = values[BOUND, 0] > -np.inf and bounds_relax(shape)
        whole = None if known else whole_plan(shape, self.max_join)
        if whole is not None:
            opened(eliminate_some)(arrays, whole.addresses, ONLY, proofs)
        if facts[OUTCOME, 0] == OPEN and self.max_join is None:
            tally = tally_of(shape)
            if tally is not None:
                opened(count_some)(arrays, np.array([tally.address]), ONLY, proofs)
        if facts[OUTCOME, 0] != OPEN:
            return
        clock, last = self._clock(1), branching(shape, self.max_join, self._effort)
        fixing = fix_one(problem, proofs, clock, opened) if self.max_join is None else NOTHING_FIXED
        floor = float(values[BOUND, 0])
        if facts[OUTCOME, 0] == OPEN and not last.reduction.complete:
            arrays = without_others(arrays, [shape], ONLY, fixing)
            args = (*arrays,), last.reduction.addresses, messages, last.effort, ONLY, (*proofs,)
            if clock is None and (last.seconds <= LONG or opened is not compiled):  # the short way
                opened(last.run)(*args, UNWATCHED)
            else:
                clock = clock or Clock()
                clock.run(partial(last.run, *args, clock.watch()), last.seconds)
            take_loss(proofs, ONLY, fixing)
            if last.thin is not None and facts[OUTCOME, 0] == OPEN:
                eliminate_one(problem, last.thin, fixing, proofs, clock, opened)
        if values[BOUND, 0] < floor:
            keep_bounds(proofs, ONLY, np.array([floor]))

    def _clock(self, n: int) -> Clock | None:
        """Returns a clock for `n` problems, if there are limits; what is planned for the problems counts as well."""
        if self.time_limit is None and self.call_limit is None:
            return None
        load_drivers()
        together = math.inf if self.call_limit is None else self.call_limit
        return Clock(self.time_limit, together if self.time_limit is None else min(together, n * self.time_limit))

    @property
    def _effort(self) -> Effort:
        return _effort_of(self.max_sweeps, self.max_nodes)

    def _certify(self, batch: Batch, found: Solutions | None, n_jobs: int, sums: Sums | None = None) -> Report:
        start = NOTHING if self.messages is None else self._checked_messages(_used(batch))
        clock = self._clock(len(batch)) or Clock()
        labels, values = given(batch, found)
        proofs = Proofs(labels, values, np.empty((5, len(batch)), dtype=np.int64))

        uncut = cut_batch(batch, proofs, clock, n_jobs) if self.max_join is None else batch.order
        left, fixing = look_and_eliminate(batch, uncut, self.max_join, proofs, n_jobs), NOTHING_FIXED
        if left.size and self.max_join is None:
            fixing = fix_batch(batch, left, proofs, clock, n_jobs)
            left = left[proofs.facts[OUTCOME, left] == OPEN]
        if left.size:
            messages = start, *(sums or NO_SUMS)
            branch_open(batch, left, self.max_join, self._effort, messages, fixing, proofs, clock, n_jobs)
        return Report.of(batch, proofs)

    def _checked_messages(self, structures: Iterable[Structure]) -> FloatArray:
        if self.messages is None:
            return NOTHING
        for structure in structures:
            if len(self.messages) != structure.schema.n_messages:
                raise ProblemError(
                    f"Got {len(self.messages)} starting messages; the schema needs "
                    f"{structure.schema.n_messages}. Use messages that were learned with this schema."
                )
        start: FloatArray = np.clip(self.messages, -LARGEST, LARGEST, dtype=np.float64)
        return start


def _nothing_known(structure: Structure) -> Proofs:
    """Returns what is known of one problem before anything was tried."""
    return Proofs(np.empty(structure.graph.order.size, dtype=np.int64), NO_VALUES.copy(), NO_FACTS.copy())


def _used(batch: Batch) -> list[Structure]:
    """Returns the structures that some problem has; a part of a batch keeps those of the whole."""
    return [batch.structures[s] for s in np.unique(batch.structure).tolist()]


@lru_cache(maxsize=64)
def _effort_of(max_sweeps: int, max_nodes: int | None) -> Effort:
    nodes = (MAX_NODES, ROW_NODES, ROW_WORK) if max_nodes is None else (max_nodes, max_nodes, 0)
    return Effort(FIRST_SWEEPS, ROW_SWEEPS, max_sweeps, *nodes, NODE_SWEEPS, DIVE_NODES)
