"""Sentences whose words have tags; `formats` reads them from files, `synthetic` makes them up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace

from hasten.errors import CorpusError


@dataclass(frozen=True, slots=True)
class Tagged:
    """One sentence, with a tag for each word where these are known, and rules of its own, if any."""

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...] | None = None
    rules: tuple[str, ...] = ()  # that hold for this sentence alone; `rules.read_rule` says how they are written

    def __post_init__(self) -> None:
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
