"""What a beam search works in: how to search, the nodes of a beam, and scratch space to expand them."""

from __future__ import annotations

from typing import NamedTuple

from hasten.jit import grid, kernel, split
from hasten.kernels.layout import GRAPH, BatchArrays, graph_at
from hasten.support.arrays import FloatArray, IntArray

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
    """The nodes of a beam, best first; there are at most `width`."""

    labels: IntArray  # (width, V)
    g: FloatArray  # (width,)
    h: FloatArray  # (width,)
    rest: FloatArray  # (width,) the least that all unassigned variables can still cost: the sum of
    ahead: FloatArray  # (width, V) the least that each can cost; unused without look-ahead
    row_low: FloatArray  # (width, R) the least that each row can still come to
    row_high: FloatArray  # (width, R) and the most


class Scratch(NamedTuple):
    """Scratch space to expand and select."""

    next: Nodes
    g: FloatArray  # (candidates,)
    h: FloatArray  # (candidates,)
    rest: FloatArray  # (candidates,)
    out: IntArray  # (candidates,) whether it is removed
    best: IntArray  # (width + 1,) candidates, best first
    rank: FloatArray  # (width + 1,) their priorities


class Beam(NamedTuple):
    """All that a search works in."""

    nodes: Nodes
    scratch: Scratch
    known: IntArray  # (V,) of each variable: UNKNOWN, WANTED or KNOWN


class Sizes(NamedTuple):
    """How large a beam is: its width, and the most variables, rows and labels of a variable of some problems."""

    width: int
    variables: int
    rows: int
    labels: int


@kernel
def largest(batch: BatchArrays, problems: IntArray, width: int) -> Sizes:
    """Returns the sizes of a beam that can search some problems."""
    n_variables, n_rows, n_labels, s = 0, 0, 1, 0
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            graph = graph_at(s)
            n_variables = max(n_variables, graph.order.size)
            n_rows = max(n_rows, graph.row_low.size)
            for v in range(graph.order.size):
                n_labels = max(n_labels, graph.first[v + 1] - graph.first[v])
    return Sizes(width, n_variables, n_rows, n_labels)


@kernel
def n_floats(n: Sizes) -> int:
    """Returns how many floats a beam needs."""
    return n.width * (2 * (3 + n.variables + 2 * n.rows) + 3 * n.labels + 1) + 1


@kernel
def n_ints(n: Sizes) -> int:
    """Returns how many whole numbers a beam needs."""
    return n.width * (2 * n.variables + n.labels + 1) + 1 + n.variables


@kernel
def beam_in(floats: FloatArray, ints: IntArray, n: Sizes) -> Beam:
    """Returns a beam cut out of two buffers of these sizes; all costs count as known."""
    b, bv, br, c = n.width, n.width * n.variables, n.width * n.rows, n.width * n.labels
    g, h, rest, ahead, low, high, next_g, next_h, next_rest, next_ahead, next_low, next_high, cg, ch, crest, rank = (
        split(floats, (b, b, b, bv, br, br, b, b, b, bv, br, br, c, c, c, b + 1))
    )
    labels, next_labels, out, best, known = split(ints, (bv, bv, c, b + 1, n.variables))
    for v in range(n.variables):
        known[v] = KNOWN
    nodes = Nodes(
        grid(labels, b, n.variables),
        g,
        h,
        rest,
        grid(ahead, b, n.variables),
        grid(low, b, n.rows),
        grid(high, b, n.rows),
    )
    following = Nodes(
        grid(next_labels, b, n.variables),
        next_g,
        next_h,
        next_rest,
        grid(next_ahead, b, n.variables),
        grid(next_low, b, n.rows),
        grid(next_high, b, n.rows),
    )
    return Beam(nodes, Scratch(following, cg, ch, crest, out, best, rank), known)
