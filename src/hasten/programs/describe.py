"""What was recognised of a program, in words and as a small table."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.programs.program import Program


def describe(program: Program) -> str:
    """Says what became of columns and rows, so that a user sees why a program is fast, or why it is not."""
    statement = program.statement
    n, b, m = statement.n_columns, int(statement.binary.sum()), statement.n_rows
    what = f"{n:,} {'binary' if n == 1 else 'binaries'}" if b == n else f"{count(n, 'variable')} ({b:,} of them binary)"
    head = f"{statement.name or 'The program'}: {what}, {count(m, 'row')}"
    head += f", {count(len(statement.tables), 'table')}." if statement.tables else "."
    if program.only_solver:
        return f"{head}\n{program.only_solver}"
    found = program.recognised
    if found.infeasible:
        return f"{head}\nNo answer is possible: no values within the bounds keep all rows."
    kinds, structure = program.kinds, program.structure
    counts = Counter(kinds.variables[key].name for key in found.parts.variables)
    n_fixed = n - len(set(found.space.column.tolist()) - {-1})
    left, tabled, said = found.rules.n_rows, found.tables.n_rows, found.n_merged - found.n_cliques
    lines = [
        head,
        f"{n - n_fixed:,} became {count(structure.n_variables, 'variable')} of {count(len(counts), 'kind')}"
        + (f"; {n_fixed:,} can have one value only." if n_fixed else "."),
        f"{count(tabled, 'row')} became {count(len(found.tables.table), 'table')}; "
        f"{_idle(m - tabled - left - said)}; "
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


def _idle(n: int) -> str:
    verbs = ("says", "holds") if n == 1 else ("say", "hold")
    return f"{n:,} {verbs[0]} what the variables say already, or always {verbs[1]}"
