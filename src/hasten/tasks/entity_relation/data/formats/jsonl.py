"""hasten's own format, read and written: one JSON object a line (`docs/corpora.md`).

This reads `Sentence` objects, one by one. Streams read many lines at a time (`tasks.entity_relation.data.columns`).
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import Any

import msgspec

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, in_order
from hasten.tasks.text.lines import AnyPath, Lines, fitted, parse_object, write_blocks

WRITTEN = 256  # sentences that are written together


def jsonl(lines: Lines) -> Iterator[Sentence]:
    """Reads one JSON object a line; `docs/corpora.md` describes the format.

    Keys that it does not know are passed over, so that a file may carry more than hasten needs. A sentence
    without an id gets the number of its line.
    """
    for line in lines:
        if not line.isspace():
            with lines.entry():
                yield from_object(parse_object(line), str(lines.number))


def from_object(found: Mapping[str, Any], default_id: str) -> Sentence:
    """Returns the sentence that an object stands for; one without an id gets another."""
    for key, (form, kind) in _KEYS.items():
        if key in found:
            fitted(found[key], kind, f"{key!r} should be {form}")
    for key in ("tokens", "spans"):
        if key not in found:
            raise CorpusError(f"{key!r} is missing. Give it, if need be as an empty list.")
    return in_order(
        found.get("id", default_id),
        found["tokens"],
        [(start, end) for start, end in found["spans"]],
        pos=found.get("pos"),
        types=found.get("types"),
        relations=[(s, t, name) for s, t, name in found["relations"]] if "relations" in found else None,
    )


_KEYS: dict[str, tuple[str, Any]] = {
    "tokens": ("a list of strings", list[str]),
    "spans": ("a list of [start, end] token numbers", list[tuple[int, int]]),
    "id": ("a string", str),
    "pos": ("a list of strings", list[str]),
    "types": ("a list of strings", list[str]),
    "relations": ('a list of [source span, target span, "name"]', list[tuple[int, int, str]]),
}


class Line(msgspec.Struct, gc=False, omit_defaults=True):
    """A line to be written: a sentence, its labels, and how these came about; fields that say nothing are left out."""

    id: str
    tokens: Sequence[str] | msgspec.Raw
    spans: Sequence[Span]
    pos: Sequence[str] | msgspec.Raw | None = None
    types: Sequence[str] | None = None
    relations: Sequence[Relation] | None = None
    proved: bool | None = None
    optimal: bool = True
    failed: str = ""

    @classmethod
    def of(cls, sentence: Sentence) -> Line:
        """Returns the line of a sentence with its own labels."""
        return cls(sentence.id, sentence.tokens, sentence.spans, sentence.pos, sentence.types, sentence.relations)


def to_json(sentence: Sentence) -> dict[str, Any]:
    """Returns a sentence as the object that stands for it in a file."""
    found: dict[str, Any] = msgspec.to_builtins(Line.of(sentence))
    return found


def write_jsonl(path: AnyPath, sentences: Iterable[Sentence]) -> int:
    """Writes what `read_jsonl` reads, and returns how many sentences it wrote.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    stream, count = map(Line.of, sentences), 0

    def blocks() -> Iterator[bytes]:
        nonlocal count
        while some := list(islice(stream, WRITTEN)):
            count += len(some)
            yield encode_lines(some)

    write_blocks(path, blocks())
    return count


def encode_lines(lines: Sequence[Line]) -> bytes:
    """Returns lines of JSON, to the byte as `json.dumps` writes them."""
    if not lines:
        return b""
    try:
        data = msgspec.json.format(msgspec.json.encode(lines), indent=0)
    except UnicodeEncodeError:  # half of a surrogate pair, which only Python's own JSON writes
        dumped = []
        for line in lines:
            spelled = {key: getattr(line, key) for key in ("tokens", "pos")}
            known = {key: json.loads(bytes(each)) for key, each in spelled.items() if isinstance(each, msgspec.Raw)}
            dumped.append(json.dumps(msgspec.to_builtins(msgspec.structs.replace(line, **known))) + "\n")
        return "".join(dumped).encode()
    # A quote within a string has a backslash before it, so this stands between two lines and nowhere else.
    data = data[1:-1].replace(b'}, {"id": ', b'}\n{"id": ') + b"\n"
    if data.isascii() and b"\x7f" not in data:
        return data
    return data.decode().replace("\x7f", "\\u007f").encode("ascii", "hasten.json")


def _escape(error: UnicodeError) -> tuple[str, int]:
    """Writes letters beyond ASCII as JSON does."""
    assert isinstance(error, UnicodeEncodeError)
    return encode_basestring_ascii(error.object[error.start : error.end])[1:-1], error.end


codecs.register_error("hasten.json", _escape)
