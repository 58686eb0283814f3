"""Models of every library mean to us what they mean to it, and take our answers back."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_programs
from front_ends import LIBRARIES, as_arrays, as_gurobi, as_pulp, value_of

import hasten
from hasten.errors import ProgramError
from hasten.programs.program import Program

TESTS = Path(__file__).parents[1]


def programs(seed: int, count: int) -> list[Any]:
    rng = np.random.default_rng(seed)
    return [random_programs.make(rng, 6, products=False) for _ in range(count)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_an_adopted_model_has_the_optimum_of_trying_everything(library: str) -> None:
    pytest.importorskip(library)
    feasible = 0
    for program in programs(11, 8):
        model = LIBRARIES[library](program)
        adopted = hasten.adopt(model)
        answer, truth = adopted.solve(), random_programs.best(program)
        if library == "linopy":  # which knows no constant
            truth -= program.constant
        assert answer.objective == pytest.approx(truth, abs=1e-6)
        if math.isfinite(truth):
            feasible += 1
            random_programs.check(program, answer.x)
            answer.write_to(model)
            assert [value_of(model, j) for j in range(program.n_columns)] == answer.x.tolist()
    assert feasible >= 3


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # PuLP's
def test_an_answer_that_is_not_proved_is_not_written_as_optimal() -> None:
    pulp, linopy = pytest.importorskip("pulp"), pytest.importorskip("linopy")
    ours, theirs = pulp.LpProblem("ours", pulp.LpMaximize), linopy.Model()
    ours += pulp.lpSum(ours.add_variable(name, cat="Binary") for name in "abc")
    theirs.add_objective(theirs.add_variables(binary=True, coords=[range(3)], name="x").sum())
    for optimal in (True, False):
        for model in (ours, theirs):
            answer = hasten.adopt(model).solve()
            given = answer if optimal else replace(answer, status=hasten.Status.TIME_LIMIT)
            given.write_to(model)
        assert (theirs.termination_condition == "optimal") == optimal
        if hasattr(ours, "sol_status"):  # PuLP 4 keeps none
            assert ours.sol_status == (pulp.LpSolutionOptimal if optimal else pulp.LpSolutionIntegerFeasible)


def test_special_ordered_sets_of_linopy_are_refused() -> None:
    linopy = pytest.importorskip("linopy")
    model = linopy.Model()
    if not hasattr(model, "add_sos_constraints"):
        pytest.skip("this version has none")
    x = model.add_variables(0, 5, coords=[range(3)], name="x")
    model.add_sos_constraints(x, sos_type=1, sos_dim="dim_0")
    model.add_objective(-1 * x.sum())
    with pytest.raises(hasten.ProgramError, match="special ordered sets"):
        hasten.adopt(model)


def test_what_pyomo_says_beyond_constraints_is_refused_by_name() -> None:
    pe = pytest.importorskip("pyomo.environ")
    gdp = pytest.importorskip("pyomo.gdp")

    def model() -> Any:
        made = pe.ConcreteModel()
        made.x = pe.Var(bounds=(0, 5), domain=pe.Integers)
        made.cost = pe.Objective(expr=(made.x - 2) ** 2)
        return made

    either, logical, outside, fixed, abstract = model(), model(), model(), model(), pe.AbstractModel()
    either.choice = gdp.Disjunction(expr=[[either.x <= 1], [either.x >= 4]])
    logical.on = pe.BooleanVar()
    logical.must = pe.LogicalConstraint(expr=logical.on)
    outside.part = pe.Block()
    outside.part.y = pe.Var(domain=pe.Binary)
    outside.row = pe.Constraint(expr=outside.x + outside.part.y >= 1)
    outside.part.deactivate()
    fixed.x.fix()
    for made, words in (
        (either, "a Disjunct,"),
        (logical, "a LogicalConstraint"),
        (outside, "'row' has the variable 'part.y', which is in no active block"),
        (fixed, "'x' is fixed, but has no value"),
        (abstract, "create_instance"),
    ):
        with pytest.raises(hasten.ProgramError, match=words):
            hasten.adopt(made)
    pe.TransformationFactory("gdp.bigm").apply_to(either)
    assert hasten.adopt(either).solve().objective == 1.0


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"c": [[1.0, -1.0]]}, r"c must be one row .* its shape is \(1, 2\)"),
        ({"c": ["a", "b"]}, "c must be numbers"),
        ({"integrality": [1, 1, 1]}, r"integrality: the shape is \(3,\). Give one for each variable, 2 in all"),
        ({"bounds": (0,)}, "the pair"),
        ({"bounds": 5}, "the pair"),
        ({"bounds": ([0, 0, 0], 1)}, r"The lower bounds: the shape is \(3,\)"),
        ({"bounds": (0, "b")}, "The upper bounds must be numbers"),
        ({"constraints": 5}, "constraints must be a list"),
        ({"constraints": [5]}, "LinearConstraint, .* not int"),
        ({"constraints": ([[1, 1]], 0, [1, 2])}, r"The upper limits: the shape is \(2,\). Give one for each row, 1"),
        ({"constraints": ([["a", 1]], 0, 1)}, "The matrix of a constraint must be numbers"),
        ({"constraints": ([[[1, 1]]], 0, 1)}, "rows and columns"),
        ({"names": 5}, "names must be a list"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(arrays: dict[str, Any], words: str) -> None:
    fitting = {"c": [1.0, -1.0], "integrality": 1, "bounds": (0, 1), "constraints": ([[1, 1]], -np.inf, 1)}
    assert hasten.adopt(**fitting).solve().objective == -1.0
    with pytest.raises(hasten.ProgramError, match=words):
        hasten.adopt(**fitting | arrays)


def test_scipys_arrays_are_adopted_as_milp_reads_them() -> None:
    pytest.importorskip("scipy")
    from scipy.optimize import milp

    for program in programs(12, 8):
        arrays = as_arrays(program)
        answer, truth = hasten.adopt(**arrays).solve(), milp(**arrays)
        assert answer.objective == (pytest.approx(truth.fun, abs=1e-6) if truth.x is not None else math.inf)
    plain = hasten.adopt(c=[1, -2], integrality=1, bounds=(0, 1), constraints=([[1, 1]], -np.inf, 1))
    assert dict(plain.solve()) == {"x0": 0, "x1": 1}


def test_ortools_models_are_adopted_in_a_process_without_highs() -> None:
    pytest.importorskip("ortools")
    script = [sys.executable, str(TESTS / "ortools_models.py"), "8", "0"]
    ran = subprocess.run(script, capture_output=True, text=True, check=False, cwd=TESTS)
    assert ran.returncode == 0, ran.stderr


def test_gurobis_own_constraints_are_rows() -> None:
    gurobipy = pytest.importorskip("gurobipy")
    rng = np.random.default_rng(0)
    for _ in range(12):
        model = as_gurobi(random_programs.Builder().statement())
        x = [model.addVar(vtype="B", name=f"x{i}") for i in range(6)]
        k = model.addVar(vtype="I", lb=-1, ub=2, name="k")
        model.addGenConstrAnd(x[0], [x[1], x[2]])
        model.addGenConstrOr(x[3], [x[4], x[5]])
        model.addGenConstrIndicator(x[1], bool(rng.integers(2)), x[4] + 2 * k, ">", int(rng.integers(-1, 3)))
        model.addConstr(gurobipy.quicksum(x) <= 4)
        weights = rng.normal(size=7)
        linear = gurobipy.LinExpr(weights.tolist(), [*x, k])
        model.setObjective(linear + 0.7 * x[0] * x[3] - 0.4 * x[5] * k + 0.3 * k * k + 2, gurobipy.GRB.MAXIMIZE)
        adopted = hasten.adopt(model)
        model.optimize()
        assert adopted.solve().objective == pytest.approx(model.ObjVal, abs=1e-5)


@pytest.mark.parametrize("kind", ["sos", "quadratic constraint", "semicontinuous"])
def test_what_cannot_be_adopted_is_refused_by_name(kind: str) -> None:
    gurobipy = pytest.importorskip("gurobipy")
    model = as_gurobi(random_programs.Builder().statement())
    x = [model.addVar(ub=3, vtype="S" if kind == "semicontinuous" else "I", name="x") for _ in range(2)]
    if kind == "sos":
        model.addSOS(gurobipy.GRB.SOS_TYPE1, x)
    elif kind == "quadratic constraint":
        model.addConstr(x[0] * x[1] <= 2)
    with pytest.raises(hasten.ProgramError, match=r"cannot be adopted.*optimize"):
        hasten.adopt(model)


def test_what_is_not_a_model_is_refused() -> None:
    for thing in (3, "model", object(), np.zeros(3), hasten.Schema()):
        with pytest.raises(hasten.ProgramError, match="is not a model"):
            hasten.adopt(thing)
    with pytest.raises(hasten.ProgramError, match="goes with SciPy"):
        hasten.adopt(object(), c=[1])
    for wrong, reason in (
        (lambda: hasten.adopt(), "there is neither a model nor c"),
        (lambda: hasten.adopt(None), "there is neither a model nor c"),
        (lambda: hasten.adopt(c=[1.0], integralty=1), "c, integrality, .*there is no 'integralty'"),
        (lambda: hasten.adopt(c=[1.0], like=3), "like is a program, .*got 3"),
        (lambda: hasten.adopt_all(3), "The models"),
    ):
        with pytest.raises(hasten.HastenError, match=reason):
            wrong()


def test_a_changed_objective_keeps_the_structure_and_changed_rows_do_not(caplog: pytest.LogCaptureFixture) -> None:
    pulp = pytest.importorskip("pulp")
    model = pulp.LpProblem("slots", pulp.LpMaximize)
    x = model.add_variable_dicts("x", [(c, s) for c in range(3) for s in range(3)], cat="Binary")
    for c in range(3):
        model += pulp.lpSum(x[c, s] for s in range(3)) == 1
    model += x[0, 0] + x[1, 0] <= 1, "apart"
    model.setObjective(pulp.lpSum((c + s) * x[c, s] for c in range(3) for s in range(3)))
    program = hasten.adopt(model)
    structure = program.structure
    assert program.solve(model).objective == 9
    model.setObjective(pulp.lpSum((5 - s) * x[c, s] for c in range(3) for s in range(3)) + 2)
    answer = program.solve(model)
    assert program.structure is structure
    assert answer.objective == 16  # two in the first slot, one in the second, and the constant
    answer.write_to(model)
    assert pulp.value(model.objective) == 16
    if hasattr(model, "status"):  # PuLP 4 keeps none
        assert model.status == pulp.LpStatusOptimal
    with caplog.at_level("INFO", "hasten.programs.program"):
        for limit in (0, 1, 0, 1):
            model.get_constraint_by_name("apart").changeRHS(limit)
            answer = program.solve(model)
            assert answer.objective == (15 if limit == 0 else 16)
    assert program.structure is not structure
    assert caplog.text.count("other constraints") == 4
    assert [record.levelname for record in caplog.records].count("WARNING") == 1


def test_a_model_with_other_variables_is_another_program() -> None:
    pytest.importorskip("gurobipy")
    program = hasten.adopt(as_gurobi(slots(3)))
    answer = program.solve()
    larger, renamed = as_gurobi(slots(4)), as_gurobi(slots(3))
    renamed.update()
    renamed.getVars()[1].VarName = "other"
    for model, reason in ((larger, "12 variables, the program 9"), (renamed, "a variable 'other' where")):
        for use in (answer.write_to, program.solve):
            with pytest.raises(hasten.ProgramError, match=f"{reason}.* Adopt it"):
                use(model)
    assert program.solve(as_gurobi(slots(3))).objective == answer.objective


def test_answers_to_another_program_have_no_values_here() -> None:
    program, other = (Program(slots(n)) for n in (3, 4))
    solutions = hasten.Certifier()(other.batch(np.zeros((2, 12))))
    for answers in (solutions, solutions[0]):
        with pytest.raises(hasten.ProgramError, match=r"problems of 4 variables that are not this program's"):
            program.values(answers)


def test_names_that_are_missing_or_repeated_are_told_apart() -> None:
    pytest.importorskip("gurobipy")
    model = as_gurobi(random_programs.Builder().statement())
    for name in ("a", "a", ""):
        model.addVar(vtype="B", obj=-1.0, name=name)
    answer = hasten.adopt(model).solve()
    assert len(set(answer)) == 3
    assert list(answer.values()) == [1, 1, 1]


def test_models_of_several_sizes_share_a_schema() -> None:
    pytest.importorskip("pulp")
    first, second = hasten.adopt_all([as_pulp(slots(3)), as_pulp(slots(7))])
    assert first.schema is second.schema
    assert first.solve().optimal
    assert second.solve().optimal


def slots(n: int) -> Any:
    build = random_programs.Builder()
    for c in range(n):
        for s in range(3):
            build.column(f"x[{c},{s}]", 0, 1, True, float(np.sin(c + 5 * s)))
        build.row(range(3 * c, 3 * c + 3), [1.0] * 3, 1, 1)
    return build.statement()


def host_variables(library: str, model: Any) -> list[Any]:
    """Returns a model's own variables, in the order in which they were created."""
    if library == "pulp":
        return [next(v for v in model.variables() if v.name == f"x_{j}") for j in range(12)]
    if library == "linopy":
        return [model.variables["x"]]
    if library == "pyomo":
        return [model.x[j] for j in range(12)]
    return model.getVars() if library == "gurobipy" else model.getVariables()


@pytest.mark.parametrize("library", LIBRARIES)
def test_objectives_are_taken_by_name_by_variable_or_in_an_order(library: str) -> None:
    package = pytest.importorskip(library)
    build = random_programs.Builder()
    for j in range(12):
        build.column(f"x_{j}", 0, 1, True, 1.0)
    build.row(range(12), [1.0] * 12, 5, 5)
    statement = build.statement()
    if library == "pulp":
        model = package.LpProblem("twelve")
        x = [model.add_variable(f"x_{j}", cat="Binary") for j in range(12)]
        model += package.lpSum(x)
        model += package.lpSum(x) == 5
    else:
        model = LIBRARIES[library](statement)
    program, variables = hasten.adopt(model), host_variables(library, model)
    matrix = np.random.default_rng(0).normal(size=(6, 12))
    truth = np.sort(matrix, axis=1)[:, :5].sum(axis=1)
    names = sorted(program.columns, key=lambda name: int(name.strip("x_[]") or 0))
    by_name = [dict(zip(names, c.tolist(), strict=True)) for c in matrix]
    made: Any = pytest.importorskip("pyomo.environ").ComponentMap if library == "pyomo" else dict
    keys = names if library == "linopy" else variables  # linopy's arrays are no keys
    by_variable = [made(zip(keys, c.tolist(), strict=True)) for c in matrix]
    for answers in (
        program.solve_all(by_name),
        program.solve_all(by_variable),
        program.solve_all(matrix, order=names),
        program.solve_all(matrix, order=variables),
        [program.solve(objective=c, order=iter(variables)) for c in matrix],
        [program.solve(objective=c) for c in by_variable],
    ):
        assert [answer.objective for answer in answers] == pytest.approx(truth)
        assert all(answers[0][name] == (c <= np.sort(matrix[0])[4]) for name, c in by_name[0].items())
    if library != "linopy":  # whose variables come in arrays
        assert all(answers[0][variable] == answers[0][name] for variable, name in zip(variables, names, strict=True))
    part = program.solve(objective={names[-1]: -1.0})
    assert part.objective == -1.0
    for wrong, words in (
        ([{"nobody": 1.0}], "no variable 'nobody'"),
        ([{3: 1.0}], "3 is not a variable"),
        ([{names[0]: 1.0}, [1.0] * 12], "all mappings or all arrays"),
        ({names[0]: 1.0}, "Put it into a list"),
        ([{names[0]: "a"}], "numbers"),
        ([{names[0]: [1.0, 2.0]}], "one number, not"),
    ):
        with pytest.raises(hasten.ProgramError, match=words):
            program.solve_all(wrong)
    with pytest.raises(hasten.ProgramError, match=rf"The variable '{re.escape(names[0])}' is named twice"):
        program.solve_all(matrix[:, :2], order=[names[0], names[0]])
    with pytest.raises(hasten.ProgramError, match=r"needs \(problems, 1\)"):
        program.solve_all(matrix, order=names[:1])


def test_a_matrix_of_gurobis_variables_is_an_order() -> None:
    gurobipy = pytest.importorskip("gurobipy")
    model = gurobipy.Model(env=gurobipy.Env(params={"OutputFlag": 0}))
    last, x = model.addVar(vtype="B", name="last"), model.addMVar((3, 2), vtype="B", name="x")
    model.addConstr(x.sum(axis=1) == 1)
    model.update()
    program, costs = hasten.adopt(model), np.arange(14.0).reshape(2, 7)
    answers = program.solve_all(costs, order=[x, last])
    assert answers.objective.tolist() == [6.0, 27.0]
    assert [answers[0][each] for each in (x[0, 0].item(), last)] == [1, 0]
    with pytest.raises(KeyError, match="no variable"):
        answers[0][x]


def test_a_matrix_in_pulps_order_of_names_is_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    pulp = pytest.importorskip("pulp")
    for n, often in ((12, 1), (9, 0)):
        caplog.clear()
        model = pulp.LpProblem("some")
        x = [model.add_variable(f"x_{j}", cat="Binary") for j in range(n)]
        model += pulp.lpSum(x)
        program = hasten.adopt(model)
        assert program.columns[:3] == (("x_0", "x_1", "x_10") if n == 12 else ("x_0", "x_1", "x_2"))
        program.solve_all(np.eye(n), order=x)
        assert "sorts variables by name" not in caplog.text
        for _ in range(2):
            program.solve_all(np.eye(n))
            program.solve(objective=np.ones(n))
        assert caplog.text.count("PuLP sorts variables by name: x_0, x_1, x_10, x_11, …") == often


def test_a_path_is_read_not_adopted() -> None:
    with pytest.raises(ProgramError, match=r"Read files with hasten\.read"):
        hasten.adopt("model.lp")
