"""The state of a speedup: all that it keeps from one call to the next, apart from its settings.

Threads share it: hold its lock while you read or change it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hasten.learning.learner import Learner
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.speedup.audit import Agreement, Audit
from hasten.speedup.choosing import Choice
from hasten.speedup.gated import GatedSearch
from hasten.speedup.history import Counters, History
from hasten.speedup.parts import Search
from hasten.speedup.replay import Replay
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.html import sentence, table
from hasten.support.threads import renew_after_fork

log = logging.getLogger(__name__)
FIRST = 16  # proofs, all of which are compared with a solver of the user's own


@dataclass(slots=True, eq=False, weakref_slot=True)
class State:
    """All that was learned, counted and audited, and the dice that draw audits."""

    rng: np.random.Generator | None = None  # made with the seed at first use
    guided: bool | None = None  # whether the weights are better than none; None as long as nobody tried
    learner: Learner | None = None
    counted: Counters = field(default_factory=Counters)
    audit: Audit = field(default_factory=Audit)
    choice: Choice | None = None  # how learned mode answers, once it has learned
    replay: Replay = field(default_factory=Replay)
    history: History = field(default_factory=History)
    n_compared: int = 0  # proofs compared with a solver of the user's own
    follows: bool = False  # whether that disagreed, and is asked every time since
    single: dict[tuple[Status, Source], list[int]] = field(default_factory=dict)  # problems and variables, yet to count
    gated: GatedSearch | None = None  # the search by a gate that has learned
    calibrated: Search | None = None  # the search with the theta and width that calibration chose
    weights: FloatArray | None = field(init=False)  # of the learner: a copy, that no teaching changes
    lock: threading.RLock = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.weights = None if self.learner is None else self.learner.weights
        self._renew_locks()
        renew_after_fork(self)

    def _renew_locks(self) -> None:
        """Makes a new lock, in a forked child."""
        self.lock = threading.RLock()

    def __getstate__(self) -> dict[str, Any]:
        with self.lock:
            return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._renew_locks()
        renew_after_fork(self)

    def begin_shard(self, rng: np.random.Generator) -> None:
        """Begins to count anew, with dice of its own."""
        self.rng, self.counted, self.history = rng, Counters(), History()
        self.single.clear()

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

    @property
    def counters(self) -> Counters:
        """All that was counted."""
        for (status, source), (n, n_variables) in self.single.items():
            self.counted += Counters.of_some(status, source, n, n_variables)
        self.single.clear()
        return self.counted

    def count(self, more: Counters) -> None:
        """Adds to what was counted."""
        self.counted += more

    def count_one(self, answer: Solution) -> None:
        """Counts one answer, all of whose costs were computed, the quick way: `count` takes longer than some proofs."""
        kept = self.single.get((answer.status, answer.source))
        if kept is None:
            kept = self.single[answer.status, answer.source] = [0, 0]
        kept[0] += 1
        kept[1] += answer.n_costs

    def count_all(self, answers: Solutions, solver_calls: int) -> None:
        """Counts answers; where all of their costs were computed, the quick way, which matters where they are few."""
        if answers.n_costs.tobytes() != answers.batch.n_variables.tobytes():
            self.count(Counters.of(answers, solver_calls))
            return
        n_variables = int(answers.batch.variable_at[-1])
        for key, n in answers.counts().items():
            kept = self.single.setdefault(key, [0, 0])
            kept[0] += n
            kept[1] += n_variables  # of all: which of them had how many is not counted
            n_variables = 0
        if solver_calls:
            self.count(Counters(solver_calls=solver_calls))

    def observe(self, agreed: BoolArray, at: IntArray, level: float | None, what: str) -> None:
        """Takes in audits of the answers with the numbers `at`, and acts where they end the trust, or let it return."""
        if not agreed.size:
            return
        self.count(Counters(audits=agreed.size, disagreements=int((~agreed).sum())))
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
        n_problems = self.counted.problems + sum([n for n, _ in self.single.values()])
        if note or self.history.is_due(n_problems):
            self.history.record(self.counters, self.audit.agreement, note)

    def adopt(self, choice: Choice, learner: Learner | None, level: float | None) -> None:
        """Answers as was chosen from now on; at first only if that surely agrees often enough."""
        first, self.choice = self.choice is None, choice
        if learner is not None:
            self.learner, self.weights = learner, learner.weights
        held = choice.agreement.get(choice.method)
        if first and level is not None and (held is None or held.low < level):
            self.audit.end_trust(held or Agreement.of(0, 0))
        self.replay.learned(choice.n_answers)
        self.note(str(choice))

    def teach(self, batch: Batch, answers: Answers, new_learner: Callable[[], Learner]) -> None:
        """Learns from the black box's answers, at first with a new learner."""
        if self.learner is None:
            self.learner = new_learner()
        before = self.learner.n_mistakes
        self.learner.partial_fit(batch, answers)
        self.weights = self.learner.weights
        self.count(Counters(labelled=len(batch), updates=self.learner.n_mistakes - before))

    def told(self) -> list[str]:
        """Returns what notebooks show of it."""
        counts = {name: n for name, n in self.counters.as_dict().items() if n}
        if not counts:
            return [sentence("Not used yet.")]
        parts = [table(["counter", "count"], ([name.replace("_", " "), n] for name, n in counts.items()), len(counts))]
        if self.choice is not None:
            parts.append(sentence(str(self.choice)))
        if self.audit.agreement.n:
            parts.append(sentence(f"Agrees with the black box: {self.audit.agreement}."))
        if not self.audit.trusted:
            parts.append(sentence(f"It is not trusted for now: agreement was {self.audit.distrust}."))
        return parts
