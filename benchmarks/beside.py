"""Families of `hasten bench` here and in another checkout: are answers the same, and how long do they take?

    python benchmarks/beside.py OTHER

Of each family and size, problems are certified and searched in both. Labels and costs are compared bit by bit, bounds
by how far they are apart: what is proved by other sums has other bounds. A problem that only one checkout proves is
counted, not compared. Proofs are timed in turns, in a process each: all problems in one call, and one by one, the
median over the problems; the least of several rounds. `x` is how many times as fast it is here.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hasten.search.beam import ConstrainedSearch

HERE = Path(__file__).parents[1]
SIZES = {  # some of those of `hasten bench`
    "random": (2, 4, 6, 8, 12, 16),
    "peaked": (2, 4, 6, 8, 12, 16, 20),
    "chain5": (10, 20, 50, 100),
    "chain20": (10, 20, 50, 100),
    "grid3": (3, 5, 7),
    "assignment": (4, 8, 12, 16, 24),
    "matching": (4, 8, 16, 32),
}
REPEATS = 20


def measure(n: int) -> dict[str, Any]:
    """Returns what this checkout answers, and how long its proofs take, in microseconds a problem."""
    import hasten
    from hasten.bench.families import FAMILIES

    certify = hasten.Certifier()
    searches = {
        "greedy": hasten.greedy(),
        "beam": hasten.BeamSearch(3),
        "look-ahead": hasten.BeamSearch(3, look_ahead=True),
        "constrained": ConstrainedSearch(),
    }
    found: dict[str, Any] = {}
    for family, sizes in SIZES.items():
        for size in sizes:
            problems = FAMILIES[family].problems(size, n)
            batch, key = hasten.Batch.of(problems), f"{family} {size}"
            answers = certify(batch)
            found[f"{key}/at"] = batch.variable_at
            for name in ("labels", "cost", "bound", "proved"):
                found[f"{key}/{name}"] = getattr(answers, name)
            for search, run in searches.items():
                searched = run(batch)
                found[f"{key}/{search}"] = np.concatenate([searched.labels, searched.cost])
            found[f"{key}/together"] = least(lambda batch=batch: certify(batch)) / n  # type: ignore[misc]
            alone = [least(lambda problem=problem: certify(problem)) for problem in problems]  # type: ignore[misc]
            found[f"{key}/alone"] = np.median(alone)
    return found


def least(run: Callable[[], object]) -> float:
    """Returns the least microseconds that something takes."""
    run()
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return 1e6 * float(best)


def in_checkout(root: Path, n: int) -> dict[str, Any]:
    """Measures in a process of its own."""
    with tempfile.TemporaryDirectory() as place:
        path, environment = f"{place}/found.npz", os.environ | {"PYTHONPATH": str(root / "src")}
        subprocess.run([sys.executable, __file__, "--worker", path, "--count", str(n)], env=environment, check=True)
        with np.load(path) as saved:
            return dict(saved)


def compare(key: str, here: dict[str, Any], there: dict[str, Any]) -> str:
    """Returns a line on one family and size."""
    mine, other = (each[f"{key}/proved"] for each in (here, there))
    both, at = mine & other, here[f"{key}/at"]
    of_both = np.repeat(both, np.diff(at))
    same = [
        np.array_equal(here[f"{key}/labels"][of_both], there[f"{key}/labels"][of_both]),
        np.array_equal(here[f"{key}/cost"][both], there[f"{key}/cost"][both]),
        *(
            np.array_equal(here[f"{key}/{search}"], there[f"{key}/{search}"], equal_nan=True)
            for search in ("greedy", "beam", "look-ahead", "constrained")
        ),
    ]
    bounds, costs = np.abs(here[f"{key}/bound"] - there[f"{key}/bound"])[both], np.abs(here[f"{key}/cost"][both])
    apart = float((bounds / np.maximum(1.0, costs)).max(initial=0.0))
    said = "the same" if all(same) else "NOT THE SAME"
    times = [there[f"{key}/{how}"] / here[f"{key}/{how}"] for how in ("together", "alone")]
    return (
        f"{key:14} {said:12} {int(mine.sum()):5} {int(other.sum()):5} {apart:8.0e} "
        f"{here[f'{key}/together']:10.1f} {times[0]:5.2f}x {here[f'{key}/alone']:10.1f} {times[1]:5.2f}x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", nargs="?", type=Path, help="another checkout")
    parser.add_argument("--count", type=int, default=50, help="problems of each family and size")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.worker is not None:
        np.savez(settings.worker, **measure(settings.count))
        return
    if settings.other is None:
        parser.error("say where the other checkout is")
    if not (settings.other / "src" / "hasten").is_dir():  # or this one would be measured twice
        parser.error(f"{settings.other} is no checkout: it has no src/hasten")
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}
    for _ in range(settings.rounds):
        for known, root in ((here, HERE), (there, settings.other.resolve())):
            for key, value in in_checkout(root, settings.count).items():
                timed = key.endswith(("/together", "/alone"))
                known[key] = min(value, known.get(key, np.inf)) if timed else value
    print(f"{'':14} {'answers':12} {'proved':>11} {'bounds':>8} {'together µs':>17} {'alone µs':>17}")
    print(f"{'':14} {'':12} {'here':>5} {'there':>5} {'apart':>8}")
    for family, sizes in SIZES.items():
        for size in sizes:
            print(compare(f"{family} {size}", here, there))


if __name__ == "__main__":
    main()
