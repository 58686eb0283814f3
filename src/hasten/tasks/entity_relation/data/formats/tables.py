"""Formats of a token a line: CoNLL04, CoNLL-2003, CoNLL-U, and the Groningen Meaning Bank as a spreadsheet saved it.

CoNLL04 (Roth & Yih 2004) is the paper's corpus. A line is a row of a table, its columns separated by tabs: 9 for a
token, or for all tokens of an entity joined by `/`; after a blank line, 3 for a relation between two such rows; and a
blank line again. CoNLL-2003 (Tjong Kim Sang & De Meulder 2003) and `ner_dataset.csv` are read as unlabeled text: the
spans of entities are kept, their types are not. In CoNLL-U entities stand in the last column, MISC: `NER=B-x` and the
like are entity tags; `Entity=(e1-person-…` and `Entity=e1)`, as in CorefUD and GUM, are brackets. Ranges such as `3-4`
and empty nodes such as `5.1` are passed over. Of these formats only CoNLL04 knows relations.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Relation, Sentence, Span, in_order
from hasten.tasks.text.lines import Lines
from hasten.tasks.text.tables import Cells, read_tables, spans_of

END = "\t" * 8  # a row that stands behind the last one
ID, FORM, UPOS, XPOS, MISC = 0, 1, 3, 4, 9  # columns of CoNLL-U
BRACKETS = re.compile(r"\(([^()]*)\)|\(([^()]*)|([^()]*)\)")  # one that opens and closes; opens; closes
GMB_HEADER = ["Sentence #", "Word", "POS", "Tag"]
GMB_ENTITIES = frozenset({"per", "org", "geo", "gpe"})
SPREADSHEET_ROWS = 1_048_576  # the program that saved the published file cuts a table here
TYPES = {"Peop": "person", "Loc": "location", "Org": "organization", "Other": "none"}
RELATIONS = {
    "Kill": "Kill",
    "Live_In": "LiveIn",
    "Work_For": "WorkFor",
    "Located_In": "LocatedAt",
    "OrgBased_In": "OrgBasedIn",
}
ESCAPES = {"COMMA": ",", "-LRB-": "(", "-RRB-": ")", "-LCB-": "{", "-RCB-": "}", "-LSB-": "[", "-RSB-": "]"}


def conll2003(lines: Lines) -> Iterator[Sentence]:
    """Reads word, POS, chunk and IOB entity; ids count the sentences from 1."""
    for id, rows in read_tables(lines, _four):
        with lines.entry():
            words, pos, _, tags = zip(*rows, strict=True)
            yield Sentence(id, words, tuple(spans_of(tags)[0]), pos=pos)


def _four(line: str) -> Cells:
    cells = line.split()
    if len(cells) != 4:
        raise CorpusError(f"Expected word, POS, chunk and entity, not {len(cells)} columns. Add a blank?")
    return cells


def gmb(lines: Lines) -> Iterator[Sentence]:
    """Reads `ner_dataset.csv`; spans are the persons, organisations, places and nations (per, org, geo, gpe).

    The published file was cut by a spreadsheet at 1,048,576 rows, in the middle of a sentence: in a file of that length
    the last sentence is left out too.
    """
    table = csv.reader(lines)
    if (header := next(table, None)) != GMB_HEADER:
        raise CorpusError(f"Expected the header {','.join(GMB_HEADER)!r}, not {header}. Is this the file?")
    rows, n_rows = list[Cells](), 1
    for row in chain(table, (["end", "", "", ""],)):
        n_rows += 1
        if len(row) != len(GMB_HEADER):
            raise CorpusError(f"Expected {len(GMB_HEADER)} columns, not {len(row)}. Quote words with commas.")
        if row[0] and rows and not (row[0] == "end" and n_rows == SPREADSHEET_ROWS + 1):
            with lines.entry():
                numbers, words, pos, tags = zip(*rows, strict=True)
                spans = tuple(spans_of(tags, GMB_ENTITIES)[0])
                yield Sentence(numbers[0].removeprefix("Sentence: "), words, spans, pos=pos)
        rows = [row] if row[0] else [*rows, row]


def conllu(lines: Lines) -> Iterator[Sentence]:
    """Reads sentences with the universal parts of speech; ids are those of `# sent_id`, or count from 1."""
    for id, rows in read_tables(lines, _ten, comments=True):
        with lines.entry():
            pos = [row[UPOS] if row[UPOS] != "_" else row[XPOS] for row in rows]
            notes = [dict(note.partition("=")[::2] for note in row[MISC].split("|")) for row in rows]
            tagged = any("NER" in each for each in notes)
            spans, types = spans_of([each.get("NER", "O") for each in notes]) if tagged else _bracketed(notes)
            known = types if tagged or any("Entity" in each for each in notes) else None
            yield in_order(id, [row[FORM] for row in rows], spans, pos=pos, types=known)


def _ten(line: str) -> Cells | None:
    cells = line.split("\t")
    if len(cells) != 10:
        raise CorpusError(f"Expected 10 columns, not {len(cells)}. Separate them by tabs.")
    return cells if cells[ID].isdecimal() else None


def _bracketed(notes: list[dict[str, str]]) -> tuple[list[Span], list[str]]:
    """Returns the spans that brackets enclose, and their types: what follows the first hyphen."""
    spans, types, open_ = list[Span](), list[str](), list[tuple[str, str, int]]()
    for n, note in enumerate(notes):
        for whole, opens, closes in BRACKETS.findall(note.get("Entity", "")):
            name, _, rest = (whole or opens).partition("-")
            if whole or opens:
                open_.append((name, rest.partition("-")[0], n))
            if whole or closes:
                key = (whole or closes).partition("-")[0]
                match = next((each for each in reversed(open_) if each[0] == key), None)
                if match is None:
                    raise CorpusError(f"Entity {key!r} ends at token {n + 1} and never begins. Check the brackets.")
                open_.remove(match)
                spans.append((match[2], n + 1))
                types.append(match[1])
    if open_:
        raise CorpusError(
            f"Entity {open_[0][0]!r} begins at token {open_[0][2] + 1} and never ends. Check the brackets."
        )
    return spans, types


def conll04(lines: Lines) -> Iterator[Sentence]:
    """Reads `conll04.corp` (Roth & Yih 2004), with the paper's names for types and relations.

    The ids are the file's own sentence numbers. A sentence without relations gets `()`, not None, for it
    was annotated. One with a row that is refused is refused once, for its first fault.
    """
    draft = _Draft()
    for line in chain(lines, (END,)):
        columns = line.rstrip("\r\n").split("\t")
        if columns == [""]:
            draft.ended = bool(draft.tokens)
            continue
        if len(columns) not in (3, 9):
            raise CorpusError(
                f"Expected 9 columns (a token), 3 (a relation) or a blank line, not {len(columns)}. "
                "Separate columns by tabs."
            )
        if len(columns) == 9 and (draft.ended or line is END):
            with lines.entry():
                yield from draft.build()
            draft = _Draft()
        if line is END:
            return
        try:
            (draft.add_row if len(columns) == 9 else draft.add_relation)(*columns)
        except CorpusError as error:
            if not draft.broken:
                lines.faults.meet(error, lines.place)
            draft.broken = True


class _Draft:
    """A sentence while its rows come in."""

    def __init__(self) -> None:
        self.id = ""
        self.tokens: list[tuple[str, str]] = []  # with their parts of speech
        self.spans: dict[str, Span] = {}  # by the row number that relations refer to
        self.types: list[str] = []
        self.relations: list[Relation] = []
        self.ended = False  # a blank line came after the tokens
        self.broken = False  # a row of it was refused, and so all of it is

    def add_row(self, number: str, entity: str, row: str, _: str, tags: str, words: str, *others: str) -> None:
        if self.tokens and number != self.id:
            raise CorpusError(f"Sentence {number} begins inside sentence {self.id}. Put a blank line between.")
        self.id, start = number, len(self.tokens)
        self.tokens += _expand(words, tags)
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
        self.relations.append((rows.index(source), rows.index(target), _translate(name, RELATIONS, "relation")))

    def build(self) -> Iterator[Sentence]:
        if self.tokens and not self.broken:
            words, pos = zip(*self.tokens, strict=True)
            spans = list(self.spans.values())
            yield in_order(self.id, words, spans, pos=pos, types=self.types, relations=self.relations)


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
