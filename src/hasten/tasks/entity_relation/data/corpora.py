"""What a black box is trained on and what a speedup learns from: labelled sentences, and text without labels."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hasten.errors import CorpusError
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.data.split import PARTS, Files, Split, parts_of
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.text.lines import MAX_LINE, Faults, check_readable

REMEDY = "Turn it into JSON lines first: hasten convert, with --format one of"
# The paper's corpus: its protocol, and its figures, belong to that one alone.
PAPER_SENTENCES = 1441
PAPER_RELATIONS = {"LiveIn": 521, "OrgBasedIn": 452, "LocatedAt": 406, "WorkFor": 401, "Kill": 268}
PAPER_TYPES = {"location": 1968, "person": 1691, "organization": 984, "none": 706}

UNLABELED = 10  # made-up sentences without labels, for each that has them


@dataclass(frozen=True, slots=True)
class Reading:
    """How corpora are read: what unrelated pairs are called, if a corpus lists them; what is refused; how."""

    no_relation: str | None = None
    faults: Faults | None = None
    max_line: int = MAX_LINE  # characters
    tell: Tell = tell_nobody

    def sentences(self, path: Path) -> list[Sentence]:
        """Reads a file whole."""
        self.tell(f"Reading {path.name}", None)
        found = read_corpus(path, max_line=self.max_line, remedy=REMEDY, faults=self.faults)
        return list(found) if self.no_relation is None else [each.without(self.no_relation) for each in found]


@dataclass(frozen=True, slots=True)
class Corpora:
    """Labelled sentences and unlabeled ones; `source` is what they are called in reports.

    Labelled ones may have no relation, which is a label too: that there is none. Only of the paper's own corpus such
    sentences are set aside, as the paper did: they are among the unlabeled ones, and `unrelated` has their labels.
    """

    labelled: Sequence[Sentence]
    unlabeled: Sequence[Sentence]
    source: str
    synthetic: bool = False
    unrelated: Sequence[Sentence] = ()
    files: Files | None = None  # which of the labelled ones train or test, where files say it

    @classmethod
    def read(
        cls,
        corpus: Path,
        unlabeled: Sequence[Path] = (),
        *,
        dev: Path | None = None,
        test: Path | None = None,
        reading: Reading | None = None,
        seed: int = 0,
    ) -> Corpora:
        """Reads a labelled corpus, in one file or with parts of its own to develop and to test on, and more text.

        Of the additional text labels are left out, if there are any, and so are sentences with fewer than two spans:
        there is nothing to relate. So are sentences that are not annotated in a labelled file.
        """
        reading = reading or Reading()
        parts = {part: path for part, path in zip(PARTS, (corpus, dev, test), strict=True) if path is not None}
        for path in (*parts.values(), *unlabeled):
            check_readable(path)
        read = {part: reading.sentences(path) for part, path in parts.items()}
        every = {part: [each for each in sentences if each.annotated] for part, sentences in read.items()}
        for part, path in parts.items():
            if not any(sentence.relations for sentence in every[part]):
                raise CorpusError(f"{path} has no sentence with a relation. Give an annotated corpus.")
        rest = [each.unlabeled() for sentences in read.values() for each in sentences if not each.annotated]
        labelled = [sentence for sentences in every.values() for sentence in sentences if sentence.spans]
        related, unrelated = [each for each in labelled if each.relations], list[Sentence]()
        files = None
        if len(parts) > 1:
            sizes = {part: sum(bool(each.spans) for each in sentences) for part, sentences in every.items()}
            files = Files.of(parts, sizes)
        elif is_papers_corpus(related):
            labelled, unrelated = related, [each for each in read["train"] if not each.relations]
            rest = [sentence.unlabeled() for sentence in unrelated]
        for path in unlabeled:
            rest += [sentence.unlabeled() for sentence in reading.sentences(path)]
        rest = [sentence for sentence in rest if len(sentence.spans) > 1]
        random.Random(seed).shuffle(rest)
        source = _names((*parts.values(), *unlabeled))
        return cls(labelled, rest, source, unrelated=[each for each in unrelated if each.spans], files=files)

    def to_train(self, lists: Split | None = None) -> tuple[list[Sentence], list[Sentence], str]:
        """Returns the sentences to train on, those to try the result on, if files or lists name any, and their part.

        That is dev, or else test.
        """
        every = [*self.labelled, *self.unrelated]
        if lists is not None and self.files is not None:
            raise CorpusError("The dev sentences come in a file of their own. Leave out --split, or that file.")
        if lists is None and self.files is None:
            return every, [], ""
        parts = parts_of(self.labelled if lists is None else every, lists or self.files, 0)
        part = "test" if lists is not None and not parts.dev else "dev"
        return [every[n] for n in parts.train], [every[n] for n in parts.dev or parts.test], part

    @classmethod
    def made_up(cls, n: int, seed: int = 0) -> Corpora:
        """Makes up at most `n` labelled sentences, and ten times as many without labels."""
        labelled = [sentence for sentence in generate(2 * n, seed) if sentence.relations][:n]
        unlabeled = list(generate(UNLABELED * n, seed + 1, labelled=False))
        return cls(labelled, unlabeled, "synthetic news, made for hasten", synthetic=True)


def _names(paths: Iterable[Path]) -> str:
    return ", ".join(path.name for path in paths)


def is_papers_corpus(sentences: Iterable[Sentence]) -> bool:
    """Whether labelled sentences are those of the paper: as many, with as many of each relation and of each type."""
    sentences = list(sentences)
    relations = Counter(name for sentence in sentences for _, _, name in sentence.relations or ())
    types = Counter(name for sentence in sentences for name in sentence.types or ())
    return len(sentences) == PAPER_SENTENCES and relations == PAPER_RELATIONS and types == PAPER_TYPES
