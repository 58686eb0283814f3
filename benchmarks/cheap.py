"""Cheap features of relations: how far apart two spans are, what lies between and around them, and their last words.

A gate sees these, and the costs of the entities, before the costs of any relation are computed. They are 8 where
the black box looks at 29 to 39.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, kernel
from hasten.learning.gate import Cheap
from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.scoring.features import EDGE, Text, bucket, column, mix, pair_of, read
from hasten.tasks.text.words import WORD

N_CHEAP = 8


@kernel
def relation_hints(text: Text, sentence: int, relation: int, hints: IntArray, r: int) -> None:
    """Writes the cheap features of a sentence's relation number `relation`, from 0, into row `r`."""
    columns, first, end = text.columns, text.token_at[sentence], text.token_at[sentence + 1]
    at = text.span_at[sentence]
    left, right = pair_of(text.span_at[sentence + 1] - at, relation)
    start1, stop1 = text.spans[at + left, 0], text.spans[at + left, 1]
    start2, stop2 = text.spans[at + right, 0], text.spans[at + right, 1]
    gap, n_between, backward = start2 - stop1, min(right - left - 1, 3), relation % 2
    first_between = read(columns, stop1, WORD) if gap > 0 else EDGE
    last_between = read(columns, start2 - 1, WORD) if gap > 0 else EDGE
    values = (
        mix(bucket(gap), n_between),
        mix(first_between, n_between),
        mix(last_between, n_between),
        mix(first_between, last_between),
        column(columns, start1 - 1, first, end, WORD),
        column(columns, stop2, first, end, WORD),
        read(columns, stop1 - 1, WORD),
        read(columns, stop2 - 1, WORD),
    )
    for n in range(N_CHEAP):
        hints[r, n] = mix(mix(2 * n + backward, 0x7FEB352D), values[n])


@driver
def hint(text: Text, problem_ids: IntArray, variable_ids: IntArray, hints: IntArray) -> None:
    """Writes the cheap features of the relations asked for, a row for each."""
    for r in range(len(problem_ids)):
        sentence = problem_ids[r]
        n_entities = text.span_at[sentence + 1] - text.span_at[sentence]
        relation_hints(text, sentence, variable_ids[r] - n_entities, hints, r)


def relation_features(text: Text) -> Cheap:
    """Returns the function that gives a gate the cheap features of a text's relations."""

    def cheap(problems: IntArray, variables: IntArray) -> IntArray:
        hints = np.empty((len(problems), N_CHEAP), dtype=np.int64)
        hint(text, problems, variables, hints)
        return hints

    return cheap
