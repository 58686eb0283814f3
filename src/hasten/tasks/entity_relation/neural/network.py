"""The network: word vectors in, a score for each type of each span and for each relation of each ordered pair.

The encoder's layers are mixed; the part of speech and the shape of the spelling are added, as the encoder knows no
capitals; an LSTM reads the sentence both ways. A span is its first and last state and the mean of its word vectors. A
pair is its two spans, the largest of the states between them, the states beside them, and how far apart they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import msgspec
import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.data.columns import Columns
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.neural.encoder import LAYERS, SIZE, Words, vectors_of
from hasten.tasks.entity_relation.task import ordered_pairs

HIDDEN = 128
DROPOUT = 0.4
N_TAGS, N_SHAPES = 64, 8
OF_TAG, OF_SHAPE = 24, 16  # numbers that stand for each
LONGEST_GAP = 11  # words between two spans; more count as many


@dataclass(frozen=True, slots=True, eq=False)
class NeuralText:
    """Sentences as the network reads them."""

    words: Sequence[Words]
    tags: Sequence[Words | None]
    spans: Sequence[Sequence[tuple[int, int]]]

    @classmethod
    def of(cls, sentences: Columns | Iterable[Sentence]) -> NeuralText:
        """Takes over the words, spans and parts of speech of sentences, never their labels."""
        if isinstance(sentences, Columns):
            decode, rows = msgspec.json.decode, sentences.rows
            tags = [None if row.pos is None else tuple(decode(row.pos)) for row in rows]
            return cls([tuple(decode(row.tokens)) for row in rows], tags, [row.spans for row in rows])
        known = list(sentences)
        return cls([each.tokens for each in known], [each.pos for each in known], [each.spans for each in known])

    def __len__(self) -> int:
        return len(self.words)

    @property
    def n_entities(self) -> IntArray:
        """The number of spans of each sentence."""
        return np.array([len(spans) for spans in self.spans], dtype=np.int64)

    def select(self, numbers: Iterable[int]) -> NeuralText:
        """Returns some of the sentences."""
        some, words, tags, spans = list(numbers), self.words, self.tags, self.spans
        return NeuralText([words[n] for n in some], [tags[n] for n in some], [spans[n] for n in some])


def tag_number(tag: str) -> int:
    """Returns the number of a part of speech, from 1; 0 stands for none."""
    return 1 + crc32(tag.encode("utf-8", "replace")) % (N_TAGS - 1)


def shape_number(word: str) -> int:
    """Returns the number of a word's shape: does it begin with a capital, is it all capitals, has it a digit?"""
    return word[:1].isupper() + 2 * word.isupper() + 4 * any(map(str.isdigit, word))


class Network(nn.Module):
    """Scores the labels of sentences."""

    def __init__(self, n_types: int, n_relations: int) -> None:
        super().__init__()
        state, span = 2 * HIDDEN, 4 * HIDDEN + SIZE
        self.mix = nn.Parameter(torch.zeros(len(LAYERS)))
        self.tag, self.shape = nn.Embedding(N_TAGS, OF_TAG), nn.Embedding(N_SHAPES, OF_SHAPE)
        self.drop = nn.Dropout(DROPOUT)
        self.lstm = nn.LSTM(SIZE + OF_TAG + OF_SHAPE, HIDDEN, bidirectional=True, batch_first=True)
        self.entity = nn.Sequential(
            self.drop, nn.Linear(span, HIDDEN), nn.GELU(), self.drop, nn.Linear(HIDDEN, n_types)
        )
        self.source, self.target = nn.Linear(span, HIDDEN), nn.Linear(span, HIDDEN)
        self.between, self.beside = nn.Linear(state, HIDDEN), nn.Linear(2 * state, HIDDEN)
        self.distance = nn.Embedding(2 * (LONGEST_GAP + 1), HIDDEN)
        self.relation = nn.Sequential(
            nn.GELU(), self.drop, nn.Linear(HIDDEN, HIDDEN), nn.GELU(), self.drop, nn.Linear(HIDDEN, n_relations)
        )

    def forward(self, text: NeuralText) -> tuple[Tensor, Tensor]:
        """Returns scores of all spans (spans, types) and of all ordered pairs (pairs, relations) of some sentences."""
        vectors, states = self._read(text)
        places = [(p, start, end) for p, spans in enumerate(text.spans) for start, end in spans]
        sentence, start, end = torch.tensor(places, dtype=torch.int64).reshape(-1, 3).T
        sums = pad(vectors.cumsum(dim=1), (0, 0, 1, 0))
        mean = (sums[sentence, end] - sums[sentence, start]) / (end - start)[:, None]
        span = torch.cat([states[sentence, start], states[sentence, end - 1], mean], dim=-1)
        first = np.cumsum(text.n_entities) - text.n_entities
        pairs = [(at + i, at + j) for at, n in zip(first, text.n_entities, strict=True) for i, j in ordered_pairs(n)]
        source, target = torch.tensor(np.array(pairs, dtype=np.int64).reshape(-1, 2)).T
        left, right = source[::2], target[::2]  # each pair forward, then backward
        gap = start[right] - end[left]
        edged = pad(states, (0, 0, 1, 1))
        beside = torch.cat([edged[sentence[left], start[left]], edged[sentence[right], end[right] + 1]], dim=-1)
        context = self.between(largest(states, sentence[left], end[left], gap)) + self.beside(beside)
        steps = gap.clamp(0, LONGEST_GAP)
        distance = self.distance(torch.stack([steps, steps + LONGEST_GAP + 1], dim=1).flatten())
        joined = self.source(span)[source] + self.target(span)[target] + distance
        return self.entity(span), self.relation(joined + context.repeat_interleave(2, dim=0))

    def _read(self, text: NeuralText) -> tuple[Tensor, Tensor]:
        """Returns the mixed vectors and the LSTM's states of the words of sentences, padded."""
        share = torch.softmax(self.mix, dim=0)
        mixed = [torch.einsum("l,lwd->wd", share, torch.from_numpy(each).float()) for each in vectors_of(text.words)]
        vectors = pad_sequence(mixed, batch_first=True)
        tags = [[0] * len(words) if tags is None else [*map(tag_number, tags)]
                for words, tags in zip(text.words, text.tags, strict=True)]  # fmt: skip
        shapes = [[*map(shape_number, words)] for words in text.words]
        of_tags, of_shapes = (
            pad_sequence([torch.tensor(each, dtype=torch.int64) for each in numbers], batch_first=True)
            for numbers in (tags, shapes)
        )
        signal = self.drop(torch.cat([vectors, self.tag(of_tags), self.shape(of_shapes)], dim=-1))
        lengths = torch.tensor([len(words) for words in text.words])
        packed = pack_padded_sequence(signal, lengths, batch_first=True, enforce_sorted=False)
        return vectors, pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]


def largest(states: Tensor, sentence: Tensor, start: Tensor, length: Tensor) -> Tensor:
    """Returns, for each stretch of words, the largest of each number of their states; zeros for an empty one.

    By a table of stretches of 1, 2, 4, … words: two of them, which may overlap, cover any stretch.
    """
    levels = [states]
    while 2 ** len(levels) < states.shape[1]:
        reach = 2 ** (len(levels) - 1)
        levels.append(torch.maximum(levels[-1], pad(levels[-1], (0, 0, 0, reach))[:, reach:]))
    some = length > 0
    level = torch.log2(length.clamp(min=1).double()).long()
    start = torch.where(some, start, 0)
    last = torch.where(some, start + length - 2**level, 0)
    table = torch.stack(levels)
    found = torch.maximum(table[level, sentence, start], table[level, sentence, last])
    return torch.where(some[:, None], found, 0.0)
