"""Text as numbers, and the hashed features of one variable at a time, after Roth & Yih (2004; paper §5).

Every token becomes a row of hashes, once (`tasks.text.words`). A feature is a template (say "the word before the span")
and a value (the hash of that word), mixed into one number whose low bits are a row of the weights. So a variable's
features are a short list of rows, which needs no dictionary, and any variable can be computed alone: that is what a
search which skips a cost saves. The kernels also run uncompiled: all products stay below 2**63, so nothing relies on
overflow.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from hasten.jit import kernel
from hasten.support.arrays import IntArray, offsets
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.text.words import (
    FLAGS,
    POS,
    PREFIX3,
    PREFIX4,
    SHAPE,
    SUFFIX2,
    SUFFIX3,
    SUFFIX4,
    WORD,
    HashArray,
    Vocabulary,
)

VERSION = 1  # raise it with any change of a feature: weights are worth nothing to other features
MAX_FEATURES = 80  # no variable has more
EDGE = 1  # stands for any column of a token outside the sentence
LONGEST_SPAN = 8  # words of a span that get features of their own
LONGEST_GAP = 10  # words between two spans that get features of their own, half from either end
N_TEMPLATES = 29  # of a relation, before those of the words between its spans, which share one
SHORT_GAP = 5  # gaps up to this length are also features as a whole


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


@kernel
def mix(state: int, value: int) -> int:
    """Stirs a 32-bit value into a 32-bit state; the order of the values matters."""
    stirred = ((state ^ value) * 0x2C1B3C6D) & 0xFFFFFFFF
    return stirred ^ (stirred >> 15)


@kernel
def read(columns: HashArray, token: int, which: int) -> int:
    """Returns a column of a token that is known to be inside the sentence, as wide as `mix` needs it."""
    return int(np.int64(columns[token, which]))


@kernel
def column(columns: HashArray, token: int, first: int, end: int, which: int) -> int:
    """Returns a token's column, or `EDGE` outside the sentence `first:end`."""
    return read(columns, token, which) if first <= token < end else EDGE


@kernel
def mix_run(columns: HashArray, start: int, end: int, which: int) -> int:
    """Hashes one column of the tokens `start:end`, in order."""
    state = end - start
    for token in range(start, end):
        state = mix(state, read(columns, token, which))
    return state


@kernel
def bucket(length: int) -> int:
    """Puts a length into one of ten buckets: 0, 1, 2, 3, 4, 5-6, 7-9, 10-14, 15-24, more."""
    if length <= 4:
        return length
    return 5 + (length > 6) + (length > 9) + (length > 14) + (length > 24)


@kernel
def entity_features(columns: HashArray, first: int, end: int, span: IntArray, mask: int, rows: IntArray) -> int:
    """Writes the rows of a span in the sentence `first:end`; returns how many there are."""
    start, stop = span[0], span[1]
    head = stop - 1
    before, after = column(columns, start - 1, first, end, WORD), column(columns, stop, first, end, WORD)
    before2, after2 = (column(columns, start - 2, first, end, WORD), column(columns, stop + 1, first, end, WORD))
    pos_before, pos_after = (column(columns, start - 1, first, end, POS), column(columns, stop, first, end, POS))
    phrase_shape = mix_run(columns, start, stop, SHAPE)
    n = 0
    for value in (
        mix_run(columns, start, stop, WORD),
        phrase_shape,
        mix_run(columns, start, stop, POS),
        bucket(stop - start),
        read(columns, head, WORD),
        read(columns, head, SUFFIX2),
        read(columns, head, SUFFIX3),
        read(columns, head, SUFFIX4),
        read(columns, head, PREFIX3),
        read(columns, head, PREFIX4),
        read(columns, head, SHAPE),
        read(columns, start, WORD),
        read(columns, start, SUFFIX3),
        read(columns, start, PREFIX3),
        mix(read(columns, start, FLAGS), read(columns, head, FLAGS)),
        before,
        after,
        before2,
        after2,
        pos_before,
        pos_after,
        mix(before2, before),
        mix(after, after2),
        mix(before, after),
        mix(before, phrase_shape),
        mix(after, phrase_shape),
        mix(pos_before, pos_after),
        mix(column(columns, start - 1, first, end, SHAPE), column(columns, stop, first, end, SHAPE)),
        mix(int(start == first), int(stop == end)),
    ):
        rows[n] = mix(mix(n, 0x5BD1E995), value) & mask
        n += 1
    template = n
    for token in range(start, min(stop, start + LONGEST_SPAN)):
        rows[n] = mix(mix(template, 0x5BD1E995), read(columns, token, WORD)) & mask
        rows[n + 1] = mix(mix(template + 1, 0x5BD1E995), read(columns, token, SUFFIX3)) & mask
        n += 2
    return n


@kernel
def relation_values(text: Text, sentence: int, left: int, right: int, values: IntArray) -> int:
    """Writes the values of the features of a relation between two spans, in text order, whichever of them is the
    source; returns how many there are.
    """
    columns, first, end = text.columns, text.token_at[sentence], text.token_at[sentence + 1]
    spans = text.spans[text.span_at[sentence] : text.span_at[sentence + 1]]
    start1, stop1, start2, stop2 = spans[left, 0], spans[left, 1], spans[right, 0], spans[right, 1]
    head1, head2 = stop1 - 1, stop2 - 1
    gap = start2 - stop1
    distance = bucket(gap)
    before, after = column(columns, start1 - 1, first, end, WORD), column(columns, stop2, first, end, WORD)
    first_between = read(columns, stop1, WORD) if gap > 0 else EDGE
    last_between = read(columns, start2 - 1, WORD) if gap > 0 else EDGE
    shape1, shape2 = mix_run(columns, start1, stop1, SHAPE), mix_run(columns, start2, stop2, SHAPE)
    words_between = pos_between = EDGE
    if gap <= SHORT_GAP:
        words_between = mix_run(columns, stop1, start2, WORD)
        pos_between = mix_run(columns, stop1, start2, POS)
    neighbours = min(right - left - 1, 3)
    n = 0
    for value in (
        distance,
        mix(distance, neighbours),
        words_between,
        pos_between,
        mix(words_between, neighbours),
        first_between,
        last_between,
        mix(first_between, last_between),
        mix(first_between, neighbours),
        mix(last_between, neighbours),
        before,
        after,
        mix(before, first_between),
        mix(last_between, after),
        mix(words_between, after),
        read(columns, head1, WORD),
        read(columns, head2, WORD),
        mix(read(columns, head1, WORD), read(columns, head2, WORD)),
        mix_run(columns, start1, stop1, WORD),
        mix_run(columns, start2, stop2, WORD),
        read(columns, head1, SUFFIX3),
        read(columns, head2, SUFFIX3),
        shape1,
        shape2,
        mix(mix(shape1, shape2), words_between),
        mix(mix(read(columns, head1, POS), read(columns, head2, POS)), pos_between),
        mix(column(columns, start1 - 1, first, end, POS), column(columns, stop2, first, end, POS)),
        mix(column(columns, start1 - 2, first, end, WORD), before),
        mix(after, column(columns, stop2 + 1, first, end, WORD)),
    ):
        values[n] = value
        n += 1
    near = stop1 + LONGEST_GAP // 2
    far = max(near, start2 - LONGEST_GAP // 2)
    for token in range(stop1, start2):
        if token < near or token >= far:
            values[n] = read(columns, token, WORD)
            n += 1
    return n


@kernel
def relation_rows(values: IntArray, n: int, backward: int, mask: int, rows: IntArray) -> None:
    """Turns the first `n` values of a relation into rows; `backward` says that the second span is the source."""
    for k in range(n):
        rows[k] = mix(mix(2 * min(k, N_TEMPLATES) + backward, 0x1B873593), values[k]) & mask


@kernel
def pair_of(n_entities: int, relation: int) -> tuple[int, int]:
    """Returns the two spans, in text order, of a sentence's relation variable number `relation`, from 0."""
    left, place = 0, relation // 2
    while place >= n_entities - 1 - left:
        place -= n_entities - 1 - left
        left += 1
    return left, left + 1 + place


@kernel
def variable_features(text: Text, sentence: int, variable: int, mask: int, rows: IntArray) -> int:
    """Writes the rows of one variable; returns how many there are. Entities come first, then relations."""
    first, end = text.token_at[sentence], text.token_at[sentence + 1]
    spans = text.spans[text.span_at[sentence] : text.span_at[sentence + 1]]
    if variable < len(spans):
        return int(entity_features(text.columns, first, end, spans[variable], mask, rows))
    relation = variable - len(spans)
    left, right = pair_of(len(spans), relation)
    n = relation_values(text, sentence, left, right, rows)
    relation_rows(rows, n, relation % 2, mask, rows)
    return int(n)
