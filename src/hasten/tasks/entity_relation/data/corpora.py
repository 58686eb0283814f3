"""The text that a black box is trained on and a speedup learns from: labelled sentences, and text without labels.

Which labelled sentences train, and which test, is drawn, or files or published lists of ids say it. A list is a text
file with an id a line, that of a sentence in the corpus. Sentences of `dev` are set aside: they neither train nor test.
Without a list for training, everything that no other list names trains; without one for testing, it tests; with both,
it is left out.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.support.checks import brief
from hasten.support.terminal import Progress, no_progress
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.data.formats import read_corpus
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.text.lines import MAX_LINE, Faults, check_readable, open_lines

PARTS = ("train", "dev", "test")
TRAINS = 0.7  # of the labelled sentences, as in the paper
# The paper's corpus: its protocol, and its figures, belong to that one alone.
PAPER_SENTENCES = 1441
PAPER_RELATIONS = {"LiveIn": 521, "OrgBasedIn": 452, "LocatedAt": 406, "WorkFor": 401, "Kill": 268}
PAPER_TYPES = {"location": 1968, "person": 1691, "organization": 984, "none": 706}
UNLABELED = 10  # made-up sentences without labels, for each that has them


class Parts(NamedTuple):
    """The numbers of the sentences of each part."""

    train: list[int]
    test: list[int]
    dev: list[int] = []  # noqa: RUF012


@dataclass(frozen=True, slots=True)
class Split:
    """Published lists: which part each id belongs to, and where that is said."""

    places: Mapping[str, tuple[str, str]]  # of each id: its part, and the file and the line that list it
    files: tuple[str, ...]  # what they are called in reports

    @classmethod
    def read(cls, options: Sequence[str], *, training: bool = True) -> Split:
        """Reads lists given as `PART=FILE`, or as `FILE` where its name says the part: train, dev or test.

        For training there must be one for training or for testing.
        """
        places: dict[str, tuple[str, str]] = {}
        named = [named_part(option) for option in options]
        for part, path in named:
            n_before = len(places)
            with open_lines(path) as lines:
                for line in lines:
                    id = line.strip()
                    if not id:
                        continue
                    if id in places:
                        raise CorpusError(f"The id {id!r} is listed already: {places[id][1]}. List each sentence once.")
                    places[id] = part, f"{path}, line {lines.number}"
            if len(places) == n_before:
                raise CorpusError(f"{path} lists no id. Give a text file with the id of a sentence on each line.")
        if training and not {"train", "test"} & {part for part, _ in named}:
            raise CorpusError("A split needs a list for training or for testing: --split train=FILE, test=FILE.")
        return cls(places, tuple(f"{part}: {Path(path).name}" for part, path in named))

    def apply(self, sentences: Sequence[Sentence]) -> Parts:
        """Returns which of the sentences belong to which part, in the order of the corpus."""
        numbers: dict[str, int] = {}
        for n, sentence in enumerate(sentences):
            if sentence.id in self.places and sentence.id in numbers:
                raise CorpusError(
                    f"Two sentences of the corpus have the id {sentence.id!r}, which {self.places[sentence.id][1]} "
                    "lists. Give each an id of its own."
                )
            numbers[sentence.id] = n
        for id, (_, place) in self.places.items():
            if id not in numbers:
                raise CorpusError(
                    f"{place}: No labelled sentence of the corpus has the id {brief(id)}. Check that the list belongs "
                    f"to it; its first ids are {', '.join(repr(each) for each in list(numbers)[:3])}. Of the paper's "
                    "corpus only sentences with a relation count."
                )
        listed = {part for part, _ in self.places.values()}
        rest = "train" if "train" not in listed else "test" if "test" not in listed else ""
        parts: dict[str, list[int]] = {part: [] for part in (*PARTS, "")}
        for n, sentence in enumerate(sentences):
            parts[self.places.get(sentence.id, (rest, ""))[0]].append(n)
        del parts[""]
        for part, purpose in (("train", "to train on"), ("test", "to test on")):
            if not parts[part]:
                raise CorpusError(f"The split leaves no sentence {purpose}. List fewer in the other parts.")
        return Parts(**parts)

    def only(self, sentences: Iterable[Sentence]) -> Iterator[Sentence]:
        """Yields the sentences that are listed, of any part; an id that no sentence has is an error."""
        missing = dict(self.places)
        for sentence in sentences:
            if sentence.id in self.places:
                missing.pop(sentence.id, None)
                yield sentence
        for id, (_, place) in missing.items():
            raise CorpusError(
                f"{place}: No sentence has the id {brief(id)}. Check that the list belongs to the corpus."
            )


@dataclass(frozen=True, slots=True)
class Files:
    """Parts that come in files of their own, one after the other."""

    sizes: Mapping[str, int]  # sentences that can be used
    files: tuple[str, ...]  # what they are called in reports

    def apply(self, sentences: Sequence[Sentence]) -> Parts:
        """Returns which of the sentences, all files together, belong to which part; without a test, dev tests."""
        ends = accumulate(self.sizes.values())
        parts = {part: list(range(end - self.sizes[part], end)) for part, end in zip(self.sizes, ends, strict=True)}
        if "test" not in parts:
            parts["test"] = parts.pop("dev")
        return Parts(**parts)


def named_part(option: str) -> tuple[str, str]:
    """Returns the part and the file that an option names."""
    part, equals, path = option.partition("=")
    if equals and part in PARTS:
        if not path:
            raise CorpusError(f"--split {option}: no file is named. Write {part}=FILE.")
        return part, path
    words = [word for word in re.split(r"[^a-z]+", Path(option).name.lower()) if word in PARTS]
    if len(set(words)) != 1:
        raise CorpusError(
            f"--split {option}: which part is it? Name it, {', '.join(f'{each}=FILE' for each in PARTS[:-1])} or "
            f"{PARTS[-1]}=FILE, or let the file's name say it."
        )
    return words[0], option


def parts_of(sentences: Sequence[Sentence], lists: Split | Files | None, seed: int) -> Parts:
    """Returns which sentences train and which test: as lists or files say, or else 70% and 30%, drawn."""
    return Parts(*split(range(len(sentences)), TRAINS, seed)) if lists is None else lists.apply(sentences)


@dataclass(frozen=True, slots=True)
class Reading:
    """How corpora are read: what unrelated pairs are called, if a corpus lists them; what is refused; how."""

    no_relation: str | None = None
    faults: Faults | None = None
    max_line: int = MAX_LINE  # characters
    progress: Progress = no_progress

    def sentences(self, path: Path) -> list[Sentence]:
        """Reads a file whole."""
        self.progress(f"Reading {path.name}", None)
        found = read_corpus(path, max_line=self.max_line, faults=self.faults)
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
        for other in (dev, test):
            if other is not None and os.path.samefile(other, corpus):
                raise CorpusError(f"{other} trains, and so says nothing about other sentences. Name a file of those.")
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
            files = Files(sizes, tuple(f"{part}: {path.name}" for part, path in parts.items()))
        elif is_papers_corpus(related):
            labelled, unrelated = related, [each for each in read["train"] if not each.relations]
            rest = [sentence.unlabeled() for sentence in unrelated]
        for path in unlabeled:
            rest += [sentence.unlabeled() for sentence in reading.sentences(path)]
        rest = [sentence for sentence in rest if len(sentence.spans) > 1]
        random.Random(seed).shuffle(rest)
        source = ", ".join(path.name for path in (*parts.values(), *unlabeled))
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


def is_papers_corpus(sentences: Iterable[Sentence]) -> bool:
    """Whether labelled sentences are those of the paper: as many, with as many of each relation and of each type."""
    sentences = list(sentences)
    relations = Counter(name for sentence in sentences for _, _, name in sentence.relations or ())
    types = Counter(name for sentence in sentences for name in sentence.types or ())
    return len(sentences) == PAPER_SENTENCES and relations == PAPER_RELATIONS and types == PAPER_TYPES
