"""Sentences as records: SpERT's JSON and its many cousins, Hugging Face `datasets` dumps, CrossRE.

`tokens` (or `words`) are a list of strings. Entities are `entities`, each with `start`, `end` (one past the last token)
and `type` or `label`; or tags, in `ner_tags`, `tags`, `ner` or `labels`, one a token. Relations are `relations`, each
with `head`, `tail` (numbers of entities, or entities themselves) and `type` or `label`. What a record does not have is
unknown; one with entities and no word of relations is labelled in its types alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, in_order
from hasten.tasks.entity_relation.data.formats.jsonl import from_object
from hasten.tasks.entity_relation.data.formats.objects import Object, read_objects
from hasten.tasks.text.iob import spans_of
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults
from hasten.tasks.text.objects import short

TOKENS = ("tokens", "words")
TAGS = ("ner_tags", "tags", "ner", "labels")
POS = ("pos", "pos_tags", "upos")
IDS = ("id", "orig_id", "doc_id", "sent_id", "guid")


def read_records(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads records from JSON lines, a JSON document, or a Parquet table."""
    for lines, number, each in read_objects(path, max_line, faults):
        with lines.entry():
            yield from_record(each, number)


def from_record(each: Object, number: str) -> Sentence:
    """Returns the sentence that a record stands for."""
    if "spans" in each:
        return from_object({key: value for key, value in each.items() if value is not None}, number)
    id = next((str(each[key]) for key in IDS if isinstance(each.get(key), str | int)), number)
    tokens = strings(each, TOKENS)
    if tokens is None:
        raise CorpusError(f"There are no tokens: {' or '.join(TOKENS)} should be a list of strings.")
    pos = strings(each, POS, required=False)
    pos = pos if pos is not None and len(pos) == len(tokens) else None
    if isinstance(each.get("entities"), list):
        spans, types = entities_of(each["entities"])
    else:
        tags = strings(each, TAGS)
        if tags is None:
            raise CorpusError(f"There are no entities: give entities, or tags as {', '.join(TAGS)}.")
        if len(tags) != len(tokens):
            raise CorpusError(f"Got {len(tags)} tags for {len(tokens)} tokens. Give one each.")
        spans, types = spans_of(tags)
    relations = relations_of(each["relations"], spans) if each.get("relations") is not None else None
    known = None if any(name is None for name in types) else [str(name) for name in types]
    return in_order(id, tokens, spans, pos=pos, types=known, relations=relations)


def strings(each: Object, keys: Sequence[str], *, required: bool = True) -> list[str] | None:
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


def entities_of(entities: Sequence[Any]) -> tuple[list[Span], list[Any]]:
    """Returns the spans of entities, and their types, None where one has none."""
    spans, types = list[Span](), list[Any]()
    for each in entities:
        if not isinstance(each, dict) or type(each.get("start")) is not int or type(each.get("end")) is not int:
            raise CorpusError(f"An entity has a start, an end and a type, not {short(each)}.")
        spans.append((each["start"], each["end"]))
        types.append(name_of(each))
    return spans, types


def relations_of(relations: Any, spans: Sequence[Span]) -> list[Relation]:
    """Returns relations between entities that are named by number, or by their own start and end."""
    found = []
    if not isinstance(relations, list):
        raise CorpusError(f"'relations' should be a list, not {short(relations)}.")
    for each in relations:
        name = name_of(each) if isinstance(each, dict) else None
        if name is None:
            raise CorpusError(f"A relation has a head, a tail and a type, not {short(each)}.")
        found.append((argument(each.get("head"), spans), argument(each.get("tail"), spans), name))
    return found


def argument(value: Any, spans: Sequence[Span]) -> int:
    """Returns the number of the entity that a relation joins."""
    if type(value) is int and 0 <= value < len(spans):
        return value
    place = (value.get("start"), value.get("end")) if isinstance(value, dict) else None
    for n, span in enumerate(spans):
        if span == place:
            return n
    raise CorpusError(f"A relation joins {short(value)}, which is not one of {len(spans)} entities, from 0.")


def name_of(each: Object) -> str | None:
    """Returns the type, or label, of an entity or a relation."""
    name = each.get("type", each.get("label"))
    return name if isinstance(name, str) and name else None
