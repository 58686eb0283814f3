"""What a cascade replies with, what it keeps of a question, how often it may ask, and what it counts."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, cast

import msgspec
import numpy as np

from hasten.cascade.promise import WHOLE
from hasten.cascade.student import Guesses, Student
from hasten.errors import ProblemError
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.checks import brief, check_whole
from hasten.tasks.task import Task, Text

FIRST = 200  # answers that the first version learns from


def check_inputs(task: Task[Text], given: Iterable[Text], labelled: bool = False) -> list[Text]:
    """Returns inputs as a list; refuses what are none of the task's."""
    try:
        texts = list(given)
        for each in {type(text): text for text in texts}.values():
            task.to_json(each)
    except (AttributeError, TypeError, ValueError, KeyError):
        raise ProblemError(f"Give inputs of the task, such as a list of one: [text]; got {brief(given)}.") from None
    for each in texts if labelled else ():
        task.check_labelled(each)
    return texts


def check_kind(name: str, given: object, kind: type, made: str) -> None:
    """Refuses what is not of a kind."""
    if not isinstance(given, kind):
        raise ProblemError(f"{name} must be a {kind.__name__}, such as {made}; got {brief(given)}.")


@dataclass(frozen=True, slots=True)
class Reply(Generic[Text]):
    """An answer: the labelled text, who gave it, how sure the student was, and why the black box was asked.

    `text` is None if nobody had an answer; inputs are counted from 0. `promised` says whether the student's promise
    covers it, `called` whether the black box was asked. `probability` is how likely the student's answer is the black
    box's, nan without a student; `agreed` whether an audit of a sure answer agreed, None without an audit.
    """

    number: int
    text: Text | None
    source: str  # "student", "black box" or "nobody"
    probability: float
    promised: bool
    called: bool
    reason: str
    version: str
    agreed: bool | None


class Note(msgspec.Struct, frozen=True):
    """Something that happened after so many inputs: a "version" learned, a "promotion", an "alarm" or a "note"."""

    at: int
    kind: str
    text: str
    version: str = ""

    def __str__(self) -> str:
        return f"After {self.at:,} inputs: {self.text}"


class Asked(msgspec.Struct, frozen=True):
    """A question to the black box as journals keep it, and all that a cascade learns from it."""

    at: int  # the input's number; -1 for one from before
    input: Any
    answer: Any  # the labelled text; None if the call failed
    error: str = ""
    held: bool = False  # held out: never learned from
    version: str = ""  # of the student that guessed
    log_p: float = -math.inf
    sure: bool = False
    wrong: list[str] = []  # the kinds of variables that the student would have labelled otherwise


@dataclass(eq=False)
class Pending(Generic[Text]):
    """Inputs between the student's guesses and the black box's answers."""

    texts: Sequence[Text]
    numbers: IntArray
    champion: Student[Text] | None = None
    trusted: bool = False

    def __post_init__(self) -> None:
        n = len(self.texts)
        self.guesses = Guesses([None] * n, [()] * n, np.full(n, -np.inf))
        self.held: BoolArray = np.zeros(n, dtype=bool)  # drawn to be asked, and never learned from
        self.sure: BoolArray = np.zeros(n, dtype=bool)
        self.given: BoolArray = np.zeros(n, dtype=bool)  # answered by the student, under its promise
        self.answers: list[Text | Exception | None] = [None] * n  # the black box's

    def of(self, chosen: Sequence[int]) -> Pending[Text]:
        """Returns some of the inputs by themselves: a server ends those that are given before it asks about others."""
        at, guesses = np.array(chosen, dtype=np.int64), self.guesses
        some = Pending([self.texts[n] for n in chosen], self.numbers[at], self.champion, self.trusted)
        labels, kinds = [guesses.labels[n] for n in chosen], [guesses.kinds[n] for n in chosen]
        some.guesses = Guesses(labels, kinds, guesses.log_p[at])
        some.held, some.sure, some.given = self.held[at], self.sure[at], self.given[at]
        some.answers = [self.answers[n] for n in chosen]
        return some

    def wrong(self) -> dict[int, list[str]]:
        """Returns what the champion had wrong of the inputs that were asked; where the call failed, everything."""
        if self.champion is None:
            return {}
        failed = [WHOLE, *self.champion.promise.risks]
        found = {n: failed for n, each in enumerate(self.answers) if isinstance(each, Exception)}
        known = [n for n, each in enumerate(self.answers) if each is not None and n not in found]
        guesses = Guesses([self.guesses.labels[n] for n in known], [self.guesses.kinds[n] for n in known], np.zeros(0))
        answers = cast(list[Text], [self.answers[n] for n in known])
        return found | dict(zip(known, self.champion.wrong(answers, guesses), strict=True))

    def replies(self, wrong: Mapping[int, list[str]], n_taught: int) -> list[Reply[Text]]:
        """Returns the replies: the black box's answers, or the champion's, with or without a promise."""
        champion, replies = self.champion, list[Reply[Text]]()
        for n, (text, labels, answer) in enumerate(zip(self.texts, self.guesses.labels, self.answers, strict=True)):
            given = bool(self.given[n])
            if answer is not None and not isinstance(answer, Exception):
                found, source = answer, "black box"
            elif champion is None or labels is None:
                found, source = None, "nobody"
            else:
                found, source = champion.model.label(text, labels), "student"
            reply = Reply(
                number=int(self.numbers[n]),
                text=found,
                source=source,
                probability=math.nan if champion is None else math.exp(self.guesses.log_p[n]),
                promised=given,
                called=answer is not None,
                reason="" if given else self._why(n, n_taught),
                version="" if champion is None else champion.name,
                agreed=not wrong[n] if self.sure[n] and n in wrong else None,
            )
            replies.append(reply)
        return replies

    def _why(self, n: int, n_taught: int) -> str:
        """Says why the black box was asked, or why it has no answer."""
        answer, champion = self.answers[n], self.champion
        if isinstance(answer, Exception):
            return f"The black box failed: {type(answer).__name__}: {answer}"
        if answer is None:
            return "The budget is spent."
        if champion is None:
            return f"Nothing is learned yet: {n_taught} of {FIRST} answers."
        if not champion.promise.holds:
            return f"The student has {champion.promise}."
        if not self.trusted:
            return "The student is not trusted."
        if self.held[n]:
            return "Drawn to audit and test the student."
        return "A check." if self.sure[n] else "The student is not sure enough."

    def asked(self) -> Iterator[Asked]:
        """Yields the questions to the black box."""
        version, wrong = "" if self.champion is None else self.champion.name, self.wrong()
        for n, answer in enumerate(self.answers):
            if answer is not None:
                failed = isinstance(answer, Exception)
                yield Asked(
                    int(self.numbers[n]),
                    self.texts[n],
                    None if failed else answer,
                    f"{type(answer).__name__}: {answer}" if failed else "",
                    bool(self.held[n]),
                    version,
                    float(self.guesses.log_p[n]),
                    bool(self.sure[n]),
                    wrong.get(n, []),
                )


@dataclass(slots=True)
class Budget:
    """How often the black box may be called: in all, in an hour, and at once by threads.

    None, the default, is as often as it is needed.
    """

    calls: int | None = None
    per_hour: int | None = None
    at_once: int = 1
    times: list[float] = field(default_factory=list, repr=False)  # of the calls in the last hour
    used: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        check_whole("at_once", self.at_once, least=1)
        for name in ("calls", "per_hour"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))

    def left(self) -> float:
        """Returns how many calls are left now."""
        self.times = [each for each in self.times if each > time.time() - 3600]
        limits = (self.calls, self.used), (self.per_hour, len(self.times))
        return min((max(0, most - used) for most, used in limits if most is not None), default=np.inf)

    def take(self, n: int, when: float | None = None) -> None:
        """Counts some calls, of now or of another time."""
        self.used += n
        if self.per_hour is not None:
            self.times += [time.time() if when is None else when] * n


@dataclass(slots=True)
class Counters:
    """Counts of all that a cascade did."""

    inputs: int = 0
    by_student: int = 0
    by_black_box: int = 0
    unanswered: int = 0
    calls: int = 0
    failed: int = 0  # calls
    audits: int = 0
    disagreements: int = 0
