"""The state of a speedup: all that it keeps from one call to the next, apart from its settings.

Threads share it: hold its lock while you read or change it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hasten.learning.learner import Learner
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.speedup.audit import Agreement, Audit
from hasten.speedup.choosing import Choice
from hasten.speedup.gated import GatedSearch
from hasten.speedup.history import Counters, History
from hasten.speedup.parts import Search
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.threads import Lock

log = logging.getLogger(__name__)
MOST = 5000  # answers that are kept to learn from again
START = 48  # answers before the first choice
FEWEST_NEW = 32  # answers before the next one; or half of what there was, if that is more
AFRESH = 64  # answers, since trust ended, that are enough to learn from alone
FIRST = 16  # proofs, all of which are compared with a solver of the user's own
BY = {
    Source.SEARCH: "by_search",
    Source.BOUND: "by_bound",
    Source.BRANCH: "by_branch",
    Source.SOLVER: "by_solver",
    Source.LEARNED: "by_learned",
}


class Replay:
    """The last answers of the black box, oldest first, for learned mode to learn from again, and how many are new."""

    def __init__(self) -> None:
        self.kept: deque[tuple[Problem, IntArray]] = deque(maxlen=MOST)
        self.n_before = 0  # answers that were learned from when the choice was last made
        self.n_new = 0  # since then
        self.n_since: int | None = None  # since trust ended; None while there is nothing to be tried about that

    def add(self, batch: Batch, answers: Answers) -> int:
        """Keeps the usable answers; returns their number."""
        labels, usable = read_answers(batch, answers)
        for p in usable.tolist():
            given = batch[p]
            table = given.table.copy() if given.structure._slots else given.graph.table
            mine = labels[batch.variable_at[p] : batch.variable_at[p + 1]].copy()
            self.kept.append((Problem(given.structure, given.cost.copy(), None, table, 0), mine))
        self.n_new += len(usable)
        if self.n_since is not None:
            self.n_since += len(usable)
        return len(usable)

    @property
    def due(self) -> bool:
        """Whether there are enough new ones to choose anew."""
        if self.n_since is not None and self.n_since >= AFRESH:
            return True
        return self.n_new >= (max(FEWEST_NEW, self.n_before // 2) if self.n_before else START)

    def taken(self, n: int = MOST) -> tuple[Batch, IntArray]:
        """Returns the last `n` problems as a batch, with flat answers."""
        problems, labels = zip(*list(self.kept)[-n:], strict=True)
        return Batch.of(problems), np.concatenate(labels)

    def learned(self, n_answers: int) -> None:
        """Begins to count new ones anew, after a choice was made from some answers."""
        self.n_before, self.n_new = n_answers, 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class State:
    """All that was learned, counted and audited, and the dice that draw audits."""

    rng: np.random.Generator | None = None  # made with the seed at first use
    learner: Learner | None = None
    counts: Counter[str] = field(default_factory=Counter)  # by the names of `Counters`
    audit: Audit = field(default_factory=Audit)
    choice: Choice | None = None  # how learned mode answers, once it has learned
    replay: Replay = field(default_factory=Replay)
    history: History = field(default_factory=History)
    n_compared: int = 0  # proofs compared with a solver of the user's own
    follows: bool = False  # whether that disagreed, and is asked every time since
    gated: GatedSearch | None = None  # the search by a gate that has learned
    calibrated: Search | None = None  # the search with the theta that calibration chose
    weights: FloatArray | None = field(init=False)  # of the learner: a copy, that no teaching changes
    lock: Lock = field(default_factory=Lock, init=False, repr=False)

    def __post_init__(self) -> None:
        self.weights = None if self.learner is None else self.learner.weights

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        with self.lock:
            return None, {name: getattr(self, name) for name in self.__dataclass_fields__}

    @property
    def counters(self) -> Counters:
        """All that was counted."""
        return Counters.from_dict(self.counts)

    def count_one(self, answer: Solution) -> None:
        """Counts one answer, all of whose costs were computed."""
        counts, status, n = self.counts, answer.status, answer.n_costs
        counts["problems"] += 1
        counts[BY[answer.source]] += 1
        counts["costs"] += n
        counts["variables"] += n
        if status is Status.PROVED:
            counts["proved"] += 1
        elif status is Status.INFEASIBLE:
            counts["infeasible"] += 1
            counts["proved"] += answer.proved

    def count_answers(self, answers: Solutions, solver_calls: int) -> None:
        """Counts answers, and the calls of the solver for them."""
        counts = self.counts
        counts["problems"] += len(answers)
        counts["costs"] += int(answers.n_costs.sum())
        counts["variables"] += int(answers.batch.variable_at[-1])
        counts["solver_calls"] += solver_calls
        for (status, source), n in answers.counts().items():
            infeasible = status is Status.INFEASIBLE
            counts[BY[source]] += n
            counts["infeasible"] += n * infeasible
            counts["proved"] += n * (status is Status.PROVED or (infeasible and source is not Source.SOLVER))

    def draw(self, n: int, share: float, seed: int) -> BoolArray:
        """Draws which of `n` answers are audited."""
        if self.rng is None:
            self.rng = np.random.default_rng(seed)
        drawn: BoolArray = self.rng.random(n) < share
        return drawn

    def draw_proofs(self, n: int, share: float, seed: int) -> BoolArray:
        """Draws which of `n` proofs are compared with a solver of the user's own: the first few, then a share."""
        drawn = self.draw(n, share, seed)
        drawn[: max(0, FIRST - self.n_compared)] = True
        self.n_compared = min(FIRST, self.n_compared + int(drawn.sum()))
        return drawn

    def observe(self, agreed: BoolArray, at: IntArray, level: float | None, what: str) -> None:
        """Takes in audits of the answers with the numbers `at`, and acts where they end the trust, or let it return."""
        if not agreed.size:
            return
        self.counts.update(audits=agreed.size, disagreements=int((~agreed).sum()))
        self.audit.allow(level)
        while (turned := self.audit.observe(agreed, at)) is not None:
            agreed, at = agreed[turned + 1 :], at[turned + 1 :]
            self._act_on_trust(what)

    def _act_on_trust(self, what: str) -> None:
        """Says that trust ended or returned; once it ended, what is learned from now on weighs more."""
        audit = self.audit
        if audit.distrust is not None and audit.suspect is not None:
            first, last = audit.suspect.start + 1, audit.suspect.stop
            note = (
                f"The {what} is not trusted any more: its agreement is {audit.distrust}. Answers {first:,} to {last:,} "
                "may be wrong, but for those that were audited."
            )
            log.warning("%s", note)
            self.replay.n_since = 0
            if self.learner is not None:  # an average over what no longer holds would keep it from adapting
                self.learner.forget_average()
        else:
            since = "again" if what == "search" else "now"
            note = f"The {what} is trusted {since}: its agreement is {audit.agreement}."
            log.info("%s", note)
            self.replay.n_since = None
        self.note(note)

    def note(self, note: str = "") -> None:
        """Records how things stand, and what changed, if anything did."""
        if note or self.history.is_due(self.counts["problems"]):
            self.history.record(self.counters, self.audit.agreement, note)

    def adopt(self, choice: Choice, level: float | None) -> None:
        """Answers as was chosen from now on; at first only if that surely agrees often enough."""
        first, self.choice = self.choice is None, choice
        held = choice.agreement.get(choice.method)
        if first and level is not None and (held is None or held.low < level):
            self.audit.end_trust(held or Agreement.of(0, 0))
        self.replay.learned(choice.n_answers)
        self.note(str(choice))
