"""Joins: the sums that a step of an elimination takes, wherever its tables are.

Most steps of a plan look alike, and so do steps of different structures: the same tables meet in the same way. The
sums of such a step are a `Join`, worked out once. A plan (`hasten.proof.elimination.plan`) consists of joins and of the
places where each reads.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import NamedTuple

import numpy as np

from hasten.model.compiled import Table
from hasten.support.arrays import BoolArray, IntArray, strides
from hasten.support.threads import Cache

MAX_JOINS = 32 * 2**20  # bytes of joins that are kept for other structures


class Pattern:
    """Which tuples a table allows; tables that allow the same tuples share it."""

    def __init__(self, allowed: BoolArray) -> None:
        self.allowed = allowed  # an axis per slot
        self.size = allowed.size
        self.n_tuples = int(np.count_nonzero(allowed))
        self.stride = strides(allowed.shape)

    @cached_property
    def table(self) -> Table:
        """A table that allows the same tuples and costs nothing."""
        return Table.of(np.where(self.allowed, 0.0, np.inf), soft=True)


def pattern_of(allowed: BoolArray) -> Pattern:
    """Returns the pattern of a table, one for all tables that allow the same tuples."""
    key = allowed.shape, allowed.tobytes()
    pattern = _PATTERNS.get(key)
    if pattern is None:
        pattern = Pattern(allowed)
        _PATTERNS.put(key, pattern, 40 * allowed.size)  # its table lists the tuples in 8 bytes and more for each
    return pattern


class FactorTable(NamedTuple):
    """A factor during elimination: the tuples it allows, and where its values are read."""

    scope: tuple[int, ...]
    pattern: Pattern
    at: int  # in the problem's tables or, if derived, among the derived ones
    role: int  # SILENT, STATIC or DERIVED


SILENT, STATIC, DERIVED = range(3)  # all that it allows costs nothing, so never read; the problem's; one of a step's
Part = tuple[Pattern, tuple[int, ...], int]  # a table in a join: its pattern, the axes of its slots, its role
Signature = tuple[tuple[int, ...], int, tuple[Part, ...]]


class Join:
    """Minimising some variables out of some tables, wherever these are.

    The axes are the neighbours, then the `n_inside` variables that go; a *combo* is a labelling that all tables allow.
    """

    def __init__(self, shape: tuple[int, ...], n_inside: int, parts: tuple[Part, ...]) -> None:
        self.shape, self.n_inside, self.parts = shape, n_inside, parts
        possible = np.ones(shape, dtype=bool)
        for pattern, axes, _ in parts:
            in_order = sorted(range(len(axes)), key=axes.__getitem__)
            lengths = [1] * len(shape)
            for axis in axes:
                lengths[axis] = shape[axis]
            possible &= pattern.allowed.transpose(in_order).reshape(lengths)
        self.combos = np.flatnonzero(possible)
        self.n_combos = len(self.combos)
        self.n_after = int(np.count_nonzero(possible.any(axis=-1)))  # labellings of all but the last variable
        self.order = [i for role in (STATIC, DERIVED) for i, part in enumerate(parts) if part[2] == role]  # as read
        self.n_static = sum(part[2] == STATIC for part in parts)
        self.n_out = math.prod(shape[: len(shape) - n_inside])

    @cached_property
    def labels(self) -> tuple[IntArray, ...]:
        """The labels of each variable in the combos."""
        return np.unravel_index(self.combos, self.shape)

    @cached_property
    def counts(self) -> IntArray:
        """How many combos each labelling of the neighbours has."""
        return np.bincount(self.combos // math.prod(self.shape[-self.n_inside :]), minlength=self.n_out)

    @cached_property
    def reads(self) -> IntArray:
        """Which entries each combo reads, one for each table that is read, in their order."""
        entries = np.zeros((self.n_combos, len(self.order)), dtype=np.int64)
        for column, i in enumerate(self.order):
            pattern, axes, _ = self.parts[i]
            for axis, stride in zip(axes, pattern.stride, strict=True):
                entries[:, column] += stride * self.labels[axis]
        return entries.ravel()

    @property
    def allows_all(self) -> bool:
        """Whether every labelling is a combo."""
        return self.n_combos == math.prod(self.shape)

    @cached_property
    def shared(self) -> tuple[int, int, int]:
        """Which of the tables read is over the variable and its only neighbour, and how far apart their labels are.

        -1: none is, so that all are over the variable alone; -2: two variables go, or have more neighbours, or tables.
        """
        over_both = [column for column, i in enumerate(self.order) if len(self.parts[i][1]) == 2]
        if len(self.shape) > 2 or self.n_inside != 1 or len(over_both) > 1:
            return -2, 0, 0
        if not over_both:
            return -1, 0, 0
        pattern, axes, _ = self.parts[self.order[over_both[0]]]
        outside, inside = pattern.stride[list(np.argsort(axes))].tolist()
        return over_both[0], outside, inside

    @cached_property
    def out(self) -> Pattern:
        """Which labellings of the neighbours it leaves possible."""
        return pattern_of((self.counts > 0).reshape(self.shape[: len(self.shape) - self.n_inside]))


_PATTERNS = Cache[tuple[tuple[int, ...], bytes], Pattern](MAX_JOINS)
_JOINS = Cache[Signature, Join](MAX_JOINS)


def join_of(signature: Signature) -> Join:
    """Returns the join of a signature, worked out once."""
    join = _JOINS.get(signature)
    if join is None:
        join = Join(*signature)
        n_numbers = join.n_combos * (len(join.shape) + 2 + 2 * len(join.order)) + join.n_out
        _JOINS.put(signature, join, 8 * n_numbers)
    return join
