"""Hashed features of words, and how a tagger learns their weights: an averaged perceptron with inference in the loop.

A feature is a template (say "the word before") and a value (the hash of that word), mixed into one number whose low
bits are a row of the weights; words are hashed by `tasks.text.words`, as in `tasks.entity_relation.scoring`. The best
tags of the current weights, with the gold ones made dearer by a margin, are compared with the gold ones, and only where
the two differ do weights move. Steps are AdaGrad's, and the result is the average of the weights over all steps. A seed
fixes every number. The best tags are found by Viterbi's algorithm in NumPy, over sentences of all lengths at once,
without the rules that count over a sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.support.arrays import FloatArray, IntArray, offsets
from hasten.support.terminal import Progress
from hasten.tasks.text.words import (
    FLAGS,
    PREFIX2,
    PREFIX3,
    PREFIX4,
    SHAPE,
    SUFFIX2,
    SUFFIX3,
    SUFFIX4,
    WORD,
    Averaged,
    Vocabulary,
    as_json,
)

MARGIN = 10.0  # by which gold tags must win
BATCH = 8  # sentences between two steps
BLOCK = 1 << 14  # words scored together
VERSION = 1  # raise it with any change of a feature: weights are worth nothing to other features
EDGE = 1  # stands for any column of a word outside the sentence
Rows = npt.NDArray[np.int32]


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


def _move(table: Averaged, rows: IntArray | Rows, columns: IntArray, sign: float, step: int) -> None:
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
    progress: Progress,
) -> tuple[FloatArray, FloatArray]:
    """Learns from the gold tags of all words; `forbidden` is inf for pairs of tags that may not follow each other.

    Returns the score of each tag for each row of features, and of each pair of neighbouring tags.
    """
    random, n_tags = np.random.default_rng(seed), len(forbidden)
    words, pairs = Averaged.of(n_buckets, n_tags), Averaged.of(n_tags, n_tags)
    lengths, step = np.diff(text.first), 0
    known = np.flatnonzero(lengths)
    for epoch in range(epochs):
        order = random.permutation(known)
        for start in range(0, len(order), BATCH):
            if start % (64 * BATCH) == 0:
                progress("Training the tagger", (epoch + start / len(order)) / epochs)
            some = order[start : start + BATCH]
            first = np.concatenate([[0], np.cumsum(lengths[some])])
            at = np.repeat(text.first[some] - first[:-1], lengths[some]) + np.arange(first[-1])
            rows, wanted = text.rows[at], gold[at]
            costs = word_costs(rows, words.weights)
            costs[np.arange(len(at)), wanted] += MARGIN
            found = viterbi(costs, first, forbidden - pairs.weights)
            wrong = np.flatnonzero(found != wanted)
            left = np.setdiff1d(np.arange(len(at) - 1), first[1:-1] - 1)
            left = left[(found[left] != wanted[left]) | (found[left + 1] != wanted[left + 1])]
            for tags, sign in ((wanted, 1.0), (found, -1.0)):
                _move(words, rows[wrong], tags[wrong, None], sign, step)
                _move(pairs, tags[left], tags[left + 1], sign, step)
            step += 1
    progress("Training the tagger", 1.0)
    return words.mean(step), pairs.mean(step)


def viterbi(costs: FloatArray, first: IntArray, follow: FloatArray) -> IntArray:
    """Returns the cheapest labels of all words.

    Going forward only least costs are kept, a minimum over contiguous rows; which label gave them is found on the way
    back, for the labels that are chosen.

    `costs` are those of each word's labels, (n_words, n_labels); sentence `p` has the words `first[p]:first[p + 1]`;
    `follow` are the costs of label pairs, inf where forbidden. Where nothing is allowed, the labels mean nothing.
    """
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


class Text(NamedTuple):
    """Many sentences: the rows of each word's features, (n_words, N_FEATURES), and where each sentence starts."""

    rows: Rows
    first: IntArray  # (n_sentences + 1,)


def read(sentences: Sequence[Sequence[str]], n_buckets: int, vocabulary: Vocabulary | None = None) -> Text:
    """Turns the words of sentences into rows of `n_buckets` rows of weights."""
    first = offsets([len(words) for words in sentences])
    found = (vocabulary or Vocabulary()).read([as_json(words) for words in sentences])
    return Text(_rows(found.columns.astype(np.int64), first, n_buckets - 1), first)


def _mix(state: IntArray | int, value: IntArray | int) -> IntArray:
    """Stirs 32-bit values into 32-bit states: `mix` of `tasks.entity_relation.scoring.features`, for arrays."""
    stirred = ((np.asarray(state, np.int64) ^ np.asarray(value, np.int64)) * 0x2C1B3C6D) & 0xFFFFFFFF
    found: IntArray = stirred ^ (stirred >> 15)
    return found


def _rows(columns: IntArray, first: IntArray, mask: int) -> Rows:
    """Returns the rows of each word, a column for each template."""
    n = len(columns)
    sentence = np.repeat(np.arange(len(first) - 1), np.diff(first))

    def at(away: int, which: int) -> IntArray:
        """Returns a column of the words that many places away, `EDGE` outside the sentence."""
        place = np.arange(n) + away
        inside = (place >= 0) & (place < n)
        place = np.clip(place, 0, max(0, n - 1))
        inside &= sentence[place] == sentence
        return np.where(inside, columns[place, which], EDGE)

    def here(which: int) -> IntArray:
        return columns[:, which]

    word, before, after = here(WORD), at(-1, WORD), at(1, WORD)
    values = (
        np.zeros(n, np.int64),
        word,
        *(here(which) for which in (SHAPE, PREFIX2, PREFIX3, PREFIX4, SUFFIX2, SUFFIX3, SUFFIX4, FLAGS)),
        _mix(here(SHAPE), here(SUFFIX3)),
        before,
        after,
        at(-2, WORD),
        at(2, WORD),
        at(-1, SUFFIX3),
        at(1, SUFFIX3),
        at(-1, SHAPE),
        at(1, SHAPE),
        _mix(before, word),
        _mix(word, after),
        _mix(before, after),
        _mix(at(-2, WORD), before),
        _mix(at(-1, SUFFIX2), here(SUFFIX2)),
        _mix(here(SUFFIX2), at(1, SUFFIX2)),
        _mix(at(-1, SHAPE), here(SHAPE)),
    )
    return np.stack([_mix(_mix(k, 0x5BD1E995), value) & mask for k, value in enumerate(values)], axis=1).astype(
        np.int32
    )
