"""Sentences and documents as objects: of JSON, in lines or in one document, of a Parquet table, of a spaCy `DocBin`.

*Records*: SpERT's JSON and its many cousins, Hugging Face `datasets` dumps. `tokens` (or `words`) are a list of
strings. Entities are `entities`, each with `start`, `end` (one past the last token) and `type` or `label`; or tags, in
`ner_tags`, `tags`, `ner` or `labels`, one a token. Relations are `relations`, each with `head`, `tail` (numbers of
entities, or entities themselves) and `type` or `label`. What a record does not have is unknown; one with entities and
no word of relations is labelled in its types alone.

*DyGIE++ and SciERC*: a document has `sentences`, lists of tokens; `ner` has for each sentence `[first, last, type]`,
and `relations` `[first, last, first, last, name]`, in tokens of the whole document, the last one included. CrossRE has
one `sentence` in place of several, and everything for that one.

*spaCy*: `Doc.to_json()`, Prodigy's JSON lines, and the bytes of a `DocBin`, which needs spaCy.
A document is cut at its sentences where it says where they are. Relations are those of Prodigy (`relations`, between
`head_span` and `child_span`), or in a `DocBin` those of the extension `rel` that spaCy's own tutorial defines; a
document without either is labelled in its types alone.

A JSON document may be a list of objects, an object that holds one list under `data`, or a single object. Parquet needs
pyarrow; the names of its numbered classes are taken from what Hugging Face `datasets` notes in such files.
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, cut, in_order
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.text.lines import AnyPath, Lines, fitted, load_json, short
from hasten.tasks.text.tables import spans_of

Object = dict[str, Any]
PARQUET, PACKED = b"PAR1", b"\x78\x9c"  # how a table begins, and a DocBin, which is compressed
ROWS = 1000  # of a table that are held at a time
TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels")
POS = ("pos", "pos_tags", "upos")
IDS = ("id", "orig_id", "doc_id", "sent_id", "guid")
LIKELY = 0.5  # what the score of a relation of a DocBin has to be


class Named(msgspec.Struct, kw_only=True):
    """What has a name, under `type` or `label`."""

    type: Any = None
    label: Any = None

    @property
    def name(self) -> str | None:
        """The name; None if there is none."""
        name = self.label if self.type is None else self.type
        return name if isinstance(name, str) and name else None

    @property
    def needed_name(self) -> str:
        """The name, which must be there."""
        if self.name is None:
            raise CorpusError(f"There is no label: {short(msgspec.to_builtins(self))}. Give it one.")
        return self.name


class Place(Named):
    """Where something begins, and one past its last token or character."""

    start: int
    end: int


class RecordRelation(Named):
    """A relation between entities, given by their numbers or as they are."""

    head: Any
    tail: Any


class SpanRelation(Named):
    """A relation of Prodigy."""

    head_span: Place
    child_span: Place


class Doc(msgspec.Struct):
    """A document as spaCy or Prodigy writes it."""

    text: str
    tokens: list[Place]


def record(each: Object, number: str, lines: Lines) -> Iterator[Sentence]:
    """Returns the sentence of a record."""
    if "spans" in each:
        yield from_object({key: value for key, value in each.items() if value is not None}, number)
        return
    tokens, pos = _texts(each, TOKENS), _first(each, POS)
    if tokens is None:
        raise CorpusError(f"There are no tokens: {' or '.join(TOKENS)} should be a list of strings.")
    spans, types = list[Span](), list[str | None]()
    if isinstance(each.get("entities"), list):
        for entity in each["entities"]:
            place = fitted(entity, Place, "An entity has a start, an end and a type")
            spans.append((place.start, place.end))
            types.append(place.name)
    else:
        tags = _texts(each, TAGS)
        if tags is None:
            raise CorpusError(f"There are no entities: give entities, or tags as {', '.join(TAGS)}.")
        if len(tags) != len(tokens):
            raise CorpusError(f"Got {len(tags)} tags for {len(tokens)} tokens. Give one each.")
        spans, types[:] = spans_of(tags)
    relations: list[Relation] | None = None
    if each.get("relations") is not None:
        relations = []
        for given in fitted(each["relations"], list[Any], "'relations' should be a list"):
            relation = fitted(given, RecordRelation, "A relation has a head, a tail and a type")
            ends = [_argument(end, spans) for end in (relation.head, relation.tail)]
            relations.append((ends[0], ends[1], relation.needed_name))
    yield in_order(
        next((str(each[key]) for key in IDS if isinstance(each.get(key), str | int)), number),
        tokens,
        spans,
        pos=pos if _are_texts(pos) and len(pos) == len(tokens) else None,
        types=None if None in types else [str(name) for name in types],
        relations=relations,
    )


def _first(each: Object, keys: Sequence[str]) -> Any:
    """Returns the first of these fields that is a list."""
    return next((each[key] for key in keys if isinstance(each.get(key), list)), None)


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _texts(each: Object, keys: Sequence[str]) -> list[str] | None:
    """Returns the first of these fields that is there, which should be a list of strings."""
    found: list[str] | None = _first(each, keys)
    if found is not None and not _are_texts(found):
        raise CorpusError(
            f"{next(key for key in keys if each.get(key) is found)!r} should be a list of strings, not {short(found)}. "
            "Numbered classes have names in the dataset's features: write these."
        )
    return found


def _argument(value: Any, spans: Sequence[Span]) -> int:
    """Returns the number of the entity that a relation joins: it is named by that, or by its own start and end."""
    if type(value) is int and 0 <= value < len(spans):
        return value
    place = (value.get("start"), value.get("end")) if isinstance(value, dict) else None
    if place not in spans:
        raise CorpusError(f"A relation joins {short(value)}, which is not one of {len(spans)} entities, from 0.")
    return spans.index(place)


def dygie(each: Object, number: str, lines: Lines) -> Iterator[Sentence]:
    """Yields the sentences of a document; ids are the document's key and the number of the sentence, from 0."""
    one = "sentences" not in each
    if one and "sentence" not in each:
        raise CorpusError("There are no 'sentences', lists of tokens, and no 'sentence' either. Give them.")
    document = {"sentences": [each["sentence"]]} if one else each
    if one:
        document |= {key: [each[key]] for key in ("ner", "predicted_ner", "relations") if key in each}
    sentences = fitted(document["sentences"], list[list[str]], "'sentences' should be a list of lists of tokens")
    key = str(each.get("doc_key", number))
    for n, (tokens, start) in enumerate(zip(sentences, accumulate(map(len, sentences), initial=0), strict=False)):
        with lines.entry():
            yield _dygie_sentence(key if one else f"{key}-{n}", tokens, document, n, start)


def _dygie_sentence(id: str, tokens: Sequence[str], document: Object, n: int, start: int) -> Sentence:
    """Returns a sentence of a document, whose tokens begin at `start`."""
    entities = _rows(document, "ner", n, tuple[int, int, Any])
    given = entities if entities is not None else _rows(document, "predicted_ner", n, tuple[int, int, Any]) or []
    spans = [(first - start, last - start + 1) for first, last, _ in given]
    joined, relations = _rows(document, "relations", n, tuple[int, int, int, int, Any]), list[Relation]()
    for *tokens_of, name in joined or ():
        ends = [(tokens_of[k] - start, tokens_of[k + 1] - start + 1) for k in (0, 2)]
        for first, last in ends:
            if (first, last) not in spans:
                raise CorpusError(
                    f"Sentence {id!r}: {name} joins tokens {first + start} to {last + start - 1}, which are not an "
                    "entity. List it in 'ner'."
                )
        relations.append((spans.index(ends[0]), spans.index(ends[1]), str(name)))
    types = None if entities is None else [str(name) for _, _, name in entities]
    return in_order(id, tokens, spans, types=types, relations=None if joined is None else relations)


def _rows(document: Object, key: str, n: int, kind: Any) -> list[Any] | None:
    """Returns a document's rows of token numbers and a name for its sentence `n`; None if it has none at all."""
    if key not in document:
        return None
    every, length = document[key], len(kind.__args__)
    if not isinstance(every, list) or len(every) != len(document["sentences"]) or not isinstance(every[n], list):
        raise CorpusError(f"{key!r} should have a list for each of {len(document['sentences'])} sentences.")
    rows = [row[:length] if isinstance(row, list) else row for row in every[n]]
    return [fitted(row, kind, f"{key!r} should hold rows of {length - 1} token numbers and a name") for row in rows]


def spacy(each: Object, number: str, lines: Lines) -> Iterator[Sentence]:
    """Yields the sentences of a document; ids are the number of the document, and of the sentence, from 0."""
    doc = fitted(each, Doc, "A document has a text, and tokens with their start and end in it (Doc.to_json())")
    starts = {token.start: n for n, token in reversed(list(enumerate(doc.tokens)))}
    ends = {token.end: n + 1 for n, token in reversed(list(enumerate(doc.tokens)))}

    def in_tokens(place: Place) -> Span:
        if place.start not in starts or place.end not in ends:
            said = short({"start": place.start, "end": place.end})
            raise CorpusError(f"The entity {said} begins or ends inside a token. Let it begin and end with one.")
        return starts[place.start], ends[place.end]

    said = "An entity has a start and an end in the text"
    entities = [fitted(entity, Place, said) for entity in each.get("ents", each.get("spans")) or ()]
    spans, relations = [in_tokens(entity) for entity in entities], list[Relation]()
    joined = each.get("relations") if isinstance(each.get("relations"), list) else None
    for given in joined or ():
        relation = fitted(given, SpanRelation, "A relation has a head_span and a child_span, with a start and an end")
        places = in_tokens(relation.head_span), in_tokens(relation.child_span)
        if not all(place in spans for place in places):
            raise CorpusError(f"The relation {relation.needed_name} joins spans that are not entities. List them.")
        relations.append((spans.index(places[0]), spans.index(places[1]), relation.needed_name))
    pos = [str(token["pos"]) for token in each["tokens"] if token.get("pos")]
    sents = [sent.get("start") for sent in each.get("sents") or () if isinstance(sent, dict)]
    document = in_order(
        number,
        [doc.text[token.start : token.end] for token in doc.tokens],
        spans,
        pos=pos if len(pos) == len(doc.tokens) else None,
        types=[entity.needed_name for entity in entities] if "ents" in each or "spans" in each else None,
        relations=None if joined is None else relations,
    )
    begins = [token.start for token in doc.tokens]
    yield from cut(document, sorted({bisect_right(begins, at) - 1 for at in sents if type(at) is int}))


def read_docbin(lines: Lines) -> Iterator[Sentence]:
    """Reads the documents of a `DocBin`, sentence by sentence."""
    try:
        import spacy
        from spacy.tokens import DocBin
    except ImportError:
        raise CorpusError(
            "A spaCy DocBin needs spaCy: pip install hasten[spacy]. Or write Doc.to_json() lines."
        ) from None
    try:
        with open(lines.path, "rb") as file:
            docs = DocBin().from_bytes(file.read()).get_docs(spacy.blank("xx").vocab)
        for lines.entry_number, doc in enumerate(docs, start=1):
            with lines.entry():
                yield from _of_doc(doc, str(lines.entry_number))
    except CorpusError:
        raise
    except Exception as error:  # whatever spaCy finds wrong with its own bytes
        raise CorpusError(f"spaCy cannot read it ({error}). Is this a DocBin? Write it again.") from error


def _of_doc(doc: Any, number: str) -> Iterator[Sentence]:
    rel = next((value for key, value in doc.user_data.items() if key[:2] == ("._.", "rel")), None)
    relations: list[Relation] | None = None
    if isinstance(rel, dict):
        starts = {entity.start: n for n, entity in enumerate(doc.ents)}
        relations = [
            (starts[one], starts[other], str(name))
            for (one, other), names in rel.items()
            for name, score in names.items()
            if score >= LIKELY and one in starts and other in starts and one != other
        ]
    kept = [token for token in doc if not token.is_space]
    place = {token.i: n for n, token in enumerate(kept)}
    if any(entity.start not in place or entity.end - 1 not in place for entity in doc.ents):
        raise CorpusError("An entity begins or ends with blanks. Leave them out of it.")
    spans = [(place[entity.start], place[entity.end - 1] + 1) for entity in doc.ents]
    pos = [token.pos_ or token.tag_ for token in kept]
    types = [entity.label_ for entity in doc.ents] if doc.has_annotation("ENT_IOB") else None
    tokens = [token.text for token in kept]
    document = in_order(number, tokens, spans, pos=pos if all(pos) else None, types=types, relations=relations)
    known = doc.has_annotation("SENT_START")
    yield from cut(document, [place[token.i] for token in kept if known and token.is_sent_start])


def objects(make: Callable[[Object, str, Lines], Iterator[Sentence]]) -> Callable[[Lines], Iterator[Sentence]]:
    """Returns a reader of the objects of a file, of which each makes sentences, given its number and its lines."""

    def read(lines: Lines) -> Iterator[Sentence]:
        for number, entry in _rows_of_table(lines) if begins(lines.path, PARQUET) else _entries(lines):
            with lines.entry():
                found = load_json(entry) if isinstance(entry, str) else entry
                if not isinstance(found, dict):
                    raise CorpusError("Expected a JSON object. Write a list of objects, or one object a line.")
                yield from make(found, str(number), lines)

    return read


def _entries(lines: Lines) -> Iterator[tuple[int, Any]]:
    """Yields the entries of JSON lines, or of a JSON document."""
    first = next((line for line in lines if not line.isspace()), "")
    try:
        by_lines = isinstance(json.loads(first), dict)
    except (ValueError, RecursionError):
        by_lines = False
    if by_lines:
        yield lines.number, first
        yield from ((lines.number, line) for line in lines if not line.isspace())
    else:
        document = load_json(first + "".join(lines))
        found = document.get("data", document) if isinstance(document, dict) else document
        for lines.entry_number, each in enumerate(found if isinstance(found, list) else [found], start=1):
            yield lines.entry_number, each


def begins(path: AnyPath, mark: bytes) -> bool:
    """Whether a file begins with a mark; false for one that cannot be looked at twice."""
    if path == "-" or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(mark)) == mark


def _rows_of_table(lines: Lines) -> Iterator[tuple[int, Object]]:
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise CorpusError("A Parquet file needs pyarrow: pip install hasten[parquet]. Or write JSON lines.") from None
    try:
        with parquet.ParquetFile(lines.path) as table:
            names = _class_names(table.schema_arrow.metadata or {})
            rows = (row for batch in table.iter_batches(ROWS) for row in batch.to_pylist())
            for lines.entry_number, row in enumerate(rows, start=1):
                for column, known in names.items():
                    values = row.get(column)
                    if isinstance(values, list) and all(
                        type(each) is int and 0 <= each < len(known) for each in values
                    ):
                        row[column] = [known[each] for each in values]
                yield lines.entry_number, row
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise CorpusError(f"The table cannot be read ({error}). Write it again.") from error


def _class_names(metadata: Mapping[bytes, bytes]) -> dict[str, list[str]]:
    """Returns the names of the classes of each column that Hugging Face `datasets` stores as numbers."""
    try:
        features = json.loads(metadata.get(b"huggingface", b"{}"))["info"]["features"]
        columns = {name: feature.get("feature", feature) for name, feature in features.items()}
        return {name: inner["names"] for name, inner in columns.items() if isinstance(inner.get("names"), list)}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
