"""Clauses, formulas, parities and their files mean what trying everything says they mean."""

from __future__ import annotations

import gzip
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten.errors import ProgramError
from hasten.model.formulas import read_formula
from hasten.programs import diagrams, requirements
from hasten.programs.requirements import Requirements

LABELS = ["a", "b", "c", "d", "e", "f"]
LITERALS = st.tuples(st.sampled_from(LABELS), st.booleans())
NUMBERS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-1e12, 1e12, allow_nan=False),
    st.sampled_from([0.0, 1e-9, 5e-324, 1e12 + 0.5, -1e12]),
)


def formulas() -> Any:
    names = st.sampled_from(LABELS)
    return st.recursive(
        names,
        lambda inner: st.one_of(
            inner.map(lambda one: f"not ({one})"),
            st.tuples(inner, st.sampled_from(["and", "or", "->", "<->", "&", "|"]), inner).map(
                lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
            ),
        ),
        max_leaves=6,
    )


def truth(formula: str, values: dict[str, bool]) -> bool:
    """Evaluates a formula that a test made, in Python's own words."""
    said = formula.replace("<->", "==").replace("->", "<=").replace("&", "and").replace("|", "or")
    return bool(eval(said, {"__builtins__": {}}, values))  # (x) <= (y) is an implication of truth values


@settings(max_examples=150, deadline=None)
@given(formulas())
def test_a_formula_means_its_clauses(formula: str) -> None:
    clauses = read_formula(formula, {label: n for n, label in enumerate(LABELS, start=1)})
    for point in product((False, True), repeat=len(LABELS)):
        values = dict(zip(LABELS, point, strict=True))
        kept = all(any((each > 0) == point[abs(each) - 1] for each in clause) for clause in clauses)
        assert kept == truth(formula, values)


@st.composite
def cases(draw: Any) -> tuple[Requirements, list[Any], list[tuple[list[str], bool]]]:
    rules = Requirements(LABELS)
    clauses = draw(st.lists(st.lists(LITERALS, max_size=4), max_size=6))
    parities = draw(st.lists(st.tuples(st.lists(st.sampled_from(LABELS), unique=True), st.booleans()), max_size=3))
    for clause in clauses:
        rules.clause([label if holds else f"-{label}" for label, holds in clause])
    for labels, odd in parities:
        rules.parity(labels, odd)
    return rules, clauses, parities


def valid(clauses: Any, parities: Any) -> list[tuple[int, ...]]:
    found = []
    for point in product((0, 1), repeat=len(LABELS)):
        at = dict(zip(LABELS, point, strict=True))
        if all(any(at[label] == holds for label, holds in clause) for clause in clauses) and all(
            sum(at[label] for label in labels) % 2 == odd for labels, odd in parities
        ):
            found.append(point)
    return found


@settings(max_examples=120, deadline=None)
@given(cases(), st.lists(st.lists(NUMBERS, min_size=6, max_size=6), min_size=1, max_size=4), st.data())
def test_the_nearest_labelling_is_the_best_of_all(case: Any, scores: Any, data: Any) -> None:
    rules, clauses, parities = case
    known = data.draw(st.dictionaries(st.sampled_from(LABELS), st.integers(0, 1), max_size=2))
    points = [p for p in valid(clauses, parities) if all(p[LABELS.index(k)] == v for k, v in known.items())]
    found = rules.nearest(scores, given=known)
    for row, (score, holds, bound) in enumerate(zip(found.score, found.holds, found.bound, strict=True)):
        if not points:
            assert math.isnan(score)
            assert not holds.any()
            assert found.proved[row]
            continue
        best = max(math.fsum(s for s, y in zip(scores[row], p, strict=True) if y) for p in points)
        size = math.fsum(map(abs, scores[row]))
        assert tuple(holds.astype(int)) in points
        assert score == pytest.approx(best, rel=1e-6, abs=max(1e-300, 1e-12 * size))
        assert bound >= best - 1e-12 * size
        assert found.proved[row] or 1e-14 * size > 1e-6 * max(abs(best), min(1.0, size))  # which rounding may hide
        assert found[row] == [label for label, y in zip(LABELS, holds, strict=True) if y]


@settings(max_examples=25, deadline=None)
@given(cases(), st.integers(0, 10**6))
def test_without_a_diagram_the_program_gives_the_same(case: Any, seed: int) -> None:
    rules, _, _ = case
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(3, 6)).round(2)
    known = {"a": rng.integers(0, 2, 3)} if rng.random() < 0.5 else {}
    by_diagram = rules.nearest(scores, given=known)
    rules.__dict__["diagram"] = None
    by_program = rules.nearest(scores, given=known)
    assert by_program.score == pytest.approx(by_diagram.score, nan_ok=True)
    assert by_program.proved.all()


def test_a_diagram_that_would_be_too_large_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagrams, "MAX_NODES", 10)
    rules = Requirements([f"x{j}" for j in range(12)])
    for j in range(6):
        rules.clause([f"-x{j}", f"-x{j + 6}"])
    assert rules.diagram is None
    found = rules.nearest(np.ones((2, 12)))
    assert found.score.tolist() == [6.0, 6.0]
    assert found.proved.all()


def test_a_diagram_is_made_anew_after_another_requirement() -> None:
    rules = Requirements(["a", "b"])
    assert rules.nearest([1, 1]).score.tolist() == [2]
    rules.one_of(["a", "b"])
    assert rules.nearest([1, 1]).score.tolist() == [1]
    rules.parity(["a", "b"])
    assert np.isnan(rules.nearest([1, 1]).score).all()


def test_many_rows_are_answered_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requirements, "AT_ONCE", 7)
    rules = Requirements(LABELS)
    rules.clause("a -> (b and not c)")
    scores = np.random.default_rng(0).normal(size=(30, 6))
    found = rules.nearest(scores)
    assert found.score.tolist() == [rules.nearest(row).score[0] for row in scores]
    assert len(rules.nearest(np.zeros((0, 6)))) == 0


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ("a and", "A label should stand before the end"),
        ("(a", "A bracket is not closed"),
        ("a b", "'b' is not expected"),
        ("a -> z", "There is no label 'z'"),
        ("a = b", "There is no label '='|'=' is not expected"),
        ("__import__('os')", "There is no label '__import__'|not expected"),
        ("", "A label should stand before the end"),
        ("(" * 300 + "a" + ")" * 300, "nested more than 50 deep"),
        (" or ".join(f"(a{j} and b{j})" for j in range(14)), "more than 4,096 clauses"),
        (["z"], "There is no label 'z'"),
        ([3], "There is no label 3"),
    ],
)
def test_misuse_is_refused(said: Any, why: str) -> None:
    rules = Requirements([*LABELS, *(f"{x}{j}" for x in "ab" for j in range(14))])
    with pytest.raises(ProgramError, match=why):
        rules.clause(said)


def test_labels_scores_and_what_is_given_are_checked() -> None:
    for labels, why in (
        ([], "got none"),
        (["a", "a"], "'a' comes twice"),
        (["a", 3], "3 is none"),
        (["a", ""], "is none"),
    ):
        with pytest.raises(ProgramError, match=why):
            Requirements(labels)
    rules = Requirements(["a", "b"])
    with pytest.raises(ProgramError, match=r"shape \(1, 3\); this needs \(rows, 2\)"):
        rules.nearest([1, 2, 3])
    with pytest.raises(ProgramError, match="'b' in row 0 is inf"):
        rules.nearest([1, math.inf])
    with pytest.raises(ProgramError, match="for 'a' is 0 or 1, for each of 1 rows"):
        rules.nearest([1, 2], given={"a": 0.5})
    with pytest.raises(ProgramError, match="names each label once"):
        rules.parity(["a", "a"])
    rules = Requirements(["two words", "not"])
    rules.clause("'two words' -> \"not\"")
    assert rules.nearest([3, -1])[0] == ["two words", "not"]


WCNF = "c a comment\np wcnf 3 4 100\n100 1 2 0\n3 -1 0\n4 -2 0\n5 -1 -3 0\n"


@pytest.mark.parametrize(
    ("name", "text", "best"),
    [
        ("old.wcnf", WCNF, 3),
        ("new.wcnf", "h 1 2 0\n3 -1 0\n4 -2 0\n5 -1\n -3 0\n0 1 2 0\n", 3),
        ("hard.wcnf", "h 1 0\nh -1 2 0\n7 -2 0\n2 -1 -2 0\n", 9),
        ("plain.cnf", "c\np cnf 2 2\n1 -2 0 2\n0\n%\n0\n", 0),
        ("never.cnf", "p cnf 1 2\n1 0\n-1 0\n", math.inf),
        ("empty.cnf", "p cnf 2 1\n0\n", math.inf),
        ("both.cnf", "p cnf 2 1\n1 -1 0\n", 0),
    ],
)
def test_files_of_clauses(tmp_path: Path, name: str, text: str, best: float) -> None:
    (tmp_path / name).write_text(text)
    assert hasten.read(tmp_path / name).solve().objective == best
    packed = tmp_path / f"{name}.gz"
    packed.write_bytes(gzip.compress(text.encode()))
    assert hasten.read(packed).solve().objective == best


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("x.cnf", "c nothing\n", "no clauses in it"),
        ("x.wcnf", "", "no clauses in it"),
        ("x.cnf", "1 2 0\n", "line 1: The line `p cnf"),
        ("x.cnf", "p cnf 2 1\n1 3 0\n", "line 2: There is a variable 3; the first line says 2"),
        ("x.cnf", "p cnf 2 2\n1 2 0\n", "says 2 clauses, but there are 1"),
        ("x.cnf", "p cnf 2 1\n1 2\n", "no 0 at its end"),
        ("x.cnf", "p cnf 2 1\n1 x 0\n", "A literal must be a whole number"),
        ("x.cnf", "p wcnf 2 1\n", "should be `p cnf"),
        ("x.cnf", "p cnf 1 1\np cnf 1 1\n", "more than one line that begins with p"),
        ("x.wcnf", "1.5 1 0\n", "weight of a clause"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, text: str, why: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(ProgramError, match=why):
        hasten.read(tmp_path / name)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.lists(LITERALS, min_size=1, max_size=3)), min_size=1, max_size=8))
def test_a_file_of_soft_clauses_costs_what_it_breaks(tmp_path_factory: pytest.TempPathFactory, soft: Any) -> None:
    lines = [
        f"{weight} {' '.join(str((LABELS.index(label) + 1) * (1 if holds else -1)) for label, holds in clause)} 0"
        for weight, clause in soft
    ]
    path = tmp_path_factory.mktemp("soft") / "soft.wcnf"
    path.write_text("\n".join(lines) + "\n")
    best = min(
        sum(weight for weight, clause in soft if not any(point[LABELS.index(x)] == y for x, y in clause))
        for point in product((0, 1), repeat=6)
    )
    assert hasten.read(path).solve().objective == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(formulas())
def test_a_clause_of_a_schema_allows_what_its_formula_says(formula: str) -> None:
    schema = hasten.Schema()
    kinds = {label: schema.variable(label, ["no", "yes"]) for label in LABELS}
    table = schema.clause(formula, **kinds).table
    for point in product((False, True), repeat=len(LABELS)):
        values = dict(zip(LABELS, point, strict=True))
        cost = 0.0 if table is None else table[tuple(map(int, point))]  # a formula that always holds says nothing
        assert cost == (0.0 if truth(formula, values) else np.inf)


def test_a_clause_of_a_schema_names_roles_and_labels() -> None:
    schema = hasten.Schema()
    car, pose = schema.variable("car", ["no", "yes"]), schema.variable("pose", ["up", "down", "far left"])
    clause = schema.clause("(car and not 'at=far left') -> at=up", car=car, at=pose)
    assert clause.table.tolist() == [[0.0, 0.0, 0.0], [0.0, math.inf, 0.0]]
    shape = schema.structure()
    v, w = shape.add(car), shape.add(pose)
    shape.connect(clause, car=v, at=w)
    answer = hasten.Certifier()(shape.problem([[1.0, 0.0], [2.0, 0.0, 1.5]]))
    assert answer.names == ["no", "down"]
    assert answer.cost == 1.0
    other = hasten.Schema()
    car, pose = other.variable("car", ["no", "yes"]), other.variable("pose", ["up", "down", "far left"])
    for formula, why in (("pose", "no label 'pose'"), ("car=maybe", "car=no, car=yes"), ("car and", "before the end")):
        with pytest.raises(hasten.errors.SchemaError, match=why):
            other.clause(formula, car=car, pose=pose)
    assert not other.factors
    with pytest.raises(hasten.errors.SchemaError, match="variable kind"):
        other.clause("car", car="car")
