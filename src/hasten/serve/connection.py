"""HTTP/1.1: connections whose requests are read whole, within limits of size and time, and answered in order.

httptools parses. The app gets a `Call` once all of it is there, and answers it by `Connection.send`, at once or later.
A client that asks for too much is told so, and its connection ends; `sweep` cuts off those that are too slow.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import unquote_to_bytes

import httptools
import msgspec

AGAIN = b"retry-after: 1\r\n"
KEPT = 60.0  # seconds that a connection may be idle between requests
LINGER = 2.0  # seconds in which a client that was refused may read why
STATUS = {status.value: f"HTTP/1.1 {status.value} {status.phrase}".encode() for status in HTTPStatus}


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    body
        Bytes of a request.
    header
        Bytes of its headers.
    seconds
        That a request may take to come, and again to be answered.
    waiting
        Requests that are not answered yet; more are told to come again.
    asking
        Requests that wait for the black box.
    connections
        At the same time.
    """

    body: int = 16 * 2**20
    header: int = 16 * 2**10
    seconds: float = 30.0
    waiting: int = 4096
    asking: int = 256
    connections: int = 4096


class Reply(NamedTuple):
    """An answer; `headers` are whole lines."""

    body: bytes
    status: int = 200
    kind: bytes = b"application/json"
    headers: bytes = b""


class HttpError(Exception):
    """A request that is answered with an error; `str` says what is wrong."""

    def __init__(self, status: int, why: str, headers: bytes = b"") -> None:
        super().__init__(why)
        self.reply = Reply(msgspec.json.encode({"error": why}), status, headers=headers)


class Full(HttpError):  # noqa: N818
    """There is no room in a queue."""

    def __init__(self, of: str) -> None:
        super().__init__(503, f"Too many {of}. Ask again later.", AGAIN)


class Call:
    """A request. One that is refused before it is whole has an `error`, and ends its connection."""

    __slots__ = ("began", "body", "close", "connection", "error", "headers", "id", "method", "path", "query")

    def __init__(self, connection: Connection) -> None:
        self.connection, self.headers = connection, dict[bytes, bytes]()
        self.method, self.path, self.query, self.body, self.id = b"", "", b"", b"", b""
        self.began, self.close = 0.0, True
        self.error: HttpError | None = None


class Connection:
    """One connection, as an `asyncio.Protocol`; `app` answers its calls, one after the other."""

    def __init__(self, app: Callable[[Call], None], limits: Limits, others: set[Connection]) -> None:
        self.app, self.limits, self.others = app, limits, others
        self.parser = httptools.HttpRequestParser(self)
        self.calls = deque[Call]()  # that are whole, but not answered yet
        self.answering: Call | None = None
        self.reading: Call | None = None
        self.refused = self.ending = self.paused = self.stopped = False
        self.deadline = time.monotonic() + limits.seconds  # until which its client should have done something

    # -- bytes ------------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for a request."""
        self.transport, self._loop = transport, asyncio.get_running_loop()
        self.others.add(self)
        if len(self.others) > self.limits.connections:
            self.refuse(503, "Too many connections. Ask again later.")

    def data_received(self, data: bytes) -> None:
        """Reads on."""
        if self.refused:
            return
        self._n_done = 0
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            pass  # whatever comes in the other protocol is not read: the connection ends
        except httptools.HttpParserError:
            self.refuse(400, "This is not HTTP/1.1.")
        if self.reading is not None and not self._whole_head:
            self._n_read += 0 if self._n_done else len(data)
            self._check_head(self._n_read)
        if self.calls and not self.stopped:  # it asks faster than it is answered
            self.stopped = True
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        """Stays open for answers under way."""
        if self.answering is None:
            return False
        self.ending = True
        return True

    def connection_lost(self, error: Exception | None) -> None:
        """Forgets what nobody will read."""
        self.others.discard(self)
        self.calls.clear()
        self.ending = True

    def pause_writing(self) -> None:
        """Begins to wait for the client to read."""
        self.paused, self.deadline = True, time.monotonic() + self.limits.seconds

    def resume_writing(self) -> None:
        """Goes on answering."""
        self.paused, self.deadline = False, time.monotonic() + KEPT
        self._answer()

    # -- what the parser finds --------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """Begins a request."""
        self.reading, self.deadline = Call(self), time.monotonic() + self.limits.seconds
        self._url, self._chunks, self._size = b"", list[bytes](), 0
        self._n_head = self._n_read = 0
        self._whole_head = False

    def on_url(self, url: bytes) -> None:
        """Takes in a part of the address."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Takes in a header."""
        self._n_head += len(name) + len(value) + 4
        if self.reading is not None:
            name = name.lower()
            if name == b"host" and name in self.reading.headers:
                self.refuse(400, "Name one Host.")
            else:
                self.reading.headers[name] = value

    def on_headers_complete(self) -> None:
        """Checks how much is to come."""
        call = self.reading
        if call is None:
            return
        headers, self._whole_head = call.headers, True
        self._check_head(len(self._url) + self._n_head)
        call.method = self.parser.get_method()
        keeps = self.parser.should_keep_alive() and not self.parser.should_upgrade()
        call.close = self.parser.get_http_version() != "1.1" or not keeps
        if self._url[:1] != b"/":
            url = httptools.parse_url(self._url)
            path, call.query = url.path or b"/", url.query or b""
        else:
            path, _, call.query = self._url.partition(b"?")
        call.path = (unquote_to_bytes(path) if b"%" in path else path).decode(errors="replace")
        if int(headers.get(b"content-length", b"0")) > self.limits.body:
            self._refuse_body()
        elif headers.get(b"expect", b"").lower() == b"100-continue" and self.answering is None and not self.refused:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_body(self, body: bytes) -> None:
        """Takes in a part of the body."""
        self._chunks.append(body)
        self._size += len(body)
        if self._size > self.limits.body:
            self._refuse_body()

    def on_message_complete(self) -> None:
        """Hands the request over."""
        call, self.reading, self._n_done = self.reading, None, 1
        if call is not None and not self.refused:
            call.body, call.began, self.deadline = b"".join(self._chunks), time.monotonic(), math.inf
            self.calls.append(call)
            self._answer()

    def _check_head(self, n: int) -> None:
        if n > self.limits.header:
            self.refuse(431, f"Address and headers have at most {self.limits.header:,} bytes.")

    def _refuse_body(self) -> None:
        self.refuse(413, f"A body has at most {self.limits.body:,} bytes.")

    # -- answers ----------------------------------------------------------------------------------------

    def refuse(self, status: int, why: str) -> None:
        """Ends the connection with an error, after the answers to all calls before it."""
        if not self.refused:
            call, self.refused, self.reading = self.reading or Call(self), True, None
            call.close, call.error = True, HttpError(status, why)
            self.calls.append(call)
            self._answer()

    def _answer(self) -> None:
        """Hands the next call to the app."""
        if self.calls and self.answering is None and not self.paused:
            self.answering = self.calls.popleft()
            if self.stopped and not self.calls:
                self.stopped = False
                self.transport.resume_reading()
            self.app(self.answering)

    def send(self, call: Call, reply: Reply) -> None:
        """Answers the call that the app was given."""
        transport = self.transport
        if call is not self.answering or transport.is_closing():
            return
        body = b"" if call.method == b"HEAD" else reply.body
        close = b"connection: close\r\n" if call.close or (self.ending and not self.calls) else b""
        transport.write(
            b"%b\r\ncontent-type: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b%b\r\n%b"
            % (STATUS[reply.status], reply.kind, len(reply.body), call.id, reply.headers, close, body)
        )
        self.answering = None
        if call.error is not None:  # what it still sends is thrown away, so that it can read why
            self.deadline = time.monotonic() + LINGER
            transport.write_eof()
        elif close:
            transport.close()
        elif self.calls:
            self._loop.call_soon(self._answer)
        elif not self.paused and self.reading is None:
            self.deadline = time.monotonic() + KEPT

    # -- the end ----------------------------------------------------------------------------------------

    def sweep(self, now: float) -> None:
        """Cuts off a client that should have done something by now."""
        if now > self.deadline:
            if self.reading is not None and not self.paused:
                self.refuse(408, f"A request takes at most {self.limits.seconds:g} seconds to come.")
            elif self.paused or self.refused:
                self.transport.abort()
            else:
                self.transport.close()

    def finish(self) -> None:
        """Ends once all calls are answered."""
        self.ending = True
        if self.answering is None:
            self.transport.close()
