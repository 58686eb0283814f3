"""The state of a proof, for kernels: the best labelling and the bound of each problem, and the steps that found them.

The *terms* are costs and table entries. Where all of them are integers, so is every labelling's cost, and a bound may
be rounded up to one. The numbers here are compiled into kernels (`hasten.jit`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import BatchArrays, Graph, Instance, labels_of
from hasten.kernels.tolerance import EPS, TOLERANCE, is_proved
from hasten.support.arrays import BoolArray, FloatArray, IntArray

PROVED, OPEN, INFEASIBLE, STOPPED = 0, 1, 2, 3  # outcomes
UNTRIED = -1  # the outcome of an objective that is not looked at
GIVEN, LOOK, REPAIR, ELIMINATE, CUT, SWEEP, BRANCH = 0, 1, 2, 3, 4, 5, 6  # steps; 0: none, or the labels were given
BEST, BOUND, SIZE = 0, 1, 2  # values: the best cost so far, a lower bound, the size of the terms
OUTCOME, STEP, LABELS_BY, N_SWEEPS, N_NODES = 0, 1, 2, 3, 4  # facts; the last step taken, the one that found the labels
UNFIXED = -1  # in place of the label of a variable that is not fixed
OVERFLOW = 1e297  # costs of this size: their sums may reach inf, which means forbidden
MOST = 2.0**32  # of integral terms together: their sums are exact, and rounding in bounds is far below 1
SURE = 2.0**-20  # by how much a gap must be less than 1 at least


class Proofs(NamedTuple):
    """The state of the problems of a batch: a row of `values` or `facts` for each quantity."""

    labels: IntArray  # of the whole batch: the best labellings so far
    values: FloatArray  # (3, n)
    facts: IntArray  # (5, n)


State = tuple[IntArray, FloatArray, IntArray]
"""`Proofs` as a plain tuple, which a driver takes in half the time."""


class Fixing(NamedTuple):
    """Labels that variables of the problems of a batch are fixed to (`hasten.proof.cut.persistency`)."""

    labels: IntArray  # of the whole batch; UNFIXED where a variable is not fixed; empty if nothing is
    loss: FloatArray  # (n,) by how much the cheapest labelling that has them may exceed the cheapest of all


Fixed = tuple[IntArray, FloatArray]
"""`Fixing` as a plain tuple."""
NOTHING_FIXED = Fixing(np.zeros(0, dtype=np.int64), np.zeros(0))


_VALUES, _FACTS = np.array([[np.inf], [-np.inf], [np.inf]]), np.array([[OPEN], [0], [GIVEN], [0], [0]])


def nothing_known(n: int, n_variables: int) -> Proofs:
    """Returns the state of `n` problems before the first step; `n_variables` is of all together."""
    labels = np.empty(n_variables, dtype=np.int64)
    if n == 1:
        return Proofs(labels, _VALUES.copy(), _FACTS.copy())
    return Proofs(labels, _VALUES.repeat(n, axis=1), _FACTS.repeat(n, axis=1))


@kernel
def copy_labels(source: IntArray, target: IntArray) -> None:
    """Copies a labelling."""
    for v in range(target.size):
        target[v] = source[v]


@inlined_kernel
def take_labels(batch: BatchArrays, proofs: Proofs, p: int, labels: IntArray, cost: float, step: int) -> None:
    """Keeps a labelling that a step found, if it is cheaper than the best so far."""
    if cost < proofs.values[BEST, p]:
        proofs.values[BEST, p], proofs.facts[LABELS_BY, p] = cost, step
        copy_labels(labels, labels_of(batch, proofs.labels, p))


@inlined_kernel
def take_bound(proofs: Proofs, p: int, bound: float, size: float) -> None:
    """Raises the bound of a problem, and calls it proved if its best labelling costs no more."""
    values = proofs.values
    values[BOUND, p] = min(max(bound, values[BOUND, p]), values[BEST, p])
    if is_proved(values[BEST, p], values[BOUND, p], size):
        proofs.facts[OUTCOME, p] = PROVED


@inlined_kernel
def rule_out(proofs: Proofs, p: int, step: int) -> None:
    """Notes that a step has shown that a problem has no valid labelling."""
    proofs.facts[OUTCOME, p], proofs.facts[STEP, p] = INFEASIBLE, step
    proofs.values[BEST, p] = proofs.values[BOUND, p] = np.inf


@kernel
def cheapest(graph: Graph, cost: FloatArray, table: FloatArray, labels: IntArray) -> tuple[float, float]:
    """Labels each variable at its cheapest; returns the least that any labelling can cost, and the size of its terms.

    The least is that of each variable and of each table by itself. The size is the sum of each variable's largest
    finite cost and each table's largest finite entry, in magnitude.
    """
    first, total, size = graph.first, 0.0, 0.0
    for v in range(first.size - 1):
        least, chosen, largest = np.inf, first[v], 0.0
        for at in range(first[v], first[v + 1]):
            value = cost[at]
            if value < least:
                least, chosen = value, at
            if value < np.inf:
                largest = max(largest, abs(value))
        labels[v] = chosen - first[v]
        total += least
        size += largest
    total, in_tables = tables_alone(graph, table, total)
    return total, size + in_tables


@kernel
def tables_alone(graph: Graph, table: FloatArray, total: float) -> tuple[float, float]:
    """Returns a total with the least entry of each table added, and the size of all tables' terms."""
    size = 0.0
    for x in range(graph.soft_at.size):
        least, largest = np.inf, 0.0
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] < np.inf:
                least, largest = min(least, table[at]), max(largest, abs(table[at]))
        total += least * graph.soft_count[x]
        size += largest * graph.soft_count[x]
    return total, size


@kernel
def rounding(graph: Graph, size: float) -> float:
    """Returns how far off, at most, any sum of one cost per variable and one entry per table can be.

    A sum of n numbers, however it is ordered, is off by less than n * eps times the sum of their magnitudes.
    """
    n_terms = 4 + graph.order.size
    for x in range(graph.soft_count.size):
        n_terms += graph.soft_count[x]
    return n_terms * EPS * size


@kernel
def integral_gap(instance: Instance, size: float, slip: float) -> float:
    """Returns how far below a labelling's cost a bound may be with no other cost between; 0: costs are not integral.

    `slip` is how far rounding can put a bound off.
    """
    graph, cost, table = instance
    if not size < MOST:
        return 0.0
    for at in range(graph.first[graph.order.size]):
        if cost[at] != np.floor(cost[at]):  # forbidden ones are equal
            return 0.0
    for x in range(graph.soft_at.size):
        for at in range(graph.soft_at[x], graph.soft_at[x] + graph.soft_size[x]):
            if table[at] != np.floor(table[at]):
                return 0.0
    return max(1.0 - 2.0 * slip - SURE, 0.0)


def are_proved(cost: FloatArray, bound: FloatArray, size: FloatArray) -> BoolArray:
    """Tells which costs are optima, given bounds and sizes of terms: `kernels.tolerance.is_proved`, for arrays."""
    with np.errstate(invalid="ignore", under="ignore"):  # inf - inf; tiny costs
        met = cost - bound <= TOLERANCE * np.maximum(np.abs(cost), np.minimum(1.0, size))
    return np.asarray(np.isfinite(cost) & met)


def prove_met(proofs: Proofs, problems: IntArray) -> None:
    """Marks the problems as proved whose best labellings cost no more than their bounds, as `is_proved` says."""
    met = are_proved(*(proofs.values[row, problems] for row in (BEST, BOUND, SIZE)))
    outcome = proofs.facts[OUTCOME, problems]
    proofs.facts[OUTCOME, problems[met & ((outcome == OPEN) | (outcome == STOPPED))]] = PROVED


def take_fixed(proofs: Proofs, problems: IntArray, fixing: Fixing, before: FloatArray) -> None:
    """Subtracts what fixing may lose from the bounds of problems, and decides anew whether they are proved.

    A problem keeps the bound that it had `before`, if that is higher.
    """
    values, facts = proofs.values, proofs.facts
    some = problems[(fixing.loss[problems] > 0.0) & np.isfinite(values[BOUND, problems])]
    values[BOUND, some] -= fixing.loss[some]
    met = are_proved(values[BEST, some], values[BOUND, some], values[SIZE, some])
    facts[OUTCOME, some[(facts[OUTCOME, some] == PROVED) & ~met]] = OPEN
    lower = values[BOUND].take(problems) < before
    if lower.any():
        problems, before = problems[lower], before[lower]
        values[BOUND, problems] = np.minimum(before, values[BEST, problems])
        prove_met(proofs, problems)
