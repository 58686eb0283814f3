"""A slow, strict reader of VIPR certificates, version 1.0: what scipopt's `viprchk` does, in exact fractions."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import NamedTuple

SENSES = {"E": 0, "L": -1, "G": 1}


class WrongError(Exception):
    """The certificate does not hold."""


class Constraint(NamedTuple):
    """Terms, a sense and a limit; the assumptions that it rests on."""

    terms: dict[int, Fraction]
    sense: int
    limit: Fraction
    assumed: frozenset[int] = frozenset()

    @property
    def absurd(self) -> bool:
        """Whether nothing keeps it."""
        above, below = self.sense >= 0 and self.limit > 0, self.sense <= 0 and self.limit < 0
        return not self.terms and (above or below)

    def dominates(self, other: Constraint) -> bool:
        """Whether all that keeps this keeps the other."""
        if self.absurd:
            return True
        if self.terms != other.terms:
            return False
        if other.sense == 0:
            return self.sense == 0 and self.limit == other.limit
        if self.sense not in (0, other.sense):
            return False
        return self.limit >= other.limit if other.sense > 0 else self.limit <= other.limit

    def holds(self, x: dict[int, Fraction]) -> bool:
        """Whether values keep it."""
        total = sum((weight * x.get(j, Fraction(0)) for j, weight in self.terms.items()), Fraction(0))
        return {0: total == self.limit, -1: total <= self.limit, 1: total >= self.limit}[self.sense]


def need(condition: object, reason: str) -> None:
    if not condition:
        raise WrongError(reason)


class Reader:
    """Reads the words of a file."""

    def __init__(self, text: str) -> None:
        lines = [line for line in text.splitlines() if not line.startswith("%")]
        self.words: Iterator[str] = iter(" ".join(lines).split())
        self.objective: dict[int, Fraction] = {}
        self.n = 0

    def say(self, *expected: str) -> None:
        for word in expected:
            found = next(self.words)
            need(found == word, f"{word} expected, not {found}")

    def whole(self, below: float = math.inf, least: int = 0) -> int:
        number = int(next(self.words))
        need(least <= number < below, f"{number} is out of bounds")
        return number

    def value(self) -> Fraction:
        return Fraction(next(self.words))

    def terms(self) -> dict[int, Fraction]:
        word = next(self.words)
        if word == "OBJ":
            return self.objective
        return self.pairs(int(word), self.n)

    def pairs(self, size: int, below: int) -> dict[int, Fraction]:
        found = [(self.whole(below), self.value()) for _ in range(size)]
        need(len({n for n, _ in found}) == size, "an index is there twice")
        return {n: x for n, x in found if x}

    def constraint(self) -> Constraint:
        next(self.words)  # its name
        sense = SENSES[next(self.words)]
        limit = self.value()
        return Constraint(self.terms(), sense, limit)


def combined(used: dict[int, Fraction], known: list[Constraint]) -> Constraint:
    """Returns a suitable linear combination."""
    signs = {known[n].sense * (1 if x > 0 else -1) for n, x in used.items()} - {0}
    need(len(signs) <= 1, "senses do not agree")
    terms: dict[int, Fraction] = {}
    for n, x in used.items():
        for j, weight in known[n].terms.items():
            terms[j] = terms.get(j, Fraction(0)) + x * weight
    limit = sum((x * known[n].limit for n, x in used.items()), Fraction(0))
    assumed = frozenset[int]().union(*(known[n].assumed for n in used))
    return Constraint({j: x for j, x in terms.items() if x}, *signs or {0}, limit, assumed)


def rounded(given: Constraint, whole: set[int]) -> Constraint:
    need(all(j in whole and x.denominator == 1 for j, x in given.terms.items()), "this cannot be rounded")
    limit = given.limit
    if given.sense:
        limit = Fraction(math.ceil(limit) if given.sense > 0 else math.floor(limit))
    return given._replace(limit=limit)


def unsplit(reader: Reader, stated: Constraint, known: list[Constraint], whole: set[int]) -> frozenset[int]:
    one, asked, other, denied = (reader.whole(len(known)) for _ in range(4))
    need(known[one].dominates(stated) and known[other].dominates(stated), "a part shows less")
    a, b = sorted((known[asked], known[denied]), key=lambda each: each.sense)
    need((a.sense, b.sense) == (-1, 1) and a.terms == b.terms, "these are no opposites")
    need(a.limit.denominator == 1 and b.limit == a.limit + 1, "numbers lie in between")
    need(all(j in whole and x.denominator == 1 for j, x in a.terms.items()), "they are not about whole numbers")
    return (known[one].assumed - {asked}) | (known[other].assumed - {denied})


def check(text: str) -> str:
    """Checks a file, and returns what it shows."""
    reader = Reader(text)
    reader.say("VER", "1.0", "VAR")
    reader.n = reader.whole()
    names = [next(reader.words) for _ in range(reader.n)]
    need(len(set(names)) == reader.n, "a name is there twice")
    reader.say("INT")
    whole = {reader.whole(reader.n) for _ in range(reader.whole())}
    reader.say("OBJ", "min")
    reader.objective = reader.terms()
    reader.say("CON")
    m, n_bounds = reader.whole(), reader.whole()
    known = [reader.constraint() for _ in range(m)]
    need(all(len(each.terms) == 1 for each in known[:n_bounds]), "bounds come first")
    reader.say("RTP")
    goal = next(reader.words)
    low, high = (next(reader.words), next(reader.words)) if goal == "range" else ("", "inf")
    reader.say("SOL")
    best: list[Fraction] = []
    for _ in range(reader.whole()):
        next(reader.words)
        x = reader.terms()
        need(all(v.denominator == 1 for j, v in x.items() if j in whole), "a value is not whole")
        need(all(each.holds(x) for each in known), "a solution breaks a constraint")
        best.append(sum((reader.objective.get(j, Fraction(0)) * v for j, v in x.items()), Fraction(0)))
    need(high == "inf" or (best and min(best) <= Fraction(high)), "no solution is as good as is claimed")
    reader.say("DER")
    for _ in range(reader.whole()):
        stated = reader.constraint()
        reader.say("{")
        kind = next(reader.words)
        if kind == "asm":
            assumed = frozenset({len(known)})
        elif kind == "uns":
            assumed = unsplit(reader, stated, known, whole)
        else:
            need(kind in ("lin", "rnd"), f"there is no reason {kind}")
            found = combined(reader.pairs(reader.whole(), len(known)), known)
            found = rounded(found, whole) if kind == "rnd" else found
            need(found.dominates(stated), "a combination shows less")
            assumed = found.assumed
        reader.say("}", "-1")
        known.append(stated._replace(assumed=assumed))
    need(next(reader.words, None) is None, "there is more")
    need(not known[-1].assumed, "assumptions are left")
    if goal == "infeas":
        need(known[-1].absurd, "that is not absurd")
        return "infeasible"
    need(known[-1].dominates(Constraint(reader.objective, 1, Fraction(low))), "the bound is not shown")
    return f"{low} {high}"
