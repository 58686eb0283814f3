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
from fractions import Fraction
from itertools import product
from typing import Any

from hasten.errors import ProblemError

Terms = dict[int, Fraction]  # weights by column, or multipliers by constraint
Label = tuple[int, int]  # of a variable


class Part:
    """A part of the labellings: messages, prices, and the constraints that leave labels out."""

    def __init__(self, like: Part | None = None) -> None:
        self.sent: dict[tuple[int, int, int], Fraction] = dict(like.sent) if like else {}  # by table, variable, label
        self.prices: dict[int, Fraction] = dict(like.prices) if like else {}
        self.out: list[tuple[int, set[Label]]] = list(like.out) if like else []  # constraints: these are 0
        self.fixed: dict[int, int] = dict(like.fixed) if like else {}
        self.broken: int | None = None  # a row that cannot hold

    @property
    def gone(self) -> set[Label]:
        """The labels that are left out."""
        return {label for _, labels in self.out for label in labels}


class Split:
    """A split whose parts are derived one after the other."""

    def __init__(self, before: Part, v: int, parts: list[list[int]]) -> None:
        self.before, self.v, self.parts, self.asked = before, v, parts, -1
        self.done: list[tuple[int, int, int]] = []  # what is shown, by which assumption, and the opposite of that

    def labels(self, program: Program) -> set[Label]:
        """Returns the labels of the part that is to be derived."""
        return {(self.v, i) for i in self.parts[len(self.done)]} & program.x.keys()

    def end(self, program: Program, shown: int) -> None:
        """Ends a part, and assumes the opposite for those that come."""
        labels = self.labels(program)
        terms = {program.x[label]: Fraction(1) for label in labels}
        no = program.derive("L", Fraction(0), terms, "asm")
        self.done.append((shown, self.asked, no))
        self.before = Part(self.before)
        self.before.out.append((no, labels))


class Program:
    """The integer program of a certificate, and the derived constraints."""

    def __init__(self, lines: Iterable[str]) -> None:
        steps = [json.loads(line) for line in lines]
        at = next(n for n, step in enumerate(steps) if step[0] == "claim")
        self.costs = [_costs(step[1:]) for step in steps[:at] if step[0] == "variable"]
        sizes = [len(step) - 1 for step in steps[:at] if step[0] == "variable"]
        self.tables: dict[int, tuple[list[int], dict[Any, Fraction]]] = {}
        for n, (_, scope, costs) in enumerate(step for step in steps[:at] if step[0] == "table"):
            labels = list(product(*(range(sizes[v]) for v in scope)))
            entries = {labels[i]: x for i, x in _costs(costs).items() if self.finite(scope, labels[i])}
            if len(scope) == 1:
                (v,) = scope
                self.costs[v] = {i: x + entries[i,] for i, x in self.costs[v].items() if (i,) in entries}
            else:
                self.tables[n] = scope, entries
        self.tables = {
            n: (scope, {each: x for each, x in entries.items() if self.finite(scope, each)})
            for n, (scope, entries) in self.tables.items()
        }
        self.x = {label: n for n, label in enumerate((v, i) for v, costs in enumerate(self.costs) for i in costs)}
        every = ((t, each) for t, (_, costs) in self.tables.items() for each in costs)
        self.y: dict[tuple[int, Any], int] = {entry: n for n, entry in enumerate(every, len(self.x))}
        self.objective = {n: self.costs[v][i] for (v, i), n in self.x.items()}
        self.objective |= {n: self.tables[t][1][each] for (t, each), n in self.y.items()}
        (_, self.lower, self.upper, self.answer, self.unit), self.proof = steps[at], steps[at + 1 :]
        self.rows: list[tuple[Mapping[Label, Fraction], Any, Any]] = []
        for _, terms, low, high in (step for step in steps[:at] if step[0] == "row"):
            sums = defaultdict[Label, Fraction](Fraction)
            for v, i, weight in terms:
                if (v, i) in self.x:
                    sums[v, i] += Fraction(weight)
            self.rows.append((sums, low, high))
        self.constraints = [("G", Fraction(0), {n: Fraction(1)}) for n in range(len(self.x) + len(self.y))]
        self.names: dict[Any, int] = {}
        for v, costs in enumerate(self.costs):
            self._state(v, "E", 1, {self.x[v, i]: 1 for i in costs})
        for t, (scope, entries) in self.tables.items():
            ones = defaultdict[Label, Terms](dict)
            for each in entries:
                for v, i in zip(scope, each, strict=True):
                    ones[v, i][self.y[t, each]] = Fraction(1)
            for v in scope:
                for i in self.costs[v]:
                    self._state((t, v, i), "E", 0, ones[v, i] | {self.x[v, i]: Fraction(-1)})
        for r, (weights, low, high) in enumerate(self.rows):
            for sense, limit in (("G", low), ("L", high)):
                if limit is not None:
                    self._state((r, sense), sense, limit, {self.x[label]: x for label, x in weights.items()})
        self.stated, self.reasons = len(self.constraints), list[str]()

    def finite(self, scope: list[int], labels: tuple[int, ...]) -> bool:
        """Whether none of some labels is forbidden by its own cost."""
        return all(i in self.costs[v] for v, i in zip(scope, labels, strict=True))

    def _state(self, name: Any, sense: str, limit: Any, terms: Mapping[int, Any]) -> None:
        self.names[name] = len(self.constraints)
        exact = {n: Fraction(x) for n, x in terms.items() if x}
        self.constraints.append((sense, Fraction(limit), exact))

    def derive(self, sense: str, limit: Fraction, terms: Terms | None, reason: str) -> int:
        """Adds a derived constraint; None are the terms of the objective."""
        self.constraints.append((sense, limit, self.objective if terms is None else terms))
        self.reasons.append(reason)
        return len(self.constraints) - 1

    def prove(self) -> None:
        """Derives what is claimed, part by part."""
        part, splits = Part(), list[Split]()
        for name, *given in self.proof:
            if name == "move":
                for i, x in enumerate(given[2]):
                    key = given[0], given[1], i
                    part.sent[key] = part.sent.get(key, Fraction(0)) + Fraction(x)
            elif name == "price":
                part.prices[given[0]] = Fraction(given[1])
            elif name == "count" and not given[1]:
                (part.broken,) = given[0]
            elif name == "split":
                self._leave_out(part, given[0])
                splits.append(Split(part, *given))
                part = self._next_part(splits[-1])
            elif name == "sum":
                shown = self._leaf(part)
                while splits and len(splits[-1].done) == len(splits[-1].parts) - 1:
                    for yes, asked, no in reversed(splits.pop().done):
                        shown = self._bound(f"uns {yes} {asked} {shown} {no}")
                if splits:
                    splits[-1].end(self, shown)
                    part = self._next_part(splits[-1])
            else:
                raise ProblemError(
                    f"VIPR cannot express a step of this proof: {name} {given}. Write one that only sends messages and "
                    "splits: Certifier(max_join=0).certificate(problem)."
                )

    def _leave_out(self, part: Part, v: int) -> None:
        """Derives that labels of a variable are left out that a table forbids with what is fixed."""
        gone = part.gone
        labels = {label for label in self._blocked(part, gone) if label[0] == v}
        if labels:
            terms = {self.x[label]: Fraction(1) for label in labels}
            _, used = self._combined(part, gone, {n: -x for n, x in terms.items()}, {}, {})
            reason = _combination("lin", {n: -x for n, x in used.items()})
            part.out.append((self.derive("L", Fraction(0), terms, reason), labels))

    def _next_part(self, split: Split) -> Part:
        """Returns the next part of a split; all but the last begin with an assumption."""
        v, labels = split.v, split.labels(self)
        part = Part(split.before)
        if len(split.done) < len(split.parts) - 1:
            split.asked = self.derive("G", Fraction(1), {self.x[label]: Fraction(1) for label in labels}, "asm")
            others = {(v, i) for i in self.costs[v]} - labels
            terms = {self.x[label]: Fraction(1) for label in others}
            out = self.derive("L", Fraction(0), terms, _combination("lin", {self.names[v]: 1, split.asked: -1}))
            part.out.append((out, others))
        if len(split.parts[len(split.done)]) == 1:
            (part.fixed[v],) = split.parts[len(split.done)]
        return part

    def _bound(self, reason: str) -> int:
        """Derives what is claimed, for a reason."""
        if self.lower == "inf":
            return self.derive("G", Fraction(1), {}, reason)
        return self.derive("G", Fraction(self.lower), None, reason)

    def _leaf(self, part: Part) -> int:
        """Derives the bound of a part, or that nothing is left of it."""
        gone = part.gone
        if (empty := self._nothing(part, gone)) is not None:
            bound, used = empty
            return self.derive("G", Fraction(1), {}, _combination("lin", {n: x / bound for n, x in used.items()}))
        bound, used = self._combined(part, gone, self.objective, part.sent, part.prices)
        if self.lower == "inf" or bound >= Fraction(self.lower) or not self.unit:
            return self._bound(_combination("lin", used))
        unit = Fraction(self.unit)
        least = -(-bound // unit)  # in units
        terms = {n: x / unit for n, x in self.objective.items() if x}
        rounded = self.derive("G", Fraction(least), terms, _combination("rnd", {n: x / unit for n, x in used.items()}))
        return self._bound(_combination("lin", {rounded: unit}))

    def _nothing(self, part: Part, gone: set[Label]) -> tuple[Fraction, Terms] | None:
        """Returns how to derive 0 > 0 where a row cannot hold, or a variable or table has nothing left; else None."""
        if part.broken is not None:
            for sign, limit in ((Fraction(-1), 2), (Fraction(1), 1)):
                if self.rows[part.broken][limit] is not None:
                    bound, used = self._combined(part, gone, {}, {}, {part.broken: sign})
                    if bound > 0:
                        return bound, used
        blocked = gone | self._blocked(part, gone).keys()
        empty = any(all((v, i) in blocked for i in costs) for v, costs in enumerate(self.costs))
        empty = empty or any(
            all(self._out(t, each, gone) for each in entries) for t, (_, entries) in self.tables.items()
        )
        return self._combined(part, gone, {}, {}, {}) if empty else None

    def _out(self, t: int, each: tuple[int, ...], gone: set[Label]) -> Label | None:
        """Returns a label of a table's entry that is left out, if there is one."""
        return next((label for label in zip(self.tables[t][0], each, strict=True) if label in gone), None)

    def _blocked(self, part: Part, gone: set[Label]) -> dict[Label, int]:
        """Returns labels that a table forbids with the labels that are fixed, each with the table."""
        found: dict[Label, int] = {}
        for t, (scope, entries) in self.tables.items():
            free = [v for v in scope if v not in part.fixed]
            if len(free) == 1:
                allowed = {each[scope.index(free[0])] for each in entries if self._out(t, each, gone) is None}
                found |= {(free[0], i): t for i in self.costs[free[0]] if i not in allowed and (free[0], i) not in gone}
        return found

    def _combined(
        self,
        part: Part,
        gone: set[Label],
        objective: Mapping[int, Fraction],
        sent: Mapping[tuple[int, int, int], Fraction],
        prices: Mapping[int, Fraction],
    ) -> tuple[Fraction, Terms]:
        """Returns a lower limit of an objective in a part, and the multipliers of constraints that show it."""
        zero, blocked = Fraction(0), self._blocked(part, gone)
        moved = defaultdict[tuple[int, int, int], Fraction](
            Fraction, {k: x for k, x in sent.items() if k[1:] in self.x}
        )

        def rest(t: int, each: tuple[int, ...]) -> Fraction:
            """Returns what messages leave of an entry."""
            scope = self.tables[t][0]
            own = sum((moved[t, v, i] for v, i in zip(scope, each, strict=True)), zero)
            return objective.get(self.y[t, each], zero) - own

        for t, (scope, entries) in self.tables.items():
            free = [v for v in scope if v not in part.fixed]
            for each in entries if len(free) == 1 else ():  # that is a cost of the other one
                if self._out(t, each, gone) is None:
                    moved[t, free[0], each[scope.index(free[0])]] += rest(t, each)
        reduced = {label: objective.get(n, zero) for label, n in self.x.items()}
        for (_, v, i), x in moved.items():
            reduced[v, i] += x
        for r, u in prices.items():
            for label, weight in self.rows[r][0].items():
                reduced[label] -= u * weight
        ones = dict[int, Fraction]()  # multipliers of "one of its labels"
        for v, costs in enumerate(self.costs):
            some = [reduced[v, i] for i in costs if (v, i) not in gone and (v, i) not in blocked]
            ones[v] = min(some, default=Fraction(1))
            for i in costs:
                if (v, i) in blocked and reduced[v, i] < ones[v]:
                    moved[blocked[v, i], v, i] += ones[v] - reduced[v, i]
                    reduced[v, i] = ones[v]
        used: Terms = {}
        for t, (scope, entries) in self.tables.items():
            least = min((rest(t, each) for each in entries if self._out(t, each, gone) is None), default=Fraction(1))
            ones[scope[0]] += least
            for i in self.costs[scope[0]]:
                moved[t, scope[0], i] += least
                reduced[scope[0], i] += least
            for each in entries:
                found = self._out(t, each, gone)
                if found is not None and rest(t, each) < 0:
                    reduced[found] += rest(t, each)
                    moved[(t, *found)] += rest(t, each)
            used |= {self.y[t, each]: rest(t, each) for each in entries}
        bound = sum(ones.values(), zero)
        for r, u in prices.items():
            if u:
                side = "G" if u > 0 else "L"
                used[self.names[r, side]] = u
                bound += u * self.constraints[self.names[r, side]][1]
        used |= {self.names[v]: x for v, x in ones.items()} | {self.names[key]: x for key, x in moved.items()}
        left = {label: x - ones[label[0]] for label, x in reduced.items()}
        for constraint, labels in part.out:
            short = max((-left[label] for label in labels), default=zero)
            if short > 0:
                used[constraint] = -short
                left |= {label: left[label] + short for label in labels}
        used |= {self.x[label]: x for label, x in left.items()}
        return bound, used

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return [f"x_{v}_{i}" for v, i in self.x] + [f"y_{t}_{'_'.join(map(str, each))}" for t, each in self.y]

    def lp(self) -> str:
        """Returns the integer program as an LP file."""
        names = self.columns or ["nothing"]

        def total(terms: Terms) -> str:
            some = [f"{float(x):+.17g} {names[n]}" for n, x in terms.items() if x]
            return "\n  ".join(some) or f"0 {names[0]}"

        lines = ["Minimize", f" cost: {total(self.objective)}", "Subject To"]
        for k, (sense, limit, terms) in enumerate(self.constraints[len(self.columns) : self.stated]):
            relation = {"E": "=", "L": "<=", "G": ">="}[sense]
            lines.append(f" C{k}: {total(terms)} {relation} {float(limit):.17g}")
        return "\n".join([*lines, "Binary", *(f" {name}" for name in names), "End"]) + "\n"

    def text(self) -> str:
        """Returns the file."""
        columns = self.columns
        n, answer = len(columns), self.answer
        lines = ["% written by hasten", "VER 1.0", f"VAR {n}", *columns, f"INT {n}", " ".join(map(str, range(n)))]
        lines += ["OBJ min", _terms(self.objective), f"CON {self.stated} {n}"]
        shown = [f"C{k} {sense} {limit} {_terms(terms)}" for k, (sense, limit, terms) in enumerate(self.constraints)]
        lines += shown[: self.stated]
        exact = [str(Fraction(x)) if x != "inf" else x for x in (self.lower, self.upper)]
        lines.append("RTP infeas" if self.lower == "inf" else f"RTP range {exact[0]} {exact[1]}")
        chosen = list[int]()
        if answer is not None:
            chosen = [self.x[v, i] for v, i in enumerate(answer)]
            chosen += [self.y[t, tuple(answer[v] for v in scope)] for t, (scope, _) in self.tables.items()]
        lines += [f"SOL {0 if answer is None else 1}"]
        lines += [] if answer is None else [f"answer {_terms({k: Fraction(1) for k in sorted(chosen)})}"]
        lines.append(f"DER {len(self.reasons)}")
        derived = zip(shown[self.stated :], self.constraints[self.stated :], self.reasons, strict=True)
        for text, (sense, limit, terms), reason in derived:
            named = text if terms is not self.objective else f"{text.split()[0]} {sense} {limit} OBJ"
            lines.append(f"{named} {{ {reason} }} -1")
        return "\n".join(lines) + "\n"


def _costs(given: Iterable[Any]) -> dict[int, Fraction]:
    """Returns finite costs by place."""
    return {i: Fraction(x) for i, x in enumerate(given) if x != "inf"}


def _terms(terms: Mapping[int, Any]) -> str:
    """Returns numbers with their weights, as the format has them."""
    some = {n: x for n, x in terms.items() if x}
    return " ".join([str(len(some)), *(f"{n} {x}" for n, x in some.items())])


def _combination(name: str, multipliers: Mapping[int, Any]) -> str:
    """Returns a linear combination of constraints as a reason."""
    return f"{name} {_terms(multipliers)}"


def to_vipr(lines: Iterable[str]) -> tuple[str, str]:
    """Returns the lines of a certificate as a file in VIPR's format, and its integer program as an LP file."""
    program = Program(lines)
    program.prove()
    return program.text(), program.lp()
