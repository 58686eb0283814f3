"""Certificates of adopted programs: they state the user's own rows, hold, and agree with enumeration."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import hasten
from hasten import ProblemError, ProgramError, cli
from hasten import certificate as checker
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement


def least(program: Statement) -> float:
    """Returns the least cost by trying everything; inf if there is no answer."""
    return program.sign * random_programs.best(program)


@settings(max_examples=150)
@given(st.integers(0, 10**9))
def test_random_programs_are_certified(seed: int) -> None:
    program = random_programs.make(np.random.default_rng(seed))
    found, truth = Program(program).certificate(), least(program)
    checker.check(found.lines)
    if truth == math.inf:
        assert found.lower == found.upper == math.inf
        return
    slack = 1e-6 * max(1.0, abs(truth))  # of rows that rounding disturbs
    assert abs(found.lower - truth) <= 2 * slack
    assert abs(found.upper - truth) <= slack


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.data())
def test_a_changed_proof_never_shows_too_much(seed: int, data: st.DataObject) -> None:
    program = random_programs.make(np.random.default_rng(seed))
    lines = [json.loads(line) for line in Program(program).certificate().lines]
    at = data.draw(st.integers(next(n for n, line in enumerate(lines) if line[0] == "claim") + 1, len(lines) - 1))
    lines[at] = changed(lines[at], data)
    try:
        lower, *_ = checker.check(map(json.dumps, lines))
    except checker.RefusedError:
        return
    truth = least(program)
    assert lower == checker.INFINITE if truth == math.inf else lower <= checker.exact(truth + 1e-6 * max(1, abs(truth)))


def changed(step: list[Any], data: st.DataObject) -> list[Any]:
    """Returns a step with one of its numbers changed."""
    at = data.draw(st.integers(0, len(step) - 1))
    if isinstance(step[at], list) and step[at]:
        return [*step[:at], changed(step[at], data), *step[at + 1 :]]
    return [*step[:at], data.draw(st.sampled_from([0, 1, 2, -1, 0.5, 1e9, [], [0], "sum"])), *step[at + 1 :]]


def assignment(n: int) -> Statement:
    build, rng = Builder(maximize=True), np.random.default_rng(0)
    x = [[build.column(f"x[{i},{j}]", 0, 1, True, float(rng.integers(50))) for j in range(n)] for i in range(n)]
    for i in range(n):
        build.row(x[i], [1.0] * n, 1, 1)
        build.row([row[i] for row in x], [1.0] * n, high=1)
    return build.statement()


def knapsack(n: int) -> Statement:
    build, rng = Builder(maximize=True, constant=2.5), np.random.default_rng(0)
    x = [build.column(f"x[{i}]", 0, 1, True, float(rng.integers(1, 50))) for i in range(n)]
    for _ in range(2):
        weights = rng.integers(1, 20, n).astype(float)
        build.row(x, weights.tolist(), high=float(weights.sum() // 3))
    return build.statement()


def packing(n: int) -> Statement:
    build, rng = Builder(maximize=True), np.random.default_rng(0)
    x = [build.column(f"x[{i}]", 0, 1, True, float(rng.integers(1, 50))) for i in range(n)]
    for _ in range(n // 2):
        build.row(rng.choice(x, 5, replace=False).tolist(), [1.0] * 5, high=1)
    return build.statement()


def local_polytope(n: int, n_labels: int) -> Statement:
    build, rng = Builder(), np.random.default_rng(0)
    labels = range(n_labels)
    x = [[build.column(f"x[{v},{i}]", 0, 1, True, rng.normal()) for i in labels] for v in range(n)]
    for v in range(n):
        build.row(x[v], [1.0] * n_labels, 1, 1)
    for v in range(n - 1):
        z = [[build.column(f"z[{v},{i},{j}]", 0, 1, True, rng.normal()) for j in labels] for i in labels]
        for i in labels:
            build.row([*z[i], x[v][i]], [*[1.0] * n_labels, -1.0], 0, 0)
            build.row([*(row[i] for row in z), x[v + 1][i]], [*[1.0] * n_labels, -1.0], 0, 0)
    return build.statement()


def indicators(n: int) -> Statement:
    build, rng = Builder(), np.random.default_rng(0)
    x = [build.column(f"x[{i}]", 0, 4, True, -float(rng.integers(1, 9))) for i in range(n)]
    y = [build.column(f"y[{i}]", 0, 1, True, float(rng.integers(5, 20))) for i in range(n)]
    for i in range(n):
        build.indicator([(y[i], 0)], [x[i]], [1.0], -math.inf, 0.0, f"off {i}")
    build.row(x, [1.0] * n, high=2.0 * n)
    return build.statement()


@pytest.mark.parametrize(
    "program",
    [assignment(12), knapsack(20), packing(60), local_polytope(6, 4), indicators(12)],
    ids=["assignment", "knapsack", "packing", "local polytope", "indicators"],
)
def test_programs_that_are_too_large_to_enumerate(program: Statement) -> None:
    adopted = Program(program)
    answer, found = adopted.solve(), adopted.certificate()
    checker.check(found.lines)
    assert found.lower <= program.sign * answer.objective + 1e-9
    assert found.upper - found.lower <= 1e-6 * abs(found.upper)
    stated = [json.loads(line) for line in found.lines]
    assert sum(step[0] == "variable" for step in stated) == program.n_columns + 1  # the constant has one
    assert sum(step[0] == "row" for step in stated) == program.n_rows


def test_what_cannot_be_certified_is_named() -> None:
    build = Builder()
    build.column("amount", 0, 10, False, -1.0)
    build.column("count", 0, math.inf, True, -1.0)
    build.row([0, 1], [1.0, 2.5], high=7.0)
    with pytest.raises(ProgramError, match="'amount' is continuous"):
        Program(build.statement()).certificate()
    build.whole[0] = True
    with pytest.raises(ProgramError, match="'count' has no bounds"):
        Program(build.statement()).certificate()


def test_another_objective_and_a_known_answer() -> None:
    program = Program(knapsack(8))
    objective = np.arange(8.0)
    answer = program.solve(objective=objective)
    found = program.certificate(objective, answer=answer)
    assert (found.lower, found.upper) == (-answer.objective, -answer.objective)


def test_other_answers_are_refused() -> None:
    program, other = Program(knapsack(8)), Program(assignment(3))
    for answer in (other.solve(), 5, "x", np.zeros(8)):
        with pytest.raises(ProgramError, match="The answer must be one"):
            program.certificate(answer=answer)  # type: ignore[arg-type]
    too_much = replace(program.solve(), values_found=np.ones(8))
    with pytest.raises(ProgramError, match="none to this program: the answer breaks row"):
        program.certificate(answer=too_much)
    for junk in (5, "x", hasten.Certifier()(other.problem())):
        with pytest.raises(ProblemError, match="answer"):
            hasten.Certifier().certificate(program.problem(), junk)  # type: ignore[arg-type]


WCSP = "toy 2 2 2 3\n2 2\n2 0 1 0 2\n0 0 3\n1 1 1\n1 0 0 1\n1 2\n"
LP = """Maximize
 obj: 3 x + 2 y + z
Subject To
 c: x + y + z <= 2
 d: 2 x + y <= 2
Bounds
 z <= 3
General
 z
Binary
 x y
End
"""
IMPOSSIBLE = "Minimize\n obj: x\nSubject To\n c: x + y >= 3\nBinary\n x y\nEnd\n"


@pytest.mark.parametrize(
    ("name", "text", "said", "verified"),
    [
        ("a.lp", LP, "4.0 ≤ optimum ≤ 4.0", "verified: -4.0 ≤ optimum ≤ -4.0"),
        ("a.wcsp", WCSP, "0.0 ≤ optimum ≤ 0.0", "verified: 0.0 ≤ optimum ≤ 0.0"),
        ("b.lp", IMPOSSIBLE, "no answer is possible", "verified: no labelling is valid"),
        ("a.uai", "MARKOV\n1\n2\n1\n1 0\n2\n0.25 0.75\n", "≤ optimum ≤", "verified: "),
    ],
)
def test_files_are_solved_and_certified(tmp_path: Path, name: str, text: str, said: str, verified: str) -> None:
    file, proof = tmp_path / name, tmp_path / "out.proof"
    file.write_text(text)
    shown = CliRunner().invoke(cli.app, ["solve", str(file), "--certificate", str(proof)])
    assert shown.exit_code == (3 if text == IMPOSSIBLE else 0)
    assert said in " ".join(shown.output.split())
    command = [sys.executable, "-I", checker.__file__, str(proof)]
    assert subprocess.run(command, capture_output=True, check=True, encoding="utf-8").stdout.startswith(verified)


def test_several_files_have_a_directory_of_proofs(tmp_path: Path) -> None:
    for name, text in (("a.lp", LP), ("b.wcsp", WCSP)):
        (tmp_path / name).write_text(text)
    files = [str(tmp_path / "a.lp"), str(tmp_path / "b.wcsp")]
    shown = CliRunner().invoke(cli.app, ["solve", *files, "--certificate", str(tmp_path / "proofs")])
    assert shown.exit_code == 0
    assert sorted(path.name for path in (tmp_path / "proofs").iterdir()) == ["a.lp.proof", "b.wcsp.proof"]


def test_a_file_that_cannot_be_certified_leaves_the_others_theirs(tmp_path: Path) -> None:
    (tmp_path / "a.lp").write_text("Minimize\n obj: x + y\nSubject To\n c: x + y >= 1.5\nBinary\n y\nEnd\n")
    (tmp_path / "b.lp").write_text(LP)
    files = [str(tmp_path / "a.lp"), str(tmp_path / "b.lp")]
    shown = CliRunner().invoke(cli.app, ["solve", *files, "--certificate", str(tmp_path / "proofs")])
    assert shown.exit_code == 1
    assert "the variable 'x' is continuous" in " ".join(shown.output.split())
    assert [path.name for path in (tmp_path / "proofs").iterdir()] == ["b.lp.proof"]


def test_whoever_answers_the_proof_is_the_certifiers() -> None:
    problem = Program(knapsack(10)).problem()
    best = hasten.Certifier()(problem)
    for answer in (hasten.Certified(), hasten.Search()):
        speedup = hasten.Speedup(problem.structure.schema, answer=answer)
        speedup.fit([problem])
        found = speedup.certificate(problem)
        checker.check(found.lines)
        assert found.lower <= best.cost + 1e-9
        assert found.upper == pytest.approx(speedup.predict(problem).cost)
