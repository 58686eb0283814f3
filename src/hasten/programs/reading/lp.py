"""LP files, as CPLEX, Gurobi and HiGHS write them: read here, so that names may be `x[1,a]` and errors have a line.

Every term but the first of a sum has a sign, and nothing but a label may follow a right-hand side in its line: HiGHS'
own reader takes `x y`, `3 4 x` and `x <= 0 + 5` for something else than they seem to say. Special ordered sets,
semicontinuous variables, quadratic rows and general constraints are refused.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_number, shown
from hasten.programs.statement import Builder, Statement

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
    re.IGNORECASE | re.ASCII,
)
_LETTER = r"[^\s<>=+\-*^:/\[\]]"
_INSIDE = r"[^\s<>=+*^:/\[\]]"  # brackets, as in `y[-1]`
_TOKEN = re.compile(
    r"\s*(?:(?P<arrow>->)|(?P<compare><=|>=|=<|=>|[<>=])|(?P<sign>[-+*^:/\[\]])"
    r"|(?P<number>(?>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?))(?![_.\d])"  # not the 1 of `1_0`
    rf"|(?P<name>(?![\d.]){_LETTER}(?:{_LETTER}|\[(?:{_INSIDE}|\[{_INSIDE}*\])*\])*)|(?P<odd>\S+)|$)"
)
_INFINITE = ("inf", "infinity", "infinite")
_TURNED = {"<": ">", ">": "<", "=": "="}


class _Token(NamedTuple):
    kind: str  # "number", "name", "compare", "section", "odd", the sign itself, or "" at the end of the file
    text: str
    line: int


@dataclass
class _Sum:
    """A sum of terms, products and numbers."""

    terms: defaultdict[int, float] = field(default_factory=lambda: defaultdict(float))
    products: defaultdict[tuple[int, int], float] = field(default_factory=lambda: defaultdict(float))
    constant: float = 0.0
    n_terms: int = 0

    @property
    def is_number(self) -> bool:
        """Whether it is a number, or several."""
        return bool(self.n_terms and not self.terms and not self.products)


def read_lp(text: Text) -> Statement:
    """Reads an LP file."""
    reader = _Reader(text)
    try:
        return reader.statement()
    finally:
        text.number = reader.line  # of the token taken last: the text is a few tokens ahead


def _tokens(text: Text) -> Iterator[_Token]:
    for line in text.lines():
        number, line = text.number, line.split("\\", 1)[0]
        header, at = _HEADER.match(line), 0
        if header:
            at = header.end()
            yield _Token("section", header.group().strip(), number)
        while found := _TOKEN.match(line, at):
            kind, at = found.lastgroup, found.end()
            if kind is None:
                break
            yield _Token(found[kind] if kind in ("sign", "arrow") else kind, found[kind], number)


class _Reader:
    """Reads one section after the other, a token at a time."""

    def __init__(self, text: Text) -> None:
        self.build, self.line = Builder(name=text.name), 0
        self.place: dict[str, int] = {}
        self.binary: set[int] = set()
        self.indicators: list[tuple[tuple[int, int], _Sum, float, float, str]] = []  # which need all bounds
        self._tokens, self._ahead = _tokens(text), deque[_Token]()

    def peek(self, at: int = 0) -> _Token:
        """Returns the next token, or one after it, which stays."""
        while len(self._ahead) <= at:
            self._ahead.append(next(self._tokens, _Token("", "", self.line)))
        return self._ahead[at]

    def next(self, *kinds: str, what: str = "") -> _Token:
        """Takes the next token, which must be of one of some kinds, if any are named."""
        token = self.peek()
        self.line = token.line
        if token.kind == "odd":
            raise ProgramError(f"{shown(token.text)} is neither a number nor a name. Put spaces around names.")
        if kinds and token.kind not in kinds:
            if token.kind in ("section", ""):
                raise ProgramError("The section ends in the middle of a line. Is the file whole?")
            raise ProgramError(f"Expected {what}, not {shown(token.text)}.")
        return self._ahead.popleft()

    def ends_entry(self) -> bool:
        return self.peek().kind in ("section", "") or self.peek().line != self.line

    def statement(self) -> Statement:
        """Reads the file; a binary variable keeps the bounds that it is given, within 0 and 1."""
        build, section, seen = self.build, "", set[str]()
        while section != "end":
            token = self.next()
            if not token.kind:
                raise ProgramError("The file ends without End. Is it whole?")
            found = _HEADER.match(token.text) if token.kind == "section" else None
            section = str(found.lastgroup) if found else ""
            if not section or (not seen and section != "objective"):
                raise ProgramError(f"An LP file begins with Minimize or Maximize, not {shown(token.text)}.")
            if section == "objective" and section in seen:
                raise ProgramError("There are two objectives. Keep one.")
            seen.add(section)
            self._section(section, token.text)
        if self.peek().kind:
            raise ProgramError(f"Nothing should come after End, but there is {shown(self.next().text)}.")
        self.line = 0
        for column in self.binary:
            build.low[column], build.high[column] = max(0.0, build.low[column]), min(1.0, build.high[column])
        for switch, side, low, high, name in self.indicators:
            build.indicator([switch], list(side.terms), list(side.terms.values()), low, high, name)
        return build.statement()

    def _section(self, section: str, header: str) -> None:
        if section == "objective":
            self.build.maximize = header.lower().startswith("max")
            self._objective()
        read = {"rows": self._row, "bounds": self._bound, "whole": self._whole, "binary": self._binary}.get(section)
        while self.peek().kind not in ("section", "") and section != "end":
            if read is None:
                self.line = self.peek().line
                raise ProgramError(f"It has a section {shown(header)}, which is not read.")
            read()

    def _objective(self) -> None:
        self._label()
        side, build = self._sum(), self.build
        if self.peek().kind not in ("section", ""):
            raise ProgramError(f"The objective ends with {shown(self.next().text)}; is `Subject To` missing?")
        for column, weight in side.terms.items():
            build.objective[column] += weight
        for (left, right), weight in side.products.items():
            build.product(left, right, weight)
        build.constant = side.constant

    def _row(self) -> None:
        name, switch = self._label(), self._switch()
        side, limits = self._limited_sum("A row")
        low, high = limits.get(">", -math.inf), limits.get("<", math.inf)
        if side.constant:  # other readers pass over it
            raise ProgramError("A row has a number among its terms. Move it to the other side.")
        if not (self.ends_entry() or (self.peek().kind == "name" and self.peek(1).kind == ":")):
            raise ProgramError(f"Nothing should follow a right-hand side, but there is {shown(self.next().text)}.")
        if side.products:
            raise ProgramError("A quadratic constraint is not read.")
        if switch is None:
            self.build.row(side.terms, side.terms.values(), low, high, name)
        else:
            self.indicators.append((switch, side, low, high, name))

    def _bound(self) -> None:
        build = self.build
        if self.peek(1).text.lower() == "free":
            column = self._column()
            build.low[column], build.high[column] = -math.inf, math.inf
            self.next()
        else:
            side, limits = self._limited_sum("A variable")
            if side.products or side.constant or list(side.terms.values()) != [1.0]:
                raise ProgramError("A bound has a variable without a coefficient, and one number or two.")
            (column,) = side.terms
            build.low[column] = limits.get(">", build.low[column])
            build.high[column] = limits.get("<", build.high[column])
        if not self.ends_entry():
            raise ProgramError(f"Nothing should follow a bound in its line, but there is {shown(self.next().text)}.")

    def _whole(self) -> int:
        column = self._column("names of variables")
        self.build.whole[column] = True
        return column

    def _binary(self) -> None:
        self.binary.add(self._whole())

    def _label(self) -> str:
        """Reads the name before a colon, if there is one."""
        if (self.peek().kind, self.peek(1).kind) != ("name", ":"):
            return ""
        name = self.next().text
        self.next()
        return name

    def _switch(self) -> tuple[int, int] | None:
        """Reads `x = 1 ->`, if that comes next."""
        if [self.peek(at).kind for at in range(4)] != ["name", "compare", "number", "->"]:
            return None
        column, sense, value = self._column(), self._comparison(), self.next().text
        if value not in ("0", "1") or sense != "=":
            raise ProgramError(f"An indicator is = 0 or = 1, not {sense} {value[:40]}.")
        self.next()
        return column, int(value)

    def _limited_sum(self, what: str) -> tuple[_Sum, dict[str, float]]:
        """Reads a sum with a number behind it, before it, or both; returns its upper ("<") and lower (">") limits."""
        side, sense = self._sum(), self._comparison()
        if side.is_number:
            given = {_TURNED[sense]: side.constant}
            side = self._sum(may_end=True)
            if self.peek().kind == "compare":
                if self._comparison() != sense or sense == "=":
                    raise ProgramError(f"{what} between two numbers has <= twice, or >= twice. Say it in two lines.")
                given[sense] = self._number()
        else:
            given = {sense: self._number()}
        return side, {"<": given["="], ">": given["="]} if "=" in given else given

    def _sum(self, may_end: bool = False) -> _Sum:
        """Reads a sum, up to a comparison; where there may be none, up to a line that does not go on with a sign."""
        side = _Sum()
        while self.peek().kind not in ("compare", "section", ""):
            if side.n_terms and self.peek().kind not in ("+", "-"):
                if may_end and self.ends_entry():
                    break
                self.next("+", "-", "compare", what="+ or - or a comparison")
            self._term(side)
        if side.n_terms > 1 and not math.isfinite(side.constant):
            raise ProgramError("Infinity stands in a sum. It can only be a limit.")
        return side

    def _term(self, side: _Sum) -> None:
        weight, kind = self._sign(), self.peek().kind
        side.n_terms += 1
        if kind == "number":
            weight *= as_number(self.next().text, "A coefficient")
            if self.peek().kind == "*":
                self.next()
                kind = "*"
        if self.peek().kind == "[" and kind != "*":
            self._quadratic(side, weight)
        elif kind == "name" and self.peek().text.lower() in _INFINITE:
            self.next()
            side.constant += weight * math.inf
        elif kind == "number" and self.peek().kind != "name":
            side.constant += weight
        else:
            side.terms[self._column("a term" if kind != "*" else "a variable")] += weight

    def _quadratic(self, side: _Sum, factor: float) -> None:
        """Reads `[ 2 x * y + y ^2 ] / 2`; without the half, the terms count as they are."""
        found = defaultdict[tuple[int, int], float](float)
        self.next("[")
        while self.peek().kind != "]":
            if found and self.peek().kind not in ("+", "-"):
                self.next("+", "-", what="+ or - or ]")
            weight = self._sign()
            if self.peek().kind == "number":
                weight *= as_number(self.next().text, "A coefficient")
            left = right = self._column()
            if self.next("*", "^", what="x ^2 or x * y").kind == "*":
                right = self._column()
            elif self.next().text != "2":
                raise ProgramError("A power other than 2 is not read.")
            found[left, right] += weight
        self.next()
        if self.peek().kind == "/":
            self.next()
            divisor = as_number(self.next("number", what="a divisor").text, "A divisor")
            if not divisor:
                raise ProgramError("A divisor must not be 0.")
            factor *= 1.0 / divisor
        for pair, weight in found.items():
            side.products[pair] += factor * weight

    def _sign(self) -> float:
        sign = 1.0
        while self.peek().kind in ("+", "-"):
            sign *= -1.0 if self.next().kind == "-" else 1.0
        return sign

    def _number(self) -> float:
        sign, token = self._sign(), self.peek()
        if token.kind == "name" and token.text.lower() in _INFINITE:
            self.next()
            return sign * math.inf
        return sign * as_number(self.next("number", what="a number").text, "A limit")

    def _comparison(self) -> str:
        text = self.next("compare", what="<=, >= or =").text
        return "<" if "<" in text else ">" if ">" in text else "="

    def _column(self, what: str = "a variable") -> int:
        name = self.next("name", what=what).text
        if name.lower() in _INFINITE:
            raise ProgramError(f"Expected {what}, not {shown(name)}.")
        if name not in self.place:
            self.place[name] = self.build.column(name)
        return self.place[name]
