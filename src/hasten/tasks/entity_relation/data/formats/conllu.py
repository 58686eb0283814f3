"""CoNLL-U: a token a line in ten columns, with entities, where there are any, in the last.

`NER=B-x` and the like in MISC are entity tags; `Entity=(e1-person-…` and `Entity=e1)`, as in CorefUD and GUM, are
brackets. Relations are unknown to the format. Ranges such as `3-4` and empty nodes such as `5.1` are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, Span, in_order
from hasten.tasks.entity_relation.data.formats.iob import spans_of
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, open_lines

ID, FORM, UPOS, XPOS, MISC = 0, 1, 3, 4, 9
BRACKETS = re.compile(r"\(([^()]*)\)|\(([^()]*)|([^()]*)\)")  # one that opens and closes; opens; closes


def read_conllu(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads sentences with the universal parts of speech; ids are those of `# sent_id`, or count from 1."""
    with open_lines(path, max_line, faults=faults) as lines:
        number, id, rows = 1, "", list[list[str]]()
        for line in lines:
            text = line.rstrip("\r\n")
            if text.startswith("#"):
                name, _, value = text[1:].partition("=")
                id = value.strip() if name.strip() == "sent_id" else id
            elif text.strip():
                columns = text.split("\t")
                if len(columns) != 10:
                    raise CorpusError(f"Expected 10 columns, not {len(columns)}. Separate them by tabs.")
                if columns[ID].isdecimal():
                    rows.append(columns)
            elif rows:
                with lines.entry():
                    yield build(id or str(number), rows)
                number, id, rows = number + 1, "", []
        if rows:
            with lines.entry():
                yield build(id or str(number), rows)


def build(id: str, rows: list[list[str]]) -> Sentence:
    """Returns the sentence of some rows."""
    pos = [row[UPOS] if row[UPOS] != "_" else row[XPOS] for row in rows]
    notes = [dict(note.partition("=")[::2] for note in row[MISC].split("|")) for row in rows]
    tagged = any("NER" in each for each in notes)
    spans, types = spans_of([each.get("NER", "O") for each in notes]) if tagged else bracketed(notes)
    known = types if tagged or any("Entity" in each for each in notes) else None
    return in_order(id, [row[FORM] for row in rows], spans, pos=pos, types=known)


def bracketed(notes: list[dict[str, str]]) -> tuple[list[Span], list[str]]:
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
