"""The server: one event loop (uvloop), from the address it listens on to the last answer, and its log."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import resource
import signal
import socket
import sys
import time
from contextlib import suppress
from typing import Any

import msgspec
import uvloop

from hasten.errors import ProblemError
from hasten.serve.app import App
from hasten.serve.connection import Connection

log = logging.getLogger("hasten.serve")
SWEEP = 0.5  # seconds between two looks for what takes too long
WAIT = 0.02  # seconds between two looks for the last answers
BACKLOG = 2048  # connections that the system holds until they are accepted


def run(app: App, address: socket.socket) -> None:
    """Serves until SIGTERM or Ctrl-C, then finishes what was accepted; a second one ends at once."""
    with suppress(ValueError, OSError):  # as many connections as the system allows
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    uvloop.run(_serve(app, address))


async def _serve(app: App, address: socket.socket) -> None:
    loop, asked, connections = asyncio.get_running_loop(), asyncio.Semaphore(0), set[Connection]()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, asked.release)
    app.start(loop)
    server = await loop.create_server(
        lambda: Connection(app, app.limits, connections),  # type: ignore[arg-type, return-value]
        sock=address,
        backlog=BACKLOG,
    )
    host, port = address.getsockname()[:2]
    log.info("Listening.", extra={"host": host, "port": port, "model": app.served.name})

    async def told(seconds: float) -> bool:
        """Waits to be asked to end; returns whether that came, and looks for what takes too long."""
        with suppress(TimeoutError):
            await asyncio.wait_for(asked.acquire(), seconds)
            return True
        for each in list(connections):
            each.sweep(time.monotonic())
        app.sweep()
        return False

    while not await told(SWEEP):
        pass
    server.close()
    end = time.monotonic() + app.limits.seconds
    for each in list(connections):
        each.finish()
    while connections and time.monotonic() < end and not await told(WAIT):
        pass
    await asyncio.to_thread(app.close)
    log.info("Ended.")


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


def taken(host: str, port: int) -> socket.socket:
    """Takes an address, before a model is loaded for it."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        why = str(error.strerror).partition(" (")[0]
        raise ProblemError(
            f"Nobody can listen on {host}, port {port}: {why}. Give another --host or --port; port 0 takes a free one."
        ) from None
