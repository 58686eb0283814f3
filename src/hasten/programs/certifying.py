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
from hasten.certificates.writing import UNPROVED, Certificate, Step, cost_of, goal, numbers, share, unit_of
from hasten.errors import ProgramError
from hasten.kernels.cells import row_limits
from hasten.kernels.tolerance import EXACT
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.programs.answer import Answer
from hasten.programs.recognise import MAX_VALUES
from hasten.programs.state import Group
from hasten.programs.statement import Statement
from hasten.programs.tables import MAX_ARITY, MAX_ENTRIES, MAX_PAIR
from hasten.proof.outline import outline
from hasten.support.arrays import FloatArray
from hasten.support.clock import now
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
    for which, what in (
        (~program.whole, "is continuous"),
        (~np.isfinite(program.low) | ~np.isfinite(program.high), "has no bounds"),
        (program.high - program.low >= MAX_VALUES, f"takes more than {MAX_VALUES:,} values"),
    ):
        for j in np.flatnonzero(which).tolist()[:1]:
            raise ProgramError(
                f"No certificate can be written: the variable {program.columns[j]!r} {what}. Certificates are about "
                "whole variables, whose bounds the program states."
            )
    statement = list(stated(program, c))
    x, cost = answer.values_found, math.inf if answer.optimal else -math.inf
    labels = None if x is None else [*np.rint(x - program.low).astype(np.int64).tolist(), 0]
    every = [given if name == "variable" else given[1] for name, *given in statement if name != "row"]
    unit = unit_of(np.array([math.inf if cost == "inf" else cost for costs in every for cost in costs]))
    derived = Derived(statement, now() + 0.3 * (deadline - now()))
    try:
        derived.state.claim(UNPROVED, "inf" if labels is None else -UNPROVED, labels)
    except checker.RefusedError as error:
        raise ProgramError(f"The answer is none to this program: {error}.") from None
    derived.group(groups, {*program.products.left.tolist(), *program.products.right.tolist()})
    derived.tabulate()
    cost = cost if labels is None else cost_of(statement, labels) / checker.UNIT
    return Certificate.written(
        statement, labels, unit, [*derived.steps, *derived.proof(cost, unit, deadline)], deadline
    )


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


class Derived:
    """The variables, tables and rows derived from a program until a deadline, as the checker keeps them; the steps."""

    def __init__(self, statement: Sequence[Step], deadline: float) -> None:
        self.state, self.steps, self.deadline = checker.State(), list[Step](), deadline
        self.open = list[int]()  # rows that no table stands for
        for name, *given in statement:
            getattr(self.state, name)(*given)

    def step(self, name: str, *given: Any) -> None:
        """Takes a step."""
        getattr(self.state, name)(*given)
        self.steps.append((name, *given))

    def group(self, groups: Iterable[Group], apart: set[int]) -> None:
        """Makes one variable of the columns of each group, unless they are part of products."""
        rows_of = defaultdict[int, list[int]](list)
        for r, (terms, _, _) in enumerate(self.state.rows):
            for v in terms:
                rows_of[v].append(r)
        for columns in (group.columns.tolist() for group in groups):
            rows = sorted({r for v in columns for r in rows_of[v]})
            fits = len(columns) * (len(columns) + 2 * len(rows)) <= LARGEST and apart.isdisjoint(columns)
            try:
                if fits and now() < self.deadline:
                    self.step("count", rows, columns)
            except checker.RefusedError:  # rounding allows several of them
                continue
            for v in columns if self.steps and self.steps[-1][-1] is columns else ():
                self.step("eliminate", v)

    def tabulate(self) -> None:
        """Makes a table of the rows over each scope of few variables; rows that hold in any case say nothing."""
        by_scope = defaultdict[tuple[int, ...], list[int]](list)
        for r, (terms, low, high) in enumerate(self.state.rows):
            added = {v: self.state.weights(v, terms).values() for v in terms}
            least, most = (sum(pick(each, default=0) for each in added.values()) for pick in (min, max))
            if least < low or most > high:
                by_scope[tuple(sorted(v for v, each in added.items() if len(each) > 1))].append(r)
        for scope, rows in sorted(by_scope.items(), key=lambda each: len(each[0])):
            size = math.prod(self.state.sizes[v] for v in scope)
            few = size <= (MAX_PAIR if len(scope) == 2 else MAX_ENTRIES) and len(scope) <= MAX_ARITY
            if few and now() < self.deadline:
                self.step("count", rows, list(scope))
                self.step("eliminate", len(self.state.sizes) - 1)
            else:
                self.open += rows

    def proof(self, cost: float, unit: int, deadline: float) -> list[Step]:
        """Returns the steps that prove what is left, with the numbers of the file."""
        functions, sizes, n_tables = self.state.functions, self.state.sizes, self.state.n_tables
        if not all(entries for _, entries, _ in functions.values()):
            return [("sum",)]
        variables = [v for v in range(len(sizes)) if ~v in functions]
        tables = [key for key, (scope, _, _) in functions.items() if key >= 0 and scope]
        problem, found = self._problem(variables, tables), list[Step]()
        enough = goal(problem, cost, unit)
        steps = outline(problem, enough, math.inf if enough == -math.inf else enough, clock=share(deadline))

        def variable(v: int) -> int:
            return variables[v] if v < len(variables) else len(sizes) + v - len(variables)

        for name, *given in steps:
            if name == "move":
                t, v, message = given
                given = [tables[t] if t < len(tables) else n_tables + t - len(tables), variable(v), message]
            elif name == "price":
                given[0] = self.open[given[0]]
            elif name == "count":
                given = [[self.open[r] for r in given[0]], [*map(variable, given[1])]]
            elif given:
                given[0] = variable(given[0])
            found.append((name, *given))
        return found

    def _problem(self, variables: list[int], tables: list[int]) -> Problem:
        """Returns what is left as a problem: the variables, with all their labels, tables, and open rows."""
        functions, sizes, schema, kinds = self.state.functions, self.state.sizes, Schema(), dict[Any, Any]()
        at = {v: n for n, v in enumerate(variables)}

        def values(scope: Sequence[int], entries: dict[Any, int]) -> FloatArray:
            costs = np.full([sizes[v] for v in scope], np.inf)
            for labels, x in entries.items():
                costs[labels] = x / checker.UNIT
            return costs

        for n in {sizes[v] for v in variables}:
            kinds[n] = schema.variable(f"{n} labels", [*map(str, range(n))])
        joined = list[tuple[Any, dict[str, int]]]()
        for scope, entries, _ in (functions[key] for key in tables):
            costs = values(scope, entries)
            key, names = (costs.shape, costs.tobytes()), [f"v{n}" for n in range(len(scope))]
            if key not in kinds:
                own = {name: kinds[size] for name, size in zip(names, costs.shape, strict=True)}
                kinds[key] = schema.factor(f"table {len(kinds)}", learned=False, **own).set_table(costs)
            joined.append((kinds[key], {name: at[v] for name, v in zip(names, scope, strict=True)}))
        shape = schema.structure()
        for v in variables:
            shape.add(kinds[sizes[v]])
        for kind, roles in joined:
            shape.connect(kind, **roles)
        for r in self.open:
            terms, low, high = self.state.rows[r]
            cells = [(at[v], str(i), x / checker.UNIT) for v in sorted(terms) for i, x in sorted(terms[v].items()) if x]
            least, most = (
                limit / checker.UNIT if abs(limit) < checker.INFINITE >> 1 else None for limit in (low, high)
            )
            shape.rule(f"row {r}", cells, at_least=least, at_most=most)
        unary = [values([v], functions[~v][1]) for v in variables]
        unary[0] += sum(least for scope, _, least in functions.values() if not scope) / checker.UNIT
        return shape.problem(np.concatenate(unary))


def is_whole(weights: Sequence[float]) -> bool:
    """Whether all sums of some weights are whole numbers, and exact."""
    return all(weight == round(weight) for weight in weights) and sum(map(abs, weights)) < EXACT
