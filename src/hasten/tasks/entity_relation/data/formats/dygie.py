"""Documents as DyGIE++ and SciERC have them, and sentences as CrossRE has them.

A document is an object with `sentences`, lists of tokens; `ner` has for each sentence `[first, last, type]`, and
`relations` `[first, last, first, last, name]`, in tokens of the whole document, the last one included. CrossRE has one
`sentence` in place of several, and everything for that one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order
from hasten.tasks.entity_relation.data.formats.objects import Object, read_objects
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults
from hasten.tasks.text.objects import short


def read_dygie(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads documents, sentence by sentence; ids are the document's key and the number of the sentence, from 0."""
    for lines, number, each in read_objects(path, max_line, faults):
        with lines.entry():
            document = each if "sentences" in each else in_one(each)
            sentences = document["sentences"]
            if not _is_text(sentences):
                raise CorpusError("'sentences' should be a list of lists of tokens.")
            key = str(each.get("doc_key", number))
            start = 0
            for n, tokens in enumerate(sentences):
                with lines.entry():
                    yield build(key if "sentence" in each else f"{key}-{n}", document, n, start)
                start += len(tokens)


def in_one(each: Object) -> Object:
    """Returns one sentence as a document."""
    fields: Object = {key: [each[key]] for key in ("ner", "predicted_ner", "relations") if key in each}
    if "sentence" not in each:
        raise CorpusError("There are no 'sentences', lists of tokens, and no 'sentence' either. Give them.")
    return {"sentences": [each["sentence"]], **fields}


def build(id: str, document: Object, n: int, start: int) -> Sentence:
    """Returns a sentence of a document, whose tokens begin at `start`."""
    tokens = document["sentences"][n]
    entities = field(document, "ner", n, 3)
    guessed = field(document, "predicted_ner", n, 3) if entities is None else None
    joined = field(document, "relations", n, 5)
    given = entities if entities is not None else guessed or []
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


def field(document: Object, key: str, n: int, length: int) -> list[Sequence[Any]] | None:
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


def _is_text(sentences: Any) -> bool:
    return isinstance(sentences, list) and all(
        isinstance(tokens, list) and all(isinstance(token, str) for token in tokens) for tokens in sentences
    )
