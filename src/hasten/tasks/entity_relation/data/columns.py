"""Many sentences at a time, column by column: the lines of a block, decoded and checked together.

msgspec decodes each line and checks the types of its fields; how spans and tokens fit together is checked on arrays,
all sentences at once. A line that fails is read again as a `Sentence`, which says what is wrong, or sorts its spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, compress
from typing import Annotated, Any, Protocol

import msgspec
import numpy as np

from hasten.errors import CorpusError
from hasten.support.arrays import IntArray, offsets
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.text.objects import parse_line

MOST_WORDS = 100_000  # of the sentences that are answered together
MOST_VARIABLES = 50_000  # likewise: a type for each span, a relation for each ordered pair

Place = Annotated[int, msgspec.Meta(ge=0, le=2**40)]  # fits an array of 64-bit numbers
Word = Annotated[str, msgspec.Meta(min_length=1)]


class Row(msgspec.Struct, gc=False):
    """A sentence as a line of a file has it. A field that is not there is None; null is refused."""

    tokens: list[Word]
    spans: list[tuple[Place, Place]]
    id: str = None  # type: ignore[assignment]
    pos: list[str] = None  # type: ignore[assignment]
    types: list[str] = None  # type: ignore[assignment]
    relations: list[tuple[Place, Place, str]] = None  # type: ignore[assignment]


class Entries(Protocol):
    """A piece of a file, whose entries are numbered: lines of JSON, the objects they stand for, or sentences."""

    def entries(self) -> Iterator[tuple[int, Any]]:
        """Yields the entries with their numbers."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """Sentences side by side, and the entries of a file that are none."""

    rows: Sequence[Row | Sentence]
    numbers: Sequence[int]  # of the entries that they were read from
    n_words: IntArray
    n_spans: IntArray
    spans: IntArray  # (all of them, 2)
    refused: Sequence[tuple[int, CorpusError]] = ()

    @classmethod
    def of(cls, rows: Sequence[Row | Sentence], numbers: Sequence[int] = ()) -> Columns:
        """Lays out sentences."""
        n_words, n_spans = [len(row.tokens) for row in rows], [len(row.spans) for row in rows]
        bounds = chain.from_iterable(chain.from_iterable([row.spans for row in rows]))
        spans = np.fromiter(bounds, np.int64, 2 * sum(n_spans)).reshape(-1, 2)
        return cls(rows, numbers, np.array(n_words, np.int64), np.array(n_spans, np.int64), spans)

    @classmethod
    def read(cls, piece: Entries) -> Columns:
        """Reads the entries of a piece; one that is no sentence is refused, with the reason."""
        decode = msgspec.json.Decoder(Row).decode
        rows, numbers, refused = list[Row | Sentence](), list[int](), list[tuple[int, CorpusError]]()
        for number, entry in piece.entries():
            try:
                if isinstance(entry, str | bytes):
                    row: Row | Sentence = decode(entry)
                else:
                    row = entry if isinstance(entry, Sentence) else msgspec.convert(entry, Row)
                if row.id is None:
                    row.id = str(number)
            except (ValueError, RecursionError):  # msgspec's errors, and text that is not UTF-8
                try:
                    row = from_object(parse_line(entry) if isinstance(entry, str | bytes) else entry, str(number))
                except CorpusError as error:
                    refused.append((number, error))
                    continue
            rows.append(row)
            numbers.append(number)
        return cls.of(rows, numbers)._checked(refused)

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, start: int, stop: int) -> Columns:
        """Returns some of the sentences."""
        some, ends = slice(start, stop), offsets(self.n_spans)
        spans = self.spans[ends[start] : ends[stop]]
        return Columns(self.rows[some], self.numbers[some], self.n_words[some], self.n_spans[some], spans)

    def chunks(self) -> Iterator[Columns]:
        """Yields the sentences in groups that fit into memory, however many words and spans they have."""
        load = np.zeros(len(self) + 1)
        np.cumsum(self.n_words / MOST_WORDS + self.n_spans**2 / MOST_VARIABLES, out=load[1:])
        start = 0
        while start < len(self):
            stop = max(start + 1, int(np.searchsorted(load, load[start] + 1, side="right")) - 1)
            yield self if stop - start == len(self) else self.part(start, stop)
            start = stop

    def _checked(self, refused: list[tuple[int, CorpusError]]) -> Columns:
        """Returns the columns with doubtful rows read again as sentences, which sorts their spans or refuses them."""
        doubtful = self._doubtful().tolist()
        if not any(doubtful):
            return Columns(self.rows, self.numbers, self.n_words, self.n_spans, self.spans, refused)
        rows, kept = list(self.rows), [True] * len(self)
        for n in compress(range(len(rows)), doubtful):
            row = rows[n]
            try:
                rows[n] = in_order(row.id, row.tokens, row.spans, pos=row.pos, types=row.types, relations=row.relations)
            except CorpusError as error:
                refused.append((self.numbers[n], error))
                kept[n] = False
        found = Columns.of(list(compress(rows, kept)), list(compress(self.numbers, kept)))
        refused.sort(key=lambda each: each[0])
        return Columns(found.rows, found.numbers, found.n_words, found.n_spans, found.spans, refused)

    def _doubtful(self) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Tells which rows a `Sentence` would not take as they are, or has relations to check."""
        found = np.array(
            [
                bool(row.relations)
                or (row.pos is not None and len(row.pos) != len(row.tokens))
                or (row.types is not None and len(row.types) != len(row.spans))
                for row in self.rows
            ],
            dtype=bool,
        )
        owner, (start, end) = np.repeat(np.arange(len(self)), self.n_spans), self.spans.T
        found[owner[(start >= end) | (end > self.n_words[owner])]] = True
        ordered = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
        found[owner[1:][~ordered & (owner[1:] == owner[:-1])]] = True
        return found
