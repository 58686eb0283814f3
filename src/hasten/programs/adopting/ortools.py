"""Models of OR-Tools: CP-SAT (linear and Boolean constraints, enforced or not, small tables), MPSolver and MathOpt."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.model.kinds import MAX_TABLE
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import BoolArray, FloatArray

_REFUSED = ("auxiliary_objectives", "quadratic_constraints", "second_order_cone_constraints", "sos1_constraints")
LARGEST = 2**62  # beyond, a limit is none
Holds = Callable[[list[FloatArray]], BoolArray]  # given the values of some expressions, for all tuples at once
Switches = list[tuple[int, int]]  # columns, and the values with which a constraint is enforced


class CpSat:
    """Models of CP-SAT."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        proto = _proto(model)
        reader = _Reader(Builder(name=str(proto.name)))
        for n, variable in enumerate(proto.variables):
            reader.variable(variable, n)
        for n, constraint in enumerate(proto.constraints):
            reader.constraint(constraint, str(constraint.name) or f"constraint {n}")
        for literal in proto.assumptions:  # they hold, as constraints do
            reader.count([literal], 1, math.inf, [], "an assumption")
        reader.objective(proto)
        return reader.build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        return [str(variable.name) or f"x{n}" for n, variable in enumerate(_proto(model).variables)]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Gives values to the model as its hint, in place of one that it may have."""
        model.clear_hints()
        for n, value in enumerate(x.tolist()):
            model.add_hint(model.get_int_var_from_proto_index(n), round(value))


def _proto(model: Any) -> Any:
    proto = model.proto if hasattr(model, "proto") else model.Proto
    return proto() if callable(proto) else proto


def _has(message: Any, name: str) -> bool:
    has = getattr(message, f"has_{name}", None)
    return bool(has()) if callable(has) else bool(message.HasField(name))


class _Reader:
    """Writes variables and constraints to a builder."""

    def __init__(self, build: Builder) -> None:
        self.build = build

    def variable(self, variable: Any, n: int) -> None:
        """Adds a variable; a domain with holes is a table of its own."""
        domain = list(variable.domain)
        low, high = domain[0], domain[-1]
        column = self.build.column(str(variable.name) or f"x{n}", low, high, True)
        if len(domain) > 2:
            if high - low >= MAX_TABLE:
                raise ProgramError(f"The domain of {self.build.columns[column]!r} is too large to be adopted.")
            self.build.table((column,), np.where(_within(np.arange(low, high + 1), domain), 0.0, np.inf))

    def constraint(self, constraint: Any, name: str) -> None:
        """Adds a constraint, or refuses it by its name."""
        switches = [_literal(each) for each in constraint.enforcement_literal]
        counts = {"bool_or": (1, math.inf), "at_most_one": (-math.inf, 1), "exactly_one": (1, 1)}
        for kind, limits in counts.items():
            if _has(constraint, kind):
                self.count(getattr(constraint, kind).literals, *limits, switches, name)
                return
        if _has(constraint, "linear"):
            self._linear(constraint.linear, switches, name)
        elif _has(constraint, "bool_and"):
            for literal in constraint.bool_and.literals:
                self.count([literal], 1, math.inf, switches, name)
        elif switches:
            raise ProgramError(f"{name} holds under a condition, which cannot be adopted for this kind of constraint.")
        elif _has(constraint, "all_diff"):
            for left, right in combinations(constraint.all_diff.exprs, 2):
                self._table([left, right], lambda values: values[0] != values[1], name)
        elif _has(constraint, "table"):
            self._listed(constraint.table, name)
        elif _has(constraint, "int_prod"):
            product = constraint.int_prod
            self._table([product.target, *product.exprs], lambda v: v[0] == np.prod(np.stack(v[1:]), axis=0), name)
        elif _has(constraint, "lin_max"):
            largest = constraint.lin_max
            self._table([largest.target, *largest.exprs], lambda v: v[0] == np.max(np.stack(v[1:]), axis=0), name)
        elif _has(constraint, "bool_xor"):
            self._xor(constraint.bool_xor.literals, name)
        elif not _has(constraint, "dummy_constraint"):
            raise ProgramError(f"{name} is of a kind that cannot be adopted. Use a CpSolver.")

    def objective(self, proto: Any) -> None:
        """Adds the objective; where it is scaled by a negative number, it is maximised."""
        build, scale = self.build, 1.0
        if _has(proto, "floating_point_objective"):
            given = proto.floating_point_objective
            build.maximize, build.constant = bool(given.maximize), float(given.offset)
        elif _has(proto, "objective"):
            given = proto.objective
            if len(given.domain):
                raise ProgramError("The objective has a domain, which cannot be adopted. Make it a constraint.")
            scale = float(given.scaling_factor) or 1.0
            build.maximize, build.constant = scale < 0, scale * float(given.offset)
        else:
            return
        for variable, weight in zip(given.vars, given.coeffs, strict=True):
            column, sign = _signed(variable)
            build.objective[column] += sign * scale * float(weight)

    def count(self, literals: Sequence[int], low: float, high: float, switches: Switches, name: str) -> None:
        pairs = [_literal(literal) for literal in literals]
        negated = sum(1 - value for _, value in pairs)
        terms = [(column, 1.0 if value else -1.0) for column, value in pairs]
        self._row(terms, low - negated, high - negated, switches, name)

    def _linear(self, linear: Any, switches: Switches, name: str) -> None:
        terms, domain = _terms(linear), list(linear.domain)
        if len(domain) == 2:
            low = -math.inf if domain[0] < -LARGEST else float(domain[0])
            high = math.inf if domain[1] > LARGEST else float(domain[1])
            self._row(terms, low, high, switches, name)
        elif switches:
            raise ProgramError(f"{name} has a domain with holes and a condition, which cannot be adopted.")
        else:
            self._table([linear], lambda values: _within(values[0], domain), name)

    def _row(self, terms: list[tuple[int, float]], low: float, high: float, switches: Switches, name: str) -> None:
        columns, weights = [column for column, _ in terms], [weight for _, weight in terms]
        if switches:
            self.build.indicator(switches, columns, weights, low, high, name)
        else:
            self.build.row(columns, weights, low, high, name)

    def _listed(self, table: Any, name: str) -> None:
        exprs = list(table.exprs) or [_Plain(variable) for variable in table.vars]
        allowed = {tuple(row) for row in np.array(table.values).reshape(-1, len(exprs)).tolist()}
        negated = bool(table.negated)

        def holds(values: list[FloatArray]) -> BoolArray:
            rows = np.stack([each.ravel() for each in values], axis=1).astype(int).tolist()
            return np.array([(tuple(row) in allowed) != negated for row in rows], dtype=bool).reshape(values[0].shape)

        self._table(exprs, holds, name)

    def _xor(self, literals: Sequence[int], name: str) -> None:
        pairs = [_literal(literal) for literal in literals]

        def holds(values: list[FloatArray]) -> BoolArray:
            true = [each == value for each, (_, value) in zip(values, pairs, strict=True)]
            return np.asarray(np.logical_xor.reduce(np.stack(true)))

        self._table([_Plain(column) for column, _ in pairs], holds, name)

    def _table(self, exprs: Sequence[Any], holds: Holds, name: str) -> None:
        build = self.build
        scope = sorted({column for expr in exprs for column, _ in _terms(expr)})
        shape = [int(build.high[j] - build.low[j]) + 1 for j in scope]
        if math.prod(shape) > MAX_TABLE:
            raise ProgramError(f"{name} has {math.prod(shape):,} combinations of values; at most {MAX_TABLE:,} can be.")
        grids = np.meshgrid(*[build.low[j] + np.arange(n) for j, n in zip(scope, shape, strict=True)], indexing="ij")
        values = []
        for expr in exprs:
            total = np.full(shape, float(getattr(expr, "offset", 0)))
            for column, weight in _terms(expr):
                total = total + weight * grids[scope.index(column)]
            values.append(total)
        build.table(scope, np.where(holds(values), 0.0, np.inf))


class _Plain:
    """A variable as an expression."""

    def __init__(self, variable: int) -> None:
        self.vars, self.coeffs, self.offset = [variable], [1], 0


def _literal(literal: int) -> tuple[int, int]:
    """Returns a literal's column, and the value with which it is true."""
    return (literal, 1) if literal >= 0 else (-literal - 1, 0)


def _signed(variable: int) -> tuple[int, float]:
    """Returns a variable's column, and -1 where it is meant negated."""
    return (variable, 1.0) if variable >= 0 else (-variable - 1, -1.0)


def _terms(linear: Any) -> list[tuple[int, float]]:
    signed = zip(map(_signed, linear.vars), linear.coeffs, strict=True)
    return [(column, sign * float(weight)) for (column, sign), weight in signed]


def _within(values: Any, domain: list[int]) -> BoolArray:
    found = np.zeros(np.shape(values), dtype=bool)
    for low, high in zip(domain[::2], domain[1::2], strict=True):
        found |= (values >= low) & (values <= high)
    return found


class MPSolver:
    """Models of MPSolver."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        from ortools.linear_solver import linear_solver_pb2

        proto = linear_solver_pb2.MPModelProto()
        model.ExportModelToProto(proto)
        if len(proto.general_constraint):
            raise ProgramError("The model has general constraints, which cannot be adopted. Use its Solve().")
        build = Builder(name=proto.name, maximize=proto.maximize, constant=proto.objective_offset)
        for each in proto.variable:
            build.column(each.name, each.lower_bound, each.upper_bound, each.is_integer, each.objective_coefficient)
        for row in proto.constraint:
            build.row(row.var_index, row.coefficient, row.lower_bound, row.upper_bound, row.name)
        return build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        return [variable.name() for variable in model.variables()]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Gives values to the model as its hint."""
        model.SetHint(model.variables(), x.tolist())


class MathOpt:
    """Models of MathOpt: linear rows, linear or quadratic objectives, indicators."""

    def state(self, model: Any) -> Statement:
        """Returns the program that a model states."""
        proto = model.export_model()
        for kind in (*_REFUSED, "sos2_constraints"):
            if len(getattr(proto, kind)):
                what = kind.replace("_", " ")
                raise ProgramError(f"The model has {what}, which cannot be adopted. Use mathopt.solve().")
        objective, variables = proto.objective, proto.variables
        build = Builder(name=proto.name, maximize=objective.maximize, constant=objective.offset)
        names = list(variables.names) or [""] * len(variables.ids)
        costs = dict(zip(objective.linear_coefficients.ids, objective.linear_coefficients.values, strict=True))
        build.add_columns(
            names,
            variables.lower_bounds,
            variables.upper_bounds,
            variables.integers,
            [costs.get(number, 0.0) for number in variables.ids],
        )
        place = {number: j for j, number in enumerate(variables.ids)}
        quadratic = objective.quadratic_coefficients
        for left, right, weight in zip(quadratic.row_ids, quadratic.column_ids, quadratic.coefficients, strict=True):
            build.product(place[left], place[right], weight)
        rows, matrix = proto.linear_constraints, proto.linear_constraint_matrix
        terms: dict[int, list[tuple[int, float]]] = {number: [] for number in rows.ids}
        for row, column, weight in zip(matrix.row_ids, matrix.column_ids, matrix.coefficients, strict=True):
            terms[row].append((place[column], weight))
        names = list(rows.names) or [""] * len(rows.ids)
        for number, low, high, name in zip(rows.ids, rows.lower_bounds, rows.upper_bounds, names, strict=True):
            build.row([j for j, _ in terms[number]], [w for _, w in terms[number]], low, high, name)
        for number in sorted(proto.indicator_constraints):
            rule = proto.indicator_constraints[number]
            if rule.HasField("indicator_id"):  # without its binary, which was deleted, it never holds
                switch, inner = (place[rule.indicator_id], 0 if rule.activate_on_zero else 1), rule.expression
                limits = rule.lower_bound, rule.upper_bound
                build.indicator([switch], [place[j] for j in inner.ids], list(inner.values), *limits, rule.name)
        return build.statement()

    def names(self, model: Any) -> list[str]:
        """Returns the names of its variables."""
        return [variable.name for variable in model.variables()]

    def write(self, model: Any, x: FloatArray, optimal: bool) -> None:
        """Refuses: a MathOpt model holds no values."""
        raise ProgramError("A MathOpt model holds no values. Use answer.x or answer[name].")
