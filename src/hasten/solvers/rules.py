"""The rows of rules, as solvers with tolerances get them: small numbers, and no sum near a limit.

Where weights have a common measure, a row gets whole weights and limits (`whole_row`). Large weights are cut down to
the size of the limit (`at_least`): `8682283 x + 6664539 y >= 3` says `x + y >= 1`. Weights that are still large are
scaled, and whole limits moved halfway to the next sum that is not allowed (`scaled_row`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np

from hasten.kernels.layout import Graph
from hasten.support.arrays import FloatArray

MAX_DENOMINATOR = 10_000
MAX_WEIGHT = 10**10
LARGE = 1e4  # a weight beyond which a solver's tolerance may matter
LEAST = 2.0**-10  # the least that the largest weight of a row may be
WIDEST = 2.0**20  # the largest weight that solvers with tolerances get

Row = tuple[list[int], list[float], float, float]  # columns, weights, and the limits of their sum


def rule_rows(graph: Graph, r: int) -> Iterator[Row]:
    """Yields the rows of rule `r` for a solver: none if it is empty; the low limit above the high if none can hold."""
    cells = slice(graph.row_first[r], graph.row_first[r + 1])
    if cells.start == cells.stop:
        return
    columns, weights = graph.row_label[cells].tolist(), graph.row_weight[cells]
    least, most = float(graph.row_least[r]), float(graph.row_most[r])
    if (np.abs(weights) == 1.0).all():  # most rules only count
        yield columns, weights.tolist(), _up(least), _down(most)
        return
    whole = whole_row(weights, least, most)
    exact = [Fraction(float(weight)) for weight in weights]
    if whole is not None:
        exact, least, most = [Fraction(number) for number in whole[0]], whole[1], whole[2]
    if least > most or max(map(abs, exact)) <= LARGE:
        yield columns, [float(weight) for weight in exact], least, most
        return
    by_variable: dict[int, dict[int, Fraction]] = {}
    for variable, column, weight in zip(graph.row_variable[cells].tolist(), columns, exact, strict=True):
        labels = range(graph.first[variable], graph.first[variable + 1])
        by_variable.setdefault(variable, dict.fromkeys(labels, Fraction(0)))[column] = weight
    groups = list(by_variable.values())
    if math.isfinite(least):
        yield from at_least(groups, Fraction(least))
    if math.isfinite(most):
        turned = [{column: -weight for column, weight in group.items()} for group in groups]
        yield from at_least(turned, -Fraction(most))


def _up(limit: float) -> float:
    return limit if math.isinf(limit) else float(math.ceil(limit))


def _down(limit: float) -> float:
    return limit if math.isinf(limit) else float(math.floor(limit))


def at_least(groups: list[dict[int, Fraction]], need: Fraction) -> Iterator[Row]:
    """Yields a row that a choice of one column of each group is to reach, no weight larger than the sum to reach."""
    lowest = [min(group.values()) for group in groups]
    need -= sum(lowest)
    if need <= 0:  # it holds, whatever is chosen
        return
    if need > sum(max(group.values()) - low for group, low in zip(groups, lowest, strict=True)):
        yield [], [], 1.0, 0.0
        return
    more = {
        column: min(weight - low, need)
        for group, low in zip(groups, lowest, strict=True)
        for column, weight in group.items()
        if weight > low
    }
    common = Fraction(1)
    if all(weight.denominator == 1 for weight in more.values()):
        common = Fraction(math.gcd(*(weight.numerator for weight in more.values())) or 1)
        need = Fraction(math.ceil(need / common)) * common
    yield list(more), [float(weight / common) for weight in more.values()], float(need / common), math.inf


def whole_row(weights: FloatArray, least: float, most: float) -> tuple[list[int], float, float] | None:
    """Returns a row as whole weights without a common factor, and limits that are whole numbers or infinite.

    `least` and `most` are the limits of the row, slack included. They are rounded to sums that it can reach; the
    low one is above the high one if it can reach nothing. None if the weights have no common measure, or if one that is
    not quite theirs would decide whether it holds.
    """
    fractions = [Fraction(float(weight)).limit_denominator(MAX_DENOMINATOR) for weight in weights]
    exact = [Fraction(float(weight)) for weight in weights]
    wrong = [abs(fraction - weight) for fraction, weight in zip(fractions, exact, strict=True)]
    if any(error > abs(weight) / 10**12 for error, weight in zip(wrong, exact, strict=True)):
        return None
    measure = Fraction(
        math.gcd(*(fraction.numerator for fraction in fractions)), math.lcm(*(f.denominator for f in fractions))
    )
    numbers = [int(fraction / measure) for fraction in fractions]
    error = sum(wrong) / measure
    low, high = _limits(least, measure, error, math.ceil), _limits(most, measure, error, math.floor)
    if max(map(abs, numbers)) > MAX_WEIGHT or len(low) > 1 or len(high) > 1:
        return None
    return numbers, low.pop(), high.pop()


def scaled_row(weights: FloatArray, low: float, high: float) -> tuple[FloatArray, float, float]:
    """Returns a row for a solver with tolerances: scaled by a power of two, whole limits with room to spare."""
    largest = float(np.abs(weights).max(initial=0.0))
    if largest > LARGE and (weights == np.rint(weights)).all():
        low, high = low - 0.5, high + 0.5
    if largest == 0.0 or LEAST <= largest <= WIDEST:
        return weights, low, high
    scale = 2.0 ** math.floor(math.log2((WIDEST if largest > WIDEST else 1.0) / largest))
    return weights * scale, low * scale, high * scale


def _limits(limit: float, measure: Fraction, error: Fraction, to_whole: Callable[[Fraction], int]) -> set[float]:
    """Returns a limit in units of a measure, as whole numbers: two if the error of that measure matters."""
    if math.isinf(limit):
        return {limit}
    exact = Fraction(limit) / measure
    return {float(to_whole(exact - error)), float(to_whole(exact + error))}
