"""Cliques: where every two of several labels exclude each other, one rule replaces the rules over pairs.

Rules over pairs give weak bounds: in the relaxation half of each label may be chosen. So rows over two labels make way
for *cliques*, rules that at most one of several labels is chosen, before anything is bounded. Which labellings are
valid does not change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from hasten.kernels.cells import Rows, with_rows
from hasten.kernels.layout import Graph
from hasten.support.arrays import BoolArray, IntArray, ints, offsets, ranges, sizes_of

MAX_PAIRS = 20_000  # rows to look for cliques in, of a program that is recognised once
MOST = 5_000  # and of a structure, which should not take a second
Node = tuple[int, ...]  # labels of one variable, by number


def bits(number: int) -> Iterator[int]:
    """Yields which bits of a number are set."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


@dataclass(slots=True, eq=False)
class Exclusions:
    """Pairs of nodes that exclude each other; neighbours are bits of a number."""

    nodes: dict[Node, int] = field(default_factory=dict)
    near: list[int] = field(default_factory=list)
    rows: dict[tuple[int, int], list[int]] = field(default_factory=dict)  # that say so, by pairs of nodes

    def add(self, left: Node, right: Node, row: int) -> None:
        """Adds the pair that a row excludes."""
        a, b = sorted(self._number(node) for node in (left, right))
        self.near[a] |= 1 << b
        self.near[b] |= 1 << a
        self.rows.setdefault((a, b), []).append(row)

    def _number(self, node: Node) -> int:
        if node not in self.nodes:
            self.nodes[node] = len(self.near)
            self.near.append(0)
        return self.nodes[node]

    def largest_around(self, a: int, b: int) -> list[int]:
        """Returns a clique with two nodes to which no other can be added."""
        return grown([a, b], self.near[a] & self.near[b], self.near)


def grown(clique: list[int], common: int, near: Sequence[int]) -> list[int]:
    """Returns a clique grown by its `common` neighbours, first by the one that leaves most others to add."""
    while common:
        nodes = list(bits(common))
        leaves = [(near[node] & common).bit_count() for node in nodes]
        if min(leaves) == len(nodes) - 1:  # all exclude each other
            clique += nodes
            break
        best = nodes[leaves.index(max(leaves))]
        clique.append(best)
        common &= near[best]
    return sorted(clique)


def with_cliques(graph: Graph) -> Graph:
    """Returns a graph without tables as it is, or with cliques in place of its rows over pairs."""
    rows, nodes = _pairs(graph)
    if not 3 <= len(rows) <= MOST:
        return graph
    pairs = Exclusions()
    for row, (one, other) in zip(rows.tolist(), nodes.tolist(), strict=True):
        pairs.add((one,), (other,), row)
    cliques, among = list[list[int]](), set[tuple[int, int]]()
    for a, b in pairs.rows:
        if (a, b) not in among and len(clique := pairs.largest_around(a, b)) >= 3:
            among.update((c, d) for c in clique for d in clique if c < d)
            cliques.append(clique)
    if not cliques:
        return graph
    covered = [row for pair in among for row in pairs.rows[pair]]  # that the cliques make superfluous
    names = [label for (label,) in pairs.nodes]
    kept = np.ones(len(graph.row_low), dtype=bool)
    kept[covered] = False
    sizes, n = sizes_of(graph.row_first), len(cliques)
    cells = ranges(graph.row_first[:-1][kept], sizes[kept])
    merged = Rows(
        offsets([*sizes[kept].tolist(), *(len(clique) for clique in cliques)]),
        np.concatenate([graph.row_label[cells], ints(names[node] for clique in cliques for node in clique)]),
        np.concatenate([graph.row_weight[cells], np.ones(sum(map(len, cliques)))]),
        np.concatenate([graph.row_low[kept], np.full(n, -np.inf)]),
        np.concatenate([graph.row_high[kept], np.ones(n)]),
    )
    return with_rows(graph, merged)


def _pairs(graph: Graph) -> tuple[IntArray, IntArray]:
    """Returns the rows that say no more than that two labels exclude each other, and these labels."""
    rows = np.flatnonzero((sizes_of(graph.row_first) == 2) & (graph.row_margin == 0.0))  # sums are exact
    cells = graph.row_first[rows][:, None] + np.arange(2)
    label, variable, weight = graph.row_label[cells], graph.row_variable[cells], graph.row_weight[cells]
    one, other = weight.T

    def holds(total: np.ndarray) -> BoolArray:
        fits: BoolArray = (total >= graph.row_least[rows]) & (total <= graph.row_most[rows])
        return fits

    none, first, second, both = holds(0.0 * one), holds(one), holds(other), holds(one + other)
    apart = variable[:, 0] != variable[:, 1]
    not_both = apart & none & first & second & ~both
    binary = (sizes_of(graph.first)[variable] == 2).all(axis=1)
    not_neither = apart & binary & ~none & first & second & both
    opposite = 2 * graph.first[variable] + 1 - label  # the other one of two labels
    some = not_both | not_neither
    return rows[some], np.where(not_both[:, None], label, opposite)[some]
