"""Rules for the tags of a sentence, as one writes them: "at least 1 VERB", "at most 3 ADJ", "no I-PER after O".

    at least N TAG        at least so many words have the tag
    at most N TAG         at most so many
    exactly N TAG         just so many
    no TAG                none
    no TAG after TAG      no word has the first tag right after a word with the second

Behind any of them, "or pay P" lets the rule be broken for a price P, in the unit of the costs; "or pay P each", for
that much for each word too many or too few.

Where a TAG stands, there may be several, joined by "or", and `*` stands for any letters: "at most 2 B-*". N is a whole
number, in digits or, up to ten, in words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Any

import numpy as np

from hasten.errors import SchemaError
from hasten.support.arrays import FloatArray
from hasten.support.checks import listed
from hasten.support.words import first_few

NUMBERS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
FORMS = (
    'It is "at least N TAG", "at most N TAG", "exactly N TAG", "no TAG" or "no TAG after TAG"; "or pay P" behind it '
    "lets it be broken for a price."
)
MOST = 10**9  # that a rule may count to


@dataclass(frozen=True, slots=True)
class Count:
    """How many words of a sentence have one of some tags."""

    text: str
    tags: tuple[str, ...]
    low: float = -math.inf
    high: float = math.inf
    price: float | None = None  # for which it may be broken
    per_unit: bool = False  # whether that is the price of each word too many or too few

    @property
    def limits(self) -> dict[str, Any]:
        """The settings that `Schema.rule` and `Structure.rule` take."""
        low, high = (limit if math.isfinite(limit) else None for limit in (self.low, self.high))
        return {"at_least": low, "at_most": high, "price": self.price, "per_unit": self.per_unit}


@dataclass(frozen=True, slots=True)
class Never:
    """Tags that may not come right after others."""

    text: str
    tags: tuple[str, ...]
    after: tuple[str, ...]
    price: float | None = None  # for which it may be broken, each time


def read_rule(text: str, tags: Sequence[str]) -> Count | Never:
    """Returns what a rule says, given the tags that there are.

    >>> read_rule("at least one VERB or AUX", ["AUX", "NOUN", "VERB"]).tags
    ('VERB', 'AUX')
    """
    if not isinstance(text, str):
        raise SchemaError(f"A rule is written in words, got {text!r}. {FORMS}")
    plain, price, per_unit = _price(text)
    counted = re.fullmatch(r"(at least|at most|exactly) (\S+) (.+)", plain, re.IGNORECASE)
    if counted:
        how, number, named = counted.groups()
        n = _number(text, number)
        found = _tags(text, named, tags)
        low, high = {"at least": (n, math.inf), "at most": (-math.inf, n), "exactly": (n, n)}[how.lower()]
        return Count(text, found, low, high, price, per_unit)
    never = re.fullmatch(r"no (.+?)(?: after (.+))?", plain, re.IGNORECASE)
    if never is None:
        raise SchemaError(f"Cannot read the rule {text!r}. {FORMS}")
    named, after = never.groups()
    if after is None:
        return Count(text, _tags(text, named, tags), high=0, price=price, per_unit=per_unit)
    return Never(text, _tags(text, named, tags), _tags(text, after, tags), price)


def _price(rule: str) -> tuple[str, float | None, bool]:
    """Returns a rule without its price, the price, and whether it is for each word."""
    plain = " ".join(rule.split())
    found = re.fullmatch(r"(.+?),? or pay (\S+)( each)?", plain, re.IGNORECASE)
    if found is None:
        return plain, None, False
    kept, price, each = found.groups()
    if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", price) or not float(price) > 0:
        raise SchemaError(f"The rule {rule!r} has the price {price!r}. Give a number above 0, such as 2.5.")
    return kept, float(price), each is not None


def _number(rule: str, number: str) -> int:
    n = NUMBERS.index(number.lower()) if number.lower() in NUMBERS else None
    if n is None and re.fullmatch(r"[0-9]{1,18}", number):
        n = int(number)
    if n is None or n > MOST:
        raise SchemaError(f"The rule {rule!r} counts to {number!r}. Give a whole number from 0 to {MOST:,}.")
    return n


def _tags(rule: str, named: str, tags: Sequence[str]) -> tuple[str, ...]:
    """Returns the tags that a rule names, each once."""
    found: dict[str, None] = {}
    for name in re.split(r" or ", named):
        matching = [name] if name in tags else [tag for tag in tags if "*" in name and fnmatchcase(tag, name)]
        if not matching:
            folded = {tag.lower(): tag for tag in tags}
            close = get_close_matches(name.lower(), folded, n=1)
            meant = f" Did you mean {folded[close[0]]}?" if close else ""
            raise SchemaError(
                f"The rule {rule!r} names the tag {name!r}, which is not there.{meant} "
                f"The tags are {first_few(tags, 40)}."
            )
        found |= dict.fromkeys(matching)
    return tuple(found)


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """All rules of a tagger: what is counted, which tags may follow which, and which may come first."""

    texts: tuple[str, ...]
    bio: bool
    counts: tuple[Count, ...]
    forbidden: FloatArray  # (n_tags, n_tags): inf where the second may not follow the first, 0 elsewhere
    prices: FloatArray  # (n_tags, n_tags): what it costs that the second follows the first, 0 where that is free
    first: FloatArray  # (n_tags,): inf for a tag that no sentence begins with, 0 elsewhere

    @classmethod
    def of(cls, tags: Sequence[str], texts: Iterable[str] = (), *, bio: bool = False) -> Rules:
        """Reads rules; with `bio`, an entity's I-x must follow its B-x or I-x."""
        texts, n = listed(texts, "The rules", SchemaError), len(tags)
        read = [read_rule(text, tags) for text in texts]
        place = {tag: i for i, tag in enumerate(tags)}
        forbidden, prices, first = np.zeros((n, n)), np.zeros((n, n)), np.zeros(n)
        if bio:
            inside, follows = _bio(tags)
            forbidden[:, inside] = np.inf
            forbidden[follows] = 0.0
            first[inside] = np.inf
        for rule in read:
            if isinstance(rule, Never):
                pairs = np.ix_([place[tag] for tag in rule.after], [place[tag] for tag in rule.tags])
                if rule.price is None:
                    forbidden[pairs] = np.inf
                else:
                    prices[pairs] += rule.price
        return cls(texts, bio, tuple(rule for rule in read if isinstance(rule, Count)), forbidden, prices, first)

    def broken(self, labels: Sequence[int], tags: Sequence[str]) -> list[str]:
        """Returns the rules that a sentence's tags break, in words; those with a price may be broken."""
        found = [
            rule.text
            for rule in self.counts
            if rule.price is None and not rule.low <= sum(tags[label] in rule.tags for label in labels) <= rule.high
        ]
        apart = [pair for pair in pairwise(labels) if self.forbidden[pair] > 0]
        found += [f"no {tags[right]} after {tags[left]}" for left, right in apart]
        return found + [f"no {tags[label]} at the beginning" for label in labels[:1] if self.first[label] > 0]


def _bio(tags: Sequence[str]) -> tuple[list[int], tuple[list[int], list[int]]]:
    """Returns the tags I-x, and the pairs (B-x or I-x, I-x) as two lists."""
    place = {tag: i for i, tag in enumerate(tags)}
    before, after = [], []
    for tag in tags:
        prefix, dash, name = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I") or not dash or not name):
            raise SchemaError(f"BIO tags are O, B-x and I-x, and there is a tag {tag!r}. Leave out the rule for BIO.")
        if prefix == "I" and tag != "O":
            if f"B-{name}" not in place:
                raise SchemaError(
                    f"There is a tag {tag!r} but no 'B-{name}', so that none can begin. Leave out the rule for BIO."
                )
            before += [place[f"B-{name}"], place[tag]]
            after += [place[tag], place[tag]]
    return sorted(set(after)), (before, after)
