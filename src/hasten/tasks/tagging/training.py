"""Trains a tagger: an averaged perceptron with inference in the loop, over weights of words and of tag pairs.

The best tags of the current weights, with the gold ones made dearer by a margin, are compared with the gold ones, and
only where the two differ do weights move. Steps are AdaGrad's, and the result is the average of the weights over all
steps, as for the structured black box of `tasks.entity_relation`. A seed fixes every number. The best tags are found by
Viterbi's algorithm in NumPy, over sentences of all lengths at once, without the rules that count over a sentence.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.support.arrays import FloatArray, IntArray
from hasten.support.progress import Tell
from hasten.tasks.averaging import Averaged
from hasten.tasks.tagging.features import Rows, Text

MARGIN = 10.0  # by which gold tags must win
BATCH = 8  # sentences between two steps
BLOCK = 1 << 14  # words scored together


class Weights(NamedTuple):
    """Learned weights: the score of each tag for each row of features, and of each pair of neighbouring tags."""

    of_words: FloatArray  # (n_buckets, n_tags)
    of_pairs: FloatArray  # (n_tags, n_tags)


def word_costs(rows: Rows, weights: FloatArray | npt.NDArray[np.float32]) -> FloatArray:
    """Returns what each tag costs at each word: minus the sum of its weights."""
    costs = np.empty((len(rows), weights.shape[1]))
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK]
        total = np.zeros((len(block), weights.shape[1]))
        for column in block.T:
            total -= weights[column]
        costs[start : start + BLOCK] = total
    return costs


def move(table: Averaged, rows: IntArray | Rows, columns: IntArray, sign: float, step: int) -> None:
    """Moves some weights, each by its own step."""
    where = rows, columns
    np.add.at(table.squares, where, 1.0)
    change = sign / np.sqrt(table.squares[where])
    np.add.at(table.weights, where, change)
    np.add.at(table.lag, where, step * change)


def train_weights(
    text: Text,
    gold: IntArray,
    forbidden: FloatArray,
    n_buckets: int,
    *,
    epochs: int = 8,
    seed: int = 0,
    tell: Tell,
) -> Weights:
    """Learns from the gold tags of all words; `forbidden` is inf for pairs of tags that may not follow each other."""
    random, n_tags = np.random.default_rng(seed), len(forbidden)
    words, pairs = Averaged.of(n_buckets, n_tags), Averaged.of(n_tags, n_tags)
    lengths, step = np.diff(text.first), 0
    known = np.flatnonzero(lengths)
    for epoch in range(epochs):
        order = random.permutation(known)
        for start in range(0, len(order), BATCH):
            if start % (64 * BATCH) == 0:
                tell("Training the tagger", (epoch + start / len(order)) / epochs)
            some = order[start : start + BATCH]
            first = np.concatenate([[0], np.cumsum(lengths[some])])
            at = np.repeat(text.first[some] - first[:-1], lengths[some]) + np.arange(first[-1])
            rows, wanted = text.rows[at], gold[at]
            costs = word_costs(rows, words.weights)
            costs[np.arange(len(at)), wanted] += MARGIN
            found = viterbi(costs, first, forbidden - pairs.weights)
            wrong = np.flatnonzero(found != wanted)
            for tags, sign in ((wanted, 1.0), (found, -1.0)):
                move(words, rows[wrong], tags[wrong, None], sign, step)
            left = np.setdiff1d(np.arange(len(at) - 1), first[1:-1] - 1)
            left = left[(found[left] != wanted[left]) | (found[left + 1] != wanted[left + 1])]
            for tags, sign in ((wanted, 1.0), (found, -1.0)):
                move(pairs, tags[left], tags[left + 1], sign, step)
            step += 1
    tell("Training the tagger", 1.0)
    return Weights(words.mean(step), pairs.mean(step))


def viterbi(costs: FloatArray, first: IntArray, follow: FloatArray) -> IntArray:
    """Returns the cheapest labels of all words.

    Going forward only least costs are kept, a minimum over contiguous rows; which label gave them is found on the way
    back, for the labels that are chosen. One sentence alone goes a way of its own.

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
    """Finds the best tags of one sentence in few calls: the best labels are kept going forward."""
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
