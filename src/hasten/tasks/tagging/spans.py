"""Entities in BIO tags: which words they span, and what they are."""

from __future__ import annotations

from collections.abc import Sequence


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
    found, start, before = set(), 0, ""
    for n, tag in enumerate([*tags, "O"]):
        prefix, _, name = (tag or "O").partition("-")
        if before and (prefix != "I" or name != before):
            found.add((start, n, before))
            before = ""
        if name and not before:
            start, before = n, name
    return found


def to_bio(tags: Sequence[str]) -> tuple[str, ...]:
    """Returns tags in which each entity begins with B-x; in IOB1 only those do that follow another of their type.

    >>> to_bio(["I-PER", "I-PER", "B-PER", "I-LOC", "O"])
    ('B-PER', 'I-PER', 'B-PER', 'B-LOC', 'O')
    """
    found, before = [], ""
    for tag in tags:
        prefix, _, name = tag.partition("-")
        found.append(f"B-{name}" if prefix == "I" and name and name != before else tag)
        before = name
    return tuple(found)
