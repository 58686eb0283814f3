"""The state of a speedup: all that it keeps from one call to the next, apart from its settings, and its history.

Threads share it: hold its lock while you read or change it.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct, structs

from hasten.errors import HastenError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Answers, Solution, Solutions, Source, Status, read_answers
from hasten.speedup.audit import Agreement, Audit
from hasten.speedup.choosing import Choice
from hasten.speedup.parts import Search
from hasten.speedup.skipping import GatedSearch
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.forms import Count
from hasten.support.threads import Lock
from hasten.support.words import count

log = logging.getLogger(__name__)
MOST = 5000  # answers that are kept to learn from again
START = 48  # answers before the first choice
FEWEST_NEW = 32  # answers before the next one; or half of what there was, if that is more
FIRST = 16  # proofs, all of which are compared with a solver of the user's own
BETWEEN = 16  # problems between two moments
SHARE = 200  # of all problems so far: one moment for each such part
MOST_NOTES = 500  # moments with a note that are kept
BY = {
    Source.SEARCH: "by_search",
    Source.BOUND: "by_bound",
    Source.BRANCH: "by_branch",
    Source.SOLVER: "by_solver",
    Source.LEARNED: "by_learned",
}


class Counters(Struct, frozen=True, forbid_unknown_fields=True):
    """Counts of all that a speedup did so far."""

    problems: Count = 0  # answered: the sum of the next five
    by_search: Count = 0
    by_bound: Count = 0
    by_branch: Count = 0
    by_solver: Count = 0
    by_learned: Count = 0
    proved: Count = 0  # without the solver, optimal or infeasible
    infeasible: Count = 0
    solver_calls: Count = 0  # for answers, audits and learning
    costs: Count = 0  # variables whose costs were computed for the answers
    variables: Count = 0  # of all problems answered
    audits: Count = 0
    disagreements: Count = 0
    labelled: Count = 0  # problems learned from
    updates: Count = 0  # mistakes that changed the weights

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Counters:
        """Returns the counters of some counts by name; other names are passed over."""
        return cls(**{name: counts[name] for name in cls.__struct_fields__ if name in counts})

    def as_dict(self) -> dict[str, int]:
        """Returns the counts by name."""
        return structs.asdict(self)

    def __str__(self) -> str:
        share = self.costs / self.variables if self.variables else 1.0
        learned = f"{self.by_learned} by learned tables, " if self.by_learned else ""
        return (
            f"{count(self.problems, 'problem')}: {learned}{self.by_search} by search, {self.by_bound} by bound, "
            f"{self.by_branch} by branching, {self.by_solver} by the solver; {share:.1%} of the costs "
            f"computed; {self.disagreements} of {count(self.audits, 'audit')} disagreed; "
            f"{count(self.updates, 'update')}"
        )


class Moment(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How things stood once some problems were answered; `note` says what changed, where something did."""

    problems: Count
    calls: Count  # of the black box, for answers, audits and learning
    agreement: Agreement
    proved: Count  # answers, without the solver
    learned: Count  # answers by learned tables
    labelled: Count  # answers learned from
    note: str = ""


class History:
    """The moments of a lifetime, oldest first; `plot` draws them."""

    def __init__(self, moments: list[Moment] | None = None) -> None:
        self.moments = [] if moments is None else moments

    def is_due(self, n_problems: int) -> bool:
        """Whether enough problems were answered since the last moment."""
        since = n_problems - (self.moments[-1].problems if self.moments else 0)
        return since >= max(BETWEEN, n_problems // SHARE)

    def record(self, counters: Counters, agreement: Agreement, note: str = "") -> None:
        """Adds a moment."""
        problems, calls, proved = counters.problems, counters.solver_calls, counters.proved
        self.moments.append(Moment(problems, calls, agreement, proved, counters.by_learned, counters.labelled, note))
        noted = [x for x, each in enumerate(self.moments) if each.note] if note else []
        if len(noted) > MOST_NOTES:
            del self.moments[noted[0]]

    @property
    def notes(self) -> list[str]:
        """The changes, and after how many problems each came, in sentences."""
        return [f"After {count(each.problems, 'problem')}: {each.note}" for each in self.moments if each.note]

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.moments)

    def __repr__(self) -> str:
        return f"History({len(self)} moments)"

    def plot(self, axes: Any = None) -> Any:
        """Draws agreement with its limits and the shares of problems so far; returns matplotlib's axes."""
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise HastenError("Drawing a history needs matplotlib: pip install 'hasten[plot]'.") from None
            _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        some = [each for each in self.moments if each.problems]
        audited = [each for each in some if each.agreement.n]
        x, at = [each.problems for each in some], [each.problems for each in audited]
        limits = [each.agreement.low for each in audited], [each.agreement.high for each in audited]
        axes.fill_between(at, *limits, alpha=0.2)
        axes.plot(at, [each.agreement.estimate for each in audited], label="agreement of late, with its limits")
        axes.plot(x, [each.calls / each.problems for each in some], "--", label="calls of the black box, a problem")
        axes.plot(x, [each.learned / each.problems for each in some], "-.", label="answered by learned tables")
        axes.plot(x, [each.proved / each.problems for each in some], ":", label="proved without the solver")
        for each in some:
            if each.note:
                axes.axvline(each.problems, color="0.8", linewidth=0.8, zorder=0)
        axes.set(xlabel="problems answered (a grey line: something changed)", ylabel="share", ylim=(0.0, None))
        axes.legend(loc="best", fontsize="small")
        return axes


class Replay:
    """The last answers of the black box, oldest first, for learned mode to learn from again, and how many are new."""

    def __init__(self) -> None:
        self.kept: deque[tuple[int, Problem, IntArray]] = deque(maxlen=MOST)  # by the number of the answer
        self.since = 0  # the first answer that what is kept may be of
        self.n_before = 0  # answers that were learned from when the choice was last made
        self.n_new = 0  # since then

    def add(self, batch: Batch, answers: Answers, numbers: IntArray) -> int:
        """Keeps the usable answers, which have these numbers; returns how many are usable."""
        labels, usable = read_answers(batch, answers)
        for p in usable[numbers[usable] >= self.since].tolist():
            given = batch[p]
            table = given.table.copy() if given.structure._slots else given.graph.table
            mine = labels[batch.variable_at[p] : batch.variable_at[p + 1]].copy()
            self.kept.append((int(numbers[p]), Problem(given.structure, given.cost.copy(), None, table, 0), mine))
            self.n_new += 1
        return len(usable)

    def forget(self, before: int) -> None:
        """Forgets the answers before one, as the black box seems to have changed."""
        self.kept = deque((each for each in self.kept if each[0] >= before), MOST)
        self.since, self.n_before, self.n_new = before, 0, len(self.kept)

    @property
    def due(self) -> bool:
        """Whether there are enough new ones to choose anew."""
        return self.n_new >= (max(FEWEST_NEW, self.n_before // 2) if self.n_before else START)

    def taken(self) -> tuple[Batch, IntArray]:
        """Returns the problems as a batch, with flat answers; begins to count new ones anew."""
        _, problems, labels = zip(*self.kept, strict=True)
        self.learned(len(problems))
        return Batch.of(problems), np.concatenate(labels)

    def learned(self, n_answers: int) -> None:
        """Begins to count new ones anew, after a choice was made from some answers."""
        self.n_before, self.n_new = n_answers, 0


@dataclass(slots=True, eq=False, weakref_slot=True)
class State:
    """All that was learned, counted and audited, and the dice that draw audits."""

    rng: np.random.Generator | None = None  # made with the seed at first use
    guided: bool | None = None  # whether the weights are better than none; None as long as nobody tried
    learner: Learner | None = None
    counts: Counter[str] = field(default_factory=Counter)  # by the names of `Counters`
    audit: Audit = field(default_factory=Audit)
    choice: Choice | None = None  # how learned mode answers, once it has learned
    replay: Replay = field(default_factory=Replay)
    history: History = field(default_factory=History)
    n_compared: int = 0  # proofs compared with a solver of the user's own
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
            if self.replay.kept:
                self.replay.forget(audit.changed)
                note += f" The black box seems to have changed: answers before {audit.changed + 1:,} teach no more."
            if self.learner is not None:  # an average over what no longer holds would keep it from adapting
                self.learner.forget_average()
        else:
            since = "again" if what == "search" else "now"
            note = f"The {what} is trusted {since}: its agreement is {audit.agreement}."
            log.info("%s", note)
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
