"""Sentences whose words have tags, and the files they come in: CoNLL-U, columns, JSON lines.

- *conllu*: CoNLL-U. The tag is the column `upos` unless another is chosen, by its name or number; words of several
  tokens (1-2) and empty nodes (1.1) are passed over.
- *conll*: a word a line, its columns between spaces or tabs, a blank line between sentences. The word is the first
  column, the tag the last, or the one chosen; a line of one column is a word without a tag. Lines -DOCSTART- are passed
  over.
- *jsonl*: an object a line: `{"tokens": ["Ada", "laughs"], "tags": ["NOUN", "VERB"]}`. `id` and `rules`, rules for this
  sentence alone, may be there too.

Each reader holds one sentence at a time. `generate` makes news up, with a tag a word, for tests and examples.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hasten.errors import CorpusError
from hasten.support.checks import brief
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import recognise
from hasten.tasks.entity_relation.data.synthetic import generate as generate_news
from hasten.tasks.text.lines import MAX_LINE, AnyPath, Lines, called, fitted, open_lines, parse_object
from hasten.tasks.text.tables import Cells, read_tables

COLUMNS = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")  # of CoNLL-U
FORMATS = ("conllu", "conll", "jsonl")
OF_JSON = ("jsonl", "records", "dygie", "spacy")
NO_TAG = "_"  # what CoNLL-U writes where there is none


@dataclass(frozen=True, slots=True)
class Tagged:
    """One sentence, with a tag for each word where these are known, and rules of its own, if any."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    rules: tuple[str, ...] = ()  # that hold for this sentence alone; `rules.read_rule` says how they are written

    def __post_init__(self) -> None:
        try:
            "".join(self.words)
        except TypeError:
            raise CorpusError(f"Sentence {self.id!r}: words are strings, got {brief(self.words)}.") from None
        if isinstance(self.words, str):
            raise CorpusError(f"Sentence {self.id!r} is the string {self.words!r:.60}. Give a list of its words.")
        if "" in self.words:
            raise CorpusError(f"Sentence {self.id!r}: word {self.words.index('')} is empty. Leave it out.")
        if self.tags is None:
            return
        if len(self.tags) != len(self.words):
            raise CorpusError(
                f"Sentence {self.id!r}: got {len(self.tags)} tags for {len(self.words)} words. Give one each, or none."
            )
        if "" in self.tags:
            raise CorpusError(f"Sentence {self.id!r}: the tag of word {self.tags.index('')} is empty. Name it.")

    def untagged(self) -> Tagged:
        """Returns the sentence without its tags."""
        return replace(self, tags=None)


def tags_of(sentences: Iterable[Tagged]) -> tuple[str, ...]:
    """Returns the tags that occur, sorted."""
    found = Counter(tag for sentence in sentences for tag in sentence.tags or ())
    if not found:
        raise CorpusError("No sentence has a tag. Give sentences with tags to learn from.")
    return tuple(sorted(found))


def read_tagged(
    path: AnyPath, format: str = "auto", column: str | int | None = None, *, tags: bool = True, max_line: int = MAX_LINE
) -> Iterator[Tagged]:
    """Reads tagged sentences; `"-"` is standard input, and gzipped files are unpacked.

    `column` is where the tags are: a name or a number from 1, counted from the end if negative; a key of JSON. With
    `tags` off, the words are all that is read.
    """
    if format == "auto":
        format = _recognise(path)
    if format not in FORMATS:
        raise CorpusError(f"There is no format {format!r} of tagged text. Choose one of {', '.join(FORMATS)}, or auto.")
    key: Any = ("tags" if column is None else str(column)) if format == "jsonl" else _column(column, format)
    read: Any = {"jsonl": _jsonl, "conllu": _conllu, "conll": _conll}[format]

    def sentences() -> Iterator[Tagged]:
        with open_lines(path, max_line) as lines:
            yield from read(lines, key if tags else None)

    return sentences()


def _recognise(path: AnyPath) -> str:
    """Tells the format of a file: what is neither JSON nor CoNLL-U are columns."""
    found = "conllu" if ".conllu" in os.path.basename(os.fspath(path)).lower() else recognise(path)
    return "jsonl" if found in OF_JSON else "conllu" if found == "conllu" else "conll"


def _column(column: str | int | None, format: str) -> int:
    """Returns the place of a column, from 0; from the end if negative."""
    if column is None:
        return COLUMNS.index("upos") if format == "conllu" else -1
    named = str(column).strip().lower()
    if format == "conllu" and named in COLUMNS:
        return COLUMNS.index(named)
    try:
        number = int(named)
    except ValueError:
        number = 0
    if number == 0:
        names = f"{', '.join(COLUMNS)}, or " if format == "conllu" else ""
        raise CorpusError(f"There is no column {column!r}. Give {names}a number from 1, or from the end: -1.")
    return number - 1 if number > 0 else number


def _conllu(lines: Lines, column: int | None) -> Iterator[Tagged]:
    for id, rows in read_tables(lines, _numbered, comments=True):
        words = [cells[1] if len(cells) > 1 else cells[0] for cells in rows]
        yield _sentence(id, words, [None if (tag := _cell(cells, column)) == NO_TAG else tag for cells in rows])


def _conll(lines: Lines, column: int | None) -> Iterator[Tagged]:
    widths = set[int]()  # of lines with more than a word

    def split(line: str) -> Cells:
        cells = line.split("\t") if "\t" in line else line.split()
        widths.update({len(cells)} - {1})
        if len(widths) > 1:
            raise CorpusError(
                f"There are lines of {' and of '.join(map(str, sorted(widths)))} columns. Is it running text? Write a "
                'word a line, or JSON lines: {"tokens": ["…"]}.'
            )
        return cells

    for id, rows in read_tables(lines, split):
        tags = [_cell(cells, column) if len(cells) > 1 else None for cells in rows]
        yield _sentence(id, [cells[0] for cells in rows], tags)


def _sentence(id: str, words: Sequence[str], tags: Sequence[str | None]) -> Tagged:
    known = tuple(tag for tag in tags if tag is not None)
    if known and len(known) < len(words):
        missing = words[tags.index(None)]
        raise CorpusError(f"Sentence {id!r}: the word {missing!r} has no tag, though others have. Give all, or none.")
    return Tagged(id, tuple(words), known or None)


def _numbered(line: str) -> Cells | None:
    """Returns the cells of a word; passes over several (1-2) and empty nodes (1.1), and refuses what is no number."""
    cells = line.split("\t")
    if cells[0].isdigit():
        return cells
    if not cells[0].replace("-", ".", 1).replace(".", "", 1).isdigit():
        raise CorpusError(
            f"A line of CoNLL-U begins with the number of its word, not {cells[0][:40]!r}. If the file has other "
            "columns, say so: --format conll on the command line, format= in Python."
        )
    return None


def _cell(cells: Cells, column: int | None) -> str | None:
    """Returns the tag on a line, None if none is wanted."""
    if column is not None and not -len(cells) <= column < len(cells):
        raise CorpusError(f"The line has {len(cells)} columns, so none with the number {column + 1}. Choose another.")
    return None if column is None else cells[column].strip()


def _jsonl(lines: Lines, key: str | None) -> Iterator[Tagged]:
    for line in lines:
        if not line.isspace():
            yield from_object(parse_object(line), key, str(lines.number))


def from_object(found: Mapping[str, Any], key: str | None, default_id: str) -> Tagged:
    """Returns the sentence that an object stands for, its tags under a key; one without an id gets another."""
    for name in ("tokens", "rules") if key is None else ("tokens", key, "rules"):
        fitted(found.get(name), list[str] | None, f"{name!r} should be a list of strings")
    fitted(found.get("id", ""), str, "'id' should be a string")
    if "tokens" not in found:
        raise CorpusError('There are no tokens. Write {"tokens": ["…"], "tags": ["…"]} on each line.')
    tags = None if key is None else found.get(key)
    return Tagged(
        found.get("id", default_id),
        tuple(found["tokens"] or ()),
        None if tags is None else tuple(tags),
        tuple(found.get("rules") or ()),
    )


def to_json(sentence: Tagged) -> dict[str, object]:
    """Returns a sentence as the object that stands for it in a file."""
    found: dict[str, object] = {"id": sentence.id, "tokens": sentence.words}
    if sentence.tags is not None:
        found["tags"] = sentence.tags
    return found | ({"rules": sentence.rules} if sentence.rules else {})


def read_all(path: AnyPath, format: str = "auto", column: str | int | None = None) -> list[Tagged]:
    """Reads a file of sentences that all have tags; others are refused, by their id."""
    found = list(read_tagged(path, format, column))
    for sentence in found:
        if sentence.tags is None and sentence.words:
            raise CorpusError(f"{called(path)}: sentence {sentence.id!r} has no tags. Give tagged sentences.")
    return found


KINDS = ("pos", "bio")


def generate(n: int, seed: int, kind: str = "pos") -> Iterator[Tagged]:
    """Writes `n` sentences with the parts of speech of their words (Penn Treebank), or with entities in BIO."""
    if kind not in KINDS:
        raise CorpusError(f"There are no made-up tags {kind!r}. Choose one of {', '.join(KINDS)}.")
    for sentence in generate_news(n, seed):
        tags = _bio_tags(sentence) if kind == "bio" else sentence.pos
        yield Tagged(sentence.id, sentence.tokens, tags)


def _bio_tags(sentence: Sentence) -> tuple[str, ...]:
    tags = ["O"] * len(sentence.tokens)
    for (start, end), name in zip(sentence.spans, sentence.types or (), strict=True):
        tags[start:end] = [f"B-{name}", *[f"I-{name}"] * (end - start - 1)]
    return tuple(tags)
