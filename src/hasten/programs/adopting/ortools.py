"""Linear models of OR-Tools: MPSolver (`pywraplp`) and MathOpt. Those of CP-SAT are in `cpsat`."""

from __future__ import annotations

from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Builder, Statement
from hasten.support.arrays import FloatArray

_REFUSED = ("auxiliary_objectives", "quadratic_constraints", "second_order_cone_constraints", "sos1_constraints")


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
