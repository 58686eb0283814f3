"""Text as numbers: every token becomes a row of hashes, once, so that features never touch a string again.

A column is the hash of one attribute of a word (`tasks.text.words`). Hashes depend neither on the process nor on what
was read before, so a model stores no vocabulary and texts interned apart agree. Each distinct word is looked at once;
after that, interning a token is one dictionary lookup.
The kernels of `features` read the columns: this module is one of those that `hasten.jit` looks at.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.data.corpus import Spanned, layout
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


class _Tags(dict[str | None, int]):
    """The hash of each part of speech met so far."""

    def __missing__(self, tag: str | None) -> int:
        self[tag] = NO_POS if tag is None else hash_string(tag)
        return self[tag]


class _Numbers(dict[str, int]):
    """The number of each word met so far, in the order in which they came."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


@dataclass(slots=True)
class Vocabulary:
    """Words already looked at. A stream of short texts that shares one is spared looking at them again."""

    _numbers: _Numbers = field(default_factory=_Numbers)
    _attributes: HashArray = field(default_factory=lambda: np.empty((1024, N_COLUMNS), np.int32))
    _tags: _Tags = field(default_factory=_Tags)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def size(self) -> int:
        """How many words and parts of speech it remembers."""
        return len(self._numbers) + len(self._tags)

    def intern(self, sentences: Iterable[Spanned]) -> Text:
        """Turns sentences into one text: their tokens, spans and parts of speech, never their labels."""
        sentences = list(sentences)
        token_at, span_at, bounds = layout(sentences)
        words = chain.from_iterable(each.tokens for each in sentences)
        tags = (repeat(None, len(each.tokens)) if each.pos is None else each.pos for each in sentences)
        columns = self._columns(words, token_at[-1])
        columns[:, POS] = np.fromiter(map(self._tags.__getitem__, chain.from_iterable(tags)), np.int32, token_at[-1])
        return Text(columns, token_at, bounds + np.repeat(token_at[:-1], np.diff(span_at))[:, None], span_at)

    def _columns(self, words: Iterable[str], n: int) -> HashArray:
        """Returns a row for each of `n` words; looks at those that are new."""
        first = len(self._numbers)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, n)
        end = len(self._numbers)
        if end > len(self._attributes):
            grown = np.empty((2 * end, N_COLUMNS), np.int32)
            grown[:first] = self._attributes[:first]
            self._attributes = grown
        hashes = chain.from_iterable(map(attributes_of, islice(self._numbers, first, None)))
        self._attributes[first:end, :POS] = np.fromiter(hashes, np.int32, POS * (end - first)).reshape(-1, POS)
        return self._attributes[numbers]


def intern(sentences: Iterable[Spanned]) -> Text:
    """Turns sentences into one text, with a vocabulary of their own."""
    return Vocabulary().intern(sentences)
