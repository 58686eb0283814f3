"""Scratch space for sweeps and branching: how much of it the largest of some problems needs, and its parts by name.

A driver allocates one buffer of floats and one of integers. Each structure of scratch space says here how many of
either it takes, field by field.
"""

from __future__ import annotations

from typing import NamedTuple

from hasten.jit import grid, inlined_kernel, kernel, split
from hasten.kernels.layout import BatchArrays, Graph, graph_at, graph_of
from hasten.proof.branch.dive import Tree
from hasten.proof.branch.tighten import Tight, n_kept
from hasten.proof.elimination.kernels import plan_at
from hasten.proof.sweep import dual as d
from hasten.proof.sweep.multipliers import NOTED, SPACE
from hasten.support.arrays import FloatArray, IntArray

MOST_NUMBERS = 2**26  # that levels take: half a gigabyte


class Space(NamedTuple):
    """The largest of some problems, count by count."""

    work: int  # derived tables and copies of others
    labels: int  # of what is left after elimination; and so on
    messages: int
    rows: int
    marginals: int
    variables: int
    factors: int
    links: int
    most: int  # labels of one variable
    given: int  # variables before elimination
    kept: int  # numbers that a search by rows keeps


@kernel
def space_for(batch: BatchArrays, problems: IntArray, reduced: IntArray) -> Space:
    """Returns the space that some problems need; `reduced` has the addresses of each one's plan and graph."""
    n, s = Space(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), 0
    for x in range(problems.size):
        if reduced[x, 0] == s:
            continue
        s = reduced[x, 0]
        graph, plan, small = graph_of(batch, problems[x]), plan_at(s), graph_at(reduced[x, 1])
        n = Space(
            max(n.work, plan.out_first[plan.variable.size] + plan.copy_from.size),
            max(n.labels, small.first[small.order.size]),
            max(n.messages, d.n_messages(small)),
            max(n.rows, small.row_low.size),
            max(n.marginals, d.n_marginals(small)),
            max(n.variables, small.order.size),
            max(n.factors, small.table_at.size),
            max(n.links, small.link_row.size),
            max(n.most, most_labels(small)),
            max(n.given, graph.order.size),
            max(n.kept, n_kept(small)),
        )
    return n


@kernel
def most_labels(graph: Graph) -> int:
    """Returns how many labels the variable with the most has."""
    most = 0
    for v in range(graph.order.size):
        most = max(most, graph.first[v + 1] - graph.first[v])
    return most


@kernel
def together(sizes: tuple[int, ...]) -> int:
    """Returns how many numbers there are in all."""
    total = 0
    for size in sizes:
        total += size
    return total


@inlined_kernel
def dual_floats(n: Space) -> tuple[int, ...]:
    """Returns how many floats each field of a `Dual` takes, the stop flag aside."""
    return n.messages, n.rows, n.labels, n.marginals, n.rows, n.rows, SPACE + NOTED * n.variables


@inlined_kernel
def make_dual(n: Space, floats: FloatArray, watch: IntArray) -> d.Dual:
    """Returns a `Dual` within some floats."""
    message, multiplier, belief, marginal, row_low, row_high, smallest = split(floats, dual_floats(n))
    return d.Dual(message, multiplier, belief, marginal, row_low, row_high, smallest, watch)


@inlined_kernel
def tree_floats(n: Space) -> tuple[int, ...]:
    """Returns how many floats each field of a `Tree` takes that holds some, levels aside."""
    nodes = n.variables + 1
    return n.labels, n.rows, n.rows, nodes, nodes, n.variables, n.factors, n.messages, n.links, n.links


@inlined_kernel
def level_floats(n: Space, levels: int) -> tuple[int, ...]:
    """Returns how many floats the fields of a `Tree` take that hold the bounds of levels."""
    return levels * n.messages, levels * n.labels, levels * n.rows


@inlined_kernel
def tree_ints(n: Space, levels: int) -> tuple[int, ...]:
    """Returns how many integers each field of a `Tree` takes that holds some."""
    variables, marks = n.variables, 2 * (n.variables + 1)
    return variables, variables, variables, variables, marks, n.messages, n.links, levels, levels * n.most


@inlined_kernel
def n_tree_floats(n: Space, levels: int) -> int:
    """Returns how many floats a `Tree` takes."""
    return together(tree_floats(n)) + together(level_floats(n, levels))


@kernel
def n_levels(n: Space, max_nodes: int, dive_nodes: int) -> int:
    """Returns how many levels there are to split on: no more than nodes or variables allow, or fit into memory."""
    wanted = min(max_nodes // max(dive_nodes, 1) + 3, n.variables + 1)  # each takes a dive that ran out
    return max(1, min(wanted, MOST_NUMBERS // (1 + n.messages + n.labels + n.rows + n.most)))


@inlined_kernel
def make_tree(n: Space, levels: int, floats: FloatArray, ints: IntArray) -> Tree:
    """Returns a `Tree` for splits down to so many levels, within some numbers."""
    own, kept = split(floats, (together(tree_floats(n)), together(level_floats(n, levels))))
    vector, row_low, row_high, base, rest, limit, least, before, low_before, high_before = split(own, tree_floats(n))
    message, belief, multiplier = split(kept, level_floats(n, levels))
    chosen, label, free, labels, marks, place, row, splits, tried = split(ints, tree_ints(n, levels))
    return Tree(
        vector=vector,
        row_low=row_low,
        row_high=row_high,
        base=base,
        rest=rest,
        chosen=chosen,
        label=label,
        limit=limit,
        free=free,
        least=least,
        labels=labels,
        marks=grid(marks, n.variables + 1, 2),
        place=place,
        before=before,
        row=row,
        low_before=low_before,
        high_before=high_before,
        message=grid(message, levels, n.messages),
        belief=grid(belief, levels, n.labels),
        multiplier=grid(multiplier, levels, n.rows),
        split=splits,
        tried=grid(tried, levels, n.most),
    )


@inlined_kernel
def tight_ints(n: Space) -> tuple[int, ...]:
    """Returns how many integers each field of a `Tight` takes that holds some."""
    return n.variables, n.rows, n.variables, n.variables + 1, n.variables + 1


@inlined_kernel
def make_tight(n: Space, floats: FloatArray, ints: IntArray, kept: FloatArray) -> Tight:
    """Returns a `Tight` within some numbers, of which levels are kept in others."""
    belief, multiplier = split(floats, (n.labels, n.rows))
    n_left, due, labels, splits, chosen = split(ints, tight_ints(n))
    return Tight(belief, multiplier, n_left, due, labels, kept, splits, chosen)
