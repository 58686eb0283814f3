"""hasten's own format, read and written: one JSON object a line (`docs/corpora.md`).

People get `Sentence` objects, one by one (`read_jsonl`). A stream gets `Row` objects, many at a time (`read_rows`):
msgspec decodes each line and checks the types of its fields; the rest is checked on arrays, all rows at once. A row
that fails is read again as a `Sentence`, which says in words what is wrong, or puts its spans in order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring_ascii as quote
from typing import Annotated, Any, NamedTuple

import msgspec
import numpy as np

from hasten.errors import CorpusError
from hasten.support.arrays import BoolArray
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, in_order, layout
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, open_lines
from hasten.tasks.text.objects import parse_line, parse_object, short, write_lines

MAX_QUOTED = 200_000  # words whose JSON is remembered

Place = Annotated[int, msgspec.Meta(ge=0, le=2**40)]  # fits an array of 64-bit numbers


class Row(msgspec.Struct, gc=False):
    """A sentence as a line of a file has it. A field that is not there is None; null is refused."""

    tokens: list[str]
    spans: list[tuple[Place, Place]]
    id: str = None  # type: ignore[assignment]
    pos: list[str] = None  # type: ignore[assignment]
    types: list[str] = None  # type: ignore[assignment]
    relations: list[tuple[Place, Place, str]] = None  # type: ignore[assignment]


class Rows(NamedTuple):
    """The sentences of some lines, the number of each line, and the lines that were refused, with the reason."""

    numbers: list[int]
    rows: list[Row | Sentence]
    refused: list[tuple[int, CorpusError]]


def read_rows(entries: Iterable[tuple[int, Any]]) -> Rows:
    """Reads entries of a file: lines of JSON, the objects that they stand for, or sentences, each with its number."""
    decode = msgspec.json.Decoder(Row).decode
    found = Rows([], [], [])
    for number, entry in entries:
        try:
            row: Row | Sentence
            if isinstance(entry, str | bytes):
                row = decode(entry)
            elif isinstance(entry, Sentence):
                row = entry
            else:
                row = msgspec.convert(entry, Row)
            if row.id is None:
                row.id = str(number)
        except (ValueError, RecursionError):  # msgspec's errors, and text that is not UTF-8
            try:
                row = from_object(parse_line(entry) if isinstance(entry, str | bytes) else entry, str(number))
            except CorpusError as error:
                found.refused.append((number, error))
                continue
        found.numbers.append(number)
        found.rows.append(row)
    doubts = np.flatnonzero(doubtful(found.rows))
    return _resolve(found, doubts.tolist()) if doubts.size else found


def doubtful(rows: Sequence[Row | Sentence]) -> BoolArray:
    """Tells which rows a `Sentence` would not take as they are, or has relations to check."""
    token_at, span_at, bounds = layout(rows)
    found = np.array(
        [
            bool(row.relations)
            or "" in row.tokens
            or (row.pos is not None and len(row.pos) != len(row.tokens))
            or (row.types is not None and len(row.types) != len(row.spans))
            for row in rows
        ],
        dtype=bool,
    )
    owner, (start, end) = np.repeat(np.arange(len(rows)), np.diff(span_at)), bounds.T
    found[owner[(start >= end) | (end > np.diff(token_at)[owner])]] = True
    ordered = (start[1:] > start[:-1]) | ((start[1:] == start[:-1]) & (end[1:] > end[:-1]))
    found[owner[1:][~ordered & (owner[1:] == owner[:-1])]] = True
    return found


def _resolve(found: Rows, doubts: Iterable[int]) -> Rows:
    """Makes sentences of the doubtful rows, and refuses those that are none."""
    refused = list(found.refused)
    for n in doubts:
        row = found.rows[n]
        try:
            found.rows[n] = in_order(
                row.id, row.tokens, row.spans, pos=row.pos, types=row.types, relations=row.relations
            )
        except CorpusError as error:
            refused.append((found.numbers[n], error))
    gone = {number for number, _ in refused}
    kept = [n for n, number in enumerate(found.numbers) if number not in gone]
    refused.sort(key=lambda each: each[0])
    return Rows([found.numbers[n] for n in kept], [found.rows[n] for n in kept], refused)


def read_jsonl(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads one JSON object a line; the path `"-"` is standard input. `docs/corpora.md` describes the format.

    Keys that it does not know are passed over, so that a file may carry more than hasten needs. A sentence
    without an id gets the number of its line.
    """
    with open_lines(path, max_line, faults=faults) as lines:
        for line in lines:
            if not line.isspace():
                with lines.entry():
                    yield from_json(line, str(lines.number))


def write_jsonl(path: AnyPath, sentences: Iterable[Sentence]) -> int:
    """Writes what `read_jsonl` reads, and returns how many sentences it wrote.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    encode = Encoder()
    return write_lines(path, (encode(to_json(sentence)) for sentence in sentences))


def to_json(
    sentence: Row | Sentence, types: Sequence[str] | None = None, relations: Sequence[Relation] | None = None
) -> dict[str, Any]:
    """Returns a sentence as the object that stands for it in a file, with its own labels or, if given, others."""
    found: dict[str, Any] = {"id": sentence.id, "tokens": sentence.tokens, "spans": sentence.spans}
    if sentence.pos is not None:
        found["pos"] = sentence.pos
    if types is None and relations is None:
        types, relations = sentence.types, sentence.relations
    if types is not None:
        found["types"] = types
    if relations is not None:
        found["relations"] = relations
    return found


class Encoder:
    """Writes objects of sentences as lines, to the byte as `json.dumps` does; remembers the words that it quoted."""

    def __init__(self) -> None:
        self._quoted = _Quoted()

    def __call__(self, found: dict[str, Any]) -> str:
        """Returns an object as a line."""
        quoted, join = self._quoted.__getitem__, ", ".join
        fields = []
        for key, value in found.items():
            if key in _STRINGS:
                said = f"[{join(map(quoted, value))}]"
            elif key == "spans":
                said = str(list(value)).replace("(", "[").replace(")", "]")
            elif key == "id":
                said = quote(value)
            elif value is True:
                said = "true"
            else:
                said = json.dumps(value) if value else _NOTHING.get(key) or json.dumps(value)
            fields.append(f'"{key}": {said}')
        return f"{{{join(fields)}}}\n"


_STRINGS = frozenset({"tokens", "pos", "types"})
_NOTHING = {"relations": "[]", "proved": "false"}


class _Quoted(dict[str, str]):
    """Words as JSON strings."""

    def __missing__(self, word: str) -> str:
        if len(self) >= MAX_QUOTED:
            self.clear()
        self[word] = quoted = quote(word)
        return quoted


def from_json(line: str, default_id: str) -> Sentence:
    """Returns the sentence that a line stands for; one without an id gets another."""
    return from_object(parse_object(line), default_id)


def from_object(found: Mapping[str, Any], default_id: str) -> Sentence:
    """Returns the sentence that an object stands for; one without an id gets another."""
    for key, (form, fits) in _JSON_KEYS.items():
        if key in found and not (isinstance(found[key], list) and all(map(fits, found[key]))):
            raise CorpusError(f"{key!r} should be {form}, not {short(found[key])}.")
    for key in ("tokens", "spans"):
        if key not in found:
            raise CorpusError(f"{key!r} is missing. Give it, if need be as an empty list.")
    if not isinstance(found.get("id", ""), str):
        raise CorpusError(f"'id' should be a string, not {short(found['id'])}. Put it in quotes.")
    return in_order(
        found.get("id", default_id),
        found["tokens"],
        [(start, end) for start, end in found["spans"]],
        pos=found.get("pos"),
        types=found.get("types"),
        relations=[(s, t, name) for s, t, name in found["relations"]] if "relations" in found else None,
    )


def _is(*kinds: type) -> Callable[[object], bool]:
    """Returns a test for a list of exactly these types; exactly, because JSON's true is not a number."""
    return lambda item: isinstance(item, list) and tuple(map(type, item)) == kinds


def _is_text(item: object) -> bool:
    return isinstance(item, str)


_JSON_KEYS: dict[str, tuple[str, Callable[[object], bool]]] = {
    "tokens": ("a list of strings", _is_text),
    "spans": ("a list of [start, end] token numbers", _is(int, int)),
    "pos": ("a list of strings", _is_text),
    "types": ("a list of strings", _is_text),
    "relations": ('a list of [source span, target span, "name"]', _is(int, int, str)),
}
