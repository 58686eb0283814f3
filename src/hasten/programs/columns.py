"""Columns before they become labels: tighter bounds, columns that must be whole, and columns that share a variable."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from hasten.kernels.tolerance import SLACK
from hasten.programs.definitions import define
from hasten.programs.networks import row_signs
from hasten.programs.products import product_groups
from hasten.programs.state import Group, Recognised
from hasten.programs.statement import Statement, round_inwards
from hasten.proof.elimination.cliques import grown
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets

ROUNDS = 8  # of tightening: each may make the next one possible
MIN_NONE = 3  # columns that a variable with a "none" has at least: two are left to a table
MAX_CONFLICTS = 1_000_000  # pairs of columns to look for cliques in


def tighten_columns(found: Recognised) -> None:
    """Marks columns that are whole in some optimum as whole, and tightens the bounds of whole columns."""
    program = found.statement
    program = replace(program, whole=program.whole | implied_whole(program))
    low, high = program.low.copy(), program.high.copy()
    wide = program.whole & ~((low >= 0) & (high <= 1))  # binaries are left to recognition
    row, column, weight = program.row_of_term, program.row_column, program.row_weight
    some = np.isin(row, row[wide[column]])
    row, column, weight = row[some], column[some], weight[some]
    at = wide[column]
    for _ in range(ROUNDS if wide.any() else 0):
        before = low.copy(), high.copy()
        least, most = _implied(program, row, weight, low[column], high[column])
        np.maximum.at(low, column[at], least[at])
        np.minimum.at(high, column[at], most[at])
        round_inwards(low, high, program.whole)
        if (np.array_equal(before[0], low) and np.array_equal(before[1], high)) or (low > high).any():
            break
    found.statement = replace(program, low=low, high=high)


def implied_whole(program: Statement) -> BoolArray:
    """Returns which continuous columns are whole in some optimum, whatever the objective.

    Given the whole columns, the others have a box with whole ends and rows of weights 1 and -1 with whole limits. If
    the rows that hold several of them are the matrix of a network (`hasten.programs.networks`), every vertex of such a
    set is whole, and a linear objective has its optimum at one.
    """
    row, column, weight = program.row_of_term, program.row_column, program.row_weight
    n, m = program.n_columns, program.n_rows
    continuous = ~program.whole[column]
    found = ~program.whole & _are_whole(program.low) & _are_whole(program.high)
    found[program.products.left] = found[program.products.right] = False
    for table in program.tables:
        found[list(table.scope)] = False
    shared = np.bincount(row[continuous], minlength=m) > 1
    some = continuous & shared[row]
    found &= np.bincount(column[some], minlength=n) <= 2
    signs = row_signs(m, n, row[some], column[some], weight[some] > 0) if found.any() else np.ones(m)
    odd = ~_are_whole(program.row_low) | ~_are_whole(program.row_high)
    odd |= np.bincount(row[weight != np.rint(weight)], minlength=m) > 0
    odd |= np.bincount(row[continuous & (np.abs(weight) != 1.0)], minlength=m) > 0
    odd |= signs == 0
    while found.any():
        bad = odd | (np.bincount(row[continuous & ~found[column]], minlength=m) > 0)
        left = found & (np.bincount(column[bad[row]], minlength=n) == 0)
        if np.array_equal(left, found):
            break
        found = left
    return found


def _implied(
    program: Statement, row: IntArray, weight: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Returns the bounds that each term's row implies for its column, given the bounds of that column."""
    up, m = weight > 0, program.n_rows
    least, most = weight * np.where(up, low, high), weight * np.where(up, high, low)

    def rest(each: FloatArray, unknown: float) -> FloatArray:
        """Returns the sum of all other terms of a row; `unknown` where one of them has no bound."""
        infinite = np.isinf(each)
        finite = np.where(infinite, 0.0, each)
        total = np.bincount(row, finite, m)[row] - finite
        return np.where(np.bincount(row[infinite], minlength=m)[row] - infinite > 0, unknown, total)

    size = np.bincount(row, np.where(np.isinf(least), 0.0, np.abs(least)), m)
    margin = 1e-6 + 1e-9 * size[row]  # of rounding, and of the slack that rows have
    with np.errstate(invalid="ignore"):
        over = (program.row_high[row] - rest(least, -np.inf) + margin) / weight
        under = (program.row_low[row] - rest(most, np.inf) - margin) / weight
    return np.where(up, under, over), np.where(up, over, under)


def _are_whole(values: FloatArray) -> BoolArray:
    return np.asarray(np.isinf(values) | (values == np.rint(values)))


def define_columns(found: Recognised) -> None:
    """Puts in for columns that equalities define by columns in no group."""
    grouped = np.zeros(found.statement.n_columns, dtype=bool)
    for group in exclusive_rows(found.statement):
        grouped[group.columns] = True
    found.defined = define(found.statement, grouped)
    if found.defined is not None:
        found.statement = found.defined.statement


def group_columns(found: Recognised) -> None:
    """Chooses groups that overlap nowhere and leave as few variables as several greedy ways find."""
    rows = exclusive_rows(found.statement)
    least = MIN_NONE if found.defined is None else 2  # what stood for a sum of two stands for their variable
    candidates = [group for group in rows if not group.none or len(group.columns) >= least] + cliques(rows)
    if not candidates:
        return
    products = product_groups(found.statement, rows)
    candidates += [group for group, _ in products]
    sizes = np.array([len(group.columns) for group in candidates])
    may_none = np.array([group.none for group in candidates])
    orders = (np.lexsort((-sizes, may_none)), np.argsort(-sizes, kind="stable"), np.argsort(may_none, kind="stable"))
    tried = [_greedy(found.statement.n_columns, [candidates[g] for g in order]) for order in orders]
    found.groups = min(tried, key=lambda groups: len(groups) - sum(len(group.columns) for group in groups))
    idle = [r for group, rows in products if any(group is each for each in found.groups) for r in rows]
    low, high = found.statement.row_low.copy(), found.statement.row_high.copy()
    low[idle], high[idle] = -np.inf, np.inf
    found.statement = replace(found.statement, row_low=low, row_high=high)


def exclusive_rows(program: Statement) -> list[Group]:
    """Returns the rows that allow at most one of their binary columns to be 1; other columns must be fixed.

    That is so where all weights are positive, or all negative, and the two smallest add up to more than the limit.
    Columns that a given table names are left out.
    """
    groupable, m = program.binary.copy(), program.n_rows
    for table in program.tables:
        groupable[list(table.scope)] = False
    row, column, weight = program.row_of_term, program.row_column, program.row_weight
    free = (program.low != program.high)[column]
    shift = np.bincount(row[~free], (weight * program.low[column])[~free], m)
    odd = np.bincount(row[free & ~groupable[column]], minlength=m) > 0
    row, column, weight = row[free], column[free], weight[free]
    n_up, n_terms = np.bincount(row[weight > 0], minlength=m), np.bincount(row, minlength=m)
    down = (n_up == 0) & (n_terms > 0)
    low = np.where(down, -(program.row_high - shift), program.row_low - shift)
    high = np.where(down, -(program.row_low - shift), program.row_high - shift)
    weight = weight * np.where(down, -1.0, 1.0)[row]
    first, sorted_weight = offsets(n_terms), weight[np.lexsort((weight, row))]
    found: list[Group] = []
    usable = ~odd & ((n_up == n_terms) | down) & (n_terms >= 2) & np.isfinite(high)
    for r in np.flatnonzero(usable).tolist():
        smallest = sorted_weight[first[r] : first[r + 1]]
        limit = high[r] + SLACK * max(1.0, abs(high[r]))
        if smallest[0] <= limit < smallest[0] + smallest[1]:
            found.append(Group(np.sort(column[first[r] : first[r + 1]]), not low[r] > SLACK))
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
    order = list(dict.fromkeys(j for some in free for j in some))
    columns = sorted(order)
    number, near = {j: n for n, j in enumerate(columns)}, [0] * len(columns)
    for some in free:
        together = sum(1 << number[j] for j in some)
        for j in some:
            near[number[j]] |= together
    near = [others & ~(1 << n) for n, others in enumerate(near)]
    found, stated = [], {tuple(number[j] for j in some) for some in free}
    for seed in sorted((number[j] for j in order), key=lambda n: -near[n].bit_count()):
        clique = tuple(grown([seed], near[seed], near))
        if len(clique) >= MIN_NONE and clique not in stated:
            found.append(Group(np.array([columns[n] for n in clique]), True))
            stated.add(clique)
    return found


def _greedy(n_columns: int, candidates: list[Group]) -> list[Group]:
    """Takes groups that overlap with none taken before; then the rest of other groups, where that is large enough."""
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
            chosen.append(Group(left, True))
    return chosen
