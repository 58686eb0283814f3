"""Checks a certificate: that no labelling costs less than L, and that one costs at most U (docs/certificates.md).

Run it as `python -m hasten.certificate FILE`. Each line is a step. The first ones state the problem and a claim. The
*state* is a set of functions (costs of labels, tables) whose sum, with a constant, is at most what any valid labelling
costs that is still considered. Steps that prove keep that true, so the least entries sum up to a bound.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import product
from typing import Any

UNIT = 1 << 2148  # numbers count 1 / UNIT: doubles are multiples of 2**-1074, products of two of its square
INFINITE = 1 << 6000  # no sum of finite numbers comes near it
MOST_ENTRIES, LONGEST_LINE, MEMORY = 2_000_000, 1 << 26, 1 << 32  # of a table, times variables; characters; bytes
STATING, PROVING = ("variable", "table", "row", "claim"), ("move", "price", "count", "eliminate", "split")


class RefusedError(ValueError):
    """The certificate is wrong, or is none."""


def need(condition: object, reason: str, *shown: Any) -> None:
    """Refuses the certificate unless a condition holds."""
    if not condition:
        raise RefusedError(reason.format(*(ascii(x)[:40] for x in shown)))


def exact(x: Any) -> int:
    """Returns a number of the file exactly."""
    need(type(x) in (int, float) and abs(x) < 1 << 1100, "{} is not a finite number", x)
    return int(x.as_integer_ratio()[0] << UNIT.bit_length() - x.as_integer_ratio()[1].bit_length())


def number(x: Any, size: int, name: str) -> int:
    """Returns a number below `size`: things are counted from 0."""
    need(type(x) is int and 0 <= x < size, "there is no " + name + " {}", x)
    return int(x)


class State:
    """Functions whose sum is at most what a labelling costs, by number; the costs of variable v are function ~v."""

    def __init__(self) -> None:
        self.functions: dict[int, tuple[tuple[int, ...], dict[Any, int], int]] = {}  # scope; finite costs; the least
        self.sizes: list[int] = []  # by variable: how many labels it had at first
        self.rows: list[Any] = []  # weights by variable and label, the others 0; the low and the high limit
        self.prices: dict[int, int] = {}  # by row: its multiplier
        self.constant = self.n_tables = self.unit = 0
        self.claimed: list[Any] = []  # the lower and the upper limit, as the file says them

    def at(self, x: Any) -> int:
        """Returns a variable that is there."""
        need(~number(x, len(self.sizes), "variable") in self.functions, f"variable {x} is gone")
        return int(x)

    def row_at(self, x: Any) -> Any:
        """Returns a row all of whose variables are there."""
        row = self.rows[number(x, len(self.rows), "row")]
        need(all(~v in self.functions for v in row[0]), f"a variable of row {x} is gone")
        return row

    def near(self, v: int) -> list[int]:
        """Returns the functions of a variable."""
        return [key for key, (scope, _, _) in self.functions.items() if v in scope]

    def weights(self, v: int, terms: Mapping[int, Mapping[int, int]], sign: int = 1) -> dict[int, int]:
        """Returns what the labels of a variable that are left add to a row."""
        return {label: sign * terms.get(v, {}).get(label, 0) for (label,) in sorted(self.functions[~v][1])}

    def put(self, key: int, scope: tuple[int, ...], entries: dict[Any, int]) -> None:
        """Adds a function, or gives it other entries."""
        self.functions[key] = scope, entries, min(entries.values(), default=INFINITE)

    def shift(self, key: int, v: int, message: Mapping[int, int]) -> None:
        """Adds a number for each label of a variable to the entries of a function."""
        (scope, old, _), i = self.functions[key], self.functions[key][0].index(v)
        self.put(key, scope, {labels: x + message.get(labels[i], 0) for labels, x in old.items()})

    def add(self, key: int, scope: tuple[int, ...], entries: dict[Any, int]) -> None:
        """Adds a table, by its number; one of a single variable joins its costs."""
        self.n_tables = max(self.n_tables, key + 1)
        if len(scope) == 1:
            key, costs = ~scope[0], self.functions[~scope[0]][1]
            entries = {labels: x + costs[labels] for labels, x in entries.items() if labels in costs}
        self.put(key, scope, entries)

    def variable(self, *costs: Any) -> None:
        """Adds a variable, by the costs of its labels."""
        need(len(costs) <= MOST_ENTRIES, "a variable has {} labels", len(costs))
        self.sizes.append(len(costs))
        self.put(-len(self.sizes), (len(self.sizes) - 1,), {(i,): exact(x) for i, x in enumerate(costs) if x != "inf"})

    def table(self, scope: Any, costs: Any) -> None:
        """Adds a table: a cost for each combination of labels, those of the last variable fastest."""
        need(len({*map(self.at, scope)}) == len(scope) > 0, "a scope must name different variables")
        fits = math.prod(self.sizes[v] for v in scope) == len(costs) <= MOST_ENTRIES // len(scope)
        need(fits, "there is not one cost for each combination, or the table is too large")
        labels = zip(product(*(range(self.sizes[v]) for v in scope)), costs, strict=True)
        self.add(self.n_tables, tuple(scope), {each: exact(x) for each, x in labels if x != "inf"})

    def row(self, terms: Any, low: Any, high: Any) -> None:
        """Adds a row: the weights of labels sum up to a number between limits; null is no limit."""
        weights: dict[int, dict[int, int]] = {}
        for v, label, weight in terms:
            at = weights.setdefault(self.at(v), {})
            at[label] = at.get(number(label, self.sizes[v], "label"), 0) + exact(weight)
        self.rows.append((weights, -INFINITE if low is None else exact(low), INFINITE if high is None else exact(high)))

    def claim(self, lower: Any, upper: Any, answer: Any, unit: Any = 0) -> None:
        """Claims that nothing costs less than `lower`, the answer at most `upper`, all of them multiples of a unit."""
        self.claimed, self.unit = [lower, upper], exact(unit)
        entries = [x for _, each, _ in self.functions.values() for x in each.values()] if unit else []
        need(self.unit >= 0 and not any(x % self.unit for x in entries), "not all costs are multiples of the unit")
        if answer is None:
            return need(upper == "inf", "there is no answer, so nothing shows the upper limit")
        need(len(answer) == len(self.sizes), f"{len(answer)} labels for {len(self.sizes)} variables")
        labels = [number(x, size, "label") for x, size in zip(answer, self.sizes, strict=True)]
        costs = [each.get(tuple(labels[v] for v in scope), INFINITE) for scope, each, _ in self.functions.values()]
        for i, (terms, low, high) in enumerate(self.rows):
            need(low <= sum(x.get(labels[v], 0) for v, x in terms.items()) <= high, f"the answer breaks row {i}")
        return need(sum(costs) <= exact(upper), "the answer is forbidden, or costs more than is claimed")

    def move(self, table: Any, variable: Any, message: Any) -> None:
        """Moves a message, a number for each label, from a table to one of its variables."""
        v, sent = self.at(variable), [exact(each) for each in message]
        there = v in self.functions.get(number(table, self.n_tables, "table"), ((), {}, 0))[0]
        need(there, f"variable {v} is not in table {table}")
        need(len(sent) == self.sizes[v], f"{len(sent)} numbers for {self.sizes[v]} labels")
        for key, sign in ((table, -1), (~v, 1)):
            self.shift(key, v, {i: sign * x for i, x in enumerate(sent)})

    def price(self, row: Any, multiplier: Any) -> None:
        """Sets what is added of a row: multiplier * (limit - activity), the low limit if positive: at most 0."""
        (terms, low, high), u, old = self.row_at(row), exact(multiplier), self.prices.get(row, 0)
        limits = {side: (low if side > 0 else high) if side else 0 for side in (u, old)}
        need(abs(limits[u]) < INFINITE >> 1, f"row {row} has no limit on that side")
        self.constant += (u * limits[u] - old * limits[old]) // UNIT
        self.prices[row] = u
        for v, weights in terms.items():
            self.shift(~v, v, {i: (old - u) * weight // UNIT for i, weight in weights.items()})

    def eliminate(self, variable: Any) -> None:
        """Replaces all functions of a variable by a table over the other variables: the least of their sum."""
        (scope, total, _), least = self.functions.pop(~self.at(variable)), dict[Any, int]()
        for own, entries, _ in sorted(map(self.functions.pop, self.near(variable)), key=lambda each: -len(each[0])):
            new, fitting = [i for i, u in enumerate(own) if u not in scope], dict[Any, list[Any]]()
            known = [(i, scope.index(u)) for i, u in enumerate(own) if u in scope]
            for labels, x in entries.items():
                fitting.setdefault(tuple(labels[i] for i, _ in known), []).append((tuple(labels[i] for i in new), x))
            pairs = [(a, x, fitting.get(tuple(a[i] for _, i in known), [])) for a, x in total.items()]
            scope += tuple(own[i] for i in new)
            need(sum(len(each) for _, _, each in pairs) * len(scope) <= MOST_ENTRIES, "a table is too large")
            total = {(*a, *b): x + y for a, x, each in pairs for b, y in each}
        for labels, x in total.items():
            least[labels[1:]] = min(x, least.get(labels[1:], x))
        self.add(self.n_tables, scope[1:], least)

    def count(self, rows: Any, variables: Any) -> None:
        """Adds a variable for what some variables add to rows that can hold, in their place there; one if they must."""
        chosen, new, looks = [*map(self.at, variables)], len(self.sizes), dict[Any, list[Any]]()
        need(len({*chosen}) == len(chosen) and len({*rows}) == len(rows), "a variable or a row is named twice")
        need(not (chosen and any(map(self.prices.get, rows))), "a row has a price")
        sides = [side for terms, low, high in map(self.row_at, rows) for side in ((terms, 1, high), (terms, -1, -low))]
        need(len(sides) * sum(self.sizes[v] for v in chosen) <= MOST_ENTRIES, "a table is too large")
        added = [{v: self.weights(v, terms, sign) for v in {*terms, *chosen}} for terms, sign, _ in sides]
        pairs = [(x, {v: min(weights.values(), default=0) for v, weights in x.items()}) for x in added]
        rooms = [limit - sum(low.values()) for (_, _, limit), (_, low) in zip(sides, pairs, strict=True)]
        uses = {v: {i: [x[v][i] - low[v] for x, low in pairs] for i in self.weights(v, {})} for v in chosen}
        spreads = [sum(max(x[v].values(), default=0) - low[v] for v in x.keys() - uses) for x, low in pairs]
        found: list[Any] = [((), rooms)] if min(rooms, default=0) >= 0 else []
        for v in chosen:
            need(len(found) * len(uses[v]) * len(chosen + rooms) <= 2 * MOST_ENTRIES, "a table is too large")
            found = [((*a, i), [*map(int.__sub__, left, used)]) for a, left in found for i, used in uses[v].items()]
            found = [each for each in found if min(each[1], default=0) >= 0]
        for labels, left in found:
            look = tuple(None if room >= spread else room for room, spread in zip(left, spreads, strict=True))
            looks.setdefault(look, []).append(labels)
        self.variable(*[0] * len(looks))
        for r, (terms, low, high) in [(r, self.rows[r]) for r in rows]:
            inside = [(n, terms[v]) for n, v in enumerate(chosen) if v in terms]
            sums = (sum(weights.get(each[0][n], 0) for n, weights in inside) for each in looks.values())
            self.rows[r] = {v: x for v, x in terms.items() if v not in uses} | {new: dict(enumerate(sums))}, low, high
        self.add(self.n_tables, (*chosen, new), {(*a, n): 0 for n, each in enumerate(looks.values()) for a in each})

    def split(self, variable: Any, parts: Any) -> list[State]:
        """Returns a state for each part of a variable's labels, the first one last; they cover all that are left."""
        v, states = self.at(variable), list[State]()
        labels = [number(x, self.sizes[v], "label") for part in parts for x in part]
        once = all([parts, *parts]) and len({*labels}) == len(labels) and self.weights(v, {}).keys() <= {*labels}
        need(once, "the parts do not cover all labels, each once")
        need(len(parts) * (len(self.functions) + len(self.rows)) <= MOST_ENTRIES, "the parts are too many")
        for part in map(frozenset, reversed(parts)):
            states.append(one := State())  # entries are shared with this one: they are never changed in place
            vars(one).update((k, x.copy() if type(x) in (list, dict) else x) for k, x in vars(self).items())
            for key in self.near(v):
                (scope, old, _), i = one.functions.pop(key), self.functions[key][0].index(v)
                kept = {labels: x for labels, x in old.items() if labels[i] in part}
                if len(part) == 1 and key >= 0:  # a label is fixed: the table is one over the others
                    scope, kept = scope[:i] + scope[i + 1 :], {k[:i] + k[i + 1 :]: x for k, x in kept.items()}
                one.add(key, scope, kept) if key >= 0 else one.put(key, scope, kept)
        return states


def check(lines: Iterable[str], begun: State | None = None) -> tuple[int, Any, Any]:
    """Returns the lower limit that a certificate shows, in units of 1 / UNIT, and both that it claims, as written."""
    states, lowest, claimed = [begun or State()], INFINITE, []  # parts that are still to be proved, the next one last
    for n, line in enumerate(lines, 1):
        try:
            need(states and len(line) <= LONGEST_LINE, "the proof is over, or the line too long")
            step, state = json.loads(line), states[-1]
            name, *given = step if type(step) is list else [""]
            if name in (PROVING if state.claimed else STATING):
                states[-1:] = getattr(state, name)(*given) or [state]  # a split leaves several
            else:
                need(state.claimed and step == ["sum"], "there is no such step here: {}", line)
                unit, claimed = states.pop().unit or 1, state.claimed
                bound = state.constant + sum(least for _, _, least in state.functions.values())
                lowest = min(lowest, -(-bound // unit) * unit if bound < INFINITE >> 1 else INFINITE)
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, RecursionError) as error:
            raise RefusedError(f"line {n}: {str(error) or 'it takes too much memory'}") from None
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
    with suppress(ImportError, ValueError):  # Windows has no limits; or there is a lower one
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    try:
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
        print(main(*sys.argv[1:]))
    except (RefusedError, OSError, UnicodeError) as error:
        sys.exit(f"refused: {error}")
