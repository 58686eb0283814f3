"""Models of OR-Tools' CP-SAT: linear and Boolean constraints, enforced or not, and those that are small tables."""

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

LARGEST = 2**62  # beyond, a limit is none
Holds = Callable[[list[FloatArray]], BoolArray]  # given the values of some expressions, for all tuples at once


def _proto(model: Any) -> Any:
    proto = model.proto if hasattr(model, "proto") else model.Proto
    return proto() if callable(proto) else proto


def _has(message: Any, name: str) -> bool:
    has = getattr(message, f"has_{name}", None)
    return bool(has()) if callable(has) else bool(message.HasField(name))


def state(model: Any) -> Statement:
    """Returns what a model states."""
    proto = _proto(model)
    reader = _Reader(Builder(name=str(proto.name)))
    for n, variable in enumerate(proto.variables):
        reader.variable(variable, n)
    for n, constraint in enumerate(proto.constraints):
        reader.constraint(constraint, str(constraint.name) or f"constraint {n}")
    reader.assume(proto.assumptions)
    reader.objective(proto)
    return reader.build.statement()


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
            values = np.arange(low, high + 1)
            self.build.table((column,), np.where(_within(values, domain), 0.0, np.inf))

    def constraint(self, constraint: Any, name: str) -> None:
        """Adds a constraint, or refuses it by its name."""
        switches = [self._literal(each) for each in constraint.enforcement_literal]
        if _has(constraint, "linear"):
            self._linear(constraint.linear, switches, name)
        elif _has(constraint, "bool_or"):
            self._count(constraint.bool_or.literals, 1, math.inf, switches, name)
        elif _has(constraint, "bool_and"):
            for literal in constraint.bool_and.literals:
                self._count([literal], 1, math.inf, switches, name)
        elif _has(constraint, "at_most_one"):
            self._count(constraint.at_most_one.literals, -math.inf, 1, switches, name)
        elif _has(constraint, "exactly_one"):
            self._count(constraint.exactly_one.literals, 1, 1, switches, name)
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

    def assume(self, literals: Any) -> None:
        """Adds what is assumed: it holds, as a constraint does."""
        for literal in literals:
            self._count([literal], 1, math.inf, [], "an assumption")

    def objective(self, proto: Any) -> None:
        """Adds the objective; where it is scaled by a negative number, it is maximised."""
        build = self.build
        if _has(proto, "floating_point_objective"):
            floating = proto.floating_point_objective
            build.maximize, build.constant = bool(floating.maximize), float(floating.offset)
            terms = zip(floating.vars, floating.coeffs, strict=True)
            scale = 1.0
        elif _has(proto, "objective"):
            whole = proto.objective
            if len(whole.domain):
                raise ProgramError("The objective has a domain, which cannot be adopted. Make it a constraint.")
            scale = float(whole.scaling_factor) or 1.0
            build.maximize, build.constant = scale < 0, scale * float(whole.offset)
            terms = zip(whole.vars, whole.coeffs, strict=True)
        else:
            return
        for variable, weight in terms:
            column, sign = _signed(variable)
            build.objective[column] += sign * scale * float(weight)

    def _linear(self, linear: Any, switches: list[tuple[int, int]], name: str) -> None:
        signed = [_signed(variable) for variable in linear.vars]
        columns = [column for column, _ in signed]
        weights = [sign * float(weight) for (_, sign), weight in zip(signed, linear.coeffs, strict=True)]
        domain = list(linear.domain)
        if len(domain) > 2:
            if switches:
                raise ProgramError(f"{name} has a domain with holes and a condition, which cannot be adopted.")
            self._table([linear], lambda values: _within(values[0], domain), name)
            return
        low = -math.inf if domain[0] < -LARGEST else float(domain[0])
        high = math.inf if domain[1] > LARGEST else float(domain[1])
        self._row(columns, weights, low, high, switches, name)

    def _count(
        self, literals: Sequence[int], low: float, high: float, switches: list[tuple[int, int]], name: str
    ) -> None:
        """Limits how many of some literals are true."""
        pairs = [self._literal(literal) for literal in literals]
        negated = sum(1 - value for _, value in pairs)
        weights = [1.0 if value else -1.0 for _, value in pairs]
        self._row([column for column, _ in pairs], weights, low - negated, high - negated, switches, name)

    def _row(
        self,
        columns: list[int],
        weights: list[float],
        low: float,
        high: float,
        switches: list[tuple[int, int]],
        name: str,
    ) -> None:
        if switches:
            self.build.indicator(switches, columns, weights, low, high, name)
        else:
            self.build.row(columns, weights, low, high, name)

    def _literal(self, literal: int) -> tuple[int, int]:
        """Returns a literal's column, and the value with which it is true."""
        return (literal, 1) if literal >= 0 else (-literal - 1, 0)

    def _listed(self, table: Any, name: str) -> None:
        exprs = list(table.exprs) or [_Plain(variable) for variable in table.vars]
        allowed = {tuple(row) for row in np.array(table.values).reshape(-1, len(exprs)).tolist()}
        negated = bool(table.negated)

        def holds(values: list[FloatArray]) -> BoolArray:
            rows = np.stack([each.ravel() for each in np.broadcast_arrays(*values)], axis=1).astype(int).tolist()
            found = np.array([(tuple(row) in allowed) != negated for row in rows], dtype=bool)
            return found.reshape(np.broadcast_shapes(*(each.shape for each in values)))

        self._table(exprs, holds, name)

    def _xor(self, literals: Sequence[int], name: str) -> None:
        pairs = [self._literal(literal) for literal in literals]

        def holds(values: list[FloatArray]) -> BoolArray:
            true = [each == value for each, (_, value) in zip(values, pairs, strict=True)]
            return np.asarray(np.logical_xor.reduce(np.stack(np.broadcast_arrays(*true))))

        self._table([_Plain(column) for column, _ in pairs], holds, name)

    def _table(self, exprs: Sequence[Any], holds: Holds, name: str) -> None:
        """Adds a constraint on some linear expressions by trying all values of their variables."""
        build = self.build
        scope = sorted({_signed(variable)[0] for expr in exprs for variable in expr.vars})
        shape = [int(build.high[j] - build.low[j]) + 1 for j in scope]
        if math.prod(shape) > MAX_TABLE:
            raise ProgramError(f"{name} has {math.prod(shape):,} combinations of values; at most {MAX_TABLE:,} can be.")
        grids = np.meshgrid(*[build.low[j] + np.arange(n) for j, n in zip(scope, shape, strict=True)], indexing="ij")
        values = []
        for expr in exprs:
            total = np.full(shape, float(getattr(expr, "offset", 0)))
            for variable, weight in zip(expr.vars, expr.coeffs, strict=True):
                column, sign = _signed(variable)
                total = total + sign * float(weight) * grids[scope.index(column)]
            values.append(total)
        build.table(scope, np.where(holds(values), 0.0, np.inf))


class _Plain:
    """A variable as an expression."""

    def __init__(self, variable: int) -> None:
        self.vars, self.coeffs, self.offset = [variable], [1], 0


def _signed(variable: int) -> tuple[int, float]:
    """Returns a variable's column, and -1 where it is meant negated."""
    return (variable, 1.0) if variable >= 0 else (-variable - 1, -1.0)


def _within(values: Any, domain: list[int]) -> BoolArray:
    found = np.zeros(np.shape(values), dtype=bool)
    for low, high in zip(domain[::2], domain[1::2], strict=True):
        found |= (values >= low) & (values <= high)
    return found


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    return [str(variable.name) or f"x{n}" for n, variable in enumerate(_proto(model).variables)]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Gives values to the model as its hint, in place of one that it may have."""
    model.clear_hints()
    for n, value in enumerate(x.tolist()):
        model.add_hint(model.get_int_var_from_proto_index(n), round(value))
