"""What `hasten serve` costs, beside a constant answer from Starlette on uvicorn (pip install starlette uvicorn).

Every figure is processor time of the server (all its threads, user and system) a request, the servers taking turns
within one run; traffic stays on loopback. `--only` chooses parts: single, binary, text, beside, soak, kills, restart.

    python benchmarks/serving.py --out results/serving.json [--only single --only kills] [--minutes 5] [--kills 200]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import resource
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
def board():
    schema = hasten.Schema()
    row = schema.variable("row", [str(n) for n in range(10)])
    hard, easy = schema.structure(), schema.structure()
    rows = [hard.add(row) for _ in range(10)]
    for label in range(10):
        hard.rule(f"column {label}", at_most=1, terms=[(v, str(label), 1.0) for v in rows])
    for way in (1, -1):
        for start in range(-10, 20):
            cells = [(v, str(start + way * v), 1.0) for v in rows if 0 <= start + way * v < 10]
            if len(cells) > 1:
                hard.rule(f"diagonal {way} {start}", at_most=1, terms=cells)
    for _ in range(4):
        easy.add(row)
    return {"hard": hard, "easy": easy}
boards = board()
"""


class Client(asyncio.Protocol):
    """A connection that sends one request after the other."""

    def __init__(self, requests: Iterator[bytes], done: Any, seen: Any, pause: float = 0.0) -> None:
        self.requests, self.done, self.seen, self.pause, self.buffer = requests, done, seen, pause, b""
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
            if self.pause:
                asyncio.get_running_loop().call_later(self.pause, self.send)
            else:
                self.send()

    def connection_lost(self, error: Any) -> None:
        if not self.done.done():
            self.done.set_result(None)


async def load(port: int, requests: Iterator[bytes], connections: int, seen: Any, pause: float = 0.0) -> None:
    """Sends requests over some connections, and tells each response with its seconds."""
    loop = asyncio.get_running_loop()
    ends = []
    for _ in range(connections):
        done = loop.create_future()
        ends.append(done)
        await loop.create_connection(lambda done=done: Client(requests, done, seen, pause), "127.0.0.1", port)
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


def single(place: str, args: Any) -> dict[str, Any]:
    """Single problems in JSON, with and without the journal, beside a constant answer."""
    peer = Server(["uvicorn", "constant:app", "--no-access-log", "--log-level", "warning"], place, "/ready")
    plain, kept = ours(place), ours(place, "--journal", "kept.journal")
    servers = {"starlette": peer, "plain": plain, "journal": kept}
    found: dict[str, Any] = {}
    for margin, connections in ((3.0, 1), (3.0, 16), (3.0, 64), (0.0, 16), (0.0, 64)):
        bodies = [
            post("/predict", json.dumps({"costs": row}).encode()) for row in problems(args.requests, 0, margin).tolist()
        ]
        times: dict[str, list[float]] = {name: [] for name in servers}
        waits: dict[str, list[float]] = {name: [] for name in servers}
        for turn in range(args.rounds + 1):
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


def binary(place: str, args: Any) -> dict[str, Any]:
    """4,096 problems a request, as binary tensors: problems a second of processor time, and of the clock."""
    server, costs = ours(place), problems(4096)
    tensor = {"name": "costs", "datatype": "FP64", "shape": list(costs.shape)}
    tensor["parameters"] = {"binary_data_size": costs.nbytes}
    head = json.dumps({"inputs": [tensor], "parameters": {"binary_data_output": True}}).encode()
    length = f"Inference-Header-Content-Length: {len(head)}\r\n"
    request = post("/v2/models/five/infer", head + costs.tobytes(), length)
    server.run([request] * 5, 1)
    rates = []
    for _ in range(args.rounds):
        began = time.perf_counter()
        cpu, _, responses = server.run([request] * 20, 2)
        rates.append((4096 / cpu, 20 * 4096 / (time.perf_counter() - began)))
        assert all(response.startswith(b"HTTP/1.1 200") for response in responses)
    server.end()
    return {
        "problems a second of processor time": round(statistics.median(rate for rate, _ in rates)),
        "best": round(max(rate for rate, _ in rates)),
        "of the clock, two connections": round(statistics.median(rate for _, rate in rates)),
    }


NAIVE = """
import msgspec
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.labelling import Labeller
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
labeller = Labeller(Tagger.load("news.hasten"))
list(labeller.each(generate(8, seed=0, labelled=False)))
async def app(scope, receive, send):
    body = (await receive()).get("body") or b""
    found = b"{}"
    if body:
        (answer,) = labeller.each([from_object(msgspec.json.decode(body), "")])
        found = msgspec.json.encode({"types": answer.sentence.types, "relations": answer.sentence.relations})
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(found)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": found})
"""


def text(place: str, args: Any) -> dict[str, Any]:
    """Sentences, one a request, 64 connections: batched by us, and labelled one by one by a plain ASGI app."""
    from hasten.tasks.entity_relation.data.formats.jsonl import to_json
    from hasten.tasks.entity_relation.data.synthetic import generate
    from hasten.tasks.entity_relation.tagger import Tagger

    Tagger.train(list(generate(400, 0))).save(Path(place, "news.hasten"))
    Path(place, "naive.py").write_text(NAIVE)
    peer = Server(["uvicorn", "naive:app", "--no-access-log", "--log-level", "warning"], place, "/ready")
    server = ours(place, model="news.hasten", structures="")
    bodies = [post("/predict", json.dumps(to_json(each)).encode()) for each in generate(1500, 1, labelled=False)]
    times: dict[str, list[float]] = {"one by one": [], "batched": []}
    for turn in range(args.rounds + 1):
        for name, each in (("one by one", peer), ("batched", server)):
            cpu, _, responses = each.run(bodies, 64)
            assert all(response.startswith(b"HTTP/1.1 200") for response in responses)
            if turn:
                times[name].append(cpu)
    peer.end()
    server.end()
    us = {name: round(1e6 * statistics.median(each), 1) for name, each in times.items()}
    return {"processor time a request, us": us, "gain": round(us["one by one"] / us["batched"], 2)}


def beside(place: str, args: Any) -> dict[str, Any]:
    """Latency of problems that are proved at once, alone, and beside others that the slow lane answers all the time."""
    import shapes

    hard, simple = shapes.boards["hard"], shapes.boards["easy"]
    hasten.Speedup(hard.schema).save(Path(place, "both.hasten"))
    server, rng = ours(place, model="both.hasten", structures="shapes:boards"), np.random.default_rng(0)

    def bodies(name: str, n: int, size: int) -> list[bytes]:
        rows = rng.normal(size=(n, size)).round(4).tolist()
        return [post("/predict", json.dumps({"structure": name, "costs": row}).encode()) for row in rows]

    easy, slow = bodies("easy", 1000, simple.n_labels), bodies("hard", 20_000, hard.n_labels)
    found: dict[str, list[float]] = {"alone": [], "beside": []}

    async def run(busy: bool) -> tuple[list[float], int]:
        times, answered, others = list[float](), list[float](), iter(slow if busy else [])
        task = asyncio.create_task(load(server.port, others, 2, lambda _, seconds: answered.append(seconds)))
        await asyncio.sleep(0.5)
        await load(server.port, iter(easy), 4, lambda _, seconds: times.append(seconds))
        for _ in others:
            pass  # no more of them
        await task
        return times, len(answered)

    n_slow = 0
    for _ in range(args.rounds):
        for name, each in found.items():
            times, n = uvloop.run(run(name == "beside"))
            each.append(float(np.quantile(times, 0.99)))
            n_slow += n
    server.end()
    p99 = {name: round(statistics.median(each), 5) for name, each in found.items()}
    return {"p99 seconds": p99, "ratio": round(p99["beside"] / p99["alone"], 2), "slow answers meanwhile": n_slow}


def restart(place: str, args: Any) -> dict[str, Any]:
    """Seconds from the start of the process to the first ready, kernels cached: by the clock, and of the processor."""
    ours(place).end()
    found, cpu = [], []
    for _ in range(2 * args.rounds):
        server = ours(place)
        cpu.append(server.cpu())
        found.append(server.seconds)
        server.end()
    return {
        "seconds to ready": [round(each, 2) for each in sorted(found)],
        "median": round(statistics.median(found), 2),
        "median of the processor": round(statistics.median(cpu), 2),
    }


def kills(place: str, args: Any) -> dict[str, Any]:
    """kill -9 under load: rows that were acknowledged and are not in the journal; and the seconds to be ready again."""
    from hasten.journal import Journal

    costs, lost, acknowledged, ready = problems(200).tolist(), 0, 0, []
    for n in range(args.kills):
        journal = Path(place, f"kill{n % 4}.journal")
        server = ours(place, "--journal", journal.name)
        ready.append(server.seconds)
        ids = list[bytes]()

        def requests(n: int = n) -> Iterator[bytes]:
            for k in range(10**6):
                yield post("/predict", json.dumps({"costs": costs[k % 200]}).encode(), f"X-Request-Id: n{n}k{k}\r\n")

        async def run(server: Server = server, n: int = n, ids: list[bytes] = ids, requests: Any = requests) -> None:
            asyncio.get_running_loop().call_later(0.1 + 0.3 * random.Random(n).random(), server.process.kill)
            seen = re.compile(rb"x-request-id: (\w+)")
            await load(server.port, requests(), 16, lambda response, _: ids.append(seen.search(response)[1]))

        uvloop.run(run())
        server.process.wait()
        kept = {row.data["id"].encode() for row in Journal(journal, read_only=True).rows(last=100_000)}
        lost, acknowledged = lost + len(set(ids) - kept), acknowledged + len(ids)
        if n % 20 == 19:
            print(f"{n + 1} kills, {acknowledged:,} rows acknowledged, {lost} lost", flush=True)
    time.sleep(3)
    left = 0
    for each in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            left += place.encode() in each.read_bytes()
    return {
        "kills": args.kills,
        "acknowledged": acknowledged,
        "lost": lost,
        "processes left behind": left,
        "seconds to ready, median and worst": [round(statistics.median(ready), 2), round(max(ready), 2)],
    }


def soak(place: str, args: Any) -> dict[str, Any]:
    """Right requests, whose answers are compared; malformed, huge, slow, aborted ones; 1,000 idle connections."""
    import shapes

    server = ours(place, "--journal", "soak.journal", "--time-limit", "5")
    costs = problems(2000)
    exact = hasten.Certifier()(shapes.structure.batch(costs)).cost
    bodies = [post("/predict", json.dumps({"costs": row}).encode()) for row in costs.tolist()]
    end, counts = time.monotonic() + 60 * args.minutes, dict.fromkeys(("right", "wrong", "busy", "refused", "500"), 0)
    memory: list[int] = []

    async def right(seed: int) -> None:
        rng, sent = random.Random(seed), list[int]()

        def requests() -> Iterator[bytes]:
            while time.monotonic() < end:
                sent.append(rng.randrange(len(costs)))
                yield bodies[sent[-1]]

        def seen(response: bytes, seconds: float) -> None:
            n = sent.pop(0)
            if response.startswith(b"HTTP/1.1 200"):
                cost = json.loads(response.split(b"\r\n\r\n", 1)[1])["cost"]
                counts["right" if abs(cost - exact[n]) < 1e-6 else "wrong"] += 1
            else:
                counts["500" if b" 500 " in response[:20] else "busy"] += 1

        await load(server.port, requests(), 1, seen, args.pause)  # over one connection, so that answers come in order

    async def hostile(seed: int) -> None:
        rng = random.Random(seed)
        huge = b"POST /predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999\r\n\r\n" + b"x" * 10_000
        while time.monotonic() < end:
            kind, good = rng.randrange(6), bodies[0]
            data = [
                *(post("/predict", rng.randbytes(rng.randrange(2000))), huge),
                *(good[: rng.randrange(len(good))], good, good[: rng.randrange(len(good))]),
                post("/v2/models/five/infer", b"[" * 50_000),
            ][kind]
            with suppress(OSError, asyncio.TimeoutError):
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                writer.write(data)
                if kind in (2, 3):  # goes away
                    await asyncio.sleep(0.01 * rng.random())
                else:  # waits; where the request is not whole, until it is cut off
                    answer = await asyncio.wait_for(reader.read(200), 20)
                    counts["500" if b" 500 " in answer[:20] else "refused"] += 1
                writer.transport.abort()
            await asyncio.sleep(0.02)

    async def idle() -> None:
        while time.monotonic() < end:
            held = []
            for _ in range(1000):
                with suppress(OSError):
                    held.append(await asyncio.open_connection("127.0.0.1", server.port))
            await asyncio.sleep(3)
            for _, writer in held:
                writer.transport.abort()
            await asyncio.sleep(1)

    async def stop_flag() -> None:
        while time.monotonic() < end:
            memory.append(server.memory())
            await asyncio.sleep(5)

    async def run() -> None:
        await asyncio.gather(*map(right, range(16)), *map(hostile, range(8)), idle(), stop_flag())

    resource.setrlimit(resource.RLIMIT_NOFILE, (4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    uvloop.run(run())
    code, megabytes = server.end(), [round(each / 2**20, 1) for each in memory]
    fifth = max(1, len(memory) // 5)
    return counts | {
        "minutes": args.minutes,
        "memory in MB": megabytes[:: max(1, len(memory) // 12)],
        "mean of the second and of the last fifth": [
            round(statistics.mean(each), 1) for each in (megabytes[fifth : 2 * fifth] or megabytes, megabytes[-fifth:])
        ],
        "exit code": code,
    }


PARTS = {each.__name__: each for each in (single, binary, text, beside, restart, kills, soak)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", action="append", choices=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests of a soak's connection")
    args = parser.parse_args()
    found = {}
    with folder() as place:
        for name in args.only or PARTS:
            found[name] = PARTS[name](place, args)
            print(name, json.dumps(found[name], indent=1), flush=True)
    if args.out:
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
