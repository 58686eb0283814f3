"""What each host's users know from its other solvers: options, statuses, starts, dual values, registries."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import pytest

import hasten
from hasten.errors import ProgramError, SolverError

pytestmark = pytest.mark.filterwarnings("ignore")  # hosts warn about their own futures


class TestPulp:
    def model(self, cat: str = "Binary", low: float = 2.5) -> Any:
        import pulp

        model = pulp.LpProblem("m", pulp.LpMinimize)
        x = [pulp.LpVariable(f"x{j}", 0, 1, cat) for j in range(5)]
        model += pulp.lpSum((j + 1) * v for j, v in enumerate(x)) + 1
        model += pulp.lpSum(x) >= low, "enough"
        return model

    def test_it_is_listed(self) -> None:
        import pulp

        assert isinstance(pulp.getSolver("HASTEN", msg=False) if hasten.pulp else None, hasten.pulp.HASTEN)
        assert "HASTEN" in pulp.listSolvers(onlyAvailable=True)

    def test_values_status_and_slacks(self) -> None:
        import pulp

        model, solver = self.model(), hasten.pulp.HASTEN(msg=False)
        assert pulp.LpStatus[model.solve(solver)] == "Optimal"
        assert pulp.value(model.objective) == 7.0
        assert model.constraints["enough"].slack == pytest.approx(0.5)
        assert (solver.answer.proved, solver.handed) == (True, "")
        model = self.model(low=6)
        assert pulp.LpStatus[model.solve(solver)] == "Infeasible"

    def test_a_continuous_model_is_handed_over_with_dual_values(self, capsys: pytest.CaptureFixture[str]) -> None:
        import pulp

        model, solver = self.model("Continuous"), hasten.pulp.HASTEN(msg=True)
        model.solve(solver)
        assert "handed this to HiGHS: no variable is whole" in capsys.readouterr().out
        assert model.constraints["enough"].pi == pytest.approx(3.0)
        assert (solver.answer, pulp.value(model.objective)) == (None, pytest.approx(5.5))
        model, solver = self.model(), hasten.pulp.HASTEN(mip=False, msg=False)
        model.solve(solver)
        assert pulp.value(model.objective) == pytest.approx(5.5)
        assert "relaxes" in solver.handed

    def test_warm_start_and_limits_are_options(self) -> None:
        import pulp

        model = self.model()
        for variable in model.variables():
            variable.setInitialValue(1)
        solver = hasten.pulp.HASTEN(timeLimit=5, gapRel=0.01, warmStart=True, threads=2, msg=False)
        model.solve(solver)
        assert pulp.value(model.objective) == 7.0
        again = solver.copy()
        assert (again.timeLimit, again.optionsDict) == (5, solver.optionsDict)

    def test_objectives_that_follow_each_other_take_one_program(self) -> None:
        import pulp

        model, rng = self.model(), np.random.default_rng(0)
        for _ in range(5):
            c = rng.normal(size=5)
            model.setObjective(pulp.lpSum(w * v for w, v in zip(c, model.variables(), strict=True)))
            model.solve(hasten.pulp.HASTEN(msg=False))
            best = np.sort(c)[:3].sum() + np.minimum(np.sort(c)[3:], 0).sum()
            assert pulp.value(model.objective) == pytest.approx(best)


class TestMilp:
    def test_what_is_not_ours_scipy_answers(self) -> None:
        from scipy.optimize import milp

        rows = {"constraints": ([[1.0, 1.0]], 0.5, 1.5), "bounds": (0, 1)}
        for options, kind, why in (
            ({}, None, "no variable is whole"),
            ({"node_limit": 50}, 1, "HiGHS' own"),
            ({"presolve": False}, 1, "HiGHS' own"),
            ({}, [2, 1], "semicontinuous"),
        ):
            ours = hasten.milp([1, 2], integrality=kind, options=options, **rows)
            theirs = milp([1, 2], integrality=kind, options=options, **rows)
            assert why in ours.message
            assert (ours.fun, ours.status) == (theirs.fun, theirs.status)
        many = hasten.milp([[1, 2], [2, 1]], **rows)
        assert many.fun == pytest.approx([0.5, 0.5])
        assert many.success.all()

    def test_errors_are_scipys(self) -> None:
        with pytest.raises(ValueError, match="c"):
            hasten.milp([1, math.nan], integrality=1)
        with pytest.raises(ValueError, match="bounds"):
            hasten.milp([1, 2], integrality=1, bounds=([0, 0, 0], 1))

    def test_results_have_scipys_fields(self) -> None:
        found = hasten.milp([-1, -2], integrality=1, bounds=(0, 1), constraints=([[1, 1]], -math.inf, 1))
        assert (found.status, found.success, found.fun, found.mip_gap) == (0, True, -2.0, pytest.approx(0.0))
        assert found.mip_dual_bound == pytest.approx(-2.0)
        assert found.x.tolist() == [0, 1]
        found = hasten.milp([1, 2], integrality=1, bounds=(0, 1), constraints=([[1, 1]], 3, 4))
        assert (found.status, found.x, found.fun) == (2, None, None)
        assert hasten.milp([-1.0], integrality=1).status == 3
        assert hasten.milp(np.zeros((0, 2)), integrality=1, bounds=(0, 1)).x.shape == (0, 2)


class TestPyomo:
    def model(self, domain: str = "Binary") -> Any:
        import pyomo.environ as pyo

        model = pyo.ConcreteModel()
        model.x = pyo.Var(range(4), domain=getattr(pyo, domain), bounds=(0, 1))
        model.row = pyo.Constraint(expr=sum(model.x[j] for j in range(4)) >= 1.5)
        model.cost = pyo.Objective(expr=sum((j + 1) * model.x[j] for j in range(4)) + 2)
        return model

    def test_both_factories_know_it(self) -> None:
        import pyomo.environ as pyo
        from pyomo.contrib.solver.common.factory import SolverFactory

        model, stream = self.model(), io.StringIO()
        solver = SolverFactory("hasten") if hasten.pyomo else None
        found = solver.solve(model, time_limit=5, rel_gap=0.0, tee=stream)
        assert (found.incumbent_objective, found.objective_bound) == (5.0, pytest.approx(5.0))
        assert "Proved optimal" in stream.getvalue()
        assert solver.available()
        for variable in model.x.values():
            variable.set_value(1)
        found = pyo.SolverFactory("hasten").solve(model, warmstart=True, timelimit=5)
        assert found.solver.status == pyo.SolverStatus.ok
        assert [int(variable.value) for variable in model.x.values()] == [1, 1, 0, 0]

    def test_continuous_and_quadratic_models_go_to_highs(self) -> None:
        import pyomo.environ as pyo

        model, solver = self.model("NonNegativeReals"), hasten.pyomo.Hasten()
        model.dual = pyo.Suffix(direction=pyo.Suffix.IMPORT)
        solver.solve(model)
        assert model.dual[model.row] == pytest.approx(2.0)
        assert "no variable is whole" in solver.handed
        model = self.model()
        model.y = pyo.Var(bounds=(0, 3))
        model.cost.expr += (model.y - 1) ** 2
        with pytest.raises(Exception, match=r"."):  # HiGHS takes no quadratic objective over whole variables
            solver.solve(model)
        assert "products" in solver.handed

    def test_misuse_is_refused(self) -> None:
        solver = hasten.pyomo.Hasten()
        with pytest.raises(SolverError, match="rel_gap, not abs_gap"):
            solver.solve(self.model(), abs_gap=1.0)
        with pytest.raises(SolverError, match="no option 'mip_heuristic_effort'"):
            solver.solve(self.model(), solver_options={"mip_heuristic_effort": 0.1})

    def test_there_is_no_answer(self) -> None:
        import pyomo.environ as pyo
        from pyomo.contrib.solver.common.util import NoFeasibleSolutionError, NoOptimalSolutionError

        model, solver = self.model(), hasten.pyomo.Hasten()
        model.never = pyo.Constraint(expr=sum(model.x[j] for j in range(4)) >= 5)
        with pytest.raises(NoOptimalSolutionError):
            solver.solve(model)
        with pytest.raises(NoFeasibleSolutionError):
            solver.solve(model, raise_exception_on_nonoptimal_result=False)
        found = solver.solve(model, raise_exception_on_nonoptimal_result=False, load_solutions=False)
        assert found.termination_condition.name == "provenInfeasible"
        assert found.solution_loader.get_number_of_solutions() == 0


class TestLinopy:
    def model(self, binary: bool = True) -> Any:
        import linopy
        import xarray

        model = linopy.Model()
        x = model.add_variables(0, 1, coords=[range(4)], dims=["j"], name="x", integer=binary)
        model.add_constraints(x.sum() >= 1.5, name="row")
        model.add_objective((xarray.DataArray([1.0, 2, 3, 4], dims=["j"], coords={"j": range(4)}) * x).sum())
        return model

    def test_it_is_registered(self) -> None:
        import linopy

        assert hasten.linopy
        assert "hasten" in linopy.available_solvers
        model = self.model()
        assert model.solve("hasten", time_limit=5, mip_rel_gap=0.0, log_to_console=False) == ("ok", "optimal")
        assert (model.objective.value, model.solver_name) == (3.0, "hasten")
        assert model.solution["x"].values.tolist() == [1, 1, 0, 0]
        assert model.solver.answer.proved
        assert model.solve("hasten", start=model.solution, log_to_console=False) == ("ok", "optimal")

    def test_a_continuous_model_is_handed_over_with_dual_values(self) -> None:
        assert hasten.linopy
        model = self.model(binary=False)
        model.solve("hasten", log_to_console=False)
        assert model.constraints["row"].dual.item() == pytest.approx(2.0)
        assert "no variable is whole" in model.solver.handed

    def test_misuse_is_refused(self) -> None:
        assert hasten.linopy
        with pytest.raises(SolverError, match="no option 'presolve'"):
            self.model().solve("hasten", presolve="off")
        with pytest.raises(SolverError, match="takes no `start`"):
            self.model(binary=False).solve("hasten", start={"x": 1})


class TestCvxpy:
    def test_parameters_are_solved_again_in_place(self) -> None:
        cvxpy = pytest.importorskip("cvxpy")
        x, c = cvxpy.Variable(6, boolean=True), cvxpy.Parameter(6)
        problem = cvxpy.Problem(cvxpy.Maximize(c @ x + 1), [cvxpy.sum(x) <= 2])
        solver, rng = hasten.cvxpy.HASTEN(), np.random.default_rng(0)
        for _ in range(4):
            c.value = rng.normal(size=6)
            problem.solve(solver=solver, time_limit=5, mip_rel_gap=0.0, warm_start=True)
            best = np.maximum(np.sort(c.value)[-2:], 0).sum() + 1
            assert (problem.status, problem.value) == ("optimal", pytest.approx(best))
            assert problem.solver_stats.extra_stats["proved"]

    def test_continuous_problems_go_to_highs(self) -> None:
        cvxpy = pytest.importorskip("cvxpy")
        y, solver = cvxpy.Variable(2), hasten.cvxpy.HASTEN()
        problem = cvxpy.Problem(cvxpy.Minimize(cvxpy.sum(y)), [y >= 1])
        assert problem.solve(solver=solver) == pytest.approx(2)
        assert problem.constraints[0].dual_value == pytest.approx([1, 1])
        assert solver.answer is None

    def test_statuses(self) -> None:
        cvxpy = pytest.importorskip("cvxpy")
        n, solver = cvxpy.Variable(integer=True), hasten.cvxpy.HASTEN()
        for rows, status in (([], "unbounded"), ([n >= 0.2, n <= 0.8], "infeasible"), ([n >= 0.2], "optimal")):
            problem = cvxpy.Problem(cvxpy.Minimize(n), rows)
            problem.solve(solver=solver)
            assert problem.status == status
        with pytest.raises(SolverError, match="no option 'presolve'"):
            cvxpy.Problem(cvxpy.Minimize(n), [n >= 1]).solve(solver=solver, presolve="off")


class TestPyEpo:
    def test_batches_are_what_one_by_one_gives(self) -> None:
        pytest.importorskip("pyepo")
        import torch
        from pyepo.func.utils import _solve_batch
        from pyepo.model.grb import knapsackModel, tspMTZModel

        rng = np.random.default_rng(0)
        for inner in (knapsackModel(rng.integers(1, 9, (2, 8)), [15, 16]), tspMTZModel(5)):
            model = hasten.pyepo.optHastenModel(inner)
            costs = rng.uniform(1, 5, (12, model.num_cost)).astype(np.float32)
            sols, values = model.solve_batch(costs)
            batched, _ = _solve_batch(torch.tensor(costs), model, 1, None)
            for c, sol, value, again in zip(costs, sols, values, batched, strict=True):
                inner.setObj(c)
                assert inner.solve()[1] == pytest.approx(value, rel=1e-5)
                assert c @ sol == pytest.approx(value, rel=1e-5)
                assert c @ again.numpy() == pytest.approx(value, rel=1e-5)
            model.setObj(costs[0])
            assert model.solve()[1] == pytest.approx(values[0], rel=1e-5)
            assert model.rebuild().num_cost == model.copy().num_cost == model.num_cost

    def test_a_shortest_path_is_a_network_and_what_generates_rows_is_refused(self) -> None:
        pytest.importorskip("pyepo")
        from pyepo.model.grb import shortestPathModel, tspDFJModel

        model = hasten.pyepo.optHastenModel(shortestPathModel((3, 3)))
        assert model.handed == ""
        model.setObj(np.ones(model.num_cost))
        assert model.solve()[1] == pytest.approx(4.0)
        assert model.solve_batch(np.ones((2, model.num_cost)))[1] == pytest.approx([4.0, 4.0])
        with pytest.raises(ProgramError, match="generates constraints while Gurobi solves it"):
            hasten.pyepo.optHastenModel(tspDFJModel(5))
        with pytest.raises(RuntimeError, match="found no solution"):
            hasten.pyepo.optHastenModel(_never()).solve()


def _never() -> Any:
    from pyepo.model.grb import knapsackModel

    return knapsackModel([[1.0, 1.0]], [3.0]).addConstr(np.array([-1.0, -1.0]), -3.0)
