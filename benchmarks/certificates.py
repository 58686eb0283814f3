"""How long certificates take: proving, writing the proof down, and checking it.

    python benchmarks/certificates.py [--count 10] [--family grid3]

Problems of the families of `hasten bench`, small ones and ones of 200 to 2,000 variables, are proved, their proofs
written (and checked once), and checked again, each alone. Times are medians in milliseconds of processor time,
`ratio` is writing over proving; `steps` and `KB` are those of the files. Problems that stay open are left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

os.environ.setdefault("HASTEN_TIER", "compiled")  # before the package is imported

from hasten import Certifier, certificate
from hasten.bench.families import FAMILIES

SIZES = {
    "random": (4, 8, 12, 16),
    "peaked": (4, 8, 16, 24),
    "chain5": (20, 500, 2000),
    "chain20": (20, 100),
    "ruled": (10, 30, 200),
    "tree": (50, 200, 500),
    "dag": (50, 400),
    "grid3": (5, 10, 15),
    "potts": (10, 20, 40),
    "spin": (6, 10, 15),
    "order": (6, 10, 14, 21),
    "assignment": (8, 12, 24),
    "matching": (8, 16, 32),
    "knapsack": (10, 20, 30),
}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.process_time()
    found = call()
    return 1e3 * (time.process_time() - begin), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=10, help="problems of each size")
    parser.add_argument("--family", action="append", choices=SIZES, help="only these families")
    options = parser.parse_args()
    certify, every = Certifier(), list[tuple[float, float, float]]()
    print(
        f"{'':14s} {'variables':>9s} {'proof':>8s} {'write':>8s} {'ratio':>8s} {'check':>8s} {'steps':>8s} {'KB':>6s}"
    )
    for family in options.family or SIZES:
        for size in SIZES[family]:
            rows = []
            for problem in FAMILIES[family].problems(size, options.count + 1):
                if not certify(problem).proved:  # planned, and compiled
                    continue
                certify.certificate(problem) if not rows else None
                proving, _ = timed(lambda problem=problem: [certify(problem) for _ in range(10)])
                writing, written = timed(lambda problem=problem: certify.certificate(problem))
                checking, _ = timed(lambda written=written: certificate.check(written.lines))
                size_of_file = len(written.lines), sum(map(len, written.lines)) / 1024
                rows.append(
                    (len(problem.graph.order), proving / 10, writing, 10 * writing / proving, checking, *size_of_file)
                )
            if not rows:
                print(f"{family + ' ' + str(size):14s} all open")
                continue
            every += [(row[1], row[2], row[4]) for row in rows]
            middle = [statistics.median(column) for column in zip(*rows, strict=True)]
            print(f"{family + ' ' + str(size):14s} {middle[0]:9.0f} {middle[1]:8.3f}", end="", flush=True)
            print("".join(f" {x:8.1f}" for x in middle[2:5]) + f" {middle[5]:8.0f} {middle[6]:6.0f}", flush=True)
    ratios = sorted(writing / proving for proving, writing, _ in every)
    within = sum(writing <= max(50.0, 50.0 * proving) for proving, writing, _ in every)
    longest = max(checking for _, _, checking in every)
    print(
        f"writing: median {statistics.median(each[1] for each in every):.1f} ms, {statistics.median(ratios):.0f} times"
    )
    print(f"the proof; within 50 ms or 50 times: {within} of {len(every)}; checking: at most {longest:.0f} ms")


if __name__ == "__main__":
    main()
