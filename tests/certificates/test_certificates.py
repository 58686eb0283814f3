"""Certificates verify, agree with enumeration, and are refused as soon as they claim too much."""

from __future__ import annotations

import ast
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_problem, small_problems

import hasten
from hasten import Certifier, Problem, ProblemError, Schema
from hasten import certificate as checker
from hasten.certificates import Certificate
from hasten.proof.outline import outline

CHECKER = Path(checker.__file__)


@given(small_problems())
def test_a_certificate_brackets_the_optimum(problem: Problem) -> None:
    found, truth = Certifier().certificate(problem), naive.solve(problem)
    lower, *claimed = checker.check(found.lines)
    assert claimed == ["inf" if math.isinf(limit) else limit for limit in (found.lower, found.upper)]
    if truth.labels is None:
        assert found.lower == found.upper == math.inf
        assert lower == checker.INFINITE
        return
    slip = 1e-9 * max(1.0, abs(truth.cost))
    assert checker.exact(found.lower) <= lower
    assert found.lower <= truth.cost + slip
    assert found.upper >= truth.cost - slip
    assert found.upper - found.lower <= 1e-6 * max(1.0, abs(truth.cost))


@given(small_problems(), st.data())
def test_a_changed_certificate_never_shows_too_much(problem: Problem, data: st.DataObject) -> None:
    """Numbers of proving steps are changed at random: what still verifies is still true."""
    lines = list(Certifier().certificate(problem).lines)
    truth = naive.solve(problem)
    claim = next(n for n, line in enumerate(lines) if json.loads(line)[0] == "claim")
    if claim + 1 == len(lines):
        return
    n = data.draw(st.integers(claim + 1, len(lines) - 1))
    lines[n] = json.dumps(changed(json.loads(lines[n]), data))
    try:
        lower, *_ = checker.check(lines)
    except checker.RefusedError:
        return
    least = math.inf if truth.labels is None else truth.cost + 1e-9 * max(1.0, abs(truth.cost))
    assert lower == checker.INFINITE if least == math.inf else lower <= checker.exact(least)


def changed(step: list[Any], data: st.DataObject) -> list[Any]:
    """Returns a step with one of its numbers, or its name, changed."""
    at = data.draw(st.integers(0, len(step) - 1))
    if isinstance(step[at], list) and step[at]:
        return [*step[:at], changed(step[at], data), *step[at + 1 :]]
    other = data.draw(st.sampled_from(["sum", "violated", "inf", 0, 1, 2, -1, 0.5, 1e300, -1e300, None, []]))
    return [*step[:at], other, *step[at + 1 :]]


def test_claims_above_what_steps_show_are_refused() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        found = Certifier().certificate(random_problem(rng))
        if not math.isfinite(found.lower):
            continue
        at = next(n for n, line in enumerate(found.lines) if json.loads(line)[0] == "claim")
        claim = json.loads(found.lines[at])
        for wrong in ([math.nextafter(found.upper, math.inf) + 1e-9, claim[2]], [claim[1], found.upper - 1e-6]):
            lines = [*found.lines[:at], json.dumps(["claim", *wrong, *claim[3:]]), *found.lines[at + 1 :]]
            with pytest.raises(checker.RefusedError, match="claimed"):
                checker.check(lines)


def grid(side: int, n_labels: int, seed: int = 0) -> Problem:
    schema = Schema()
    pixel = schema.variable("pixel", [str(label) for label in range(n_labels)])
    same = schema.factor("same", one=pixel, other=pixel).set_table(1.0 - np.eye(n_labels))
    shape = schema.structure()
    for v in range(side**2):
        shape.add(pixel)
        for other in (v - 1 if v % side else -1, v - side):
            if other >= 0:
                shape.connect(same, one=other, other=v)
    return shape.problem(np.random.default_rng(seed).normal(size=shape.n_labels))


def knapsack(n: int, n_rules: int, seed: int = 0) -> Problem:
    schema, rng = Schema(), np.random.default_rng(seed)
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(item)
    for _ in range(n_rules):
        weights = rng.integers(5, 30, size=n)
        shape.rule("room", [(v, "in", float(w)) for v, w in enumerate(weights)], at_most=float(weights.sum() // 2))
    return shape.problem([[0.0, -float(rng.integers(5, 40))] for _ in range(n)])


@pytest.mark.parametrize("problem", [grid(8, 3), grid(12, 2), knapsack(16, 2)], ids=["labels", "cut", "rules"])
def test_problems_that_are_too_large_to_enumerate(problem: Problem) -> None:
    answer, found = Certifier()(problem), Certifier().certificate(problem)
    assert answer.proved
    assert found.lower <= answer.cost + 1e-9
    assert found.upper - found.lower <= 1e-8 * abs(answer.cost)
    checker.check(found.lines)


def test_an_answer_that_is_not_proved_has_the_bound_that_holds() -> None:
    problem = knapsack(24, 4)
    answer = hasten.BeamSearch(4)(problem)
    assert answer.valid
    assert not answer.proved
    found = Certificate.of(answer, outline)
    assert found.lower <= Certifier(max_nodes=10**6)(problem).cost <= found.upper


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    copied, file = tmp_path / "checker.py", tmp_path / "proof.jsonl"
    copied.write_bytes(CHECKER.read_bytes())
    found = Certifier().certificate(knapsack(8, 1))
    found.save(file)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-I", copied, *arguments]
        return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)

    said = run(file)
    assert (said.returncode, said.stdout) == (0, f"verified: {found.lower!r} ≤ optimum ≤ {found.upper!r}\n")
    file.write_text(file.read_text().replace('"sum"', '"done"', 1))
    assert (run(file).returncode, run(file).stderr[:14]) == (1, "refused: line ")
    assert "Give one file" in run().stderr
    assert "refused" in run(tmp_path / "nowhere").stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no limits of memory")
def test_what_takes_too_much_memory_gets_a_clear_no(tmp_path: Path) -> None:
    import resource

    file, most = tmp_path / "large.proof", 1 << 27
    counts = ['["count", [], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]]'] * 30
    file.write_text("\n".join([*['["variable", 0, 0]'] * 15, '["claim", 0, "inf", null]', *counts, '["sum"]']))
    said = subprocess.run(
        [sys.executable, CHECKER, file],
        capture_output=True,
        encoding="utf-8",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (most, most)),
    )
    assert said.returncode == 1
    assert re.fullmatch(r"refused: line \d+: it takes too much memory\n", said.stderr)


def test_the_checker_imports_the_standard_library_alone_and_is_short() -> None:
    text = CHECKER.read_text()
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import | ast.ImportFrom)]
    names = {alias.name for node in imports if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in imports if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names
    assert len(text.splitlines()) <= 250


PROBLEM = [
    '["variable", 0, 1]',
    '["variable", 2, 0]',
    '["table", [0, 1], [0, 1, 1, 0]]',
    '["row", [[0, 1, 1]], null, 0]',
]
CLAIM = '["claim", 0, 2, [0, 0]]'


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (["{"], "line 1"),
        (["[" * 100_000], "line 1"),
        (["[]"], "line 1"),
        (["NaN"], "line 1"),
        (['["variable", NaN]'], "not a finite number"),
        (['["variable", true]'], "not a finite number"),
        (['["variable"' + 2_000_001 * ",0" + "]"], "has 2000001 labels"),
        ([" " * (1 << 26) + "1"], "line too long"),
        (['["variable", 1' + 2000 * "0" + "]"], "not a finite number"),
        (['["variable", 1' + 5000 * "0" + "]"], "line 1"),
        (['["import", "os"]'], "no such step"),
        (['["__init__"]'], "no such step"),
        (['["sum"]'], "no such step"),
        ([*PROBLEM, '["table", [0, 0], [0, 0, 0, 0]]'], "different variables"),
        ([*PROBLEM, '["table", [], [-5]]'], "different variables"),
        ([*PROBLEM, '["table", [0, 7], [0, 0, 0, 0]]'], "no variable 7"),
        ([*PROBLEM, '["table", [0, 1], [0, 0, 0]]'], "one cost for each"),
        ([*PROBLEM, CLAIM], "ends before"),
        ([*PROBLEM, CLAIM, '["variable", 0, 1]'], "no such step"),
        ([*PROBLEM, CLAIM, '["sum"]', '["sum"]'], "over"),
        ([*PROBLEM, '["claim", 0, 2, [1, 0]]'], "breaks row"),
        ([*PROBLEM, '["claim", 0, 2, [2, 0]]'], "no label 2"),
        ([*PROBLEM, '["claim", 0, 1, [0, 0]]'], "costs more"),
        ([*PROBLEM, '["claim", 0, 2, [0]]'], "1 labels for 2"),
        ([*PROBLEM, '["claim", 0, 2, null]'], "nothing shows"),
        ([*PROBLEM, '["claim", 0, 2, [0, 0], 0.3]'], "multiples"),
        ([*PROBLEM, '["claim", 0, 2, [0, 0], -1]'], "multiples"),
        ([*PROBLEM, CLAIM, '["move", 0, 0, [0]]'], "1 numbers for 2"),
        ([*PROBLEM, CLAIM, '["move", 0, 0, [0, "inf"]]'], "not a finite number"),
        ([*PROBLEM, CLAIM, '["move", -1, 0, [1, 1]]'], "no table"),
        ([*PROBLEM, CLAIM, '["price", 0, 1]'], "no limit on that side"),
        ([*PROBLEM, CLAIM, '["price", 9, 1]'], "no row 9"),
        ([*PROBLEM, '["claim", 1, 2, [0, 0]]', '["count", [0], []]', '["sum"]'], "less than is claimed"),
        ([*PROBLEM, CLAIM, '["split", 0, [[0]]]', '["sum"]'], "do not cover"),
        ([*PROBLEM, CLAIM, '["split", 0, []]'], "do not cover"),
        ([*PROBLEM, CLAIM, '["split", 0, [[0, 1], [1]]]'], "each once"),
        ([*PROBLEM, CLAIM, '["split", 0, [[0], [1], []]]'], "each once"),
        ([*PROBLEM, CLAIM, '["split", 0, [[0], [true]]]'], "no label"),
        (['["variable"]', '["claim", -5, "inf", null]', '["split", 0, []]'], "do not cover"),
        ([*PROBLEM, '["row", [[0, 0, 1]], "inf", null]'], "not a finite number"),
        ([*PROBLEM, '["claim", 0, 2, [true, 0]]'], "no label"),
        ([*PROBLEM, '["claim", 0, "inf", [0, 9]]'], "no label"),
        ([*PROBLEM, CLAIM, '{"sum": 3}'], "no such step"),
        ([*PROBLEM, CLAIM, '["eliminate", "\\r\\u001b[2K"]'], r"no variable '\\r\\x1b"),
        (["[" + ",".join(['"variable"', *["0"] * 3000]) + "]"] * 2 + ['["table", [0, 1], [0]]'], "too large"),
        ([*PROBLEM, CLAIM, '["eliminate", 0]', '["eliminate", 0]'], "gone"),
        ([*PROBLEM, CLAIM, '["eliminate", 0]', '["count", [0], []]'], "gone"),
        (
            [*PROBLEM, '["claim", 1.5, 2, [0, 0]]', '["eliminate", 0]', '["eliminate", 1]', '["sum"]'],
            "less than is claimed",
        ),
        ([], "ends before"),
    ],
)
def test_what_is_wrong_is_refused_with_its_line(lines: list[str], reason: str) -> None:
    with pytest.raises(checker.RefusedError, match=reason):
        checker.check(lines)


def test_a_table_that_would_be_too_large_is_refused() -> None:
    lines = [json.dumps(["variable", *[0] * 200]) for _ in range(4)]
    lines += [json.dumps(["table", [0, v], [0] * 40_000]) for v in (1, 2, 3)]
    with pytest.raises(checker.RefusedError, match="too large"):
        checker.check([*lines, '["claim", 0, 0, [0, 0, 0, 0]]', '["eliminate", 0]'])


def test_rows_whose_sums_round_are_certified() -> None:
    """Weights of 1e10 and limits that floats miss: ranges of rows are kept exactly."""
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    shape, other = schema.structure(), schema.structure()
    for made in (shape, other):
        for _ in range(3):
            made.add(kind)
    heavy = [(0, "b", 5735569564.753474), (1, "b", 9336149512.525026), (2, "b", -3371245375.080064)]
    shape.rule("heavy", heavy, exactly=0.0)
    other.rule("close", [(0, "b", 0.3), (1, "b", 0.1)], at_least=0.400001)
    for problem in (shape.problem([[0.0, -1.0]] * 3), other.problem([[0.0, 1.0]] * 3)):
        answer, found = Certifier()(problem), Certifier().certificate(problem)
        assert answer.proved
        assert found.lower == pytest.approx(answer.cost, abs=1e-6)


def test_a_printed_limit_is_the_claimed_one(tmp_path: Path) -> None:
    """No rounding on the way: 0.1 + 0.2 is less than the double 0.30000000000000004."""
    file = tmp_path / "sum.proof"
    lines = ['["variable",0.1]', '["variable",0.2]', '["claim",0.3,0.30000000000000005,[0,0]]', '["sum"]']
    file.write_text("\n".join(lines))
    assert checker.main(str(file)) == "verified: 0.3 ≤ optimum ≤ 0.30000000000000004"
    file.write_text("\n".join(lines).replace("0.3,", "0.30000000000000004,"))
    with pytest.raises(checker.RefusedError, match="less than is claimed"):
        checker.main(str(file))


def test_costs_beyond_floats_are_refused() -> None:
    schema = Schema()
    kind = schema.variable("kind", ["a"])
    shape = schema.structure()
    shape.add(kind)
    shape.add(kind)
    with pytest.raises(ProblemError, match="too large to certify"):
        Certifier().certificate(shape.problem([[-1.7e308], [-1.7e308]]))


def test_hostile_files_stay_small() -> None:
    """Parts that overlap or are empty would each copy the state."""
    star = [json.dumps(["variable", 0, 0])] * 20 + [json.dumps(["table", [0, v], [0, 0, 0, 0]]) for v in range(1, 20)]
    claim = json.dumps(["claim", 0, 0, [0] * 20])
    for steps in (
        ['["eliminate",0]'],
        [json.dumps(["split", 1, [[0, 1]] * 300])],
        ['["split",0,[[0]' + ",[]" * 2000 + "]]"],
    ):
        with pytest.raises(checker.RefusedError, match=r"too large|each once"):
            checker.check([*star, claim, *steps])
