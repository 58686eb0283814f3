"""CoNLL-2003 (Tjong Kim Sang & De Meulder 2003): a token a line, with its entity tag."""

from __future__ import annotations

from collections.abc import Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.iob import from_tags
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Faults, open_lines


def read_conll2003(path: AnyPath, max_line: int = MAX_LINE, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads the four columns of CoNLL-2003 (word, POS, chunk, IOB entity) as unlabeled text.

    The spans of all entities are kept, their types are not. Lines that mark a new document are passed over.
    Ids count the sentences from 1.
    """
    with open_lines(path, max_line, faults=faults) as lines:
        number, rows = 1, list[list[str]]()
        for line in lines:
            columns = line.split()
            if columns and columns[0] == "-DOCSTART-":
                continue
            if columns and len(columns) != 4:
                raise CorpusError(f"Expected word, POS, chunk and entity, not {len(columns)} columns. Add a blank?")
            if columns:
                rows.append(columns)
            elif rows:
                with lines.entry():
                    yield from_tags(str(number), *_columns(rows))
                number, rows = number + 1, []
        if rows:
            with lines.entry():
                yield from_tags(str(number), *_columns(rows))


def _columns(rows: list[list[str]]) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    words, pos, _, tags = zip(*rows, strict=True)
    return words, pos, tags
