"""A real server in a process of its own, on loopback, with any model, for tests."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import suppress
from pathlib import Path

SHAPES = """
import time
from dataclasses import replace
import hasten
from hasten.tasks.entity_relation.task import PAPERS

structures = {"two": PAPERS.structure(2), "four": PAPERS.structure(4)}
four = structures["four"]

queens = hasten.Schema()  # no proof of ours settles it at once: every row and column of a board is taken once
N = 9
row = queens.variable("row", [str(n) for n in range(N)])
hard = queens.structure()
rows = [hard.add(row) for _ in range(N)]
for label in range(N):
    hard.rule(f"column {label}", at_most=1, terms=[(v, str(label), 1.0) for v in rows])
for way in (1, -1):
    for start in range(-N, 2 * N):
        cells = [(v, str(start + way * v), 1.0) for v in rows if 0 <= start + way * v < N]
        if len(cells) > 1:
            hard.rule(f"diagonal {way} {start}", at_most=1, terms=cells)

def box(text):
    time.sleep(0.005)
    if "fail" in text.words:
        raise RuntimeError("no")
    tags = ["NUM" if word.isdigit() else "UP" if word[:1].isupper() else "LOW" for word in text.words]
    return replace(text, tags=tuple(tags))
"""


class Server:
    def __init__(self, folder: Path, *args: str, ready: bool = True, **env: str) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.log = folder / f"{self.port}.log"
        paths = os.pathsep.join([str(folder), *sys.path])
        settings = os.environ | {"PYTHONPATH": paths, "HASTEN_TIER": "compiled"} | env
        with open(self.log, "wb") as log:
            command = [sys.executable, "-m", "hasten", "serve", *args, "--port", str(self.port)]
            self.process = subprocess.Popen(command, cwd=folder, env=settings, stderr=log, stdout=log)
        end = time.monotonic() + 180
        while ready and self.get("/v2/health/ready")[0] != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                raise AssertionError(self.log.read_text())
            time.sleep(0.05)

    def ask(self, method, path, body=None, headers=(), timeout=60.0):
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, dict(headers), method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as found:
                return found.status, found.read(), found.headers
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read(), error.headers
        except (OSError, http.client.HTTPException):
            return 0, b"", {}

    def get(self, path, **more):
        return self.ask("GET", path, **more)

    def post(self, path, body, **more):
        status, found, _ = self.ask("POST", path, body, **more)
        return status, json.loads(found) if found else None

    def raw(self, data: bytes, timeout: float = 20.0) -> bytes:
        """Sends bytes as they are, and returns all that comes back until the server ends the connection."""
        found = b""
        with socket.create_connection(("127.0.0.1", self.port), timeout) as connection, suppress(OSError):
            connection.sendall(data)
            while got := connection.recv(65536):
                found += got
        return found

    def logged(self):
        return [json.loads(line) for line in self.log.read_text().split("\n") if line.startswith("{")]

    def end(self, number=signal.SIGTERM):
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(60)
