"""Factors over two variables, which most are: what `hasten.kernels.proof.dual` does, without loops over slots.

The same numbers are added in the same order, so that answers are the same to the last bit.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import inlined_kernel
from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray


@inlined_kernel
def pair_marginals(graph: Graph, table: FloatArray, f: int, belief: FloatArray, marginal: FloatArray) -> None:
    """Lowers the min-marginals of both variables to what the tuples of factor `f` cost with all beliefs."""
    a, listing, table_at = graph.scope_first[f], graph.listing[f], graph.table_at[f]
    one, other = graph.first[graph.scope[a]], graph.first[graph.scope[a + 1]]
    after, at = graph.message_at[a + 1] - graph.message_at[a], graph.list_label_at[listing]
    for t in range(graph.list_first[listing], graph.list_first[listing + 1]):
        i, j = graph.list_label[at], graph.list_label[at + 1]
        value = table[table_at + graph.list_entry[t]] + belief[one + i] + belief[other + j]
        marginal[i] = min(marginal[i], value)
        marginal[after + j] = min(marginal[after + j], value)
        at += 2


@inlined_kernel
def pair_minimum(
    graph: Graph, table: FloatArray, f: int, belief: FloatArray, message: FloatArray
) -> tuple[float, float]:
    """Returns the least that factor `f` costs once its messages are taken out, and the largest magnitude met."""
    a, listing, table_at = graph.scope_first[f], graph.listing[f], graph.table_at[f]
    one, other = graph.first[graph.scope[a]], graph.first[graph.scope[a + 1]]
    from_one, from_other, at = graph.message_at[a], graph.message_at[a + 1], graph.list_label_at[listing]
    least, largest = np.inf, 0.0
    for t in range(graph.list_first[listing], graph.list_first[listing + 1]):
        i, j = graph.list_label[at], graph.list_label[at + 1]
        value = table[table_at + graph.list_entry[t]]
        if value < np.inf and belief[one + i] < np.inf and belief[other + j] < np.inf:
            sent, returned = message[from_one + i], message[from_other + j]
            least = min(least, value - sent - returned)
            largest = max(largest, abs(value) + abs(sent) + abs(returned))
        at += 2
    return least, largest
