"""How long certificates take: proving, writing the proof down, and checking it.

    python benchmarks/certificates.py [--count 20]

Of each family and size of `hasten bench`, problems are proved, their proofs written and checked, each alone. Times are
medians in milliseconds; `steps` and `KB` are those of the files.
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
from hasten.certificates import Certificate

SIZES = {"random": (4, 8, 12), "peaked": (4, 8, 16), "chain20": (20, 100), "grid3": (5,), "assignment": (8, 12)}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    begin = time.perf_counter()
    found = call()
    return 1e3 * (time.perf_counter() - begin), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=20, help="problems of each size")
    count = parser.parse_args().count
    certify = Certifier()
    print(f"{'':14s} {'proof':>8s} {'write':>8s} {'check':>8s} {'steps':>8s} {'KB':>6s}")
    for family, sizes in SIZES.items():
        for size in sizes:
            rows = []
            for problem in FAMILIES[family].problems(size, count):
                certify(problem)  # planned
                proving, answer = timed(lambda problem=problem: certify(problem))
                if not answer.proved:
                    continue
                writing, written = timed(lambda answer=answer: Certificate.of(answer))
                checking, _ = timed(lambda written=written: certificate.check(written.lines))
                rows.append((proving, writing, checking, len(written.lines), sum(map(len, written.lines)) / 1024))
            middle = [statistics.median(column) for column in zip(*rows, strict=True)]
            print(f"{family + ' ' + str(size):14s} {middle[0]:8.3f} " + " ".join(f"{x:8.1f}" for x in middle[1:]))


if __name__ == "__main__":
    main()
