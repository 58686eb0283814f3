"""Rules mean the same to every solver, proof, search and check: what exact rational arithmetic says they mean."""

from __future__ import annotations

import math
import subprocess
import sys
from fractions import Fraction
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import exact
import numpy as np
import pytest

from hasten.errors import SolverError, SolverWrong
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers import Solver, make_solver
from hasten.solvers.formulation import formulate
from hasten.solvers.rules import at_least, scaled_row

PACKAGES = {"gurobi": "gurobipy", "toulbar2": "pytoulbar2"}
N_LABELLINGS = 64  # of four variables: two with two labels, two with four


@pytest.fixture(params=["brute", "highs", "gurobi", "toulbar2"], scope="module")
def solver(request):
    if request.param in PACKAGES:
        pytest.importorskip(PACKAGES[request.param])
    return make_solver(request.param)


def four() -> Structure:
    """Four variables, and a table that keeps the first two from being eliminated at once."""
    schema = Schema()
    item, size = schema.variable("item", ["out", "in"]), schema.variable("size", ["none", "small", "large", "huge"])
    schema.factor("both", one=item, other=item).forbid(one="in", other="out")
    shape = schema.structure()
    one, other = shape.add(item), shape.add(item)
    shape.connect(schema.factors["both"], one=one, other=other)
    shape.add(size), shape.add(size)
    return shape


def random_rule(rng: np.random.Generator) -> Problem:
    """A problem with a rule of large or small weights, whole or not, whose limits are often hit exactly."""
    shape = four()
    largest = 10.0 ** rng.uniform(0, 10)
    terms = []
    for v, kind in enumerate(shape.kinds):
        for label in kind.labels:
            weight = rng.uniform(-largest / 4, largest)
            weight = float(np.rint(weight)) if rng.random() < 0.6 else weight
            if rng.random() < 0.2:
                weight = float(rng.integers(1, 5))
            if rng.random() < 0.7:
                terms.append((v, label, weight))
    terms = terms or [(0, "in", largest)]
    if rng.random() < 0.4:
        terms = [(v, label, float(np.rint(weight))) for v, label, weight in terms]
    chosen = [kind.labels[rng.integers(len(kind.labels))] for kind in shape.kinds]
    hit = math.fsum(weight for v, label, weight in terms if chosen[v] == label)
    hit += float(rng.choice([0.0, 0.0, 1.0, -1.0, 0.5]))
    limits = [{"at_most": hit}, {"at_least": hit}, {"exactly": hit}, {"at_least": min(hit, 3.0), "at_most": abs(hit)}]
    shape.rule("budget", terms, **limits[rng.integers(4)])
    return shape.problem(rng.normal(size=shape.n_labels))


def check(problem: Problem, asked: Solver) -> bool:
    """Compares a solver with exact arithmetic; false if it says that it cannot do such weights."""
    best = exact.optimum(problem)
    try:
        found = asked.solve(problem)
    except SolverError as error:
        if "small denominators" in str(error):
            return False
        raise
    if best == math.inf:
        assert found.values is None
    else:
        assert found.cost == pytest.approx(float(best), rel=1e-6, abs=1e-6)
        assert problem.check(found.labels).valid
    return True


def test_solvers_agree_with_exact_arithmetic(solver):
    rng = np.random.default_rng(0)
    assert sum(check(random_rule(rng), solver) for _ in range(150)) > (50 if solver.name == "toulbar2" else 149)


def test_checks_proofs_and_searches_agree_with_exact_arithmetic():
    rng = np.random.default_rng(1)
    n_infeasible = 0
    for _ in range(150):
        problem = random_rule(rng)
        holds = np.ones((2, 2, 4, 4), dtype=bool)
        for row in exact.naive.rows_of(problem):
            holds &= exact.row_holds(row, holds.shape)
        holds[1, 0] = False  # the table
        for labels in product(range(2), range(2), range(4), range(4)):
            assert problem.check(np.array(labels)).valid == holds[labels]
        best = float(exact.optimum(problem))
        n_infeasible += best == math.inf
        for found in (
            Certifier()(problem),
            Certifier(max_join=0)(problem),
            BeamSearch(N_LABELLINGS)(problem),
            BeamSearch(N_LABELLINGS, look_ahead=True)(problem),
            BeamSearch(N_LABELLINGS, reduce=True)(problem),
        ):
            assert found.cost == pytest.approx(best, rel=1e-6, abs=1e-6)
            assert found.valid == (best < math.inf)
    assert 5 < n_infeasible < 75


def budget(weight: float, limit: float) -> Problem:
    """Two items that one would both like to have."""
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    schema.rule("budget", at_most=limit, item={"in": weight})
    shape = schema.structure()
    shape.add(item), shape.add(item)
    return shape.problem([[0.0, -1.0], [0.0, -2.0]])


@pytest.mark.parametrize(
    ("weight", "limit", "both"), [(2_500_001, 5_000_000, False), (2_500_000, 5_000_000, True), (1e10, 2e10 - 1, False)]
)
def test_a_budget_is_not_overdrawn_by_one(solver, weight, limit, both):
    problem = budget(weight, limit)
    cost = -3.0 if both else -2.0
    assert problem.check(np.array([1, 1])).valid == both
    assert solver.solve(problem).cost == cost
    assert Certifier()(problem).cost == cost
    assert BeamSearch(4)(problem).cost == cost


def test_weights_far_above_the_limit_are_not_rounded_away(solver):
    """A relaxation needs only 3e-7 of either; rounded, that is nothing at all."""
    shape = four()
    shape.rule("some", [(0, "in", 8682283), (2, "huge", 6664539)], at_least=3)
    costs = np.zeros(shape.n_labels)
    costs[[1, 3, 7]] = 1.0
    problem = shape.problem(costs)
    found = solver.solve(problem)
    assert found.cost == 1.0
    assert problem.check(found.labels).valid


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_what_tolerances_let_through_is_cut_off(name):
    """Weights without a common measure, one beside which the others are within any tolerance."""
    pytest.importorskip({"highs": "highspy", "gurobi": "gurobipy"}[name])
    asked, rng = make_solver(name), np.random.default_rng(2)
    for _ in range(60):
        shape = four()
        sizes = {label: float(rng.uniform(1e9, 1e10)) for label in ("small", "large", "huge")}
        terms = [(v, label, weight) for v in (2, 3) for label, weight in sizes.items()]
        hit = sizes[rng.choice(list(sizes))] + sizes[rng.choice(list(sizes))]
        shape.rule("budget", [*terms, (0, "in", 2e4), (1, "in", -2e4)], at_most=hit, at_least=3.0)
        assert check(shape.problem(rng.normal(size=shape.n_labels)), asked)


def test_cp_sat_agrees_with_exact_arithmetic():
    """In a process of its own, for it cannot share one with HiGHS."""
    if find_spec("ortools") is None:
        pytest.skip("no ortools")
    script = (
        f"import sys; sys.path[:0] = [{str(Path(__file__).parent)!r}, {str(Path(__file__).parents[1])!r}]; "
        "import numpy as np, test_rules as rules; "
        "from hasten.solvers import make_solver; solver = make_solver('cpsat'); rng = np.random.default_rng(0); "
        "done = sum(rules.check(rules.random_rule(rng), solver) for _ in range(60)); "
        "assert done > 20, done; assert solver.solve(rules.budget(2_500_001, 5_000_000)).cost == -2"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_rows_are_cut_down_to_what_they_need():
    def groups(*weights: int) -> list[dict[int, Fraction]]:
        return [{2 * v: Fraction(0), 2 * v + 1: Fraction(weight)} for v, weight in enumerate(weights)]

    assert list(at_least(groups(8682283, 6664539), Fraction(3))) == [([1, 3], [1.0, 1.0], 1.0, math.inf)]
    assert list(at_least(groups(10, 20), Fraction(-1))) == []
    assert list(at_least(groups(10, 20), Fraction(31))) == [([], [], 1.0, 0.0)]
    assert list(at_least(groups(-10, 20), Fraction(5))) == [([0, 3], [2.0, 3.0], 3.0, math.inf)]


def test_large_rows_are_scaled_and_small_ones_left_alone():
    weights, low, high = scaled_row(np.array([2.0**30, 1.0]), 5.0, math.inf)
    assert weights.tolist() == [2.0**20, 2.0**-10]
    assert (low, high) == (4.5 * 2.0**-10, math.inf)
    weights, low, high = scaled_row(np.array([3.0, 1.0]), 2.0, 3.0)
    assert (weights.tolist(), low, high) == ([3.0, 1.0], 2.0, 3.0)
    form = formulate(budget(1.0, 1.0).graph)
    assert (form.scaled().weight == form.weight).all()


@pytest.mark.parametrize("name", ["highs", "gurobi"])
def test_a_broken_rule_is_cut_off_and_stays_so(name, monkeypatch):
    """A solver that was never told of the rule, as if it held within its tolerance."""
    pytest.importorskip({"highs": "highspy", "gurobi": "gurobipy"}[name])
    monkeypatch.setattr("hasten.solvers.formulation.rule_rows", lambda graph, r: iter(()))
    asked, problem = make_solver(name), budget(3.0, 5.0)
    assert asked.solve(problem).cost == -2.0
    assert asked.n_built == 2
    assert asked.solve(problem).cost == -2.0
    assert asked.n_built == 2  # what was cut off once is so for good
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    schema.rule("one", exactly=1, item={"in": 1})
    shape = schema.structure()
    for _ in range(8):
        shape.add(item)
    with pytest.raises(SolverWrong, match="returned a labelling that breaks a constraint: one"):
        asked.solve(shape.problem([[0.0, -1.0]] * 8))  # too many to cut off one by one
