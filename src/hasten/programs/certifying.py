"""Certificates of programs: the user's own columns and rows, and how variables and tables follow from them.

1. Columns are stated as variables, whose labels are their values, with all rows, products and tables.
2. Columns of which one is chosen become one variable: it is counted what they add to their rows (`count`), and the
   columns themselves are eliminated.
3. Rows over few variables become tables: of the choices with which they hold.
4. What is left is a problem. The steps of its proof are written with the numbers of the file.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten import certificate as checker
from hasten.certificates.writing import Certificate, Draft, Step, goal, numbers, unit_of
from hasten.errors import ProgramError
from hasten.kernels.cells import row_limits
from hasten.kernels.tolerance import EXACT
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.programs.answer import Answer
from hasten.programs.definitions import unfit_columns
from hasten.programs.state import Group
from hasten.programs.statement import Statement
from hasten.programs.tables import MAX_ARITY, MAX_ENTRIES, MAX_PAIR
from hasten.proof.outline import outline
from hasten.support.arrays import FloatArray
from hasten.support.forms import short

if TYPE_CHECKING:
    from hasten.programs.program import Program

LARGEST = checker.MOST_ENTRIES // 2  # numbers that counting a group may take


def answer_to_certify(program: Program, answer: Answer | None, **asked: Any) -> Answer:
    """Returns an answer of a program, checked; without one, it is `asked`."""
    if answer is not None and (not isinstance(answer, Answer) or answer.program.columns != program.columns):
        raise ProgramError(f"The answer must be one that this program's solve gave, got {short(answer)}.")
    if answer is None or (answer.values_found is None and math.isfinite(program.statement.cutoff)):
        plain = copy(program)  # a limit that a file sets to its objective is none of its rows
        plain.statement = replace(program.statement, cutoff=math.inf)
        answer = plain.solve(**asked)
    return answer


def certify(program: Statement, groups: Iterable[Group], c: FloatArray, answer: Answer, deadline: float) -> Certificate:
    """Writes down what nothing costs less than, and what an answer costs; costs are minus a maximised objective."""
    for names, what in unfit_columns(program):
        raise ProgramError(
            f"No certificate can be written: the variable {names[0]!r} {what}. Certificates are about whole variables, "
            "whose bounds the program states."
        )
    statement = list(stated(program, c))
    x = answer.values_found
    labels = None if x is None else [*np.rint(x - program.low).astype(np.int64).tolist(), 0]
    every = [given if name == "variable" else given[1] for name, *given in statement if name != "row"]
    unit = unit_of(np.array([math.inf if cost == "inf" else cost for costs in every for cost in costs]))
    try:
        draft = Draft(statement, labels, unit, deadline)
    except checker.RefusedError as error:
        raise ProgramError(f"The answer is none to this program: {error}.") from None
    _group(draft, groups, {*program.products.left.tolist(), *program.products.right.tolist()})
    _tabulate(draft)
    if not all(entries for _, entries, _ in draft.state.functions.values()):
        return draft.finished([("sum",)])
    problem = _left(draft)
    enough = goal(problem, draft.upper if labels is not None or answer.optimal else -math.inf, unit)
    return draft.finished(outline(draft, problem, enough, math.inf if enough == -math.inf else enough))


def stated(program: Statement, c: FloatArray) -> Iterator[Step]:
    """Yields the steps that state a program under an objective. The last variable has one label: the constant."""
    values = [np.arange(low, high + 1) for low, high in zip(program.low.tolist(), program.high.tolist(), strict=True)]
    for j, cost in enumerate((program.sign * c).tolist()):
        yield "variable", *(cost * values[j] + 0.0).tolist()
    constant = program.sign * program.constant + sum(table.costs for table in program.tables if not table.scope)
    yield "variable", *numbers(constant + np.zeros(1))
    products = program.products
    for i, j, weight in zip(products.left.tolist(), products.right.tolist(), products.weight.tolist(), strict=True):
        if i == j:
            yield "table", [i], (program.sign * weight * values[i] ** 2 + 0.0).tolist()
        else:
            yield "table", [i, j], (program.sign * weight * np.outer(values[i], values[j]) + 0.0).ravel().tolist()
    for table in program.tables:
        if table.scope:
            yield "table", list(table.scope), numbers(table.costs.ravel())
    for r in range(program.n_rows):
        at = slice(program.row_first[r], program.row_first[r + 1])
        terms = [
            (j, i, weight * value)
            for j, weight in zip(program.row_column[at].tolist(), program.row_weight[at].tolist(), strict=True)
            for i, value in enumerate(values[j].tolist())
            if value
        ]
        whole = np.array([is_whole([weight for _, _, weight in terms])])
        limits = row_limits(program.row_low[r : r + 1], program.row_high[r : r + 1], whole)
        yield "row", terms, *(float(limit[0]) if np.isfinite(limit[0]) else None for limit in limits)


def _group(draft: Draft, groups: Iterable[Group], apart: set[int]) -> None:
    """Makes one variable of the columns of each group, unless they are part of products."""
    rows_of = defaultdict[int, list[int]](list)
    for r, (terms, _, _) in enumerate(draft.state.rows):
        for v in terms:
            rows_of[v].append(r)
    for columns in (group.columns.tolist() for group in groups):
        rows = sorted({r for v in columns for r in rows_of[v]})
        if apart.isdisjoint(columns) and len(columns) * (len(columns) + 2 * len(rows)) <= LARGEST and draft.left() > 0:
            try:
                draft.step("count", rows, columns)
            except checker.RefusedError:  # rounding allows several of them
                continue
            for v in columns:
                draft.step("eliminate", v)


def _tabulate(draft: Draft) -> None:
    """Makes a table of the rows over each scope of few variables; rows that hold in any case say nothing."""
    by_scope, draft.rows = defaultdict[tuple[int, ...], list[int]](list), []
    for r, (terms, low, high) in enumerate(draft.state.rows):
        added = {v: draft.state.weights(v, terms).values() for v in terms}
        least, most = (sum(pick(each, default=0) for each in added.values()) for pick in (min, max))
        if least < low or most > high:
            by_scope[tuple(sorted(v for v, each in added.items() if len(each) > 1))].append(r)
    for scope, rows in sorted(by_scope.items(), key=lambda each: len(each[0])):
        size = math.prod(draft.state.sizes[v] for v in scope)
        if size > (MAX_PAIR if len(scope) == 2 else MAX_ENTRIES) or len(scope) > MAX_ARITY or draft.left() < 0:
            draft.rows += rows
        else:
            draft.step("count", rows, list(scope))
            draft.step("eliminate", len(draft.state.sizes) - 1)


def _left(draft: Draft) -> Problem:
    """Returns what is left as a problem: the variables, with all their labels, tables, and open rows."""
    state, schema, factors, joined = draft.state, Schema(), dict[Any, Any](), list[Any]()
    draft.variables = [v for v in range(len(state.sizes)) if ~v in state.functions]
    at = {v: n for n, v in enumerate(draft.variables)}

    def values(scope: Sequence[int], entries: dict[Any, int]) -> FloatArray:
        costs = np.full([state.sizes[v] for v in scope], np.inf)
        for labels, x in entries.items():
            costs[labels] = x / checker.UNIT
        return costs

    sizes = [state.sizes[v] for v in draft.variables]
    kinds = {size: schema.variable(f"{size} labels", [*map(str, range(size))]) for size in {*sizes}}
    for _, (scope, entries, _) in sorted(each for each in state.functions.items() if each[0] >= 0 and each[1][0]):
        costs = values(scope, entries)
        key, roles = (costs.shape, costs.tobytes()), {f"v{n}": kinds[size] for n, size in enumerate(costs.shape)}
        if key not in factors:
            factors[key] = schema.factor(f"table {len(factors)}", learned=False, **roles).set_table(costs)
        joined.append((factors[key], dict(zip(roles, (at[v] for v in scope), strict=True))))
    shape = schema.structure([kinds[size] for size in sizes])
    for factor, places in joined:
        shape.connect(factor, **places)
    draft.rows = [r for r in draft.rows if any(x for own in state.rows[r][0].values() for x in own.values())]
    for r in draft.rows:
        terms, low, high = state.rows[r]
        cells = [(at[v], str(i), x / checker.UNIT) for v in sorted(terms) for i, x in sorted(terms[v].items()) if x]
        bounded = [limit / checker.UNIT if abs(limit) < checker.INFINITE >> 1 else None for limit in (low, high)]
        shape.rule(f"row {r}", cells, at_least=bounded[0], at_most=bounded[1])
    unary = [values([v], state.functions[~v][1]) for v in draft.variables]
    unary[0] += sum(least for scope, _, least in state.functions.values() if not scope) / checker.UNIT
    return shape.problem(np.concatenate(unary))


def is_whole(weights: Sequence[float]) -> bool:
    """Whether all sums of some weights are whole numbers, and exact."""
    return all(weight == round(weight) for weight in weights) and sum(map(abs, weights)) < EXACT
