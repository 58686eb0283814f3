"""From a statement to variables, tables and rules: recognition, one step a function, all over one state.

1. Bounds are tightened; columns that must be whole are marked as such (`columns`).
2. Binary columns of which one is chosen become one variable, other whole columns variables of their own (`columns`).
3. Labels that a row rules out are dropped, with rows that always hold (`labels`).
4. Pairs that exclude each other become one rule where there are others anyway (`cliques`).
5. Other rows over few variables, products and given tables become tables (`tables`); rows that are left become rules.
6. Variables and tables that play one part get one kind (`kinds`).

A program in which something is continuous, unbounded or too large is left to the solver, with a reason.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hasten.model.kinds import MAX_LABELS, MAX_ROLES, MAX_TABLE, MAX_WEIGHT
from hasten.programs.cliques import merge_pairs
from hasten.programs.columns import group_columns, tighten_columns
from hasten.programs.kinds import find_parts, limits_before_slack
from hasten.programs.labels import clip_weights, make_labels, rule_out_labels
from hasten.programs.state import Recognised
from hasten.programs.statement import Statement
from hasten.programs.tables import add_given_tables, add_products, tabulate_rows

MAX_VALUES = 1024  # of a whole column
MAX_ALL = 20_000_000  # labels of all variables


def recognise(program: Statement) -> Recognised:
    """Returns what a statement was found to be; `only_solver` says why only a solver can answer it."""
    found = Recognised(program, program.low)
    for step in STEPS:
        step(found)
        if found.only_solver or found.infeasible:
            break
    return found


def refuse_infinity(found: Recognised) -> None:
    """Checks that no limit is infinite on the side on which that leaves nothing: some solvers refuse such programs."""
    program = found.statement
    least, most = np.append(program.low, program.row_low), np.append(program.high, program.row_high)
    if (least == np.inf).any() or (most == -np.inf).any():
        found.has_no_answer()


def check_columns(found: Recognised) -> None:
    """Checks that every column takes few values: only then can it be put into labels."""
    program = found.statement
    for which, what in (
        (~program.whole, "is continuous"),
        (~np.isfinite(program.low) | ~np.isfinite(program.high), "has no bounds"),
        (program.high - program.low >= MAX_VALUES, f"takes more than {MAX_VALUES:,} values"),
    ):
        at = np.flatnonzero(which)
        if at.size:
            more = f" ({at.size - 1:,} more are like it)" if at.size > 1 else ""
            found.only_solver = f"the variable {program.columns[at[0]]!r} {what}{more}"
            return
    n_labels = float((program.high - program.low + 1).sum())
    if n_labels > MAX_ALL:
        found.only_solver = f"its variables have {n_labels:,.0f} values"
    elif (program.low > program.high).any():
        found.has_no_answer()


def check_rules(found: Recognised) -> None:
    """Checks that the limits of each rule leave something, which whole numbers that add up to a half do not."""
    least, most = limits_before_slack(found.rules)
    if (least > most).any():
        found.has_no_answer()


def check_size(found: Recognised) -> None:
    """Checks that variables, weights and tables are not too large for a schema."""
    rules, largest = found.rules, found.space.sizes.max(initial=0)
    if largest > MAX_LABELS:
        found.only_solver = f"a variable would have {largest:,} labels"
        return
    heavy = np.flatnonzero(np.abs(rules.weight) > MAX_WEIGHT)
    if heavy.size:
        name, weight = found.statement.rows[rules.source[rules.row[heavy[0]]]], rules.weight[heavy[0]]
        found.only_solver = f"the row {name!r} has a coefficient of {weight:g}, beyond which sums are not exact"
        return
    for scope, table in found.tables.table.items():
        if table.size > MAX_TABLE or len(scope) > MAX_ROLES:
            found.only_solver = f"{found.tables.name[scope]} has {table.size:,} entries"
            return


STEPS: tuple[Callable[[Recognised], None], ...] = (
    refuse_infinity,
    tighten_columns,
    check_columns,
    group_columns,
    make_labels,
    rule_out_labels,
    clip_weights,
    merge_pairs,
    tabulate_rows,
    check_rules,
    add_products,
    add_given_tables,
    check_size,
    find_parts,
)
