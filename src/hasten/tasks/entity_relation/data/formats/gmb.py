"""The Groningen Meaning Bank, as the table `ner_dataset.csv` that many have: text with entity tags."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.iob import from_tags
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, open_lines

HEADER = ["Sentence #", "Word", "POS", "Tag"]
ENTITIES = frozenset({"per", "org", "geo", "gpe"})
SPREADSHEET_ROWS = 1_048_576  # the program that saved the published file cuts a table here


def read_gmb(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads the Groningen Meaning Bank's `ner_dataset.csv` as unlabeled text.

    Spans are the persons, organisations, places and nations (per, org, geo, gpe); their types are left out.
    The published file was cut by a spreadsheet at 1,048,576 rows, in the middle of a sentence: in a file of
    that length the last sentence is left out too.
    """
    # cp1252 is a superset of latin-1's letters; the file has its quotes
    with open_lines(path, max_line, encoding="cp1252", faults=faults) as lines:
        rows = csv.reader(lines)
        if (header := next(rows, None)) != HEADER:
            raise CorpusError(f"Expected the header {','.join(HEADER)!r}, not {header}. Is this the file?")
        number, tokens, pos, tags = "", list[str](), list[str](), list[str]()
        n_rows = 1
        for n_rows, row in enumerate(rows, start=2):  # noqa: B007
            if len(row) != len(HEADER):
                raise CorpusError(f"Expected {len(HEADER)} columns, not {len(row)}. Quote words with commas.")
            if row[0]:
                if tokens:
                    with lines.entry():
                        yield from_tags(number, tokens, pos, tags, ENTITIES)
                number, tokens, pos, tags = row[0].removeprefix("Sentence: "), [], [], []
            tokens.append(row[1])
            pos.append(row[2])
            tags.append(row[3])
        if tokens and n_rows != SPREADSHEET_ROWS:
            with lines.entry():
                yield from_tags(number, tokens, pos, tags, ENTITIES)
