"""Checks a certificate: that no labelling costs less than L, and that one costs at most U (docs/certificates.md).

Run it as `python -m hasten.certificate FILE`. It imports the standard library alone, and may be copied anywhere.
Arithmetic is exact: doubles are multiples of 2**-1074, and so a product of two is one of 1 / UNIT. Each line is a step.
The first ones state the problem, an answer and a claim. The *state* is a set of functions (costs of each variable's
labels, tables over several variables) whose sum, with a constant, is at most what any valid labelling costs that is
still considered. Steps that prove keep that true, so the least entries sum up to a bound.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from itertools import product
from operator import itemgetter
from typing import Any

UNIT = 1 << 2148  # exact numbers are integers that count 1 / UNIT
INFINITE = 1 << 6000  # no sum of finite numbers comes near it
MOST_ENTRIES, LONGEST_LINE = 2_000_000, 1 << 27  # of a table, times its variables; characters
STATING, PROVING = ("variable", "table", "row", "claim"), ("move", "price", "count", "eliminate", "violated")
Row = tuple[dict[int, dict[int, int]], int, int]  # weights by variable and label, the others 0; low and high limit


class RefusedError(Exception):
    """The certificate is wrong, or is none."""


WRONG = (RefusedError, ArithmeticError, LookupError, TypeError, ValueError, MemoryError, RecursionError)


def need(condition: object, reason: str) -> None:
    """Refuses the certificate unless a condition holds."""
    if not condition:
        raise RefusedError(reason)


def exact(x: Any, null: int | None = None) -> int:
    """Returns a number of the file exactly, and for null what stands for that, if it may be there."""
    if (type(x) is float and math.isfinite(x)) or (type(x) is int and abs(x) < 1 << 1100):
        above, below = x.as_integer_ratio()  # the latter is a power of two
        return int(above << UNIT.bit_length() - below.bit_length())
    if x is None and null is not None:
        return null
    raise RefusedError(f"{ascii(x)[:40]} is not a finite number")


def number(x: Any, size: int, name: str) -> int:
    """Returns a number below `size`: things are counted from 0."""
    if type(x) is int and 0 <= x < size:
        return x
    raise RefusedError(f"there is no {name} {ascii(x)[:40]}")


def reach(terms: Mapping[int, Mapping[int, int]], left: Mapping[int, Iterable[int]]) -> tuple[int, int]:
    """Returns the least and the most that the labels which are left of each variable can add up to."""
    added = [[weights.get(label, 0) for label in left[v]] or [0] for v, weights in terms.items()]
    return sum(map(min, added)), sum(map(max, added))


class State:
    """Functions whose sum is at most what a labelling costs, by number; the costs of variable v are function ~v."""

    def __init__(self) -> None:
        self.functions: dict[int, tuple[tuple[int, ...], dict[Any, int]]] = {}  # scope; costs by labels, if finite
        self.least: dict[int, int] = {}  # by function: its least entry
        self.touching: list[frozenset[int]] = []  # by variable: its functions; none once it is gone
        self.sizes: list[int] = []  # by variable: how many labels it had at first
        self.rows: list[Row] = []
        self.prices: dict[int, int] = {}  # by row: its multiplier
        self.bound = self.n_tables = self.unit = 0  # bound: the sum of least entries and constants
        self.claimed: list[Any] = []  # the lower and the upper limit, as the file says them

    def at(self, x: Any) -> int:
        """Returns a variable that is there."""
        need(self.touching[number(x, len(self.sizes), "variable")], f"variable {x} is gone")
        return int(x)

    def row_at(self, x: Any) -> Row:
        """Returns a row all of whose variables are there."""
        row = self.rows[number(x, len(self.rows), "row")]
        need(all(self.touching[v] for v in row[0]), f"a variable of row {x} is gone")
        return row

    def left(self, v: int) -> list[int]:
        """Returns the labels of a variable that are left."""
        return [label for (label,) in self.functions[~v][1]]

    def put(self, key: int, scope: tuple[int, ...], entries: dict[Any, int]) -> None:
        """Adds a function, or gives it other entries."""
        for v in scope if key not in self.functions else ():
            self.touching[v] |= {key}
        least = min(entries.values(), default=INFINITE)
        self.bound += least - self.least.get(key, 0)
        self.functions[key], self.least[key] = (scope, entries), least

    def shift(self, key: int, v: int, message: Mapping[int, int]) -> None:
        """Adds a number for each label of a variable to the entries of a function."""
        (scope, old), i = self.functions[key], self.functions[key][0].index(v)
        self.put(key, scope, {labels: x + message.get(labels[i], 0) for labels, x in old.items()})

    def drop(self, keys: Iterable[int]) -> None:
        """Takes functions away."""
        for key in keys:
            self.bound -= self.least.pop(key)
            for v in self.functions.pop(key)[0]:
                self.touching[v] -= {key}

    def add(self, key: int, scope: tuple[int, ...], entries: dict[Any, int]) -> None:
        """Adds a table, by its number; one of a single variable joins its costs, one of none is a constant."""
        if len(scope) == 1:
            costs = self.functions[~scope[0]][1]
            self.put(~scope[0], scope, {labels: x + costs[labels] for labels, x in entries.items() if labels in costs})
        elif scope:
            self.put(key, scope, entries)
        else:
            self.bound += entries.get((), INFINITE)
        self.n_tables = max(self.n_tables, key + 1)

    def variable(self, *costs: Any) -> None:
        """Adds a variable, by the costs of its labels."""
        self.touching.append(frozenset())
        self.sizes.append(len(costs))
        self.put(-len(self.sizes), (len(self.sizes) - 1,), {(i,): exact(x) for i, x in enumerate(costs) if x != "inf"})

    def table(self, scope: Any, costs: Any) -> None:
        """Adds a table: a cost for each combination of labels, those of the last variable fastest."""
        need(len({*map(self.at, scope)}) == len(scope) > 0, "a scope must name different variables")
        fits = math.prod(self.sizes[v] for v in scope) == len(costs) <= MOST_ENTRIES // len(scope)
        need(fits, "there is not one cost for each combination, or the table is too large")
        labels = product(*(range(self.sizes[v]) for v in scope))
        self.add(
            self.n_tables, tuple(scope), {each: exact(x) for each, x in zip(labels, costs, strict=True) if x != "inf"}
        )

    def row(self, terms: Any, low: Any, high: Any) -> None:
        """Adds a row: the weights of labels sum up to a number between limits; null is no limit."""
        weights: dict[int, dict[int, int]] = {}
        for v, label, weight in terms:
            at = weights.setdefault(self.at(v), {})
            at[label] = at.get(number(label, self.sizes[v], "label"), 0) + exact(weight)
        self.rows.append((weights, exact(low, -INFINITE), exact(high, INFINITE)))

    def claim(self, lower: Any, upper: Any, answer: Any, unit: Any = 0) -> None:
        """Claims that nothing costs less than `lower`, the answer at most `upper`, all of them multiples of a unit."""
        self.claimed, self.unit = [lower, upper], exact(unit)
        entries = [x for _, each in self.functions.values() for x in each.values()] if unit else []
        need(self.unit >= 0 and not any(x % self.unit for x in entries), "not all costs are multiples of the unit")
        if answer is None:
            return need(upper == "inf", "there is no answer, so nothing shows the upper limit")
        need(len(answer) == len(self.sizes), f"{len(answer)} labels for {len(self.sizes)} variables")
        labels = [number(x, size, "label") for x, size in zip(answer, self.sizes, strict=True)]
        costs = [each.get(tuple(labels[v] for v in scope), INFINITE) for scope, each in self.functions.values()]
        sums = [reach(terms, {v: [labels[v]] for v in terms})[0] for terms, _, _ in self.rows]
        broken = [i for i, (_, low, high) in enumerate(self.rows) if not low <= sums[i] <= high]
        need(not broken, f"the answer breaks row {broken[:1]}")
        return need(sum(costs) <= exact(upper), "the answer is forbidden, or costs more than is claimed")

    def move(self, table: Any, variable: Any, message: Any) -> None:
        """Moves a message, a number for each label, from a table to one of its variables."""
        v, sent = self.at(variable), [exact(each) for each in message]
        need(number(table, self.n_tables, "table") in self.touching[v], f"variable {v} is not in table {table}")
        need(len(sent) == self.sizes[v], f"{len(sent)} numbers for {self.sizes[v]} labels")
        self.shift(table, v, {i: -x for i, x in enumerate(sent)})
        self.shift(~v, v, dict(enumerate(sent)))

    def price(self, row: Any, multiplier: Any) -> None:
        """Sets what is added of a row: multiplier * (limit - activity), the low limit if positive: at most 0."""
        (terms, low, high), u, old = self.row_at(row), exact(multiplier), self.prices.get(row, 0)
        for change, side in ((u, u), (-old, old)):
            limit = (low if side > 0 else high) if side else 0
            need(abs(limit) < INFINITE >> 1, f"row {row} has no limit on that side")
            self.bound += change * limit // UNIT
        self.prices[row] = u
        for v, weights in terms.items():
            self.shift(~v, v, {i: (old - u) * weight // UNIT for i, weight in weights.items()})

    def eliminate(self, variable: Any) -> None:
        """Replaces all functions of a variable by a table over the other variables: the least of their sum."""
        v = self.at(variable)
        joined = [self.functions[key] for key in self.touching[v]]
        around = tuple(sorted({u for scope, _ in joined for u in scope} - {v}))
        labels, least = [self.left(u) for u in (v, *around)], dict[Any, int]()
        need(math.prod(map(len, labels)) * len(labels) <= MOST_ENTRIES, "a table is too large")
        sums = [(each, 0) for each in product(*labels)]
        for scope, entries in joined:
            at = [(v, *around).index(u) for u in scope]
            pick = itemgetter(*at) if len(at) > 1 else itemgetter(slice(at[0], at[0] + 1))
            sums = [(each, x + y) for each, x in sums if (y := entries.get(pick(each))) is not None]
        for each, x in sums:
            least[each[1:]] = min(x, least.get(each[1:], x))
        self.drop(self.touching[v])
        self.add(self.n_tables, around, least)

    def violated(self, row: Any) -> None:
        """Says that a row cannot hold any more."""
        terms, low, high = self.row_at(row)
        least, most = reach(terms, {v: self.left(v) for v in terms})
        need(least > high or most < low, f"row {row} can hold")
        self.bound += INFINITE

    def count(self, row: Any, variables: Any) -> None:
        """Adds a variable that stands for what some variables add to a row, whose place it takes there.

        Its labels are the sums with which the row can hold, in order of appearance; those with which it must are one.
        """
        (terms, low, high), chosen = self.row_at(row), [*map(self.at, variables)]
        need(
            len({*chosen}) == len(chosen) > 0 and not self.prices.get(row), "they are not different, or row has a price"
        )
        rest, labels = {v: terms[v] for v in terms if v not in chosen}, [self.left(v) for v in chosen]
        least, most = reach(rest, {v: self.left(v) for v in rest})
        need(math.prod(map(len, labels)) * (len(labels) + 1) <= MOST_ENTRIES, "a table is too large")
        entries, found = dict[Any, int](), dict[Any, tuple[int, int]]()
        for each in product(*labels):
            x = sum(terms[v].get(i, 0) for v, i in zip(chosen, each, strict=True) if v in terms)
            if x + least <= high and x + most >= low:
                holds = low <= x + least and x + most <= high
                entries[*each, found.setdefault(None if holds else x, (len(found), x))[0]] = 0
        self.variable(*[0] * len(found))
        rest[len(self.sizes) - 1] = dict(found.values())
        self.rows[row] = rest, low, high
        self.add(self.n_tables, (*chosen, len(self.sizes) - 1), entries)

    def split(self, variable: Any, parts: Any) -> list[State]:
        """Returns a state for each part of a variable's labels; the parts cover all that are left, each once."""
        v, states = self.at(variable), list[State]()
        labels = [number(x, self.sizes[v], "label") for part in parts for x in part]
        once = parts and all(parts) and len(set(labels)) == len(labels)
        need(once and set(self.left(v)) <= set(labels), "the parts do not cover all labels, each once")
        need(len(parts) * (len(self.functions) + len(self.rows)) <= MOST_ENTRIES, "the parts are too many")
        for part in map(frozenset, parts):
            states.append(one := State())  # entries are shared with this one: they are never changed in place
            vars(one).update((k, x.copy() if type(x) in (list, dict) else x) for k, x in vars(self).items())
            for key in self.touching[v]:
                (scope, old), i = self.functions[key], self.functions[key][0].index(v)
                one.put(key, scope, kept := {labels: x for labels, x in old.items() if labels[i] in part})
                if len(part) == 1 and key >= 0:  # a label is fixed: the table is one over the others
                    one.drop([key])
                    one.add(key, scope[:i] + scope[i + 1 :], {k[:i] + k[i + 1 :]: x for k, x in kept.items()})
        return states


def check(lines: Iterable[str]) -> tuple[int, Any, Any]:
    """Returns the lower limit that a certificate shows, in units of 1 / UNIT, and both that it claims, as written."""
    states, lowest, claimed = [State()], INFINITE, []  # parts that are still to be proved, the next one last
    for n, line in enumerate(lines, 1):
        try:
            need(states and len(line) <= LONGEST_LINE, "the proof is over, or the line too long")
            step, state = json.loads(line), states[-1]
            name, *given = step if type(step) is list else [None]
            if name in (PROVING if state.claimed else STATING):
                getattr(state, name)(*given)
            elif state.claimed and name == "split":
                states[-1:] = reversed(state.split(*given))
                need(len(states) * len(state.functions) <= 10 * MOST_ENTRIES, "the splits are too deep")
            else:
                need(state.claimed and step == ["sum"], f"there is no such step here: {ascii(line)[:40]}")
                bound, unit, claimed = states.pop().bound, state.unit or 1, state.claimed
                lowest = min(lowest, -(-bound // unit) * unit if bound < INFINITE >> 1 else INFINITE)
        except WRONG as error:
            raise RefusedError(f"line {n}: {error}") from None
    need(not states, "the file ends before the proof does")
    need(lowest >= (INFINITE if claimed[0] == "inf" else exact(claimed[0])), "the steps show less than is claimed")
    return lowest, *claimed


def main(*paths: str) -> str:
    """Checks a file; returns what it shows. Raises `RefusedError`, or what opening it raises."""
    need(len(paths) == 1 and not paths[0].startswith("-"), "Give one file: python -m hasten.certificate FILE")
    with open(paths[0], encoding="utf-8") as file:
        _, low, high = check(iter(lambda: file.readline(LONGEST_LINE + 1), ""))
    return "verified: no labelling is valid" if low == "inf" else f"verified: {low} ≤ optimum ≤ {high}"


if __name__ == "__main__":
    try:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        print(main(*sys.argv[1:]))
    except (RefusedError, OSError, UnicodeError) as error:
        sys.exit(f"refused: {error}")
