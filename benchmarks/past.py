"""What past answers are worth on items packed again and again.

    python benchmarks/past.py

Items are worth about what they weigh, within three limits; each problem changes what they are worth a little. The
pool learns from 200 problems. On 50 others: how often the best of its labellings is optimal; certified answers
by HiGHS with and without it, alternating; and branching alone, of 100,000 nodes at most, with and without it. What past
answers of sentences prove stands in the report of `hasten reproduce`.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from hasten import Batch, Certifier, Rule, Schema, Solutions, Speedup
from hasten.speedup.parts import Certified
from hasten.speedup.skipping import disagreeing


def packing(n: int, n_items: int, noise: float, seed: int = 0) -> Batch:
    """Items to pack within three limits, worth about what they weigh, each time a little more or less."""
    rng = np.random.default_rng(seed)
    schema = Schema()
    item = schema.variable("item", ["in", "out"])
    shape = schema.structure()
    for _ in range(n_items):
        shape.add(item)
    weights = rng.integers(20, 80, size=(3, n_items))
    worth = weights.mean(axis=0) + rng.normal(size=n_items) * 5
    rules = [
        Rule.of(f"limit {r}", [(v, "in", float(w)) for v, w in enumerate(row)], at_most=float(row.sum() // 3))
        for r, row in enumerate(weights)
    ]
    costs = np.zeros((n, 2 * n_items))
    costs[:, ::2] = -worth * (1 + noise * rng.normal(size=(n, n_items)))
    return shape.with_rules(rules).batch(costs)


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    begin = time.process_time()
    found = run()
    return found, time.process_time() - begin


def measure_packing(n_items: int, n_learned: int, n: int, console: Console) -> dict[str, Any]:
    """Packs `n` times with and without a pool that learned from other problems."""
    batch = packing(n_learned + n, n_items, 0.02)
    schema = batch.structures[0].schema
    plain, past = Speedup(schema), Speedup(schema, answer=Certified(past=64))
    past.predict(batch[:n_learned])
    pool = past._oracle.pool
    assert pool is not None
    n_kept, asked = len(pool), batch[n_learned:]
    best = pool.best(asked)
    wanted: list[Solutions] = []
    times = {"without": 0.0, "with": 0.0}
    for p in range(n):
        for name, fast in (("without", plain), ("with", past)):
            found, seconds = timed(lambda fast=fast, p=p: fast.predict(asked[p : p + 1]))  # type: ignore[misc]
            times[name] += seconds
            if name == "without":
                wanted.append(found)
            else:
                assert not disagreeing(found, wanted[-1]).any()
    optimal = float((~disagreeing(best, Solutions.joined(asked, wanted))).mean())
    certifier = Certifier(max_nodes=100_000)
    without, seconds_without = timed(lambda: certifier.report(asked))
    given, seconds_given = timed(lambda: certifier.report(asked, best))
    row = {
        "items": n_items,
        "learned from": n_learned,
        "problems": n,
        "labellings kept": n_kept,
        "best is optimal": optimal,
        "certified ms": 1e3 * times["without"] / n,
        "certified with past answers ms": 1e3 * times["with"] / n,
        "branching nodes": float(without.n_nodes.mean()),
        "branching nodes with past answers": float(given.n_nodes.mean()),
        "proved by branching": float(without.solutions.proved.mean()),
        "proved by branching with past answers": float(given.solutions.proved.mean()),
        "branching ms": 1e3 * seconds_without / n,
        "branching with past answers ms": 1e3 * seconds_given / n,
    }
    tell(row, console)
    return row


def tell(row: dict[str, Any], console: Console) -> None:
    shown = {key: round(value, 3) if isinstance(value, float) else value for key, value in row.items()}
    console.print("; ".join(f"{key} {value}" for key, value in shown.items()), highlight=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    console = Console(width=120)
    results = {"packing": [measure_packing(n_items, 200, 50, console) for n_items in (20, 30, 40)]}
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
