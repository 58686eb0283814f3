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

Every term but the first of a sum has a sign, and nothing but a label may follow a right-hand side in its line: HiGHS'
own reader takes `x y`, `3 4 x` and `x <= 0 + 5` for something else than they seem to say. Special ordered sets,
semicontinuous variables, quadratic rows and general constraints are refused.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from hasten.errors import ProgramError
from hasten.programs.reading.text import Text, as_number, shown, split
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
    re.IGNORECASE | re.ASCII,
)
_LETTER = r"[^ \t\n\r\f\v<>=+\-*^:/\[\]]"
_INSIDE = r"[^ \t\n\r\f\v<>=+*^:/\[\]]"  # brackets, as in `y[-1]`
_TOKEN = re.compile(
    r"[ \t\n\r\f\v]*(?:(?P<arrow>->)|(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
    r"|(?P<compare><=|>=|=<|=>|[<>=])|(?P<sign>[-+*^:/\[\]])"
    rf"|(?P<name>{_LETTER}(?:{_LETTER}|\[(?:{_INSIDE}|\[{_INSIDE}*\])*\])*)|(?P<end>$))"
)
_INFINITE = ("inf", "infinity", "infinite")


class _Token(NamedTuple):
    kind: str  # "number", "name", "compare", "section", the sign itself, or "" at the end of the file
    text: str
    line: int


_NOTHING = _Token("", "", 0)


@dataclass
class _Linear:
    """One side of a comparison: a sum."""

    terms: dict[int, float] = field(default_factory=dict)
    products: dict[tuple[int, int], float] = field(default_factory=dict)
    constant: float = 0.0
    n_terms: int = 0


class _Tokens:
    """The tokens of a file, one by one; a few are looked at ahead."""

    def __init__(self, text: Text) -> None:
        self._text = text
        self._made = self._make()
        self._ahead: deque[_Token] = deque()
        self._line = 0  # of the token taken last
        self.header = ""  # of the section read last, as it stands there

    def peek(self, at: int = 0) -> _Token:
        """Returns the next token, or one after it, which stays."""
        while len(self._ahead) <= at:
            self._ahead.append(next(self._made, _NOTHING))
            self._text.number = self._line or self._text.number  # errors are about the token taken last
        return self._ahead[at]

    def next(self) -> _Token:
        """Takes the next token of the section."""
        token = self.peek()
        self._text.number = token.line or self._text.number
        if token.kind in ("section", ""):
            raise ProgramError("The section ends in the middle of a line. Is the file whole?")
        self._line = token.line
        return self._ahead.popleft()

    def take(self, *kinds: str) -> bool:
        """Takes the next token if it is of one of some kinds."""
        if self.peek().kind not in kinds:
            return False
        self.next()
        return True

    def section(self) -> str:
        """Takes the header of the next section and returns which one it is."""
        token = self.peek()
        self._text.number = token.line or self._text.number
        if token.kind != "section":
            raise ProgramError(f"Expected a section, not {shown(token.text)}.")
        self._ahead.popleft()
        self._line = token.line
        name, self.header = token.text.split(" ", 1)
        return name

    @property
    def done(self) -> bool:
        """Whether the section ends here."""
        return self.peek().kind in ("section", "")

    @property
    def on_new_line(self) -> bool:
        """Whether the next token is on another line than the one before it."""
        return self.peek().line != self._line

    def _make(self) -> Iterator[_Token]:
        started = False
        for line in self._text.lines():
            number, line = self._text.number, line.split("\\", 1)[0]
            header, at = _HEADER.match(line), 0
            if header and header.lastgroup:
                started, at = True, header.end()
                yield _Token("section", f"{header.lastgroup} {header.group().strip()}", number)
            elif not started and split(line):
                raise ProgramError(f"An LP file begins with Minimize or Maximize, not {shown(line.strip())}.")
            while at < len(line):
                found = _TOKEN.match(line, at)
                kind = found.lastgroup if found else None
                word = found.group(kind) if found and kind else ""
                if found is None or kind is None or (word and _is_odd(kind, line, found.start(kind), found.end())):
                    self._text.number = number
                    odd = split(line[at:])[0]
                    raise ProgramError(f"{shown(odd)} is neither a number nor a name. Put spaces around names.")
                at = found.end()
                if word:
                    yield _Token(word if kind in ("sign", "arrow") else kind, word, number)


def _is_odd(kind: str, line: str, start: int, end: int) -> bool:
    """Whether a token looks like a number but is none, such as `1_0`, `1.2.3`, or digits of another script."""
    if kind == "number":
        return line[end : end + 1] in ("_", ".") or line[end : end + 1].isnumeric()
    return kind == "name" and line[start].isnumeric()


class _Reader:
    """Reads one section after the other."""

    def __init__(self, text: Text) -> None:
        self.text = text
        self.tokens = _Tokens(text)
        self.build = Builder(name=text.name)
        self.place: dict[str, int] = {}
        self.binary: set[int] = set()
        self.pending: list[tuple[tuple[int, int], _Linear, float, float, str]] = []  # indicators, which need bounds

    def statement(self) -> Statement:
        """Reads the file; a binary variable keeps the bounds that it is given, within 0 and 1."""
        tokens, build, seen = self.tokens, self.build, set[str]()
        while tokens.peek().kind:
            section = tokens.section()
            if section == "objective" and section in seen:
                raise ProgramError("There are two objectives. Keep one.")
            seen.add(section)
            if section == "end":
                break
            self._section(section)
        if "end" not in seen:
            raise ProgramError("The file ends without End. Is it whole?")
        if tokens.peek().kind:
            self.text.number = tokens.peek().line
            raise ProgramError(f"Nothing should come after End, but there is {shown(tokens.peek().text.split()[-1])}.")
        self.text.number = 0
        for column in self.binary:
            build.low[column], build.high[column] = max(0.0, build.low[column]), min(1.0, build.high[column])
        for switch, side, low, high, name in self.pending:
            build.indicator([switch], list(side.terms), list(side.terms.values()), low, high, name)
        return build.statement()

    def _section(self, section: str) -> None:
        tokens = self.tokens
        if section == "objective":
            self.build.maximize = tokens.header.lower().startswith("max")
            self._objective()
        while not tokens.done:
            if section == "rows":
                self._row()
            elif section == "bounds":
                self._bound()
            elif section == "refused":
                self.text.number = tokens.peek().line
                raise ProgramError(f"It has a section {shown(tokens.header)}, which is not read.")
            else:
                self._whole(section == "binary")

    def _objective(self) -> None:
        self._label()
        side = self._side()
        if not self.tokens.done:
            raise ProgramError(f"The objective ends with {shown(self.tokens.next().text)}; is `Subject To` missing?")
        for column, weight in side.terms.items():
            self.build.objective[column] += weight
        for (left, right), weight in side.products.items():
            self.build.product(left, right, weight)
        self.build.constant = side.constant

    def _row(self) -> None:
        name, switch, side = self._label(), self._switch(), self._side()
        first, sense = side.n_terms and not side.terms and not side.products, self._comparison()
        if first:  # the number comes first
            low, high = _limits(_turned(sense), side.constant)
            side = self._side(until_line_end=True)
            if self.tokens.peek().kind == "compare":
                again = self._comparison()
                if again != sense or sense == "=":
                    raise ProgramError("A row between two numbers has <= twice, or >= twice. Write two rows.")
                more = _limits(again, self._number())
                low, high = max(low, more[0]), min(high, more[1])
        else:
            low, high = _limits(sense, self._number())
        low, high = low - side.constant, high - side.constant
        self._end_of_row()
        if side.products:
            raise ProgramError("A quadratic constraint is not read.")
        if len(self.build.rows) >= MAX_ROWS:
            raise ProgramError(f"There are more than {MAX_ROWS:,} rows.")
        if switch is None:
            self.build.row(side.terms, side.terms.values(), low, high, name)
        else:
            self.pending.append((switch, side, low, high, name))

    def _end_of_row(self) -> None:
        """Refuses more in the line of a right-hand side: the next row begins in a new line, or with its name."""
        tokens = self.tokens
        labelled = tokens.peek().kind == "name" and tokens.peek(1).kind == ":"
        if not (tokens.done or tokens.on_new_line or labelled):
            raise ProgramError(f"Nothing should follow a right-hand side, but there is {shown(tokens.next().text)}.")

    def _bound(self) -> None:
        tokens, build = self.tokens, self.build
        if tokens.peek().kind == "name" and tokens.peek().text.lower() not in _INFINITE:
            column = self._column()
            if tokens.peek().kind == "name" and tokens.peek().text.lower() == "free":
                tokens.next()
                build.low[column], build.high[column] = -math.inf, math.inf
            else:
                self._set(column, self._comparison(), self._number())
        else:
            value, sense = self._number(), self._comparison()
            column = self._column()
            self._set(column, _turned(sense), value)
            if tokens.peek().kind == "compare":
                again = self._comparison()
                if again != sense or sense == "=":
                    raise ProgramError("A variable between two numbers has <= twice, or >= twice. Write two bounds.")
                self._set(column, again, self._number())
        if not (tokens.done or tokens.on_new_line):
            raise ProgramError(f"Nothing should follow a bound in its line, but there is {shown(tokens.next().text)}.")

    def _set(self, column: int, sense: str, value: float) -> None:
        low, high = _limits(sense, value)
        if low > -math.inf or sense == ">":
            self.build.low[column] = low
        if high < math.inf or sense == "<":
            self.build.high[column] = high

    def _whole(self, binary: bool) -> None:
        """Reads the name of a variable that is whole."""
        token = self.tokens.peek()
        if token.kind != "name":
            raise ProgramError(f"Expected names of variables, not {shown(self.tokens.next().text)}.")
        column = self._column()
        self.build.whole[column] = True
        if binary:
            self.binary.add(column)

    def _switch(self) -> tuple[int, int] | None:
        """Reads `x = 1 ->`, if that comes next."""
        if [self.tokens.peek(at).kind for at in range(4)] != ["name", "compare", "number", "->"]:
            return None
        column, sense, value = self._column(), self._comparison(), self.tokens.next().text
        if value not in ("0", "1") or sense != "=":
            raise ProgramError(f"An indicator is = 0 or = 1, not {sense} {value[:40]}.")
        self.tokens.next()
        return column, int(value)

    def _label(self) -> str:
        """Reads the name before a colon, if there is one."""
        if (self.tokens.peek().kind, self.tokens.peek(1).kind) != ("name", ":"):
            return ""
        name = self.tokens.next().text
        self.tokens.next()
        return name

    def _side(self, until_line_end: bool = False) -> _Linear:
        """Reads a sum, up to a comparison; where there may be none, up to a line that does not go on with a sign."""
        side, tokens = _Linear(), self.tokens
        while not tokens.done and tokens.peek().kind != "compare":
            signed = tokens.peek().kind in ("+", "-")
            if side.n_terms and not signed:
                if until_line_end and tokens.on_new_line:
                    break
                raise ProgramError(f"Expected + or - or a comparison, not {shown(tokens.next().text)}.")
            self._term(side)
        return side

    def _term(self, side: _Linear) -> None:
        sign, tokens, weight = self._sign(), self.tokens, None
        side.n_terms += 1
        if tokens.peek().kind == "number":
            weight = as_number(tokens.next().text, "A coefficient")
            if tokens.take("*") and tokens.peek().kind != "name":
                raise ProgramError("Expected a variable after *.")
        kind, factor = tokens.peek().kind, sign if weight is None else sign * weight
        if kind == "[":
            self._quadratic(side, factor)
        elif kind == "name" and weight is None and tokens.peek().text.lower() in _INFINITE:
            tokens.next()
            side.constant += sign * math.inf
        elif kind == "name":
            column = self._column()
            side.terms[column] = side.terms.get(column, 0.0) + factor
        elif weight is not None:
            side.constant += factor
        else:
            raise ProgramError(f"Expected a term, not {shown(tokens.next().text)}.")

    def _quadratic(self, side: _Linear, factor: float) -> None:
        """Reads `[ 2 x * y + y ^2 ] / 2`; without the half, the terms count as they are."""
        tokens, found, n_terms = self.tokens, dict[tuple[int, int], float](), 0
        tokens.next()
        while tokens.peek().kind != "]":
            if n_terms and tokens.peek().kind not in ("+", "-"):
                raise ProgramError(f"Expected + or - or ], not {shown(tokens.next().text)}.")
            weight, n_terms = self._sign(), n_terms + 1
            if tokens.peek().kind == "number":
                weight *= as_number(tokens.next().text, "A coefficient")
            left = right = self._column()
            token = tokens.next()
            if token.kind == "*":
                right = self._column()
            elif token.kind != "^":
                raise ProgramError(f"A quadratic term is x ^2 or x * y; here is {shown(token.text)}.")
            elif tokens.next().text != "2":
                raise ProgramError("A power other than 2 is not read.")
            found[left, right] = found.get((left, right), 0.0) + weight
        tokens.next()
        if tokens.take("/"):
            divisor = as_number(tokens.next().text, "A divisor")
            if not divisor:
                raise ProgramError("A divisor must not be 0.")
            factor *= 1.0 / divisor
        for pair, weight in found.items():
            side.products[pair] = side.products.get(pair, 0.0) + factor * weight

    def _sign(self) -> float:
        sign = 1.0
        while self.tokens.peek().kind in ("+", "-"):
            sign *= -1.0 if self.tokens.next().kind == "-" else 1.0
        return sign

    def _number(self) -> float:
        sign, token = self._sign(), self.tokens.next()
        if token.kind == "name" and token.text.lower() in _INFINITE:
            return sign * math.inf
        if token.kind != "number":
            raise ProgramError(f"Expected a number, not {shown(token.text)}.")
        return sign * as_number(token.text, "A limit")

    def _comparison(self) -> str:
        token = self.tokens.next()
        if token.kind != "compare":
            raise ProgramError(f"Expected <=, >= or =, not {shown(token.text)}.")
        return "<" if "<" in token.text else ">" if ">" in token.text else "="

    def _column(self) -> int:
        """Reads the name of a variable and returns its column."""
        token = self.tokens.next()
        if token.kind != "name":
            raise ProgramError(f"Expected a variable, not {shown(token.text)}.")
        column = self.place.get(token.text)
        if column is None:
            if len(self.place) >= MAX_COLUMNS:
                raise ProgramError(f"There are more than {MAX_COLUMNS:,} columns.")
            column = self.place[token.text] = self.build.column(token.text)
        return column


def read_lp(text: Text) -> Statement:
    """Reads an LP file."""
    return _Reader(text).statement()


def _limits(sense: str, value: float) -> tuple[float, float]:
    return (-math.inf if sense == "<" else value), (math.inf if sense == ">" else value)


def _turned(sense: str) -> str:
    return {"<": ">", ">": "<", "=": "="}[sense]
