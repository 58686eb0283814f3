"""A request as it comes in, within limits, and the errors that it may be answered with."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from hasten.errors import HastenError


@dataclass(frozen=True)
class Limits:
    """What a server takes.

    body
        Bytes of a request.
    header
        Bytes of its headers.
    seconds
        That a request may take, from its first byte to its answer.
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


class HttpError(Exception):
    """A request that is answered with an error; `str` says what is wrong."""

    def __init__(self, status: int, why: str, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers


class Disconnected(Exception):  # noqa: N818
    """The client went away."""


class Call:
    """A request as it comes in."""

    __slots__ = ("_receive", "began", "headers", "id", "limits", "scope")

    def __init__(
        self, scope: Mapping[str, Any], headers: dict[bytes, bytes], receive: Any, id: str, limits: Limits
    ) -> None:
        self.scope, self.headers, self._receive, self.id, self.limits = scope, headers, receive, id, limits
        self.began = time.monotonic()

    async def body(self) -> bytes:
        """Returns the body, if it is not too large."""
        most, length = self.limits.body, self.headers.get(b"content-length", b"0")
        if b"content-encoding" in self.headers:
            raise HttpError(415, "Send the body as it is, without an encoding.", CLOSE)
        if not length.isdigit() or int(length) > most:
            raise HttpError(413, f"A body has at most {most:,} bytes.", CLOSE)
        message = await self._receive()
        body: bytes = message.get("body", b"")
        if message.get("more_body"):
            chunks, size = [body], len(body)
            while message.get("more_body"):
                message = await self._receive()
                chunks.append(message.get("body", b""))
                size += len(chunks[-1])
                if size > most:
                    raise HttpError(413, f"A body has at most {most:,} bytes.", CLOSE)
            body = b"".join(chunks)
        if message["type"] == "http.disconnect":
            raise Disconnected
        return body


CLOSE = (b"connection", b"close")


def checked(read: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """Returns what a reader makes of a request; what is wrong with that is told to the client."""
    try:
        return read(*args, **settings)
    except (HastenError, msgspec.DecodeError, UnicodeError) as error:
        raise HttpError(400, str(error)) from None
    except RecursionError:
        raise HttpError(400, "The body is nested too deeply.") from None


def told(error: object) -> bytes:
    """Returns an error as JSON."""
    return msgspec.json.encode({"error": str(error)})
