"""Sentences with entity candidates, and the files they come in (paper, section 5).

The spans of the entities are given; the task is to label each span with a type and each ordered pair of spans
with a relation. A sentence without types or relations is unlabelled: the speedup learns from such text.

Every reader is a generator and holds one sentence at a time. Files may be plain, gzipped, or a zip archive
with one file in it; which of them is seen from their first bytes, not from their name.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import random
import re
import secrets
import sys
import zipfile
import zlib
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

from hasten.errors import CorpusError

AnyPath = str | os.PathLike[str]

CONLL04_TYPES = {"Peop": "person", "Loc": "location", "Org": "organization", "Other": "none"}
CONLL04_RELATIONS = {
    "Kill": "Kill",
    "Live_In": "LiveIn",
    "Work_For": "WorkFor",
    "Located_In": "LocatedAt",
    "OrgBased_In": "OrgBasedIn",
}
GMB_HEADER = ["Sentence #", "Word", "POS", "Tag"]
GMB_ENTITIES = frozenset({"per", "org", "geo", "gpe"})
SPREADSHEET_ROWS = 1_048_576  # the published GMB file was saved by a program that cuts a table here
ESCAPES = {
    "COMMA": ",",
    "-LRB-": "(",
    "-RRB-": ")",
    "-LCB-": "{",
    "-RCB-": "}",
    "-LSB-": "[",
    "-RSB-": "]",
}


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence and its entity candidates, with their labels where these are known."""

    id: str
    tokens: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]  # half-open token ranges, in text order
    pos: tuple[str, ...] | None = None  # one per token
    types: tuple[str, ...] | None = None  # one per span; None where unlabelled
    relations: tuple[tuple[int, int, str], ...] | None = None  # source span, target span, name; likewise

    def __post_init__(self) -> None:
        if fault := self._fault():
            raise CorpusError(f"Sentence {self.id!r}: {fault}")

    def unlabelled(self) -> Sentence:
        """Returns the sentence without its types and relations."""
        return replace(self, types=None, relations=None)

    def _fault(self) -> str | None:
        n_tokens, n_spans = len(self.tokens), len(self.spans)
        if "" in self.tokens:
            return f"Token {self.tokens.index('')} is empty. Leave it out."
        if self.pos is not None and len(self.pos) != n_tokens:
            return f"Got {len(self.pos)} POS tags for {n_tokens} tokens. Give one each, or none at all."
        if self.types is not None and len(self.types) != n_spans:
            return f"Got {len(self.types)} types for {n_spans} spans. Give one each, or none at all."
        for start, end in self.spans:
            if not 0 <= start < end <= n_tokens:
                return f"Span [{start}, {end}) does not fit {n_tokens} tokens. Give first and last plus one."
        for (start, end), (later, _) in pairwise(self.spans):
            if end > later:
                return f"Span [{start}, {end}) overlaps the next, at {later}. Give disjoint spans in order."
        pairs = set()
        for source, target, name in self.relations or ():
            if source == target or not (0 <= source < n_spans and 0 <= target < n_spans):
                return f"{name} joins spans {source} and {target}. Name two different ones of {n_spans}, from 0."
            if (source, target) in pairs:
                return f"Two relations go from span {source} to span {target}. Keep one of them."
            pairs.add((source, target))
        return None


def read_conll04(path: AnyPath) -> Iterator[Sentence]:
    """Reads `conll04.corp` (Roth & Yih 2004), with the paper's names for types and relations.

    The ids are the file's own sentence numbers. A sentence without relations gets `()`, not None, for it
    was annotated.
    """
    with _open(path) as lines:
        sentence = _Conll04Sentence()
        for line in lines:
            columns = line.rstrip("\r\n").split("\t")
            if columns == [""]:
                sentence.ended = bool(sentence.tokens)
            elif len(columns) == 3:
                sentence.add_relation(*columns)
            elif len(columns) == 9:
                if sentence.ended:
                    yield sentence.build()
                    sentence = _Conll04Sentence()
                number, entity, row, _, tags, words = columns[:6]
                sentence.add_row(number, entity, row, tags, words)
            else:
                raise CorpusError(
                    f"Expected 9 columns (a token), 3 (a relation) or a blank line, not {len(columns)}. "
                    "Separate columns by tabs."
                )
        if sentence.tokens:
            yield sentence.build()


def read_gmb(path: AnyPath) -> Iterator[Sentence]:
    """Reads the Groningen Meaning Bank's `ner_dataset.csv` as unlabelled text.

    Spans are the persons, organisations, places and nations (per, org, geo, gpe); their types are left out.
    The published file was cut by a spreadsheet at 1,048,576 rows, in the middle of a sentence: in a file of
    that length the last sentence is left out too.
    """
    with _open(path, encoding="cp1252") as lines:  # a superset of latin-1's letters; the file has its quotes
        rows = csv.reader(lines)
        if (header := next(rows, None)) != GMB_HEADER:
            raise CorpusError(f"Expected the header {','.join(GMB_HEADER)!r}, not {header}. Is this the file?")
        number, tokens, pos, tags = "", list[str](), list[str](), list[str]()
        n_rows = 1
        for n_rows, row in enumerate(rows, start=2):  # noqa: B007
            if len(row) != len(GMB_HEADER):
                raise CorpusError(f"Expected {len(GMB_HEADER)} columns, not {len(row)}. Quote words with commas.")
            if row[0]:
                if tokens:
                    yield _unlabelled(number, tokens, pos, tags, GMB_ENTITIES)
                number, tokens, pos, tags = row[0].removeprefix("Sentence: "), [], [], []
            tokens.append(row[1])
            pos.append(row[2])
            tags.append(row[3])
        if tokens and n_rows != SPREADSHEET_ROWS:
            yield _unlabelled(number, tokens, pos, tags, GMB_ENTITIES)


def read_conll2003(path: AnyPath) -> Iterator[Sentence]:
    """Reads the four columns of CoNLL-2003 (word, POS, chunk, IOB entity) as unlabelled text.

    The spans of all entities are kept, their types are not. Lines that mark a new document are passed over.
    Ids count the sentences from 1.
    """
    with _open(path) as lines:
        number, rows = 1, list[list[str]]()
        for line in lines:
            columns = line.split()
            if columns and columns[0] == "-DOCSTART-":
                continue
            if columns and len(columns) != 4:
                raise CorpusError(f"Expected word, POS, chunk and entity, not {len(columns)} columns. Add a blank?")
            if columns:
                rows.append(columns)
            elif rows:
                yield _unlabelled(str(number), *_columns(rows))
                number, rows = number + 1, []
        if rows:
            yield _unlabelled(str(number), *_columns(rows))


def read_jsonl(path: AnyPath) -> Iterator[Sentence]:
    """Reads one JSON object a line; the path `"-"` is standard input. `docs/corpora.md` describes the format.

    Keys that it does not know are passed over, so that a file may carry more than hasten needs. A sentence
    without an id gets the number of its line.
    """
    with _open(path) as lines:
        for line in lines:
            if not line.isspace():
                yield _from_json(line, str(lines.number))


def write_jsonl(path: AnyPath, sentences: Iterable[Sentence]) -> int:
    """Writes what `read_jsonl` reads, and returns how many sentences that were.

    The file appears whole or not at all. A name that ends in `.gz` is compressed; `"-"` is standard output.
    """
    if path == "-":
        return _write(sys.stdout, sentences)
    path = Path(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
    try:
        with ExitStack() as stack:
            raw: Any = stack.enter_context(open(part, "xb"))
            if path.suffix == ".gz":  # the same sentences give the same bytes
                raw = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0))
            count = _write(stack.enter_context(io.TextIOWrapper(raw, encoding="utf-8", newline="\n")), sentences)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
    return count


FORMATS: dict[str, Callable[[AnyPath], Iterator[Sentence]]] = {
    "jsonl": read_jsonl,
    "conll04": read_conll04,
    "conll2003": read_conll2003,
    "gmb": read_gmb,
}


def read_corpus(path: AnyPath, format: str = "auto") -> Iterator[Sentence]:
    """Reads a corpus in any of `FORMATS`; `"auto"` tells which from the name, or else from the first line."""
    if format == "auto":
        format = _recognise(path)
    if format not in FORMATS:
        raise CorpusError(f"There is no corpus format {format!r}. Choose one of {', '.join(FORMATS)}, or auto.")
    return FORMATS[format](path)


def induce_arguments(sentences: Iterable[Sentence]) -> dict[str, set[tuple[str, str]]]:
    """Returns which (source type, target type) each relation joins in the labelled sentences."""
    arguments: dict[str, set[tuple[str, str]]] = {}
    for sentence in sentences:
        if sentence.types is not None:
            for source, target, name in sentence.relations or ():
                arguments.setdefault(name, set()).add((sentence.types[source], sentence.types[target]))
    return arguments


def split(sentences: Iterable[Sentence], fraction: float, seed: int = 0) -> tuple[list[Sentence], list[Sentence]]:
    """Shuffles, and returns the first `fraction` and the rest; the same seed gives the same split."""
    if not 0 <= fraction <= 1:
        raise CorpusError(f"Cannot split off a fraction of {fraction}. Give a number from 0 to 1.")
    shuffled = list(sentences)
    random.Random(seed).shuffle(shuffled)
    cut = round(fraction * len(shuffled))
    return shuffled[:cut], shuffled[cut:]


class _Lines:
    """The lines of a file, counted, so that an error can say where it is."""

    def __init__(self, stream: Iterable[str] = ()) -> None:
        self.number = 0
        self._stream = iter(stream)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._stream)
        self.number += 1
        return line


@contextmanager
def _open(path: AnyPath, encoding: str = "utf-8-sig") -> Iterator[_Lines]:
    """Opens a file for its lines; whatever goes wrong while they are read is raised with its place."""
    lines = _Lines()
    with ExitStack() as stack:
        try:
            raw: Any = sys.stdin.buffer if path == "-" else stack.enter_context(open(path, "rb"))
            text = io.TextIOWrapper(_unpack(raw, stack), encoding=encoding)
            stack.callback(text.detach)  # what we did not open we do not close
            lines = _Lines(text)
            yield lines
        except (CorpusError, *_DAMAGE, OSError) as error:
            name = "standard input" if path == "-" else os.fspath(path)
            place = f"{name}, line {lines.number}" if lines.number else name
            raise CorpusError(f"{place}: {_explain(error, encoding)}") from error


_DAMAGE = (EOFError, zlib.error, zipfile.BadZipFile, gzip.BadGzipFile, csv.Error, UnicodeDecodeError)


def _explain(error: Exception, encoding: str) -> str:
    if isinstance(error, CorpusError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return f"After this line come bytes that are not {encoding} text. Convert the file."
    if isinstance(error, _DAMAGE):
        return f"The file is damaged ({error}). Fetch it again, or pack it again."
    return f"Cannot be read ({error}). Check the path."


def _unpack(raw: Any, stack: ExitStack) -> Any:
    first = raw.peek(4) if hasattr(raw, "peek") else b""
    if first.startswith(b"\x1f\x8b"):
        return stack.enter_context(gzip.GzipFile(fileobj=raw))
    if first.startswith(b"PK\x03\x04"):
        archive = stack.enter_context(zipfile.ZipFile(raw))
        names = [name for name in archive.namelist() if not name.startswith("__MACOSX/") and name[-1] != "/"]
        if len(names) != 1:
            raise CorpusError(f"The archive holds {len(names)} files. Pack one, or unpack it.")
        return stack.enter_context(archive.open(names[0]))
    return raw


class _Conll04Sentence:
    """The rows of one sentence as they come in."""

    def __init__(self) -> None:
        self.id = ""
        self.tokens: list[str] = []
        self.pos: list[str] = []
        self.spans: dict[str, tuple[int, int]] = {}  # by the row number that relations refer to
        self.types: list[str] = []
        self.relations: list[tuple[int, int, str]] = []
        self.ended = False  # a blank line came after the tokens

    def add_row(self, number: str, entity: str, row: str, tags: str, words: str) -> None:
        if self.tokens and number != self.id:
            raise CorpusError(f"Sentence {number} begins inside sentence {self.id}. Put a blank line between.")
        self.id = number
        start = len(self.tokens)
        for word, tag in _expand(words, tags):
            self.tokens.append(word)
            self.pos.append(tag)
        if entity != "O":
            self.spans[row] = (start, len(self.tokens))
            self.types.append(_translate(entity, CONLL04_TYPES, "entity type"))

    def add_relation(self, source: str, target: str, name: str) -> None:
        if not self.ended:
            raise CorpusError("A relation comes before its sentence has ended. Put a blank line between.")
        rows = list(self.spans)
        for row in (source, target):
            if row not in self.spans:
                raise CorpusError(f"Row {row} of sentence {self.id} is not an entity. Rows {rows} are.")
        name = _translate(name, CONLL04_RELATIONS, "relation")
        self.relations.append((rows.index(source), rows.index(target), name))

    def build(self) -> Sentence:
        return Sentence(
            id=self.id,
            tokens=tuple(self.tokens),
            spans=tuple(self.spans.values()),
            pos=tuple(self.pos),
            types=tuple(self.types),
            relations=tuple(self.relations),
        )


def _expand(words: str, tags: str) -> list[tuple[str, str]]:
    """Splits the words and tags of one row, both joined by `/`.

    Where their numbers differ, a single tag means a word with a slash in it ("and/or"), unless there is a
    comma. Otherwise the words count: commas, even glued ones (",Ohio"), are words tagged as such, the other
    words take the other tags in turn, and the last tag serves as often as needed.
    """
    word_parts = [ESCAPES.get(word, word) for word in words.split("/")]
    tag_parts = tags.split("/")
    if len(word_parts) == len(tag_parts):
        return list(zip(word_parts, tag_parts, strict=True))
    if len(tag_parts) == 1 and "," not in word_parts:
        return [(words, tags)]
    word_parts = re.findall(r",|[^,/]+", "/".join(word_parts))
    spare = [tag for tag in re.split("[,/]+", tags) if tag] or [tags]
    pairs = []
    for word in word_parts:
        if word == ",":
            pairs.append((word, ","))
        else:
            pairs.append((word, spare[0]))
            spare = spare[1:] or spare
    return pairs


def _translate(name: str, names: dict[str, str], kind: str) -> str:
    if name not in names:
        raise CorpusError(f"There is no {kind} {name!r}. Known are {', '.join(names)}.")
    return names[name]


def _unlabelled(
    id: str,
    tokens: Sequence[str],
    pos: Sequence[str],
    tags: Sequence[str],
    keep: Container[str] | None = None,
) -> Sentence:
    """Builds a sentence from its entity tags, in IOB1 or IOB2, of which only the spans stay."""
    spans: list[tuple[int, int]] = []
    before = "O"
    for index, tag in enumerate(tags):
        prefix, _, entity = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I") or not entity):
            raise CorpusError(f"Expected an entity tag such as O, B-x or I-x, not {tag!r}.")
        if tag != "O" and (keep is None or entity in keep):
            if prefix == "I" and before == entity:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
        before = entity or "O"
    return Sentence(id, tuple(tokens), tuple(spans), pos=tuple(pos))


def _columns(rows: list[list[str]]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    words, pos, _, tags = zip(*rows, strict=True)
    return words, pos, tags


def _from_json(line: str, default_id: str) -> Sentence:
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise CorpusError(f"Not JSON ({error.msg} at column {error.colno}). Write one object a line.") from error
    if not isinstance(found, dict):
        raise CorpusError("Expected a JSON object with tokens and spans. Write one object a line.")
    for key, (form, fits) in _JSON_KEYS.items():
        if key in found and not (isinstance(found[key], list) and all(map(fits, found[key]))):
            raise CorpusError(f"{key!r} should be {form}, not {json.dumps(found[key])[:60]}.")
    for key in ("tokens", "spans"):
        if key not in found:
            raise CorpusError(f"{key!r} is missing. Give it, if need be as an empty list.")
    if not isinstance(found.get("id", ""), str):
        raise CorpusError(f"'id' should be a string, not {json.dumps(found['id'])[:60]}. Put it in quotes.")
    return Sentence(
        id=found.get("id", default_id),
        tokens=tuple(found["tokens"]),
        spans=tuple((start, end) for start, end in found["spans"]),
        pos=tuple(found["pos"]) if "pos" in found else None,
        types=tuple(found["types"]) if "types" in found else None,
        relations=tuple((s, t, name) for s, t, name in found["relations"]) if "relations" in found else None,
    )


def _is(*kinds: type) -> Callable[[object], bool]:
    """Returns a test for a list of exactly these types; exactly, because JSON's true is no number."""
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


def _write(stream: IO[str], sentences: Iterable[Sentence]) -> int:
    count = 0
    for count, sentence in enumerate(sentences, start=1):  # noqa: B007
        fields = {key: getattr(sentence, key) for key in ("id", *_JSON_KEYS)}
        stream.write(json.dumps({key: value for key, value in fields.items() if value is not None}) + "\n")
    return count


def _recognise(path: AnyPath) -> str:
    name = os.path.basename(os.fspath(path)).lower()
    if path == "-" or ".jsonl" in name:
        return "jsonl"
    if ".corp" in name:
        return "conll04"
    if os.path.isfile(path) or not os.path.exists(path):  # a pipe can be read only once; a missing file says so
        with _open(path, encoding="latin-1") as lines:
            first = next((line.rstrip("\r\n") for line in lines if not line.isspace()), "")
        if first.startswith("{"):
            return "jsonl"
        if first == ",".join(GMB_HEADER):
            return "gmb"
        if len(first.split("\t")) == 9:
            return "conll04"
        if len(first.split()) == 4:
            return "conll2003"
    raise CorpusError(f"Cannot tell the format of {path}. Name it: format= one of {', '.join(FORMATS)}.")
