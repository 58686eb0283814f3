"""Matrices of networks: each column is in two rows at most, once as +1 and once as -1 after some rows change sign.

All vertices of what such rows with whole limits allow are whole (Heller and Tompkins, 1956). Paths, flows, assignments
and marginals of pairs are of this kind.
"""

from __future__ import annotations

import numpy as np

from hasten.support.arrays import BoolArray, IntArray


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
    return np.sign(label[n_rows:] - label[:n_rows])
