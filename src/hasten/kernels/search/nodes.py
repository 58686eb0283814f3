"""The state of a beam search: its options, the nodes of the beam, and scratch space to expand them."""

from __future__ import annotations

from typing import NamedTuple

from hasten.jit import grid, kernel, part, split
from hasten.kernels.layout import GRAPH, BatchArrays, graph_at, labels_of
from hasten.support.arrays import BoolArray, FloatArray, IntArray

UNKNOWN, WANTED, KNOWN = 0, 1, 2  # the cost of a variable; one that is known and assigned is part of g
GIVEN, LATER, NOW = 0, 1, 2  # costs that are not known: are there; in a later call; in the next, scratch untouched
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


class Track(NamedTuple):
    """Reports of a search beside its answer. With both arrays empty it reports nothing, and may take the short way.

    Given a reference, a search ends once the node that agrees with it (the paper's y-good node) is lost.
    """

    gap: FloatArray  # (V,) or empty: receives the heuristic's gap at the beam's edge, step by step
    reference: IntArray  # (V,) or empty: labels
    good: IntArray  # (1,) the place of the y-good node in the beam
    good_cost: FloatArray  # (1,) the path cost of the y-good node, with the least that it must still cost


class Beam(NamedTuple):
    """All that a search works in."""

    nodes: Nodes
    scratch: Scratch
    known: IntArray  # (V,) of each variable: UNKNOWN, WANTED or KNOWN
    track: Track


class Found(NamedTuple):
    """The answers of searches to the problems of a batch."""

    labels: IntArray  # (variables,) flat; -1 where a search came to a dead end
    done: BoolArray  # (n,) whether a search came to its end
    n_costs: IntArray  # (n,) how many variables' costs it computed


class Sizes(NamedTuple):
    """How large a beam is: its width, and the most variables, rows and labels of a variable of some problems."""

    width: int
    variables: int
    rows: int
    labels: int


@kernel
def largest(batch: BatchArrays, problems: IntArray, width: int) -> Sizes:
    """Returns the sizes of a beam that can search some problems."""
    n, s = Sizes(width, 0, 0, 1), 0
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            n = at_least(n, s)
    return n


@kernel
def at_least(n: Sizes, address: int) -> Sizes:
    """Returns sizes large enough for the graph at an address as well."""
    graph = graph_at(address)
    n_labels = n.labels
    for v in range(graph.order.size):
        n_labels = max(n_labels, graph.first[v + 1] - graph.first[v])
    return Sizes(n.width, max(n.variables, graph.order.size), max(n.rows, graph.row_low.size), n_labels)


@kernel
def n_floats(n: Sizes) -> int:
    """Returns how many floats a beam needs."""
    return n.width * (2 * (3 + n.variables + 2 * n.rows) + 3 * n.labels + 1) + 2


@kernel
def n_ints(n: Sizes) -> int:
    """Returns how many whole numbers a beam needs."""
    return n.width * (2 * n.variables + n.labels + 1) + 2 + n.variables


@kernel
def beam_in(floats: FloatArray, ints: IntArray, n: Sizes) -> Beam:
    """Returns a beam cut out of two buffers of these sizes, that tracks nothing."""
    b, bv, br, c = n.width, n.width * n.variables, n.width * n.rows, n.width * n.labels
    spans = split(floats, (b, b, b, bv, br, br, b, b, b, bv, br, br, c, c, c, b + 1, 1))
    cg, ch, crest, rank, good_cost = spans[12:]
    labels, next_labels, out, best, known, good = split(ints, (bv, bv, c, b + 1, n.variables, 1))
    scratch = Scratch(nodes_of(next_labels, spans[6:12], n), cg, ch, crest, out, best, rank)
    track = Track(part(floats, 0, 0), part(ints, 0, 0), good, good_cost)
    return Beam(nodes_of(labels, spans[:6], n), scratch, known, track)


@kernel
def nodes_of(labels: IntArray, spans: tuple[FloatArray, ...], n: Sizes) -> Nodes:
    """Returns the nodes that some spans hold, in the order of their fields."""
    g, h, rest, ahead, low, high = spans
    return Nodes(
        grid(labels, n.width, n.variables),
        g,
        h,
        rest,
        grid(ahead, n.width, n.variables),
        grid(low, n.width, n.rows),
        grid(high, n.width, n.rows),
    )


@kernel
def write_answer(batch: BatchArrays, p: int, beam: Beam, done: bool, found: Found) -> None:
    """Writes the best node of a beam down as the answer to problem `p`, if the search is done."""
    labels = labels_of(batch, found.labels, p)
    found.done[p], found.n_costs[p] = done, 0
    for v in range(labels.size):
        labels[v] = beam.nodes.labels[0, v] if done else -1
        found.n_costs[p] += beam.known[v] == KNOWN
