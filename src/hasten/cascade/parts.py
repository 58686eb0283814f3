"""What a cascade replies with, how often it may call the black box, and what it counts."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Generic

import numpy as np

from hasten.support.checks import check_whole
from hasten.tasks.task import Text


@dataclass(frozen=True, slots=True)
class Reply(Generic[Text]):
    """An answer: the labelled text, who gave it, how sure the student was, and why the black box was asked.

    `text` is None if nobody had an answer. `promised` says whether the student's promise covers it. `probability` is
    how likely the student's answer is the black box's, nan without a student.
    """

    text: Text | None
    source: str  # "student", "black box" or "nobody"
    probability: float
    promised: bool
    reason: str
    version: str


@dataclass(slots=True)
class Budget:
    """How often the black box may be called: in all, and in an hour. None, the default, is as often as it is needed."""

    calls: int | None = None
    per_hour: int | None = None
    times: list[float] = field(default_factory=list, repr=False)  # of the calls in the last hour
    used: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        for name in ("calls", "per_hour"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))

    def left(self) -> float:
        """Returns how many calls are left now."""
        self.times = [each for each in self.times if each > time.monotonic() - 3600]
        limits = (self.calls, self.used), (self.per_hour, len(self.times))
        return min((max(0, most - used) for most, used in limits if most is not None), default=np.inf)

    def take(self, n: int) -> None:
        """Counts some calls."""
        self.used += n
        if self.per_hour is not None:
            self.times += [time.monotonic()] * n


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
