"""Problems that nobody finishes in a test's time; as a script, one that is interrupted while it is answered."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import make_solver
from hasten.support.clock import now

FOREVER = 10**9  # nodes


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """Sees that a limit was kept: on the clock or, where other processes keep the machine busy, by this one's time."""
    began, used = now(), time.process_time()
    yield
    assert min(now() - began, time.process_time() - used) < seconds


def spin_glass(side: int, seed: int = 0) -> Problem:
    """Returns a binary grid whose neighbours want to be alike, or to differ, at random."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    spin = schema.variable("spin", ["down", "up"])
    bond = schema.factor("bond", one=spin, other=spin)
    shape = schema.structure()
    spins = [[shape.add(spin) for _ in range(side)] for _ in range(side)]
    bonds = [shape.connect(bond, one=spins[r][c], other=spins[r][c + 1]) for r in range(side) for c in range(side - 1)]
    bonds += [shape.connect(bond, one=spins[r][c], other=spins[r + 1][c]) for r in range(side - 1) for c in range(side)]
    alike = np.array([[-1.0, 1.0], [1.0, -1.0]])
    tables = {b: strength * alike for b, strength in zip(bonds, rng.normal(size=len(bonds)), strict=True)}
    return shape.problem(0.1 * rng.normal(size=shape.n_labels), tables=tables)


def packing(n: int) -> Problem:
    """Returns items to pack, worth about what they weigh, within several limits."""
    rng = np.random.default_rng(0)
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    items = [shape.add(item) for _ in range(n)]
    weights = rng.integers(100, 1000, size=(5, n))
    for r, row in enumerate(weights):
        shape.rule(f"limit {r}", [(v, "in", float(w)) for v, w in zip(items, row, strict=True)], at_most=row.sum() // 2)
    worth = weights.mean(axis=0) + rng.integers(0, 100, size=n)
    return shape.problem(np.stack([np.zeros(n), -worth / 100.0], axis=1).ravel())


def conflicts(n: int, n_rules: int) -> Problem:
    """Returns items of which pairs exclude each other, by a rule for each pair."""
    rng = np.random.default_rng(0)
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure([item] * n)
    pairs = np.stack(np.triu_indices(n, 1), axis=1)
    for a, b in rng.permutation(pairs)[:n_rules].tolist():
        shape.rule(f"{a} or {b}", [(a, "in", 1.0), (b, "in", 1.0)], at_most=1)
    return shape.problem(np.stack([np.zeros(n), -rng.random(n)], axis=1).ravel())


def interrupted(way: str) -> float:
    """Sends this process SIGINT while it answers; returns how many seconds later that was an error."""
    problem = packing(200) if way == "gurobi" else spin_glass(20)  # its licence is for small models
    if way == "certifier":
        Certifier()(spin_glass(4))

        def answer() -> object:
            return Certifier(max_nodes=FOREVER)(problem)

    elif way == "threads":
        Certifier()(spin_glass(4))

        def answer() -> object:
            return Certifier(max_nodes=FOREVER)([problem] * 4, n_jobs=2)

    elif way in ("beam", "beam in threads"):
        BeamSearch(2)(spin_glass(4))
        n_jobs = 1 if way == "beam" else 2

        def answer() -> object:
            return BeamSearch(65_536)([problem] * 8, n_jobs=n_jobs)

    else:
        solver = make_solver(way)
        solver.solve(spin_glass(3))

        def answer() -> object:
            return solver.solve(problem)

    signal.signal(signal.SIGINT, signal.default_int_handler)  # processes in the background may ignore it
    sent: list[float] = []

    def interrupt() -> None:
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    threading.Timer(0.7, interrupt).start()
    try:
        answer()
    except KeyboardInterrupt:
        return time.monotonic() - sent[0]
    raise AssertionError("It was not interrupted.")


if __name__ == "__main__":
    print(interrupted(sys.argv[1]), flush=True)
    os._exit(0)  # work that was left behind is not waited for
