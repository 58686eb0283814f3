"""Natural batching: one thread answers all that came while it answered the batch before; there is no timer.

The thread calls the kernels, writes one transaction to the journal, and hands over the replies; so whatever was
replied is in the journal. Items that the fast lane leaves open go to the slow lane, and come back to the same thread.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, Protocol

import numpy as np

from hasten.errors import HastenError
from hasten.serve.lanes import Full, Lane
from hasten.serve.served import Columns, Found, Served, merge

log = logging.getLogger(__name__)
AT_ONCE = 256  # requests of a batch


@dataclass(slots=True, eq=False)
class Request:
    """A request that was checked, and waits for its answer; `encode` makes the body of the reply."""

    id: str
    parts: Sequence[Any]
    body: bytes
    encode: Callable[[Request], tuple[bytes, Sequence[tuple[bytes, bytes]]]]
    future: asyncio.Future[Any]
    began: float
    found: list[Found] = field(default_factory=list)
    n_open: int = 0  # parts in the slow lane
    reply: Any = None  # the encoded reply, or an error
    slow: bool = False


class Journaling(Protocol):
    """Keeps rows: a kind, the number of a request, and bytes of JSON."""

    def write(self, rows: Sequence[tuple[str, str, bytes]]) -> None:
        """Writes rows in one transaction."""

    def close(self) -> None:
        """Ends it."""


@dataclass(slots=True)
class Batch:
    """What was done at once, for metrics and the page."""

    when: float
    seconds: float
    requests: list[Request]
    sources: Counter[tuple[str, bool]]  # items by source, and whether they are proved
    n_asked: int  # items handed to the slow lane


class Batcher:
    """The fast lane: a queue and a thread."""

    def __init__(
        self,
        served: Served[Any],
        lane: Lane,
        journal: Journaling | None,
        seen: Callable[[Batch], None],
        most: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.served, self.lane, self.journal, self.seen, self.most, self.loop = served, lane, journal, seen, most, loop
        self._queue: SimpleQueue[Any] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="hasten fast lane", daemon=True)
        self.waiting: set[Request] = set()  # of the loop: all that is not answered yet
        self._thread.start()

    def put(self, request: Request) -> None:
        """Queues a request; called in the loop."""
        if len(self.waiting) >= self.most:
            raise Full
        self.waiting.add(request)
        self._queue.put(request)

    def note(self, kind: str, id: str, data: bytes) -> asyncio.Future[Any]:
        """Writes a row to the journal; the future is done once it is there."""
        request = Request(id, (), data, lambda _: (kind.encode(), ()), self.loop.create_future(), time.monotonic())
        self.waiting.add(request)
        self._queue.put(request)
        return request.future

    def close(self) -> None:
        """Answers what is queued, then ends."""
        self._queue.put(None)
        self._thread.join(5.0)

    # -- in the thread ----------------------------------------------------------------------------------

    def _work(self) -> None:
        closing = False
        while not closing:
            got = [self._queue.get()]
            try:
                while len(got) < AT_ONCE:
                    got.append(self._queue.get_nowait())
            except Empty:
                pass
            closing = None in got
            new, came = [x for x in got if isinstance(x, Request)], [x for x in got if isinstance(x, Came)]
            try:
                self._answer(new, came)
            except BaseException as error:
                log.exception("The fast lane failed on a batch.")
                for request in (failed := [*new, *(each.request for each in came)]):
                    request.reply = error
                self._deliver(Batch(time.time(), 0.0, failed, Counter(), 0))

    def _answer(self, new: list[Request], came: list[Came]) -> None:
        began, sources = time.perf_counter(), Counter[tuple[str, bool]]()
        self._quick(new)
        n_asked = sum(map(self._hand_over, new))
        done = [request for request in new if not request.n_open]
        for each in came:
            each.take()
            if not each.request.n_open:
                done.append(each.request)
        for request in done:
            if request.reply is None:
                try:
                    request.reply = request.encode(request)
                    for found in request.found:
                        sources.update(
                            zip(*(listed(found.columns[name]) for name in ("source", "proved")), strict=True)
                        )
                except Exception as error:
                    log.exception("A reply cannot be written.")
                    request.reply = error
        if self.journal is not None:
            self._keep(done)
        self._deliver(Batch(time.time(), time.perf_counter() - began, done, sources, n_asked))

    def _quick(self, new: list[Request]) -> None:
        """Answers requests together; if that fails, one by one, so that only one that is to blame fails."""
        parts = [part for request in new for part in request.parts]
        if not parts:
            return
        try:
            found = iter(self.served.quick(parts))
            for request in new:
                request.found = [next(found) for _ in request.parts]
        except Exception as error:
            if len(new) > 1:
                for request in new:
                    self._quick([request])
                return
            if not isinstance(error, HastenError):
                log.exception("Request %s cannot be answered.", new[0].id)
            new[0].reply, new[0].found = error, [Found({})]

    def _hand_over(self, request: Request) -> int:
        """Hands what is open to the slow lane; returns how many items."""
        n_items = 0
        for n, found in enumerate(request.found):
            if not len(found.open):
                continue
            try:
                future = self.lane.ask(request.parts[n], found.open)
            except (Full, RuntimeError) as error:
                request.reply = error
                continue
            request.n_open, request.slow, n_items = request.n_open + 1, True, n_items + len(found.open)
            future.add_done_callback(partial(self._came, request, n))
        return n_items

    def _came(self, request: Request, n: int, future: Future[Columns]) -> None:
        self._queue.put(Came(request, n, future))

    def _keep(self, done: list[Request]) -> None:
        """Writes what was answered to the journal; a request that cannot be kept is not answered."""
        assert self.journal is not None
        rows = []
        for request in done:
            if not isinstance(request.reply, BaseException):
                kind = "answer" if request.parts else request.reply[0].decode()
                rows.append((kind, request.id, request.body if not request.parts else _row(request)))
        if rows:
            try:
                self.journal.write(rows)
            except Exception as error:
                log.exception("The journal cannot be written.")
                for request in done:
                    request.reply = error

    def _deliver(self, batch: Batch) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(self._reply, batch)

    # -- in the loop ------------------------------------------------------------------------------------

    def _reply(self, batch: Batch) -> None:
        for request in batch.requests:
            self.waiting.discard(request)
            if not request.future.done():
                request.future.set_result(request.reply)
        self.seen(batch)


def _row(request: Request) -> bytes:
    return b'{"input":%b,"answer":%b}' % (request.body, request.reply[0])


class Came(NamedTuple):
    """An answer of the slow lane to a part of a request."""

    request: Request
    n: int
    future: Future[Columns]

    def take(self) -> None:
        """Puts the answer in its place."""
        request, future = self.request, self.future
        request.n_open -= 1
        error = RuntimeError("The slow lane was closed.") if future.cancelled() else future.exception()
        if error is not None:
            request.reply = error
        elif request.reply is None:
            merge(request.found[self.n], future.result())


def listed(column: Any) -> list[Any]:
    """Returns a column as a list of plain values."""
    found: list[Any] = column.tolist() if isinstance(column, np.ndarray) else column
    return found
