"""MPS files, fixed and free, with names without spaces: read here, so that an error can say in which line it is.

Known beyond the classic sections: OBJSENSE, QUADOBJ, QMATRIX, INDICATORS, exponents with the letter D. What solvers
read in different ways is refused: several sets of right-hand sides or bounds, the same thing said twice, words behind
the end of a line or the name of a section, a negative upper bound without a lower one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Mapping

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_number, as_whole, shown, split
from hasten.programs.statement import Builder, Statement

MAX_LETTERS = 100_000  # of a line
MAX_NUMBER = 1e40  # of a coefficient or a right-hand side
_REFUSED = ("SOS", "SOS1", "SOS2", "QCMATRIX", "CSECTION", "GENCONS", "PWLOBJ", "LAZYCONS", "USERCUTS", "SCENARIOS")
_FORTRAN = re.compile(r"[-+]?[0-9.]+[dD][-+]?[0-9]+")
_OBJECTIVE, _IGNORED = -1, -2  # numbers of free rows: the first is the objective
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
    """Everything that the lines so far have stated; one method reads the lines of one section, given their words."""

    def __init__(self, text: Text) -> None:
        self.text, self.build, self.whole, self.objective = text, Builder(), False, ""
        self.kind: list[str] = []  # of each row: E, L or G
        self.row: dict[str, int] = {}
        self.column: dict[str, int] = {}
        self.terms: list[list[tuple[int, float]]] = []  # of each row
        self.right_side: dict[int, float] = {}
        self.range: dict[int, float] = {}
        self.indicators: dict[int, tuple[int, int]] = {}
        self.in_column: set[str] = set()  # the rows that the last column named
        self.said: set[Hashable] = set()  # what was said already, and must not be said again
        self.sets: dict[str, str] = {}  # of each section: the name of its set
        self.negative: dict[int, int] = {}  # columns with a negative upper bound, and their lines
        self.products: dict[tuple[int, int], tuple[float, int]] = {}  # of a QMATRIX, with their lines

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
        if words[1] in self.row:
            raise ProgramError(f"There is a row {shown(words[1])} already. Rows have unique names.")
        if kind == "N":
            self.row[words[1]] = _IGNORED if self.objective else _OBJECTIVE
            self.objective = self.objective or words[1]
            return
        self.row[words[1]] = len(self.kind)
        self.kind.append(kind)
        self.terms.append([])

    def columns(self, words: list[str]) -> None:
        """COLUMNS: a name, and pairs of a row and a coefficient; or a marker."""
        if len(words) == 3 and words[1].strip("'\"").upper() == "MARKER":
            kind = words[2].strip("'\"").upper()
            if kind not in ("INTORG", "INTEND"):
                raise ProgramError(f"A marker is INTORG or INTEND, not {shown(kind)}.")
            self.whole = kind == "INTORG"
            return
        name = words[0]
        j = self.column.get(name)
        if j is None:
            j = self.column[name] = self.build.column(name, 0.0, 1.0 if self.whole else math.inf, self.whole)
            self.in_column.clear()
        elif j < len(self.column) - 1:
            raise ProgramError(f"The column {shown(name)} comes back after others. Put all its entries together.")
        for called, row, value in self._pairs(words[1:]):
            if called in self.in_column:
                raise ProgramError(
                    f"The column {shown(name)} has two coefficients in the row {shown(called)}. Keep one, or their sum."
                )
            self.in_column.add(called)
            if row == _OBJECTIVE:
                self.build.objective[j] = value
            elif row != _IGNORED:
                self.terms[row].append((j, value))

    def right_sides(self, words: list[str]) -> None:
        """RHS: a name that may be missing, and pairs of a row and a number."""
        self._numbers("RHS", words, self.right_side)

    def ranges(self, words: list[str]) -> None:
        """RANGES: as RHS."""
        self._numbers("RANGES", words, self.range)

    def bounds(self, words: list[str]) -> None:
        """BOUNDS: a kind, a name that may be missing, a column, and for most kinds a number."""
        kind, rest, build = words[0].upper(), words[1:], self.build
        if kind in ("SC", "SI"):
            raise ProgramError("Semicontinuous variables are not read. Say it with a binary variable.")
        if kind not in _BOUNDS:
            raise ProgramError(f"A bound is LO, UP, FX, FR, MI, PL, BV, LI or UI, not {shown(words[0])}.")
        valued = "value" in _BOUNDS[kind]
        if not valued and len(rest) == 3 and not as_number(rest[2], "A bound of 0 or 1, or of none,"):
            rest.pop()  # some write a 0 where no number is needed
        value = _number(rest.pop(), "A bound") if valued and rest else 0.0
        if not 1 <= len(rest) <= 2:
            raise ProgramError("A bound is a kind, the name of the bounds, a column and a number.")
        self._one_set("BOUNDS", rest[0] if len(rest) == 2 else "")
        j = _find(self.column, rest[-1], "column", "COLUMNS")
        fresh = not {("lower", j), ("upper", j)} & self.said
        if fresh and build.whole[j]:
            build.high[j] = math.inf  # a whole column is binary only while nothing is said of its bounds
        build.whole[j] = build.whole[j] or kind in ("BV", "LI", "UI")
        if kind == "BV" and not fresh and build.low[j] >= 0.0 and build.high[j] <= 1.0:
            return  # it was fixed before: so Gurobi writes it
        for side, given, limits in zip(("lower", "upper"), _BOUNDS[kind], (build.low, build.high), strict=True):
            if given is not None:
                self.once((side, j), f"The column {shown(rest[-1])} has two {side} bounds. Keep one.")
                limits[j] = value if given == "value" else float(given)
        if kind in ("UP", "UI") and value < 0:
            self.negative[j] = self.text.number

    def quadratic(self, words: list[str], both: bool = False) -> None:
        """QUADOBJ and QSECTION: two columns and a number, of one half of x'Qx, each pair once."""
        if len(words) != 3:
            raise ProgramError("A quadratic term is two columns and a number.")
        i, j = (_find(self.column, name, "column", "COLUMNS") for name in words[:2])
        value, pair = _number(words[2], "A quadratic term"), (i, j) if both else (min(i, j), max(i, j))
        twice = f"The product of {shown(words[0])} and {shown(words[1])} is given twice. Keep one."
        self.once(("product", *pair), twice)
        if both and i != j:
            self.products[pair] = value, self.text.number
        self.build.product(i, j, value / 2 if both or i == j else value)

    def matrix(self, words: list[str]) -> None:
        """QMATRIX: as QUADOBJ, with each pair both ways."""
        self.quadratic(words, both=True)

    def indicator(self, words: list[str]) -> None:
        """INDICATORS: IF, a row, a binary column and its value."""
        if len(words) != 4 or words[0].upper() != "IF":
            raise ProgramError("An indicator is IF, a row, a column and 0 or 1.")
        row, column = _find(self.row, words[1], "row", "ROWS"), _find(self.column, words[2], "column", "COLUMNS")
        if row in self.indicators or row < 0:
            raise ProgramError(f"The row {shown(words[1])} is free, or has an indicator already. Keep one.")
        self.indicators[row] = column, as_whole(words[3], "An indicator's value", 0, 1)

    def statement(self) -> Statement:
        """Puts it all together."""
        if not self.row:
            raise ProgramError("There are no rows. Is this an MPS file?")
        self._check_both_ways()
        self._check_lower_bounds()
        self.text.number = 0
        for name, r in self.row.items():
            if r >= 0:
                columns, weights = [j for j, _ in self.terms[r]], [w for _, w in self.terms[r]]
                if r in self.indicators:
                    self.build.indicator([self.indicators[r]], columns, weights, *self._limits(r), name)
                else:
                    self.build.row(columns, weights, *self._limits(r), name)
        return self.build.statement()

    def _limits(self, r: int) -> tuple[float, float]:
        kind, b, width = self.kind[r], self.right_side.get(r, 0.0), self.range.get(r, math.nan)
        if math.isnan(width):
            return (-math.inf if kind == "L" else b), (math.inf if kind == "G" else b)
        if kind == "E":
            return min(b, b + width), max(b, b + width)
        return (b - abs(width), b) if kind == "L" else (b, b + abs(width))

    def once(self, what: Hashable, twice: str) -> None:
        """Refuses to hear something twice."""
        if what in self.said:
            raise ProgramError(twice)
        self.said.add(what)

    def _one_set(self, section: str, name: str) -> None:
        """Refuses a second set of a section: solvers take the first, or merge them."""
        first = self.sets.setdefault(section, name)
        if name != first:
            raise ProgramError(f"{section} has several sets, {shown(first)} and {shown(name)}. Keep one set.")

    def _numbers(self, section: str, words: list[str], into: dict[int, float]) -> None:
        named = len(words) % 2
        self._one_set(section, words[0] if named else "")
        for name, row, value in self._pairs(words[named:]):
            self.once((section, name), f"{section} has two numbers for the row {shown(name)}. Keep one.")
            if row == _OBJECTIVE and section == "RHS":
                self.build.constant = -value
            elif row >= 0:
                into[row] = value

    def _pairs(self, words: list[str]) -> list[tuple[str, int, float]]:
        """Returns pairs of a row, by its name and its place, and a number."""
        if not words or len(words) % 2:
            raise ProgramError("Expected pairs of a row and a number. Names may not have spaces.")
        found = []
        for name, word in zip(words[::2], words[1::2], strict=True):
            value = _number(word, f"The number for {shown(name)}")
            if not abs(value) <= MAX_NUMBER:
                raise ProgramError(f"The number for {shown(name)} is {word}. Give a finite one.")
            found.append((name, _find(self.row, name, "row", "ROWS"), value))
        return found

    def _check_lower_bounds(self) -> None:
        """Refuses a negative upper bound alone: some solvers then take 0 for the lower one, some minus infinity."""
        for column, line in self.negative.items():
            if ("lower", column) not in self.said:
                self.text.number = line
                raise ProgramError(
                    f"The column {shown(self.build.columns[column])} has a negative upper bound and no lower one, "
                    "which solvers read in different ways. Add a lower bound: LO and a number, or MI for none."
                )

    def _check_both_ways(self) -> None:
        for (i, j), (value, line) in self.products.items():
            if self.products.get((j, i), (0.0, 0))[0] != value:
                self.text.number = line
                left, right = shown(self.build.columns[i]), shown(self.build.columns[j])
                raise ProgramError(
                    f"QMATRIX has {value:g} for {left} and {right}, but not the other way round. Give it both ways, or "
                    "use QUADOBJ, which has each pair once."
                )


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
        words = split(line) if not line.startswith("*") else []
        if not words:
            continue
        if len(line) > MAX_LETTERS:
            raise ProgramError(f"It is longer than {MAX_LETTERS:,} letters. Is this an MPS file?")
        head, read = words[0].upper(), _SECTIONS.get(section)
        if section == "ENDATA":
            raise ProgramError(f"Nothing should come after ENDATA, but there is {shown(words[0])}.")
        if not line[0].isspace() and (head in _SECTIONS or head in _REFUSED):
            _begin(reader, head, words[1:])
            section = head
        elif not line[0].isspace() and section != "OBJSENSE" and len(words) == 1:
            raise ProgramError(f"There is no section {shown(words[0])}.")
        elif read is None:
            raise ProgramError(f"{shown(words[0])} stands in no section that could hold it. Is this an MPS file?")
        else:
            read(reader, words)
    if section != "ENDATA":
        raise ProgramError("The file ends without ENDATA. Is it whole?")
    return reader.statement()


def _begin(reader: _Reader, head: str, more: list[str]) -> None:
    """Begins a section, given the words behind its name."""
    if head in _REFUSED:
        raise ProgramError(f"It has a section {head}, which is not read.")
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
    reader.once(("section", head), f"There is a section {head} already. Keep one.")


def _find(places: Mapping[str, int], name: str, what: str, section: str) -> int:
    try:
        return places[name]
    except KeyError:
        raise ProgramError(f"There is no {what} {shown(name)}. Name it under {section}.") from None


def _number(word: str, what: str) -> float:
    """Returns a number, whose exponent may begin with Fortran's D."""
    return as_number(word.upper().replace("D", "E") if _FORTRAN.fullmatch(word) else word, what)
