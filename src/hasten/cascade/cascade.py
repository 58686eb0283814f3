"""A cascade: a student in front of a slow black box, which learns from its answers while it serves.

An input gets the student's answer where that is sure enough (`hasten.cascade.promise`), and the black box's elsewhere.
A share of all inputs, drawn before anybody looks at them, always goes to the black box: their answers are never learned
from, but fit and test each new version of the student, and audit the one that answers (`hasten.speedup.audit`). The
other answers of the black box teach. As they double, a new version is trained: a *challenger*. It answers in the
*shadow* of the *champion* for a while, and is *promoted* if it would answer more inputs under the same promise.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, Generic

import numpy as np

from hasten.cascade.parts import Budget, Counters, Reply
from hasten.cascade.promise import Promise
from hasten.cascade.student import Guesses, Student, calibrate, train
from hasten.errors import HastenError, ProblemError
from hasten.speedup.audit import ALERT, Agreement, Audit
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.checks import check_whole
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.task import Task, Text

log = logging.getLogger(__name__)
AT_ONCE = 64  # inputs between which trust and versions may change
FIRST = 200  # answers that the first version learns from
HELD = 0.15  # share of the answers that are held out while everything is asked
GROWN = 1.5  # times as many held-out answers as at the last test are worth another one
SHADOW = 50  # answers of the black box that a challenger is compared with before it is promoted
KEPT = 8  # versions that one can roll back to
DOUBT = 1.2, 0.02  # an unsure answer may be wrong that many times as often as it says, and that share more


class Cascade(Generic[Text]):
    """A fast front for a slow predictor. Used in a `with` statement, it learns in a thread of its own.

    task
        What inputs are, and how a student is trained on labelled ones: a `Task`, such as `Extraction()` or `Tagging()`.
    black_box
        The slow predictor: a function that gets an input and returns it labelled. It may raise errors.
    risk
        The share of the student's answers that may differ from the black box's, between 0 and 1. 0.02 by default.
    confidence
        How sure of that to be, between 0 and 1. 0.95 by default.
    audit
        The share of inputs that always goes to the black box once the student answers. 0.02 by default.
    budget
        How often the black box may be called: a `Budget`. Where that is spent, the student answers without a promise.
    n_jobs
        How many threads call the black box, at least 1.
    seed
        Fixes what is drawn.
    """

    def __init__(
        self,
        task: Task[Text],
        black_box: Callable[[Text], Text],
        *,
        risk: float = 0.02,
        confidence: float = 0.95,
        audit: float = 0.02,
        budget: Budget | None = None,
        n_jobs: int = 1,
        seed: int = 0,
    ) -> None:
        for name, share in (("risk", risk), ("confidence", confidence), ("audit", audit)):
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share < 1:
                raise ProblemError(f"{name} must be a share between 0 and 1, got {share!r}.")
        if not isinstance(task, Task):
            raise ProblemError(f"task must be a Task, such as Extraction() or Tagging(); got {task!r}.")
        if not callable(black_box):
            raise ProblemError(f"black_box must be a function of an input, got {black_box!r}.")
        check_whole("n_jobs", n_jobs, least=1)
        check_whole("seed", seed, most=None)
        self.task, self.black_box, self.budget = task, black_box, Budget() if budget is None else budget
        self.risk, self.confidence, self.audit, self.n_jobs, self.seed = risk, confidence, audit, n_jobs, seed
        self.counters = Counters()
        self.notes: list[str] = []
        self.versions: dict[str, Student[Text]] = {}
        self.champion: Student[Text] | None = None
        self.challenger: Student[Text] | None = None
        self._rng, self._lock, self._due = np.random.default_rng(seed), threading.RLock(), threading.Event()
        self._taught, self._held = list[tuple[int, Text]](), list[tuple[int, Text]]()  # by number of the input
        self._n_shadow = self._n_versions = self._n_tested = self._n_learned = 0
        self._thread: threading.Thread | None = None
        self._closing = False
        self._audits, self._unsure = self._new_audits()

    @property
    def promise(self) -> Promise:
        """The promise of the champion."""
        return Promise.none() if self.champion is None else self.champion.promise

    @property
    def trusted(self) -> bool:
        """Whether the student answers at all."""
        return self.promise.holds and self._audits.trusted and self._unsure.trusted

    @property
    def agreement(self) -> Agreement:
        """How often the student's audited answers were the black box's."""
        return self._audits.agreement

    @property
    def suspect(self) -> range | None:
        """The inputs, counted from 0, whose answers may be wrong, once trust ended."""
        return self._audits.suspect or self._unsure.suspect

    def __repr__(self) -> str:
        return "Cascade(no student yet)" if self.champion is None else f"Cascade({self._name} {self.promise})"

    def _new_audits(self) -> tuple[Audit, Audit]:
        """Returns audits of sure answers, and of unsure ones; the threshold allows errors, so alerts are short."""
        level, alarmed = 1 - self.risk, min(ALERT, int(np.ceil(0.5 / self.risk)))
        return Audit(level, alarmed), Audit(level, 0)

    def predict(self, inputs: Iterable[Text]) -> list[Reply[Text]]:
        """Answers inputs, asks the black box where it must, and learns."""
        texts, replies = list(inputs), list[Reply[Text]]()
        for at in range(0, len(texts), AT_ONCE):
            replies += self._answer(texts[at : at + AT_ONCE])
            self._learn_if_due()
        return replies

    def teach(self, answered: Iterable[Text]) -> None:
        """Takes in answers that the black box gave before, of inputs like those to come, and learns from them."""
        with self._lock:
            texts = [(-1, text) for text in answered]  # of before all inputs
            self._keep(texts, self._rng.random(len(texts)) < HELD)
        self._learn_if_due()

    def _answer(self, texts: list[Text]) -> list[Reply[Text]]:
        """Answers a few inputs, between which nothing changes."""
        with self._lock:
            champion, trusted, first = self.champion, self.trusted, self.counters.inputs
            held = self._rng.random(len(texts)) < (self.audit if trusted else HELD)
            alert = self._audits.alert
            self.counters.inputs += len(texts)
        guesses, sure = Guesses([None] * len(texts), np.full(len(texts), -np.inf)), np.zeros(len(texts), dtype=bool)
        if champion is not None:
            guesses = champion(texts)
            sure = champion.sure(guesses)
        given = trusted & sure & ~held & (np.cumsum(sure) > alert)
        answers: list[Text | Exception | None] = [None] * len(texts)
        self._ask(texts, answers, ~given, held, guesses)
        agreed = self._agreed(champion, answers, guesses)
        if given.any() and (sure & ~given & ~agreed & np.array([each is not None for each in answers])).any():
            self._ask(texts, answers, given, held, guesses)  # after a disagreement all are audited
            agreed, given = self._agreed(champion, answers, guesses), given & False
        with self._lock:
            self._observe(answers, guesses, sure, agreed, first)
            known = [n for n, each in enumerate(answers) if each is not None and not isinstance(each, Exception)]
            self._keep([(first + n, answers[n]) for n in known], held[known])  # type: ignore[misc]
            why = [self._why(trusted, *each) for each in zip(sure, held, strict=True)]
            return [
                self._reply(champion, *each, bool(given[n]))
                for n, each in enumerate(zip(texts, answers, guesses.labels, np.exp(guesses.log_p), why, strict=True))
            ]

    def _ask(
        self,
        texts: list[Text],
        answers: list[Text | Exception | None],
        wanted: BoolArray,
        held: BoolArray,
        known: Guesses,
    ) -> None:
        """Asks the black box, within the budget: first what is held out, then where the student is least sure."""
        order = np.lexsort((known.log_p, ~held))
        numbers = [n for n in order.tolist() if wanted[n]]
        with self._lock:
            numbers = numbers[: int(min(len(numbers), self.budget.left()))]
            self.budget.take(len(numbers))
            self.counters.calls += len(numbers)

        def call(n: int) -> Text | Exception:
            try:
                answer = self.black_box(texts[n])
                if answer is None:
                    raise ProblemError("The black box returned None. It must return the input, labelled.")
                return answer
            except Exception as error:  # one bad input never costs the others their answers
                return error

        if self.n_jobs > 1 and len(numbers) > 1:
            with ThreadPoolExecutor(min(self.n_jobs, len(numbers))) as pool:
                found = list(pool.map(call, numbers))
        else:
            found = [call(n) for n in numbers]
        for n, answer in zip(numbers, found, strict=True):
            answers[n] = answer
            if isinstance(answer, Exception):
                self.counters.failed += 1
                log.warning("The black box failed: %s: %s", type(answer).__name__, answer)

    def _agreed(self, student: Student[Text] | None, answers: Sequence[Any], guesses: Guesses) -> BoolArray:
        """Tells where a student's answer is the black box's; a call that failed counts as a disagreement."""
        right = np.zeros(len(answers), dtype=bool)
        known = [n for n, each in enumerate(answers) if each is not None and not isinstance(each, Exception)]
        if student is not None and known:
            right[known] = student.right([answers[n] for n in known], [guesses.labels[n] for n in known])
        return right

    def _observe(
        self,
        answers: Sequence[Text | Exception | None],
        guesses: Guesses,
        sure: BoolArray,
        agreed: BoolArray,
        first: int,
    ) -> None:
        """Audits the champion by the black box's answers, and compares the challenger."""
        asked, failed = np.array([(each is not None, isinstance(each, Exception)) for each in answers], dtype=bool).T
        if self.promise.holds:
            audited, unsure = np.flatnonzero(sure & asked), np.flatnonzero(~sure & asked & ~failed)
            self.counters.audits += len(audited)
            self.counters.disagreements += int((~agreed[audited]).sum())
            wrong = 1 - np.exp(np.minimum(guesses.log_p[unsure], 0.0))
            allowed = np.clip(DOUBT[0] * wrong + DOUBT[1], 0.0, 0.98)
            self._watch(self._audits, agreed[audited], first + audited)
            if self._unsure.trusted:
                self._watch(self._unsure, agreed[unsure], first + unsure, allowed)
        challenger = self.challenger
        known = [each for each in answers if each is not None and not isinstance(each, Exception)]
        if challenger is not None and known:
            challenger(known)  # in the shadow: it must not fail
            self._n_shadow += len(known)
            if self._n_shadow >= SHADOW:
                self._decide(challenger)

    def _watch(self, audit: Audit, agreed: BoolArray, at: IntArray, allowed: np.ndarray | None = None) -> None:
        """Takes in audits; where they end the trust, forgets the answers from before."""
        while agreed.size:
            turned = audit.observe(agreed, at, allowed)
            if turned is None:
                return
            agreed, at = agreed[turned + 1 :], at[turned + 1 :]
            allowed = None if allowed is None else allowed[turned + 1 :]
            if audit.trusted:
                self._note("The student is trusted again.")
                continue
            suspect = audit.suspect or range(0)
            self._note(
                f"The student is not trusted any more: its agreement is {audit.distrust}. Answers "
                f"{suspect.start + 1:,} to {suspect.stop:,} may be wrong, but for the black box's. All answers before "
                "these are forgotten."
            )
            self._taught = [each for each in self._taught if each[0] >= suspect.start]
            self._held = [each for each in self._held if each[0] >= suspect.start]
            self.challenger, self._n_learned, self._n_tested = None, 0, 0
            if allowed is not None:
                return

    def _why(self, trusted: bool, sure: bool, held: bool) -> str:
        """Says why the black box was asked."""
        if self.champion is None:
            return f"Nothing is learned yet: {len(self._taught)} of {FIRST} answers."
        if not self.promise.holds:
            return f"The student has {self.promise}."
        if not trusted:
            return "The student is not trusted."
        return (
            "Drawn to audit and test the student."
            if held
            else "A check."
            if sure
            else "The student is not sure enough."
        )

    def _reply(
        self,
        champion: Student[Text] | None,
        text: Text,
        answer: Text | Exception | None,
        labels: Sequence[str] | None,
        probability: float,
        why: str,
        given: bool,
    ) -> Reply[Text]:
        """Returns the reply to an input: the black box's answer, or the champion's, with or without a promise."""
        known = (float(probability) if champion is not None else np.nan), given
        version = "" if champion is None else champion.name
        if answer is not None and not isinstance(answer, Exception):
            self.counters.by_black_box += 1
            return Reply(answer, "black box", *known, why, version)
        if isinstance(answer, Exception):
            why = f"The black box failed: {type(answer).__name__}: {answer}"
        elif not given:
            why = "The budget is spent."
        if champion is None or labels is None:
            self.counters.unanswered += 1
            return Reply(None, "nobody", *known, why, version)
        self.counters.by_student += 1
        return Reply(champion.model.label(text, labels), "student", *known, "" if given else why, version)

    def _keep(self, answers: Sequence[tuple[int, Text]], held: BoolArray) -> None:
        for answer, out in zip(answers, held.tolist(), strict=True):
            (self._held if out else self._taught).append(answer)

    def _learn_if_due(self) -> None:
        n_taught = len(self._taught)
        due = self.challenger is None and n_taught >= max(FIRST, 2 * self._n_learned)
        if due or (self.champion is not None and len(self._held) >= max(FIRST, GROWN * self._n_tested)):
            if self._thread is not None:
                self._due.set()
            else:
                self.learn()

    def learn(self, tell: Tell = tell_nobody) -> None:
        """Trains a challenger if answers have doubled, and tests the champion anew if held-out answers grew."""
        with self._lock:
            taught, held = [text for _, text in self._taught], [text for _, text in self._held]
            grown = len(taught) >= max(FIRST, 2 * self._n_learned)
            champion, began = self.champion, self._n_versions
            self._n_tested = len(held)
            if grown:
                self._n_learned, self._n_versions = len(taught), began + 1
        if not held:
            return
        if grown:
            new = train(self.task, taught, f"v{began + 1}", self.seed + began, tell)
            new = calibrate(new, held, self.risk, self.confidence)
            with self._lock:
                self.versions[new.name] = new
                while len(self.versions) > KEPT:
                    del self.versions[next(name for name in self.versions if name != self._name)]
                self.challenger, self._n_shadow = new, 0
                self._note(f"{new.name} learned from {len(taught):,} answers and {new.promise}.")
                if champion is None or not self.trusted:
                    self._decide(new)
        elif champion is not None:
            renewed = calibrate(champion, held, self.risk, self.confidence)
            with self._lock:
                if self.champion is champion:
                    self.champion = self.versions[champion.name] = renewed
                    if renewed.promise.holds != champion.promise.holds:
                        self._note(f"{renewed.name}, tested on {len(held):,} answers, {renewed.promise}.")

    @property
    def _name(self) -> str:
        return "" if self.champion is None else self.champion.name

    def _decide(self, challenger: Student[Text]) -> None:
        """Promotes a challenger if it would answer more inputs than the champion, under the same promise."""
        held, champion = [text for _, text in self._held], self.champion
        self.challenger = None
        if champion is not None and self.trusted and challenger.coverage(held) <= champion.coverage(held):
            self._note(f"{challenger.name} is not promoted: {champion.name} answers as many inputs.")
        else:
            self.promote(challenger.name)

    def promote(self, name: str) -> None:
        """Lets a version answer from now on; audits begin anew."""
        with self._lock:
            if name not in self.versions:
                raise ProblemError(f"There is no version {name!r}. There are {', '.join(self.versions) or 'none yet'}.")
            self.versions[name] = self.champion = self.versions.pop(name)
            self._audits, self._unsure = self._new_audits()
            self._note(f"{name} answers from now on.")

    def rollback(self) -> None:
        """Lets the version answer that answered before."""
        if not (names := [name for name in self.versions if name != self._name]):
            raise HastenError("There is no earlier version to roll back to.")
        self.promote(names[-1])

    def _note(self, note: str) -> None:
        log.info("%s", note)
        self.notes.append(f"After {self.counters.inputs:,} inputs: {note}")

    def __enter__(self) -> Cascade[Text]:
        self._closing = False
        self._thread = threading.Thread(target=self._learn_on, name="hasten cascade", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        thread, self._thread, self._closing = self._thread, None, True
        if thread is not None:
            self._due.set()
            thread.join()

    def _learn_on(self) -> None:
        while True:
            self._due.wait()
            self._due.clear()
            try:
                if self._closing:
                    return
                self.learn()
            except Exception:
                log.exception("Learning failed; the student stays as it is.")
