"""Sentences and documents as objects of JSON, in lines, in one JSON document, or in a Parquet table.

*Records*: SpERT's JSON and its many cousins, Hugging Face `datasets` dumps. `tokens` (or `words`) are a list of
strings. Entities are `entities`, each with `start`, `end` (one past the last token) and `type` or `label`; or tags, in
`ner_tags`, `tags`, `ner` or `labels`, one a token. Relations are `relations`, each with `head`, `tail` (numbers of
entities, or entities themselves) and `type` or `label`. What a record does not have is unknown; one with entities and
no word of relations is labelled in its types alone.

*DyGIE++ and SciERC*: a document has `sentences`, lists of tokens; `ner` has for each sentence `[first, last, type]`,
and `relations` `[first, last, first, last, name]`, in tokens of the whole document, the last one included. CrossRE has
one `sentence` in place of several, and everything for that one.

A JSON document may be a list of objects, an object that holds one list under `data`, or a single object. Parquet needs
pyarrow; the names of its numbered classes are taken from what Hugging Face `datasets` notes in such files.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, in_order
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, Lines, called, load_json, open_lines, short
from hasten.tasks.text.tables import spans_of

Object = dict[str, Any]
PARQUET = b"PAR1"  # how such a file begins
ROWS = 1000  # of a table that are held at a time
TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels")
POS = ("pos", "pos_tags", "upos")
IDS = ("id", "orig_id", "doc_id", "sent_id", "guid")


def read_records(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads records from JSON lines, a JSON document, or a Parquet table."""
    for lines, number, each in read_objects(path, max_line, faults):
        with lines.entry():
            yield _sentence(each, number)


def _sentence(each: Object, number: str) -> Sentence:
    if "spans" in each:
        return from_object({key: value for key, value in each.items() if value is not None}, number)
    id = next((str(each[key]) for key in IDS if isinstance(each.get(key), str | int)), number)
    tokens = _strings(each, TOKENS)
    if tokens is None:
        raise CorpusError(f"There are no tokens: {' or '.join(TOKENS)} should be a list of strings.")
    pos = _strings(each, POS, required=False)
    spans, types = list[Span](), list[str | None]()
    if isinstance(each.get("entities"), list):
        for entity in each["entities"]:
            if not is_place(entity):
                raise CorpusError(f"An entity has a start, an end and a type, not {short(entity)}.")
            spans.append((entity["start"], entity["end"]))
            types.append(_name(entity))
    else:
        tags = _strings(each, TAGS)
        if tags is None:
            raise CorpusError(f"There are no entities: give entities, or tags as {', '.join(TAGS)}.")
        if len(tags) != len(tokens):
            raise CorpusError(f"Got {len(tags)} tags for {len(tokens)} tokens. Give one each.")
        spans, types[:] = spans_of(tags)
    relations = None
    if each.get("relations") is not None:
        relations = list[Relation]()
        if not isinstance(each["relations"], list):
            raise CorpusError(f"'relations' should be a list, not {short(each['relations'])}.")
        for relation in each["relations"]:
            name = _name(relation) if isinstance(relation, dict) else None
            if name is None:
                raise CorpusError(f"A relation has a head, a tail and a type, not {short(relation)}.")
            head, tail = (_argument(relation.get(end), spans) for end in ("head", "tail"))
            relations.append((head, tail, name))
    known = [name for name in types if name is not None]
    return in_order(
        id,
        tokens,
        spans,
        pos=pos if pos is not None and len(pos) == len(tokens) else None,
        types=known if len(known) == len(types) else None,
        relations=relations,
    )


def _strings(each: Object, keys: Sequence[str], *, required: bool = True) -> list[str] | None:
    """Returns the first of these fields that is there, which should be a list of strings."""
    for key in keys:
        if isinstance(each.get(key), list):
            if all(isinstance(item, str) for item in each[key]):
                return list(each[key])
            if required:
                raise CorpusError(
                    f"{key!r} should be a list of strings, not {short(each[key])}. Numbered classes have names in "
                    "the dataset's features: write these."
                )
    return None


def is_place(value: Any) -> bool:
    """Whether a value has a start and an end."""
    return isinstance(value, dict) and type(value.get("start")) is int and type(value.get("end")) is int


def _name(each: Object) -> str | None:
    name = each.get("type", each.get("label"))
    return name if isinstance(name, str) and name else None


def _argument(value: Any, spans: Sequence[Span]) -> int:
    """Returns the number of the entity that a relation joins: it is named by that, or by its own start and end."""
    if type(value) is int and 0 <= value < len(spans):
        return value
    place = (value.get("start"), value.get("end")) if isinstance(value, dict) else None
    if place not in spans:
        raise CorpusError(f"A relation joins {short(value)}, which is not one of {len(spans)} entities, from 0.")
    return spans.index(place)


def read_dygie(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads documents, sentence by sentence; ids are the document's key and the number of the sentence, from 0."""
    for lines, number, each in read_objects(path, max_line, faults):
        with lines.entry():
            document = each
            if "sentences" not in each:
                if "sentence" not in each:
                    raise CorpusError("There are no 'sentences', lists of tokens, and no 'sentence' either. Give them.")
                document = {key: [each[key]] for key in ("ner", "predicted_ner", "relations") if key in each}
                document["sentences"] = [each["sentence"]]
            sentences = document["sentences"]
            if not isinstance(sentences, list) or not all(_is_text(tokens) for tokens in sentences):
                raise CorpusError("'sentences' should be a list of lists of tokens.")
            key = str(each.get("doc_key", number))
            start = 0
            for n, tokens in enumerate(sentences):
                with lines.entry():
                    yield _of_document(key if "sentence" in each else f"{key}-{n}", document, n, start)
                start += len(tokens)


def _of_document(id: str, document: Object, n: int, start: int) -> Sentence:
    """Returns a sentence of a document, whose tokens begin at `start`."""
    tokens = document["sentences"][n]
    entities, joined = _field(document, "ner", n, 3), _field(document, "relations", n, 5)
    given = entities if entities is not None else _field(document, "predicted_ner", n, 3) or []
    spans = [(first - start, last - start + 1) for first, last, *_ in given]
    relations = None
    if joined is not None:
        places = {span: number for number, span in enumerate(spans)}
        relations = []
        for one, one_last, other, other_last, name, *_ in joined:
            ends = (one - start, one_last - start + 1), (other - start, other_last - start + 1)
            for first, last in ends:
                if (first, last) not in places:
                    raise CorpusError(
                        f"Sentence {id!r}: {name} joins tokens {first + start} to {last + start - 1}, which are not an "
                        "entity. List it in 'ner'."
                    )
            relations.append((places[ends[0]], places[ends[1]], str(name)))
    types = None if entities is None else [str(entity[2]) for entity in entities]
    return in_order(id, tokens, spans, types=types, relations=relations)


def _field(document: Object, key: str, n: int, length: int) -> list[Sequence[Any]] | None:
    """Returns a document's rows of token numbers and a name for its sentence `n`; None if it has none at all."""
    if key not in document:
        return None
    every = document[key]
    if not isinstance(every, list) or len(every) != len(document["sentences"]) or not isinstance(every[n], list):
        raise CorpusError(f"{key!r} should have a list for each of {len(document['sentences'])} sentences.")
    for row in every[n]:
        numbers = row[: length - 1] if isinstance(row, list) else []
        if len(numbers) != length - 1 or any(type(each) is not int for each in numbers) or len(row) < length:
            raise CorpusError(f"{key!r} should hold rows of {length - 1} token numbers and a name, not {short(row)}.")
    return list(every[n])


def _is_text(tokens: Any) -> bool:
    return isinstance(tokens, list) and all(isinstance(token, str) for token in tokens)


def read_objects(path: AnyPath, max_line: int, faults: Faults | None) -> Iterator[tuple[Lines, str, Object]]:
    """Yields the objects of a file, each with the lines that it is read from and the number of its line or entry."""
    if first_bytes(path).startswith(PARQUET):
        yield from _of_table(path, faults)
        return
    with open_lines(path, max_line, faults=faults) as lines:
        first = next((line for line in lines if not line.isspace()), "")
        try:
            by_lines = isinstance(json.loads(first), dict)
        except (ValueError, RecursionError):
            by_lines = False
        if by_lines:
            yield lines, str(lines.number), load_json(first)
            for line in lines:
                if not line.isspace():
                    with lines.entry():
                        each = load_json(line)
                        if not isinstance(each, dict):
                            raise CorpusError("Expected a JSON object. Write one object a line.")
                        yield lines, str(lines.number), each
            return
        document = load_json(first + "".join(lines))
        found = document.get("data", document) if isinstance(document, dict) else document
        for number, each in enumerate(found if isinstance(found, list) else [found], start=1):
            lines.entry_number = number
            with lines.entry():
                if not isinstance(each, dict):
                    raise CorpusError("Expected a JSON object. Write a list of objects, or one object a line.")
                yield lines, str(number), each


def first_bytes(path: AnyPath) -> bytes:
    """Returns how a file begins; nothing of what cannot be looked at twice."""
    if path == "-" or not os.path.isfile(path):
        return b""
    with open(path, "rb") as file:
        return file.read(8)


def _of_table(path: AnyPath, faults: Faults | None) -> Iterator[tuple[Lines, str, Object]]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise CorpusError(
            f"{called(path)} is a Parquet file, which needs pyarrow: pip install hasten[parquet]. "
            "Or write it as JSON lines."
        ) from None
    lines = Lines(io.StringIO(), 1, faults, called(path))
    try:
        with parquet.ParquetFile(os.fspath(path)) as table:
            names = _class_names(table.schema_arrow.metadata or {})
            rows = (row for batch in table.iter_batches(ROWS) for row in batch.to_pylist())
            for number, row in enumerate(rows, start=1):
                lines.entry_number = number
                for column, known in names.items():
                    values = row.get(column)
                    if isinstance(values, list) and all(
                        type(each) is int and 0 <= each < len(known) for each in values
                    ):
                        row[column] = [known[each] for each in values]
                with lines.entry():
                    yield lines, str(number), row
    except CorpusError:
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorpusError(f"{called(path)}: The table cannot be read ({error}). Write it again.") from error


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Returns the names of the classes of each column that Hugging Face `datasets` stores as numbers."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        columns = {name: feature.get("feature", feature) for name, feature in features.items()}
        return {name: inner["names"] for name, inner in columns.items() if isinstance(inner.get("names"), list)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
