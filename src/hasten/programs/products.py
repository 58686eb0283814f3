"""Columns that stand for products of others, as linearised models have them: `z[a,b]` for `x[a] y[b]`.

A row `sum(Z) <= x` says that each of Z implies x. Of columns that imply one member each of the same groups, no two the
same, at most one is 1. Exactly one is, if exactly one of each group is, and rows `sum(Z) = x` speak of all members of a
group, or rows `z >= x + y - 1` of all combinations; these then say nothing more.
"""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from hasten.programs.networks import connected
from hasten.programs.state import Group
from hasten.programs.statement import Statement

MIN_PRODUCTS = 3  # columns of a group


def product_groups(program: Statement, groups: list[Group]) -> list[tuple[Group, list[int]]]:
    """Returns groups of columns that stand for products of members, each with the rows that follow from it."""
    first, column, weight, size = program.row_first, program.row_column, program.row_weight, np.diff(program.row_first)
    row, m, binary = program.row_of_term, program.n_rows, program.binary
    owner = np.full(program.n_columns, -1)  # the group of each column, if any: one of which exactly one is 1, if any
    for g in sorted(range(len(groups)), key=lambda g: (not groups[g].none, len(groups[g].columns))):
        owner[groups[g].columns] = g
    up = weight > 0
    plain = np.bincount(row[~binary[column] | (np.abs(weight) != 1.0)], minlength=m) == 0
    n_owned, n_up = np.bincount(row[owner[column] >= 0], minlength=m), np.bincount(row[up], minlength=m)
    members: defaultdict[int, set[int]] = defaultdict(set)  # by column: those that it implies
    sums: defaultdict[int, list[list[int]]] = defaultdict(list)  # by member: the columns that sum to it
    linked: list[tuple[int, int]] = []  # columns that are in one row
    for side, limit, alone in ((up, program.row_high, size - n_up), (~up, program.row_low, n_up)):
        for r in np.flatnonzero(plain & (size >= 2) & (alone == 1) & (n_owned == 1) & (limit == 0.0)).tolist():
            at = slice(first[r], first[r + 1])
            parts, (x,) = column[at][side[at]].tolist(), column[at][~side[at]].tolist()
            if owner[x] < 0:
                continue
            linked += [(parts[0], z) for z in parts[1:]]
            for z in parts:
                members[z].add(x)
            if program.row_low[r] == program.row_high[r]:
                sums[x].append(parts)
    block = connected(program.n_columns, *np.array(linked, dtype=np.int64).reshape(-1, 2).T)
    sharing: defaultdict[tuple[tuple[int, ...], int, int], list[int]] = defaultdict(list)
    often: Counter[tuple[tuple[int, ...], int]] = Counter()
    alone = np.bincount(block, minlength=program.n_columns)[block] == 1
    for z in sorted(members):
        factors = tuple(sorted(members[z], key=lambda x: int(owner[x])))
        owners, own = tuple(owner[list(factors)].tolist()), -1 if alone[z] else int(block[z])
        if len(set(owners)) == len(owners) >= 2:
            sharing[owners, own, often[factors, own]].append(z)
            often[factors, own] += 1
    below = {}  # rows `z >= x + y - 1`, or of more members
    turned = ~up, -program.row_high, -program.row_low, size - n_up
    for side, low, high, n in ((up, program.row_low, program.row_high, n_up), turned):
        single = plain & (n == 1) & (n_owned == size - 1) & (low == 2.0 - size) & np.isinf(high)
        for r in np.flatnonzero(single).tolist():
            at = slice(first[r], first[r + 1])
            below[int(column[at][side[at]][0]), frozenset(column[at][~side[at]].tolist())] = r
    found = []
    for (owners, _, _), columns in sharing.items():
        if len(columns) < MIN_PRODUCTS:
            continue
        together, exact = set(columns), not any(groups[g].none for g in owners)
        parts = [groups[g].columns.tolist() for g in owners]
        summed = any(all(any(together.issuperset(some) for some in sums[x]) for x in part) for part in parts)
        rows = [below[z, frozenset(members[z])] for z in columns if (z, frozenset(members[z])) in below]
        every = len(rows) == len(columns) == np.prod([len(part) for part in parts])
        found.append((Group(np.array(columns), not (exact and (summed or every))), rows if exact and every else []))
    return found
