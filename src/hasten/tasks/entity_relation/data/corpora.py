"""What a black box is trained on and what a speedup learns from: labelled sentences, and text without labels."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hasten.errors import CorpusError
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.data.formats.lines import MAX_LINE, check_readable
from hasten.tasks.entity_relation.data.synthetic import generate

REMEDY = "Turn it into JSON lines first: hasten convert, with --format one of"
UNLABELED = 10  # made-up sentences without labels, for each that has them


@dataclass(frozen=True, slots=True)
class Corpora:
    """Labelled sentences, each with a relation, and unlabeled ones; `source` is what they are called in reports."""

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    source: str
    synthetic: bool = False

    @classmethod
    def read(
        cls,
        corpus: Path,
        unlabeled: Sequence[Path] = (),
        *,
        max_line: int = MAX_LINE,
        seed: int = 0,
        tell: Tell = tell_nobody,
    ) -> Corpora:
        """Reads a labelled corpus, and more text whose labels, if there are any, are left out.

        Sentences without relations are used without their labels, if they have two spans or more: with fewer there is
        nothing to relate. A line of more than `max_line` characters is an error.
        """
        for path in (corpus, *unlabeled):
            check_readable(path)
        tell(f"Reading {corpus.name}", None)
        sentences = list(read_corpus(corpus, max_line=max_line, remedy=REMEDY))
        labelled = [sentence for sentence in sentences if sentence.relations]
        if not labelled:
            raise CorpusError(f"{corpus} has no sentence with a relation. Give an annotated corpus.")
        rest = [sentence.unlabeled() for sentence in sentences if not sentence.relations]
        for path in unlabeled:
            tell(f"Reading {path.name}", None)
            rest += [sentence.unlabeled() for sentence in read_corpus(path, max_line=max_line, remedy=REMEDY)]
        rest = [sentence for sentence in rest if len(sentence.spans) > 1]
        random.Random(seed).shuffle(rest)
        return cls(labelled, rest, ", ".join(path.name for path in (corpus, *unlabeled)))

    @classmethod
    def made_up(cls, n: int, seed: int = 0) -> Corpora:
        """Makes up at most `n` labelled sentences, and ten times as many without labels."""
        labelled = [sentence for sentence in generate(2 * n, seed) if sentence.relations][:n]
        unlabeled = list(generate(UNLABELED * n, seed + 1, labelled=False))
        return cls(labelled, unlabeled, "synthetic news, made for hasten", synthetic=True)
