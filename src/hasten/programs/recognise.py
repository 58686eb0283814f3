"""From a statement to a structure: what its columns and rows mean, one rule of recognition a function.

1. Bounds are tightened; columns that must be whole are told as such (`columns`).
2. Binary columns of which one is chosen become one variable, other whole columns variables of their own (`grouping`).
3. Labels that a row rules out are dropped, with rows that always hold (`labels`).
4. Pairs that exclude each other become one rule where there are others anyway (`cliques`).
5. Other rows over few variables, products and given tables become tables (`tables`); rows that are left become rules.
6. Variables and tables that play one part get one kind (`kinds`).

What cannot go that way, because something is continuous, unbounded or too large, is left to the solver, with a reason.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.kernels.tolerance import SLACK
from hasten.model.kinds import MAX_LABELS, MAX_ROLES, MAX_TABLE, MAX_WEIGHT
from hasten.model.structure import Structure
from hasten.programs.cliques import merge_pairs
from hasten.programs.columns import prepare
from hasten.programs.grouping import Group, binaries, choose_groups
from hasten.programs.kinds import Kinds, Parts, find_parts
from hasten.programs.labels import Cells, Space, clip, join_rows, make_cells, make_space, rule_out
from hasten.programs.statement import Statement
from hasten.programs.tables import Tables, given_tables, products_to_tables, rows_to_tables, small_rows
from hasten.support.arrays import FloatArray, IntArray, sizes_of

MAX_VALUES = 1024  # of a whole column
MAX_ALL = 20_000_000  # labels of all variables


@dataclass(frozen=True, slots=True, eq=False)
class Recognised:
    """What a statement was found to be, before kinds are declared."""

    space: Space
    groups: list[Group]
    rules: Cells
    tables: Tables
    base: FloatArray  # (L,) what each label costs whatever the objective: of products and tables
    constant: float  # what everything costs whatever the objective
    parts: Parts
    n_merged: int = 0  # rows over pairs that became rules
    n_cliques: int = 0  # those rules
    infeasible: bool = False

    def structure(self, kinds: Kinds, names: tuple[str, ...]) -> Structure:
        """Builds the structure with kinds that know all parts."""
        structure = kinds.schema.structure()
        keys = self.parts.variables
        for key in keys:
            structure.add(kinds.variables[key])
        for scope, part, _ in self.parts.factors:
            kind = kinds.factors[part]
            structure.connect(kind, **dict(zip(kind.roles, scope, strict=True)))
        if self.infeasible:
            structure.rule("no answer is possible", [(0, keys[0][1][0], 1.0)], at_least=2.0)
        cells = self.rules
        variable = self.space.variable[cells.label]
        at = np.searchsorted(cells.row, np.arange(cells.n_rows + 1))
        label = (cells.label - self.space.first[variable]).tolist()
        variables, weights = variable.tolist(), cells.weight.tolist()
        low, high = _before_slack(cells)
        for r in range(cells.n_rows):
            terms = [(variables[k], keys[variables[k]][1][label[k]], weights[k]) for k in range(at[r], at[r + 1])]
            limits = {} if low[r] == -np.inf else {"at_least": low[r]}
            limits |= {} if high[r] == np.inf else {"at_most": high[r]}
            structure.rule(names[cells.source[r]], terms, **limits)
        return structure


def recognise(program: Statement) -> Recognised | str:
    """Returns what a statement was found to be, or why only a solver can answer it."""
    if asks_for_infinity(program):
        return nothing_left(program)
    origin = program.low  # from which given tables count values
    program = prepare(program)
    why = only_for_solvers(program)
    if why:
        return why
    if (program.low > program.high).any():
        return nothing_left(program)
    groups = choose_groups(program)
    allowed = without_forbidden(program, make_space(program, groups), origin)
    if allowed is None:
        return nothing_left(program)
    found = rule_out(allowed, make_cells(program, allowed))
    if found is None:
        return nothing_left(program)
    space, cells = found
    cells = clip(space, cells)
    base, tables = np.zeros(len(space.column)), Tables()
    cells, cliques, n_merged = merge_pairs(space, cells, small_rows(space, cells))
    left = join_rows(rows_to_tables(space, cells, program.rows, tables), cliques)
    least, most = _before_slack(left)
    if (least > most).any():  # such as whole numbers that add up to a half
        return nothing_left(program)
    constant = products_to_tables(program, space, base, tables) + given_tables(program, space, origin, base, tables)
    why = too_large(program, space, left, tables)
    if why:
        return why
    if not space.n_variables:
        return constant_program(space, constant)
    parts = find_parts(space, program.columns, tables)
    return Recognised(space, groups, left, tables, base, constant, parts, n_merged, cliques.n_rows)


def asks_for_infinity(program: Statement) -> bool:
    """Whether a limit is infinite on the side on which that leaves nothing: some solvers refuse such programs."""
    least, most = np.append(program.low, program.row_low), np.append(program.high, program.row_high)
    return bool((least == np.inf).any() or (most == -np.inf).any())


def only_for_solvers(program: Statement) -> str:
    """Returns why a program cannot be put into labels; "" if it can."""
    for which, what in (
        (~program.whole, "is continuous"),
        (~np.isfinite(program.low) | ~np.isfinite(program.high), "has no bounds"),
        (program.high - program.low >= MAX_VALUES, f"takes more than {MAX_VALUES:,} values"),
    ):
        at = np.flatnonzero(which)
        if at.size:
            more = f" ({at.size - 1:,} more are like it)" if at.size > 1 else ""
            return f"the variable {program.columns[at[0]]!r} {what}{more}"
    n_labels = float((program.high - program.low + 1).sum())
    return f"its variables have {n_labels:,.0f} values" if n_labels > MAX_ALL else ""


def too_large(program: Statement, space: Space, rules: Cells, tables: Tables) -> str:
    """Returns why what was recognised is too much for a schema; "" if it is not."""
    if sizes_of(space.first).max(initial=0) > MAX_LABELS:
        return f"a variable would have {sizes_of(space.first).max():,} labels"
    heavy = np.flatnonzero(np.abs(rules.weight) > MAX_WEIGHT)
    if heavy.size:
        at = heavy[0]
        name = program.rows[rules.source[rules.row[at]]]
        return f"the row {name!r} has a coefficient of {rules.weight[at]:g}, beyond which sums are not exact"
    for scope, table in tables.table.items():
        if table.size > MAX_TABLE or len(scope) > MAX_ROLES:
            return f"{tables.name[scope]} has {table.size:,} entries"
    return ""


def without_forbidden(program: Statement, space: Space, origin: FloatArray) -> Space | None:
    """Drops the labels that a given table over one column forbids; None if a column has none left."""
    dead = np.zeros(len(space.column), dtype=bool)
    for table in program.tables:
        if table.costs.size == 1 and np.isposinf(table.costs).all():
            return None
        if len(table.scope) == 1:
            labels = np.flatnonzero(space.column == table.scope[0])
            values = (space.value[labels] - origin[table.scope[0]]).astype(np.int64)
            dead[labels[np.isposinf(table.costs[values])]] = True
    if not dead.any():
        return space
    alive = ~dead
    counts = np.add.reduceat(alive, space.first[:-1], dtype=np.int64)
    if (counts == 0).any():
        return None
    first = np.concatenate([[0], np.cumsum(counts)])
    return Space(first, space.column[alive], space.value[alive], space.fixed)


def nothing_left(program: Statement) -> Recognised:
    """Returns a structure that no labelling satisfies."""
    space = Space(np.zeros(1, dtype=np.int64), _NO, np.zeros(0), np.zeros(program.n_columns))
    return constant_program(space, 0.0, infeasible=True)


def constant_program(space: Space, constant: float, infeasible: bool = False) -> Recognised:
    """Returns a structure of one variable with one label: nothing is left to choose."""
    space = Space(np.array([0, 1]), np.array([-1]), np.zeros(1), space.fixed)
    none = np.zeros(0)
    cells = Cells(_NO, _NO, none, none, none, np.zeros(0, dtype=bool), _NO)
    parts = Parts([("nothing to choose", ("as it is",), "")])
    return Recognised(space, [], cells, Tables(), np.zeros(1), constant, parts, infeasible=infeasible)


_NO: IntArray = np.zeros(0, dtype=np.int64)


def _before_slack(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Returns the limits that a structure, which allows a slack where weights are not whole, makes these ones of."""

    def inverse(most: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            near = np.abs(most - SLACK) <= 1.0
            far = np.where(most > 0, most / (1 + SLACK), most / (1 - SLACK))
            return np.where(np.isinf(most) | cells.whole, most, np.where(near, most - SLACK, far))

    return -inverse(-cells.least), inverse(cells.most)


def n_binaries(program: Statement) -> int:
    """Returns how many columns are 0 or 1."""
    return int(binaries(program).sum())
