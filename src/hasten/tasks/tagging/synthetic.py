"""Made-up news with a tag a word, for tests and examples: parts of speech, or entities in BIO.

The sentences are those of `tasks.entity_relation.data.synthetic`.
"""

from __future__ import annotations

from collections.abc import Iterator

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.synthetic import generate as generate_news
from hasten.tasks.tagging.corpus import Tagged

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
