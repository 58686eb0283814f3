"""Parts of a cascade: replies, questions as they are kept, the budget of calls, and counters."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Generic

import msgspec

from hasten.cascade.promise import WHOLE
from hasten.cascade.student import Student
from hasten.errors import ProblemError
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
        raise ProblemError(
            f"Give inputs of the task, such as a list of one: [text]; got {brief(given)}. {type(task).__name__} takes "
            "texts as its method `read` returns them."
        ) from None
    for each in texts if labelled else ():
        task.check_labelled(each)
    return texts


def check_kind(name: str, given: object, kind: type, such: str) -> None:
    """Refuses what is not of a kind."""
    if not isinstance(given, kind):
        raise ProblemError(f"{name} must be {such}; got {brief(given)}.")


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


class Asked(msgspec.Struct):
    """A question to the black box as journals keep it, and all that a cascade learns from it."""

    input: Any
    at: int = -1  # the input's number; -1 for one from before
    answer: Any = None  # the labelled text; None if the call failed
    error: str = ""
    held: bool = False  # drawn to be asked, and never learned from
    version: str = ""  # of the student that guessed
    log_p: float = -math.inf
    sure: bool = False
    wrong: list[str] = []  # the kinds of variables that the student would have labelled otherwise


class Question(Asked):
    """An input on its way: the student's answer, whether that is given, and what the black box said if it was asked."""

    champion: Student[Any] | None = None
    trusted: bool = False
    labels: list[str] | None = None  # the student's; None without a valid labelling
    kinds: tuple[str, ...] = ()
    given: bool = False  # answered by the student, under its promise
    called: bool = False

    def take(self, answer: Any) -> None:
        """Takes in what the black box said: a labelled text, or an error, of which everything counts as wrong."""
        self.called, champion = True, self.champion
        if isinstance(answer, Exception):
            self.error = f"{type(answer).__name__}: {answer}"
            self.wrong = [] if champion is None else [WHOLE, *champion.promise.risks]
        else:
            self.answer = answer
            self.wrong = [] if champion is None else champion.wrong(answer, self.labels, self.kinds)

    def reply(self, n_taught: int) -> Reply[Any]:
        """Returns the reply: the black box's answer, or the student's, with or without a promise."""
        champion, found, source = self.champion, self.answer, "black box"
        if found is None:
            source = "nobody"
            if champion is not None and self.labels is not None:
                found, source = champion.model.label(self.input, self.labels), "student"
        return Reply(
            number=self.at,
            text=found,
            source=source,
            probability=math.nan if champion is None else math.exp(self.log_p),
            promised=self.given,
            called=self.called,
            reason="" if self.given else self._why(n_taught),
            version=self.version,
            agreed=not self.wrong if self.sure and self.called else None,
        )

    def _why(self, n_taught: int) -> str:
        """Says why the black box was asked, or why it has no answer."""
        if self.error:
            return f"The black box failed: {self.error}"
        if not self.called:
            return "The budget is spent."
        if self.champion is None:
            return f"Nothing is learned yet: {n_taught} of {FIRST} answers."
        if not self.champion.promise.holds:
            return f"The student has {self.champion.promise}."
        if not self.trusted:
            return "The student is not trusted."
        if self.held:
            return "Drawn to audit and test the student."
        return "A check." if self.sure else "The student is not sure enough."


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
        return min((max(0, most - used) for most, used in limits if most is not None), default=math.inf)

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
