"""What Prometheus wants to know, in its text format; counted in the event loop alone."""

from __future__ import annotations

import os
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

import hasten
from hasten.serve.batching import Batch

BOUNDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)  # seconds
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
        self.busy = 0.0

    def batch(self, batch: Batch, now: float) -> None:
        """Counts a batch."""
        if batch.requests:
            self.batches.add(len(batch.requests))
        for request in batch.requests:
            self.latency["slow" if request.slow else "fast"].add(now - request.call.began)
            self.failed += isinstance(request.reply, BaseException)
        self.answers.update(batch.sources)
        self.asked += batch.n_asked
        self.busy += batch.seconds

    def text(self, model: str, state: Mapping[str, Any], gauges: Mapping[str, tuple[str, float]]) -> str:
        """Returns everything as Prometheus reads it."""
        version, lines = state.get("version", ""), list[str]()

        def write(name: str, kind: str, about: str, *values: str) -> None:
            lines.extend((f"# HELP hasten_{name} {about}", f"# TYPE hasten_{name} {kind}"))
            lines.extend(values)

        labels = f'model="{escape(model)}",version="{escape(version)}",hasten="{hasten.__version__}"'
        write("info", "gauge", "The model, its version, and that of hasten.", f"hasten_info{{{labels}}} 1")
        told = [
            f'hasten_answers_total{{source="{escape(s)}",proved="{str(p).lower()}"}} {n}'
            for (s, p), n in self.answers.items()
        ]
        write("answers_total", "counter", "Answers by the step that gave them, and whether they are proved.", *told)
        write(
            "black_box_calls_total",
            "counter",
            "Items handed to the slow lane.",
            f"hasten_black_box_calls_total {self.asked}",
        )
        write(
            "failures_total", "counter", "Requests that could not be answered.", f"hasten_failures_total {self.failed}"
        )
        told = [f'hasten_responses_total{{status="{status}"}} {n}' for status, n in sorted(self.responses.items())]
        write("responses_total", "counter", "Responses by status.", *told)
        told = [line for lane, h in self.latency.items() for line in h.lines("hasten_seconds", f'lane="{lane}"')]
        write("seconds", "histogram", "Seconds from a checked request to its answer.", *told)
        write("batch_size", "histogram", "Requests answered at once.", *self.batches.lines("hasten_batch_size"))
        write("busy_seconds_total", "counter", "Seconds of the fast lane.", f"hasten_busy_seconds_total {self.busy}")
        agreement = state.get("agreement")
        if agreement is not None:
            limits = zip(("estimate", "low", "high"), agreement, strict=False)
            told = [f'hasten_agreement{{limit="{name}"}} {value}' for name, value in limits]
            write("agreement", "gauge", "Agreement with the black box of late, and its limits.", *told)
        for name in ("audits", "disagreements"):
            if name in state:
                write(f"{name}_total", "counter", f"{name.title()} so far.", f"hasten_{name}_total {state[name]}")
        if "trusted" in state:
            write("trusted", "gauge", "Whether own answers are trusted.", f"hasten_trusted {int(state['trusted'])}")
        for name, (about, value) in gauges.items():
            write(name, "gauge", about, f"hasten_{name} {value}")
        write("memory_bytes", "gauge", "Memory of the server.", f"hasten_memory_bytes {memory()}")
        write("start_time_seconds", "gauge", "When it started.", f"hasten_start_time_seconds {self.started}")
        return "\n".join(lines) + "\n"


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
