"""How fast long work goes, and how long it will take, in words."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass
class Pace:
    """The pace of work that began when this was made."""

    began: float = field(default_factory=time.monotonic)

    def words(self, done: int, of: int | None = None, before: int = 0) -> str:
        """Returns how many are done, how many a second, and the time left; `before` were done when it began."""
        seconds = time.monotonic() - self.began
        rate = (done - before) / seconds if seconds > 0 else 0.0
        words = f"{done:,}" if of is None else f"{done:,} of {of:,}"
        if rate <= 0:
            return words
        words += f", {rate:,.0f} a second"
        return words if of is None else f"{words}, {duration((of - done) / rate)} left"


def duration(seconds: float) -> str:
    """Returns a time in words, by its largest unit and the next."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
