"""Text as numbers: every token becomes a row of hashes, once, so that features never touch a string again.

A column is the hash of one attribute of a word (`tasks.text.words`). Hashes depend neither on the process nor on what
was read before, so a model stores no vocabulary and texts interned apart agree. Each distinct word is looked at once;
after that, interning a token is one dictionary lookup.
The kernels of `features` read the columns: this module is one of those that `hasten.jit` looks at.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.text.words import N_COLUMNS, NO_POS, POS, attributes_of, hash_string

HashArray = npt.NDArray[np.int32]


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


@dataclass(slots=True)
class Vocabulary:
    """Words already looked at. A stream of short texts that shares one is spared looking at them again."""

    _row: dict[str, int] = field(default_factory=dict)
    _attributes: HashArray = field(default_factory=lambda: np.empty((1024, POS), np.int32))
    _pos: dict[str, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._row)

    def intern(self, sentences: Iterable[Sentence]) -> Text:
        """Turns sentences into one text: their tokens, spans and parts of speech, never their labels."""
        sentences = list(sentences)
        token_at = _offsets([len(sentence.tokens) for sentence in sentences])
        span_at = _offsets([len(sentence.spans) for sentence in sentences])
        columns = np.empty((token_at[-1], N_COLUMNS), np.int32)
        columns[:, :POS] = self._words([word for sentence in sentences for word in sentence.tokens])
        columns[:, POS] = self._parts_of_speech(sentences)
        bounds = [token for sentence in sentences for span in sentence.spans for token in span]
        spans = np.array(bounds, np.int64).reshape(-1, 2)
        spans += np.repeat(token_at[:-1], span_at[1:] - span_at[:-1])[:, None]
        return Text(columns, token_at, spans, span_at)

    def _words(self, words: list[str]) -> HashArray:
        row = self._row
        new = set(words).difference(row)
        if new:
            first, end = len(row), len(row) + len(new)
            if end > len(self._attributes):
                grown = np.empty((2 * end, POS), np.int32)
                grown[:first] = self._attributes[:first]
                self._attributes = grown
            hashes = chain.from_iterable(map(attributes_of, new))
            self._attributes[first:end] = np.fromiter(hashes, np.int32, POS * len(new)).reshape(-1, POS)
            row.update(zip(new, range(first, end), strict=True))
        return self._attributes[np.fromiter(map(row.__getitem__, words), np.int64, len(words))]

    def _parts_of_speech(self, sentences: Sequence[Sentence]) -> list[int]:
        known = self._pos
        hashes: list[int] = []
        for sentence in sentences:
            if sentence.pos is None:
                hashes += [NO_POS] * len(sentence.tokens)
                continue
            try:
                hashes += [known[tag] for tag in sentence.pos]
            except KeyError:
                known.update((tag, hash_string(tag)) for tag in sentence.pos)
                hashes += [known[tag] for tag in sentence.pos]
        return hashes


def intern(sentences: Iterable[Sentence]) -> Text:
    """Turns sentences into one text, with a vocabulary of their own."""
    return Vocabulary().intern(sentences)


def _offsets(lengths: list[int]) -> IntArray:
    at = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=at[1:])
    return at
