"""Every host's solver gives the optimum that trying everything gives, in the host's own words."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import random_programs
from front_ends import as_arrays, as_linopy, as_pulp, as_pyomo
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten.errors import MissingExtra, SolverError
from hasten.hosts.asking import Asking, Outcome, missing, outcome, relative_gap
from hasten.programs import solving
from hasten.programs.answer import UNBOUNDED
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement
from hasten.solvers.portfolio import Race
from hasten.speedup.effort import AIDED, ALONE
from hasten.support.threads import Cache

pytestmark = pytest.mark.filterwarnings("ignore")  # hosts warn about their own futures
Asked = Callable[[Statement], tuple[bool, float]]  # whether it is optimal, and its objective; nan if it is infeasible


def by_pulp(program: Statement) -> tuple[bool, float]:
    import pulp

    model = as_pulp(program)
    status = model.solve(hasten.pulp.HASTEN(msg=False))
    if status == pulp.LpStatusInfeasible:
        return True, math.nan
    for row in model.constraints.values():
        assert row.slack >= -1e-6
    return model.sol_status == pulp.LpSolutionOptimal, float(pulp.value(model.objective))


def by_pyomo(program: Statement) -> tuple[bool, float]:
    import pyomo.environ as pyo

    assert hasten.pyomo  # registers it
    model = as_pyomo(program)
    found = pyo.SolverFactory("hasten").solve(model, load_solutions=False)
    if found.solver.termination_condition == pyo.TerminationCondition.infeasible:
        return True, math.nan
    model.solutions.load_from(found)
    objective = next(model.component_data_objects(pyo.Objective))
    return found.solver.termination_condition == pyo.TerminationCondition.optimal, float(pyo.value(objective))


def by_linopy(program: Statement) -> tuple[bool, float]:
    assert hasten.linopy  # registers it
    model = as_linopy(program)
    _, condition = model.solve("hasten", log_to_console=False)
    if condition == "infeasible":
        return True, math.nan
    return condition == "optimal", float(model.objective.value) + program.constant


def by_milp(program: Statement) -> tuple[bool, float]:
    found = hasten.milp(**as_arrays(program))
    if found.status == 2:
        assert found.x is None
        return True, math.nan
    assert found.mip_gap <= 1e-5
    return found.success, program.sign * found.fun + program.constant


def by_cvxpy(program: Statement) -> tuple[bool, float]:
    cvxpy = pytest.importorskip("cvxpy")
    arrays = as_arrays(program)
    x = cvxpy.Variable(program.n_columns, integer=True)
    rows = [x >= program.low, x <= program.high]
    matrix, low, high = arrays["constraints"].A, program.row_low, program.row_high
    for r in range(program.n_rows):
        rows += [matrix[r] @ x >= low[r]] if low[r] > -math.inf else []
        rows += [matrix[r] @ x <= high[r]] if high[r] < math.inf else []
    sense = cvxpy.Maximize if program.maximize else cvxpy.Minimize
    problem = cvxpy.Problem(sense(program.objective @ x + program.constant), rows)
    problem.solve(solver=hasten.cvxpy.HASTEN())
    return problem.status in ("optimal", "infeasible"), math.nan if problem.status == "infeasible" else problem.value


HOSTS: dict[str, Asked] = {
    "pulp": by_pulp,
    "pyomo": by_pyomo,
    "linopy": by_linopy,
    "scipy": by_milp,
    "cvxpy": by_cvxpy,
}


@pytest.mark.parametrize("host", HOSTS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_a_host_gets_the_optimum(host: str, seed: int) -> None:
    program = random_programs.make(np.random.default_rng(seed), 6, products=False)
    best = random_programs.best(program)
    optimal, value = HOSTS[host](program)
    assert optimal
    assert value == pytest.approx(best, abs=1e-6) if math.isfinite(best) else math.isnan(value)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_many_objectives_in_a_matrix_are_one_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    program = random_programs.make(rng, 6, products=False)
    arrays = as_arrays(program)
    matrix = rng.normal(size=(5, program.n_columns)).round(2)
    found = hasten.milp(**arrays | {"c": matrix})
    for c, x, value, status in zip(matrix, found.x, found.fun, found.status, strict=True):
        best = random_programs.best(replace(program, objective=c, maximize=False, constant=0.0))
        if math.isfinite(best):
            assert (value, status) == (pytest.approx(best, abs=1e-6), 0)
            assert c @ x == pytest.approx(best, abs=1e-6)
        else:
            assert (math.isnan(value), status) == (True, 2)


def stated(n: int = 6, maximize: bool = False, name: str = "x") -> Statement:
    """Returns a program that takes half of some columns at least."""
    build = Builder(maximize=maximize)
    for j in range(n):
        build.column(f"{name}{j}", 0, 1, True, float(j % 4 + 1))
    build.row(range(n), [1.0] * n, low=n / 2)
    return build.statement()


def test_the_same_rows_are_adopted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Statement] = []
    monkeypatch.setattr(solving, "KNOWN", Cache[bytes, solving.Solving](10**6))
    real = solving.recognise
    monkeypatch.setattr(solving, "recognise", lambda statement: (made.append(statement), real(statement))[1])
    first, other = stated(), replace(stated(), objective=np.arange(6.0), constant=2.0)
    assert Asking().one(first).objective == 1 + 1 + 2
    assert Asking().one(other).objective == 0 + 1 + 2 + 2
    assert len(made) == 1
    assert Asking().one(replace(first, row_low=np.array([6.0]))).objective == first.objective.sum()
    assert len(made) == 2
    assert Asking().one(first).objective == 4  # and the first is still known
    assert len(made) == 2


def test_a_digest_is_of_everything_but_the_objective() -> None:
    one = stated()
    assert one.digest() == replace(one, objective=np.zeros(6), constant=1.0, maximize=True).digest()
    changed = [
        replace(one, high=np.array([1.0, 1, 1, 1, 1, 0])),
        replace(one, low=np.array([1.0, 0, 0, 0, 0, 0])),
        replace(one, whole=np.array([True] * 5 + [False])),
        replace(one, row_low=np.array([2.0])),
        replace(one, row_high=np.array([5.0])),
        replace(one, row_weight=np.array([1.0] * 5 + [2.0])),
        stated(name="y"),
    ]
    assert len({each.digest() for each in [one, *changed]}) == len(changed) + 1


def test_threads_that_ask_about_one_program_do_not_share_it() -> None:
    rng, found = np.random.default_rng(0), {}
    objectives = rng.normal(size=(40, 6))

    def work(k: int) -> None:
        found[k] = Asking().one(replace(stated(), objective=objectives[k])).objective

    threads = [threading.Thread(target=work, args=(k,)) for k in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(40):
        assert found[k] == pytest.approx(random_programs.best(replace(stated(), objective=objectives[k])))


def hard(n: int = 60, seed: int = 0) -> Statement:
    """Returns a market split program, which nobody solves in a moment, with slack so that an answer is at hand."""
    rng = np.random.default_rng(seed)
    build = Builder()
    for j in range(n):
        build.column(f"x{j}", 0, 1, True, 0.0)
    for r in range(6):
        weights = rng.integers(1, 100, n).astype(float)
        over, under = (build.column(f"{s}{r}", 0, 5000, True, 1.0) for s in ("over", "under"))
        half = float(weights.sum() // 2)
        build.row([*range(n), over, under], [*weights, 1.0, -1.0], half, half)
    return build.statement()


def test_out_of_time_the_start_is_kept_if_nothing_better_was_found() -> None:
    program = hard()
    start = np.zeros(program.n_columns)
    half = program.row_low
    start[60::2] = half  # everything is short
    answer = Asking(time_limit=1e-3, start=start).one(program)
    assert outcome(answer) is Outcome.FEASIBLE
    assert answer.objective <= half.sum()
    random_programs.check(program, answer.x)
    assert 0 < relative_gap(answer) <= 1
    broken = start.copy()
    broken[60] += 1
    answer = Asking(time_limit=1e-3, start=broken).one(program)
    assert outcome(answer) in (Outcome.FEASIBLE, Outcome.NOTHING)
    if answer.values_found is not None:
        random_programs.check(program, answer.x)


def test_a_gap_that_is_allowed_ends_the_search_and_is_said() -> None:
    rng, build = np.random.default_rng(0), Builder()
    for j in range(80):
        build.column(f"x{j}", 0, 1, True, float(rng.uniform(1, 2)))
    build.column("late", 0, 1, False, 0.3)  # leaves it to HiGHS
    for _ in range(60):
        build.row([*rng.choice(80, 6, replace=False).tolist(), 80], [1.0] * 6 + [0.5], low=1.25)
    answer = Asking(gap=0.5).one(build.statement())
    assert outcome(answer) is Outcome.OPTIMAL
    assert not answer.proved
    assert relative_gap(answer) <= 0.5
    assert "continuous" in answer.how
    exact = Asking(gap=0.0).one(build.statement())
    assert (exact.optimal, relative_gap(exact)) == (True, 0)
    assert answer.bound - 1e-6 <= exact.objective <= answer.objective + 1e-6


def test_unbounded_infeasible_and_failed_are_told_apart() -> None:
    build = Builder()
    build.column("n", -math.inf, math.inf, True, 1.0)
    answer = Asking().one(build.statement())
    assert (outcome(answer), answer.reason) == (Outcome.UNBOUNDED, UNBOUNDED)
    assert outcome(Asking().one(replace(stated(), row_low=np.array([7.0])))) is Outcome.INFEASIBLE
    answer = Asking().one(stated())
    assert outcome(replace(answer, status=hasten.Status.FAILED, values_found=None, reason="why")) is Outcome.FAILED
    assert outcome(replace(answer, status=hasten.Status.NO_TIME, values_found=None)) is Outcome.NOTHING


def test_misuse_is_refused() -> None:
    with pytest.raises(SolverError, match="gap must be a number of at least 0, not -1"):
        Asking(gap=-1)
    with pytest.raises(SolverError, match=r"hasten.pulp has no option 'presolve'. It takes mip, msg, timeLimit"):
        hasten.pulp.HASTEN(presolve=True)
    with pytest.raises(SolverError, match="no option 'max_iter'"):
        hasten.milp([1.0], integrality=1, options={"max_iter": 3})
    assert isinstance(missing("pulp", ImportError("no")), MissingExtra)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = hasten.nonsense


def test_messages_say_what_was_recognised_and_found(capsys: pytest.CaptureFixture[str]) -> None:
    Asking(say=print).one(stated(8))
    Asking(say=print).one(stated(8))
    Asking(say=print).all(stated(8), np.ones((3, 8)))
    build = Builder()
    build.column("free", 0, 1.5, False, -1.0)
    build.column("n", 0, 5, True, -1.0)
    build.row([0, 1], [1.0, 1.0], high=3.2)
    Asking(say=print).one(build.statement())
    said = capsys.readouterr().out
    assert "8 variables, 1 row; recognised" in said
    assert "known already" in said
    assert "gap 0.00%" in said
    assert "3 of 3 objectives proved" in said
    assert "is continuous. It is handed to HiGHS" in said


def test_programs_that_highs_answers_faster_are_handed_over(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    statement, race = stated(7), Race((AIDED, ALONE))
    race.took(AIDED, 30.0)
    race.took(ALONE, 1e-3)
    monkeypatch.setattr(solving.Solving, "first_time", lambda *_: race)
    exact = Asking(say=print).one(statement)
    assert (exact.optimal, exact.proved) == (True, False)
    assert "HiGHS answers programs like this one faster: it was asked alone." in capsys.readouterr().out
    assert exact.objective == pytest.approx(Program(statement).solve().objective)
