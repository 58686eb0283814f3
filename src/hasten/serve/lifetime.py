"""The lifetime of a server in windows of time: what the page at `/` draws, as JSON at `/lifetime?since=`.

A window holds what was counted in `width` seconds. Once there are too many, two become one, twice as wide: so the
whole lifetime is always there, in bounded memory.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any

import msgspec

from hasten.serve.batching import Batch

MOST = 512  # windows
RECENT = 32  # inputs that are kept to be shown
SHOWN = 4096  # bytes of an input, at most


class Window(msgspec.Struct, omit_defaults=True):
    """What happened in a window of time."""

    at: float  # seconds since the epoch, its beginning
    n: int = 0  # requests
    seconds: float = 0.0  # of the fast lane
    latency: float = 0.0  # seconds of all requests together
    asked: int = 0  # items handed to the black box
    proved: int = 0  # items
    failed: int = 0
    sources: dict[str, int] = {}  # items by who answered
    agreement: list[float] | None = None  # estimate, limits, audits at its end

    def add(self, other: Window) -> None:
        """Takes in a later window."""
        for name in ("n", "seconds", "latency", "asked", "proved", "failed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.sources = dict(Counter(self.sources) + Counter(other.sources))
        self.agreement = other.agreement or self.agreement


class Recent(msgspec.Struct):
    """An input and its answer, as they were sent."""

    at: float
    id: str
    input: msgspec.Raw
    answer: msgspec.Raw


class Lifetime:
    """The windows so far, and the latest inputs; the batcher tells of each batch."""

    def __init__(self, width: float = 1.0) -> None:
        self.width = width
        self.windows: list[Window] = []
        self.recent: deque[Recent] = deque(maxlen=RECENT)
        self._next_recent = 0.0

    def saw(self, batch: Batch, agreement: list[float] | None) -> None:
        """Counts a batch."""
        at = batch.when // self.width * self.width
        if not self.windows or self.windows[-1].at < at:
            self.windows.append(Window(at))
            if len(self.windows) > MOST:
                self._halve()
        window = self.windows[-1]
        window.n += len(batch.requests)
        window.seconds += batch.seconds
        window.asked += batch.n_asked
        window.agreement = agreement or window.agreement
        if batch.sources:
            sources = Counter(window.sources)
            for (source, proved), n in batch.sources.items():
                sources[source] += n
                window.proved += n * proved
            window.sources = dict(sources)
        for request in batch.requests:
            window.failed += isinstance(request.reply, BaseException)
        if batch.requests and batch.when >= self._next_recent:
            self._show(batch)

    def _show(self, batch: Batch) -> None:
        """Keeps one input of a batch, at most five a second."""
        for request in batch.requests:
            if (
                isinstance(request.reply, tuple)
                and request.parts
                and len(request.body) <= SHOWN
                and not request.reply[1]
            ):
                raw = msgspec.Raw(request.body), msgspec.Raw(request.reply[0])
                self.recent.append(Recent(batch.when, request.id, *raw))
                self._next_recent = batch.when + 0.2
                return

    def _halve(self) -> None:
        self.width *= 2
        kept = list[Window]()
        for window in self.windows:
            at = window.at // self.width * self.width
            if kept and kept[-1].at == at:
                kept[-1].add(window)
            else:
                kept.append(window)
                window.at = at
        self.windows = kept

    def since(self, when: float, state: Mapping[str, Any]) -> bytes:
        """Returns the windows that began at some time or later, the latest inputs since, and the model's state."""
        told = {
            "width": self.width,
            "windows": [window for window in self.windows if window.at >= when - self.width],
            "recent": [each for each in self.recent if each.at >= when],
            "state": state,
        }
        return msgspec.json.encode(told)
