"""From a statement to variables, tables and rules, one step a function over one state (`STEPS`); and in words.

Bounds are tightened, sums put in for; binaries of which one is chosen become one variable; labels that a row rules out
are dropped; pairs that exclude each other become one rule; rows over few variables become tables, others rules. A
program in which something is continuous, unbounded or too large is left to the solver, with a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hasten.model.kinds import MAX_LABELS, MAX_ROLES, MAX_TABLE, MAX_WEIGHT
from hasten.programs.columns import define_columns, group_columns, tighten_columns
from hasten.programs.definitions import unfit_columns
from hasten.programs.kinds import find_parts, limits_before_slack
from hasten.programs.labels import clip_weights, make_labels, rule_out_labels
from hasten.programs.state import Recognised
from hasten.programs.statement import Statement
from hasten.programs.tables import add_given_tables, add_products, merge_pairs, tabulate_rows
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.programs.program import Program

MAX_ALL = 20_000_000  # labels of all variables


def recognise(program: Statement) -> Recognised:
    """Recognises variables, tables and rules in a statement; `only_solver` says why only a solver can answer it."""
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
    for names, what in unfit_columns(program):
        more = f" ({len(names) - 1:,} more are like it)" if len(names) > 1 else ""
        found.only_solver = f"the variable {names[0]!r} {what}{more}"
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
    define_columns,
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


def describe(program: Program) -> str:
    """Tells what became of columns and rows: that is why a program is fast, or why it is not."""
    statement = program.statement
    n, b, m = statement.n_columns, int(statement.binary.sum()), statement.n_rows
    what = f"{n:,} {'binary' if n == 1 else 'binaries'}" if b == n else f"{count(n, 'variable')} ({b:,} of them binary)"
    head = f"{statement.name or 'The program'}: {what}, {count(m, 'row')}"
    head += f", {count(len(statement.tables), 'table')}." if statement.tables else "."
    if program.only_solver:
        return f"{head}\n{program.only_solver}"
    found = program._solving.found
    if program._solving.network is not None:
        head += "\nIt is a network: a cheapest flow answers it."
        if found.only_solver:
            return f"{head} As a problem it cannot be stated: {found.only_solver}."
    if found.infeasible:
        return f"{head}\nNo answer is possible: no values within the bounds keep all rows."
    n_sums = n_defined = n_continuous = 0
    if found.defined is not None:
        n_defined, n_continuous = len(set(found.defined.target.tolist())), found.defined.n_continuous
        n_sums = n_defined - n_continuous
    if n_continuous:
        verb = "was" if n_continuous == 1 else "were"
        kind = "large variable" if n_continuous > (~statement.whole).sum() else "continuous variable"
        head = f"{count(n_continuous, kind)} {verb} substituted.\n{head}"
    kinds, structure = program.kinds, program.structure
    counts = Counter(kinds.variables[key].name for key in found.parts.variables)
    n_fixed = n - len(set(found.space.column.tolist()) - {-1}) - n_defined
    left, tabled, said = found.rules.n_rows, found.tables.n_rows, found.n_merged - found.n_cliques
    lines = [
        head,
        f"{n - n_fixed - n_defined:,} became {count(structure.n_variables, 'variable')} of {count(len(counts), 'kind')}"
        + (f"; {n_sums:,} {'is a sum' if n_sums == 1 else 'are sums'} of others" if n_sums else "")
        + (f"; {n_fixed:,} can have one value only." if n_fixed else "."),
        f"{count(tabled, 'row')} became {count(len(found.tables.table), 'table')}; "
        f"{_redundant(m - tabled - left - said)}; "
        + (f"{count(found.n_merged, 'row')} over pairs became {count(found.n_cliques, 'rule')}; " if said else "")
        + (
            f"{count(left, 'rule')} {'is' if left == 1 else 'are'} left{' in all' if said else ''}."
            if left
            else "no rules are left."
        ),
        f"{'kind':40s} {'how many':>9s} {'labels':>7s}",
    ]
    for name, often in counts.most_common(12):
        lines.append(f"{name[:40]:40s} {often:9,} {len(program.schema.variables[name]):7,}")
    if len(counts) > 12:
        lines.append(f"and {len(counts) - 12:,} more")
    factors = Counter(kinds.factors[key].name for _, key, _ in found.parts.factors)
    for name, often in factors.most_common(12):
        table = program.schema.factors[name]
        forbidden = 0 if table.table is None else int(np.isinf(table.table).sum())
        shape = "x".join(map(str, table.shape))
        lines.append(f"{'table ' + name[:34]:40s} {often:9,} {shape:>7s}  {forbidden:,} of {table.size:,} forbidden")
    if len(factors) > 12:
        lines.append(f"and {len(factors) - 12:,} more tables")
    return "\n".join(lines)


def _redundant(n: int) -> str:
    return f"{n:,} {'is' if n == 1 else 'are'} redundant"
