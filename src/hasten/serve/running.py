"""The server: uvicorn with limits of its own, from the first byte of a request to the last of its answer."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from hasten.errors import ProblemError
from hasten.serve.app import App

log = logging.getLogger("hasten.serve")
LARGE = b"431 Request Header Fields Too Large"
SWEEP = 0.5  # seconds between two looks for what takes too long


class Guarded(HttpToolsProtocol):
    """A connection whose client must be done with its headers, its body, and reading the answer, in limited time."""

    limits: Any = None
    since: float | None = None  # when it last began to wait for its client
    n_header = 0  # bytes of headers so far; -1 once all are there

    def connection_made(self, transport: Any) -> None:
        """Begins to wait for headers."""
        super().connection_made(transport)
        self.since = self.loop.time()

    def on_message_begin(self) -> None:
        """Begins a request."""
        super().on_message_begin()
        self.since, self.n_header = self.loop.time(), 0

    def data_received(self, data: bytes) -> None:
        """Reads on; counts the bytes until all headers are there."""
        super().data_received(data)
        if self.since is not None and self.n_header >= 0:
            self.n_header += len(data)
            if self.n_header > self.limits.header:
                self.refuse(LARGE)

    def on_headers_complete(self) -> None:
        """Begins to answer, unless the headers are too large."""
        self.n_header = len(self.url) + sum([len(name) + len(value) + 4 for name, value in self.headers])
        if self.n_header > self.limits.header:
            raise ValueError("The headers are too large.")
        self.n_header = -1
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuses what is no request, and headers that are too large."""
        self.refuse(LARGE if self.n_header > self.limits.header else b"400 Bad Request")

    def on_message_complete(self) -> None:
        """Ends a request: from now on its client waits for us."""
        super().on_message_complete()
        self.since = None

    def pause_writing(self) -> None:
        """Begins to wait for the client to read."""
        super().pause_writing()
        self.since = self.loop.time()

    def resume_writing(self) -> None:
        """Goes on writing."""
        super().resume_writing()
        self.since = None

    def refuse(self, status: bytes) -> None:
        """Tells the client that it is cut off, unless an answer is under way."""
        if self.cycle is None or not self.cycle.response_started or self.cycle.response_complete:
            self.transport.write(b"HTTP/1.1 %b\r\ncontent-length: 0\r\nconnection: close\r\n\r\n" % status)
            self.transport.close()
        else:
            self.transport.abort()


class Server(uvicorn.Server):
    """uvicorn's server for one app: it starts and ends its lanes, and cuts off slow clients."""

    def __init__(self, app: App, host: str, port: int) -> None:
        protocol = type("Guarded", (Guarded,), {"limits": app.limits})
        super().__init__(
            uvicorn.Config(
                app,
                host=host,
                port=port,
                loop="uvloop",
                http=protocol,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                date_header=False,
                limit_concurrency=app.limits.connections,
                timeout_keep_alive=60,
                timeout_graceful_shutdown=max(1, round(app.limits.seconds)),
                backlog=2048,
            )
        )
        self.app = app

    async def startup(self, sockets: Any = None) -> None:
        """Listens, warms up, and says where it is."""
        self.app.start(asyncio.get_running_loop())
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        log.info("Listening.", extra={"host": host, "port": port, "model": self.app.served.name})
        self._sweeper = asyncio.create_task(self._sweep())

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            limit = asyncio.get_running_loop().time() - self.app.limits.seconds
            for connection in list(self.server_state.connections):
                if isinstance(connection, Guarded) and connection.since is not None and connection.since < limit:
                    connection.refuse(b"408 Request Timeout")
            self.app.sweep()

    async def shutdown(self, sockets: Any = None) -> None:
        """Finishes what was accepted, then ends."""
        await super().shutdown(sockets)
        self._sweeper.cancel()
        await asyncio.to_thread(self.app.close)
        log.info("Ended.")

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Ends gracefully on the first SIGTERM or Ctrl-C, with success; at once on the second."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def handle_exit(self, sig: int, frame: Any) -> None:
        """Begins to end."""
        self.force_exit = self.should_exit
        self.should_exit = True


class JsonLines(logging.Formatter):
    """Writes what is logged as lines of JSON."""

    extra = ("id", "path", "status", "seconds", "host", "port", "model")

    def format(self, record: logging.LogRecord) -> str:
        """Returns a line."""
        line: dict[str, Any] = {
            "at": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        line |= {"message": record.getMessage()} | {k: getattr(record, k) for k in self.extra if hasattr(record, k)}
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()


def log_as_json(level: int = logging.INFO) -> None:
    """Writes all logs to standard error, as lines of JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=level, handlers=[handler], force=True)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)


def check_address(host: str, token: str | None) -> None:
    """Refuses to serve others without a token."""
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    if not local and token is None:
        raise ProblemError(
            f"{host} can be reached by others, so clients must show a token. Give one: --token-file FILE, or the "
            "environment variable HASTEN_TOKEN."
        )
