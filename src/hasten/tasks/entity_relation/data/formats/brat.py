"""BRAT standoff: a text and, beside it, `.ann` lines that label pieces of it by their characters.

A corpus is a directory of such files, or one `.ann` file. Text is cut into words and marks, at the edges of entities
too, and into sentences at line ends and full stops, but never within an entity or between two that are related.
Entities (`T`) and binary relations (`R`) are read; events, attributes and notes are passed over. An entity in several
pieces is refused.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, cut, in_order
from hasten.tasks.text.lines import Lines

WORDS = re.compile(r"\w+|[^\w\s]")
ENDS = re.compile(r"\n|[.!?][\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
ENTITY = re.compile(r"(\S+) ([0-9]{1,12}) ([0-9]{1,12})$")
RELATION = re.compile(r"(\S+) \w+:(\S+) \w+:(\S+)\s*$")
PASSED_OVER = "EAMN#*"


def brat(lines: Lines) -> Iterator[Sentence]:
    """Reads an `.ann` file and the text beside it; ids are the file's name and a number, from 0."""
    path, entities, relations = Path(lines.path), dict[str, tuple[str, Span]](), list[tuple[str, str, str]]()
    text: str | None = None
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
    yield from cut(document, sorted({bisect_left(starts, end) for end in ends}))


def _pieces(span: Span, edges: set[int]) -> Iterator[Span]:
    """Yields a word, cut where an entity begins or ends."""
    yield from pairwise([span[0], *sorted(edge for edge in edges if span[0] < edge < span[1]), span[1]])
