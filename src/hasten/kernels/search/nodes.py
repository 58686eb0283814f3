"""What a beam search works in: how to search, the nodes of a beam, and room to expand them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hasten.jit import driver
from hasten.kernels.layout import Pool, view
from hasten.support.arrays import BoolArray, FloatArray, IntArray

UNKNOWN, WANTED, KNOWN = 0, 1, 2  # the cost of a variable; one that is known and assigned is part of g
BITS, MASK = 15, (1 << 15) - 1  # a candidate is named by its node, shifted, and its label


class Options(NamedTuple):
    """How to search."""

    width: int
    theta: float
    spread: float
    enforce: bool
    ahead: bool


class Nodes(NamedTuple):
    """The nodes of a beam, best first: room for `width` of them."""

    labels: NDArray[np.int16]  # (width, V)
    g: FloatArray  # (width,)
    h: FloatArray  # (width,)
    rest: FloatArray  # (width,) the least that all unassigned variables can still cost: the sum of
    ahead: FloatArray  # (width, V) the least that each can cost; unused without look-ahead
    row: FloatArray  # (width, R) what each row has so far


class Scratch(NamedTuple):
    """Room to expand and select."""

    next: Nodes
    g: FloatArray  # (candidates,)
    h: FloatArray  # (candidates,)
    rest: FloatArray  # (candidates,)
    out: BoolArray  # (candidates,) removed
    best: IntArray  # (width + 1,) candidates, best first
    rank: FloatArray  # (width + 1,) their priorities


@driver
def make_nodes(width: int, n_variables: int, n_rows: int) -> Nodes:
    """Returns room for a beam."""
    return Nodes(
        np.zeros((width, n_variables), dtype=np.int16),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros((width, n_variables)),
        np.zeros((width, n_rows)),
    )


@driver
def make_scratch(width: int, n_variables: int, n_rows: int, n_labels: int) -> Scratch:
    """Returns room to expand a beam over variables of at most `n_labels` labels."""
    n = width * n_labels
    return Scratch(
        make_nodes(width, n_variables, n_rows),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, dtype=np.bool_),
        np.zeros(width + 1, dtype=np.int64),
        np.zeros(width + 1),
    )


@driver
def largest(pool: Pool, structure: IntArray, begin_at: int, end_at: int) -> tuple[int, int, int]:
    """Returns the most variables, rows and labels of a variable that some problems have."""
    n_variables, n_rows, n_labels = 0, 0, 1
    seen = np.zeros(pool.at.shape[0], dtype=np.bool_)
    for p in range(begin_at, end_at):
        if not seen[structure[p]]:
            seen[structure[p]] = True
            graph = view(pool, structure[p])
            n_variables = max(n_variables, graph.order.size)
            n_rows = max(n_rows, graph.row_low.size)
            for v in range(graph.order.size):
                n_labels = max(n_labels, graph.first[v + 1] - graph.first[v])
    return n_variables, n_rows, n_labels
