"""What `hasten serve` costs, beside a constant answer from Starlette on uvicorn (pip install starlette).

Every figure is processor time of the server (all its threads, user and system) a request, the servers taking turns
within one run; traffic stays on loopback. `--only` chooses parts: single, binary, text, beside, soak, kills, restart.

    python benchmarks/serving.py --out results/serving.json [--only single --only kills] [--minutes 5] [--kills 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import uvloop

import hasten

HERE = Path(__file__).resolve().parent
STARLETTE = """
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
async def constant(request):
    return JSONResponse({"labels": ["a", "b"], "cost": 1.0, "proved": True})
app = Starlette(routes=[Route("/predict", constant, methods=["POST"]), Route("/ready", constant)])
"""
SHAPES = """
import hasten
from hasten.tasks.entity_relation.task import PAPERS
structure = PAPERS.structure(4)  # the paper's task: 88 costs
def hard():
    hard = hasten.Schema()
    city = hard.variable("city", [str(n) for n in range(14)])
    shape = hard.structure()
    cities = [shape.add(city) for _ in range(14)]
    for label in range(14):
        shape.rule(f"once {label}", at_most=1, at_least=1, terms=[(v, str(label), 1.0) for v in cities])
    return shape
"""


class Client(asyncio.Protocol):
    """A connection that sends one request after the other."""

    def __init__(self, requests: Iterator[bytes], done: Any, seen: Any) -> None:
        self.requests, self.done, self.seen, self.buffer = requests, done, seen, b""
        self.length = -1

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self.send()

    def send(self) -> None:
        request = next(self.requests, None)
        if request is None:
            self.transport.close()
            return
        self.began = time.perf_counter()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if self.length < 0:
            end = self.buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = self.buffer[:end].lower()
            at = head.index(b"content-length:") + 15
            self.length = end + 4 + int(head[at:].split(b"\r\n", 1)[0])
        if len(self.buffer) >= self.length:
            self.seen(self.buffer[: self.length], time.perf_counter() - self.began)
            self.buffer, self.length = self.buffer[self.length :], -1
            self.send()

    def connection_lost(self, error: Any) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, requests: Iterator[bytes], connections: int, seen: Any) -> None:
    """Sends requests over some connections, and tells each response with its seconds."""
    loop = asyncio.get_running_loop()
    ends = []
    for _ in range(connections):
        done = loop.create_future()
        ends.append(done)
        await loop.create_connection(lambda done=done: Client(requests, done, seen), "127.0.0.1", port)
    await asyncio.gather(*ends)


def post(path: str, body: bytes, headers: str = "") -> bytes:
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode() + body


class Server:
    """A server of its own process, on a port of its own."""

    def __init__(self, command: list[str], folder: str, ready: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        paths = os.pathsep.join([folder, *sys.path])
        env = os.environ | {"PYTHONPATH": paths}
        self.log = open(Path(folder) / f"{self.port}.log", "wb")  # noqa: SIM115
        began = time.perf_counter()
        self.process = subprocess.Popen(
            [sys.executable, "-m", *command, "--port", str(self.port)], env=env, cwd=folder, stderr=self.log
        )
        while True:
            with suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{self.port}{ready}", timeout=1):
                break
            if self.process.poll() is not None or time.perf_counter() - began > 120:
                raise SystemExit(Path(self.log.name).read_text())
            time.sleep(0.02)
        self.seconds = time.perf_counter() - began

    def cpu(self) -> float:
        """The processor seconds of the process so far, by its clock (clock_getcpuclockid)."""
        return time.clock_gettime((~self.process.pid << 3) | 2)

    def memory(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def run(self, requests: list[bytes], connections: int) -> tuple[float, list[float], list[bytes]]:
        """Returns the processor seconds a request, the seconds of each, and the responses."""
        times, responses = [], []

        def seen(response: bytes, seconds: float) -> None:
            times.append(seconds)
            responses.append(response)

        before = self.cpu()
        uvloop.run(load(self.port, iter(requests), connections, seen))
        return (self.cpu() - before) / max(1, len(times)), times, responses

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@contextmanager
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as place:
        Path(place, "constant.py").write_text(STARLETTE)
        Path(place, "shapes.py").write_text(SHAPES)
        sys.path.insert(0, place)
        yield place


def ours(place: str, *more: str, model: str = "five.hasten", structures: str = "shapes:structure") -> Server:
    import shapes

    if not Path(place, model).exists():
        hasten.Speedup(shapes.structure.schema).save(Path(place, model))
    given = [] if structures == "" else ["--structures", structures]
    return Server(["hasten", "serve", model, *given, *more], place, "/v2/health/ready")


def problems(n: int, seed: int = 0, margin: float = 3.0) -> np.ndarray:
    """Returns costs of the paper's task with four entities: noise, but for a valid labelling that is cheaper by some.

    With a margin of 3 that is about what a trained model's costs are; 0 is noise alone.
    """
    import shapes

    rng, shape = np.random.default_rng(seed), shapes.structure
    costs = rng.normal(size=(n, shape.n_labels))
    valid = hasten.Certifier()(shape.batch(rng.normal(size=(n, shape.n_labels)))).labels.reshape(n, -1)
    np.put_along_axis(costs, valid + shape.graph.first[: shape.n_variables], -margin + costs[:, : shape.n_variables], 1)
    return costs.round(4)


def single(place: str, rounds: int, n: int) -> dict[str, Any]:
    """Single problems in JSON, with and without the journal, beside a constant answer."""
    peer = Server(["uvicorn", "constant:app", "--no-access-log", "--log-level", "warning"], place, "/ready")
    plain, kept = ours(place), ours(place, "--journal", "kept.journal")
    servers = {"starlette": peer, "plain": plain, "journal": kept}
    found: dict[str, Any] = {}
    for margin, connections in ((3.0, 1), (3.0, 16), (3.0, 64), (0.0, 16), (0.0, 64)):
        bodies = [post("/predict", json.dumps({"costs": row}).encode()) for row in problems(n, 0, margin).tolist()]
        times: dict[str, list[float]] = {name: [] for name in servers}
        waits: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(rounds + 1):
            for name, server in servers.items():
                cpu, seconds, responses = server.run(bodies, connections)
                assert all(response.startswith(b"HTTP/1.1 200") for response in responses)
                if turn:
                    times[name].append(cpu)
                    waits[name] += seconds
        us = {name: 1e6 * statistics.median(each) for name, each in times.items()}
        found[f"{connections} connections, margin {margin:g}"] = {
            "processor time a request, us": {name: round(each, 1) for name, each in us.items()},
            "median and p99 seconds": {
                name: [round(float(np.quantile(each, q)), 5) for q in (0.5, 0.99)] for name, each in waits.items()
            },
            "rate of ours beside a constant answer": round(us["starlette"] / us["plain"], 3),
            "rate with the journal beside without": round(us["plain"] / us["journal"], 3),
        }
    for server in servers.values():
        server.end()
    return found


PARTS = {"single": single}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000)
    args = parser.parse_args()
    found = {}
    with folder() as place:
        for name in args.only or PARTS:
            found[name] = PARTS[name](place, args.rounds, args.requests)
            print(name, json.dumps(found[name], indent=1), flush=True)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
