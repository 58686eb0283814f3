"""Matrices of networks: each column is in two rows at most, once as +1 and once as -1 after some rows change sign.

All vertices of what such rows with whole limits allow are whole (Heller and Tompkins, 1956). Paths, flows, assignments
and marginals of pairs are of this kind.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.programs.state import FirstLook
from hasten.programs.statement import Statement
from hasten.proof.flows import cheapest_flows
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets, plain

AT_ONCE = 1024  # objectives in one call: Ctrl-C is heard in between


def connected(n: int, left: IntArray, right: IntArray) -> IntArray:
    """Returns the lowest number that each of `n` nodes is connected with by edges."""
    label = np.arange(n)
    while True:
        least, new = np.minimum(label[left], label[right]), label.copy()
        for ends in (left, right):
            np.minimum.at(new, label[ends], least)
        while not np.array_equal(new, jumped := new[new]):
            new = jumped
        if np.array_equal(new, label):
            return label
        label = new


def row_signs(n_rows: int, n_columns: int, row: IntArray, column: IntArray, up: BoolArray) -> IntArray:
    """Returns 1 or -1 for each row, by which each column with two terms has one of each sign; 0 where there is none.

    Terms are of weight 1 or, where they are not `up`, -1.
    """
    order = np.argsort(column, kind="stable")
    order = order[(np.bincount(column, minlength=n_columns) == 2)[column[order]]].reshape(-1, 2)
    (one, other), same = row[order].T, up[order[:, 0]] == up[order[:, 1]]
    # Node r is the row as it is, r + n_rows the row with its sign changed: two terms of one sign join row and change.
    label = connected(
        2 * n_rows,
        np.concatenate([one, one + n_rows]),
        np.concatenate([np.where(same, other + n_rows, other), np.where(same, other, other + n_rows)]),
    )
    return np.asarray(np.sign(label[n_rows:] - label[:n_rows]))


class Network(NamedTuple):
    """A program as a network: its rows are nodes, and its columns arcs; slack flows to a node behind all rows."""

    arcs: tuple[IntArray, IntArray, IntArray, IntArray, IntArray]
    limits: tuple[FloatArray, FloatArray, FloatArray]

    def solve(self, costs: FloatArray) -> FirstLook:
        """Returns the cheapest flow for each row of costs."""
        x, seen = np.empty(costs.shape), np.empty((len(costs), 3))
        for begin in range(0, len(costs), AT_ONCE):
            some = slice(begin, begin + AT_ONCE)
            cheapest_flows(self.arcs, self.limits, plain(costs[some]), x[some], seen[some])
        return FirstLook(seen[:, 0], seen[:, 1], seen[:, 2], costs, x)


def as_network(program: Statement) -> Network | None:
    """Returns the network that a program is, if it is one: with whole limits, so that all its vertices are whole."""
    n, m, row, column = program.n_columns, program.n_rows, program.row_of_term, program.row_column
    terms, up = np.bincount(column, minlength=n), program.row_weight > 0
    if not m or terms.max(initial=0) != 2 or program.tables or len(program.products.left):
        return None
    given = [program.low, program.high, program.row_low, program.row_high]
    if (np.abs(program.row_weight) != 1.0).any() or any((np.rint(each) != each).any() for each in given):
        return None
    free = np.isinf(program.row_low) & np.isinf(program.row_high)
    signs = row_signs(m, n, row, column, up)
    if np.isinf(program.low).any() or (program.low > program.high).any() or free.any() or not signs.all():
        return None
    flips = signs < 0
    least = np.where(flips, -program.row_high, program.row_low)
    most = np.where(flips, -program.row_low, program.row_high)
    if (least > most).any() or (least == np.inf).any() or (most == -np.inf).any():
        return None
    tail, head = np.full(n, m), np.full(n, m)  # the node behind all rows
    out = up != flips[row]
    tail[column[out]], head[column[~out]] = row[out], row[~out]
    slack = np.flatnonzero(least < most)
    fall = np.isinf(least[slack])  # where there is no lower limit, what is missing to the upper one flows off
    tail = np.concatenate([tail, np.where(fall, slack, m)])
    head = np.concatenate([head, np.where(fall, m, slack)])
    low = np.concatenate([program.low, np.where(fall, 0.0, least[slack])])
    room = np.concatenate([program.high - program.low, (most - least)[slack]])
    supply = np.append(np.where(least == most, least, np.where(np.isinf(least), most, 0.0)), 0.0)
    supply[m] = -supply.sum()
    np.subtract.at(supply, tail, low)
    np.add.at(supply, head, low)
    unlimited = np.isinf(room)  # no cheapest flow needs more than all else together: it would go round in circles
    room[unlimited] = room[~unlimited].sum() + np.abs(supply).sum()
    ends = np.concatenate([tail, head])
    around = np.argsort(ends, kind="stable")
    start = offsets(np.bincount(ends, minlength=m + 1))
    around = np.where(around < len(tail), 2 * around, 2 * (around - len(tail)) + 1)
    return Network((tail, head, start, around, unlimited.astype(np.int64)), (low, room, supply))
