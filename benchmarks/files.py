"""Model files answered by `solver="auto"`, against toulbar2 on the same file.

    python benchmarks/files.py DIRECTORY [--limit 60]
    python benchmarks/files.py --make DIRECTORY

Of each `.wcsp`, `.cfn` and `.uai` file: the seconds that toulbar2 takes in a process of its own, from opening the file
to its answer, imports not counted; ours, from opening the file to the answer, with solvers loaded (another file was
answered before); who answered; and whether the answers cost the same. toulbar2 rounds the logarithms of `.uai` files,
so its labelling is scored by us. `--make` writes random networks of several families, to be measured.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path

import numpy as np

import hasten

NATIVE = """
import json, sys, time
import pytoulbar2
began = time.perf_counter()
network = pytoulbar2.CFN(verbose=-1)
network.Read(sys.argv[1])
found = network.Solve(timeLimit=int(sys.argv[2]))
print("\\n" + json.dumps([time.perf_counter() - began, found and found[0], bool(network.Option.limited)]))
"""
Table = tuple[tuple[int, ...], np.ndarray]


def native(file: Path, limit: int) -> tuple[float, list[int] | None, bool]:
    """Returns the seconds that toulbar2 takes, its labels, and whether it was stopped."""
    run = [sys.executable, "-c", NATIVE, str(file), str(limit)]
    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(run, capture_output=True, text=True, timeout=10 * limit, cwd=folder, check=False)
    if said.returncode:
        return float("nan"), None, True
    seconds, labels, stopped = json.loads(said.stdout.splitlines()[-1])
    return seconds, labels, stopped


def plain(file: Path, folder: Path) -> Path:
    """Returns a file that is not packed, which toulbar2 reads whatever it was built with."""
    if file.suffix != ".gz":
        return file
    target = folder / file.stem
    target.write_bytes(gzip.decompress(file.read_bytes()))
    return target


def measure(file: Path, limit: int) -> None:
    """Answers a file in both ways, and compares."""
    theirs, labels, stopped = native(file, limit)
    began = time.perf_counter()
    program = hasten.read(file)
    reading = time.perf_counter() - began
    answer = program.solve(solver="auto", time_limit=limit)
    ours = time.perf_counter() - began
    agree = "no answer to compare"
    if labels is not None and answer.values_found is not None:
        cost = program.statement.value(np.array(labels, dtype=float))
        agree = (
            "equal" if abs(cost - answer.objective) <= 1e-6 * max(1.0, abs(cost)) else f"{cost} != {answer.objective}"
        )
    elif labels is None and answer.values_found is None and not stopped:
        agree = "equal: none"
    asked = "proved" if answer.proved else "handed over"
    print(
        f"{file.name:24} toulbar2 {theirs:8.4f} s{' (stopped)' if stopped else ''}, ours {ours:8.4f} s "
        f"({ours / theirs:.2f}x; reading {reading:.4f}), {asked}, {answer.status.name}, {agree}",
        flush=True,
    )


# -- random networks --------------------------------------------------------------------------------------------


def colouring(rng: np.random.Generator, n: int = 30, colours: int = 4) -> tuple[list[int], list[Table]]:
    """Returns a graph to colour with soft preferences."""
    edges = [pair for pair in combinations(range(n), 2) if rng.random() < 5.0 / n]
    tables: list[Table] = [(pair, 20 * np.eye(colours)) for pair in edges]
    return [colours] * n, tables + [((v,), rng.integers(0, 10, colours)) for v in range(n)]


def soft(rng: np.random.Generator, n: int = 20, size: int = 5) -> tuple[list[int], list[Table]]:
    """Returns a random binary network with soft costs."""
    pairs = [pair for pair in combinations(range(n), 2) if rng.random() < 0.25]
    made = [(pair, rng.integers(1, 20, (size, size)) * (rng.random((size, size)) < 0.4)) for pair in pairs]
    return [size] * n, [*made, *(((v,), rng.integers(0, 5, size)) for v in range(n))]


def grid(rng: np.random.Generator, n: int = 8, size: int = 3) -> tuple[list[int], list[Table]]:
    """Returns a grid with random tables."""
    at = np.arange(n * n).reshape(n, n)
    pairs = [
        *zip(at[:, :-1].ravel(), at[:, 1:].ravel(), strict=True),
        *zip(at[:-1].ravel(), at[1:].ravel(), strict=True),
    ]
    return [size] * (n * n), [((int(a), int(b)), rng.integers(0, 20, (size, size))) for a, b in pairs]


def frequencies(rng: np.random.Generator, n: int = 24, size: int = 12) -> tuple[list[int], list[Table]]:
    """Returns transmitters, whose frequencies must, or should, differ by a distance."""
    apart, tables = np.abs(np.subtract.outer(np.arange(size), np.arange(size))), list[Table]()
    for pair in combinations(range(n), 2):
        if rng.random() < 0.2:
            tables.append((pair, np.where(apart <= rng.integers(1, 4), rng.choice([5, 50, 500]), 0)))
    return [size] * n, [*tables, *(((v,), np.arange(size)) for v in range(n))]


def warehouses(rng: np.random.Generator, n: int = 8, shops: int = 20) -> tuple[list[int], list[Table]]:
    """Returns warehouses to open, and shops that each choose one of them."""
    sizes, tables = [2] * n + [n] * shops, [((w,), np.array([0, 200])) for w in range(n)]
    for shop in range(shops):
        tables.append(((n + shop,), rng.integers(1, 100, n)))
        for w in range(n):
            closed = np.zeros((2, n))
            closed[0, w] = 100_000
            tables.append(((w, n + shop), closed))
    return sizes, tables


def ternary(rng: np.random.Generator, n: int = 14, size: int = 3) -> tuple[list[int], list[Table]]:
    """Returns a network with tables of three variables."""
    scopes = [tuple(sorted(rng.choice(n, 3, replace=False).tolist())) for _ in range(2 * n)]
    return [size] * n, [(scope, rng.integers(0, 30, (size,) * 3)) for scope in dict.fromkeys(scopes)]


FAMILIES: dict[str, Callable[[np.random.Generator], tuple[list[int], list[Table]]]] = {
    "colouring": colouring,
    "soft": soft,
    "grid": grid,
    "frequencies": frequencies,
    "warehouses": warehouses,
    "ternary": ternary,
}


def as_wcsp(name: str, sizes: list[int], tables: list[Table]) -> str:
    """Returns a network as a .wcsp file."""
    top = 1 + sum(int(table.max()) for _, table in tables)
    lines = [f"{name} {len(sizes)} {max(sizes)} {len(tables)} {top}", " ".join(map(str, sizes))]
    for scope, table in tables:
        lines.append(f"{len(scope)} {' '.join(map(str, scope))} 0 {table.size}")
        lines += [f"{' '.join(map(str, at))} {int(table[at])}" for at in product(*map(range, table.shape))]
    return "\n".join(lines) + "\n"


def as_uai(name: str, sizes: list[int], tables: list[Table]) -> str:
    """Returns a network as a .uai file: probabilities that fall with the cost."""
    lines = ["MARKOV", str(len(sizes)), " ".join(map(str, sizes)), str(len(tables))]
    lines += [f"{len(scope)} {' '.join(map(str, scope))}" for scope, _ in tables]
    for _, table in tables:
        lines += [str(table.size), " ".join(f"{value:.6g}" for value in np.exp(-np.minimum(table, 300) / 10.0).ravel())]
    return "\n".join(lines) + "\n"


def as_cfn(name: str, sizes: list[int], tables: list[Table]) -> str:
    """Returns a network as a .cfn file."""
    top = 1 + sum(int(table.max()) for _, table in tables)
    functions = {
        f"f{f}": {"scope": [f"x{v}" for v in scope], "costs": table.ravel().astype(float).tolist()}
        for f, (scope, table) in enumerate(tables)
    }
    variables = {f"x{v}": size for v, size in enumerate(sizes)}
    problem = {"name": name, "mustbe": f"<{top}.0"}
    return json.dumps({"problem": problem, "variables": variables, "functions": functions})


def make(folder: Path, seeds: int) -> None:
    """Writes networks of every family, in all three formats in turn."""
    folder.mkdir(parents=True, exist_ok=True)
    writers = {"wcsp": as_wcsp, "uai": as_uai, "cfn": as_cfn}
    for (number, (name, draw)), seed in product(enumerate(FAMILIES.items()), range(seeds)):
        kind = list(writers)[(number + seed) % len(writers)]
        sizes, tables = draw(np.random.default_rng(seed))
        (folder / f"{name}{seed}.{kind}").write_text(writers[kind](f"{name}{seed}", sizes, tables))


def files_of(folder: Path, unpacked: Path) -> Iterator[Path]:
    """Yields the networks of a directory, those that are packed after they were unpacked."""
    for file in sorted(folder.iterdir()):
        if {".wcsp", ".cfn", ".uai"} & set(file.suffixes):
            yield plain(file, unpacked)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--make", action="store_true", help="write random networks there, and measure nothing")
    options.add_argument("--seeds", type=int, default=3, help="networks of each family")
    options.add_argument("--limit", type=int, default=60, help="seconds that each way may take")
    given = options.parse_args()
    if given.make:
        return make(given.folder, given.seeds)
    with tempfile.TemporaryDirectory() as folder:
        first = Path(folder) / "first.wcsp"
        first.write_text(as_wcsp("first", *soft(np.random.default_rng(0), 40, 6)))
        hasten.read(first).solve(solver="auto", time_limit=2)
        for file in files_of(given.folder, Path(folder)):
            measure(file, given.limit)
    return None


if __name__ == "__main__":
    main()
