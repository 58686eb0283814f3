"""CoNLL04: sentences with types and relations, by Roth & Yih (2004), the paper's corpus.

A line is a row of a table, its columns separated by tabs: 9 for a token, or for all tokens of an entity joined by
`/`; after a blank line, 3 for a relation between two such rows; and a blank line again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, in_order
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, Lines, open_lines

TYPES = {"Peop": "person", "Loc": "location", "Org": "organization", "Other": "none"}
RELATIONS = {
    "Kill": "Kill",
    "Live_In": "LiveIn",
    "Work_For": "WorkFor",
    "Located_In": "LocatedAt",
    "OrgBased_In": "OrgBasedIn",
}
ESCAPES = {
    "COMMA": ",",
    "-LRB-": "(",
    "-RRB-": ")",
    "-LCB-": "{",
    "-RCB-": "}",
    "-LSB-": "[",
    "-RSB-": "]",
}


def read_conll04(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads `conll04.corp` (Roth & Yih 2004), with the paper's names for types and relations.

    The ids are the file's own sentence numbers. A sentence without relations gets `()`, not None, for it
    was annotated.
    """
    with open_lines(path, max_line, faults=faults) as lines:
        draft = _Draft()
        for line in lines:
            columns = line.rstrip("\r\n").split("\t")
            if columns == [""]:
                draft.ended = bool(draft.tokens)
            elif len(columns) == 3:
                with draft.within(lines):
                    draft.add_relation(*columns)
            elif len(columns) == 9:
                if draft.ended:
                    with lines.entry():
                        yield from draft.build()
                    draft = _Draft()
                number, entity, row, _, tags, words = columns[:6]
                with draft.within(lines):
                    draft.add_row(number, entity, row, tags, words)
            else:
                raise CorpusError(
                    f"Expected 9 columns (a token), 3 (a relation) or a blank line, not {len(columns)}. "
                    "Separate columns by tabs."
                )
        if draft.tokens:
            with lines.entry():
                yield from draft.build()


class _Draft:
    """A sentence while its rows come in."""

    def __init__(self) -> None:
        self.id = ""
        self.tokens: list[str] = []
        self.pos: list[str] = []
        self.spans: dict[str, tuple[int, int]] = {}  # by the row number that relations refer to
        self.types: list[str] = []
        self.relations: list[tuple[int, int, str]] = []
        self.ended = False  # a blank line came after the tokens
        self.broken = False  # a row of it was refused, and so all of it is

    @contextmanager
    def within(self, lines: Lines) -> Iterator[None]:
        """Surrounds what is done with one of its rows: a sentence is refused once, for its first fault."""
        try:
            yield
        except CorpusError as error:
            if not self.broken:
                lines.faults.meet(error, lines.place)
            self.broken = True

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
            self.types.append(_translate(entity, TYPES, "entity type"))

    def add_relation(self, source: str, target: str, name: str) -> None:
        if not self.ended:
            raise CorpusError("A relation comes before its sentence has ended. Put a blank line between.")
        rows = list(self.spans)
        for row in (source, target):
            if row not in self.spans:
                raise CorpusError(f"Row {row} of sentence {self.id} is not an entity. Rows {rows} are.")
        name = _translate(name, RELATIONS, "relation")
        self.relations.append((rows.index(source), rows.index(target), name))

    def build(self) -> Iterator[Sentence]:
        """Yields the sentence, unless it was refused."""
        if not self.broken:
            spans = list(self.spans.values())
            yield in_order(self.id, self.tokens, spans, pos=self.pos, types=self.types, relations=self.relations)


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
