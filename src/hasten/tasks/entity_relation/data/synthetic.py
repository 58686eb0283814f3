"""Sentences like those of a newspaper, made up, with every entity and relation known.

They stand in for corpora that may not be shipped: in tests, in examples and wherever a figure must be
reproducible by everybody. A grammar writes them, `news/grammar.txt`, which begins with how to read it. A line

    {a:person} lives in {b:town} <when> => a LiveIn b

names two entities, refers to another symbol, and states the relations that it expresses. Nothing is related but
what a line says, so "flew to" or "was cleared of killing" mislead a reader who only looks for "to" and "killing".
`news/lexicon.txt` has the words' parts of speech.

Names are put together from syllables, and many endings serve people, towns and companies alike: a test set is
full of names that were not seen in training, and "Marlow" may be any of the three.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from itertools import product
from typing import NamedTuple

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence

MIN_ENTITIES, MAX_ENTITIES = 2, 8

BEGINNINGS = "B Br C D F G Gr H K L M N P Pr Qu R S St T Th V W Wh Z"
MIDDLES = "ad ald arl arn ask av ell end inn irk olt orv und"
SHARED_ENDINGS = "ow ton ley ford by er an " * 4  # a person, a town or a company
NAME_ENDINGS = {
    "surname": SHARED_ENDINGS + "son man ick well sky etti ova",
    "townname": SHARED_ENDINGS + "burg ville port field mouth stead grad",
    "companyname": SHARED_ENDINGS + "ex ica tek ero dyne",
    "countryname": "ia land istan avia ow ton ley ford",
    "nationname": "ian ish ese",
}
FIRST_NAMES = """
Ada Bruno Clara Dmitri Elsa Felix Greta Hugo Ines Jonas Karin Leo Mara Nils Olga Pavel Rosa Simon Tessa
Viktor Wanda Yusuf Zoe Amir Beatriz Carlos Dora Emil Fatima Georg Hana Ivan Julia Kofi Lena Marco Nadia
Oscar Petra Rafael
"""
PUNCTUATION = frozenset(",.;")
WORD, SYMBOL, ENTITY = range(3)


class Line(NamedTuple):
    """One way to write a symbol: its items in order, and the relations between its entities."""

    items: tuple[tuple[int, tuple[str, str]], ...]  # (WORD, (word, tag)), (SYMBOL, (name, "")), (ENTITY, (name, kind))
    relations: tuple[tuple[str, str, str], ...] = ()  # source, name, target


class Grammar(NamedTuple):
    """All ways to write each symbol, and the type of each kind of entity."""

    symbols: dict[str, list[Line]]
    types: dict[str, str]


def generate(n: int, seed: int, labelled: bool = True) -> Iterator[Sentence]:
    """Writes `n` sentences of 2 to 8 entities; a seed gives the same ones whatever `n` and `labelled` are."""
    if n < 0:
        raise CorpusError(f"Cannot write {n} sentences. Ask for 0 or more.")
    chance = random.Random(seed)
    for number in range(n):
        draft = _Draft(chance)
        while not MIN_ENTITIES <= len(draft.spans) <= MAX_ENTITIES:
            draft = _Draft(chance)
            draft.write("sentence")
        yield draft.finish(f"synthetic-{number}", labelled)


class _Draft:
    """A sentence while it is being written."""

    __slots__ = ("chance", "grammar", "relations", "spans", "types", "words")

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.grammar = news()
        self.words: list[tuple[str, str]] = []
        self.spans: list[tuple[int, int]] = []
        self.types: list[str] = []
        self.relations: list[tuple[int, int, str]] = []

    def write(self, symbol: str) -> None:
        lines = self.grammar.symbols[symbol]
        items, relations = lines[int(self.chance.random() * len(lines))]
        entities = {}
        for form, item in items:
            if form == WORD:
                self.add(item)
            elif form == SYMBOL:
                self.write(item[0])
            else:
                entities[item[0]] = len(self.spans)
                self.name(item[1])
        for source, name, target in relations:
            self.relations.append((entities[source], entities[target], name))

    def add(self, word: tuple[str, str]) -> None:
        if word[0] in PUNCTUATION and self.words and self.words[-1][0] == ",":
            self.words.pop()  # nothing came after that comma
        self.words.append(word)

    def name(self, kind: str) -> None:
        start = len(self.words)
        self.write(kind)
        if self.words[start][1] == "DT":
            start += 1  # an article is not part of a name
        self.spans.append((start, len(self.words)))
        self.types.append(self.grammar.types[kind])

    def finish(self, id: str, labelled: bool) -> Sentence:
        tokens = [word for word, _ in self.words]
        for index, token in enumerate(tokens):
            if token == "a" and tokens[index + 1][0] in "aeioAEIO":
                tokens[index] = "an"
            if index == 0 or tokens[index - 1] in ("``", "--"):
                tokens[index] = tokens[index][0].upper() + tokens[index][1:]
        return Sentence(
            id=id,
            tokens=tuple(tokens),
            spans=tuple(self.spans),
            pos=tuple(tag for _, tag in self.words),
            types=tuple(self.types) if labelled else None,
            relations=tuple(self.relations) if labelled else None,
        )


def read_lexicon(text: str) -> dict[str, str]:
    """Reads lines of a tag and its words; returns the tag of each word."""
    rows = [line.split(": ") for line in _written(text)]
    return {word: tag for tag, words in rows for word in words.split()}


def read_grammar(text: str, tags: dict[str, str]) -> tuple[dict[str, list[Line]], dict[str, str]]:
    """Reads symbols; returns the lines of each, as often as they count, and the types of those that write entities.

    A choice becomes a symbol of its own, named by its text.
    """
    symbols: dict[str, list[Line]] = {}
    types: dict[str, str] = {}

    def read(line: str) -> Line:
        items = []
        written, _, related = line.partition("=>")
        for part in re.findall(r"\((?! )[^)]+\)|\S+", written):
            if part[0] == "(" and len(part) > 1:
                symbols.setdefault(part, [read(choice) for choice in part[1:-1].split("|")])
                items.append((SYMBOL, (part, "")))
            elif part[0] == "<":
                items.append((SYMBOL, (part[1:-1], "")))
            elif part[0] == "{":
                name, _, kind = part[1:-1].partition(":")
                items.append((ENTITY, (name, kind)))
            else:
                word, _, tag = part.partition("_")
                items.append((WORD, (word, tag or tags[word])))
        relations = [tuple(relation.split()) for relation in related.split(",") if relation]
        return Line(tuple(items), tuple((source, name, target) for source, name, target in relations))

    for line in _written(re.sub(r"\s+=>", " =>", text)):
        if not line[0].isspace():
            symbol, _, kind = line.partition(":")
            symbols[symbol] = lines = []
            if kind:
                types[symbol] = kind.strip()
        else:
            weight, rest = re.fullmatch(r"\s*(\d*)(?![\w])(.*)", line).groups()  # type: ignore[union-attr]
            lines.extend([read(rest)] * int(weight or 1))
    return symbols, types


def _written(text: str) -> list[str]:
    """Returns all lines but blank ones and comments."""
    return [line for line in text.splitlines() if line.strip() and line.lstrip()[0] != "#"]


@cache
def news() -> Grammar:
    """Returns the grammar of the news; it has tens of thousands of names, so it is made when it is needed."""
    room = files("hasten.tasks.entity_relation.data") / "news"
    tags = read_lexicon((room / "lexicon.txt").read_text(encoding="utf-8"))
    symbols, types = read_grammar((room / "grammar.txt").read_text(encoding="utf-8"), tags)
    letters = "ABCDEFGHIKLMNOPRSTUVW"
    names = {
        symbol: ["".join(parts) for parts in product(BEGINNINGS.split(), MIDDLES.split(), endings.split())]
        for symbol, endings in NAME_ENDINGS.items()
    }
    names["first"] = FIRST_NAMES.split()
    names["initial"] = [letter + "." for letter in letters]
    names["acronym"] = ["".join(three) for three in product(letters, repeat=3)]
    for symbol, words in names.items():
        tag = "JJ" if symbol == "nationname" else "NNP"
        symbols[symbol] = [Line(((WORD, (word, tag)),)) for word in words]
    return Grammar(symbols, types)
