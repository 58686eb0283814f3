"""Formulas of propositional logic, read into clauses: `(a and not b) -> c`. Nothing is evaluated as Python."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from itertools import product

from hasten.errors import ProgramError

Clause = frozenset[int]  # signed numbers of names, from 1
MAX_CLAUSES = 4096  # of one formula
MAX_DEPTH = 50
_TOKEN = re.compile(r"\s*(<->|->|[()]|'[^']*'|\"[^\"]*\"|[~!&|]|[^\s()~!&|<>'\"-]+(?:-(?!>)[^\s()~!&|<>'\"-]+)*)")
_WORDS = {"~": "not", "!": "not", "&": "and", "|": "or"}
Clauses = list[Clause]


def read_formula(formula: str, number: Mapping[str, int]) -> Clauses:
    """Returns the clauses of a formula: not, and, or, ->, <->, in this order of strength; ~ ! & | are short for words.

    Names with spaces, or that are such words, stand in quotes. `number` has the number of each name, from 1.
    """
    tokens, at = [], 0
    while formula[at:].strip():
        found = _TOKEN.match(formula, at)
        if found is None:
            raise ProgramError(
                f"There is {formula[at:].strip()[:10]!r}, which is no part of a formula, in {formula!r}."
            )
        tokens.append(_WORDS.get(found[1], found[1]))
        at = found.end()
    reader = _Reader(formula, tokens, number)
    both = reader.equivalence(0)
    if reader.tokens:
        raise ProgramError(f"{reader.tokens[0]!r} is not expected in {formula!r}.")
    return [clause for clause in both[0] if not any(-each in clause for each in clause)]


class _Reader:
    """Reads from the left. What is read is a pair: clauses that say it, and clauses that say that it does not hold."""

    def __init__(self, formula: str, tokens: list[str], number: Mapping[str, int]) -> None:
        self.formula, self.tokens, self.number = formula, tokens, number

    def _take(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def equivalence(self, depth: int) -> tuple[Clauses, Clauses]:
        left = self._implication(depth)
        while self._take("<->"):
            right = self._implication(depth)
            same = self._and(self._or(self._not(left), right), self._or(self._not(right), left))
            left = same
        return left

    def _implication(self, depth: int) -> tuple[Clauses, Clauses]:
        left = self._chain("or", self._or, lambda d: self._chain("and", self._and, self._literal, d), depth)
        return self._or(self._not(left), self._implication(self._deeper(depth))) if self._take("->") else left

    def _chain(
        self,
        word: str,
        join: Callable[[tuple[Clauses, Clauses], tuple[Clauses, Clauses]], tuple[Clauses, Clauses]],
        part: Callable[[int], tuple[Clauses, Clauses]],
        depth: int,
    ) -> tuple[Clauses, Clauses]:
        left = part(depth)
        while self._take(word):
            left = join(left, part(depth))
        return left

    def _literal(self, depth: int) -> tuple[Clauses, Clauses]:
        depth = self._deeper(depth)
        if self._take("not"):
            return self._not(self._literal(depth))
        if self._take("("):
            inner = self.equivalence(depth)
            if not self._take(")"):
                raise ProgramError(f"A bracket is not closed in {self.formula!r}.")
            return inner
        if not self.tokens or self.tokens[0] in ("and", "or", "->", "<->", ")"):
            what = repr(self.tokens[0]) if self.tokens else "the end"
            raise ProgramError(f"A label should stand before {what} in {self.formula!r}.")
        token = self.tokens.pop(0)
        name = token[1:-1] if token[0] in "'\"" else token
        if name not in self.number:
            raise ProgramError(
                f"There is no label {name!r}, which {self.formula!r} names. There are {', '.join(self.number)}."
            )
        return [frozenset([self.number[name]])], [frozenset([-self.number[name]])]

    def _deeper(self, depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise ProgramError(f"{self.formula[:40]!r}… is nested more than {MAX_DEPTH} deep.")
        return depth + 1

    def _not(self, one: tuple[Clauses, Clauses]) -> tuple[Clauses, Clauses]:
        return one[1], one[0]

    def _and(self, one: tuple[Clauses, Clauses], other: tuple[Clauses, Clauses]) -> tuple[Clauses, Clauses]:
        return self._few([*one[0], *other[0]]), self._either(one[1], other[1])

    def _or(self, one: tuple[Clauses, Clauses], other: tuple[Clauses, Clauses]) -> tuple[Clauses, Clauses]:
        return self._either(one[0], other[0]), self._few([*one[1], *other[1]])

    def _either(self, one: Clauses, other: Clauses) -> Clauses:
        if len(one) * len(other) > MAX_CLAUSES:
            self._few([frozenset[int]()] * (len(one) * len(other)))
        joined = (left | right for left, right in product(one, other))
        return self._few(list({clause for clause in joined if not any(-each in clause for each in clause)}))

    def _few(self, clauses: Clauses) -> Clauses:
        if len(clauses) > MAX_CLAUSES:
            raise ProgramError(
                f"{self.formula[:40]!r}… takes more than {MAX_CLAUSES:,} clauses. Say it in several formulas, or name "
                "its parts by labels of their own."
            )
        return clauses
