"""Viterbi's algorithm in NumPy, over sentences of all lengths at once: it trains a tagger, and is a baseline.

Going forward only least costs are kept, a minimum over contiguous rows; which label gave them is found on the way back,
for the labels that are chosen. One sentence alone goes a way of its own. It knows nothing of rules: those that count
over a sentence are beyond it.
"""

from __future__ import annotations

import numpy as np

from hasten.support.arrays import FloatArray, IntArray


def viterbi(costs: FloatArray, first: IntArray, follow: FloatArray) -> IntArray:
    """Returns the cheapest labels of all words.

    `costs` are those of each word's labels, (n_words, n_labels); sentence `p` has the words `first[p]:first[p + 1]`;
    `follow` are the costs of label pairs, inf where forbidden. Where nothing is allowed, the labels mean nothing.
    """
    if len(first) == 2 and len(costs):
        return _one(costs, follow)
    lengths = np.diff(first)
    order = np.argsort(-lengths, kind="stable")  # the longest first: those that go on are the first ones
    order = order[: np.count_nonzero(lengths)]
    labels = np.zeros(len(costs), dtype=np.int64)
    if not order.size:
        return labels
    starts = first[:-1][order]
    going_on = np.searchsorted(-lengths[order], -np.arange(lengths[order[0]]))  # how many have a word number t
    best = [costs[starts]]
    for t in range(1, len(going_on)):
        n = going_on[t]
        best.append((best[-1][:n, :, None] + follow).min(axis=1) + costs[starts[:n] + t])
    chosen = np.zeros(0, dtype=np.int64)
    backwards = np.ascontiguousarray(follow.T)
    for t in range(len(going_on) - 1, -1, -1):
        before, total = len(chosen), best[t]
        ends = total[before:].argmin(axis=1)
        goes_on = (total[:before] + backwards[chosen]).argmin(axis=1)
        chosen = np.concatenate([goes_on, ends])
        labels[starts[: len(chosen)] + t] = chosen
    return labels


def _one(costs: FloatArray, follow: FloatArray) -> IntArray:
    """Does the same for one sentence, where few calls matter most: the labels that were best are kept going forward."""
    best, back, columns = costs[0], [], np.arange(len(follow))
    for cost in costs[1:]:
        sums = best[:, None] + follow
        chosen = sums.argmin(axis=0)
        best = sums[chosen, columns] + cost
        back.append(chosen)
    labels = [best.argmin()]
    for chosen in reversed(back):
        labels.append(chosen[labels[-1]])
    return np.array(labels[::-1], dtype=np.int64)
