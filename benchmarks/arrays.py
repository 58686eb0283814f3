"""Structures built call by call, and straight from arrays.

    python benchmarks/arrays.py [--shapes 500] [--rounds 3]

Each sentence has a shape of its own: entities, a relation for each pair in a random order, and two rules. Times are by
the clock, alone and with compiling; the fastest of some rounds counts. The shapes of both ways are compared.
"""

from __future__ import annotations

import argparse
import time
from itertools import permutations

import numpy as np
from shapes import ENTITIES, sentences

import hasten
from hasten.model.shapes import RuleArrays


def compare_arrays(n_shapes: int, rounds: int) -> None:
    """Prints how long shapes take that are built call by call, and from arrays: the fastest of some rounds."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(3, 9, n_shapes)
    pairs = [np.array(list(permutations(range(n), 2)))[rng.permutation(n * (n - 1))] for n in sizes]

    def call_by_call(schema: hasten.Schema) -> list[hasten.Structure]:
        shapes, (entity, relation), (args,) = [], schema.variables.values(), schema.factors.values()
        for n, order in zip(sizes.tolist(), pairs, strict=True):
            shape = schema.structure()
            for _ in range(n):
                shape.add(entity)
            for source, target in order.tolist():
                shape.connect(args, source=source, relation=shape.add(relation), target=target)
            for label in ENTITIES[:2]:
                shape.rule("few", [(v, label) for v in range(n)], at_most=3)
            shapes.append(shape)
        return shapes

    def from_arrays(schema: hasten.Schema) -> list[hasten.Structure]:
        n_pairs = sizes * (sizes - 1)
        variable_at = np.append(0, np.cumsum(sizes + n_pairs))
        pair_at = np.append(0, np.cumsum(n_pairs))
        every = np.concatenate(pairs)
        number = np.arange(len(every)) - pair_at[:-1].repeat(n_pairs) + sizes.repeat(n_pairs)
        kinds = np.ones(variable_at[-1], dtype=np.int64)
        within = np.arange(len(kinds)) - variable_at[:-1].repeat(sizes + n_pairs)
        kinds[within < sizes.repeat(sizes + n_pairs)] = 0
        twice = sizes.repeat(2)
        variable = np.arange(twice.sum()) - np.append(0, np.cumsum(twice))[:-1].repeat(twice)
        label = np.tile([0, 1], n_shapes).repeat(twice)
        rules = RuleArrays(np.append(0, np.cumsum(twice)), variable, label, high=3.0, name="few")
        scopes = np.stack([every[:, 0], number, every[:, 1]], axis=1)
        return schema.structures(kinds, variable_at, {"args": (scopes, pair_at)}, (rules, 2 * np.arange(n_shapes + 1)))

    taken: dict[tuple[str, str], list[float]] = {}
    for _ in range(rounds):
        made = {}
        for way, build in {"call by call": call_by_call, "from arrays": from_arrays}.items():
            schema = sentences()  # of which no shape is known
            started = time.perf_counter()
            made[way] = build(schema)
            built = time.perf_counter()
            for shape in made[way]:
                _ = shape.graph
            ready = time.perf_counter()
            taken.setdefault((way, "build"), []).append(built - started)
            taken.setdefault((way, "build and compile"), []).append(ready - started)
        if any(
            a.rules != b.rules or a.graph.scope.tolist() != b.graph.scope.tolist()
            for a, b in zip(*made.values(), strict=True)
        ):
            raise SystemExit("The shapes differ.")
    n_factors = sum(map(len, pairs))
    print(f"{n_shapes:,} shapes, {n_factors / n_shapes:.0f} factors each; microseconds a shape")
    for step in ("build", "build and compile"):
        slow, fast = (1e6 * min(taken[way, step]) / n_shapes for way in ("call by call", "from arrays"))
        print(f"{step:20s} call by call {slow:8.1f}, from arrays {fast:8.1f}: {slow / fast:.1f}x")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--shapes", type=int, default=500)
    options.add_argument("--rounds", type=int, default=3)
    given = options.parse_args()
    compare_arrays(given.shapes, given.rounds)


if __name__ == "__main__":
    main()
