"""The features that a gate sees of a variable, how it learns from them, and its guesses (`hasten.learning.gate`).

Features are rows of a table of weights with a column for each label. Some describe what the variables that are settled
say of a label: its *regret*, the least that they must pay above their own cheapest labels so that tables allow it.
"""

from __future__ import annotations

from math import exp, log2, sqrt
from typing import NamedTuple

import numpy as np

from hasten.jit import driver, keep, kernel, part
from hasten.kernels.layout import COST, VARIABLE, BatchArrays, Graph, costs_of, graph_of, tables_of
from hasten.support.arrays import BoolArray, FloatArray, IntArray

OWN = 2  # features that every variable has, besides one for each label
MOST_TUPLES = 4096  # of a table that is looked at: the gate must stay cheap
BUCKETS = 12  # of regrets, on either side of their scale


class Examples(NamedTuple):
    """The features of some variables of one kind."""

    rows: IntArray  # (n, features) rows of the weights; -1 for none
    values: FloatArray  # (n, features that the user gave)
    regrets: FloatArray  # (n, labels)


@kernel
def stir(state: int, value: int) -> int:
    """Stirs a 32-bit value into a 32-bit state; the order of the values matters."""
    stirred = ((state ^ value) * 0x2C1B3C6D) & 0xFFFFFFFF
    return stirred ^ (stirred >> 15)


@kernel
def bucket_of(regret: float, scale: float) -> int:
    """Puts a regret into a bucket: two for each time that it doubles."""
    if regret <= 0.0:
        return 0
    if regret == np.inf:
        return 2 * BUCKETS + 2
    return 1 + int(min(max(2.0 * log2(regret / scale), -BUCKETS), BUCKETS)) + BUCKETS


@kernel
def reduce_costs(graph: Graph, cost: FloatArray, expensive: BoolArray, above: FloatArray) -> None:
    """Writes what each label of the settled variables costs above the cheapest of its variable."""
    for v in range(graph.order.size):
        least = np.inf
        for at in range(graph.first[v], graph.first[v + 1]):
            least = min(least, cost[at])
        for at in range(graph.first[v], graph.first[v + 1]):
            above[at] = 0.0 if expensive[v] or least == np.inf else cost[at] - least


@kernel
def is_settled(graph: Graph, expensive: BoolArray, slot: int) -> bool:
    """Whether a slot's factor has a table, not too large, in which all other variables are settled."""
    f = graph.factor_of[slot]
    t = graph.listing[f]
    if graph.table_at[f] < 0 or t < 0 or graph.list_first[t + 1] - graph.list_first[t] > MOST_TUPLES:
        return False
    for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
        if a != slot and expensive[graph.scope[a]]:
            return False
    return True


@kernel
def add_regrets(
    graph: Graph, table: FloatArray, above: FloatArray, slot: int, least: FloatArray, regret: FloatArray
) -> None:
    """Adds what a slot's factor makes the settled variables pay for each label of the slot's variable."""
    f = graph.factor_of[slot]
    begin, end, t = graph.scope_first[f], graph.scope_first[f + 1], graph.listing[f]
    for i in range(regret.size):
        least[i] = np.inf
    at = graph.list_label_at[t]
    for k in range(graph.list_first[t], graph.list_first[t + 1]):
        total = table[graph.table_at[f] + graph.list_entry[k]]
        for a in range(begin, end):
            if a != slot:
                total += above[graph.first[graph.scope[a]] + graph.list_label[at + a - begin]]
        i = graph.list_label[at + slot - begin]
        least[i] = min(least[i], total)
        at += end - begin
    for i in range(regret.size):
        regret[i] += least[i]


@kernel
def stir_cheapest(graph: Graph, above: FloatArray, slot: int, state: int) -> int:
    """Stirs in the cheapest labels of the other variables of a slot's factor."""
    f = graph.factor_of[slot]
    begin = graph.scope_first[f]
    for a in range(begin, graph.scope_first[f + 1]):
        if a != slot:
            u = graph.scope[a]
            best = graph.first[u]
            while above[best] > 0.0:
                best += 1
            state = stir(stir(state, 64 * (slot - begin) + a - begin), best - graph.first[u])
    return state


@driver
def describe(
    batch: BatchArrays,
    expensive: BoolArray,
    problems: IntArray,
    variables: IntArray,
    ids: IntArray,
    scale: float,
    n_rows: int,
    examples: Examples,
) -> None:
    """Writes the rows of each variable's features, -1 for none, and the regrets of its labels.

    `expensive` is flat, as labellings are; `ids` are the caller's own features, -1 for none. Variables of one problem
    are asked for together, all have as many labels as `regrets` has columns, and `n_rows` is a power of two.
    """
    rows, regrets = examples.rows, examples.regrets
    n_labels, n_ids, mask = regrets.shape[1], ids.shape[1], n_rows - 1
    most = 0
    for p in problems:
        most = max(most, batch.place[p + 1, COST] - batch.place[p, COST])
    above, least, sums = np.empty(most), np.empty(n_labels), np.empty(n_labels)
    regret, last = part(sums, 0, n_labels), -1
    for r in range(problems.size):
        p, v = problems[r], variables[r]
        graph, table = graph_of(batch, p), tables_of(batch, p)
        mine = part(expensive, batch.place[p, VARIABLE], batch.place[p + 1, VARIABLE])
        reduced = part(above, 0, most)
        if p != last:
            reduce_costs(graph, costs_of(batch, p), mine, reduced)
            last = p
        for i in range(n_labels):
            regret[i] = 0.0
        state = 1
        for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
            slot = graph.touch[x]
            if is_settled(graph, mine, slot):
                add_regrets(graph, table, reduced, slot, part(least, 0, n_labels), regret)
                state = stir_cheapest(graph, reduced, slot, state)
        rows[r, 0] = stir(1, 0) & mask
        rows[r, 1] = stir(2, state) & mask
        for i in range(n_labels):
            regrets[r, i] = regret[i]
            rows[r, OWN + i] = stir(stir(3, i), bucket_of(regret[i], scale)) & mask
        for j in range(n_ids):
            given = ids[r, j]
            folded = stir(stir(4, given & 0xFFFFFFFF), given >> 32)
            rows[r, OWN + n_labels + j] = folded & mask if given >= 0 else -1
    keep((above, least, sums, expensive))


@kernel
def add_up(examples: Examples, e: int, weights: FloatArray, p: FloatArray) -> None:
    """Writes how likely each label of example `e` is; one that tables rule out is not."""
    rows, values, regrets, n_labels = examples.rows, examples.values, examples.regrets, p.size
    n_own = rows.shape[1] - values.shape[1]
    for i in range(n_labels):
        p[i] = 0.0
    for j in range(rows.shape[1]):
        row = rows[e, j]
        if row >= 0:
            value = 1.0 if j < n_own else values[e, j - n_own]
            for i in range(n_labels):
                p[i] += value * weights[row, i]
    largest, total = -np.inf, 0.0
    for i in range(n_labels):
        if regrets[e, i] < np.inf:
            largest = max(largest, p[i])
    for i in range(n_labels):
        p[i] = exp(p[i] - largest) if regrets[e, i] < np.inf else 0.0
        total += p[i]
    for i in range(n_labels):
        p[i] = p[i] / total if total > 0.0 else 1.0 / n_labels


@driver
def learn_some(
    examples: Examples,
    labels: IntArray,
    order: IntArray,
    rate: float,
    step: int,
    weights: FloatArray,
    squares: FloatArray,
    lag: FloatArray,
) -> None:
    """Takes one AdaGrad step of logistic regression for each example; `lag` is what the average lacks, times steps."""
    rows, values = examples.rows, examples.values
    n_labels, n_own = weights.shape[1], rows.shape[1] - values.shape[1]
    p = np.empty(n_labels)
    for n in range(order.size):
        e = order[n]
        add_up(examples, e, weights, part(p, 0, n_labels))
        p[labels[e]] -= 1.0
        for j in range(rows.shape[1]):
            row = rows[e, j]
            if row < 0:
                continue
            value = 1.0 if j < n_own else values[e, j - n_own]
            for i in range(n_labels):
                slope = p[i] * value
                if slope != 0.0:
                    squares[row, i] += slope * slope
                    change = -rate * slope / sqrt(squares[row, i])
                    weights[row, i] += change
                    lag[row, i] += (step + n) * change
    keep(p)


@driver
def guess_some(examples: Examples, weights: FloatArray, label: IntArray, doubt: FloatArray) -> None:
    """Writes the likeliest label of each example, and how likely all others are together."""
    n_labels = weights.shape[1]
    p = np.empty(n_labels)
    for e in range(examples.rows.shape[0]):
        add_up(examples, e, weights, part(p, 0, n_labels))
        best, others = 0, 0.0
        for i in range(n_labels):
            if p[i] > p[best]:
                best = i
        for i in range(n_labels):
            if i != best:
                others += p[i]
        label[e], doubt[e] = best, others
    keep(p)
