"""What people expect of a modelling library: scores, implications, all different, a loss in the costs."""

from __future__ import annotations

from itertools import product

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from strategies import small_problems

import hasten


def plain(n: int = 3, labels: tuple[str, ...] = ("a", "b", "none")) -> hasten.Structure:
    schema = hasten.Schema()
    kind = schema.variable("kind", list(labels))
    shape = schema.structure()
    for _ in range(n):
        shape.add(kind)
    return shape


def kept(shape: hasten.Structure) -> set[tuple[str, ...]]:
    """Returns the valid labellings, by names."""
    problem = shape.problem(np.zeros(shape.n_labels))
    ways = product(*(kind.labels for kind in shape.kinds))
    return {names for names in ways if problem.check(names).valid}


def test_scores_are_costs_with_the_other_sign() -> None:
    shape = plain()
    scores = np.random.default_rng(0).normal(size=(4, 9))
    scores[2, 5] = -np.inf
    batch = shape.batch(scores, maximize=True)
    assert (batch.cost == -scores.ravel()).all()
    for each, answer in zip(scores, hasten.Certifier()(batch), strict=True):
        problem = shape.problem(each, maximize=True)
        assert hasten.Certifier()(problem).score == pytest.approx(answer.score)
        assert answer.score == pytest.approx(each.reshape(3, 3).max(axis=1).sum())
        lists = shape.problem(each.reshape(3, 3).tolist(), maximize=True)
        assert (lists.cost == problem.cost).all()
    with pytest.raises(hasten.ProblemError, match="-inf"):
        shape.problem(np.full(9, np.inf), maximize=True)


def test_a_scorer_of_scores_stays_lazy() -> None:
    shape = plain()
    scores = np.random.default_rng(1).normal(size=(2, 3, 3))

    def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return scores[problems, variables].ravel()

    problems = [shape.problem(scorer, maximize=True, id=p) for p in range(2)]
    batch = hasten.Batch.of(problems)
    assert batch.lazy
    assert (batch.resolved().cost == -scores.ravel()).all()


def test_an_implication_is_what_logic_says() -> None:
    shape = plain()
    shape.implies("if a then b", (0, "a"), (1, "b"))
    shape.implies("if both then one of these", [(0, "b"), (1, "b")], [(1, "none"), (2, "a")])
    assert kept(shape) == {
        (x, y, z)
        for x, y, z in product(("a", "b", "none"), repeat=3)
        if (x != "a" or y == "b") and (not (x == y == "b") or z == "a")
    }


def test_an_implication_of_a_factor_is_a_table() -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    pair = schema.factor("pair", left=kind, right=kind).imply({"left": ["a", "b"]}, {"right": "c"})
    assert np.isinf(pair.table).tolist() == [[True, True, False], [True, True, False], [False] * 3]
    with pytest.raises(hasten.SchemaError, match="imply"):
        pair.imply({"left": "a"}, {})
    with pytest.raises(hasten.SchemaError, match="no role"):
        pair.imply({"lift": "a"}, {"right": "c"})


def test_exactly_one_at_most_one_and_all_different() -> None:
    shape = plain()
    shape.exactly_one("one a", [(v, "a") for v in range(3)])
    assert kept(shape) == {names for names in product(("a", "b", "none"), repeat=3) if names.count("a") == 1}
    shape = plain()
    shape.at_most_one("few a", [(v, "a") for v in range(3)])
    assert kept(shape) == {names for names in product(("a", "b", "none"), repeat=3) if names.count("a") <= 1}
    shape = plain()
    assert len(shape.all_different("apart", range(3), but="none")) == 2
    assert kept(shape) == {
        names for names in product(("a", "b", "none"), repeat=3) if names.count("a") <= 1 and names.count("b") <= 1
    }


def test_variables_of_several_kinds_differ_where_their_labels_are_called_alike() -> None:
    schema = hasten.Schema()
    left, right = schema.variable("left", ["a", "b"]), schema.variable("right", ["b", "c"])
    shape = schema.structure()
    shape.all_different("apart", [shape.add(left), shape.add(right)])
    assert kept(shape) == {("a", "b"), ("a", "c"), ("b", "c")}


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda shape: shape.all_different("x", [0, 0]), "names a variable twice"),
        (lambda shape: shape.all_different("x", [0, 7]), "no variable 7"),
        (lambda shape: shape.all_different("x", 3), "must be a list"),
        (lambda shape: shape.all_different("x", [0, 1], but="nothing"), "no variable has the label nothing"),
        (lambda shape: shape.implies("x", [], (0, "a")), "counts nothing"),
        (lambda shape: shape.implies("x", (0, "a"), (9, "a")), "no variable 9"),
        (lambda shape: shape.implies("x", (0, "a"), [(1, "b", 2.0)]), "a term is"),
        (lambda shape: shape.exactly_one("x", [(0, "q")]), "no label 'q'"),
    ],
)
def test_what_makes_no_sense_is_refused(call: object, reason: str) -> None:
    with pytest.raises(hasten.SchemaError, match=reason):
        call(plain())  # type: ignore[operator]


@given(small_problems())
@settings(max_examples=40, deadline=None)
def test_the_cheapest_augmented_labelling_is_the_worst_margin(problem: hasten.Problem) -> None:
    gold = np.zeros(problem.n_variables, dtype=np.int64)
    augmented = problem.augmented(gold, 0.5)
    for labels in product(*(range(len(kind)) for kind in problem.structure.kinds)):
        wrong = sum(label != right for label, right in zip(labels, gold, strict=True))
        assert augmented.total(labels) == pytest.approx(problem.total(labels) - 0.5 * wrong)
    answer = hasten.Certifier()(augmented)
    assert answer.cost == pytest.approx(naive.solve(augmented).cost)


def test_a_batch_is_augmented_as_its_problems_are() -> None:
    shape = plain()
    rng = np.random.default_rng(3)
    batch, gold = shape.batch(rng.normal(size=(5, 9))), rng.integers(0, 3, 15)
    augmented = batch.augmented(gold, 2.0)
    for p in range(5):
        assert (augmented[p].cost == batch[p].augmented(gold[3 * p : 3 * p + 3], 2.0).cost).all()
    for dtype in (np.uint64, np.int8):
        assert (batch.augmented(gold.astype(dtype), 2.0).cost == augmented.cost).all()
    each = batch[0].augmented(["a", "b", "none"], np.array([1.0, 0.0, 3.0]))
    assert (batch[0].cost - each.cost).tolist() == pytest.approx([0, 1, 1, 0, 0, 0, 3, 3, 0])
    for wrong, reason in ((gold[:3], "15 variables"), (gold + 3, "no label number"), (gold * 1.0, "whole numbers")):
        with pytest.raises(hasten.ProblemError, match=reason):
            batch.augmented(wrong)
    with pytest.raises(hasten.ProblemError, match="weight of a loss"):
        batch[0].augmented(gold[:3], -1.0)
    with pytest.raises(hasten.ProblemError, match="weight of a loss"):
        batch.augmented(gold, np.nan)
