"""Rows are what the terms of rules come to, whatever their order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import add

import naive
import numpy as np

from hasten.kernels.cells import Rows, with_rows
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS


def added(values: Iterable[float]) -> float:
    """Returns the sum, rounded after each number as kernels do: `sum` rounds once, from Python 3.12 on."""
    return reduce(add, values, 0.0)


def slow_rows(first: np.ndarray, rows: Rows) -> dict[str, list[float]]:
    """Returns the fields of some rows, one cell after the other."""
    owner = [v for v, size in enumerate(np.diff(first)) for _ in range(size)]
    cells: list[tuple[int, int, float]] = []
    links: list[tuple[int, int, float, float]] = []
    for r, (begin, end) in enumerate(zip(rows.first[:-1], rows.first[1:], strict=True)):
        totals: dict[int, float] = {}
        for label, weight in zip(rows.label[begin:end].tolist(), rows.weight[begin:end].tolist(), strict=True):
            totals[label] = totals.get(label, 0.0) + weight
        mine = sorted((label, total) for label, total in totals.items() if total)
        cells += [(r, label, total) for label, total in mine]
        for v in dict.fromkeys(owner[label] for label, _ in mine):
            adds = [dict(mine).get(label, 0.0) for label in range(first[v], first[v + 1])]
            links.append((v, r, min(adds), max(adds)))
    n_rows, found = len(rows.low), {}
    weights = [[weight for of, _, weight in cells if of == r] for r in range(n_rows)]
    whole = [all(map(float.is_integer, each)) for each in weights]
    ranges = [[(low, high) for _, of, low, high in links if of == r] for r in range(n_rows)]
    sizes = [added(max(-low, high) for low, high in each) for each in ranges]
    found["row_first"] = np.cumsum([0, *map(len, weights)]).tolist()
    found["row_label"], found["row_weight"] = [label for _, label, _ in cells], [weight for *_, weight in cells]
    found["row_variable"] = [owner[label] for label in found["row_label"]]
    found["row_low"], found["row_high"] = rows.low.tolist(), rows.high.tolist()
    found["row_least"], found["row_most"] = map(
        list,
        zip(
            *[
                naive.limits((dict(enumerate(each)), low, high))
                for each, low, high in zip(weights, rows.low.tolist(), rows.high.tolist(), strict=True)
            ],
            strict=True,
        ),
    )
    found["row_counts"] = [all(weight == 1.0 for weight in each) for each in weights]
    by_label = sorted(cells, key=lambda cell: (cell[1], cell[0]))
    found["cell_first"] = [sum(label < i for _, label, _ in cells) for i in range(first[-1] + 1)]
    found["cell_row"], found["cell_weight"] = [r for r, _, _ in by_label], [weight for *_, weight in by_label]
    found["link_first"] = [sum(of < v for of, *_ in links) for v in range(len(first))]
    _, found["link_row"], found["link_low"], found["link_high"] = (
        map(list, zip(*sorted(links), strict=True)) if links else [[]] * 4
    )
    found["range_low"], found["range_high"] = (
        [added(each[side] for each in mine) for mine in ranges] for side in (0, 1)
    )
    found["row_margin"] = [
        0.0 if exact and size < 2.0**53 else 8 * EPS * (len(each) + 4) * size
        for exact, size, each in zip(whole, sizes, ranges, strict=True)
    ]
    return found


def random_rows(rng: np.random.Generator) -> tuple[np.ndarray, Rows]:
    """Returns where labels start, and rows over them: some empty, some that name a label twice, perhaps for nothing."""
    first = np.append(0, rng.integers(1, 5, rng.integers(1, 7)).cumsum())
    n_rows = int(rng.integers(1, 8))
    row_first = np.append(0, (rng.integers(0, 9, n_rows) * rng.integers(0, 2, n_rows)).cumsum())
    n = int(row_first[-1])
    weights = [np.ones(n), rng.choice([-2.0, -1.0, 1.0, 2.0], n), rng.choice([0.0, 0.5, -0.5, 1.0, 1 / 3, 1e10], n)]
    weights += [rng.normal(size=n), rng.choice([3e15, 1.0], n)]
    low = rng.choice([-np.inf, 0.0, -3.5, 1.0, 0.9999999999], n_rows)
    high = rng.choice([np.inf, 1.0, 4.5, 3.0, 2.0000000001], n_rows)
    return first, Rows(row_first, rng.integers(0, first[-1], n), weights[rng.integers(5)], low, high)


def test_rows_are_what_their_terms_come_to() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        first, rows = random_rows(rng)
        graph, slow = with_rows(Graph.start(first=first), rows), slow_rows(first, rows)
        assert slow.keys() == {name for name, place in Graph._places.items() if place >= Graph._places["row_first"]}
        for name, values in slow.items():
            assert getattr(graph, name).tolist() == values, (name, first, rows)
