"""MPS files, fixed and free, with names without spaces: read here, so that an error can say in which line it is.

Known beyond the classic sections: OBJSENSE, OBJSENSE MAX in one line, QUADOBJ and QMATRIX, INDICATORS, exponents with
the letter D. Special ordered sets and semicontinuous variables are refused, and so is everything that solvers read in
different ways: several sets of right-hand sides or bounds, the same thing said twice, words behind the end of a line or
the name of a section, a negative upper bound without a lower one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_number, as_whole, shown, split
from hasten.programs.statement import INFINITE, MAX_COLUMNS, MAX_ROWS, Builder, Statement

MAX_LETTERS = 100_000  # of a line
_REFUSED = {
    "SOS": "special ordered sets",
    "SOS1": "special ordered sets",
    "SOS2": "special ordered sets",
    "QCMATRIX": "quadratic constraints",
    "CSECTION": "cones",
    "GENCONS": "general constraints",
    "PWLOBJ": "piecewise linear objectives",
    "LAZYCONS": "lazy constraints",
    "USERCUTS": "user cuts",
    "SCENARIOS": "scenarios",
    "OBJNAME": "a choice of objectives",
}
_FORTRAN = re.compile(r"[-+]?[0-9.]+[dD][-+]?[0-9]+")
# What each kind of bound sets, below and above: the value in its line, a number, or nothing.
_BOUNDS: dict[str, tuple[str | float | None, str | float | None]] = {
    "LO": ("value", None),
    "LI": ("value", None),
    "UP": (None, "value"),
    "UI": (None, "value"),
    "FX": ("value", "value"),
    "FR": (-math.inf, math.inf),
    "MI": (-math.inf, None),
    "PL": (None, math.inf),
    "BV": (0.0, 1.0),
}


class _Reader:
    """What is known after some lines."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.build = Builder()
        self.kind: list[str] = []  # of each row: N, E, L or G
        self.row: dict[str, int] = {}
        self.column: dict[str, int] = {}
        self.objective: str | None = None
        self.ignored: set[str] = set()  # free rows beyond the objective
        self.terms: list[list[tuple[int, float]]] = []  # of each row
        self.rhs: dict[int, float] = {}
        self.range: dict[int, float] = {}
        self.said: dict[str, set[Hashable]] = {"lower": set(), "upper": set()}  # what a section spoke of already
        self.sets: dict[str, str] = {}  # of each section: the name of its set
        self.negative: dict[int, int] = {}  # columns with a negative upper bound, and their lines
        self.products: dict[tuple[int, int], tuple[float, int]] = {}  # of a QMATRIX, with their lines
        self.whole = False
        self.indicators: dict[int, tuple[int, int]] = {}

    # One method a section: each gets the words of a line.

    def sense(self, words: list[str]) -> None:
        """OBJSENSE: MIN or MAX."""
        word = words[0].upper()
        if len(words) > 1 or word not in ("MAX", "MAXIMIZE", "MIN", "MINIMIZE"):
            raise ProgramError(f"The sense of the objective is MIN or MAX, not {shown(' '.join(words))}.")
        self.build.maximize = word.startswith("MAX")

    def rows(self, words: list[str]) -> None:
        """ROWS: a letter and a name."""
        kind = words[0].upper()
        if len(words) != 2 or kind not in ("N", "E", "L", "G"):
            raise ProgramError("A row is a letter, N, E, L or G, and a name, which may not have spaces.")
        name = words[1]
        if name in self.row or name in self.ignored or name == self.objective:
            raise ProgramError(f"There is a row {shown(name)} already. Rows have unique names.")
        if kind == "N":
            if self.objective is None:
                self.objective = name
            else:
                self.ignored.add(name)
            return
        if len(self.kind) >= MAX_ROWS:
            raise ProgramError(f"There are more than {MAX_ROWS:,} rows.")
        self.row[name] = len(self.kind)
        self.kind.append(kind)
        self.terms.append([])

    def columns(self, words: list[str]) -> None:
        """COLUMNS: a name, and one or two pairs of a row and a coefficient; or a marker."""
        if len(words) == 3 and words[1].strip("'\"").upper() == "MARKER":
            kind = words[2].strip("'\"").upper()
            if kind not in ("INTORG", "INTEND"):
                raise ProgramError(f"A marker is INTORG or INTEND, not {shown(kind)}.")
            self.whole = kind == "INTORG"
            return
        name = words[0]
        j = self.column.get(name)
        if j is None:
            if len(self.column) >= MAX_COLUMNS:
                raise ProgramError(f"There are more than {MAX_COLUMNS:,} columns.")
            j = self.column[name] = self.build.column(name, 0.0, 1.0 if self.whole else math.inf, self.whole)
            self.said["COLUMNS"] = set()
        elif j < len(self.column) - 1:
            raise ProgramError(f"The column {shown(name)} comes back after others. Put all its entries together.")
        for row, value in _pairs(words[1:]):
            if self._again("COLUMNS", row):
                raise ProgramError(
                    f"The column {shown(name)} has two coefficients in the row {shown(row)}. Keep one, or their sum."
                )
            if row == self.objective:
                self.build.objective[j] += value
            elif row not in self.ignored:
                self.terms[self._row(row)].append((j, value))

    def right_sides(self, words: list[str]) -> None:
        """RHS: a name that may be missing, and pairs of a row and a number."""
        for row, value in self._of_one_set("RHS", words):
            if row == self.objective:
                self.build.constant = -value
            elif row not in self.ignored:
                self.rhs[self._row(row)] = value

    def ranges(self, words: list[str]) -> None:
        """RANGES: the same as RHS."""
        for row, value in self._of_one_set("RANGES", words):
            if row != self.objective and row not in self.ignored:
                self.range[self._row(row)] = value

    def bounds(self, words: list[str]) -> None:
        """BOUNDS: a kind, a name that may be missing, a column, and for most kinds a number."""
        kind, rest = words[0].upper(), words[1:]
        if kind in ("SC", "SI"):
            raise ProgramError("Semicontinuous variables are not read. Say it with a binary variable.")
        if kind not in _BOUNDS:
            raise ProgramError(f"A bound is LO, UP, FX, FR, MI, PL, BV, LI or UI, not {shown(words[0])}.")
        valued = "value" in _BOUNDS[kind]
        if (valued and len(rest) == 2) or (not valued and len(rest) == 1):
            rest = ["", *rest]
        elif not valued and len(rest) == 2 and rest[0] in self.column and rest[1] not in self.column:
            rest = ["", rest[0], rest[1]]
        elif not valued and len(rest) == 3 and not as_number(rest[2], "A bound of 0 or 1, or of none,"):
            rest = rest[:2]  # some write a 0 where no number is needed
        if len(rest) != 3 - (not valued):
            raise ProgramError("A bound is a kind, the name of the bounds, a column and a number.")
        self._one_set("BOUNDS", rest[0])
        j = self._column(rest[1])
        value = _number(rest[2], "A bound") if valued else 0.0
        build = self.build
        fresh = j not in self.said["lower"] and j not in self.said["upper"]
        if fresh and build.whole[j]:
            build.high[j] = math.inf  # a whole column is binary only while nothing is said of its bounds
        if kind == "BV" and not fresh and build.low[j] >= 0.0 and build.high[j] <= 1.0:
            build.whole[j] = True  # it was fixed before: so Gurobi writes it
            return
        low, high = _BOUNDS[kind]
        for side, given, limits in (("lower", low, build.low), ("upper", high, build.high)):
            if given is not None:
                if self._again(side, j):
                    raise ProgramError(f"The column {shown(rest[1])} has two {side} bounds. Keep one.")
                limits[j] = value if given == "value" else float(given)
        if kind in ("UP", "UI") and value < 0:
            self.negative[j] = self.text.number
        if kind in ("BV", "LI", "UI"):
            build.whole[j] = True

    def quadratic(self, words: list[str]) -> None:
        """QUADOBJ and QSECTION (each pair once): two columns and a number, of one half of x'Qx."""
        self._product(words, False)

    def matrix(self, words: list[str]) -> None:
        """QMATRIX: the same, with each pair both ways."""
        self._product(words, True)

    def _product(self, words: list[str], both: bool) -> None:
        if len(words) != 3:
            raise ProgramError("A quadratic term is two columns and a number.")
        i, j, value = self._column(words[0]), self._column(words[1]), _number(words[2], "A quadratic term")
        pair = (i, j) if both else (min(i, j), max(i, j))
        if self._again("products", pair):
            raise ProgramError(f"The product of {shown(words[0])} and {shown(words[1])} is given twice. Keep one.")
        if both and i != j:
            self.products[pair] = value, self.text.number
        self.build.product(i, j, value / 2 if both or i == j else value)

    def indicator(self, words: list[str]) -> None:
        """INDICATORS: IF, a row, a binary column and its value."""
        if len(words) != 4 or words[0].upper() != "IF":
            raise ProgramError("An indicator is IF, a row, a column and 0 or 1.")
        row = self._row(words[1])
        if row in self.indicators:
            raise ProgramError(f"There is an indicator for the row {shown(words[1])} already. Keep one.")
        self.indicators[row] = self._column(words[2]), as_whole(words[3], "An indicator's value", 0, 1)

    def statement(self) -> Statement:
        """Puts it all together."""
        if self.objective is None and not self.kind:
            raise ProgramError("There are no rows. Is this an MPS file?")
        self._check_both_ways()
        self._check_lower_bounds()
        self.text.number = 0
        names = list(self.row)
        for r, kind in enumerate(self.kind):
            b = self.rhs.get(r, 0.0)
            low, high = (-math.inf if kind == "L" else b), (math.inf if kind == "G" else b)
            if r in self.range:
                width = self.range[r]
                if kind == "E":
                    low, high = (b, b + width) if width >= 0 else (b + width, b)
                elif kind == "L":
                    low = high - abs(width)
                else:
                    high = low + abs(width)
            columns, weights = [j for j, _ in self.terms[r]], [w for _, w in self.terms[r]]
            if r in self.indicators:
                self.build.indicator([self.indicators[r]], columns, weights, low, high, names[r])
            else:
                self.build.row(columns, weights, low, high, names[r])
        return self.build.statement()

    def _again(self, section: str, name: Hashable) -> bool:
        """Whether a section spoke of this before."""
        said = self.said.setdefault(section, set())
        before = len(said)
        said.add(name)
        return len(said) == before

    def _one_set(self, section: str, name: str) -> None:
        """Refuses a second set of a section: solvers take the first, or merge them."""
        first = self.sets.setdefault(section, name)
        if name != first:
            raise ProgramError(f"{section} has several sets, {shown(first)} and {shown(name)}. Keep one set.")

    def _of_one_set(self, section: str, words: list[str]) -> list[tuple[str, float]]:
        """Returns the pairs of a line that may begin with the name of a set; each row has one number."""
        named = len(words) % 2
        self._one_set(section, words[0] if named else "")
        pairs = _pairs(words[named:])
        for row, _ in pairs:
            if self._again(section, row):
                raise ProgramError(f"{section} has two numbers for the row {shown(row)}. Keep one.")
        return pairs

    def _check_lower_bounds(self) -> None:
        """Refuses a negative upper bound alone: some solvers then take 0 for the lower one, some minus infinity."""
        for column, line in self.negative.items():
            if column not in self.said["lower"]:
                self.text.number = line
                raise ProgramError(
                    f"The column {shown(self.build.columns[column])} has a negative upper bound and no lower one, "
                    "which solvers read in different ways. Add a lower bound: LO and a number, or MI for none."
                )

    def _check_both_ways(self) -> None:
        """Refuses a QMATRIX that is not symmetric."""
        for (i, j), (value, line) in self.products.items():
            if self.products.get((j, i), (0.0, 0))[0] != value:
                self.text.number = line
                left, right = shown(self.build.columns[i]), shown(self.build.columns[j])
                raise ProgramError(
                    f"QMATRIX has {value:g} for {left} and {right}, but not the other way round. Give it both ways, or "
                    "use QUADOBJ, which has each pair once."
                )

    def _row(self, name: str) -> int:
        try:
            return self.row[name]
        except KeyError:
            raise ProgramError(f"There is no row {shown(name)}. Name it under ROWS.") from None

    def _column(self, name: str) -> int:
        try:
            return self.column[name]
        except KeyError:
            raise ProgramError(f"There is no column {shown(name)}. Name it under COLUMNS.") from None


_SECTIONS: dict[str, Callable[[_Reader, list[str]], None] | None] = {  # how a line of each is read; None: has no lines
    "NAME": None,
    "OBJSENSE": _Reader.sense,
    "OBJSENSE_MAX": None,
    "OBJSENSE_MIN": None,
    "ROWS": _Reader.rows,
    "COLUMNS": _Reader.columns,
    "RHS": _Reader.right_sides,
    "RANGES": _Reader.ranges,
    "BOUNDS": _Reader.bounds,
    "QUADOBJ": _Reader.quadratic,
    "QSECTION": _Reader.quadratic,
    "QMATRIX": _Reader.matrix,
    "INDICATORS": _Reader.indicator,
    "ENDATA": None,
}


def read_mps(text: Text) -> Statement:
    """Reads an MPS file."""
    reader, section = _Reader(text), ""
    for line in text.lines():
        if line.startswith("*") or not line.strip():
            continue
        if len(line) > MAX_LETTERS:
            raise ProgramError(f"It is longer than {MAX_LETTERS:,} letters. Is this an MPS file?")
        words = split(line)
        head = words[0].upper()
        if section == "ENDATA":
            raise ProgramError(f"Nothing should come after ENDATA, but there is {shown(words[0])}.")
        if not line[0].isspace() and (head in _SECTIONS or head in _REFUSED):
            _begin(reader, head, words[1:])
            section = head
            continue
        if not line[0].isspace() and section != "OBJSENSE" and len(words) == 1:
            raise ProgramError(f"There is no section {shown(words[0])}.")
        read = _SECTIONS.get(section)
        if read is None:
            raise ProgramError(f"{shown(words[0])} stands in no section that could hold it. Is this an MPS file?")
        read(reader, words)
    if section != "ENDATA":
        raise ProgramError("The file ends without ENDATA. Is it whole?")
    return reader.statement()


def _begin(reader: _Reader, head: str, more: list[str]) -> None:
    """Begins a section, given the words behind its name."""
    if head in _REFUSED:
        raise ProgramError(f"It has {_REFUSED[head]}, which are not read.")
    if head == "NAME":
        reader.build.name = " ".join(more)
    elif head == "OBJSENSE" and more:
        reader.sense(more)
    elif head == "QSECTION" and more:
        if more != [reader.objective]:
            raise ProgramError(f"{shown(more[0])} is not the objective: quadratic constraints are not read.")
    elif more:
        raise ProgramError(f"{head} begins a section, but {shown(more[0])} follows. Data lines begin with a space.")
    elif head in ("OBJSENSE_MAX", "OBJSENSE_MIN"):
        reader.sense([head[-3:]])


def _pairs(words: list[str]) -> list[tuple[str, float]]:
    """Returns pairs of a name and a number."""
    if not words or len(words) % 2:
        raise ProgramError("Expected pairs of a row and a number. Names may not have spaces.")
    found = []
    for name, word in zip(words[::2], words[1::2], strict=True):
        value = _number(word, f"The number for {shown(name)}")
        if not abs(value) <= INFINITE * 1e20:
            raise ProgramError(f"The number for {shown(name)} is {word}. Give a finite one.")
        found.append((name, value))
    return found


def _number(word: str, what: str) -> float:
    """Returns a number, whose exponent may begin with Fortran's D."""
    if _FORTRAN.fullmatch(word):
        word = word.upper().replace("D", "E")
    return as_number(word, what)
