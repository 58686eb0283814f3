"""Reports of a server's answers: the page sees windows, the latest inputs and marks, Prometheus sees totals."""

from __future__ import annotations

import json
import os
import time
from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

import hasten
from hasten.serve.batching import Batch, Request
from hasten.serve.lifetime import Answered, Lifetime, Window, bucket
from hasten.serve.served import Served

MARKS = {"not trusted": "alarm", "answers from now on": "version"}  # notes that the charts mark
TRUST = "trusted", "allowed", "promise", "version", "suspect"
ABOUT = "source", "agreed", "status", "probability", "proved", "version", "gap"  # what is not the answer itself
SHOWN = 8  # requests that the page is told of, each time
DIGITS = 4  # of numbers
MOST_SHOWN = 4096  # bytes of an input


class Teller(Lifetime):
    """The lifetime of what a server answers: counts each batch; `tell`, called now and then, does what takes longer."""

    def __init__(self, served: Served[Any]) -> None:
        super().__init__({"name": served.name, "kind": served.kind}, self.standing)
        self.served, self._n_asked, self._n_notes = served, 0, 0
        self._last = deque[tuple[Request, float]](maxlen=SHOWN)

    def seen(self, batch: Batch, now: float) -> None:
        """Counts a batch."""
        self._n_asked += batch.n_asked
        if not batch.sources:
            return
        window = self.window()
        window.calls, self._n_asked = window.calls + self._n_asked, 0
        for (source, proved), n in batch.sources.items():
            window.by[source] += n
            window.proved += n * bool(proved)
        for request in batch.requests:
            if request.n_items and request.found and not isinstance(request.reply, BaseException):
                window.seconds[bucket(now - request.call.began)] += request.n_items
                if request.slow or self.served.stateful:
                    self._count_trust(request, window)
                self._last.append((request, now))
        self.counted(batch.sources.total())

    def _count_trust(self, request: Request, window: Window) -> None:
        """Counts whether the black box agreed, and why it was asked."""
        for found in request.found:
            for agreed in found.columns.get("agreed", ()):
                window.audits += agreed is not None
                window.agreed += bool(agreed)
            if request.slow:
                window.reasons[str(found.columns["status"][found.at])] += 1

    def _shows(self, request: Request, now: float) -> Answered:
        """Returns what the page shows of the first answer to a request."""
        found, body = request.found[0], request.call.body[:MOST_SHOWN]
        told = self.served.told(request.parts[0], found.columns, found.at)
        known = {name: told.pop(name, None) for name in ABOUT}
        told = {name: round(each, DIGITS) if isinstance(each, float) else each for name, each in told.items()}
        given = msgspec.json.decode(body) if len(body) < MOST_SHOWN and request.call.body[:1] == b"{" else None
        explains = isinstance(given, dict) and "inputs" not in given
        words = (given.get("tokens") or given.get("text")) if explains and given is not None else None
        text = " ".join(words) if isinstance(words, list) else words
        return Answered(
            text or body.decode(errors="replace"),
            json.dumps(told, ensure_ascii=False),
            str(known["source"]),
            now - request.call.began,
            request.slow,
            known["agreed"],
            str(known["status"]) if request.slow else "",
            known["probability"],
            known["proved"],
            str(known["version"]),
            given if explains else None,
        )

    def tell(self) -> None:
        """Shows the latest answers, and marks what changed."""
        for n, each in enumerate(self._last, self.n - len(self._last) + 1):
            self.show(n, self._shows(*each))
        self._last.clear()
        notes = self.served.state().get("notes", ())
        for note in notes[self._n_notes :]:
            kind = next((kind for words, kind in MARKS.items() if words in note), "note")
            text = note.partition(": ")[2] or note
            self.mark(kind, text.split(" ", 1)[0] if kind == "version" else kind, text)
        self._n_notes = len(notes)

    def standing(self) -> dict[str, Any]:
        """Returns how things stand."""
        state = self.served.state()
        found = {name: state[name] for name in TRUST if state.get(name) is not None}
        alarms = [note for note in state.get("notes", ()) if "not trusted" in note]
        return found | ({"alarm": alarms[-1]} if alarms and not found.get("trusted", True) else {})


# -- Prometheus ----------------------------------------------------------------------------------------------------

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
COUNTED = "audits", "disagreements"
SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Histogram:
    """Counts of values up to some bounds, and their sum."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds, self.counts, self.sum = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        """Counts a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def lines(self, name: str, labels: str = "") -> Iterable[str]:
        """Yields the lines of Prometheus."""
        n, comma = 0, "," if labels else ""
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            n += count
            yield f'{name}_bucket{{{labels}{comma}le="{bound}"}} {n}'
        yield f"{name}_sum{{{labels}}} {self.sum}"
        yield f"{name}_count{{{labels}}} {n}"


class Metrics:
    """All that was counted since the start."""

    def __init__(self) -> None:
        self.started = time.time()
        self.latency = {"fast": Histogram(BOUNDS), "slow": Histogram(BOUNDS)}
        self.batches = Histogram(SIZES)
        self.responses: Counter[int] = Counter()
        self.answers: Counter[tuple[str, bool]] = Counter()
        self.asked = self.failed = 0

    def batch(self, batch: Batch, now: float) -> None:
        """Counts a batch."""
        if batch.requests:
            self.batches.add(len(batch.requests))
        for request in batch.requests:
            self.latency["slow" if request.slow else "fast"].add(now - request.call.began)
            self.failed += isinstance(request.reply, BaseException)
        self.answers.update(batch.sources)
        self.asked += batch.n_asked

    def text(self, model: str, state: Mapping[str, Any], gauges: Mapping[str, tuple[str, float]]) -> str:
        """Returns everything as Prometheus reads it."""
        labels = {"model": model, "version": state.get("version", ""), "hasten": hasten.__version__}
        told = ",".join(f'{name}="{escape(value)}"' for name, value in labels.items())
        answers = {f'{{source="{escape(s)}",proved="{str(p).lower()}"}}': n for (s, p), n in self.answers.items()}
        responses = {f'{{status="{status}"}}': n for status, n in sorted(self.responses.items())}
        agreement = dict(zip(("estimate", "low", "high"), state.get("agreement") or (), strict=False))
        plain: list[tuple[str, str, str, Mapping[str, float]]] = [
            ("info", "gauge", "The model, its version, and that of hasten.", {f"{{{told}}}": 1}),
            ("answers_total", "counter", "Answers by the step that gave them, and whether they are proved.", answers),
            ("black_box_calls_total", "counter", "Items handed to the slow lane.", {"": self.asked}),
            ("failures_total", "counter", "Requests that could not be answered.", {"": self.failed}),
            ("responses_total", "counter", "Responses by status.", responses),
            ("memory_bytes", "gauge", "Memory of the server.", {"": memory()}),
            ("start_time_seconds", "gauge", "When it started.", {"": self.started}),
            *((name, "gauge", about, {"": value}) for name, (about, value) in gauges.items()),
            *((f"{n}_total", "counter", f"{n.title()} so far.", {"": state[n]}) for n in COUNTED if n in state),
        ]
        if "trusted" in state:
            plain.append(("trusted", "gauge", "Whether own answers are trusted.", {"": int(state["trusted"])}))
        if agreement:
            limits = {f'{{limit="{name}"}}': value for name, value in agreement.items()}
            plain.append(("agreement", "gauge", "Agreement with the black box of late, and its limits.", limits))
        lines = list[str]()
        for name, kind, about, values in plain:
            lines += _head(name, kind, about)
            lines += [f"hasten_{name}{which} {value}" for which, value in values.items()]
        lines += _head("seconds", "histogram", "Seconds from a whole request to its answer.")
        for lane, histogram in self.latency.items():
            lines += histogram.lines("hasten_seconds", f'lane="{lane}"')
        lines += _head("batch_size", "histogram", "Requests answered at once.")
        lines += self.batches.lines("hasten_batch_size")
        return "\n".join(lines) + "\n"


def _head(name: str, kind: str, about: str) -> tuple[str, str]:
    return f"# HELP hasten_{name} {about}", f"# TYPE hasten_{name} {kind}"


def escape(text: str) -> str:
    """Returns a value of a label as Prometheus writes it."""
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def memory() -> int:
    """Returns the bytes of memory that the server has, 0 where nobody can tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
