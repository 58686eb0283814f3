"""Certificates of programs: the user's own columns and rows, and how variables and tables follow from them.

1. Columns are stated as variables, whose labels are their values, with all rows, products and tables.
2. Columns of which one is chosen become one variable: it is counted what they add to their rows (`count`), and the
   columns themselves are eliminated.
3. Labels that a row rules out are split off.
4. Rows over few variables become tables: of the choices with which they hold.
5. What is left is a problem. The steps of its proof are written with the numbers of the file.
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
from hasten.certificates.writing import UNPROVED, Certificate, Step, goal, numbers, unit_of
from hasten.errors import ProblemError, ProgramError
from hasten.kernels.cells import row_limits
from hasten.kernels.tolerance import EXACT
from hasten.model.problem import Problem
from hasten.programs.answer import Answer
from hasten.programs.kinds import Kinds, build_structure
from hasten.programs.recognise import MAX_VALUES
from hasten.programs.state import Cells, Group, Parts, Recognised, Space
from hasten.programs.statement import Statement
from hasten.programs.tables import MAX_ARITY, MAX_ENTRIES, MAX_PAIR
from hasten.proof.outline import outline
from hasten.support.arrays import FloatArray, IntArray, ints, offsets
from hasten.support.forms import short

if TYPE_CHECKING:
    from hasten.programs.program import Program

LARGEST = checker.MOST_ENTRIES // 2  # numbers that counting a group may take


def values_to_certify(program: Program, answer: Answer | None, **asked: Any) -> FloatArray | None:
    """Returns the values of an answer of a program; without one, it is `asked`."""
    if answer is not None and (not isinstance(answer, Answer) or answer.program.columns != program.columns):
        raise ProgramError(f"The answer must be one that this program's solve gave, got {short(answer)}.")
    if answer is None or (answer.values_found is None and math.isfinite(program.statement.cutoff)):
        plain = copy(program)  # a limit that a file sets to its objective is none of its rows
        plain.statement = replace(program.statement, cutoff=math.inf)
        answer = plain.solve(**asked)
    return answer.values_found


def certify(program: Statement, groups: Iterable[Group], c: FloatArray, x: FloatArray | None) -> Certificate:
    """Writes down what nothing costs less than, and what some values cost; costs are minus a maximised objective."""
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
    labels = None if x is None else [*np.rint(x - program.low).astype(np.int64).tolist(), 0]
    costs = [
        entry for name, *given in statement if name != "row" for entry in (given if name == "variable" else given[1])
    ]
    unit = unit_of(np.array([math.inf if cost == "inf" else cost for cost in costs]))
    derived = Derived(program, statement, labels)
    derived.group(groups, {j for i in (program.products.left, program.products.right) for j in i.tolist()})
    if derived.propagate():
        derived.tabulate()
        derived.tidy()
        proof = derived.proof(unit)
    else:
        proof = [("sum",)]
    try:
        return Certificate.written(statement, labels, unit, [*derived.steps, *proof])
    except checker.RefusedError:  # by less than floating point can tell: the bound that holds is still one
        return Certificate.written(statement, labels, unit, [*derived.steps, ("sum",)])


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
    """The variables, tables and rows derived from a program, as the checker keeps them, and the steps."""

    def __init__(self, program: Statement, statement: Sequence[Step], labels: list[int] | None) -> None:
        self.program = program
        self.state, self.steps = checker.State(), list[Step]()
        self.labels = None if labels is None else [*labels]  # of the answer
        for name, *given in statement:
            getattr(self.state, name)(*given)
        try:
            self.state.claim(UNPROVED, "inf" if labels is None else -UNPROVED, labels)
        except checker.RefusedError as error:
            raise ProgramError(f"The answer is none to this program: {error}.") from None
        self.open = dict.fromkeys(range(len(self.state.rows)))  # rows that still say something

    def step(self, name: str, *given: Any) -> None:
        """Takes a step."""
        getattr(self.state, name)(*given)
        self.steps.append((name, *given))

    def left(self, v: int) -> list[int]:
        """Returns the labels of a variable that are left."""
        return [*self.state.weights(v, {})]

    def count(self, rows: list[int], variables: list[int]) -> int:
        """Counts what variables add to rows, and returns the variable that stands for it."""
        self.step("count", rows, variables)
        new = len(self.state.sizes) - 1
        if self.labels is not None:
            chosen = tuple(self.labels[v] for v in variables)
            entries = self.state.functions[self.state.n_tables - 1][1] if variables else {(0,): 0}
            self.labels.append(next(i for *each, i in entries if tuple(each) == chosen))
        return new

    def _rows_of(self) -> dict[int, list[int]]:
        """Returns the rows of each variable."""
        found = defaultdict[int, list[int]](list)
        for r, (terms, _, _) in enumerate(self.state.rows):
            for v in terms:
                found[v].append(r)
        return found

    def group(self, groups: Iterable[Group], apart: set[int]) -> None:
        """Makes one variable of the columns of each group, unless they are part of products."""
        rows_of = self._rows_of()
        for columns in (group.columns.tolist() for group in groups):
            rows = sorted({r for v in columns for r in rows_of[v]})
            if apart.isdisjoint(columns) and len(columns) * (len(columns) + 2 * len(rows)) <= LARGEST:
                try:
                    self.count(rows, columns)
                except checker.RefusedError:  # rounding allows several of them
                    continue
                for v in columns:
                    self.step("eliminate", v)

    def propagate(self) -> bool:
        """Splits off labels that a row rules out, as long as there are any; tells whether rows can hold."""
        waiting, rows_of = dict.fromkeys(self.open), self._rows_of()
        while waiting:
            r = next(iter(waiting))
            del waiting[r]
            terms, low, high = self.state.rows[r]
            added = {v: self.state.weights(v, terms) for v in terms}
            if not all(added.values()):
                return False
            least = sum(min(each.values()) for each in added.values())
            most = sum(max(each.values()) for each in added.values())
            if least > high or most < low:
                self.step("count", [r], [])
                return False
            if least >= low and most <= high:
                self.open.pop(r, None)
                continue
            for v, each in added.items():
                above = [i for i, x in each.items() if least - min(each.values()) + x > high]
                below = [i for i, x in each.items() if i not in above and most - max(each.values()) + x < low]
                if above or below:
                    kept = [i for i in each if i not in above and i not in below]
                    parts = [part for part in (above, below) if part]
                    self.steps.append(("split", v, [*parts, *([kept] if kept else [])]))
                    self.steps += [("count", [r], []), ("sum",)] * len(parts)
                    if not kept:
                        self.steps.pop()
                        return False
                    self.state = self.state.split(v, [*parts, kept])[-1]
                    waiting |= dict.fromkeys(u for u in rows_of[v] if u in self.open)
                    break
        return True

    def tabulate(self) -> None:
        """Makes a table of the rows over each scope of few variables."""
        by_scope = defaultdict[tuple[int, ...], list[int]](list)
        for r in self.open:
            scope = tuple(sorted(v for v in self.state.rows[r][0] if len(self.left(v)) > 1))
            size = math.prod(len(self.left(v)) for v in scope)
            if size <= (MAX_PAIR if len(scope) == 2 else MAX_ENTRIES) and len(scope) <= MAX_ARITY:
                by_scope[scope].append(r)
        for scope, rows in by_scope.items():
            self.step("eliminate", self.count(rows, list(scope)))
            for r in rows:
                del self.open[r]

    def tidy(self) -> None:
        """Takes labels that are ruled out, and variables without a choice, out of tables: splits of one part."""
        seen = [size if size > 1 else 0 for size in self.state.sizes]
        while loose := [v for v in self._tabled() if self.left(v) and len(self.left(v)) != seen[v]]:
            for v in loose:
                self.steps.append(("split", v, [self.left(v)]))
                (self.state,) = self.state.split(v, [self.left(v)])
                seen[v] = len(self.left(v))

    def _tabled(self) -> list[int]:
        """Returns the variables of tables."""
        return sorted({v for key, (scope, _, _) in self.state.functions.items() if key >= 0 for v in scope})

    def proof(self, unit: int) -> list[Step]:
        """Returns the steps that prove what is left, with the numbers of the file."""
        functions = self.state.functions
        chosen = [v for v in range(len(self.state.sizes)) if ~v in functions and len(functions[~v][1]) > 1]
        if not chosen or not all(entries for _, entries, _ in functions.values()):
            return [("sum",)]
        tables = [key for key, (scope, _, _) in functions.items() if key >= 0 and scope]
        problem, cost = self._problem(chosen, tables), math.inf
        if self.labels is not None:
            left = (functions[key] for key in [*(~v for v in chosen), *tables])
            given = (each.get(tuple(self.labels[v] for v in scope), checker.INFINITE) for scope, each, _ in left)
            cost = sum(given) / checker.UNIT
        target = goal(problem, cost, unit)
        try:
            steps = outline(problem, target, target)
        except ProblemError:  # too many steps: the bound of the first ones
            steps = outline(problem, -math.inf, target)
        return [self._translated(step, chosen, tables) for step in steps]

    def _problem(self, chosen: list[int], tables: list[int]) -> Problem:
        """Returns what is left as a problem: the variables that have a choice, their tables and open rows."""
        functions, at = self.state.functions, {v: n for n, v in enumerate(chosen)}
        labels = {v: {i: n for n, i in enumerate(self.left(v))} for v in chosen}
        found = Recognised(self.program, self.program.low)
        first = offsets(ints([len(labels[v]) for v in chosen]))
        found.space = Space(first, ints([-1] * int(first[-1])), np.zeros(int(first[-1])), np.zeros(0))
        found.parts = Parts([(f"{len(labels[v])} labels", tuple(map(str, range(len(labels[v])))), "") for v in chosen])
        for key in tables:
            scope, entries, _ = functions[key]
            costs = np.full([len(labels[v]) for v in scope], np.inf)
            for each, x in entries.items():
                place = tuple(labels[v].get(i, -1) for v, i in zip(scope, each, strict=True))
                if min(place) >= 0:
                    costs[place] = x / checker.UNIT
            numbers = tuple(at[v] for v in scope)
            found.parts.factors.append(
                (numbers, (tuple(found.parts.variables[n] for n in numbers), costs.tobytes()), "table")
            )
        found.rules = self._rules(labels, first)
        unary = np.array([functions[~v][1][i,] / checker.UNIT for v in chosen for i in labels[v]])
        return build_structure(found, Kinds([found.parts])).problem(unary)

    def _rules(self, labels: dict[int, dict[int, int]], first: IntArray) -> Cells:
        """Returns the open rows over the labels that are left; what has no choice is moved into limits."""
        at = {v: int(n) for v, n in zip(labels, first[:-1], strict=True)}
        cells, limits = list[tuple[int, int, float]](), list[tuple[float, float, bool]]()
        for n, r in enumerate(self.open):
            terms, low, high = self.state.rows[r]
            added = {v: self.state.weights(v, terms) for v in terms}
            fixed = sum(x for v in terms if v not in labels for x in added[v].values())
            own = [(at[v] + labels[v][i], x) for v in terms if v in labels for i, x in added[v].items() if x]
            cells += [(n, label, x / checker.UNIT) for label, x in sorted(own)]
            limits.append((_limit(low - fixed), _limit(high - fixed), is_whole([x / checker.UNIT for _, x in own])))
        row, label, weight = np.array(cells, dtype=float).reshape(-1, 3).T
        least, most, whole = np.array(limits, dtype=float).reshape(-1, 3).T
        return Cells(ints(row), ints(label), weight, least, most, whole.astype(bool), ints([*self.open]))

    def _translated(self, step: Step, chosen: list[int], tables: list[int]) -> Step:
        """Returns a step about the problem that is left as one about the program."""
        (name, *given), rows, new = step, [*self.open], len(self.state.sizes) - len(chosen)

        def variable(v: int) -> int:
            return chosen[v] if v < len(chosen) else new + v

        def labels(v: int) -> list[int] | range:
            return self.left(chosen[v]) if v < len(chosen) else range(checker.MOST_ENTRIES)

        if name == "move":
            table, v, message = given
            sent = dict(zip(labels(v), message, strict=False))
            size = self.state.sizes[chosen[v]] if v < len(chosen) else len(message)
            full = [sent.get(i, 0.0) for i in range(size)]
            key = tables[table] if table < len(tables) else self.state.n_tables + table - len(tables)
            return name, key, variable(v), full
        if name == "split":
            v, parts = given
            return name, variable(v), [[labels(v)[i] for i in part] for part in parts]
        if name == "price":
            return name, rows[given[0]], given[1]
        if name == "count":
            return name, [rows[r] for r in given[0]], [variable(v) for v in given[1]]
        return (name, variable(given[0])) if name == "eliminate" else step


def is_whole(weights: Sequence[float]) -> bool:
    """Whether all sums of some weights are whole numbers, and exact."""
    return all(weight == round(weight) for weight in weights) and sum(map(abs, weights)) < EXACT


def _limit(exact: int) -> float:
    """Returns a limit as a float."""
    return exact / checker.UNIT if abs(exact) < checker.INFINITE >> 1 else math.inf if exact > 0 else -math.inf
