"""Scratch space for sweeps and branching: its size for the largest problem of a call, and its parts by name.

A driver allocates one buffer of floats and one of integers. How many of either the fields of each structure take stands
here once, in the order of the fields.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from hasten.jit import grid, inlined_kernel, kernel, split
from hasten.kernels.layout import BatchArrays, graph_at, graph_of
from hasten.proof.branch.dive import Tree
from hasten.proof.elimination.kernels import plan_at
from hasten.proof.sweep import dual as d
from hasten.proof.sweep.multipliers import NOTED, SPACE
from hasten.support.arrays import FloatArray, IntArray

MOST_NUMBERS = 2**26  # that levels take: half a gigabyte
MOST_KEPT = 2**22  # numbers that the levels of a search by rows keep


class Space(NamedTuple):
    """The largest counts of the problems of a call."""

    work: int  # derived tables and copies of others
    labels: int  # after elimination, as all further ones
    messages: int
    rows: int
    marginals: int  # labels of the variables of one factor
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
        most, n_marginals, size = n.most, n.marginals, small.first[small.order.size] + small.row_low.size
        for v in range(small.order.size):
            most = max(most, small.first[v + 1] - small.first[v])
        for f in range(small.table_at.size):
            n_labels = 0
            for a in range(small.scope_first[f], small.scope_first[f + 1]):
                n_labels += small.first[small.scope[a] + 1] - small.first[small.scope[a]]
            n_marginals = max(n_marginals, n_labels)
        n = Space(
            max(n.work, plan.out_first[plan.variable.size] + plan.copy_from.size),
            max(n.labels, small.first[small.order.size]),
            max(n.messages, d.n_messages(small)),
            max(n.rows, small.row_low.size),
            n_marginals,
            max(n.variables, small.order.size),
            max(n.factors, small.table_at.size),
            max(n.links, small.link_row.size),
            most,
            max(n.given, graph.order.size),
            max(n.kept, min((small.order.size + 1) * size, max(MOST_KEPT, size))),
        )
    return n


@kernel
def n_levels(n: Space, max_nodes: int, dive_nodes: int) -> int:
    """Returns how many levels there are to split on: no more than nodes or variables allow, or fit into memory."""
    wanted = min(max_nodes // max(dive_nodes, 1) + 3, n.variables + 1)  # each takes a dive that ran out
    return max(1, min(wanted, MOST_NUMBERS // (1 + n.messages + n.labels + n.rows + n.most)))


@inlined_kernel
def dual_floats(n: Space) -> tuple[int, ...]:
    """Returns how many floats each field of a `Dual` takes, the stop flag aside."""
    return n.messages, n.rows, n.labels, n.marginals, n.rows, n.rows, SPACE + NOTED * n.variables


@inlined_kernel
def make_dual(n: Space, floats: FloatArray, stop_flag: IntArray) -> d.Dual:
    """Returns a `Dual` within some floats."""
    fields: tuple[Any, ...] = (*split(floats, dual_floats(n)), stop_flag)
    return d.Dual(*fields)


@inlined_kernel
def tree_floats(n: Space, levels: int) -> tuple[int, ...]:
    """Returns how many floats each field of a `Tree` takes that holds some; the last three are tables of levels."""
    v, x, links = n.variables, levels, n.links
    own = n.labels, n.rows, n.rows, v + 1, v + 1, v, n.factors, n.messages, links, links
    return own + (x * n.messages, x * n.labels, x * n.rows)  # noqa: RUF005


@inlined_kernel
def tree_ints(n: Space, levels: int) -> tuple[int, ...]:
    """Returns how many integers each field of a `Tree` takes that holds some; the last two are tables."""
    v = n.variables
    return v, v, v, v, n.messages, n.links, levels, 2 * (v + 1), levels * n.most


@inlined_kernel
def make_tree(n: Space, levels: int, floats: FloatArray, ints: IntArray) -> Tree:
    """Returns a `Tree` for splits down to some level, within some numbers."""
    reals, wholes = split(floats, tree_floats(n, levels)), split(ints, tree_ints(n, levels))
    (message, belief, multiplier), (marks, tried) = reals[10:], wholes[7:]
    kept = grid(message, levels, n.messages), grid(belief, levels, n.labels), grid(multiplier, levels, n.rows)
    return Tree(*(reals[:10] + wholes[:7] + (grid(marks, n.variables + 1, 2), *kept, grid(tried, levels, n.most))))
