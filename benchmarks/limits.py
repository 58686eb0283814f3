"""Measures whether time limits are kept, and how soon Ctrl-C gets through, on problems that are too hard to finish.

Each measurement is a process of its own: it makes the problem, answers a small one to have all loaded, then asks for an
answer to the hard one. A *limit* counts from the call to the answer, by the wall clock, and should be kept within 10%
and 0.2 s; with two threads it is the limit of a call with four such problems. For *Ctrl-C* the process sends itself
SIGINT, after a second, and counts until `KeyboardInterrupt` is raised; that should take no more than 0.2 s. Building
the problem itself does not count.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import hasten
from hasten.errors import SolverError
from hasten.tasks.entity_relation.task import EntityRelationTask

FOREVER = 10**9  # nodes: a proof that does not give up by itself


def spin_glass(side: int = 20) -> hasten.Problem:
    """Returns a binary grid whose neighbours want to be alike, or to differ, at random."""
    rng = np.random.default_rng(0)
    schema = hasten.Schema()
    spin = schema.variable("spin", ["down", "up"])
    bond = schema.factor("bond", one=spin, other=spin)
    shape = schema.structure()
    spins = [[shape.add(spin) for _ in range(side)] for _ in range(side)]
    bonds = [shape.connect(bond, one=spins[r][c], other=spins[r][c + 1]) for r in range(side) for c in range(side - 1)]
    bonds += [shape.connect(bond, one=spins[r][c], other=spins[r + 1][c]) for r in range(side - 1) for c in range(side)]
    alike = np.array([[-1.0, 1.0], [1.0, -1.0]])
    tables = {b: j * alike for b, j in zip(bonds, rng.normal(size=len(bonds)), strict=True)}
    return shape.problem(0.1 * rng.normal(size=shape.n_labels), tables=tables)


def entities(n: int = 60) -> hasten.Problem:
    """Returns a sentence of so many entities whose costs are noise."""
    shape = EntityRelationTask().structure(n)
    return shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))


def packing(n: int = 200, n_rules: int = 5) -> hasten.Problem:
    """Returns items to pack, worth about what they weigh, within several limits."""
    rng = np.random.default_rng(0)
    schema = hasten.Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    items = [shape.add(item) for _ in range(n)]
    weights = rng.integers(100, 1000, size=(n_rules, n))
    for r, row in enumerate(weights):
        shape.rule(f"limit {r}", [(v, "in", float(w)) for v, w in zip(items, row, strict=True)], at_most=row.sum() // 2)
    worth = weights.mean(axis=0) + rng.integers(0, 100, size=n)
    return shape.problem(np.stack([np.zeros(n), -worth / 100.0], axis=1).ravel())


PROBLEMS: dict[str, Callable[[], hasten.Problem]] = {"spins": spin_glass, "entities": entities, "packing": packing}
SOLVERS = ("highs", "gurobi", "cpsat", "toulbar2")
WAYS = ("certifier", "certifier, 2 threads", *SOLVERS)


def way_of(name: str, limit: float | None) -> Callable[[hasten.Problem], hasten.Solution]:
    """Returns what answers a problem."""
    if name in SOLVERS:
        return hasten.make_solver(name, time_limit=limit).solve
    if name == "certifier":
        return hasten.Certifier(max_nodes=FOREVER, time_limit=limit)
    together = hasten.Certifier(max_nodes=FOREVER, call_limit=limit)
    return lambda problem: together([problem] * 4, n_jobs=2)[0]


def measure(problem: str, way: str, limit: float | None) -> dict[str, Any]:
    """Returns how long an answer took, and what it was; without a limit, how long Ctrl-C took."""
    hard, answer = PROBLEMS[problem](), way_of(way, limit)
    small = spin_glass(3)
    try:
        answer(small)
        hasten.Certifier()(small)
        if limit is not None:
            began = time.monotonic()
            found = answer(hard)
            took = time.monotonic() - began
            return {"took": took, "status": found.status.name, "gap": found.gap if math.isfinite(found.gap) else None}
        signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background may ignore it
        sent: list[float] = []

        def interrupt() -> None:
            sent.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(1.0, interrupt).start()
        try:
            answer(hard)
        except KeyboardInterrupt:
            return {"took": time.monotonic() - sent[0]}
        return {"why": "done before"}
    except SolverError as error:
        return {"why": str(error)[:60]}


def measured(problem: str, way: str, limit: float | None) -> dict[str, Any]:
    """Measures in a process of its own."""
    asked = [sys.executable, __file__, "--one", json.dumps([problem, way, limit])]
    try:
        said = subprocess.run(asked, capture_output=True, text=True, timeout=120)
    except subprocess.TimeoutExpired:
        return {"why": "not within two minutes"}
    for line in reversed(said.stdout.splitlines()):
        if line.startswith("{"):
            found: dict[str, Any] = json.loads(line)
            return found
    return {"why": (said.stderr.strip().splitlines() or ["no answer"])[-1][:60]}


def main() -> None:
    """Prints a table of all problems and ways."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--limit", type=float, default=3.0, help="seconds")
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=PROBLEMS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--one", help="for the processes that this starts")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(*json.loads(given.one))), flush=True)
        os._exit(0)  # work that was left behind is not waited for
    print(f"| problem | by | limit {given.limit:g} s | status | gap | Ctrl-C |\n|---|---|---|---|---|---|")
    for problem in given.problems:
        for way in given.ways:
            if way in hasten.available_solvers() and not hasten.available_solvers()[way]:
                continue
            limited, interrupted = measured(problem, way, given.limit), measured(problem, way, None)
            cells = [f"{limited['took']:.2f} s" if "took" in limited else limited["why"], limited.get("status", "")]
            cells.append("" if limited.get("gap") is None else f"{limited['gap']:.3g}")
            cells.append(f"{interrupted['took']:.2f} s" if "took" in interrupted else interrupted["why"])
            print("| " + " | ".join([problem, way, *cells]) + " |", flush=True)


if __name__ == "__main__":
    main()
