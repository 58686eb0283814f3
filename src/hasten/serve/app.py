"""The application: it routes requests, checks them, and answers them, at once or when their batch is done."""

from __future__ import annotations

import asyncio
import gc
import hmac
import itertools
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import parse_qs

import msgspec

import hasten
from hasten.errors import HastenError
from hasten.journal import Journal
from hasten.serve import oip
from hasten.serve.batching import Batch, Batcher, Request
from hasten.serve.connection import AGAIN, Call, HttpError, Limits, Reply
from hasten.serve.lanes import Lane
from hasten.serve.lifetime import PAGE
from hasten.serve.metrics import Metrics
from hasten.serve.openapi import describe
from hasten.serve.served import Served
from hasten.serve.telling import Teller

log = logging.getLogger("hasten.serve")
TYPES = {"html": b"text/html; charset=utf-8", "js": b"text/javascript", "css": b"text/css"}
POLICY = (
    b"x-content-type-options: nosniff\r\ncontent-security-policy: default-src 'none'; script-src 'self'; "
    b"style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'\r\n"
)
LOCAL = re.compile(rb"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?")
NUMBER = re.compile(rb'\s*\{\s*"number"\s*:\s*(\d{1,15})\s*\}\s*')  # of an input that the page shows
Handler = Callable[[Call], Reply | None]


class App:
    """Everything that a server of one model answers."""

    def __init__(
        self,
        served: Served[Any],
        load: Callable[[], Served[Any]],
        *,
        limits: Limits = Limits(),  # noqa: B008, it is frozen
        token: str | None = None,
        journal: Journal | None = None,
        processes: int = 1,
    ) -> None:
        self.served, self.limits, self.journal = served, limits, journal
        self.token = None if token is None else f"Bearer {token}".encode()
        self.lane = Lane(served, load, processes, limits.asking, limits.seconds)
        served.use(self.lane.call)
        self.metrics = Metrics()
        self.teller = Teller(served)
        self.ready = False
        self.failed: BaseException | None = None  # why it will never be ready
        self.batcher: Batcher  # once the loop runs
        self._ids, self._run = itertools.count(1), secrets.token_hex(4).encode()
        name, about = f"/v2/models/{served.name}", {"name": "hasten", "version": hasten.__version__}
        of_version = f"{name}/versions/{served.version}"
        self.routes: dict[str, tuple[bytes, Handler]] = {
            "/predict": (b"POST", self.predict),
            "/explain": (b"POST", self.explain),
            "/feedback": (b"POST", self.feedback),
            "/v2": (b"GET", lambda call: said(about | {"extensions": ["binary_tensor_data"]})),
            "/v2/health/live": (b"GET", lambda call: said({"live": True})),
            "/v2/health/ready": (b"GET", self.is_ready),
            "/openapi.json": (b"GET", lambda call: said(describe(served))),
            "/metrics": (b"GET", self.prometheus),
            "/lifetime": (b"GET", self.windows),
            **dict.fromkeys(("/", "/page.css", "/page.js"), (b"GET", self.page)),
        }
        for path in (name, of_version):
            self.routes |= {
                path: (b"GET", lambda call: said(oip.metadata(served, self.version))),
                f"{path}/ready": (b"GET", self.is_ready),
                f"{path}/infer": (b"POST", self.infer),
            }

    # -- the lifetime of the server ---------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts the fast lane, and warms up in a thread."""
        told = self._answered, self._seen
        self.batcher = Batcher(self.served, self.lane, self.journal, told, self.limits.waiting, loop)
        threading.Thread(target=self._warm, name="hasten warm-up", daemon=True).start()

    def _warm(self) -> None:
        began = time.perf_counter()
        try:
            warm(self.served)
            if self.served.box is not None:
                self.lane.start()[0].result()  # a function that is not there is told now
        except BaseException as error:
            self.failed = error
            log.exception("The model cannot answer.")
            return
        self.ready = True
        log.info("Ready.", extra={"seconds": round(time.perf_counter() - began, 3)})
        if self.served.box is None:
            self.lane.start()

    def close(self) -> None:
        """Ends the lanes and the journal, once all is answered."""
        self.batcher.close()
        self.lane.close()
        if self.journal is not None:
            self.journal.close()
        self.served.close()

    def sweep(self) -> None:
        """Gives up on requests that took too long; called now and then."""
        limit = time.monotonic() - self.limits.seconds
        for request in [each for each in self.batcher.waiting if each.call.began < limit]:
            request.reply = HttpError(504, "No answer in time. Ask again later.", AGAIN)
            self.batcher.finish(request)
        self.lane.sweep()
        self.teller.tell()

    def _seen(self, batch: Batch) -> None:
        now = time.monotonic()
        self.metrics.batch(batch, now)
        self.teller.seen(batch, now)

    # -- requests ---------------------------------------------------------------------------------------

    def __call__(self, call: Call) -> None:
        """Answers a request, or sees to it that it is answered later."""
        given = call.headers.get(b"x-request-id", b"")
        call.id = given if 0 < len(given) <= 64 and given.isalnum() else b"%b%x" % (self._run, next(self._ids))
        try:
            reply = self._handler(call)(call)
        except HttpError as error:
            reply = error.reply
        except Exception:
            log.exception("A request failed.", extra={"id": call.id.decode()})
            reply = HttpError(500, "This is our mistake; the log of the server says more.").reply
        if reply is not None:
            self._send(call, reply)

    def _send(self, call: Call, reply: Reply) -> None:
        self.metrics.responses[reply.status] += 1
        if reply.status >= 400 and "/health/" not in call.path:
            about = {"id": call.id.decode(), "path": call.path, "status": reply.status}
            log.warning(reply.body.decode(errors="replace"), extra=about)
        call.connection.send(call, reply)

    def _handler(self, call: Call) -> Handler:
        """Returns who answers a request, if it may be asked."""
        headers, path = call.headers, call.path
        if call.error is not None:
            raise call.error
        host = headers.get(b"host", b"localhost")
        if self.token is None:
            if not LOCAL.fullmatch(host):
                raise HttpError(421, "Without a token, this server answers to localhost alone.")
        elif not (
            path.startswith("/v2/health/") or hmac.compare_digest(headers.get(b"authorization", b""), self.token)
        ):
            raise HttpError(401, "Give the token: Authorization: Bearer …", b"www-authenticate: Bearer\r\n")
        origin = headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != host:
            raise HttpError(403, "Pages of other sites may not ask this server.")
        if path not in self.routes:
            raise HttpError(404, f"There is no {path[:80]!r}. /openapi.json has every address.")
        method, handler = self.routes[path]
        if call.method != method:
            raise HttpError(405, f"{path} takes {method.decode()}.", b"allow: %b\r\n" % method)
        if b"content-encoding" in headers:
            raise HttpError(415, "Send the body as it is, without an encoding.")
        return handler

    def _queue(self, call: Call, parts: Sequence[Any], encode: Callable[[Request], Reply]) -> None:
        """Queues parts that were checked."""
        self._check_ready()
        self.batcher.put(Request(call, parts, sum(map(self.served.size, parts)), encode))

    def _check_ready(self) -> None:
        if not self.ready:
            why = "kernels are being loaded" if self.failed is None else f"the model cannot answer: {self.failed}"
            raise HttpError(503, f"Not ready: {why}.", AGAIN)

    def _answered(self, request: Request) -> None:
        """Sends the reply of a request that was queued, or why there is none."""
        reply = request.reply
        if isinstance(reply, HastenError):
            reply = HttpError(422, str(reply))
        elif not isinstance(reply, Reply | HttpError):
            reply = HttpError(503, f"No answer: {type(reply).__name__}: {reply}", AGAIN)
        self._send(request.call, reply if isinstance(reply, Reply) else reply.reply)

    def predict(self, call: Call) -> None:
        """Answers one input in JSON, or a list of them."""
        parts, several = checked(self.served.parts, call.body)

        def encode(request: Request) -> Reply:
            told = [
                self.served.told(part, found.columns, at)
                for part, found in zip(parts, request.found, strict=True)
                for at in range(found.at, found.at + found.n)
            ]
            return Reply(msgspec.json.encode(told if several else told[0]))

        self._queue(call, parts, encode)

    def infer(self, call: Call) -> None:
        """Answers a request of the Open Inference Protocol."""
        parts, asked, call.body = checked(oip.read, self.served, call.body, call.headers.get(oip.LENGTH))
        self._queue(call, parts, lambda request: oip.write(self.served, asked, request.found, self.version))

    def explain(self, call: Call) -> None:
        """Tells how one input is answered."""
        body, number = call.body, NUMBER.fullmatch(call.body)
        if number is not None:
            given = self.teller.input(int(number[1]))
            if given is None:
                raise HttpError(404, "That input is gone, or cannot be explained.")
            body = msgspec.json.encode(given)
        parts, several = checked(self.served.parts, body)
        if several:
            raise HttpError(400, "Explain one input, not a list.")
        self._check_ready()
        problem, names = checked(self.served.problem, parts[0])
        self.batcher.follow(Request(call, (), 0, lambda request: Reply(b"")), self.lane.explain(problem, names))

    def feedback(self, call: Call) -> None:
        """Takes in what an answer should have been, and keeps it in the journal."""
        checked(msgspec.json.decode, call.body, type=dict[str, Any])
        if self.journal is None:
            raise HttpError(409, "Feedback needs a journal. Start the server with --journal FILE.")
        self._queue(call, (), lambda request: Reply(b'{"kept":true}', 202))

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """The version that answers now."""
        return str(self.served.state().get("version", self.served.version))

    def is_ready(self, call: Call) -> Reply:
        """Says whether kernels are compiled, so that it answers at once."""
        self._check_ready()
        return said({"ready": True})

    def prometheus(self, call: Call) -> Reply:
        """Tells Prometheus what was counted."""
        gauges = {
            "queue": ("Requests that are not answered yet.", float(len(self.batcher.waiting))),
            "slow_queue": ("Requests in the slow lane.", float(len(self.lane))),
            "ready": ("Whether it is ready.", float(self.ready)),
        }
        text = self.metrics.text(self.served.name, self.served.state(), gauges)
        return Reply(text.encode(), kind=b"text/plain; version=0.0.4; charset=utf-8")

    def windows(self, call: Call) -> Reply:
        """Tells the page of the windows since some time."""
        given = parse_qs(call.query.decode("latin-1")).get("since", ["-1"])[0]
        if not re.fullmatch(r"-?\d{1,15}", given, re.ASCII):
            raise HttpError(400, f"since is the number of a revision, not {given[:20]!r}.")
        self.teller.tell()
        return said(self.teller.state(int(given)))

    def page(self, call: Call) -> Reply:
        """Returns a file of the page."""
        name = call.path[1:] or "index.html"
        return Reply((PAGE / name).read_bytes(), kind=TYPES[name.rpartition(".")[2]], headers=POLICY)


def said(data: object) -> Reply:
    """Returns data as JSON."""
    return Reply(msgspec.json.encode(data))


def checked(read: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    """Returns what a reader makes of a request; what is wrong with that is told to the client."""
    try:
        return read(*args, **settings)
    except (HastenError, msgspec.ValidationError) as error:
        raise HttpError(400, str(error)) from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise HttpError(400, f"The body is not JSON: {error}") from None
    except RecursionError:
        raise HttpError(400, "The body is nested too deeply.") from None


def warm(served: Served[Any]) -> None:
    """Answers examples, one by one and together, so that all kernels are compiled or loaded."""
    from hasten.jit import tiers

    tiers.TIER = tiers.COMPILED if tiers.TIER == tiers.AUTO else tiers.TIER
    served.warm()
    gc.collect()
    gc.freeze()  # what is there now stays: it need not be looked through again and again
