"""What a user waits for: the first answer in an empty cache, and single calls; here and in another checkout.

    python benchmarks/first_use.py                      # this checkout
    python benchmarks/first_use.py --against OTHER  # side by side, in turns, with ratios

Times of the first answer are of the processor, import included; single calls are the median, over problems, of the
least time of several rounds. Costs are noise, which is harder than what a trained model gives.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

HERE = str(Path(__file__).parents[1] / "src")
PAIRS = {
    "Kill": ("person", "person"),
    "LiveIn": ("person", "location"),
    "WorkFor": ("person", "organization"),
    "LocatedAt": ("location", "location"),
    "OrgBasedIn": ("organization", "location"),
}
SIZES = (2, 4, 6, 8)


def entities(n: int) -> Any:
    """Returns the structure of `n` entities and all their relations, built with the public API alone."""
    import hasten

    schema = hasten.Schema()
    entity = schema.variable("entity", ["person", "location", "organization", "none"])
    relation = schema.variable("relation", [*PAIRS, "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    for name, (source, target) in PAIRS.items():
        args.allow(relation=name, source=source, target=target)
    args.allow(relation="NoRel")
    both = schema.factor("both", forward=relation, backward=relation)
    both.allow(forward="NoRel").allow(backward="NoRel")
    shape = schema.structure()
    each = [shape.add(entity) for _ in range(n)]
    for a in range(n):
        for b in range(a + 1, n):
            there, back = shape.add(relation), shape.add(relation)
            shape.connect(args, source=each[a], relation=there, target=each[b])
            shape.connect(args, source=each[b], relation=back, target=each[a])
            shape.connect(both, forward=there, backward=back)
    return shape


def first_answer(n: int) -> dict[str, float]:
    """Returns the seconds of the processor until one problem is certified, from before the import on."""
    start = time.process_time()
    import numpy as np

    import hasten

    shape = entities(n)
    answer = hasten.Certifier()(shape.problem(np.random.default_rng(0).normal(size=shape.n_labels)))
    assert answer.proved
    return {f"first answer, {n} entities (s)": time.process_time() - start}


def single_calls(solver: str | None) -> dict[str, float]:
    """Returns microseconds of single calls: our predictions and, if there is one, a solver with reused models."""
    import numpy as np

    import hasten

    found = {}
    for n in SIZES:
        shape = entities(n)
        costs = np.random.default_rng(n).normal(size=(200, shape.n_labels))
        speedup = hasten.Speedup(shape.schema)
        found[f"predict one, {n} entities (µs)"] = typical(speedup.predict, shape, costs, 6)
        if solver is not None:
            peer = hasten.make_solver(solver)
            found[f"{solver}, reused, {n} entities (µs)"] = typical(peer.solve, shape, costs[:50], 2)
    return found


def typical(call: Any, shape: Any, rows: Any, rounds: int) -> float:
    """Returns the median, over problems, of the least microseconds that making and answering one takes."""
    call(shape.problem(rows[0]))
    least = [float("inf")] * len(rows)
    for _ in range(rounds):
        for i, row in enumerate(rows):
            start = time.perf_counter()
            call(shape.problem(row))
            least[i] = min(least[i], time.perf_counter() - start)
    return median(least) * 1e6


def measure(source: str, what: str, cache: str) -> dict[str, float]:
    """Measures something in a process of its own."""
    environment = os.environ | {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, __file__, "--measure", what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", help="another checkout")
    parser.add_argument("--solver", help="a solver to compare single calls with, such as gurobi")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.measure is not None:
        kind, _, detail = settings.measure.partition(":")
        print(json.dumps(first_answer(int(detail)) if kind == "first" else single_calls(detail or None)))
        return
    sources = {"here": HERE} | ({"there": str(Path(settings.against).resolve() / "src")} if settings.against else {})
    best: dict[str, dict[str, float]] = {name: {} for name in sources}
    with tempfile.TemporaryDirectory() as warm:
        for turn in range(settings.rounds):
            for what in ("first:2", "first:8", f"calls:{settings.solver or ''}"):
                for name, source in sources.items():
                    with tempfile.TemporaryDirectory() as empty:
                        cache = empty if what.startswith("first") else f"{warm}/{name}"
                        for key, value in measure(source, what, cache).items():
                            best[name][key] = min(value, best[name].get(key, float("inf")))
                print(f"round {turn + 1}: {what}", file=sys.stderr)
    for key in best["here"]:
        row = [f"{best[name][key]:10.2f}" for name in sources]
        if settings.against:
            row.append(f"{best['there'][key] / best['here'][key]:8.1f}x")
        print(f"{key:34}", *row)


if __name__ == "__main__":
    main()
