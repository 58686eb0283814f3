"""Learning what the declared factors cost: evidence about label tuples, and Algorithm 1 with an exact search.

*Evidence.* An answer `y` of the black box shows the tuples that it has. It also refuses some: where another label of
one variable would make `y` cheaper, and break nothing that is known, the costs wanted this label and the black box did
not give it. One of the tuples that the label would make is to blame: one that is known to be forbidden, if there is
any; else one of those that no answer shows, each with an equal share of the blame. Where answers show all of them,
there is another reason: a cost, or what the declared factors cannot tell.

*Updating.* With an unbounded beam Algorithm 1 is the structured perceptron: `w += step * (phi(y) - phi(ŷ))`, where ŷ
is the cheapest labelling if each tuple, and each label by itself, costs minus its weight. An update is never larger
than what puts `y` level with ŷ, so that a large step does no harm where the answers can be had exactly.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, kernel, split
from hasten.kernels.layout import VARIABLE, BatchArrays, Graph, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.rows import rows_hold
from hasten.kernels.score import entry, total_cost
from hasten.learning.algorithm_1 import Weights
from hasten.support.arrays import FloatArray, IntArray

CORRECT, WRONG, BLIND = 0, 1, 2
UNSEEN, SHOWN, FORBIDDEN = 0, 1, 2  # what is known of a tuple


@driver
def count_shown(batch: BatchArrays, answers: IntArray, problems: IntArray, shown: IntArray) -> None:
    """Counts for each tuple how often some answers show it."""
    for p in problems:
        graph, mine = graph_of(batch, p), labels_of(batch, answers, p)
        for f in range(graph.weight_at.size):
            if graph.weight_at[f] >= 0:
                shown[graph.weight_at[f] + entry(graph, f, mine)] += 1


@driver
def count_refused(
    batch: BatchArrays, answers: IntArray, problems: IntArray, least: float, known: IntArray, refused: FloatArray
) -> None:
    """Adds up for each tuple how often some answers refuse it, given what is known of each.

    Only labels that would save more than `least` count. Answers are changed on the way, and put back.
    """
    for p in problems:
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        mine = labels_of(batch, answers, p)
        for v in range(graph.order.size):
            given = mine[v]
            for label in range(graph.first[v + 1] - graph.first[v]):
                change = cost[graph.first[v] + label] - cost[graph.first[v] + given]
                if not change < np.inf or label == given:
                    continue
                for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                    slot = graph.touch[x]
                    f = graph.factor_of[slot]
                    if graph.table_at[f] >= 0:
                        here = graph.table_at[f] + entry(graph, f, mine)
                        change += table[here + graph.stride[slot] * (label - given)] - table[here]
                if not change < -least:
                    continue
                mine[v] = label
                if rows_hold(graph, mine):
                    blame(graph, v, mine, known, refused)
                mine[v] = given


@kernel
def blame(graph: Graph, v: int, labels: IntArray, known: IntArray, refused: FloatArray) -> None:
    """Shares the blame for a label that was refused among the tuples that it would make."""
    kind, count = SHOWN, 0
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.weight_at[f] >= 0:
            state = known[graph.weight_at[f] + entry(graph, f, labels)]
            if state == FORBIDDEN and kind != FORBIDDEN:
                kind, count = FORBIDDEN, 0
            if state == UNSEEN and kind == SHOWN:
                kind, count = UNSEEN, 0
            if state == kind:
                count += 1
    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
        f = graph.factor_of[graph.touch[x]]
        if graph.weight_at[f] >= 0:
            at = graph.weight_at[f] + entry(graph, f, labels)
            if known[at] == kind:
                refused[at] += 1.0 / count


@driver
def learn_from_found(
    batch: BatchArrays,
    label_at: IntArray,
    answers: IntArray,
    found: IntArray,
    step: float,
    problems: IntArray,
    learned: Weights,
    outcome: IntArray,
) -> None:
    """Learns from answers and from what was found with the weights as they were, one problem after the other.

    `label_at` says where the weights of each variable's labels start. `found` may have been found with somewhat older
    weights: an update is made where it still costs less than the answer. `outcome` says how each problem went.
    """
    n_weights, n_terms = learned.w.size, 0
    for p in problems:
        n_terms = max(n_terms, graph_of(batch, p).weight_at.size + graph_of(batch, p).order.size)
    counts = np.zeros(n_weights + 4 * n_terms, dtype=np.int64)
    one, touched, count = split(counts, (n_weights, 2 * n_terms, 2 * n_terms))
    for x in range(problems.size):
        p = problems[x]
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        right, here = labels_of(batch, answers, p), labels_of(batch, found, p)
        n_touched, excess = 0, total_cost(graph, cost, table, right) - total_cost(graph, cost, table, here)
        for v in range(graph.order.size):
            if right[v] != here[v]:
                at = label_at[batch.place[p, VARIABLE] + v]
                excess += learned.w[at + here[v]] - learned.w[at + right[v]]
                one[at + right[v]] += 1
                one[at + here[v]] -= 1
                touched[n_touched], touched[n_touched + 1] = at + right[v], at + here[v]
                n_touched += 2
        for f in range(graph.weight_at.size):
            at = graph.weight_at[f]
            if at >= 0:
                good, bad = at + entry(graph, f, right), at + entry(graph, f, here)
                if good != bad:
                    excess += learned.w[bad] - learned.w[good]
                    one[good] += 1
                    one[bad] -= 1
                    touched[n_touched], touched[n_touched + 1] = good, bad
                    n_touched += 2
        n_changed, length = 0, 0
        for y in range(n_touched):
            i = touched[y]
            if one[i] != 0:  # once, though it may stand in the list more often
                touched[n_changed], count[n_changed] = i, one[i]
                length += one[i] * one[i]
                n_changed += 1
                one[i] = 0
        outcome[x] = CORRECT
        if excess > 0.0:
            outcome[x] = WRONG if length else BLIND
            size = min(step, excess / max(length, 1))
            for y in range(n_changed):
                learned.w[touched[y]] += size * count[y]
                learned.drift[touched[y]] += size * count[y] * learned.n_examples[0]
        learned.n_examples[0] += 1
    keep(counts)
