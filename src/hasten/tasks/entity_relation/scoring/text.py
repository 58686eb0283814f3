"""Text as numbers: every token becomes a row of hashes, once, so that features never touch a string again.

A column is the hash of one attribute of a word (`tasks.text.words`). The kernels of `features` read the columns: this
module is one of those that `hasten.jit` looks at.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hasten.support.arrays import IntArray, offsets
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.text.spelling import HashArray
from hasten.tasks.text.words import Vocabulary


class Text(NamedTuple):
    """Many interned sentences. Sentence `p` owns tokens `token_at[p]:token_at[p + 1]` and spans likewise."""

    columns: HashArray  # (n_tokens, N_COLUMNS)
    token_at: IntArray  # (n_sentences + 1,)
    spans: IntArray  # (n_spans, 2), half-open, counted from the first token of the whole text
    span_at: IntArray  # (n_sentences + 1,)

    @property
    def n_sentences(self) -> int:
        """The number of sentences."""
        return len(self.token_at) - 1

    @property
    def n_entities(self) -> IntArray:
        """The number of spans of each sentence."""
        return np.diff(self.span_at)

    @property
    def n_variables(self) -> IntArray:
        """The number of variables of each sentence: its entities, then a relation each way for every pair."""
        return self.n_entities**2


def intern(sentences: Columns | Iterable[Sentence], vocabulary: Vocabulary | None = None) -> Text:
    """Turns sentences into one text: their tokens, spans and parts of speech, never their labels."""
    given = sentences if isinstance(sentences, Columns) else Columns.of(list(sentences), vocabulary)
    token_at = offsets(given.n_words)
    spans = given.spans + np.repeat(token_at[:-1], given.n_spans)[:, None]
    return Text(given.columns, token_at, spans, offsets(given.n_spans))
