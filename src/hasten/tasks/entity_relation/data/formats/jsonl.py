"""hasten's own format, read and written: one JSON object a line (`docs/corpora.md`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, open_lines
from hasten.tasks.text.objects import parse_object, short, write_objects


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
    return write_objects(path, map(to_json, sentences))


def to_json(sentence: Sentence) -> dict[str, object]:
    """Returns a sentence as the object that stands for it in a file."""
    fields = {key: getattr(sentence, key) for key in ("id", *_JSON_KEYS)}
    return {key: value for key, value in fields.items() if value is not None}


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
