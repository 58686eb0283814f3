"""Documents, which are cut into sentences: those of spaCy, and BRAT standoff.

spaCy's are `Doc.to_json()`, Prodigy's JSON lines, spaCy 2's training JSON, and the bytes of a `DocBin`, which needs
spaCy. A document is cut at its sentences where it says where they are. Relations are those of Prodigy (`relations`,
between `head_span` and `child_span`), or in a `DocBin` those of the extension `rel` that spaCy's own tutorial defines;
a document without either is labelled in its types alone.

BRAT is a text and, beside it, `.ann` lines that label pieces of it by their characters: a directory of such files, or
one `.ann` file. Text is cut into words and marks, at the edges of entities too, and into sentences at line ends and
full stops, but never within an entity or between two that are related. Entities (`T`) and binary relations (`R`) are
read; events, attributes and notes are passed over. An entity in several pieces is refused.
"""

from __future__ import annotations

import io
import os
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, in_order
from hasten.tasks.entity_relation.data.formats.records import Object, first_bytes, is_place, read_objects
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, Lines, called, open_lines, short
from hasten.tasks.text.tables import spans_of

PACKED = b"\x78"  # how a DocBin begins: it is compressed
LIKELY = 0.5  # what a relation's score has to be
WORDS = re.compile(r"\w+|[^\w\s]")
ENDS = re.compile(r"\n|[.!?][\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
ENTITY = re.compile(r"(\S+) ([0-9]{1,12}) ([0-9]{1,12})$")
RELATION = re.compile(r"(\S+) \w+:(\S+) \w+:(\S+)\s*$")
PASSED_OVER = "EAMN#*"


def read_spacy(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads documents, sentence by sentence; ids are the number of the document, and of the sentence, from 0."""
    if first_bytes(path).startswith(PACKED):
        yield from _of_docbin(path, faults)
        return
    for lines, number, each in read_objects(path, max_line, faults):
        with lines.entry():
            yield from (_of_training if "paragraphs" in each else _of_json)(each, number)


def _of_json(each: Object, number: str) -> Iterator[Sentence]:
    tokens = each.get("tokens")
    text = each.get("text")
    if not isinstance(text, str) or not isinstance(tokens, list) or not all(map(is_place, tokens)):
        raise CorpusError("A document has a text, and tokens with their start and end in it. Write Doc.to_json().")
    starts, ends = [token["start"] for token in tokens], [token["end"] for token in tokens]
    words = [text[start:end] for start, end in zip(starts, ends, strict=True)]
    pos = [str(token["pos"]) for token in tokens if token.get("pos")]
    entities = each.get("ents", each.get("spans")) or []
    spans, types = list[Span](), list[str]()
    for entity in entities:
        spans.append(_in_tokens(entity, starts, ends))
        types.append(_label(entity))
    relations = None
    if isinstance(each.get("relations"), list):
        relations = []
        for relation in each["relations"]:
            pair = relation.get("head_span"), relation.get("child_span")
            places = [_in_tokens(span, starts, ends) for span in pair]
            if not all(place in spans for place in places):
                raise CorpusError(f"The relation {_label(relation)} joins spans that are not entities. List them.")
            relations.append((spans.index(places[0]), spans.index(places[1]), _label(relation)))
    cuts = sorted({bisect_right(starts, sent["start"]) - 1 for sent in each.get("sents") or () if is_place(sent)})
    whole = in_order(
        number,
        words,
        spans,
        pos=pos if len(pos) == len(words) else None,
        types=types if "ents" in each or "spans" in each else None,
        relations=relations,
    )
    yield from cut(whole, [each for each in cuts if each > 0])


def cut(document: Sentence, at: Sequence[int]) -> Iterator[Sentence]:
    """Yields a document's sentences, which begin at these tokens; never within a span, or between two related ones."""
    across = list(document.spans)
    for source, target, _ in document.relations or ():
        ends = (*document.spans[source], *document.spans[target])
        across.append((min(ends), max(ends)))
    kept = [token for token in at if not any(start < token < end for start, end in across)]
    edges = [0, *kept, len(document.tokens)]
    for n, (first, end) in enumerate(pairwise(edges)):
        if first < end:
            yield part(document, f"{document.id}-{n}" if len(edges) > 2 else document.id, first, end)


def part(document: Sentence, id: str, first: int, end: int) -> Sentence:
    """Returns some tokens of a document as a sentence, with the spans and relations within them."""
    inside = {n: k for k, n in enumerate(n for n, span in enumerate(document.spans) if first <= span[0] < end)}
    relations: list[Relation] | None = None
    if document.relations is not None:
        relations = [(inside[s], inside[t], name) for s, t, name in document.relations if s in inside]
    return in_order(
        id,
        document.tokens[first:end],
        [(document.spans[n][0] - first, document.spans[n][1] - first) for n in inside],
        pos=None if document.pos is None else document.pos[first:end],
        types=None if document.types is None else [document.types[n] for n in inside],
        relations=relations,
    )


def _of_training(each: Object, number: str) -> Iterator[Sentence]:
    """Yields the sentences of spaCy 2's training JSON."""
    n = 0
    for paragraph in each["paragraphs"]:
        for sentence in paragraph.get("sentences", ()) if isinstance(paragraph, dict) else ():
            tokens = sentence.get("tokens", ())
            if not all(isinstance(token.get("orth"), str) for token in tokens):
                raise CorpusError("A token has an 'orth'. Write spaCy's training JSON.")
            tags = [token.get("ner", "O") for token in tokens]
            spans, types = spans_of(["O" if tag in ("-", "") else tag for tag in tags])
            yield in_order(f"{number}-{n}", [token["orth"] for token in tokens], spans, types=types)
            n += 1


def _of_docbin(path: AnyPath, faults: Faults | None) -> Iterator[Sentence]:
    try:
        import spacy
        from spacy.tokens import DocBin
    except ImportError:
        raise CorpusError(
            f"{called(path)} is a spaCy DocBin, which needs spaCy: pip install hasten[spacy]. "
            "Or write Doc.to_json() lines."
        ) from None
    lines = Lines(io.StringIO(), 1, faults, called(path))
    try:
        with open(os.fspath(path), "rb") as file:
            docs = DocBin().from_bytes(file.read()).get_docs(spacy.blank("xx").vocab)
        for number, doc in enumerate(docs, start=1):
            lines.entry_number = number
            with lines.entry():
                yield from _of_doc(doc, str(number))
    except CorpusError:
        raise
    except Exception as error:  # whatever spaCy finds wrong with its own bytes
        raise CorpusError(
            f"{called(path)}: spaCy cannot read it ({error}). Is this a DocBin? Write it again."
        ) from error


def _of_doc(doc: Any, number: str) -> Iterator[Sentence]:
    spans = [(entity.start, entity.end) for entity in doc.ents]
    rel = next((value for key, value in doc.user_data.items() if key[:2] == ("._.", "rel")), None)
    relations: list[Relation] | None = None
    if isinstance(rel, dict):
        starts = {start: n for n, (start, _) in enumerate(spans)}
        relations = [
            (starts[one], starts[other], str(name))
            for (one, other), names in rel.items()
            for name, score in names.items()
            if score >= LIKELY and one in starts and other in starts and one != other
        ]
    keep = [n for n, token in enumerate(doc) if not token.is_space]
    place = {n: k for k, n in enumerate(keep)}
    spans = [(place[start], place[end - 1] + 1) for start, end in spans if start in place and end - 1 in place]
    if len(spans) != len(doc.ents):
        raise CorpusError("An entity begins or ends with blanks. Leave them out of it.")
    pos = [doc[n].pos_ or doc[n].tag_ for n in keep]
    types = [entity.label_ for entity in doc.ents] if doc.has_annotation("ENT_IOB") else None
    tokens = [doc[n].text for n in keep]
    whole = in_order(number, tokens, spans, pos=pos if all(pos) else None, types=types, relations=relations)
    begins = [place[n] for n in keep if doc.has_annotation("SENT_START") and doc[n].is_sent_start and place[n] > 0]
    yield from cut(whole, begins)


def _in_tokens(entity: Any, starts: Sequence[int], ends: Sequence[int]) -> Span:
    """Returns the tokens of an entity that is given by its characters."""
    if not is_place(entity):
        raise CorpusError(f"An entity has a start and an end in the text, not {short(entity)}.")
    if entity["start"] not in starts or entity["end"] not in ends:
        raise CorpusError(f"The entity {short(entity)} begins or ends inside a token. Let it begin and end with one.")
    return list(starts).index(entity["start"]), list(ends).index(entity["end"]) + 1


def _label(each: Any) -> str:
    name = each.get("label", each.get("type")) if isinstance(each, dict) else None
    if not isinstance(name, str) or not name:
        raise CorpusError(f"There is no label: {short(each)}. Give it one.")
    return name


def read_brat(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads a directory of `.ann` and `.txt` files, or one pair; ids are the file's name and a number, from 0."""
    if os.path.isdir(path):
        for each in annotations_in(path):
            yield from _read_one(each, max_line, faults)
    else:
        yield from _read_one(Path(path), max_line, faults)


def annotations_in(path: AnyPath) -> list[Path]:
    """Returns the `.ann` files of a directory, by name."""
    return sorted(Path(path).glob("*.ann"))


def _read_one(path: Path, max_line: int, faults: Faults | None) -> Iterator[Sentence]:
    entities, relations = dict[str, tuple[str, Span]](), list[tuple[str, str, str]]()
    text: str | None = None
    with open_lines(path, max_line, faults=faults) as lines:
        for line in chain(lines, ("",)):
            text = _text_of(path.with_suffix(".txt")) if text is None else text
            with lines.entry():
                _read_line(line.rstrip("\r\n"), text, entities, relations)
        known = []
        for source, target, name in relations:
            with lines.entry():
                for each in (source, target):
                    if each not in entities:
                        raise CorpusError(f"{name} joins {each}, which is not an entity of the file. Add it.")
                known.append((source, target, name))
        with lines.entry():
            yield from _sentences(path.stem, text or "", entities, known)


def _text_of(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", newline="") as file:  # as it is: characters are counted
            return file.read()
    except OSError as error:
        raise CorpusError(f"{path}: Cannot be read ({error.strerror}). Put the text beside its .ann file.") from error
    except UnicodeDecodeError:
        raise CorpusError(f"{path}: This is not UTF-8 text. Convert the file.") from None


def _read_line(
    line: str, text: str, entities: dict[str, tuple[str, Span]], relations: list[tuple[str, str, str]]
) -> None:
    key, _, rest = line.partition("\t")
    kind, body = key[:1], rest.partition("\t")[0]
    if not line.strip() or (kind and kind in PASSED_OVER):
        return
    if kind == "T":
        if ";" in body:
            raise CorpusError(f"Entity {key} has several pieces ({body}). Give it one.")
        if (found := ENTITY.match(body)) is None:
            raise CorpusError(f"Expected a type, a start and an end, not {body[:60]!r}. Write T1, a tab, and these.")
        start, end = int(found[2]), int(found[3])
        if not 0 <= start < end <= len(text) or not text[start:end].strip():
            raise CorpusError(
                f"Entity {key} is at {start} to {end}, in a text of {len(text)} characters. Is it this text?"
            )
        if key in entities:
            raise CorpusError(f"There is an entity {key} already. Give each a number of its own.")
        entities[key] = found[1], (start, end)
    elif kind == "R":
        if (found := RELATION.match(body)) is None:
            raise CorpusError(
                f"Expected a name and two arguments, not {body[:60]!r}. Write R1, a tab, Name Arg1:T1 Arg2:T2."
            )
        relations.append((found[2], found[3], found[1]))
    else:
        raise CorpusError(f"There is no annotation {key[:20]!r}. Lines begin with {', '.join('TR' + PASSED_OVER)}.")


def _sentences(
    id: str, text: str, entities: dict[str, tuple[str, Span]], relations: list[tuple[str, str, str]]
) -> Iterator[Sentence]:
    """Yields the sentences of a text."""
    edges = {edge for _, span in entities.values() for edge in span}
    words = [piece for found in WORDS.finditer(text) for piece in _pieces(found.span(), edges)]
    starts = [start for start, _ in words]
    spans, types, number = list[Span](), list[str](), dict[str, int]()
    for key, (name, (start, end)) in entities.items():
        inside = [n for n, (first, last) in enumerate(words) if start <= first and last <= end]
        if not inside:
            raise CorpusError(f"Entity {key} has no word in it. Leave it out.")
        number[key] = len(spans)
        spans.append((inside[0], inside[-1] + 1))
        types.append(name)
    joined: list[Relation] = [(number[source], number[target], name) for source, target, name in relations]
    document = in_order(id, [text[a:b] for a, b in words], spans, types=types, relations=joined)
    ends = [found.end() for found in ENDS.finditer(text)]
    yield from cut(document, sorted({n for n in (bisect_left(starts, end) for end in ends) if 0 < n < len(words)}))


def _pieces(span: Span, edges: set[int]) -> Iterator[Span]:
    """Yields a word, cut where an entity begins or ends."""
    yield from pairwise([span[0], *sorted(edge for edge in edges if span[0] < edge < span[1]), span[1]])
