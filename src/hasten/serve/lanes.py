"""The slow lane: black boxes, and explanations, which take long and may hold the interpreter's lock.

They run in a bounded number of processes beside the server, niced, started by a fork server; so an answer of the fast
lane never waits for one. A model whose state the answers change is asked in threads of the server instead; if its black
box is a function, that is called in the processes.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from hasten.model.problem import Problem
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.serve.connection import AGAIN, Full, HttpError
from hasten.serve.served import Columns, Served
from hasten.support.environment import named
from hasten.support.workers import end_with_parent
from hasten.trace.events import Trace

log = logging.getLogger(__name__)
PATIENCE = 2.0  # times the seconds of a request after which a process that answers is killed


class Lane:
    """Asks black boxes; `most` requests may wait, `seconds` is what each may take."""

    def __init__(
        self, served: Served[Any], load: Callable[[], Served[Any]], processes: int, most: int, seconds: float
    ) -> None:
        self.served, self.processes, self.most, self.seconds = served, processes, most, seconds
        self.load: Callable[[], Any] = load if served.box is None else partial(named, served.box, "extractor:label")
        self._threads = ThreadPoolExecutor(processes, "hasten slow lane") if served.stateful else None
        self._lock, self._running = threading.Lock(), dict[Future[Any], float]()
        self._pool: ProcessPoolExecutor | None = None

    def __len__(self) -> int:
        return len(self._running)

    def ask(self, part: Any, items: Sequence[int]) -> Future[Columns]:
        """Answers some items of a part."""
        if self._threads is not None:
            return self._noted(self._threads.submit(self.served.ask, part, items, self.seconds))
        return self._in_process(_ask, part, items, self.seconds)

    def explain(self, problem: Problem, names: Sequence[str] | None) -> Future[dict[str, Any]]:
        """Searches and proves a problem slowly, and tells the steps."""
        return self._in_process(explain, problem, names)

    def call(self, text: Any) -> Any:
        """Calls a black box that is a function, and waits for it."""
        return self._in_process(_call, text).result()

    def start(self) -> list[Future[Any]]:
        """Starts the processes, so that the first request does not wait for them; each says whether it can answer."""
        return [self._in_process(_loaded) for _ in range(self.processes)]

    def _in_process(self, do: Callable[..., Any], *args: Any) -> Future[Any]:
        with self._lock:
            if self._pool is None:
                context = multiprocessing.get_context("forkserver")
                context.set_forkserver_preload(["hasten.serve.loading"])
                self._pool = ProcessPoolExecutor(self.processes, context, _begin, (self.load,))
            pool = self._pool
            try:
                return self._noted(pool.submit(do, *args))
            except RuntimeError:  # it broke; the next request starts another
                self._pool = None
                raise HttpError(503, "The processes of the slow lane ended. Ask again later.", AGAIN) from None

    def _noted(self, future: Future[Any]) -> Future[Any]:
        if len(self._running) >= self.most:
            future.cancel()
            raise Full("requests wait for the black box")
        self._running[future] = time.monotonic()
        future.add_done_callback(self._ended)
        return future

    def _ended(self, future: Future[Any]) -> None:
        self._running.pop(future, None)
        if not future.cancelled() and isinstance(future.exception(), RuntimeError):
            with self._lock:
                self._pool = None

    def sweep(self) -> None:
        """Kills the processes if one has been at a request for too long; those that wait there fail with it."""
        limit = time.monotonic() - PATIENCE * self.seconds
        if any(began < limit and future.running() for future, began in list(self._running.items())):
            log.error("A black box did not answer in time; the processes that ask it are started again.")
            self._kill()

    def _kill(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            for process in list((pool._processes or {}).values()):
                process.kill()
            pool.shutdown(wait=False, cancel_futures=True)

    def close(self) -> None:
        """Ends the processes."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._kill()


_LOADED: Any  # the model, or the black box


def _begin(load: Callable[[], Any]) -> None:
    """Begins a process: it loads the model, gives way to the server, and ends with it."""
    global _LOADED
    threading.Thread(target=end_with_parent, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(10)
    try:
        _LOADED = load()
    except Exception as error:  # whoever asks is told
        _LOADED = error


def _loaded() -> None:
    """Raises why nothing could be loaded."""
    if isinstance(_LOADED, Exception):
        raise _LOADED


def _ask(part: Any, items: Sequence[int], seconds: float) -> Columns:
    _loaded()
    columns: Columns = _LOADED.ask(part, items, seconds)
    return columns


def _call(text: Any) -> Any:
    _loaded()
    return _LOADED(text)


def explain(problem: Problem, names: Sequence[str] | None) -> dict[str, Any]:
    """Returns a greedy search and a proof of a problem: as plain steps, in words and drawn."""
    proof = Certifier().trace(problem, names=names)
    best = proof.solution
    reference = best if best is not None and best.values is not None else None
    traces: dict[str, Trace] = {"search": greedy().trace(problem, reference, names=names), "proof": proof}
    return {
        **{name: {"text": str(trace), "steps": trace.to_dict()} for name, trace in traces.items()},
        "html": "".join(trace._repr_html_() for trace in traces.values()),
    }
