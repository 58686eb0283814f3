"""The application: a raw ASGI app that routes requests, checks them, and waits for their answers."""

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
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Any
from urllib.parse import parse_qs

import msgspec

import hasten
from hasten.errors import HastenError
from hasten.journal import Journal
from hasten.serve import oip
from hasten.serve.batching import Batch, Batcher, Request
from hasten.serve.calls import Call, Disconnected, HttpError, Limits, checked, told
from hasten.serve.lanes import Full, Lane
from hasten.serve.lifetime import PAGE
from hasten.serve.metrics import Metrics
from hasten.serve.openapi import describe
from hasten.serve.served import Served
from hasten.serve.telling import Teller

log = logging.getLogger("hasten.serve")
JSON = (b"content-type", b"application/json")
TYPES = {"html": b"text/html; charset=utf-8", "js": b"text/javascript", "css": b"text/css"}
POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    b"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
AGAIN = (b"retry-after", b"1")
LOCAL = re.compile(rb"(localhost|127\.\d+\.\d+\.\d+|\[::1\])(:\d+)?")
NUMBER = re.compile(rb'\s*\{\s*"number"\s*:\s*(\d{1,15})\s*\}\s*')  # of an input that the page shows
Reply = tuple[int, bytes, Sequence[tuple[bytes, bytes]]]


class App:
    """The ASGI app of one model."""

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
        self._ids, self._run = itertools.count(1), secrets.token_hex(4)
        name = f"/v2/models/{served.name}"
        of_version = f"{name}/versions/{served.version}"
        self.routes: dict[str, tuple[str, Callable[[Call], Awaitable[Reply]]]] = {
            "/predict": ("POST", self.predict),
            "/explain": ("POST", self.explain),
            "/feedback": ("POST", self.feedback),
            "/v2": ("GET", self.server),
            "/v2/health/live": ("GET", self.live),
            "/v2/health/ready": ("GET", self.is_ready),
            "/openapi.json": ("GET", self.openapi),
            "/metrics": ("GET", self.prometheus),
            "/lifetime": ("GET", self.windows),
            "/": ("GET", self.page),
        }
        for path in (name, of_version):
            self.routes |= {
                path: ("GET", self.model),
                f"{path}/ready": ("GET", self.is_ready),
                f"{path}/infer": ("POST", self.infer),
            }

    # -- the lifetime of the server ---------------------------------------------------------------------

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Starts the fast lane, and warms up in a thread."""
        self.batcher = Batcher(self.served, self.lane, self.journal, self._seen, self.limits.waiting, loop)
        threading.Thread(target=self._warm, name="hasten warm-up", daemon=True).start()

    def _warm(self) -> None:
        began = time.perf_counter()
        try:
            warm(self.served)
        except BaseException as error:
            self.failed = error
            log.exception("The model cannot answer.")
            return
        self.ready = True
        log.info("Ready.", extra={"seconds": round(time.perf_counter() - began, 3)})
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
        for request in [each for each in self.batcher.waiting if each.began < limit]:
            self.batcher.waiting.discard(request)
            if not request.future.done():
                request.future.set_result(HttpError(504, "No answer in time. Ask again later.", AGAIN))
        self.lane.sweep()
        self.teller.tell()

    def _seen(self, batch: Batch) -> None:
        now = time.monotonic()
        self.metrics.batch(batch, now)
        self.teller.seen(batch, now)

    # -- requests ---------------------------------------------------------------------------------------

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answers a request."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"")
        id = given if 0 < len(given) <= 64 and given.isalnum() else f"{self._run}{next(self._ids):x}".encode()
        try:
            call = Call(scope, headers, receive, id.decode(), self.limits)
            status, body, more = await self._answer(call)
        except HttpError as error:
            status, body, more = error.status, told(error), error.headers
        except Disconnected:
            return
        except Exception:
            log.exception("A request failed.", extra={"id": id.decode()})
            status, body, more = 500, told("This is our mistake; the log of the server says more."), ()
        self.metrics.responses[status] += 1
        if status >= 400 and "/health/" not in scope["path"]:
            log.warning(
                body.decode(errors="replace"), extra={"id": id.decode(), "path": scope["path"], "status": status}
            )
        answer = [(b"content-length", str(len(body)).encode()), (b"x-request-id", id), *more]
        if not any(name == b"content-type" for name, _ in more):
            answer.append(JSON)
        await send({"type": "http.response.start", "status": status, "headers": answer})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, call: Call) -> Reply:
        path = call.scope["path"]
        route = self.routes.get(path)
        if self.token is not None and not path.startswith("/v2/health/"):
            if not hmac.compare_digest(call.headers.get(b"authorization", b""), self.token):
                raise HttpError(401, "Give the token: Authorization: Bearer …", (b"www-authenticate", b"Bearer"))
        elif self.token is None and not LOCAL.fullmatch(call.headers.get(b"host", b"localhost")):
            raise HttpError(421, "Without a token, this server answers to localhost alone.")
        origin = call.headers.get(b"origin")
        if origin is not None and origin.partition(b"://")[2] != call.headers.get(b"host"):
            raise HttpError(403, "Pages of other sites may not ask this server.")
        if route is None:
            if path in ("/page.css", "/page.js"):
                return self.file(path[1:])
            raise HttpError(404, f"There is no {path[:80]!r}. /openapi.json has every address.")
        method, handler = route
        if call.scope["method"] != method:
            raise HttpError(405, f"{path} takes {method}.", (b"allow", method.encode()))
        return await handler(call)

    async def _wait(self, parts: Sequence[Any], call: Call, body: bytes, encode: Callable[[Request], Any]) -> Reply:
        """Queues parts that were checked, and waits for the reply."""
        if not self.ready:
            raise HttpError(503, "Not ready yet: kernels are being loaded.", AGAIN)
        future = asyncio.get_running_loop().create_future()
        n_items = sum(map(self.served.size, parts))
        request = Request(call.id, parts, n_items, body, encode, future, call.began)
        try:
            self.batcher.put(request)
        except Full:
            raise HttpError(503, "Too many requests are waiting. Ask again later.", AGAIN) from None
        reply = await future
        if isinstance(reply, HttpError):
            raise reply
        if isinstance(reply, Full):
            raise HttpError(503, "Too many requests wait for the black box. Ask again later.", AGAIN)
        if isinstance(reply, HastenError):
            raise HttpError(422, str(reply))
        if isinstance(reply, BaseException):
            raise HttpError(503, f"No answer: {type(reply).__name__}: {reply}", AGAIN)
        found, headers = reply
        return 200, found, headers

    async def predict(self, call: Call) -> Reply:
        """Answers one input in JSON, or a list of them."""
        body = await call.body()
        parts, several = checked(self.served.parts, body)

        def encode(request: Request) -> tuple[bytes, Sequence[Any]]:
            told = [
                self.served.told(part, found.columns, at)
                for part, found in zip(parts, request.found, strict=True)
                for at in range(found.at, found.at + found.n)
            ]
            return msgspec.json.encode(told if several else told[0]), ()

        return await self._wait(parts, call, body, encode)

    async def infer(self, call: Call) -> Reply:
        """Answers a request of the Open Inference Protocol."""
        body, header = await call.body(), call.headers.get(oip.LENGTH)
        parts, asked = checked(oip.read, self.served, body, header)
        kept = body if header is None else body[: int(header)]
        return await self._wait(
            parts, call, kept, lambda request: oip.write(self.served, asked, request.found, self.version)
        )

    async def explain(self, call: Call) -> Reply:
        """Tells how one input is answered."""
        body = await call.body()
        number = NUMBER.fullmatch(body)
        if number is not None:
            given = self.teller.lifetime.input(int(number[1]))
            if given is None:
                raise HttpError(404, "That input is gone, or cannot be explained.")
            body = msgspec.json.encode(given)
        parts, several = checked(self.served.parts, body)
        if several or not self.ready:
            raise HttpError(400 if several else 503, "Explain one input, not a list." if several else "Not ready yet.")
        problem, names = checked(self.served.problem, parts[0])
        try:
            future: Future[Any] = self.lane.explain(problem, names)
        except (Full, RuntimeError):
            raise HttpError(503, "Too many requests wait for the slow lane. Ask again later.", AGAIN) from None
        try:
            found = await asyncio.wait_for(asyncio.wrap_future(future), self.limits.seconds)
        except TimeoutError:
            raise HttpError(504, "The explanation takes too long. Choose a smaller input.") from None
        return 200, msgspec.json.encode(found), ()

    async def feedback(self, call: Call) -> Reply:
        """Takes in what an answer should have been, and keeps it in the journal."""
        body = await call.body()
        checked(msgspec.json.decode, body, type=dict[str, Any])
        if self.journal is None:
            raise HttpError(409, "Feedback needs a journal. Start the server with --journal FILE.")
        _, reply, headers = await self._wait((), call, body, lambda request: (b'{"kept":true}', ()))
        return 202, reply, headers

    # -- what it is -------------------------------------------------------------------------------------

    @property
    def version(self) -> str:
        """The version that answers now."""
        return str(self.served.state().get("version", self.served.version))

    async def server(self, call: Call) -> Reply:
        """Says what this server is."""
        about = {"name": "hasten", "version": hasten.__version__, "extensions": ["binary_tensor_data"]}
        return 200, msgspec.json.encode(about), ()

    async def live(self, call: Call) -> Reply:
        """Says that it runs."""
        return 200, b'{"live":true}', ()

    async def is_ready(self, call: Call) -> Reply:
        """Says whether kernels are compiled, so that it answers at once."""
        if self.failed is not None:
            raise HttpError(503, f"The model cannot answer: {self.failed}")
        return (200, b'{"ready":true}', ()) if self.ready else (503, b'{"ready":false}', (AGAIN,))

    async def model(self, call: Call) -> Reply:
        """Says what the model takes and gives."""
        return 200, msgspec.json.encode(oip.metadata(self.served, self.version)), ()

    async def openapi(self, call: Call) -> Reply:
        """Describes every address."""
        return 200, msgspec.json.encode(describe(self.served)), ()

    async def prometheus(self, call: Call) -> Reply:
        """Tells Prometheus what was counted."""
        gauges = {
            "queue": ("Requests that are not answered yet.", float(len(self.batcher.waiting))),
            "slow_queue": ("Requests in the slow lane.", float(len(self.lane))),
            "ready": ("Whether it is ready.", float(self.ready)),
        }
        text = self.metrics.text(self.served.name, self.served.state(), gauges)
        return 200, text.encode(), ((b"content-type", b"text/plain; version=0.0.4; charset=utf-8"),)

    async def windows(self, call: Call) -> Reply:
        """Tells the page of the windows since some time."""
        given = parse_qs(call.scope["query_string"].decode("latin-1")).get("since", ["-1"])[0]
        if not re.fullmatch(r"-?\d{1,15}", given, re.ASCII):
            raise HttpError(400, f"since is the number of a revision, not {given[:20]!r}.")
        self.teller.tell()
        return 200, msgspec.json.encode(self.teller.lifetime.state(int(given))), ()

    async def page(self, call: Call) -> Reply:
        """Shows the page."""
        return self.file("index.html")

    def file(self, name: str) -> Reply:
        """Returns a file of the page."""
        headers = (b"content-type", TYPES[name.rpartition(".")[2]]), (b"content-security-policy", POLICY)
        return 200, (PAGE / name).read_bytes(), (*headers, (b"x-content-type-options", b"nosniff"))


def warm(served: Served[Any]) -> None:
    """Answers examples, one by one and together, so that all kernels are compiled or loaded."""
    from hasten.jit import tiers

    tiers.TIER = tiers.COMPILED if tiers.TIER == tiers.AUTO else tiers.TIER
    served.warm()
    gc.collect()
    gc.freeze()  # what is there now stays: it need not be looked through again and again
