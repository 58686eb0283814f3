"""Natural batching: all that comes while one batch is answered, and as long as each turn of the loop brings more, is
the next batch; there is no timer.

A batch calls the kernels, writes one transaction to the journal, and only then hands over the replies; so whatever was
replied is in the journal. Short batches are answered in the event loop itself, because a second thread, each time it
wants the interpreter's lock, costs more than they do; long ones in a thread. Items that the fast lane leaves open go to
the slow lane, and come back into a batch.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from hasten.errors import HastenError
from hasten.journal import Journal
from hasten.serve.connection import Call, Full, HttpError, Reply
from hasten.serve.lanes import Lane
from hasten.serve.served import Columns, Found, Served, plain

log = logging.getLogger(__name__)
AT_ONCE = 256  # requests of a batch
SHORT = 4e-3  # processor seconds that a batch may take in the event loop
CLOSED = "The slow lane was closed."
MEASURED, WEIGHT = 8, 0.2  # one of so many batches says what an item takes; its weight in that


@dataclass(slots=True, eq=False)
class Request:
    """A request that was checked, and waits for its answer; one without parts is feedback, to be kept."""

    call: Call
    parts: Sequence[Any]
    n_items: int
    encode: Callable[[Request], Reply]
    found: list[Found] = field(default_factory=list)
    n_open: int = 0  # parts in the slow lane
    reply: Reply | BaseException | None = None
    slow: bool = False  # whether the slow lane was asked


@dataclass(slots=True)
class Batch:
    """Requests that were done together, for metrics and the page."""

    requests: list[Request]  # that are done
    sources: Counter[tuple[str, bool]] = field(default_factory=Counter)  # items by source, and whether they are proved
    n_asked: int = 0  # items handed to the slow lane


class Batcher:
    """The fast lane. Its methods are called in the event loop, but for those that answer a long batch."""

    def __init__(
        self,
        served: Served[Any],
        lane: Lane,
        journal: Journal | None,
        told: tuple[Callable[[Request], None], Callable[[Batch], None]],
        most: int,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.served, self.lane, self.journal, self.most, self.loop = served, lane, journal, most, loop
        self.answered, self.seen = told  # what is called with each request that is done, and with each batch
        self.waiting: set[Request] = set()  # all that is not answered yet
        self._next: list[Request] = []  # that came since the last batch, or are back from the slow lane
        self._n_before = 0  # how many there were one turn of the loop ago
        self._busy = False  # whether a batch is under way, or about to be
        self._n_batches = 0
        self._seconds = SHORT / AT_ONCE  # of the processor that an item takes
        self._thread = ThreadPoolExecutor(1, "hasten fast lane")

    def put(self, request: Request) -> None:
        """Queues a request."""
        if len(self.waiting) >= self.most:
            raise Full("requests are waiting")
        self.waiting.add(request)
        self._add(request)

    def _add(self, request: Request) -> None:
        self._next.append(request)
        if not self._busy:
            self._busy = True
            self.loop.call_soon(self._begin)

    def _begin(self) -> None:
        """Answers what came, once a turn of the loop brings no more."""
        if self._n_before < len(self._next) < AT_ONCE:
            self._n_before = len(self._next)
            self.loop.call_soon(self._begin)
            return
        self._n_before = 0
        batch, self._next = self._next[:AT_ONCE], self._next[AT_ONCE:]
        if sum([request.n_items for request in batch]) * self._seconds < SHORT:
            self._end(self._answer(batch))
        else:
            future = self._thread.submit(self._answer, batch)
            future.add_done_callback(lambda done: self._in_loop(self._end, done.result()))

    def _end(self, batch: Batch) -> None:
        for request in batch.requests:
            self.finish(request)
        try:
            self.seen(batch)
        except Exception:
            log.exception("A batch cannot be counted.")
        self._busy = bool(self._next)
        if self._busy:
            self.loop.call_soon(self._begin)

    def finish(self, request: Request) -> None:
        """Tells that a request is done, once."""
        if request in self.waiting:
            self.waiting.discard(request)
            self.answered(request)

    def follow(self, request: Request, future: Future[Any]) -> None:
        """Waits for the slow lane to end a request, as JSON."""
        self.waiting.add(request)

        def end(done: Future[Any]) -> None:
            error = RuntimeError(CLOSED) if done.cancelled() else done.exception()
            request.reply = error or Reply(msgspec.json.encode(done.result()))
            self._in_loop(self.finish, request)

        future.add_done_callback(end)

    def _in_loop(self, do: Callable[..., Any], *args: Any) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(do, *args)

    def close(self) -> None:
        """Ends its thread."""
        self._thread.shutdown()

    # -- in the loop, or in the thread ------------------------------------------------------------------

    def _answer(self, requests: list[Request]) -> Batch:
        batch, self._n_batches = Batch([]), self._n_batches + 1
        began = 0.0 if self._n_batches % MEASURED else time.thread_time()  # a call of the system, which costs some
        new = [request for request in requests if not request.found and request.parts]
        try:
            self._quick(new)
            batch.n_asked = sum([self._hand_over(request) for request in new])
            batch.requests = [request for request in requests if not request.n_open]
            self._encode(batch)
            if self.journal is not None:
                kept = batch.requests
                if self.served.keeps:  # by itself, before it replies
                    kept = [request for request in kept if not request.parts]
                self._keep(self.journal, kept)
        except Exception as error:  # it is our mistake; nobody shall wait for ever
            log.exception("A batch cannot be answered.")
            batch.requests = requests
            for request in requests:
                request.reply = error
        n_items = sum([request.n_items for request in new])
        if began and n_items:
            self._seconds += WEIGHT * ((time.thread_time() - began) / n_items - self._seconds)
        return batch

    def _quick(self, new: list[Request]) -> None:
        """Answers requests together; if that fails, one by one, so that only one that is to blame fails."""
        if not new:
            return
        try:
            found = iter(self.served.quick([part for request in new for part in request.parts]))
            for request in new:
                request.found = [next(found) for _ in request.parts]
        except Exception as error:
            if len(new) > 1:
                for request in new:
                    self._quick([request])
                return
            if not isinstance(error, HastenError):
                log.exception("A request cannot be answered.", extra={"id": new[0].call.id.decode()})
            new[0].reply = error

    def _hand_over(self, request: Request) -> int:
        """Hands what is open to the slow lane; returns how many items."""
        n_items = 0
        for part, found in zip(request.parts, request.found, strict=False):
            if len(found.open) and request.reply is None:
                try:
                    future = self.lane.ask(part, found.open)
                except HttpError as error:
                    request.reply = error
                    continue
                request.n_open, request.slow, n_items = request.n_open + 1, True, n_items + len(found.open)
                future.add_done_callback(partial(self._in_loop, self._came, request, found))
        return n_items

    def _came(self, request: Request, found: Found, future: Future[Columns]) -> None:
        """Takes in what the slow lane answered."""
        error = RuntimeError(CLOSED) if future.cancelled() else future.exception()
        if error is not None:
            request.reply = error
        elif request.reply is None:
            found.merge(future.result())
        request.n_open -= 1
        if not request.n_open:
            self._add(request)

    def _encode(self, batch: Batch) -> None:
        for request in batch.requests:
            if request.reply is not None:
                continue
            try:
                request.reply = request.encode(request)
            except Exception as error:
                log.exception("A reply cannot be written.", extra={"id": request.call.id.decode()})
                request.reply = error
                continue
            for found in request.found:
                if found.n == 1:
                    batch.sources[found.columns["source"][found.at], found.columns["proved"][found.at]] += 1
                else:
                    batch.sources.update(
                        zip(*(plain(found.column(name)) for name in ("source", "proved")), strict=True)
                    )

    def _keep(self, journal: Journal, done: list[Request]) -> None:
        """Writes what was answered to the journal; a request that cannot be kept is not answered."""
        kept = [request for request in done if not isinstance(request.reply, BaseException)]
        try:
            if kept:
                journal.write(map(_row, kept))
        except Exception as error:
            log.error("The journal cannot be written: %s", error)
            for request in kept:
                why = "The journal cannot be written, so nobody may have the answer; the log of the server says more."
                request.reply = HttpError(503, why)


def _row(request: Request) -> tuple[str, dict[str, str]]:
    data = {"id": request.call.id.decode(), "input": request.call.body.decode()}
    if not request.parts:
        return "feedback", data
    assert isinstance(request.reply, Reply)
    data["answer"] = "" if request.reply.headers else request.reply.body.decode()  # but for tensors in binary
    return "asked" if request.slow else "given", data
