"""What a speedup keeps from one call to the next, and how that changes.

Its owner holds a lock while it reads or changes it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from hasten.learning.learner import Learner
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.speedup.agreeing import FIRST
from hasten.speedup.audit import Agreement, Audit, Counters
from hasten.speedup.choosing import Choice
from hasten.speedup.gated import GatedSearch
from hasten.speedup.history import History
from hasten.speedup.lessons import Lessons
from hasten.speedup.pool import AnswerPool
from hasten.support.arrays import BoolArray, FloatArray

log = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class Memory:
    """What was learned, counted and audited, and the dice that choose what to audit."""

    rng: np.random.Generator
    guided: bool  # whether the weights are better than none, as far as is known
    learned: Learner | None = None
    counted: Counters = field(default_factory=Counters)
    audit: Audit = field(default_factory=Audit)
    choice: Choice | None = None  # how learned mode answers, once it has learned
    lessons: Lessons = field(default_factory=Lessons)
    history: History = field(default_factory=History)
    n_compared: int = 0  # proofs compared with a solver of the user's own
    follows: bool = False  # whether that disagreed, and is asked every time since
    single: dict[tuple[Status, Source], list[int]] = field(default_factory=dict)  # problems and variables, yet to count
    gated: GatedSearch | None = None  # the search by a gate that has learned
    pool: AnswerPool | None = None  # past answers
    weights: FloatArray | None = field(init=False)  # of what was learned so far: a copy, that no teaching changes

    def __post_init__(self) -> None:
        self.weights = None if self.learned is None else self.learned.weights

    def draw(self, n: int, share: float) -> BoolArray:
        """Draws which of `n` answers are audited."""
        drawn: BoolArray = self.rng.random(n) < share
        return drawn

    def draw_proofs(self, n: int, share: float) -> BoolArray:
        """Draws which of `n` proofs are compared with a solver of the user's own: the first few, then a share."""
        drawn = self.draw(n, share)
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

    def observe(self, agreed: BoolArray, level: float | None, what: str = "search") -> None:
        """Takes in audits; where they end the trust in the search, what it learns from now on weighs more."""
        if not agreed.size:
            return
        self.count(Counters(audits=agreed.size, disagreements=int((~agreed).sum())))
        self.audit.level = level
        changed = self.audit.observe(agreed)
        if changed and self.audit.distrust is not None:
            log.warning("The %s is not trusted any more: its agreement is %s.", what, self.audit.distrust)
            self.note(f"The {what} is not trusted any more: its agreement is {self.audit.distrust}.")
            self.lessons.n_since = 0
        elif changed:
            since = "again" if what == "search" else "now"
            log.info("The %s is trusted %s: its agreement is %s.", what, since, self.audit.agreement)
            self.note(f"The {what} is trusted {since}: its agreement is {self.audit.agreement}.")
            self.lessons.n_since = None
        if changed and not self.audit.trusted and self.learned is not None:
            learned = self.learned.state.weights
            if learned is not None:  # an average over what no longer holds would keep it from adapting
                learned.drift[:] = 0.0
                learned.n_examples[0] = 0

    def note(self, note: str = "") -> None:
        """Records how things stand, and what changed, if anything did."""
        n_problems = self.counted.problems + sum([n for n, _ in self.single.values()])
        if note or self.history.is_due(n_problems):
            self.history.record(self.counters, self.audit.agreement, note)

    def adopt(self, choice: Choice, learner: Learner | None, level: float | None) -> None:
        """Answers by what was learned from now on; at first only if it surely agrees often enough."""
        first, self.choice = self.choice is None, choice
        if learner is not None:
            self.learned, self.weights = learner, learner.weights
        held = choice.agreement.get(choice.way)
        if first and level is not None and (held is None or held.low < level):
            self.audit.trusted, self.audit.distrust = False, held or Agreement.of(0, 0)
        self.lessons.learned(choice.n_answers)
        self.note(str(choice))

    def teach(self, batch: Batch, answers: Answers, new_learner: Callable[[], Learner]) -> None:
        """Learns from the black box's answers, at first with a new learner."""
        if self.learned is None:
            self.learned = new_learner()
        before = self.learned.n_mistakes
        if len(batch) == 1 and isinstance(answers, Solutions):
            self.learned.learn_one(batch[0], answers[0])
        else:
            self.learned.partial_fit(batch, answers)
        self.weights = self.learned.weights
        self.count(Counters(labelled=len(batch), updates=self.learned.n_mistakes - before))
