"""Sweeping: a lower bound by block coordinate ascent on the Lagrangian dual (the idea of the paper's §3.1).

Weak duality: whatever the messages `m` and the multipliers `u`,

    sum_v min_i [cost_v(i) + sum_f m_f,v(i) + sum_r u_r a_r,v,i]
    + sum_f min_tuple [table_f(tuple) - sum_v m_f,v(tuple_v)]  -  sum_r (u_r * limit_r)

is at most the cost of every valid labelling; `limit` is the row's upper limit where `u >= 0` and its lower one
where `u < 0`. A sweep sets the messages of each factor in turn to where the bound cannot rise by that factor
alone (its min-marginals, shared equally by its variables), and likewise each row's multiplier.

A label that no allowed tuple supports is in no valid labelling: it leaves the problem (`belief` = inf), and a
variable that loses all its labels proves that there is no valid labelling.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import Graph
from hasten.kernels.tolerance import EPS, LEAST
from hasten.proof.sweep.multipliers import least_of, update_rows
from hasten.support.arrays import FloatArray, IntArray

FEW = 8  # variables that are searched faster than better messages are found


class Dual(NamedTuple):
    """The state of a bound."""

    message: FloatArray  # (messages,)
    multiplier: FloatArray  # (R,)
    belief: FloatArray  # (L,) costs with all messages and multipliers; inf for a label that is out
    marginal: FloatArray  # (labels of one factor's variables,) scratch space
    row_low: FloatArray  # (R,) scratch space: ranges
    row_high: FloatArray  # (R,)
    smallest: FloatArray  # (SPACE + NOTED V,) scratch space of multipliers
    stop_flag: IntArray  # (3,) the stop flag (`hasten.support.clock`)


@kernel
def n_messages(graph: Graph) -> int:
    """Returns how many messages a graph has."""
    if graph.scope.size == 0:
        return 0
    last = graph.scope.size - 1
    v = graph.scope[last]
    n: int = graph.message_at[last] + graph.first[v + 1] - graph.first[v]
    return n


@kernel
def start_dual(graph: Graph, cost: FloatArray, dual: Dual) -> None:
    """Sets all messages and multipliers to zero."""
    for at in range(graph.first[graph.order.size]):
        dual.belief[at] = cost[at]
    for r in range(graph.row_low.size):
        dual.multiplier[r] = 0.0
    for m in range(n_messages(graph)):
        dual.message[m] = 0.0


@inlined_kernel
def update_factor(graph: Graph, table: FloatArray, f: int, dual: Dual) -> bool:
    """Maximises the bound over the messages of factor `f`; false if one of its variables has no label left."""
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    arity = a1 - a0
    belief, message, marginal = dual.belief, dual.message, dual.marginal
    m0 = graph.message_at[a0]
    for a in range(a0, a1):
        v = graph.scope[a]
        first, m = graph.first[v], graph.message_at[a]
        for i in range(graph.first[v + 1] - first):
            belief[first + i] -= message[m + i]
            marginal[m - m0 + i] = np.inf
    listing = graph.listing[f]
    t0, label_at, table_at = graph.list_first[listing], graph.list_label_at[listing], graph.table_at[f]
    if arity == 2:
        pair_marginals(graph, table, f, belief, marginal)
    else:
        for t in range(t0, graph.list_first[listing + 1]):
            value = table[table_at + graph.list_entry[t]]
            at = label_at + (t - t0) * arity
            for s in range(arity):
                value += belief[graph.first[graph.scope[a0 + s]] + graph.list_label[at + s]]
            for s in range(arity):
                m = graph.message_at[a0 + s] - m0 + graph.list_label[at + s]
                if value < marginal[m]:
                    marginal[m] = value
    share = 1.0 / arity
    for a in range(a0, a1):
        v = graph.scope[a]
        first, m = graph.first[v], graph.message_at[a]
        empty = True
        for i in range(graph.first[v + 1] - first):
            if marginal[m - m0 + i] < np.inf:
                value = marginal[m - m0 + i] * share
                message[m + i] = value - belief[first + i]
                belief[first + i] = value
                empty = False
            else:
                message[m + i] = 0.0
                belief[first + i] = np.inf
        if empty:
            return False
    if graph.order.size > FEW:
        push(graph, table, f, dual)
    return True


@kernel
def push(graph: Graph, table: FloatArray, f: int, dual: Dual) -> None:
    """Gives the variables of factor `f`, one after the other, all that it has kept back of its min-marginals."""
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    arity, listing, table_at = a1 - a0, graph.listing[f], graph.table_at[f]
    belief, message, marginal = dual.belief, dual.message, dual.marginal
    t0, label_at = graph.list_first[listing], graph.list_label_at[listing]
    for slot in range(arity):
        v, m = graph.scope[a0 + slot], graph.message_at[a0 + slot]
        first, n = graph.first[v], graph.first[v + 1] - graph.first[v]
        for i in range(n):
            marginal[i] = np.inf
        for t in range(t0, graph.list_first[listing + 1]):
            value = table[table_at + graph.list_entry[t]]
            at = label_at + (t - t0) * arity
            for s in range(arity):
                i = graph.list_label[at + s]
                if belief[graph.first[graph.scope[a0 + s]] + i] == np.inf:
                    value = np.inf
                value -= message[graph.message_at[a0 + s] + i]
            i = graph.list_label[at + slot]
            if value < marginal[i]:
                marginal[i] = value
        for i in range(n):
            if marginal[i] < np.inf:
                message[m + i] += marginal[i]
                belief[first + i] += marginal[i]


@inlined_kernel
def idle(graph: Graph, table: FloatArray, f: int, dual: Dual) -> bool:
    """Whether factor `f` has nothing to say yet: it sent no message, and the cheapest labels cost it nothing."""
    at, table_at, listing = 0, graph.table_at[f], graph.listing[f]
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        v, m = graph.scope[a], graph.message_at[a]
        first, least, chosen = graph.first[v], np.inf, 0
        for i in range(graph.first[v + 1] - first):
            if dual.message[m + i] != 0.0:
                return False
            if dual.belief[first + i] < least:
                least, chosen = dual.belief[first + i], i
        at += graph.stride[a] * chosen
    if table[table_at + at] != 0.0:
        return False
    for t in range(graph.list_first[listing], graph.list_first[listing + 1]):
        if table[table_at + graph.list_entry[t]] < 0.0:
            return False
    return True


@kernel
def sweep(graph: Graph, table: FloatArray, forward: bool, dual: Dual) -> bool:
    """Updates every factor and row once; false if that proved that there is no valid labelling."""
    n = graph.table_at.size
    for x in range(n):
        f = x if forward else n - 1 - x
        if graph.table_at[f] < 0 or (graph.order.size > FEW and idle(graph, table, f, dual)):
            continue
        if not update_factor(graph, table, f, dual):
            return False
    update_rows(graph, dual.belief, dual.multiplier, dual.smallest)
    return True


@kernel
def quick_bound(graph: Graph, dual: Dual) -> float:
    """Returns the bound after a sweep, but for rounding: each factor's own part is then zero (more, if labels left)."""
    total = 0.0
    for v in range(graph.order.size):
        total += least_of(dual.belief, graph.first[v], graph.first[v + 1])
    for r in range(graph.row_low.size):
        total += row_part(graph, r, dual.multiplier[r])
    return total


@kernel
def safe_bound(graph: Graph, cost: FloatArray, table: FloatArray, dual: Dual) -> float:
    """Returns a bound that holds in spite of rounding."""
    return sum_anew(graph, cost, table, dual, False)[0]


@inlined_kernel
def belief_anew(graph: Graph, cost: FloatArray, dual: Dual, v: int, at: int) -> tuple[float, float]:
    """Returns the cost of label `at` of variable `v` with all messages and multipliers, and the sum of magnitudes."""
    value, size = cost[at], abs(cost[at])
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        message = dual.message[graph.message_at[graph.touch[x]] + at - graph.first[v]]
        value += message
        size += abs(message)
    for c in range(graph.cell_first[at], graph.cell_first[at + 1]):
        part = dual.multiplier[graph.cell_row[c]] * graph.cell_weight[c]
        value += part
        size += abs(part)
    return value, size


@kernel
def sum_anew(graph: Graph, cost: FloatArray, table: FloatArray, dual: Dual, renew: bool) -> tuple[float, float]:
    """Returns a bound that holds in spite of rounding, and how far rounding can put its sum off.

    Messages and multipliers are taken as the floating-point numbers they are: any will do. All terms are summed anew
    from the original costs, together with the sum S of their magnitudes; n additions are off by less than n * eps * S
    (twice the usual bound), which is taken off, and so is the loss of products that underflow. A sum that overflows
    gives -inf. With `renew`, beliefs are set to these sums.
    """
    total, size, n_terms = 0.0, 0.0, graph.cell_row.size + 4
    for v in range(graph.order.size):
        least, largest = np.inf, 0.0
        for at in range(graph.first[v], graph.first[v + 1]):
            if dual.belief[at] == np.inf:
                continue
            value, magnitude = belief_anew(graph, cost, dual, v, at)
            if renew:
                dual.belief[at] = value
            least, largest = min(least, value), max(largest, magnitude)
        total += least
        size += largest
        n_terms += 1 + graph.touch_first[v + 1] - graph.touch_first[v]
    for f in range(graph.table_at.size):
        if graph.table_at[f] >= 0:
            least, largest = factor_minimum(graph, table, f, dual)
            total += least
            size += largest
            n_terms += 1 + graph.scope_first[f + 1] - graph.scope_first[f]
    for r in range(graph.row_low.size):
        part = row_part(graph, r, dual.multiplier[r])
        total += part
        size += abs(part)
        n_terms += 3
    in_sums, in_products = EPS * n_terms * size, LEAST * (graph.cell_row.size + graph.row_low.size)
    bound = total - in_sums - in_products
    if not abs(bound) < np.inf:
        return -np.inf, np.inf
    return bound, in_sums + in_products


@inlined_kernel
def row_part(graph: Graph, r: int, u: float) -> float:
    """Returns the part of row `r` with a multiplier in the bound."""
    if u > 0.0:
        return float(-u * graph.row_most[r])
    if u < 0.0:
        return float(-u * graph.row_least[r])
    return 0.0


@kernel
def factor_minimum(graph: Graph, table: FloatArray, f: int, dual: Dual) -> tuple[float, float]:
    """Returns the least that factor `f` costs once its messages are taken out, and the largest magnitude met."""
    a0 = graph.scope_first[f]
    arity = graph.scope_first[f + 1] - a0
    if arity == 2:
        return pair_minimum(graph, table, f, dual.belief, dual.message)
    listing = graph.listing[f]
    t0, label_at, table_at = graph.list_first[listing], graph.list_label_at[listing], graph.table_at[f]
    least, largest = np.inf, 0.0
    for t in range(t0, graph.list_first[listing + 1]):
        value = table[table_at + graph.list_entry[t]]
        if value == np.inf:
            continue
        magnitude = abs(value)
        at = label_at + (t - t0) * arity
        possible = True
        for s in range(arity):
            label = graph.list_label[at + s]
            possible &= dual.belief[graph.first[graph.scope[a0 + s]] + label] < np.inf
            message = dual.message[graph.message_at[a0 + s] + label]
            value -= message
            magnitude += abs(message)
        if possible:
            least, largest = min(least, value), max(largest, magnitude)
    return least, largest


@inlined_kernel
def pair_marginals(graph: Graph, table: FloatArray, f: int, belief: FloatArray, marginal: FloatArray) -> None:
    """Lowers the min-marginals of both variables to the costs of the tuples of factor `f`, a pair, with beliefs."""
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
    """Returns the least that factor `f`, a pair, costs without its messages, and the largest magnitude met."""
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
