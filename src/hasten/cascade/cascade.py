"""A cascade: a student in front of a slow black box, which learns from its answers while it serves.

An input gets the student's answer where that is sure enough (`hasten.cascade.promise`), and the black box's elsewhere.
A share of all inputs, drawn before anybody looks at them, always goes to the black box: their answers are never learned
from, but fit and test each new version of the student, and audit the one that answers (`hasten.speedup.audit`). The
other answers of the black box teach. As they double, a new version is trained: a *challenger*. It answers in the
*shadow* of the *champion* for a while, and is *promoted* if it would answer more inputs under the same promise.

All that changes a cascade is written to its journal first: questions with their answers, versions, promotions.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic

import msgspec
import numpy as np

from hasten.cascade import keeping
from hasten.cascade.boxes import ask_all
from hasten.cascade.parts import FIRST, Asked, Budget, Counters, Note, Question, Reply, check_inputs, check_kind
from hasten.cascade.promise import WHOLE, Promise, check_shares, risks_of
from hasten.cascade.student import Student
from hasten.errors import HastenError, ProblemError
from hasten.journal import Journal
from hasten.speedup.audit import ALERT, Agreement, Audit, lower_limit
from hasten.support.arrays import FloatArray
from hasten.support.checks import brief, check_whole
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.task import Task, Text

log = logging.getLogger(__name__)
AT_ONCE = 64  # inputs between which trust and versions may change
HELD = 0.15  # share of the answers that are held out while everything is asked
GROWN = 1.5  # times as many held-out answers as at the last test are worth another one
SHADOW = 50  # answers of the black box that a challenger is compared with before it is promoted
KEPT = 8  # versions that one can roll back to
MOST = 100_000  # answers that are learned from, and as many that are held out: the latest
DOUBT = 1.2, 0.02  # an unsure answer may be wrong that many times as often as it says, and that share more


class Cascade(Generic[Text]):
    """A fast front for a slow predictor. Used in a `with` statement, it learns in a thread of its own.

    task
        What inputs are, and how a student is trained on labelled ones: a `Task`, such as `Extraction()` or `Tagging()`.
    black_box
        The slow predictor: a function that gets an input and returns it labelled. It may raise errors.
    risk
        The share of the student's answers that may differ from the black box's, between 0 and 1. 0.02 by default. Or by
        kind of variable, `{"entity": 0.02, "relation": 0.05}`: the share that may differ in any of these; "answer"
        stands for the whole answer.
    confidence
        How sure of that to be, between 0 and 1. 0.95 by default.
    audit
        The share of inputs that always goes to the black box once the student answers. 0.02 by default.
    budget
        How often the black box may be called: a `Budget`. Where that is spent, the student answers without a promise.
    journal
        Where questions, answers and versions are kept: a `Journal`. What it has already teaches first.
    seed
        Fixes what is drawn.
    """

    def __init__(
        self,
        task: Task[Text],
        black_box: Callable[[Text], Text],
        *,
        risk: float | Mapping[str, float] = 0.02,
        confidence: float = 0.95,
        audit: float = 0.02,
        budget: Budget | None = None,
        journal: Journal | None = None,
        seed: int = 0,
    ) -> None:
        self.risks = risks_of(risk)
        check_shares({"confidence": confidence, "audit": audit})
        check_kind("task", task, Task, "a Task, such as Extraction() or Tagging()")
        check_kind("black_box", black_box, Callable, "a function of an input")  # type: ignore[arg-type]
        check_whole("seed", seed, most=None)
        self.task, self.black_box, self.budget = task, black_box, Budget() if budget is None else budget
        check_kind("budget", self.budget, Budget, "a Budget, such as Budget(per_hour=100)")
        self.confidence, self.audit, self.journal, self.seed = confidence, audit, journal, seed
        self.counters = Counters()
        self.notes: list[Note] = []
        self.versions: dict[str, Student[Text]] = {}
        self.champion: Student[Text] | None = None
        self.challenger: Student[Text] | None = None
        self.suspect: range | None = None  # inputs, from 0: where answers may be wrong since trust last ended
        self._rng, self._lock = np.random.default_rng(seed), threading.RLock()
        self._taught, self._held = list[tuple[int, Text]](), list[tuple[int, Text]]()  # by number of the input
        self._shadow = [0, 0, 0]  # answers that the challenger saw, was sure of, and had wrong of these
        self._n_versions = self._n_tested = self._n_learned = self._n_alarms = self._last_row = self._since = 0
        self._pool: ThreadPoolExecutor | None = None  # where it learns; in `end` itself without
        self._learning: Future[None] | None = None
        self._replaying = False
        self._begin_audits()
        if journal is not None:
            self.take_in(journal)

    @property
    def promise(self) -> Promise:
        """The promise of the champion."""
        return Promise() if self.champion is None else self.champion.promise

    @property
    def trusted(self) -> bool:
        """Whether the student answers at all."""
        return self.promise.holds and all(each.trusted for each in (*self._audits.values(), self._unsure))

    @property
    def agreement(self) -> Agreement:
        """How often the student's audited answers were the black box's, whole."""
        return self._audits[WHOLE].agreement

    def standing(self) -> dict[str, Any]:
        """Returns how things stand, as JSON has it: `hasten.serve.lifetime` shows it."""
        suspect = None if self.trusted or self.suspect is None else [self.suspect.start + 1, self.suspect.stop]
        return {
            "trusted": self.trusted,
            "allowed": 1 - self.risks.get(WHOLE, max(self.risks.values())),
            "promise": str(self.promise) if self.champion else "nothing is learned yet",
            "suspect": suspect,
        }

    def __repr__(self) -> str:
        return "Cascade(no student yet)" if self.champion is None else f"Cascade({self.champion.name} {self.promise})"

    def predict(self, inputs: Iterable[Text]) -> list[Reply[Text]]:
        """Answers inputs, asks the black box where it must, and learns."""
        texts, replies = check_inputs(self.task, inputs), list[Reply[Text]]()
        for at in range(0, len(texts), AT_ONCE):
            questions = [Question(text) for text in texts[at : at + AT_ONCE]]
            self.begin(questions)
            self.ask(questions)
            replies += self.end(questions)
        return replies

    def begin(self, questions: Sequence[Question]) -> None:
        """Guesses answers, and decides which of them to give. `ask` comes next, then `end`.

        A server that answers many at once calls the three by itself, each from any thread, `ask` only where it must.
        """
        with self._lock:
            first, champion, trusted = self.counters.inputs, self.champion, self.trusted
            self.counters.inputs += len(questions)
            held = (self._rng.random(len(questions)) < (self.audit if trusted else HELD)).tolist()
            alert = max(each.alert for each in self._audits.values())
        for n, each in enumerate(questions):
            each.at, each.held, each.trusted = first + n, held[n], trusted
        if champion is None:
            return
        guesses, n_sure = champion([each.input for each in questions]), 0
        sure, log_p = champion.sure(guesses).tolist(), guesses.log_p.tolist()
        for n, each in enumerate(questions):
            each.champion, each.version, each.sure, each.log_p = champion, champion.name, sure[n], log_p[n]
            each.labels, each.kinds = guesses.labels[n], guesses.kinds[n]
            n_sure += each.sure
            each.given = trusted and each.sure and not each.held and n_sure > alert

    def ask(self, questions: Sequence[Question]) -> None:
        """Asks the black box, within the budget, about the answers that are not given."""
        given = [each for each in questions if each.given]
        self._call([each for each in questions if not each.given])
        if given and any(each.sure and self.risks.keys() & each.wrong for each in questions):
            self._call(given)  # after a disagreement all are audited
            for each in given:
                each.given = False

    def _call(self, questions: Sequence[Question]) -> None:
        """Calls the black box: first for inputs that are held out, then where the student is least sure."""
        chosen = sorted(questions, key=lambda each: (not each.held, each.log_p))
        with self._lock:
            chosen = chosen[: int(min(len(chosen), self.budget.left()))]
            self.budget.take(len(chosen))
        answers = ask_all(self.task, self.black_box, [each.input for each in chosen], self.budget.at_once)
        for each, answer in zip(chosen, answers, strict=True):
            each.take(answer)

    def end(self, questions: Sequence[Question]) -> list[Reply[Text]]:
        """Returns the replies, after what was learned from the black box is in the journal."""
        asked = [each for each in questions if each.called]
        with self._lock:
            replies = [each.reply(len(self._taught)) for each in questions]
            self._write(keeping.rows(self, asked, zip(questions, replies, strict=True)))
            for reply in replies:
                self.counters.by_student += reply.source == "student"
                self.counters.unanswered += reply.source == "nobody"
            self._take(asked)
        self._watch_challenger([each.answer for each in asked if each.answer is not None])
        self._learn_if_due()
        return replies

    def _begin_audits(self) -> None:
        """Begins audits of sure answers, for each risk, and of unsure ones; risks allow errors, so alerts are short."""
        levels = {WHOLE: None} | {name: 1 - risk for name, risk in self.risks.items()}
        alarmed = min(ALERT, int(np.ceil(0.5 / min(self.risks.values()))))
        self._audits = {name: Audit(level, alarmed) for name, level in levels.items()}
        self._unsure = Audit(1 - max(self.risks.values()), 0)

    def _take(self, asked: Sequence[Asked]) -> None:
        """Learns from questions to the black box, now or out of the journal: audits the champion, keeps the answers."""
        for each in asked:
            if each.at >= 0:
                self.counters.calls += 1
                self.counters.failed += each.answer is None
                self.counters.by_black_box += each.answer is not None
            if self.champion is not None and self.promise.holds and each.version == self.champion.name:
                if each.sure:
                    self.counters.audits += 1
                    self.counters.disagreements += bool(each.wrong)
                    for name, audit in self._audits.items():
                        self._watch(audit, name not in each.wrong, each.at)
                elif each.answer is not None and self._unsure.trusted:
                    allowed = DOUBT[0] * (1 - np.exp(min(each.log_p, 0.0))) + DOUBT[1]
                    self._watch(self._unsure, not each.wrong, each.at, np.clip([allowed], 0.0, 0.98))
            if each.answer is not None:
                kept = self._held if each.held else self._taught
                kept.append((each.at, each.answer))
                del kept[:-MOST]

    def _watch(self, audit: Audit, agreed: bool, at: int, allowed: FloatArray | None = None) -> None:
        """Takes in an audit; where it ends the trust, forgets the answers from before."""
        if audit.observe(np.array([agreed]), np.array([at]), allowed) is None:
            return
        if audit.trusted:
            self._note("The student is trusted again.")
            return
        last = range(0, at + 1) if audit.suspect is None else audit.suspect
        first = max(last.start, self._since)
        self.suspect = range(first, last.stop)
        self._note(
            f"The student is not trusted any more: its agreement is {audit.distrust}. Answers {first + 1:,} to "
            f"{last.stop:,} may be wrong, but for the black box's. All before {audit.changed + 1:,} are forgotten.",
            "alarm",
        )
        self._taught = [each for each in self._taught if each[0] >= audit.changed]
        self._held = [each for each in self._held if each[0] >= audit.changed]
        self.challenger, self._n_learned, self._n_tested = None, 0, 0
        self._n_alarms += 1

    def teach(self, answered: Iterable[Text]) -> None:
        """Takes in answers that the black box gave before, of inputs like those to come, and learns from them."""
        texts = check_inputs(self.task, answered, labelled=True)
        with self._lock:
            held = (self._rng.random(len(texts)) < HELD).tolist()
            asked = [Asked(text, answer=text, held=out) for text, out in zip(texts, held, strict=True)]
            self._write(keeping.rows(self, asked))
            self._take(asked)
        if self._is_due():
            self.learn()

    def _is_due(self) -> bool:
        return (self.challenger is None and self._has_grown()) or (
            self.champion is not None and len(self._held) >= max(FIRST, GROWN * self._n_tested)
        )

    def _has_grown(self) -> bool:
        return len(self._taught) >= max(FIRST, 2 * self._n_learned)

    def _learn_if_due(self) -> None:
        if not self._is_due():
            return
        if (pool := self._pool) is None:
            self._learn_or_tell()
        elif self._learning is None or self._learning.done():
            self._learning = pool.submit(self._learn_or_tell)

    def _learn_or_tell(self) -> None:
        try:
            self.learn()
        except Exception as error:  # replies never wait for a student that cannot learn
            log.exception("Learning failed; the student stays as it is.")
            self._note(f"Learning failed: {type(error).__name__}: {error}")

    def learn(self, progress: Progress = no_progress) -> None:
        """Trains a challenger if answers have doubled, and tests the champion anew if held-out answers grew."""
        with self._lock:
            taught, held = [text for _, text in self._taught], [text for _, text in self._held]
            grown, champion, n_alarms = self._has_grown(), self.champion, self._n_alarms
            self._n_tested = len(held)
            if grown:
                self._n_learned, self._n_versions = len(taught), self._n_versions + 1
            name, seed = f"v{self._n_versions}", self.seed + self._n_versions
        if grown and held:
            model = self.task.train(taught, seed=seed, progress=progress)
            new = Student(name, model, len(taught)).calibrated(held, self.risks, self.confidence)
            with self._lock:
                if self._n_alarms > n_alarms:  # what it learned from is forgotten
                    return
                self.versions[name] = self.challenger = new
                while len(self.versions) > KEPT:
                    del self.versions[next(k for k, each in self.versions.items() if each not in (self.champion, new))]
                self._shadow = [0, 0, 0]
                self._note(f"{name} learned from {len(taught):,} answers and {new.promise}.", "version", name)
                if champion is None or not self.trusted:
                    self._decide(new)
        elif champion is not None and held:
            renewed = champion.calibrated(held, self.risks, self.confidence)
            with self._lock:
                if self.champion is champion and self._n_alarms == n_alarms:
                    self.champion = self.versions[champion.name] = renewed
                    if renewed.promise.holds != champion.promise.holds:
                        told = f"{renewed.name}, tested on {len(held):,} answers, {renewed.promise}."
                        self._note(told, version=renewed.name)

    def _watch_challenger(self, answers: Sequence[Text]) -> None:
        """Lets the challenger answer in the shadow, and decides about it when it has seen enough."""
        challenger = self.challenger
        if challenger is None or not answers:
            return
        try:
            guesses = challenger(answers)
            sure = challenger.sure(guesses)
            wrong = [bool(each) for each in map(challenger.wrong, answers, guesses.labels, guesses.kinds)]
        except Exception as error:  # in the shadow it costs nobody an answer
            self.challenger = None
            self._note(f"{challenger.name} is not promoted: {type(error).__name__}: {error}")
            return
        with self._lock:
            if self.challenger is challenger:
                seen = len(answers), int(sure.sum()), int((sure & wrong).sum())
                self._shadow = [a + b for a, b in zip(self._shadow, seen, strict=True)]
                if self._shadow[0] >= SHADOW:
                    self._decide(challenger)

    def _decide(self, challenger: Student[Text]) -> None:
        """Promotes a challenger if it would answer more inputs than the champion, and kept its promise so far."""
        held, champion, (_, sure, wrong) = [text for _, text in self._held], self.champion, self._shadow
        self.challenger = None
        if lower_limit(wrong, sure, self.confidence) > self.risks.get(WHOLE, 1.0):
            self._note(f"{challenger.name} is not promoted: {wrong} of {sure} answers in the shadow were wrong.")
        elif champion is not None and self.trusted and challenger.coverage(held) <= champion.coverage(held):
            self._note(f"{challenger.name} is not promoted: {champion.name} answers as many inputs.")
        else:
            self.promote(challenger.name)

    def promote(self, name: str) -> None:
        """Lets a version answer from now on; audits begin anew."""
        with self._lock:
            if not isinstance(name, str) or name not in self.versions:
                raise ProblemError(
                    f"There is no version {brief(name)}. There are {', '.join(self.versions) or 'none yet'}."
                )
            self._note(f"{name} answers from now on.", "promotion", name)
            self.versions[name] = self.champion = self.versions.pop(name)
            self._since = self.counters.inputs
            self._begin_audits()

    def rollback(self) -> None:
        """Lets the version answer that answered before."""
        if not (names := [name for name, each in self.versions.items() if each is not self.champion]):
            raise HastenError("There is no earlier version to roll back to.")
        self.promote(names[-1])

    def __enter__(self) -> Cascade[Text]:
        self._pool = ThreadPoolExecutor(1, "hasten cascade")
        return self

    def __exit__(self, *error: object) -> None:
        pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(cancel_futures=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file, whole or not at all: versions, promises, audits, counters, and the answers learned from."""
        keeping.save(self, path)

    def take_in(self, journal: Journal) -> None:
        """Learns from the questions and answers in a journal of another cascade for the same black box."""
        check_kind("journal", journal, Journal, 'a Journal, such as Journal("a.journal")')
        keeping.resume(self, journal)

    def replay(
        self, stretch: range | None = None, journal: Journal | None = None
    ) -> Iterator[tuple[Text, Reply[Text]]]:
        """Asks the black box about answers that the student gave, and learns: yields each with the new reply.

        They come from the journal, which must be one for `given` answers; by default those that are `suspect`.
        """
        return keeping.replay(
            self, self.suspect if stretch is None else stretch, self.journal if journal is None else journal
        )

    def _write(self, rows: Sequence[tuple[str, Any]]) -> None:
        if self.journal is not None and rows:
            self._last_row = self.journal.write(rows)

    def _note(self, text: str, kind: str = "note", version: str = "") -> None:
        if not self._replaying:  # else the journal has it
            log.info("%s", text)
            note = Note(self.counters.inputs, kind, text, version)
            self._write([("note" if kind == "alarm" else kind, msgspec.structs.asdict(note))])
            self.notes.append(note)
