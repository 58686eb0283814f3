"""Hashed features of words in their sentences, all words at once.

A feature is a template (say "the word before") and a value (the hash of that word), mixed into one number whose low
bits are a row of the weights; words are hashed by `tasks.text.words`, as in `tasks.entity_relation.scoring`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.support.arrays import IntArray, offsets
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
    Vocabulary,
    as_json,
)

VERSION = 1  # raise it with any change of a feature: weights are worth nothing to other features
EDGE = 1  # stands for any column of a word outside the sentence

Rows = npt.NDArray[np.int32]


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
