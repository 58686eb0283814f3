"""Which columns become one variable: those of which exactly one, or at most one, is 1; whole columns by themselves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.kernels.tolerance import SLACK
from hasten.programs.columns import row_numbers
from hasten.programs.statement import Statement
from hasten.support.arrays import BoolArray, IntArray

MIN_NONE = 3  # columns that a variable with a "none" has at least: two are left to a table
MAX_CONFLICTS = 1_000_000  # pairs of columns to look for cliques in


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Binary columns of which exactly one is 1 or, where there may be `none`, at most one; `row` says so."""

    columns: IntArray
    none: bool
    row: int


def groupable(program: Statement) -> BoolArray:
    """Returns which columns may share a variable: binaries that no given table names."""
    found = binaries(program)
    for table in program.tables:
        found[list(table.scope)] = False
    return found


def binaries(program: Statement) -> BoolArray:
    """Returns which columns are 0 or 1, and nothing else."""
    return np.asarray(program.whole & (program.low == 0.0) & (program.high == 1.0))


def exclusive_rows(program: Statement) -> list[Group]:
    """Returns the rows that allow at most one of their binary columns to be 1; other columns must be fixed.

    That is so where all weights are positive, or all negative, and the two smallest add up to more than the limit.
    """
    row, column, weight = row_numbers(program), program.row_column, program.row_weight
    fixed, m = program.low == program.high, program.n_rows
    free = ~fixed[column]
    shift = np.bincount(row[~free], (weight * program.low[column])[~free], m)
    odd = np.bincount(row[free & ~groupable(program)[column]], minlength=m) > 0
    row, column, weight = row[free], column[free], weight[free]
    n_up, n_terms = np.bincount(row[weight > 0], minlength=m), np.bincount(row, minlength=m)
    down = (n_up == 0) & (n_terms > 0)
    sign = np.where(down, -1.0, 1.0)
    low = np.where(down, -(program.row_high - shift), program.row_low - shift)
    high = np.where(down, -(program.row_low - shift), program.row_high - shift)
    weight = weight * sign[row]
    by_weight = np.lexsort((weight, row))
    first = np.concatenate([[0], np.cumsum(n_terms)])
    sorted_weight = weight[by_weight]
    found: list[Group] = []
    usable = ~odd & ((n_up == n_terms) | down) & (n_terms >= 2) & np.isfinite(high)
    for r in np.flatnonzero(usable).tolist():
        smallest = sorted_weight[first[r] : first[r + 1]]
        limit = high[r] + SLACK * max(1.0, abs(high[r]))
        if smallest[0] <= limit < smallest[0] + smallest[1]:
            found.append(Group(np.sort(column[first[r] : first[r + 1]]), not low[r] > SLACK, r))
    return found


def cliques(rows: list[Group]) -> list[Group]:
    """Returns columns of which at most one can be 1 although no row says so of all: pairs of them exclude each other.

    Larger cliques are found by adding, to a column, the neighbour that leaves most others to add. Columns of which
    exactly one is 1 have their variable; they are left out.
    """
    partitioned = {j for row in rows if not row.none for j in row.columns.tolist()}
    free = [[j for j in row.columns.tolist() if j not in partitioned] for row in rows if row.none]
    if sum(len(columns) ** 2 for columns in free) > MAX_CONFLICTS:
        return []
    near: dict[int, set[int]] = {}
    for columns in free:
        for j in columns:
            near.setdefault(j, set()).update(columns)
    for j, others in near.items():
        others.discard(j)
    stated = {tuple(columns) for columns in free}
    found = []
    for seed in sorted(near, key=lambda j: -len(near[j])):
        clique, left = [seed], near[seed] & near.keys()
        while left:
            best = max(left, key=lambda j: (len(near[j] & left), -j))
            clique.append(best)
            left &= near[best]
        if len(clique) >= MIN_NONE and tuple(sorted(clique)) not in stated:
            found.append(Group(np.array(sorted(clique)), True, -1))
            stated.add(tuple(sorted(clique)))
    return found


def choose_groups(program: Statement) -> list[Group]:
    """Returns groups that overlap nowhere and leave as few variables as several greedy ways find."""
    rows = exclusive_rows(program)
    candidates = [group for group in rows if not group.none or len(group.columns) >= MIN_NONE] + cliques(rows)
    if not candidates:
        return []
    sizes = np.array([len(group.columns) for group in candidates])
    may_none = np.array([group.none for group in candidates])
    orders = (np.lexsort((-sizes, may_none)), np.argsort(-sizes, kind="stable"), np.argsort(may_none, kind="stable"))
    tried = [_greedy(program.n_columns, [candidates[g] for g in order]) for order in orders]
    return min(tried, key=lambda groups: len(groups) - sum(len(group.columns) for group in groups))


def _greedy(n_columns: int, candidates: list[Group]) -> list[Group]:
    """Takes groups that overlap with none taken before; then what others have left, where that is enough."""
    taken = np.zeros(n_columns, dtype=bool)
    chosen, others = [], []
    for group in candidates:
        if taken[group.columns].any():
            others.append(group)
        else:
            taken[group.columns] = True
            chosen.append(group)
    for group in others:
        left = group.columns[~taken[group.columns]]
        if len(left) >= MIN_NONE:
            taken[left] = True
            chosen.append(Group(left, True, -1))
    return chosen
