"""The truth about a described problem, by enumeration: nothing is rounded, and nothing of the library is used.

Floats are whole numbers over a power of two. All labellings are summed at once: a whole number of any length is
some digits of 32 bits, a sum of such numbers is the sum of their digits, and the carries come last.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
from problems import Described, describe, keys_of, shape_of

BITS = 32  # of a digit; digits are summed in 64 bits
MASK = (1 << BITS) - 1
SLACK = 1e-6  # of a rule with weights that are not whole
NOISE = 1e-9  # of one with whole weights: what writing its limit as a float takes
TOLERANCE = 1e-6  # of a proof


class Shape:
    """What problems that differ in their costs alone share: the places of labellings in tables, what rules forbid."""

    def __init__(self, described: Described) -> None:
        self.sizes = tuple(described["kinds"][k] for k in described["variables"])
        n = math.prod(self.sizes)
        digits = np.unravel_index(np.arange(n), self.sizes) if self.sizes else ()
        self.places = [_place(scope, self.sizes, digits, n) for scope, _ in _costs_of(described)]
        self.holds = np.ones(n, dtype=bool)
        for weights, low, high in _rows_of(described):
            self.holds &= _row_holds(weights, low, high, self.sizes, digits, n)


class Truth:
    """Which labellings are valid, what each of these costs, and which cost is the least."""

    def __init__(self, described: Described, shape: Shape | None = None) -> None:
        self.shape = shape or Shape(described)
        self.costs = [table for _, table in _costs_of(described)]
        valid = self.shape.holds.copy()
        for table, place in zip(self.costs, self.shape.places, strict=True):
            forbidden = np.isinf(table)
            if forbidden.any():
                valid &= ~forbidden[place]
        self.valid = np.flatnonzero(valid)
        self.size = sum(float(np.abs(table[np.isfinite(table)]).max(initial=0.0)) for table in self.costs)
        every = np.concatenate(self.costs) if self.costs else np.zeros(0)
        self.unit = common_unit(every)
        digits = in_digits(every, self.unit, length_of(every, self.unit))
        totals = np.zeros((len(digits), self.valid.size), dtype=np.int64)
        at = 0
        for table, place in zip(self.costs, self.shape.places, strict=True):
            totals += digits[:, at + place[self.valid]]
            at += table.size
        self.totals = carried(totals)
        self.optimum = self._least() if self.valid.size else None
        self._asked: dict[int, Fraction | None] = {}

    @classmethod
    def of_all(cls, descriptions: list[Described]) -> list[Truth]:
        """Returns the truth about each of some problems."""
        shapes: dict[str, Shape] = {}
        truths = []
        keys = keys_of(descriptions, [name for name in describe([], []) if name != "costs"])
        for key, described in zip(keys, descriptions, strict=True):
            if key not in shapes:
                shapes[key] = Shape(described)
            truths.append(cls(described, shapes[key]))
        return truths

    def total(self, labels: list[int]) -> Fraction | None:
        """Returns what a labelling costs; None if it is not valid."""
        sizes = self.shape.sizes
        if len(labels) != len(sizes) or any(not 0 <= i < n for i, n in zip(labels, sizes, strict=True)):
            return None
        number = 0
        for i, n in zip(labels, sizes, strict=True):
            number = number * n + i
        if number not in self._asked:
            at = int(np.searchsorted(self.valid, number))
            is_valid = at < self.valid.size and self.valid[at] == number
            self._asked[number] = self._number(self.totals[:, at]) if is_valid else None
        return self._asked[number]

    def _least(self) -> Fraction:
        left = np.arange(self.valid.size)
        for digit in self.totals[::-1]:
            left = left[digit[left] == digit[left].min()]
        return self._number(self.totals[:, left[0]])

    def _number(self, digits: Any) -> Fraction:
        return Fraction(sum(digit << (BITS * at) for at, digit in enumerate(digits.tolist())), 1 << self.unit)


def complaint(truth: Truth, answer: Any) -> str | None:
    """Returns what is false of all that a certified answer claims, if something is."""
    optimum, bound = truth.optimum, answer.bound
    if math.isnan(bound):
        return "the bound is nan"
    if optimum is not None and (bound == math.inf or (bound > -math.inf and Fraction(bound) > optimum)):
        return f"the bound {bound!r} is above the optimum {float(optimum)!r}"
    if answer.status.name == "INFEASIBLE" and optimum is not None:
        return f"called infeasible, but the optimum is {float(optimum)!r}"
    if answer.values is None:
        return None if answer.status.name in ("INFEASIBLE", "OPEN") else f"no labels, but {answer.status}"
    wrong = search_complaint(truth, answer)
    if wrong is not None:
        return wrong
    if not answer.valid:
        return "a certified answer breaks a constraint"
    if answer.status.name == "PROVED":
        total, allowed = truth.total(answer.values.tolist()), TOLERANCE * max(abs(answer.cost), min(1.0, truth.size))
        above = total - optimum
        if above > Fraction(allowed) + Fraction(rounding(truth)):
            return f"proved, but {float(above)!r} above the optimum {float(optimum)!r}"
    return None


def search_complaint(truth: Truth, answer: Any) -> str | None:
    """Returns what is false of what a search says: its labels are valid or not, and cost what it says."""
    if answer.values is None:
        return "valid without labels" if answer.valid else None
    total = truth.total(answer.values.tolist())
    if answer.valid != (total is not None):
        return f"called {'valid' if answer.valid else 'invalid'}, which {answer.values.tolist()} is not"
    if total is not None and not abs(Fraction(answer.cost) - total) <= Fraction(rounding(truth)):
        return f"costs {float(total)!r}, not {answer.cost!r}"
    return None


def rounding(truth: Truth) -> float:
    """Returns what adding up the costs of a labelling can round away."""
    return len(truth.costs) * 2.0**-52 * truth.size


def _costs_of(described: Described) -> list[tuple[list[int], np.ndarray]]:
    """Returns the variables and the flat table of everything that costs."""
    costs = [([v], np.array(each, dtype=np.float64)) for v, each in enumerate(described["costs"])]
    own = dict(described["tables"])
    for f, (kind, scope) in enumerate(described["scopes"]):
        table = own.get(f, described["factors"][kind]["table"])
        if table is not None:
            costs.append((scope, np.array(table, dtype=np.float64)))
            assert costs[-1][1].size == math.prod(shape_of(described, kind))
    return costs


def _rows_of(described: Described) -> list[tuple[dict[tuple[int, int], float], float, float]]:
    """Returns the weights and limits of each rule; the weights of a term that is said twice are added as floats."""
    rows = []
    for rule in described["rules"]:
        by_kind = dict(rule["weights"])
        weights = {
            (v, i): weight for v, k in enumerate(described["variables"]) for i, weight in enumerate(by_kind.get(k, ()))
        }
        rows.append((weights, rule["low"], rule["high"]))
    for rule in described["structure_rules"] + described["own_rules"]:
        weights = {}
        for v, i, weight in rule["terms"]:
            weights[v, i] = weights.get((v, i), 0.0) + weight
        rows.append((weights, rule["low"], rule["high"]))
    return rows


def widened(weights: Any, low: float, high: float) -> tuple[float, float]:
    """Returns what a rule may come to: a whole number where its weights are whole, else with its slack."""
    low_size, high_size = max(1.0, abs(low)), max(1.0, abs(high))
    if not all(float(weight).is_integer() for weight in weights):
        return (
            low - SLACK * low_size if math.isfinite(low) else low,
            high + SLACK * high_size if math.isfinite(high) else high,
        )
    if math.isfinite(low):
        low = float(round(low) if abs(low - round(low)) <= min(SLACK, NOISE * low_size) else math.ceil(low))
    if math.isfinite(high):
        high = float(round(high) if abs(high - round(high)) <= min(SLACK, NOISE * high_size) else math.floor(high))
    return low, high


def _row_holds(weights: Any, low: float, high: float, shape: Any, digits: Any, n: int) -> np.ndarray:
    least, most = widened(weights.values(), low, high)
    tables = [
        ((v,), np.array([weights.get((v, i), 0.0) for i in range(size)]))
        for v, size in enumerate(shape)
        if any((v, i) in weights for i in range(size))
    ]
    limits = np.array([limit for limit in (least, most) if math.isfinite(limit)])
    every = np.concatenate([limits, *(table for _, table in tables)])
    unit = common_unit(every)
    length = length_of(every, unit)
    total = np.zeros((length, n), dtype=np.int64)
    for scope, table in tables:
        total += in_digits(table, unit, length)[:, _place(scope, shape, digits, n)]
    holds = np.ones(n, dtype=bool)
    for limit, side in ((least, 1), (most, -1)):
        if math.isfinite(limit):
            over = carried(side * (total - in_digits(np.array([limit]), unit, length)))
            holds &= over[-1] >= 0
    return holds


def _place(scope: Any, shape: Any, digits: Any, n: int) -> np.ndarray:
    """Returns the place of each labelling in a flat table over some variables."""
    place = np.zeros(n, dtype=np.int64)
    for v in scope:
        place = place * shape[v] + digits[v]
    return place


def common_unit(numbers: np.ndarray) -> int:
    """Returns which power of two makes every finite number whole."""
    whole, power = _wholes(numbers)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # the lowest bit that is set
    return max(0, int((-power - last)[whole != 0].max(initial=0)))


def length_of(numbers: np.ndarray, unit: int) -> int:
    """Returns how many digits the largest number needs, with some bits to spare for sums."""
    largest = float(np.abs(numbers[np.isfinite(numbers)]).max(initial=0.0))
    return max(0, math.frexp(largest)[1] + unit) // BITS + 2


def in_digits(table: np.ndarray, unit: int, length: int) -> np.ndarray:
    """Returns the numbers of a flat table by their digits, lowest first, with their signs; 0 for infinite ones."""
    whole, power = _wholes(table)
    shift = np.where(whole == 0, 0, power + unit)
    size = np.abs(whole) >> np.maximum(-shift, 0)  # only zeros go
    place, up = np.divmod(np.maximum(shift, 0), BITS)
    low, high = (size & MASK) << up, (size >> BITS) << up
    digits = np.zeros((length + 2, table.size), dtype=np.int64)
    every = np.arange(table.size)
    digits[place, every] = low & MASK
    digits[place + 1, every] = (low >> BITS) + (high & MASK)
    digits[place + 2, every] = high >> BITS
    return (np.sign(whole) * digits)[:length]  # a number is no longer than that


def _wholes(numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns numbers as whole ones of 53 bits, and the power of two that goes with each; 0 for infinite ones."""
    part, power = np.frexp(np.where(np.isfinite(numbers), numbers, 0.0))
    return np.ldexp(part, 53).astype(np.int64), power.astype(np.int64) - 53


def carried(digits: np.ndarray) -> np.ndarray:
    """Carries what is more than a digit to the next one."""
    for at in range(len(digits) - 1):
        digits[at + 1] += digits[at] >> BITS
        digits[at] &= MASK
    return digits
