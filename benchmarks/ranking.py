"""Measures the k best labellings and min-marginals, against the best labelling alone; `--check` enumerates.

Problems are sentences of the paper's task with 2 to 12 entities, with costs of noise and with costs that a good model
has (a label of each variable stands out). Times are the fastest of several calls, one problem at a time, in one thread;
the median over the problems counts. `--check N` compares rankings and min-marginals of N random small problems, with
ties, infinite costs and rules, with enumeration.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np

import hasten

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
import naive
from strategies import entity_relation, random_problem

KS = (2, 10, 100)


def seconds(run: Callable[[], object], n: int) -> float:
    """Returns what a call takes, the fastest of several."""
    times = []
    for _ in range(n):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def costs(kind: str, shape: hasten.Structure, rng: np.random.Generator) -> np.ndarray:
    """Returns costs: noise, or with a label of each variable that stands out."""
    if kind == "noise":
        return rng.normal(size=shape.n_labels)
    parts = []
    for variable in shape.kinds:
        part = 4 * rng.random(len(variable))
        part[rng.integers(len(variable)) if len(variable) == 4 else -1] -= 5
        parts.append(part)
    return np.concatenate(parts)


def measure(n_problems: int, runs: int) -> None:
    """Prints a table: the time of the best labelling, and how many times that the others take."""
    print(f"{'':22s}{'best':>10s}" + "".join(f"{f'{k} best':>10s}" for k in KS) + f"{'marginals':>12s}  proved")
    certifier = hasten.Certifier()
    for kind, n_entities in product(("noise", "peaked"), (2, 4, 8, 12)):
        shape, rng = entity_relation(n_entities), np.random.default_rng(0)
        rows, proved = [], 0
        for _ in range(n_problems):
            problem = shape.problem(costs(kind, shape, rng))
            proved += certifier.best(problem, KS[-1]).proved
            best = seconds(lambda problem=problem: certifier(problem), runs)
            ranked = [seconds(lambda problem=problem, k=k: certifier.best(problem, k), runs) for k in KS]
            rows.append([best, *ranked, seconds(lambda problem=problem: certifier.min_marginals(problem), 1)])
        best, *others = np.median(rows, axis=0)
        ratios = "".join(f"{f'{other / best:.1f}x':>10s}" for other in others[:-1])
        name = f"{kind}, {n_entities} entities"
        print(
            f"{name:22s}{f'{1e6 * best:.0f} us':>10s}{ratios}{f'{1e3 * others[-1]:.2f} ms':>12s}  {proved}/{n_problems}"
        )


def check(n: int) -> None:
    """Compares rankings and min-marginals with enumeration."""
    rng = np.random.default_rng(1)
    infeasible = fewer = 0
    for x in range(n):
        problem = random_problem(rng, **({"max_variables": 7, "max_factors": 4} if x % 2 else {}))
        every = sorted(
            (naive.cost(problem, labels), labels)
            for labels in product(*(range(len(kind)) for kind in problem.structure.kinds))
            if naive.valid(problem, labels)
        )
        k = int(rng.choice([1, 2, 3, 5, 10, 50, 2000]))
        certifier = hasten.Certifier(max_join=(0, 4, 768, None)[rng.integers(4)])
        found = certifier.best(problem, k)
        assert found.proved
        assert len(found) == min(k, len(every))
        np.testing.assert_allclose(found.costs, [cost for cost, _ in every[:k]], rtol=1e-9, atol=1e-9)
        marginals, at = certifier.min_marginals(problem), 0
        assert marginals.proved.all()
        for v, kind in enumerate(problem.structure.kinds):
            for i in range(len(kind)):
                least = min((cost for cost, labels in every if labels[v] == i), default=np.inf)
                np.testing.assert_allclose(marginals.cost[at], least, rtol=1e-6, atol=1e-6)
                at += 1
        infeasible += not every
        fewer += len(every) < k
    print(f"{n:,} problems as enumerated; {infeasible:,} without a labelling, {fewer:,} with fewer than asked for.")


def main() -> None:
    """Runs what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=20, help="of each kind and size")
    parser.add_argument("--runs", type=int, default=5, help="calls, of which the fastest counts")
    parser.add_argument("--check", type=int, default=0, metavar="N", help="compare N random problems with enumeration")
    options = parser.parse_args()
    if options.check:
        check(options.check)
    else:
        measure(options.problems, options.runs)


if __name__ == "__main__":
    main()
