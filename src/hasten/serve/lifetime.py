"""The lifetime of a served model as the page at `/` shows it: windows of answers, marks, and the latest inputs.

Memory is bounded: where there are too many windows, neighbours are merged, so that old and new ones span the whole
lifetime. `state` is plain data for JSON; a recorded one makes a page of its own (`recorded_page`).
"""

from __future__ import annotations

import json
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from msgspec import structs

from hasten.speedup.audit import Agreement

PAGE = Path(__file__).parent / "page"
MOST_WINDOWS = 128  # an even number: neighbours are merged in pairs
MOST_MARKS = 100
MOST_RECENT = 40
LONGEST = 600  # characters of an input, or of an answer, that are shown
PER_DOUBLING = 4  # buckets of seconds: each is a fifth longer than the one before
LEAST_SECONDS = 1e-6
ENOUGH = 30  # audits that an agreement is drawn from: a window with fewer borrows those of the windows before it


@dataclass(slots=True)
class Answered:
    """One answer, as the page shows it. `agreed` is None where nobody compared it with the black box's."""

    text: str
    answer: str
    source: str
    seconds: float
    called: bool = False  # whether the black box was asked
    agreed: bool | None = None
    reason: str = ""  # why the black box was asked, or why there is no answer
    probability: float | None = None
    proved: bool | None = None
    version: str = ""
    input: Any = None  # what `POST /explain` takes; None if it cannot be explained


@dataclass(slots=True)
class Window:
    """Some consecutive answers, `first` to `last`, counted from 1."""

    first: int
    last: int
    began: float  # seconds since the start
    ended: float
    by: Counter[str] = field(default_factory=Counter)
    proved: int = 0
    calls: int = 0
    audits: int = 0
    agreed: int = 0
    seconds: Counter[int] = field(default_factory=Counter)  # answers by bucket
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Answered) -> None:
        """Counts an answer."""
        self.by[answer.source] += 1
        self.proved += bool(answer.proved)
        self.calls += answer.called
        if answer.agreed is not None:
            self.audits += 1
            self.agreed += answer.agreed
        if answer.called and answer.reason:
            self.reasons[answer.reason] += 1
        self.seconds[bucket(answer.seconds)] += 1

    def merged(self, later: Window) -> Window:
        """Returns this window and the one after it as one."""
        pairs = {
            name: getattr(self, name) + getattr(later, name)
            for name in ("by", "proved", "calls", "audits", "agreed", "seconds", "reasons")
        }
        return Window(self.first, later.last, self.began, later.ended, **pairs)

    def quantile(self, share: float) -> float:
        """Returns the seconds that a share of the answers took at most, to a tenth."""
        left = share * self.seconds.total()
        for bucket, n in sorted(self.seconds.items()):
            left -= n
            if left <= 0:
                return float(LEAST_SECONDS * 2 ** (bucket / PER_DOUBLING))
        return 0.0

    def plain(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {
            "first": self.first,
            "last": self.last,
            "began": self.began,
            "ended": self.ended,
            "by": self.by,
            "proved": self.proved,
            "calls": self.calls,
            "agreement": structs.asdict(Agreement.of(self.agreed, self.audits)) if self.audits else None,
            "seconds": {"median": self.quantile(0.5), "p95": self.quantile(0.95)},
        }


def bucket(seconds: float) -> int:
    """Returns the number of the bucket of some seconds."""
    return round(PER_DOUBLING * math.log2(max(1.0, seconds / LEAST_SECONDS)))


class Lifetime:
    """All that the page shows of one served model. Its methods are called from one thread.

    about
        Its name, its kind, and whatever else does not change: `{"name": …, "kind": …}`.
    trust
        Returns how things stand now: `trusted`, `allowed` (the least agreement that is), `promise` in words, and
        `suspect`, the first and the last answer that may be wrong, or None.
    per_window
        Answers in a window, as long as there are few.
    clock
        Seconds.
    """

    def __init__(
        self,
        about: Mapping[str, Any],
        trust: Callable[[], Mapping[str, Any]] = dict,
        per_window: int = 50,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.about, self.trust, self.per_window, self.clock = dict(about), trust, per_window, clock
        self.windows: list[Window] = []
        self.marks: deque[dict[str, Any]] = deque(maxlen=MOST_MARKS)
        self.recent: deque[dict[str, Any]] = deque(maxlen=MOST_RECENT)
        self.inputs: dict[int, Any] = {}  # of the recent ones, by number
        self.n, self.revision, self._began = 0, 0, clock()

    def answered(self, answers: Sequence[Answered]) -> None:
        """Takes in answers, oldest first."""
        for answer in answers:
            self.window().add(answer)
            self.counted(1)
            self.show(self.n, answer)

    def window(self) -> Window:
        """Returns the window in which the next answers count; `counted` says how many there were."""
        now = self.clock() - self._began
        if not self.windows or self.windows[-1].last - self.windows[-1].first + 1 >= self.per_window:
            self.windows.append(Window(self.n + 1, self.n, now, now))
            if len(self.windows) > MOST_WINDOWS:
                pairs = zip(self.windows[:-1:2], self.windows[1:-1:2], strict=True)
                self.windows = [*(one.merged(other) for one, other in pairs), self.windows[-1]]
                self.per_window *= 2
        self.windows[-1].ended = now
        return self.windows[-1]

    def counted(self, n: int) -> None:
        """Ends a count of answers in the latest window."""
        self.n += n
        self.windows[-1].last = self.n
        self.revision += 1

    def _agreement(self, n: int) -> dict[str, Any] | None:
        """Returns the agreement of window `n`, and of as many before it as make enough audits."""
        agreed = audits = 0
        for window in self.windows[n::-1] if self.windows[n].audits else ():
            agreed, audits = agreed + window.agreed, audits + window.audits
            if audits >= ENOUGH:
                break
        return structs.asdict(Agreement.of(agreed, audits)) if audits else None

    def show(self, number: int, answer: Answered) -> None:
        """Shows an answer among the recent ones."""
        if len(self.recent) == MOST_RECENT:
            self.inputs.pop(self.recent[0]["number"], None)
        shown = asdict(answer) | {"number": number, "explains": answer.input is not None}
        del shown["input"], shown["called"]
        for name in ("text", "answer"):
            words = shown[name]
            shown[name] = words if len(words) <= LONGEST else words[:LONGEST] + "…"
        self.recent.append(shown)
        if answer.input is not None:
            self.inputs[number] = answer.input

    def mark(self, kind: str, label: str, text: str, at: int | None = None) -> None:
        """Notes a change after answer `at`, or now: `kind` is "version", "alarm" or "note"; the label is short."""
        self.marks.append({"at": self.n if at is None else at, "kind": kind, "label": label, "text": text})
        self.revision += 1

    def input(self, number: int) -> Any:
        """Returns a recent input by its number; None if it is gone, or cannot be explained."""
        return self.inputs.get(number)

    def state(self, since: int = -1) -> dict[str, Any]:
        """Returns everything for JSON; only the revision where nothing came since that one."""
        head = {"revision": self.revision, "now": self.clock() - self._began, "trust": dict(self.trust())}
        if since == self.revision:
            return head
        whole = self.windows[0] if self.windows else Window(1, 0, 0.0, 0.0)
        for window in self.windows[1:]:
            whole = whole.merged(window)
        asking = sum((window.reasons for window in self.windows[-3:]), Counter[str]())
        return head | {
            "model": self.about,
            "answers": self.n,
            "total": whole.plain(),
            "windows": [each.plain() | {"agreement": self._agreement(n)} for n, each in enumerate(self.windows)],
            "marks": list(self.marks),
            "asking": asking.most_common(8),
            "recent": list(self.recent)[::-1],
        }


def recorded_page(state: Mapping[str, Any]) -> str:
    """Returns a recorded state as one page that needs no server and no network."""
    page, style, script = ((PAGE / name).read_text("utf-8") for name in ("index.html", "page.css", "page.js"))
    data = json.dumps(state, ensure_ascii=True).replace("<", "\\u003c")  # nothing in it ends the script
    page = page.replace('<link rel="stylesheet" href="page.css">', f"<style>{style}</style>")
    recorded = f'<script type="application/json" id="recorded">{data}</script><script type="module">{script}</script>'
    return page.replace('<script type="module" src="page.js"></script>', recorded)
