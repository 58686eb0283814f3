"""hasten's own format, read and written: one JSON object a line (`docs/corpora.md`)."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

from hasten.errors import CorpusError
from hasten.support.files import whole
from hasten.support.terminal import standard_output
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order
from hasten.tasks.entity_relation.data.formats.lines import MAX_LINE, AnyPath, Faults, open_lines


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
    """Writes what `read_jsonl` reads, and returns how many sentences that were.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    return write_objects(path, map(to_json, sentences))


def write_objects(path: AnyPath, objects: Iterable[Mapping[str, object]]) -> int:
    """Writes one JSON object a line, in the same way, and returns how many."""
    return write_lines(path, (json.dumps(each) + "\n" for each in objects))


def write_lines(path: AnyPath, lines: Iterable[str]) -> int:
    """Writes strings of whole lines, in the same way, and returns how many strings."""
    if path == "-":
        with standard_output() as stream:
            return _write(stream, lines)
    path = Path(path)
    with whole(path) as part, ExitStack() as stack:
        raw: Any = stack.enter_context(open(part, "wb"))
        if path.suffix == ".gz":  # the same sentences give the same bytes
            raw = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
        return _write(stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n")), lines)


def to_json(sentence: Sentence) -> dict[str, object]:
    """Returns a sentence as the object that stands for it in a file."""
    fields = {key: getattr(sentence, key) for key in ("id", *_JSON_KEYS)}
    return {key: value for key, value in fields.items() if value is not None}


def load_json(line: str) -> Any:
    """Returns what a line of JSON stands for."""
    try:
        return json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(f"Not JSON ({error.msg} at column {error.colno}). Write one object a line.") from error
    except ValueError:
        raise CorpusError("A number has thousands of digits. Write smaller ones.") from None
    except RecursionError:
        raise CorpusError("The object is nested too deep. Write lists of strings and numbers.") from None


def from_json(line: str, default_id: str) -> Sentence:
    """Returns the sentence that a line stands for; one without an id gets another."""
    return from_object(parse_object(line), default_id)


def parse_object(line: str) -> dict[str, Any]:
    """Returns the object that a line of JSON is."""
    found = load_json(line)
    if not isinstance(found, dict):
        raise CorpusError("Expected a JSON object with tokens and spans. Write one object a line.")
    return found


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


def short(value: object) -> str:
    """Returns a value in few words, for an error."""
    try:
        return json.dumps(value)[:60]
    except RecursionError:
        return "something nested deep"


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


def _write(stream: IO[str], lines: Iterable[str]) -> int:
    count = 0
    for count, each in enumerate(lines, start=1):  # noqa: B007
        stream.write(each)
    return count
