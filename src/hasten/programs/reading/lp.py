"""LP files, as CPLEX, Gurobi and HiGHS write them: read here, so that names may be `x[1,a]` and errors have a line.

    Minimize
      cost: 3 x[1] + 2 y + [ 2 x[1] * y + y ^2 ] / 2
    Subject To
      c1: x[1] + y <= 1
      c2: y = 1 -> x[1] >= 1
    Bounds
      y <= 4
    Generals
      y
    End

Special ordered sets, semicontinuous variables, quadratic rows and general constraints are refused.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_number, shown
from hasten.programs.statement import MAX_COLUMNS, MAX_ROWS, Builder, Statement

_SECTIONS = {
    "objective": r"minimi[sz]e|minimum|min|maximi[sz]e|maximum|max",
    "rows": r"subject\s+to|such\s+that|s\.t\.|st\.?",
    "bounds": r"bounds?",
    "refused": r"(?:general|lazy)\s+constraints?|semi-continuous|semis?|sos\d?|pwlobj|user\s+cuts?|scenarios?",
    "whole": r"generals?|gen|integers?|int",
    "binary": r"binar(?:y|ies)|bin",
    "end": r"end",
}
_HEADER = re.compile(
    r"\s*(?:" + "|".join(f"(?P<{name}>{words})" for name, words in _SECTIONS.items()) + r")(?=\s|$)(?!\s*:)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_COMPARE = re.compile(r"<=|>=|=<|=>|<|>|=")
_INFINITE = ("inf", "infinity", "infinite")


class _Token(NamedTuple):
    kind: str  # "number", "name", "compare", or the sign itself
    text: str
    line: int


@dataclass
class _Linear:
    """What stands on one side of a comparison."""

    columns: list[int] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    constant: float = 0.0
    products: list[tuple[int, int, float]] = field(default_factory=list)


class _Reader:
    """Reads one section after the other, as tokens."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.build = Builder(name=text.name)
        self.place: dict[str, int] = {}
        self.binary: set[int] = set()
        self.pending: list[tuple[tuple[int, int], _Linear, float, float, str]] = []  # indicators, which need bounds
        self.header = ""  # of the section
        self.tokens: list[_Token] = []
        self.at = 0

    def objective(self) -> None:
        """Reads the objective."""
        self._label()
        side = self._side()
        if self.at < len(self.tokens):
            raise ProgramError(f"The objective ends with {shown(self._next().text)}; is `Subject To` missing?")
        for column, weight in zip(side.columns, side.weights, strict=True):
            self.build.objective[column] += weight
        for left, right, weight in side.products:
            self.build.product(left, right, weight)
        self.build.constant = side.constant

    def rows(self) -> None:
        """Reads constraints until there are no more."""
        while self.at < len(self.tokens):
            self._row()

    def bounds(self) -> None:
        """Reads bounds until there are no more."""
        while self.at < len(self.tokens):
            self._bound()

    def names(self, binary: bool) -> None:
        """Reads the names of variables that are whole."""
        while self.at < len(self.tokens):
            token = self._next()
            if token.kind != "name":
                raise ProgramError(f"Expected names of variables, not {shown(token.text)}.")
            column = self._column(token.text)
            self.build.whole[column] = True
            if binary:
                self.binary.add(column)

    def statement(self) -> Statement:
        """Puts it all together; a binary variable keeps the bounds that it is given, within 0 and 1."""
        build = self.build
        for column in self.binary:
            build.low[column], build.high[column] = max(0.0, build.low[column]), min(1.0, build.high[column])
        for switch, side, low, high, name in self.pending:
            build.indicator([switch], side.columns, side.weights, low, high, name)
        return build.statement()

    def _row(self) -> None:
        name = self._label()
        switch = self._switch()
        started, side = self.at, self._side()
        first, sense = self.at > started and not side.columns and not side.products, self._comparison()
        if first:  # the number comes first
            low, high = _limits(_turned(sense), side.constant)
            side = self._side(until_line_end=True)
            if self._peek() == "compare":
                more = _limits(self._comparison(), self._number() - side.constant)
                low, high = max(low - side.constant, more[0]), min(high - side.constant, more[1])
            else:
                low, high = low - side.constant, high - side.constant
        else:
            low, high = _limits(sense, self._number() - side.constant)
        if side.products:
            raise ProgramError("A quadratic constraint is not read.")
        if len(self.build.rows) >= MAX_ROWS:
            raise ProgramError(f"There are more than {MAX_ROWS:,} rows.")
        if switch is None:
            self.build.row(side.columns, side.weights, low, high, name)
        else:
            self.pending.append((switch, side, low, high, name))

    def _bound(self) -> None:
        build = self.build
        if self._peek() == "name" and self.tokens[self.at].text.lower() not in _INFINITE:
            column = self._column(self._next().text)
            if self._peek() == "name" and self.tokens[self.at].text.lower() == "free":
                self._next()
                build.low[column], build.high[column] = -math.inf, math.inf
                return
            self._set(column, self._comparison(), self._number())
            return
        value = self._number()
        sense = _turned(self._comparison())
        token = self._next()
        if token.kind != "name":
            raise ProgramError(f"Expected a variable, not {shown(token.text)}.")
        column = self._column(token.text)
        self._set(column, sense, value)
        if self._peek() == "compare":
            self._set(column, self._comparison(), self._number())

    def _set(self, column: int, sense: str, value: float) -> None:
        low, high = _limits(sense, value)
        if low > -math.inf or sense == ">":
            self.build.low[column] = low
        if high < math.inf or sense == "<":
            self.build.high[column] = high

    def _switch(self) -> tuple[int, int] | None:
        """Reads `x = 1 ->`, if that is what comes."""
        kinds = [token.kind for token in self.tokens[self.at : self.at + 4]]
        if kinds != ["name", "compare", "number", "->"]:
            return None
        column, value = self._column(self._next().text), self.tokens[self.at + 1].text
        self.at += 3
        if value not in ("0", "1"):
            raise ProgramError(f"An indicator's value is 0 or 1, not {shown(value)}.")
        return column, int(value)

    def _label(self) -> str:
        """Reads the name before a colon, if there is one."""
        if [token.kind for token in self.tokens[self.at : self.at + 2]] == ["name", ":"]:
            self.at += 2
            return self.tokens[self.at - 2].text
        return ""

    def _side(self, until_line_end: bool = False) -> _Linear:
        """Reads a sum, up to a comparison; where there may be none, up to a line that does not go on with a sign."""
        side = _Linear()
        while self.at < len(self.tokens) and self._peek() != "compare":
            if until_line_end and side.columns and self._peek() not in "+-*^[" and self._new_line():
                break
            self._term(side)
        return side

    def _term(self, side: _Linear) -> None:
        sign, weight = self._sign(), None
        if self._peek() == "number":
            weight = as_number(self._next().text, "A coefficient")
            if self._peek() == "*":
                self._next()
        if self._peek() == "[":
            self._quadratic(side, sign if weight is None else sign * weight)
        elif self._peek() == "name":
            token = self._next()
            if token.text.lower() in _INFINITE and weight is None:
                side.constant += sign * math.inf
                return
            side.columns.append(self._column(token.text))
            side.weights.append(sign * (1.0 if weight is None else weight))
        elif weight is not None:
            side.constant += sign * weight
        else:
            raise ProgramError(f"Expected a term, not {self._shown()}.")

    def _quadratic(self, side: _Linear, sign: float) -> None:
        """Reads `[ 2 x * y + y ^2 ] / 2`; without the half, the terms count as they are."""
        self._next()
        found: list[tuple[int, int, float]] = []
        while self._peek() != "]":
            weight = self._sign()
            if self._peek() == "number":
                weight *= as_number(self._next().text, "A coefficient")
            left = self._name()
            token = self._next()
            if token.kind == "^":
                if self._next().text != "2":
                    raise ProgramError("A power other than 2 is not read.")
                found.append((left, left, weight))
            elif token.kind == "*":
                found.append((left, self._name(), weight))
            else:
                raise ProgramError(f"A quadratic term is x ^2 or x * y; here is {shown(token.text)}.")
        self._next()
        half = 1.0
        if self._peek() == "/":
            self._next()
            half = 1.0 / (as_number(self._next().text, "A divisor") or math.nan)
            if math.isnan(half):
                raise ProgramError("A divisor must not be 0.")
        side.products += [(left, right, sign * half * weight) for left, right, weight in found]

    def _sign(self) -> float:
        sign = 1.0
        while self._peek() in ("+", "-"):
            sign *= -1.0 if self._next().kind == "-" else 1.0
        return sign

    def _number(self) -> float:
        sign, token = self._sign(), self._next()
        if token.kind == "name" and token.text.lower() in _INFINITE:
            return sign * math.inf
        if token.kind != "number":
            raise ProgramError(f"Expected a number, not {shown(token.text)}.")
        return sign * as_number(token.text, "A limit")

    def _comparison(self) -> str:
        token = self._next()
        if token.kind != "compare":
            raise ProgramError(f"Expected <=, >= or =, not {shown(token.text)}.")
        return "<" if "<" in token.text else ">" if ">" in token.text else "="

    def _name(self) -> int:
        token = self._next()
        if token.kind != "name":
            raise ProgramError(f"Expected a variable, not {shown(token.text)}.")
        return self._column(token.text)

    def _column(self, name: str) -> int:
        column = self.place.get(name)
        if column is None:
            if len(self.place) >= MAX_COLUMNS:
                raise ProgramError(f"There are more than {MAX_COLUMNS:,} columns.")
            column = self.place[name] = self.build.column(name)
        return column

    def _peek(self) -> str:
        return self.tokens[self.at].kind if self.at < len(self.tokens) else ""

    def _new_line(self) -> bool:
        return self.at > 0 and self.tokens[self.at].line != self.tokens[self.at - 1].line

    def _shown(self) -> str:
        return shown(self.tokens[self.at].text) if self.at < len(self.tokens) else "the end of the section"

    def _next(self) -> _Token:
        if self.at >= len(self.tokens):
            raise ProgramError("The section ends in the middle of a line. Is the file whole?")
        token = self.tokens[self.at]
        self.text.number = token.line
        self.at += 1
        return token


def read_lp(text: Text) -> Statement:
    """Reads an LP file."""
    reader, section, ended = _Reader(text), "", False
    for line in text.lines():
        words = line.split("\\", 1)[0]
        header = _HEADER.match(words)
        if header and header.lastgroup:
            number = text.number
            _finish(reader, section)
            text.number, section = number, header.lastgroup
            reader.header = header.group().strip()
            if section == "objective":
                reader.build.maximize = header.group().strip().lower().startswith("max")
            if section == "end":
                ended = True
                break
            words = words[header.end() :]
        elif not section and words.strip():
            raise ProgramError(f"An LP file begins with Minimize or Maximize, not {shown(words.strip())}.")
        reader.tokens += _tokens(words, text.number)
    if not ended:
        raise ProgramError("The file ends without End. Is it whole?")
    text.number = 0
    return reader.statement()


def _finish(reader: _Reader, section: str) -> None:
    """Reads what was gathered of a section."""
    if section == "objective":
        reader.objective()
    elif section == "rows":
        reader.rows()
    elif section == "bounds":
        reader.bounds()
    elif section in ("whole", "binary"):
        reader.names(section == "binary")
    elif section == "refused" and reader.tokens:
        reader.text.number = reader.tokens[0].line
        raise ProgramError(f"It has a section {shown(reader.header)}, which is not read.")
    reader.tokens, reader.at = [], 0


def _tokens(line: str, number: int) -> list[_Token]:
    found, at = [], 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        if line.startswith("->", at):
            token = _Token("->", "->", number)
        elif match := _NUMBER.match(line, at):
            token = _Token("number", match.group(), number)
        elif match := _COMPARE.match(line, at):
            token = _Token("compare", match.group(), number)
        elif line[at] in "+-*^:/[]":
            token = _Token(line[at], line[at], number)
        else:
            token = _Token("name", line[at : _name_end(line, at)], number)
        found.append(token)
        at += len(token.text)
    return found


def _name_end(line: str, at: int) -> int:
    """Returns where a name ends; brackets belong to it as long as they open right behind it, and close."""
    depth = 0
    while at < len(line):
        letter = line[at]
        if letter == "[":
            depth += 1
        elif letter == "]":
            if not depth:
                break
            depth -= 1
        elif letter.isspace() or letter in "<>=+*^:/" or (letter == "-" and not depth):
            break
        at += 1
    return at


def _limits(sense: str, value: float) -> tuple[float, float]:
    return (-math.inf if sense == "<" else value), (math.inf if sense == ">" else value)


def _turned(sense: str) -> str:
    return {"<": ">", ">": "<", "=": "="}[sense]
