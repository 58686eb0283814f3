"""A program is used again and again: objectives come and go, and answers are those of the model."""

from __future__ import annotations

import copy
import gc
import math
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest
import random_programs
from typer.testing import CliRunner

import hasten
from hasten.cli import app
from hasten.programs import native
from hasten.programs.answer import Answer
from hasten.programs.native import NativeGurobi, NativeHighs, Said
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement
from hasten.proof.outcome import OPEN, PROVED
from hasten.search.beam import BeamSearch
from hasten.speedup.effort import Effort
from hasten.support.clock import LeftBehindError


def slots(n: int = 5, maximize: bool = False, constant: float = 2.5) -> Statement:
    """Courses in slots, neighbours apart, no more than two in the first slot."""
    build = Builder(name="slots", maximize=maximize, constant=constant)
    for c in range(n):
        for s in range(3):
            build.column(f"x[{c},{s}]", 0, 1, True, float(np.cos(3 * c + s)))
        build.row(range(3 * c, 3 * c + 3), [1.0] * 3, 1, 1, f"one[{c}]")
    for c in range(n - 1):
        for s in range(3):
            build.row([3 * c + s, 3 * c + 3 + s], [1.0, 1.0], -math.inf, 1, f"apart[{c},{s}]")
    build.row(range(0, 3 * n, 3), [1.0] * n, -math.inf, 2, "few")
    return build.statement()


def best(statement: Statement, c: np.ndarray) -> float:
    return random_programs.best(replace(statement, objective=c))


@pytest.fixture(scope="module", params=[False, True], ids=["minimise", "maximise"])
def program(request: pytest.FixtureRequest) -> Program:
    return Program(slots(4, request.param))


@pytest.fixture(scope="module")
def objectives() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(12, 12))


def test_an_answers_cost_is_the_models_objective(program: Program, objectives: np.ndarray) -> None:
    truth = np.array([best(program.statement, c) for c in objectives])
    sign = -1.0 if program.statement.maximize else 1.0
    batch = program.batch(objectives)
    for answers in (hasten.Certifier()(batch), hasten.Speedup(program.schema).predict(batch)):
        assert sign * answers.cost == pytest.approx(truth)
        assert (answers.score if sign < 0 else answers.cost) == pytest.approx(truth)
        for x, c, value in zip(program.values(answers), objectives, truth, strict=True):
            random_programs.check(program.statement, x)
            assert program.statement.value(x, c) == pytest.approx(value)
    for c, value in zip(objectives[:3], truth[:3], strict=True):
        solution = hasten.Certifier()(program.problem(c))
        assert sign * solution.cost == pytest.approx(value)
        assert program.answer(solution, c).objective == pytest.approx(value)
        assert program.answer(solution, c).bound == pytest.approx(value, abs=1e-5)
        assert BeamSearch(width=64, reduce=True)(program.problem(c)).cost == pytest.approx(sign * value)


@pytest.mark.parametrize("solver", ["highs", "gurobi", "brute"])
def test_all_at_once_is_one_by_one(program: Program, objectives: np.ndarray, solver: str) -> None:
    answers = program.solve_all(objectives, solver=solver)
    assert answers.optimal.all()
    for n, c in enumerate(objectives):
        one = program.solve(objective=c, solver=solver)
        assert answers.objective[n] == pytest.approx(one.objective)
        assert answers[n].x.tolist() == one.x.tolist()
        assert answers[n].chosen() == one.chosen()
    assert len(answers[2:5]) == 3


def test_where_nothing_is_proved_the_solver_is_asked_about_the_program_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Effort, "proves", lambda self: False)
    rng = np.random.default_rng(0)
    for n, solver in enumerate(("highs", "gurobi", "brute")):
        program = Program(slots(4 + n))
        clashing = [-1.0, 0.0, 0.0] * (4 + n) + 0.01 * rng.normal(size=(12, 12 + 3 * n))  # looking leaves these open
        answers = program.solve_all(clashing, solver=solver)
        assert answers.objective == pytest.approx([best(program.statement, c) for c in clashing])
        assert not answers.proved.any()
        answer = program.solve(objective=clashing[0], solver=solver)
        assert (answer.status, answer.proved) == (hasten.Status.SOLVED, False)
        assert answer.bound == pytest.approx(answer.objective)


def test_what_a_first_look_proves_is_best_and_what_it_leaves_costs_what_a_batch_says() -> None:
    rng, n_proved = np.random.default_rng(0), 0
    for _ in range(60):
        program = Program(random_programs.make(rng, 7))
        statement = program.statement
        sign = -1.0 if statement.maximize else 1.0
        for c in (statement.objective, rng.normal(size=statement.n_columns)):
            seen, batch = program._solving.costs.look(c, sign), program.batch(c[None])
            cost = batch.cost.copy()
            cost[: batch.structures[0].graph.first[1]] -= sign * statement.constant
            assert seen.cost == pytest.approx(cost)
            if seen.outcome == PROVED:
                n_proved += 1
                random_programs.check(statement, seen.x)
                value = sign * best(statement, c)
                assert sign * statement.value(seen.x, c) == pytest.approx(value)
                assert seen.bound + sign * statement.constant == pytest.approx(value)
            elif seen.outcome == OPEN:
                assert seen.bound + sign * statement.constant <= sign * best(statement, c) + 1e-9
    assert n_proved > 20


def test_a_program_is_copied_with_what_it_looks_by(objectives: np.ndarray) -> None:
    program = Program(slots(4))
    costs, answers = program._solving.costs, [program.solve(objective=c).objective for c in objectives]
    copied = copy.deepcopy(costs)
    del program, costs
    gc.collect()
    for c, value in zip(objectives, answers, strict=True):
        seen = copied.look(c, 1.0)
        assert seen.outcome != PROVED or seen.x @ c + 2.5 == pytest.approx(value)


def test_a_huge_constant_does_not_blur_a_proof() -> None:
    statement = slots(4, constant=1e12)
    answer = Program(statement).solve()
    assert answer.objective - 1e12 == pytest.approx(random_programs.best(statement) - 1e12, abs=1e-3)


@pytest.mark.parametrize("wrong", [[1.0], "words", [math.nan] * 12, [[1.0] * 12], [math.inf] + [0.0] * 11])
def test_an_objective_that_does_not_fit_is_refused(program: Program, wrong: object) -> None:
    with pytest.raises(hasten.ProgramError, match=r"[Oo]bjective"):
        program.problem(wrong)
    with pytest.raises(hasten.ProgramError, match=r"[Oo]bjectives|objective of 'x\S+' in row 0 is (nan|inf)"):
        program.batch([wrong, wrong])


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
@pytest.mark.parametrize("maximize", [False, True])
def test_an_unbounded_objective_is_infinitely_good(solver: str, maximize: bool) -> None:
    build = Builder(maximize=maximize)
    build.column("x", -math.inf, math.inf, True, 1.0)
    program = Program(build.statement())
    for answer in (program.solve(solver=solver), program.solve_all([[1.0]], solver=solver)[0]):
        assert answer.objective == answer.bound == (math.inf if maximize else -math.inf)
        assert "The objective is unbounded. Bound its variables." in repr(answer)
        with pytest.raises(hasten.errors.NoAnswerError, match="unbounded"):
            answer["x"]


def test_products_of_variables_with_many_values_are_refused_with_a_way_out() -> None:
    build = Builder()
    build.column("x", 0.0, 1e5, True, 1.0)
    build.product(0, 0, 1.0)
    with pytest.raises(hasten.ProgramError, match="or solve the model with its own library"):
        Program(build.statement()).solve()


def test_a_time_limit_is_kept_and_told() -> None:
    rng = np.random.default_rng(0)
    build = Builder()
    for _ in range(60):
        build.column("", 0, 1, True, -float(rng.integers(20, 60)))
    for _ in range(12):
        build.row(range(60), rng.integers(10, 60, 60).astype(float), -math.inf, 700)
    answer = Program(build.statement()).solve(time_limit=0.4)
    told = hasten.Status.TIME_LIMIT, hasten.Status.NO_TIME, hasten.Status.SOLVED, hasten.Status.PROVED
    assert answer.status in told
    assert answer.bound <= answer.objective
    with pytest.raises(hasten.ProblemError, match="time_limit"):
        Program(slots(2)).solve(time_limit=-1)


def test_a_solver_that_is_asked_alone_has_all_the_time_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Effort, "proves", lambda self: False)
    monkeypatch.setattr(Effort, "patience", 0.01)
    program, asked = Program(slots(4)), []

    def late(self: NativeHighs, cost: np.ndarray, seconds: float, *more: object) -> Said:
        asked.append(seconds)
        return Said(hasten.Status.NO_TIME)

    monkeypatch.setattr(NativeHighs, "solve", late)
    clashing = [-1.0, 0.0, 0.0] * 4 + 0.01 * np.random.default_rng(0).normal(size=12)
    assert program.solve(objective=clashing, time_limit=5.0).status is hasten.Status.NO_TIME
    assert len(asked) == 1
    assert 4.0 < asked[0] <= 5.0


def test_a_data_frame_says_the_order_of_its_columns(program: Program) -> None:
    pandas = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).normal(size=(4, len(program.columns)))
    frame = pandas.DataFrame(rows[:, ::-1], columns=program.columns[::-1])
    assert np.allclose(program.solve_all(frame).objective, program.solve_all(rows).objective)
    assert np.allclose(program.solve_all(pandas.DataFrame(rows)).objective, program.solve_all(rows).objective)
    with pytest.raises(hasten.ProgramError, match="no variable 'week'"):
        program.solve_all(frame.rename(columns={program.columns[0]: "week"}))


def test_an_answer_is_a_mapping_from_names_to_values(program: Program) -> None:
    answer = program.solve()
    assert list(answer) == list(program.columns)
    assert sum(answer.values()) == 4
    assert answer["x[0,0]"] in (0, 1)
    assert set(answer.chosen()) == {name for name, value in answer.items() if value}
    for wrong in ("y", 3, None):
        with pytest.raises(KeyError, match=f"no variable {wrong!r}"):
            answer[wrong]


@pytest.mark.parametrize("wrong", [np.zeros(12), [0.0] * 12, {"x[0,0]": 1.0}])
def test_an_objective_in_the_models_place_is_refused_with_the_way(program: Program, wrong: object) -> None:
    with pytest.raises(hasten.ProgramError, match=r"not a model\. One objective is solve\(objective=\.\.\.\)"):
        program.solve(wrong)


def test_large_programs_are_recognised_in_seconds() -> None:
    build, n = Builder(), 4000
    for c in range(n):
        for s in range(4):
            build.column(f"x[{c},{s}]", 0, 1, True)
        build.row(range(4 * c, 4 * c + 4), [1.0] * 4, 1, 1)
    for c in range(n - 1):
        for s in range(4):
            build.row([4 * c + s, 4 * c + 4 + s], [1.0, 1.0], -math.inf, 1)
    program = Program(build.statement())
    started = time.process_time()
    assert program.structure.n_variables == n
    assert time.process_time() - started < 8
    assert program.solve().proved


def test_the_command_line_answers_files(tmp_path: Path) -> None:
    (tmp_path / "a.lp").write_text("Maximize\n 2 x + 3 y\nSubject To\n c: x + y <= 1\nBinaries\n x y\nEnd\n")
    (tmp_path / "b.uai").write_text("MARKOV\n1\n2\n1\n1 0\n2\n 0.25 0.75\n")
    run = CliRunner().invoke
    one = run(app, ["solve", str(tmp_path / "a.lp"), "--out", str(tmp_path / "a.sol"), "--describe"])
    assert one.exit_code == 0, one.output
    assert "objective 3, bound 3, gap 0" in one.output
    assert "Proved optimal without the solver." in one.output
    assert hasten.read(tmp_path / "a.lp").describe() in one.output
    assert (tmp_path / "a.sol").read_text() == "# Objective value = 3\nx 0\ny 1\n"
    both = run(app, ["solve", str(tmp_path / "a.lp"), str(tmp_path / "b.uai"), "--out", str(tmp_path / "sols")])
    assert both.exit_code == 0, both.output
    assert sorted(path.name for path in (tmp_path / "sols").iterdir()) == ["a.lp.sol", "b.uai.sol"]
    head, first, second, last = both.stdout.splitlines()
    assert head.split() == ["file", "objective", "bound", "gap", "seconds", "answer"]
    assert first.split()[:4] == [str(tmp_path / "a.lp"), "3", "3", "0"]
    assert float(second.split()[4]) >= 0.0
    assert last == f"Wrote the values to {tmp_path / 'sols'}"
    bad = run(app, ["solve", str(tmp_path / "a.sol")])
    assert isinstance(bad.exception, hasten.ProgramError)


def test_the_command_line_fails_where_time_runs_out_without_an_answer(tmp_path: Path) -> None:
    rng, file = np.random.default_rng(0), tmp_path / "hard.lp"
    rows = [" + ".join(f"{w} x{j}" for j, w in enumerate(rng.integers(10, 60, 60))) for _ in range(12)]
    text = "\n".join(f" {row} = {1000 + r}" for r, row in enumerate(rows))
    names = " ".join(f"x{j}" for j in range(60))
    file.write_text(f"Minimize\n x0\nSubject To\n{text}\nBinaries\n {names}\nEnd\n")
    (tmp_path / "none.lp").write_text("Minimize\n x\nSubject To\n x >= 2\nBinaries\n x\nEnd\n")
    late = CliRunner().invoke(app, ["solve", str(file), "--time-limit", "0.05"])
    assert (late.exit_code, "objective" in late.output) == (1, False), late.output
    both = CliRunner().invoke(app, ["solve", str(tmp_path / "none.lp"), str(file), "--time-limit", "0.05"])
    assert both.exit_code == 1
    infeasible = CliRunner().invoke(app, ["solve", str(tmp_path / "none.lp")])
    assert (infeasible.exit_code, "Infeasible. No labelling" in infeasible.output) == (3, True)


def test_the_command_line_refuses_a_place_for_answers_before_it_solves(tmp_path: Path) -> None:
    text = "Maximize\n x\nSubject To\n c: x <= 1\nBinaries\n x\nEnd\n"
    files = [tmp_path / name / "m.lp" for name in "ab"]
    for file in files:
        file.parent.mkdir()
        file.write_text(text)
    out = tmp_path / "out"
    for arguments, reason in (
        ([*files, "--out", out], f"{files[0]} and {files[1]} would both be written to {out / 'm.lp.sol'}"),
        ([files[0], files[0], "--out", out], "would both be written"),
        ([files[0], "--out", tmp_path], f"{tmp_path} cannot be written: it is a directory. Name a file."),
    ):
        refused = CliRunner().invoke(app, ["solve", *map(str, arguments)])
        assert isinstance(refused.exception, hasten.HastenError)
        assert reason in str(refused.exception)
        assert "objective" not in refused.output
    assert not out.exists()


def test_ctrl_c_gets_through_a_solver_that_is_given_the_program() -> None:
    rng = np.random.default_rng(0)
    build = Builder()
    for _ in range(150):
        build.column("", 0, 1.5, False, -float(rng.integers(20, 60)))
        build.column("", 0, 1, True, -float(rng.integers(20, 60)))
    for _ in range(40):
        build.row(range(300), rng.integers(10, 60, 300).astype(float), -math.inf, 3000)
    program = Program(build.statement())
    assert program.only_solver
    timer = threading.Timer(1.0, lambda: signal.raise_signal(signal.SIGINT))
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012, the timer must not outlive the call
        try:
            timer.start()
            program.solve(time_limit=30)
        finally:
            timer.cancel()
            signal.signal(signal.SIGINT, handler)
    assert time.monotonic() - started < 10


def test_a_look_at_the_solver_costs_few_of_many_problems(monkeypatch: pytest.MonkeyPatch) -> None:
    program, asked, now = Program(slots(4)), [], [0.0]
    solve, certify = NativeHighs.solve, hasten.Certifier.__call__

    def counted(self: NativeHighs, cost: np.ndarray, seconds: float, *more: object) -> object:
        now[0] += 0.02
        asked.append(cost)
        return solve(self, cost, 9.0)

    def timed(self: hasten.Certifier, problems: hasten.Batch | hasten.Problem, *args: object, **more: object) -> object:
        now[0] += 0.004 * (1 if isinstance(problems, hasten.Problem) else len(problems))
        return certify(self, problems, *args, **more)

    monkeypatch.setattr(NativeHighs, "solve", counted)
    monkeypatch.setattr(hasten.Certifier, "__call__", timed)
    monkeypatch.setattr("hasten.programs.solving.clock_for", lambda solver: lambda: now[0])
    answers = program.solve_all(np.random.default_rng(0).normal(size=(3000, 12)))
    assert answers.optimal.all()
    assert 2 <= len(asked) <= 12
    assert now[0] < 1.02 * 3000 * 0.004 + 0.1


def test_a_solver_that_refuses_a_program_is_not_asked_where_proofs_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program(slots(4))

    def refuse(self: NativeGurobi, cost: np.ndarray, seconds: float, *more: object) -> object:
        raise hasten.SolverError("Gurobi is too small for this.")

    monkeypatch.setattr(NativeGurobi, "solve", refuse)
    program._solving.way("gurobi").effort.compared = True  # as if a proof had failed before
    for c in np.random.default_rng(0).normal(size=(9, 12)):
        assert program.solve(objective=c, solver="gurobi").proved
    assert program.solve_all(np.random.default_rng(0).normal(size=(9, 12)), solver="gurobi").proved.all()


def test_an_answer_that_the_file_rules_out_is_no_proof_when_time_ran_out() -> None:
    build = Builder(cutoff=1.0)
    for j in range(2):
        build.column(f"x{j}", 0, 1, True)
    build.table((0, 1), np.full((2, 2), 3.0))
    program = Program(build.statement())
    c = np.zeros(2)
    over = Answer.of(program.statement, c, hasten.Status.TIME_LIMIT, np.zeros(2), 0.0, False, "", "")
    assert (over.status, over.values_found, over.bound) == (hasten.Status.NO_TIME, None, 0.0)
    assert program.solve().status is hasten.Status.INFEASIBLE
    assert "rules out" in program.solve().reason


def test_what_a_first_look_leaves_open_is_proved_together() -> None:
    rng = np.random.default_rng(1)
    for _ in range(12):
        program = Program(random_programs.make(rng, 7))
        matrix = rng.normal(size=(8, program.statement.n_columns))
        for _ in range(2):
            told = Mock()
            answers = program.solve_all(matrix, progress=told)
            assert told.call_args.args == (8, 8)
            assert {of for (_, of), _ in told.call_args_list} == {8}
            for answer, c in zip(answers, matrix, strict=True):
                truth = best(program.statement, c)
                assert answer.objective == pytest.approx(truth)
                assert answer.optimal
                if math.isfinite(truth):
                    random_programs.check(program.statement, answer.x)
                    assert answer.bound == pytest.approx(truth, abs=1e-5)
    assert len(program.solve_all(np.zeros((0, program.statement.n_columns)))) == 0


def test_a_program_without_answers_is_proved_to_have_none_once_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    build = Builder()
    for item in range(6):
        build.column(f"x{item}", 0, 2, True)
    for columns in (range(6), range(5, -1, -1)):
        build.row(columns, np.sqrt(np.arange(2, 8)), 6.5, 6.51)
    program, certifier, rng = Program(build.statement()), hasten.Certifier, np.random.default_rng(0)
    assert not program.recognised.infeasible
    later = Mock(side_effect=certifier.after_looking)
    monkeypatch.setattr(certifier, "after_looking", lambda *args: later(*args))
    for n in range(3):
        answer = program.solve(objective=rng.normal(size=6))
        assert (answer.status, answer.proved, answer.bound) == (hasten.Status.INFEASIBLE, True, math.inf)
        assert later.call_count == n + 1
    answers = program.solve_all(rng.normal(size=(8, 6)))
    assert {answer.status for answer in answers} == {hasten.Status.INFEASIBLE}


def test_a_solver_that_cannot_be_waited_for_leaves_its_best_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def impatient(run: Callable[[], object], *_: object) -> object:
        run()
        raise LeftBehindError

    rng = np.random.default_rng(0)
    weights = rng.integers(1, 100, (20, 30)).astype(float)
    program = hasten.adopt(
        c=-rng.integers(1, 100, 30), integrality=1, bounds=(0, 1), constraints=(weights, -np.inf, weights.sum(1) // 2)
    )
    solver, cost = NativeHighs(program.statement), program.statement.objective
    truth = solver.solve(cost, math.inf)
    monkeypatch.setattr(native, "run_waiting", impatient)
    left = solver.solve(cost, math.inf)
    assert left.status is hasten.Status.TIME_LIMIT
    assert left.x is not None
    assert left.bound <= truth.bound <= cost @ left.x


@pytest.mark.parametrize("magnitude", [1.0, 1e-12, 1e-200, 1e-310])
def test_a_solver_does_not_take_tiny_costs_for_nothing(magnitude: float) -> None:
    rng = np.random.default_rng(0)
    weight, worth = rng.integers(1, 9, 12).astype(float), rng.integers(1, 30, 12).astype(float)
    build = Builder()
    for each in worth:
        build.column(f"x{len(build.columns)}", 0, 1, True, -each * magnitude)
    build.column("late", 0, 1, False, 0.5 * magnitude)  # only a solver takes it
    build.row(range(13), [*weight, -1.0], high=20.0)
    answer = Program(build.statement()).solve(solver="highs", time_limit=30)
    picks = np.array(np.meshgrid(*[[0, 1]] * 12)).reshape(12, -1).T
    room = np.maximum(0.0, picks @ weight - 20.0)
    best = (0.5 * room - picks @ worth)[room <= 1.0].min()
    assert answer.optimal
    assert answer.objective == pytest.approx(best * magnitude, rel=1e-6, abs=0.0)
