"""Sentences as tables: a token a line, its columns between tabs or blanks, a blank line between sentences; entity tags.

Entity tags are a letter and a type for each token. `I-x` is inside an entity of type x, `O` outside of any. In IOB2, or
BIO, each entity begins with `B-x`, in IOB1 only one that follows another of its type. In BIOES, or BILOU, one ends with
`E-x` or `L-x`, and `S-x` or `U-x` is one by itself. All are read.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Sequence
from itertools import chain

from hasten.errors import CorpusError
from hasten.tasks.text.lines import Lines

Cells = list[str]
PREFIXES = frozenset("BIESLU")


def read_tables(
    lines: Lines, split: Callable[[str], Cells | None], *, comments: bool = False
) -> Iterator[tuple[str, list[Cells]]]:
    """Yields the tables of a file, each with its id: from a comment, or else its number, from 1.

    `split` cuts a line into cells, refuses it, or passes over it with None. With `comments`, lines that begin with #
    are none of the table, and `# sent_id = x` names it. Lines that begin with -DOCSTART- are passed over.
    """
    number, id, rows = 1, "", list[Cells]()
    for line in chain(lines, ("",)):
        text = line.rstrip("\r\n")
        if comments and text.startswith("#"):
            name, _, value = text[1:].partition("=")
            id = value.strip() if name.strip() == "sent_id" else id
        elif text.strip():
            cells = None if text.startswith("-DOCSTART-") else split(text)
            rows += [] if cells is None else [cells]
        elif rows:
            yield id or str(number), rows
            number, id, rows = number + 1, "", []


def spans_of(tags: Sequence[str], keep: Container[str] | None = None) -> tuple[list[tuple[int, int]], list[str]]:
    """Returns the spans of the entities to `keep`, or of all, and their types."""
    spans, types = list[tuple[int, int]](), list[str]()
    before, open_ = "", False  # the type of the token before, and whether its entity may go on
    for index, tag in enumerate(tags):
        prefix, _, entity = tag.partition("-")
        if tag != "O" and (prefix not in PREFIXES or not entity):
            raise CorpusError(f"Expected an entity tag such as O, B-x or I-x, not {tag!r}.")
        if tag != "O" and (keep is None or entity in keep):
            if prefix in "IEL" and before == entity and open_:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
                types.append(entity)
        before, open_ = entity, prefix in "BI"
    return spans, types


def is_bio(tags: Sequence[str]) -> bool:
    """Whether tags are those of entities: O, B-x and I-x, at least one of the last two."""
    named = [tag.partition("-") for tag in tags if tag != "O"]
    return bool(named) and all(prefix in ("B", "I") and name for prefix, _, name in named)


def entities(tags: Sequence[str | None]) -> set[tuple[int, int, str]]:
    """Returns the entities of a sentence: first word, last word plus one, type. An I-x that follows neither B-x nor I-x
    begins one, as the usual scorers have it.

    >>> sorted(entities(["B-PER", "I-PER", "O", "I-LOC"]))
    [(0, 2, 'PER'), (3, 4, 'LOC')]
    """
    spans, types = spans_of([tag or "O" for tag in tags])
    return {(start, end, name) for (start, end), name in zip(spans, types, strict=True)}


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Returns tags in which each entity begins with B-x; in IOB1 only those do that follow another of their type.

    >>> to_bio(["I-PER", "I-PER", "B-PER", "I-LOC", "O"])
    ('B-PER', 'I-PER', 'B-PER', 'B-LOC', 'O')
    """
    before = ["", *(tag.partition("-")[2] for tag in tags)]
    return tuple(
        f"B-{tag[2:]}" if tag.startswith("I-") and tag[2:] and tag[2:] != name else tag
        for tag, name in zip(tags, before, strict=False)
    )
