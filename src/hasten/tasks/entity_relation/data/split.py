"""Which labelled sentences train the black box, and which test it: drawn, or as files or published lists of ids say.

A list is a text file with an id a line, that of a sentence in the corpus. Sentences of `dev` are set aside: they
neither train nor test. Without a list for training, everything that no other list names trains; without one for
testing, it tests; with both, it is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.text.lines import open_lines

PARTS = ("train", "dev", "test")
TRAINS = 0.7  # of the labelled sentences, as in the paper


class Parts(NamedTuple):
    """The numbers of the sentences of each part."""

    train: list[int]
    test: list[int]
    dev: list[int] = []  # noqa: RUF012


@dataclass(frozen=True, slots=True)
class Place:
    """Where an id is listed."""

    path: str
    line: int
    part: str

    def __str__(self) -> str:
        return f"{self.path}, line {self.line}"


@dataclass(frozen=True, slots=True)
class Split:
    """Published lists: which part each id belongs to, and where that is said."""

    places: Mapping[str, Place]
    files: tuple[str, ...]  # what they are called in reports

    @classmethod
    def read(cls, options: Sequence[str], *, training: bool = True) -> Split:
        """Reads lists given as `PART=FILE`, or as `FILE` where its name says the part: train, dev or test.

        For training there must be one for training or for testing.
        """
        places: dict[str, Place] = {}
        named = [named_part(option) for option in options]
        for part, path in named:
            n_before = len(places)
            with open_lines(path) as lines:
                for line in lines:
                    id = line.strip()
                    if not id:
                        continue
                    if id in places:
                        raise CorpusError(f"The id {id!r} is listed already: {places[id]}. List each sentence once.")
                    places[id] = Place(path, lines.number, part)
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
                    f"Two sentences of the corpus have the id {sentence.id!r}, which {self.places[sentence.id]} lists. "
                    "Give each an id of its own."
                )
            numbers[sentence.id] = n
        for id, place in self.places.items():
            if id not in numbers:
                raise CorpusError(
                    f"{place}: No labelled sentence of the corpus has the id {id!r}. Check that the list belongs to "
                    f"it; its first ids are {', '.join(repr(each) for each in list(numbers)[:3])}. Of the paper's "
                    "corpus only sentences with a relation count."
                )
        listed = {place.part for place in self.places.values()}
        rest = "train" if "train" not in listed else "test" if "test" not in listed else ""
        parts: dict[str, list[int]] = {part: [] for part in (*PARTS, "")}
        for n, sentence in enumerate(sentences):
            said = self.places.get(sentence.id)
            parts[rest if said is None else said.part].append(n)
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
        for id, place in missing.items():
            raise CorpusError(f"{place}: No sentence has the id {id!r}. Check that the list belongs to the corpus.")


@dataclass(frozen=True, slots=True)
class Files:
    """Parts that come in files of their own, one after the other."""

    sizes: Mapping[str, int]
    files: tuple[str, ...]  # what they are called in reports

    @classmethod
    def of(cls, paths: Mapping[str, Path], sizes: Mapping[str, int]) -> Files:
        """Returns the parts in these files, which hold so many sentences that can be used."""
        return cls(dict(sizes), tuple(f"{part}: {path.name}" for part, path in paths.items()))

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
