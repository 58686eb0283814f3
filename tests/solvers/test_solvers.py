"""Every solver answers what enumeration answers, says what it cannot do, and is never believed unchecked."""

from __future__ import annotations

import math
import sys
import types
from concurrent.futures import ThreadPoolExecutor

import naive
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from strategies import entity_relation, random_problem, small_problems

from hasten.errors import SolverError, SolverMissing, SolverTooSmall, SolverWrong
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Source, Status
from hasten.model.structure import Structure
from hasten.solvers import available_solvers, check_solver, load, make_solver, solve_all
from hasten.solvers.base import Outcome
from hasten.solvers.formulation import formulate, hall_rows
from hasten.solvers.highs import HighsSolver
from hasten.solvers.highs_program import HighsProgram
from hasten.solvers.objective import Layout, check_precision, objectives
from hasten.solvers.rules import whole_row
from hasten.solvers.toulbar2 import running_sums

PACKAGES = {"gurobi": "gurobipy", "toulbar2": "pytoulbar2"}
NAMES = ["brute", "highs", "gurobi", "toulbar2"]  # CP-SAT has a process of its own: test_cpsat.py
thorough = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@pytest.fixture(params=NAMES, scope="module")
def solver(request):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return make_solver(request.param)


def assert_same(found: Solution, expected: naive.Answer) -> None:
    assert found.source is Source.SOLVER
    assert found.n_costs == found.problem.n_variables
    if expected.labels is None:
        assert found.status is Status.INFEASIBLE
        assert (found.cost, found.bound, found.valid) == (math.inf, math.inf, False)
    else:
        assert found.status is Status.SOLVED
        assert found.cost == pytest.approx(expected.cost, rel=1e-6, abs=1e-6)
        assert found.bound == found.cost == found.problem.total(found.labels)
        assert found.valid
        assert naive.valid(found.problem, tuple(found.labels.tolist()))


def labels_problem(*costs: list[float], tables: dict[tuple[int, ...], np.ndarray] | None = None, **rule) -> Problem:
    """Returns a problem of variables of their own kinds, with labels a, b, c, …"""
    schema = Schema()
    kinds = [schema.variable(f"kind{v}", list("abcdefgh"[: len(part)])) for v, part in enumerate(costs)]
    factors = {}
    for scope, table in (tables or {}).items():
        roles = {f"role{v}": kinds[v] for v in scope}
        factors[scope] = schema.factor("f" + "".join(map(str, scope)), **roles).set_table(np.array(table, float))
    shape = schema.structure()
    for kind in kinds:
        shape.add(kind)
    for scope, factor in factors.items():
        shape.connect(factor, **{f"role{v}": v for v in scope})
    if rule:
        shape.rule("rule", [(v, "a", 1.0) for v in range(len(costs))], **rule)
    return shape.problem(costs)


def free_noise(n_variables: int, n_labels: int) -> Problem:
    return labels_problem(*np.random.default_rng(0).normal(size=(n_variables, n_labels)).tolist())


# What they answer


@given(problem=small_problems())
@thorough
def test_equals_enumeration(solver, problem):
    assert_same(solver.solve(problem), naive.solve(problem))


def test_brute_breaks_ties_like_the_naive_enumeration():
    rng = np.random.default_rng(1)
    brute = make_solver("brute")
    n_whole = 0
    for _ in range(300):
        problem = random_problem(rng)
        expected = naive.solve(problem)
        if float(expected.cost).is_integer():
            n_whole += 1
            assert tuple(brute.solve(problem).labels.tolist()) == expected.labels
    assert n_whole > 30


def test_all_agree_on_thousands_of_problems():
    solvers = [make_solver(name) for name in NAMES if available_solvers()[name]]
    rng = np.random.default_rng(2018)
    seen = {Status.SOLVED: 0, Status.INFEASIBLE: 0}
    for p in range(1500):
        size = {"max_variables": 7, "max_factors": 9} if p % 5 == 0 else {}
        problem = random_problem(rng, **size)
        first, *others = [solver.solve(problem) for solver in solvers]
        seen[first.status] += 1
        for other in others:
            assert other.status is first.status
            assert other.cost == pytest.approx(first.cost, rel=1e-6, abs=1e-6)
    assert seen[Status.SOLVED] > 600
    assert seen[Status.INFEASIBLE] > 180


def test_all_agree_on_entities_and_relations():
    solvers = [make_solver(name) for name in NAMES[1:] if available_solvers()[name]]
    rng = np.random.default_rng(4)
    for n_entities, n_problems in ((1, 2), (2, 20), (4, 15), (6, 5)):
        shape = entity_relation(n_entities)
        for _ in range(n_problems):
            problem = shape.problem(rng.normal(size=shape.n_labels))
            costs = [solver.solve(problem).cost for solver in solvers]
            assert costs == pytest.approx([costs[0]] * len(costs), rel=1e-6)


# The corners


def test_no_variables(solver):
    found = solver.solve(Schema().structure().problem([]))
    assert (found.status, found.cost, found.labels.tolist()) == (Status.SOLVED, 0.0, [])


def test_a_rule_that_counts_nothing(solver):
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    other = schema.variable("other", ["a"])
    schema.rule("some", at_least=1, kind="a")
    shape = schema.structure()
    shape.add(other)
    assert solver.solve(shape.problem([[1.0]])).status is Status.INFEASIBLE
    assert solver.solve(schema.structure().problem([])).status is Status.INFEASIBLE
    shape = schema.structure()
    shape.add(kind)
    assert solver.solve(shape.problem([[1.0, 0.0]])).cost == 1.0


def test_forbidden_labels(solver):
    assert solver.solve(labels_problem([math.inf, 2.0, 3.0])).names == ["b"]
    assert solver.solve(labels_problem([0.0, 1.0], [math.inf, math.inf])).status is Status.INFEASIBLE
    assert solver.solve(labels_problem([1.0, 2.0], tables={(0,): [math.inf, 0.0]})).names == ["b"]


def test_a_table_that_allows_nothing(solver):
    for scope, shape in (((0,), (2,)), ((0, 1), (2, 2)), ((0, 1, 2), (2, 2, 2))):
        problem = labels_problem([0, 1], [0, 1], [0, 1], tables={scope: np.full(shape, math.inf)})
        assert solver.solve(problem).status is Status.INFEASIBLE


def test_tables_that_contradict_each_other(solver):
    equal, differ = [[0, math.inf], [math.inf, 0]], [[math.inf, 0], [0, math.inf]]
    tables = {(0, 1): equal, (1, 2): equal, (0, 2): differ}  # the linear program alone does not see this
    assert solver.solve(labels_problem([0, 1], [0, 1], [0, 1], tables=tables)).status is Status.INFEASIBLE


@pytest.mark.parametrize("huge", [1e7, 1e9, 1e15, 1e30])
def test_huge_costs_do_not_drown_small_ones(solver, huge):
    differ = [[math.inf, 0, 0], [0, math.inf, 0], [0, 0, math.inf]]
    problem = labels_problem([0.0, 1e-4, huge], [0.0, 2e-4, huge], tables={(0, 1): differ})
    assert solver.solve(problem).names == ["b", "a"]
    problem = labels_problem([0.0, huge], [0.0, 2 * huge], tables={(0, 1): [[math.inf, 0], [0, 0]]})
    assert solver.solve(problem).names == ["b", "a"]
    assert solver.solve(problem).cost == pytest.approx(huge)


def test_large_costs_of_both_signs(solver):
    assert solver.solve(labels_problem([1e12, 1e12 + 1], [-1e12, -1e12 - 2])).names == ["a", "b"]


def test_rules_hold_within_their_tolerance(solver):
    costs = [[-1.0, 0.0]] * 3
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    for _ in range(3):
        shape.add(kind)
    tenths = [(v, "a", weight) for v, weight in enumerate((0.1, 0.2, 0.3))]
    shape.rule("tenths", tenths, at_most=0.6 - 1e-12)  # 0.1 + 0.2 + 0.3 > 0.6 in floating point
    assert solver.solve(shape.problem(costs)).cost == -3.0


def test_time_limits(solver):
    solver = make_solver(solver.name, time_limit=0)
    problem = free_noise(4, 3)
    found = solver.solve(problem)
    assert (found.status, found.values, found.cost, found.valid) == (Status.NO_TIME, None, math.inf, False)
    solver = make_solver(solver.name, time_limit=60)
    assert solver.solve(problem).status is Status.SOLVED
    with pytest.raises(SolverError, match="number of seconds"):
        make_solver(solver.name, time_limit=-1)


@pytest.mark.parametrize(("name", "seconds"), [("brute", 0.05), ("highs", 0.05), ("gurobi", 0.02)])
def test_running_out_of_time_is_a_status(name, seconds):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    if name == "brute":
        problem = free_noise(12, 4)
    else:
        shape = entity_relation(14)
        problem = shape.problem(np.random.default_rng(3).normal(size=shape.n_labels))
    options = {"max_labellings": 10**9} if name == "brute" else {}
    found = make_solver(name, time_limit=seconds, **options).solve(problem)
    assert found.status in (Status.TIME_LIMIT, Status.NO_TIME)
    assert not found.status.optimal
    assert found.bound <= found.cost
    if found.status is Status.TIME_LIMIT:
        assert found.valid
        assert found.cost == problem.total(found.labels)


# Models


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_a_model_is_built_once_for_each_structure(name):
    if name in PACKAGES:
        pytest.importorskip(PACKAGES[name])
    solver = make_solver(name)
    rng = np.random.default_rng(0)
    first, again = entity_relation(2), entity_relation(3)
    for shape in (first, first, again, first, again):
        solver.solve(shape.problem(rng.normal(size=shape.n_labels)))
    assert solver.n_built == 2


def test_structures_built_alike_share_a_model():
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    solver = make_solver("highs")
    for _ in range(3):
        shape = schema.structure()
        shape.add(kind)
        assert solver.solve(shape.problem([[1.0, 0.0]])).names == ["b"]
    assert solver.n_built == 1


def test_only_the_last_models_are_kept(monkeypatch):
    monkeypatch.setattr("hasten.solvers.base.MAX_MODELS", 2)
    solver = make_solver("highs")
    shapes = [entity_relation(n) for n in (1, 2, 3)]
    for shape in (*shapes, shapes[2], shapes[1], shapes[0]):
        solver.solve(shape.problem(np.zeros(shape.n_labels)))
    assert len(solver._models) == 2
    assert solver.n_built == 4


def test_tables_of_a_problems_own_change_in_place(solver):
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    pair = schema.factor("pair", left=kind, right=kind)
    single = schema.factor("single", only=kind)
    shape = schema.structure()
    left, right = shape.add(kind), shape.add(kind)
    shape.connect(pair, left=left, right=right)
    shape.connect(single, only=left)
    rng = np.random.default_rng(0)
    built = getattr(solver, "n_built", 0)
    for _ in range(40):
        tables = {0: rng.normal(size=(3, 3)), 1: rng.normal(size=3)}
        tables[0][rng.random((3, 3)) < 0.5] = math.inf
        problem = shape.problem(rng.normal(size=6), tables=tables)
        assert_same(solver.solve(problem), naive.solve(problem))
    assert getattr(solver, "n_built", 0) <= built + 1


def test_rules_of_a_problems_own(solver):
    shape = free_noise(3, 2).structure
    costs = [[-1.0, 0.0]] * 3
    rule = Rule.of("two", [(v, "a") for v in range(3)], at_most=2)
    assert solver.solve(shape.problem(costs)).cost == -3
    assert solver.solve(shape.problem(costs, rules=[rule])).cost == -2
    assert solver.solve(shape.problem(costs)).cost == -3


def test_lazy_costs_are_computed(solver):
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape = schema.structure()
    shape.add(kind)
    shape.add(kind)
    problem = shape.problem(lambda problems, variables: np.concatenate([[v, -v] for v in variables]).astype(float))
    found = solver.solve(problem)
    assert (found.cost, found.names[1], found.n_costs) == (-1.0, "b", 2)


def test_two_threads(solver):
    rng = np.random.default_rng(7)
    shapes = [entity_relation(2), entity_relation(1)]
    problems = [shapes[p % 2].problem(rng.normal(size=shapes[p % 2].n_labels)) for p in range(60)]
    alone = [solver.solve(problem).cost for problem in problems]
    with ThreadPoolExecutor(2) as pool:
        together = [found.cost for found in pool.map(solver.solve, problems)]
    assert together == pytest.approx(alone)


# Distrust


class Stubborn(HighsSolver):
    """Lies about the cost, the first `lies` times."""

    def __init__(self, lies: int) -> None:
        super().__init__()
        self.lies = lies

    def _run(self, *given) -> Outcome:
        found = super()._run(*given)
        self.lies -= 1
        return Outcome(found.status, found.labels, found.value + 0.1, found.bound) if self.lies >= 0 else found


def test_a_wrong_answer_is_asked_for_again_with_a_fresh_model():
    solver = Stubborn(lies=1)
    assert solver.solve(free_noise(3, 2)).status is Status.SOLVED
    assert solver.n_built == 2


def test_a_wrong_answer_is_never_returned():
    with pytest.raises(SolverWrong, match="says that its labelling costs"):
        Stubborn(lies=2).solve(free_noise(3, 2))


def test_your_own_function():
    problem = labels_problem([0.0, 1.0], [0.0, 1.0], exactly=1)
    assert make_solver(lambda problem: [0, 1]).solve(problem).cost == 1.0
    assert make_solver(lambda problem: ["b", "a"]).solve(problem).labels.tolist() == [1, 0]
    assert make_solver(lambda problem: Status.INFEASIBLE).solve(problem).status is Status.INFEASIBLE
    assert make_solver(lambda problem: Status.NO_TIME).solve(problem).status is Status.NO_TIME
    with pytest.raises(SolverError, match=r"<lambda> returned None. Return the labels .*INFEASIBLE"):
        make_solver(lambda problem: None).solve(problem)
    assert make_solver(make_solver("brute").solve).solve(problem).cost == 1.0
    with pytest.raises(SolverWrong, match="rule: needs exactly 1, got 2"):
        make_solver(lambda problem: [0, 0]).solve(problem)


def test_your_own_object():
    class Mine:
        name = "mine"

        def __init__(self, **changes) -> None:
            self.changes = changes

        def solve(self, problem: Problem) -> Solution:
            found = make_solver("brute").solve(problem)
            fields = {field: getattr(found, field) for field in Solution.__dataclass_fields__}
            return Solution(**(fields | self.changes))

    problem = labels_problem([0.0, 1.0], [0.0, 1.0], exactly=1)
    mine = make_solver(Mine())
    assert mine.name == "mine"
    assert make_solver(mine) is mine
    assert mine.solve(problem).cost == 1.0
    late = make_solver(Mine(status=Status.TIME_LIMIT, bound=-5.0)).solve(problem)
    assert (late.status, late.bound) == (Status.TIME_LIMIT, -5.0)
    none = make_solver(Mine(status=Status.NO_TIME, values=None, cost=math.inf, bound=0.0)).solve(problem)
    assert (none.status, none.bound) == (Status.NO_TIME, 0.0)
    with pytest.raises(SolverWrong, match="mine says that its labelling costs 0"):
        make_solver(Mine(cost=0.0)).solve(problem)


def test_solve_all_gathers_answers():
    shape = entity_relation(2)
    batch = shape.batch(np.random.default_rng(0).normal(size=(5, shape.n_labels)))
    found = solve_all(make_solver("highs"), batch)
    assert found.cost.tolist() == [make_solver("brute").solve(problem).cost for problem in batch]
    assert len(solve_all(make_solver("highs"), [])) == 0


# What they cannot do


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(SolverError, match=r"no solver 'glpk'.*brute, highs, gurobi, toulbar2, cpsat"):
        make_solver("glpk")
    with pytest.raises(SolverError, match="is not a solver"):
        make_solver(3)
    theirs = type("CBC", (), {"__module__": "pulp.apis", "solve": print})
    with pytest.raises(SolverError, match="CBC solves models of pulp, not problems"):
        make_solver(theirs())
    with pytest.raises(SolverError, match="go with a solver's name"):
        make_solver(lambda problem: None, time_limit=3)
    with pytest.raises(SolverError, match=r"highs has no option foo=1\. It has time_limit, interruptible"):
        make_solver("highs", foo=1)
    with pytest.raises(SolverError, match="number of seconds, or None for no limit; got '3'"):
        make_solver("brute", time_limit="3")


def test_what_make_solver_would_refuse_is_refused_without_an_import(monkeypatch):
    for wrong, error in (("glpk", "no solver 'glpk'"), (3, "3 is not a solver")):
        with pytest.raises(SolverError, match=error):
            check_solver(wrong)
    for fine in ("brute", "highs", lambda problem: None, make_solver("brute")):
        check_solver(fine)
    monkeypatch.setitem(sys.modules, "gurobipy", None)
    with pytest.raises(SolverMissing) as here:
        check_solver("gurobi")
    with pytest.raises(SolverMissing) as there:
        load("gurobi")
    assert str(here.value).endswith("Install it: pip install gurobipy")
    assert str(here.value).split(" (")[0] == str(there.value).split(" (")[0]
    monkeypatch.delitem(sys.modules, "highspy", raising=False)
    check_solver("highs")
    assert "highspy" not in sys.modules


@pytest.mark.parametrize(("name", "package"), [*PACKAGES.items(), ("highs", "highspy")])
def test_a_missing_package_says_what_to_install(monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SolverMissing, match=f"pip install {package}"):
        make_solver(name)


@pytest.mark.parametrize(("name", "own", "enemy"), [("highs", "highspy", "ortools"), ("cpsat", "ortools", "highspy")])
def test_highs_and_cpsat_cannot_share_a_process(monkeypatch, name, own, enemy):
    monkeypatch.delitem(sys.modules, own, raising=False)
    monkeypatch.setitem(sys.modules, enemy, types.ModuleType(enemy))
    with pytest.raises(SolverError, match=rf"cannot share a process with {enemy}.*process of its own"):
        make_solver(name)
    with pytest.raises(SolverError, match="process of its own"):
        load(name)


def test_available_solvers(monkeypatch):
    assert available_solvers()["brute"]
    assert available_solvers()["highs"]
    monkeypatch.setattr("hasten.solvers.find_spec", lambda package: None)
    none = dict.fromkeys(["highs", "gurobi", "toulbar2", "cpsat", "auto"], False)
    assert available_solvers() == none | {"brute": True}
    with pytest.raises(SolverMissing, match="none is installed"):
        make_solver("auto")


def test_brute_refuses_what_would_take_for_ever():
    with pytest.raises(SolverTooSmall, match="limit is 20,000,000"):
        make_solver("brute").solve(free_noise(30, 2))


def test_gurobi_names_the_size_its_licence_allows():
    pytest.importorskip("gurobipy")
    shape = entity_relation(20)
    problem = shape.problem(np.zeros(shape.n_labels))
    with pytest.raises(SolverTooSmall, match=r"2,360 variables and 2,870 rows.*2,000 of each.*highs"):
        make_solver("gurobi").solve(problem)


def test_gurobi_is_quiet(capfd):
    pytest.importorskip("gurobipy")
    make_solver("gurobi").solve(free_noise(2, 2))
    assert capfd.readouterr() == ("", "")


def test_toulbar2_needs_rules_in_whole_numbers():
    pytest.importorskip("pytoulbar2")
    shape = free_noise(2, 2).structure
    rule = Rule.of("odd", [(0, "a", math.pi), (1, "a", math.e)], at_most=3)
    problem = shape.problem([[-1.0, 0.0]] * 2, rules=[rule])
    assert make_solver("highs").solve(problem).names == ["b", "a"]
    with pytest.raises(SolverError, match="small denominators"):
        make_solver("toulbar2").solve(problem)


def test_whole_costs_say_what_precision_is_left():
    fine = labels_problem([0.0, 1 / 3], [0.0, 1 / 7])
    objective = next(objectives(Layout(fine.graph), fine, 1e4))
    whole = objective.rounded()
    assert whole.error <= 2**-40
    assert whole.label / whole.scale == pytest.approx(objective.label, abs=2**-40)
    check_precision("it", whole, objective, 0.0)
    wide = labels_problem([0.0, 1 / 3], [0.0, 1e12 / 3])
    objective = next(objectives(Layout(wide.graph), wide, 1e13))
    with pytest.raises(SolverError, match="an error of up to"):
        check_precision("it", objective.rounded(), objective, 0.0)


# The formulation


def test_argument_constraints_become_aggregated_rows():
    shape = entity_relation(2)
    form = formulate(shape.graph)
    # four variables, three rows for each argument of two relations, one for both directions
    assert (form.n_columns, form.n_rows) == (shape.n_labels, 4 + 2 * 2 * 3 + 1)
    rows = set()
    names = [f"{v}{label}" for v, kind in enumerate(shape.kinds) for label in kind.labels]
    for r in range(form.n_rows):
        cells = slice(form.row_first[r], form.row_first[r + 1])
        weights, columns = form.weight[cells], form.column[cells]
        left = frozenset(names[c] for c, weight in zip(columns, weights, strict=True) if weight > 0)
        right = frozenset(names[c] for c, weight in zip(columns, weights, strict=True) if weight < 0)
        rows.add((left, right))
    assert (frozenset({"2Kill", "2LiveIn", "2WorkFor"}), frozenset({"0person"})) in rows
    assert (frozenset({"2LiveIn", "2LocatedAt", "2OrgBasedIn"}), frozenset({"1location"})) in rows
    real = {"Kill", "LiveIn", "WorkFor", "LocatedAt", "OrgBasedIn"}
    both = frozenset(f"2{name}" for name in real), frozenset({"3NoRel"})
    either = frozenset(f"3{name}" for name in real), frozenset({"2NoRel"})
    assert both in rows or either in rows


def test_hall_rows_are_every_connected_set():
    assert hall_rows(np.array([[1, 0], [0, 1]], dtype=bool), 9) == [((0,), (0,)), ((1,), (1,))]
    assert hall_rows(np.ones((3, 3), dtype=bool), 9) == []
    chain = np.array([[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1]], dtype=bool)
    assert {needed for _, needed in hall_rows(chain, 9)} == {(0, 1), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3)}
    assert hall_rows(chain, 4) is None


def relaxed(shape: Structure, problem: Problem) -> float:
    form = formulate(shape.graph)
    objective = next(objectives(Layout(shape.graph), problem, 1e6))
    cost, allowed = form.columns_of(objective)
    return HighsProgram(form.arrays(whole=False)).run(cost, high=allowed).value


def test_hall_rows_are_as_strong_as_tuple_columns(monkeypatch):
    rng = np.random.default_rng(5)
    problems = [random_problem(rng, soft=False, max_variables=6, max_factors=8) for _ in range(300)]
    problems += [shape.problem(rng.normal(size=shape.n_labels)) for shape in [entity_relation(3)] * 20]
    problems = [problem for problem in problems if problem.n_variables > 8 or naive.solve(problem).labels is not None]
    problems = [problem for problem in problems if problem.n_variables]
    sizes = [formulate(problem.graph).n_columns for problem in problems]
    strong = [relaxed(problem.structure, problem) for problem in problems]
    for form in ("_hall_form", "_clauses"):
        monkeypatch.setattr(f"hasten.solvers.formulation.{form}", lambda *table: None)
    assert sum(sizes) < sum(formulate(problem.graph).n_columns for problem in problems)
    assert strong == pytest.approx([relaxed(problem.structure, problem) for problem in problems], abs=1e-6)


def scattered(rng: np.random.Generator, sizes: tuple[int, ...]) -> Problem:
    """Draws a problem whose tables, of three and four variables, forbid tuples that differ in two slots or more."""
    schema, factors = Schema(), []
    kinds = [schema.variable(f"kind{v}", [f"label{i}" for i in range(size)]) for v, size in enumerate(sizes)]
    for f, arity in enumerate((3, 3, 4)):
        scope = rng.choice(len(sizes), arity, replace=False).tolist()
        table, forbidden = np.zeros([sizes[v] for v in scope]), list[np.ndarray]()
        for labels in rng.permutation(np.argwhere(table == 0.0)):
            if all((labels != other).sum() >= 2 for other in forbidden):
                forbidden.append(labels)
                table[tuple(labels)] = np.inf
        roles = {f"slot{s}": kinds[v] for s, v in enumerate(scope)}
        factors.append((schema.factor(f"factor{f}", **roles).set_table(table), scope))
    shape = schema.structure()
    numbers = [shape.add(kind) for kind in kinds]
    for factor, scope in factors:
        shape.connect(factor, **{f"slot{s}": numbers[v] for s, v in enumerate(scope)})
    return shape.problem(rng.normal(size=shape.n_labels))


def test_clauses_are_as_strong_as_tuple_columns(monkeypatch):
    rng = np.random.default_rng(6)
    problems = [scattered(rng, tuple(rng.integers(2, 4, 5).tolist())) for _ in range(60)]
    assert all(formulate(problem.graph).n_columns == problem.structure.n_labels for problem in problems)
    strong = [relaxed(problem.structure, problem) for problem in problems]
    assert [make_solver("highs").solve(each).cost for each in problems] == pytest.approx(
        [naive.solve(each).cost for each in problems]
    )
    for form in ("_hall_form", "_clauses"):
        monkeypatch.setattr(f"hasten.solvers.formulation.{form}", lambda *table: None)
    assert min(formulate(problem.graph).n_columns - problem.structure.n_labels for problem in problems) > 0
    assert strong == pytest.approx([relaxed(problem.structure, problem) for problem in problems], abs=1e-6)


def test_transitivity_takes_two_clauses_a_triple():
    schema = Schema()
    before = schema.variable("before", ["yes", "no"])
    table = np.zeros((2, 2, 2))
    table[0, 0, 1] = table[1, 1, 0] = np.inf
    transitive = schema.factor("transitive", ab=before, bc=before, ac=before).set_table(table)
    shape = schema.structure()
    ab, bc, ac = (shape.add(before) for _ in range(3))
    shape.connect(transitive, ab=ab, bc=bc, ac=ac)
    form = formulate(shape.graph)
    assert (form.n_columns, form.n_rows) == (6, 3 + 2)


def test_whole_rows():
    assert whole_row(np.array([0.5, 1.5]), -math.inf, 1.25) == ([1, 3], -math.inf, 2.0)
    assert whole_row(np.array([0.1, 0.2]), 0.299999, 0.300001) == ([1, 2], 3.0, 3.0)
    assert whole_row(np.array([0.1, 0.2]), -math.inf, 0.3) is None  # 0.1 + 0.2 is not what 3 tenths are, by a hair
    assert whole_row(np.array([2.0, 4.0]), 3.0, 3.0) == ([1, 2], 2.0, 1.0)  # out of reach
    assert whole_row(np.array([math.pi, 1.0]), 0.0, 3.0) is None
    assert whole_row(np.array([1e-7]), 0.0, 0.0) is None  # its denominator is too large
    assert whole_row(np.array([1e10, 3.0]), 5.0, math.inf) == ([10**10, 3], 5.0, math.inf)


def test_running_sums_keep_only_what_matters():
    assert [n_states for _, n_states in running_sums([[1, 0]] * 40, -math.inf, 3)][-2:] == [2, 1]
    assert max(n_states for _, n_states in running_sums([[1, 0]] * 40, -math.inf, 3)) == 4
    assert len(running_sums([[1, 0]] * 40, -math.inf, 40)) == 1  # it cannot be broken
    assert running_sums([[1, 0]] * 2, 3, 3) == [([[-1, -1]], 1)]  # nor kept
    with pytest.raises(SolverError, match="running sums"):
        running_sums([[0, 2**k] for k in range(30)], 10**8, 10**8)


@pytest.mark.parametrize("name", ["highs", "gurobi", "toulbar2"])
def test_tiny_costs_are_told_apart(name: str) -> None:
    """Solvers have absolute tolerances; ours give them a unit in which costs are not tiny."""
    pytest.importorskip({"highs": "highspy", "gurobi": "gurobipy", "toulbar2": "pytoulbar2"}[name])
    shape, rng = entity_relation(4), np.random.default_rng(0)
    solver = make_solver(name)
    for costs in rng.normal(size=(10, shape.n_labels)):
        ordinary, tiny = solver.solve(shape.problem(costs)), solver.solve(shape.problem(costs * 2.0**-33))
        assert tiny.cost == pytest.approx(ordinary.cost * 2.0**-33, rel=1e-6)
