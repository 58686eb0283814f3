"""Clauses: `.cnf` files of DIMACS, and `.wcnf` files with weights, in the format of 2022 (`h` for hard) or before.

The objective is the weight of the soft clauses that are broken, as MaxSAT solvers count it. A soft clause of one
literal is a coefficient; a longer one has a column that says whether it is broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_whole, shown, split
from hasten.programs.statement import MAX_COLUMNS, MAX_ROWS, Builder, Statement

LARGEST = 2**53  # of a weight, beyond which sums are not exact


def read_cnf(text: Text) -> Statement:
    """Reads clauses that must all hold."""
    reader = _Reader(text)
    for words in reader.records("cnf"):
        reader.hard(words)
    return reader.done()


def read_wcnf(text: Text) -> Statement:
    """Reads hard clauses, and soft ones with weights."""
    reader = _Reader(text)
    for words in reader.records("wcnf"):
        weight, literals = words[0], words[1:]
        if weight == "h":
            reader.hard(literals)
            continue
        value = as_whole(weight, "The weight of a clause, before its literals,", 0, LARGEST)
        if reader.top is not None and value >= reader.top:
            reader.hard(literals)
        else:
            reader.soft(value, literals)
    return reader.done()


class _Reader:
    """Writes clauses to a builder."""

    def __init__(self, text: Text) -> None:
        self.text, self.build = text, Builder(name=text.name)
        self.columns: list[int] = []  # by variable
        self.top: int | None = None  # the weight of hard clauses, in files that say one
        self._promised: tuple[int, int] | None = None  # variables and clauses
        self._n_clauses = 0

    def records(self, kind: str) -> Iterator[list[str]]:
        """Yields the words of each clause, without the 0 at its end."""
        words: list[str] = []
        for line in self.text.lines():
            said = split(line)
            if not said or (said[0] == "c" and not words):
                continue
            if said[0] == "%":  # older files end so
                break
            if said[0] == "p":
                self._head(kind, said)
                continue
            if self._promised is None and kind == "cnf":
                raise ProgramError("The line `p cnf <variables> <clauses>` should come before the first clause.")
            words += said
            while "0" in words:
                end = words.index("0")
                if not words[:end] and kind == "wcnf":
                    end = words.index("0", 1) if "0" in words[1:] else len(words)  # a weight of 0
                    if end == len(words):
                        break
                self._n_clauses += 1
                yield words[:end]
                words = words[end + 1 :]
        if words:
            raise ProgramError(f"The last clause has no 0 at its end; its words are {shown(' '.join(words))}.")

    def _head(self, kind: str, said: list[str]) -> None:
        if self._promised is not None or self._n_clauses:
            raise ProgramError("There is more than one line that begins with p, or it comes after a clause.")
        if len(said) not in ((4,) if kind == "cnf" else (4, 5)) or said[1] != kind:
            raise ProgramError(
                f"The first line should be `p {kind} <variables> <clauses>`, not {shown(' '.join(said))}."
            )
        n = as_whole(said[2], "The number of variables", 0, MAX_COLUMNS)
        self._promised = n, as_whole(said[3], "The number of clauses", 0, MAX_ROWS)
        self.top = as_whole(said[4], "The weight of hard clauses", 1) if len(said) == 5 else None
        self._grow(n)

    def _grow(self, n: int) -> None:
        while len(self.columns) < n:
            self.columns.append(self.build.column(str(len(self.columns) + 1), 0, 1, True))

    def _literals(self, words: list[str]) -> set[int]:
        found = set()
        for word in words:
            variable = as_whole(word.removeprefix("-"), "A literal", 1, MAX_COLUMNS)
            if self._promised is not None and variable > self._promised[0]:
                raise ProgramError(f"There is a variable {variable:,}; the first line says {self._promised[0]:,}.")
            self._grow(variable)
            found.add(-variable if word.startswith("-") else variable)
        return found

    def hard(self, words: list[str]) -> None:
        self._row(self._literals(words), [])

    def soft(self, weight: int, words: list[str]) -> None:
        literals = self._literals(words)
        if not weight or any(-each in literals for each in literals):
            return
        if len(literals) == 1:
            (literal,) = literals
            self.build.objective[self.columns[abs(literal) - 1]] += -weight if literal > 0 else weight
            self.build.constant += weight if literal > 0 else 0
        else:
            self._row(literals, [self.build.column(f"broken {self._n_clauses}", 0, 1, True, float(weight))])

    def _row(self, literals: set[int], broken: list[int]) -> None:
        if any(-each in literals for each in literals):
            return
        ordered = sorted(literals, key=abs)
        weights = [1.0 if each > 0 else -1.0 for each in ordered]
        columns = [*(self.columns[abs(each) - 1] for each in ordered), *broken]
        self.build.row(columns, weights + [1.0] * len(broken), low=1.0 - weights.count(-1.0))

    def done(self) -> Statement:
        """Checks that there are as many clauses as the first line says; returns all of it."""
        if self._promised is None and not self._n_clauses:
            raise ProgramError("There are no clauses in it. Is it whole?")
        if self._promised is not None and self._n_clauses != self._promised[1]:
            raise ProgramError(
                f"The first line says {self._promised[1]:,} clauses, but there are {self._n_clauses:,}. Is it whole?"
            )
        return self.build.statement()
