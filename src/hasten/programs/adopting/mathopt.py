"""Models of OR-Tools' MathOpt: linear rows, linear or quadratic objectives, indicators."""

from __future__ import annotations

from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray

_REFUSED = ("auxiliary_objectives", "quadratic_constraints", "second_order_cone_constraints", "sos1_constraints")


def state(model: Any) -> Statement:
    """Returns what a model states."""
    proto = model.export_model()
    for kind in (*_REFUSED, "sos2_constraints"):
        if len(getattr(proto, kind)):
            raise ProgramError(f"The model has {kind.replace('_', ' ')}, which cannot be adopted. Use mathopt.solve().")
    objective, variables = proto.objective, proto.variables
    build = Builder(name=proto.name, maximize=objective.maximize, constant=objective.offset)
    names = list(variables.names) or [""] * len(variables.ids)
    columns = zip(names, variables.lower_bounds, variables.upper_bounds, variables.integers, strict=True)
    place = {number: build.column(*column) for number, column in zip(variables.ids, columns, strict=True)}
    linear, quadratic = objective.linear_coefficients, objective.quadratic_coefficients
    for number, weight in zip(linear.ids, linear.values, strict=True):
        build.objective[place[number]] = weight
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
        if not rule.HasField("indicator_id"):
            continue  # its binary was deleted: it never holds
        switch = place[rule.indicator_id], 0 if rule.activate_on_zero else 1
        inner = rule.expression
        limits = rule.lower_bound, rule.upper_bound
        build.indicator([switch], [place[j] for j in inner.ids], list(inner.values), *limits, rule.name)
    return build.statement()


def names(model: Any) -> list[str]:
    """Returns the names of its variables."""
    return [variable.name for variable in model.variables()]


def write(model: Any, x: FloatArray, optimal: bool) -> None:
    """Refuses: a MathOpt model holds no values."""
    raise ProgramError("A MathOpt model holds no values. Use answer.x or answer[name].")
