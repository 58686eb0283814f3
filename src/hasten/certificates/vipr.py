"""Certificates for VIPR, the format in which exact MIP solvers write proofs (github.com/scipopt/vipr).

The problem is stated as an integer program: an indicator x for each label, of which a variable has one, and y for each
entry of a table, whose sums over the entries with a label are that label's indicator. A message is a multiplier of such
a sum, a price one of a row, a least entry one of "one of its labels", and what is left above it one of a bound. So each
part is a linear combination (`lin`, `rnd`), and parts of a split are put together (`asm`, `uns`).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
    broken: int | None = None  # a row that cannot hold

    def copy(self) -> Part:
        """Returns one that may be changed."""
        return Part(dict(self.sent), dict(self.prices), dict(self.out), self.fixed)


class Program:
    """The integer program of a certificate, and the derived constraints."""

    def __init__(self, lines: Iterable[str]) -> None:
        steps, state = [json.loads(line) for line in lines], checker.State()
        at = next(n for n, step in enumerate(steps) if step[0] == "claim")
        for name, *given in steps[:at]:
            getattr(state, name)(*given)
        (_, self.lower, self.upper, self.answer, self.unit), self.proof = steps[at], steps[at + 1 :]
        costs = [state.functions[~v][1] for v in range(len(state.sizes))]
        self.labels = [[i for (i,) in each] for each in costs]
        self.x = {label: n for n, label in enumerate((v, i) for v, own in enumerate(self.labels) for i in own)}
        self.tables = {
            t: (scope, [each for each in entries if all(label in self.x for label in zip(scope, each, strict=True))])
            for t, (scope, entries, _) in state.functions.items()
            if t >= 0
        }
        every = ((t, each) for t, (_, entries) in self.tables.items() for each in entries)
        self.y: dict[tuple[int, Any], int] = {entry: n for n, entry in enumerate(every, len(self.x))}
        self.objective = {n: _exact(costs[v][i,]) for (v, i), n in self.x.items()}
        self.objective |= {n: _exact(state.functions[t][1][each]) for (t, each), n in self.y.items()}
        self.columns = [f"x_{v}_{i}" for v, i in self.x] + [f"y_{t}_{'_'.join(map(str, each))}" for t, each in self.y]
        self.columns = self.columns or ["nothing"]  # viprchk refuses a program without constraints
        self.constraints: list[tuple[str, Fraction, Terms]] = [("G", ZERO, {n: ONE}) for n in range(len(self.columns))]
        self.names, self.reasons = dict[Any, int](), list[str]()
        for v, own in enumerate(self.labels):
            self._state(v, "E", ONE, {self.x[v, i]: ONE for i in own})
        for t, (scope, entries) in self.tables.items():
            ones = {(v, i): {self.x[v, i]: -ONE} for v in scope for i in self.labels[v]}
            for each in entries:
                for label in zip(scope, each, strict=True):
                    ones[label][self.y[t, each]] = ONE
            for label, terms in ones.items():
                self._state((t, *label), "E", ZERO, terms)
        self.rows: list[dict[Label, Fraction]] = []
        for r, (row, low, high) in enumerate(state.rows):
            every_weight = {(v, i): _exact(x) for v, own in row.items() for i, x in own.items()}
            self.rows.append({label: weight for label, weight in every_weight.items() if weight and label in self.x})
            for sense, limit in (("G", low), ("L", high)):
                if abs(limit) < checker.INFINITE:
                    self._state((r, sense), sense, _exact(limit), {self.x[k]: x for k, x in self.rows[r].items()})
        self.stated = len(self.constraints)

    def _state(self, name: Any, sense: str, limit: Fraction, terms: Terms) -> None:
        self.names[name] = len(self.constraints)
        self.constraints.append((sense, limit, terms))

    def derive(self, sense: str, limit: Fraction, terms: Terms, reason: str) -> int:
        """Adds a derived constraint, and returns its number."""
        self.constraints.append((sense, limit, terms))
        self.reasons.append(reason)
        return len(self.constraints) - 1

    def _about(self, sense: str, limit: Fraction, labels: Iterable[Label], reason: str) -> int:
        """Derives how many of some labels are chosen."""
        return self.derive(sense, limit, {self.x[label]: ONE for label in labels}, reason)

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
                (part.broken,) = given[0]
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
        part, chosen = before.copy(), to_come.pop()
        if to_come:
            labels = {(v, i) for i in chosen} & self.x.keys()
            others = {(v, i) for i in self.labels[v]} - labels
            asked = self._about("G", ONE, labels, "asm")
            done.append((asked, labels))
            part.out[self._about("L", ZERO, others, f"lin {_terms({self.names[v]: 1, asked: -1})}")] = others
        if len(chosen) == 1:
            part.fixed |= {v}
        self._leave_labels(part)
        return part

    def _leave_labels(self, part: Part) -> None:
        """Derives that labels are left out that no entry of some table has any more."""
        gone, before = {label for labels in part.out.values() for label in labels}, -1
        while before < len(gone):
            before = len(gone)
            for t, (scope, entries) in self.tables.items():
                out = {each: self._out(t, each, gone) for each in entries}
                left = {label for each in entries if out[each] is None for label in zip(scope, each, strict=True)}
                for label in sorted({(v, i) for v in scope for i in self.labels[v]} - left - gone) if left else ():
                    i = scope.index(label[0])
                    others = {found for each, found in out.items() if each[i] == label[1] and found is not None}
                    reasons = {next(k for k, labels in part.out.items() if other in labels) for other in others}
                    used = {self.names[(t, *other)]: 1 for other in others} | dict.fromkeys(reasons, 1)
                    used[self.names[(t, *label)]] = -1
                    total = Counter({self.x[label]: -1})  # what is added up must be the label's indicator alone
                    for k, times in used.items():
                        total.update({n: times * int(x) for n, x in self.constraints[k][2].items()})
                    none = self._about("L", ZERO, [label], f"lin {_terms(used | {n: -x for n, x in total.items()})}")
                    part.out[none] = {label}
                    gone.add(label)

    def _bound(self, reason: str) -> int:
        """Derives what is claimed, for a reason."""
        if self.lower == "inf":
            return self.derive("G", ONE, {}, reason)
        return self.derive("G", Fraction(self.lower), self.objective, reason)

    def _leaf(self, part: Part) -> int:
        """Derives the bound of a part, or that nothing is left of it."""
        gone = {label for labels in part.out.values() for label in labels}
        empty = any(all((v, i) in gone for i in own) for v, own in enumerate(self.labels))
        empty = empty or any(all(self._out(t, each, gone) for each in self.tables[t][1]) for t in self.tables)
        nothing = Part(out=part.out, fixed=part.fixed)
        candidates: list[dict[int, Fraction]] = [{}] * empty
        for prices in candidates + ([] if part.broken is None else [{part.broken: -ONE}, {part.broken: ONE}]):
            if all((r, "G" if u > 0 else "L") in self.names for r, u in prices.items()):
                nothing.prices = prices
                bound, used = self._combined(nothing, gone, {})
                if bound > 0:
                    return self.derive("G", ONE, {}, f"lin {_terms({n: x / bound for n, x in used.items()})}")
        bound, used = self._combined(part, gone, self.objective)
        if self.lower == "inf" or bound >= Fraction(self.lower) or not self.unit:
            return self._bound(f"lin {_terms(used)}")
        unit = Fraction(self.unit)
        terms, reason = ({n: x / unit for n, x in some.items()} for some in (self.objective, used))
        rounded = self.derive("G", Fraction(-(-bound // unit)), terms, f"rnd {_terms(reason)}")
        return self._bound(f"lin {_terms({rounded: unit})}")

    def _out(self, t: int, each: tuple[int, ...], gone: set[Label]) -> Label | None:
        """Returns a label of a table's entry that is left out, if there is one."""
        return next((label for label in zip(self.tables[t][0], each, strict=True) if label in gone), None)

    def _combined(self, part: Part, gone: set[Label], objective: Terms) -> tuple[Fraction, dict[int, Fraction]]:
        """Returns a lower limit of an objective in a part, and the multipliers of constraints that show it."""
        moved = defaultdict[tuple[int, int, int], Fraction](
            Fraction, {key: x for key, x in part.sent.items() if key[1:] in self.x}
        )

        def rest(t: int, each: tuple[int, ...]) -> Fraction:
            """Returns what messages leave of an entry."""
            own = sum((moved[(t, *label)] for label in zip(self.tables[t][0], each, strict=True)), ZERO)
            return objective.get(self.y[t, each], ZERO) - own

        for t, (scope, entries) in self.tables.items():
            free = [v for v in scope if v not in part.fixed]
            for each in entries if len(free) == 1 else ():  # that is a cost of the other one
                if self._out(t, each, gone) is None:
                    moved[t, free[0], each[scope.index(free[0])]] += rest(t, each)
        reduced = {label: objective.get(n, ZERO) for label, n in self.x.items()}
        for (_, v, i), x in moved.items():
            reduced[v, i] += x
        for r, u in part.prices.items():
            for label, weight in self.rows[r].items():
                reduced[label] -= u * weight
        ones = dict[int, Fraction]()  # multipliers of "one of its labels"
        for v, own in enumerate(self.labels):
            ones[v] = min((reduced[v, i] for i in own if (v, i) not in gone), default=ONE)
        used = dict[int, Fraction]()
        for t, (scope, entries) in self.tables.items():
            out = {each: self._out(t, each, gone) for each in entries}
            least = min((rest(t, each) for each in entries if out[each] is None), default=ONE)
            ones[scope[0]] += least
            for i in self.labels[scope[0]]:
                moved[t, scope[0], i] += least
                reduced[scope[0], i] += least
            for each, found in out.items():
                if found is not None and (short := rest(t, each)) < 0:
                    reduced[found] += short
                    moved[(t, *found)] += short
            used |= {self.y[t, each]: rest(t, each) for each in entries}
        bound = sum(ones.values(), ZERO)
        for r, u in part.prices.items():
            if u:
                side = self.names[r, "G" if u > 0 else "L"]
                used[side] = u
                bound += u * self.constraints[side][1]
        used |= {self.names[v]: x for v, x in ones.items()} | {self.names[key]: x for key, x in moved.items()}
        left = {label: x - ones[label[0]] for label, x in reduced.items()}
        for constraint, labels in part.out.items():
            short = max((-left[label] for label in labels), default=ZERO)
            if short > 0:
                used[constraint] = -short
                left |= {label: left[label] + short for label in labels}
        return bound, used | {self.x[label]: x for label, x in left.items()}

    def lp(self) -> str:
        """Returns the integer program as an LP file."""

        def total(terms: Terms) -> str:
            some = [f"{float(x):+.17g} {self.columns[n]}" for n, x in terms.items() if x]
            return "\n  ".join(some) or f"0 {self.columns[0]}"

        lines = ["Minimize", f" cost: {total(self.objective)}", "Subject To"]
        for k, (sense, limit, terms) in enumerate(self.constraints[len(self.columns) : self.stated]):
            relation = {"E": "=", "L": "<=", "G": ">="}[sense]
            lines.append(f" C{k}: {total(terms)} {relation} {float(limit):.17g}")
        return "\n".join([*lines, "Binary", *(f" {name}" for name in self.columns), "End"]) + "\n"

    def text(self) -> str:
        """Returns the file."""
        n, answer = len(self.columns), self.answer
        lines = ["% written by hasten", "VER 1.0", f"VAR {n}", *self.columns, f"INT {n}", " ".join(map(str, range(n)))]
        lines += ["OBJ min", _terms(self.objective), f"CON {self.stated} {n}"]
        for k, (sense, limit, terms) in enumerate(self.constraints):
            if k == self.stated:
                limits = [x if x == "inf" else str(Fraction(x)) for x in (self.lower, self.upper)]
                lines.append("RTP infeas" if self.lower == "inf" else f"RTP range {limits[0]} {limits[1]}")
                lines.append(f"SOL {0 if answer is None else 1}")
                if answer is not None:
                    chosen = [self.x[label] for label in enumerate(answer)]
                    chosen += [self.y[t, tuple(answer[v] for v in scope)] for t, (scope, _) in self.tables.items()]
                    lines.append(f"answer {_terms(dict.fromkeys(sorted(chosen), 1))}")
                lines.append(f"DER {len(self.reasons)}")
            reason = f" {{ {self.reasons[k - self.stated]} }} -1" if k >= self.stated else ""
            lines.append(f"C{k} {sense} {limit} {'OBJ' if terms is self.objective else _terms(terms)}{reason}")
        return "\n".join(lines) + "\n"


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
