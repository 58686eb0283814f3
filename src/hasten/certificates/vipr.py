"""Certificates for VIPR, the format in which exact MIP solvers write proofs (github.com/scipopt/vipr).

The problem is stated as an integer program: an indicator x for each label, of which a variable has one, and y for each
entry of a table, whose sums over the entries with a label are that label's indicator. A message is a multiplier of such
a sum, a price one of a row, a least entry one of "one of its labels", and what is left above it one of a bound. So each
part is a linear combination (`lin`, `rnd`), and parts of a split are put together (`asm`, `uns`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from hasten import certificate as checker
from hasten.errors import ProblemError

Terms = Mapping[int, Fraction]  # weights by column, or multipliers by constraint
Label = tuple[int, int]  # of a variable
ZERO, ONE = Fraction(0), Fraction(1)


@dataclass
class Part:
    """A part of the labellings: messages, prices, and the constraints that leave labels out."""

    sent: dict[tuple[int, int, int], Fraction] = field(default_factory=dict)  # by table, variable, label
    prices: dict[int, Fraction] = field(default_factory=dict)
    out: dict[int, set[Label]] = field(default_factory=dict)  # by constraint: these are 0
    fixed: frozenset[int] = frozenset()  # variables that have one label
    broken: tuple[int, ...] = ()  # rows of which one cannot hold


class Program:
    """The integer program of a certificate, and the derived constraints."""

    def __init__(self, lines: Iterable[str]) -> None:
        steps, state = [json.loads(line) for line in lines], checker.State()
        at = next(n for n, step in enumerate(steps) if step[0] == "claim")
        for name, *given in steps[:at]:
            getattr(state, name)(*given)
        (_, self.lower, self.upper, self.answer, self.unit), self.proof = steps[at], steps[at + 1 :]
        self.columns, self.objective = list[str](), dict[int, Fraction]()
        costs = [state.functions[~v][1] for v in range(len(state.sizes))]
        self.labels = [[i for (i,) in own] for own in costs]
        self.x = {(v, i): self._column(f"x_{v}_{i}", x) for v, own in enumerate(costs) for (i,), x in own.items()}
        self.tables = dict[int, tuple[tuple[int, ...], dict[tuple[int, ...], int]]]()  # scope; columns of entries
        for t, (scope, entries, _) in sorted(each for each in state.functions.items() if each[0] >= 0):
            some = {a: x for a, x in entries.items() if all(label in self.x for label in zip(scope, a, strict=True))}
            self.tables[t] = scope, {a: self._column(f"y_{t}_{'_'.join(map(str, a))}", x) for a, x in some.items()}
        if not self.columns:
            self._column("nothing", 0)  # viprchk refuses a program without constraints
        self.constraints = list[tuple[str, Fraction, Terms, str]]()  # with the reason of a derived one
        self.names = dict[Any, int]()
        for n in range(len(self.columns)):
            self.add("G", ZERO, {n: ONE})
        for v, own in enumerate(self.labels):
            self.names[v] = self.add("E", ONE, {self.x[v, i]: ONE for i in own})
        for t, (scope, columns) in self.tables.items():
            sums = {(v, i): {self.x[v, i]: -ONE} for v in scope for i in self.labels[v]}
            for each, y in columns.items():
                for label in zip(scope, each, strict=True):
                    sums[label][y] = ONE
            for label, terms in sums.items():
                self.names[(t, *label)] = self.add("E", ZERO, terms)
        for r, (row, low, high) in enumerate(state.rows):
            terms = {
                self.x[v, i]: _exact(x) for v, own in row.items() for i, x in own.items() if x and (v, i) in self.x
            }
            for sense, limit in (("G", low), ("L", high)):
                if abs(limit) < checker.INFINITE:
                    self.names[r, sense] = self.add(sense, _exact(limit), terms)
        self.stated = len(self.constraints)

    def _column(self, name: str, cost: int) -> int:
        """Adds a column, and returns its number."""
        self.objective[len(self.columns)] = _exact(cost)
        self.columns.append(name)
        return len(self.columns) - 1

    def add(self, sense: str, limit: Fraction, terms: Terms, reason: str = "") -> int:
        """Adds a constraint, derived for a reason, and returns its number."""
        self.constraints.append((sense, limit, terms, reason))
        return len(self.constraints) - 1

    def _about(self, sense: str, limit: Fraction, labels: Iterable[Label], reason: str) -> int:
        """Derives how many of some labels are chosen."""
        return self.add(sense, limit, {self.x[label]: ONE for label in labels}, reason)

    def prove(self) -> None:
        """Derives what is claimed, part by part."""
        part, splits = Part(), list[Any]()  # of each split: the part before it, its variable, parts to come, the others
        for name, *given in self.proof:
            if name == "move":
                for i, x in enumerate(given[2]):
                    key = given[0], given[1], i
                    part.sent[key] = part.sent.get(key, ZERO) + Fraction(x)
            elif name == "price":
                part.prices[given[0]] = Fraction(given[1])
            elif name == "count" and not given[1]:
                part.broken = tuple(given[0])
            elif name == "split":
                splits.append((part, given[0], given[1][::-1], []))
                part = self._next_part(*splits[-1])
            elif name == "sum":
                shown = self._leaf(part)
                while splits and not splits[-1][2]:
                    for yes, asked, no in reversed(splits.pop()[3]):
                        shown = self._bound(f"uns {yes} {asked} {shown} {no}")
                if splits:  # the opposite of what this part assumed holds in those that come
                    before, _, _, done = splits[-1]
                    asked, labels = done[-1]
                    no = self._about("L", ZERO, labels, "asm")
                    before.out[no], done[-1] = labels, (shown, asked, no)
                    part = self._next_part(*splits[-1])
            else:
                raise ProblemError(
                    f"VIPR cannot express a step of this proof: {name} {given}. Write one that only sends messages and "
                    "splits: Certifier(max_join=0).certificate(problem)."
                )

    def _next_part(self, before: Part, v: int, to_come: list[list[int]], done: list[Any]) -> Part:
        """Returns the next part of a split; all but the last begin with an assumption."""
        chosen = to_come.pop()
        part = Part(before.sent.copy(), before.prices.copy(), before.out.copy(), before.fixed)
        if to_come:
            labels = {(v, i) for i in chosen} & self.x.keys()
            others = {(v, i) for i in self.labels[v]} - labels
            asked = self._about("G", ONE, labels, "asm")
            done.append((asked, labels))
            part.out[self._about("L", ZERO, others, f"lin {_terms({self.names[v]: 1, asked: -1})}")] = others
        if len(chosen) == 1:
            part.fixed |= {v}
        return part

    def _bound(self, reason: str) -> int:
        """Derives what is claimed, for a reason."""
        if self.lower == "inf":
            return self.add("G", ONE, {}, reason)
        return self.add("G", Fraction(self.lower), self.objective, reason)

    def _leaf(self, part: Part) -> int:
        """Derives the bound of a part, or that nothing is left of it."""
        for prices in ({}, *({r: u} for r in part.broken for u in (-ONE, ONE))):
            if all((r, "G" if u > 0 else "L") in self.names for r, u in prices.items()):
                bound, used = self._combined(replace(part, sent={}, prices=prices), {})
                if bound > 0:
                    return self.add("G", ONE, {}, f"lin {_terms({n: u / bound for n, u in used.items()})}")
        bound, used = self._combined(part, self.objective)
        if self.lower == "inf" or bound >= Fraction(self.lower) or not self.unit:
            return self._bound(f"lin {_terms(used)}")
        unit = Fraction(self.unit)
        terms, reason = ({n: x / unit for n, x in some.items()} for some in (self.objective, used))
        rounded = self.add("G", Fraction(-(-bound // unit)), terms, f"rnd {_terms(reason)}")
        return self._bound(f"lin {_terms({rounded: unit})}")

    def _combined(self, part: Part, objective: Terms) -> tuple[Fraction, Terms]:
        """Returns a lower limit of an objective in a part, and the multipliers of constraints that show it."""
        bound, used, left = ZERO, dict[int, Fraction](), defaultdict[int, Fraction](Fraction, objective)

        def use(constraint: int, u: Fraction) -> None:
            """Takes a multiple of a constraint from what is left of the objective."""
            nonlocal bound
            _, limit, terms, _ = self.constraints[constraint]
            bound, used[constraint] = bound + u * limit, used.get(constraint, ZERO) + u
            for n, weight in terms.items() if u else ():
                left[n] -= u * weight

        gone = {label for labels in part.out.values() for label in labels}
        for message, x in part.sent.items():
            if message in self.names:  # else its label is forbidden
                use(self.names[message], x)
        for r, u in part.prices.items():
            if u:
                use(self.names[r, "G" if u > 0 else "L"], u)
        for t, (scope, columns) in self.tables.items():
            labels = {y: list(zip(scope, each, strict=True)) for each, y in columns.items()}
            out = {
                y: next(label for label in own if label in gone)
                for y, own in labels.items()
                if not gone.isdisjoint(own)
            }
            free = [v for v in scope if v not in part.fixed]
            if len(free) == 1:  # each entry is a cost of the other one's label
                n, (v,) = scope.index(free[0]), free
                costs = {labels[y][n]: y for y in columns.values() if y not in out}
                if {(v, i) for i in self.labels[v]} - gone == costs.keys():
                    for label, y in costs.items():
                        use(self.names[(t, *label)], left[y])
            least = min((left[y] for y in columns.values() if y not in out), default=ONE)
            for i in self.labels[scope[0]]:
                use(self.names[t, scope[0], i], least)
            for y, label in out.items():
                if left[y] < 0:
                    use(self.names[(t, *label)], left[y])
        for v, own in enumerate(self.labels):
            use(self.names[v], min((left[self.x[v, i]] for i in own if (v, i) not in gone), default=ONE))
        for constraint, some in part.out.items():
            use(constraint, min((left[self.x[label]] for label in some if left[self.x[label]] < 0), default=ZERO))
        return bound, used | left  # the first constraints say that no column is negative

    def lp(self) -> str:
        """Returns the integer program as an LP file."""

        def total(terms: Terms) -> str:
            some = [f"{float(x):+.17g} {self.columns[n]}" for n, x in terms.items() if x]
            return "\n  ".join(some) or f"0 {self.columns[0]}"

        lines = ["Minimize", f" cost: {total(self.objective)}", "Subject To"]
        for k, (sense, limit, terms, _) in enumerate(self.constraints[len(self.columns) : self.stated]):
            relation = {"E": "=", "L": "<=", "G": ">="}[sense]
            lines.append(f" C{k}: {total(terms)} {relation} {float(limit):.17g}")
        return "\n".join([*lines, "Binary", *(f" {name}" for name in self.columns), "End"]) + "\n"

    def text(self) -> str:
        """Returns the file."""
        n, limits = len(self.columns), [x if x == "inf" else Fraction(x) for x in (self.lower, self.upper)]
        lines = ["% written by hasten", "VER 1.0", f"VAR {n}", *self.columns, f"INT {n}", " ".join(map(str, range(n)))]
        lines += ["OBJ min", _terms(self.objective), f"CON {self.stated} {n}"]
        derived = ["RTP infeas" if self.lower == "inf" else f"RTP range {limits[0]} {limits[1]}", "SOL 0"]
        if self.answer is not None:
            chosen = [self.x[label] for label in enumerate(self.answer)]
            chosen += [columns[tuple(self.answer[v] for v in scope)] for scope, columns in self.tables.values()]
            derived[1:] = ["SOL 1", f"answer {_terms(dict.fromkeys(sorted(chosen), 1))}"]
        derived.append(f"DER {len(self.constraints) - self.stated}")
        for k, (sense, limit, terms, reason) in enumerate(self.constraints):
            shown = f"C{k} {sense} {limit} {'OBJ' if terms is self.objective else _terms(terms)}"
            (derived if reason else lines).append(f"{shown} {{ {reason} }} -1" if reason else shown)
        return "\n".join([*lines, *derived]) + "\n"


def _exact(x: int) -> Fraction:
    """Returns a number as the checker counts."""
    return Fraction(x, checker.UNIT)


def _terms(terms: Mapping[int, Any]) -> str:
    """Returns numbers with their weights, as the format has them."""
    some = {n: x for n, x in terms.items() if x}
    return " ".join([str(len(some)), *(f"{n} {x}" for n, x in some.items())])


def to_vipr(lines: Iterable[str]) -> tuple[str, str]:
    """Returns the lines of a certificate as a file in VIPR's format, and its integer program as an LP file."""
    program = Program(lines)
    program.prove()
    return program.text(), program.lp()
