"""Algorithm 1's kernel against the naive transcription of the paper's listing, and the learner around it."""

from __future__ import annotations

import math
import pickle
import sys
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import NumpyDice, _structure, entity_relation, random_problem, small_problems

from hasten.errors import NotFittedError, ProblemError
from hasten.learning.learner import STEP, Learner, default_step
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Source, Status, read_answers
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch

WIDTHS = st.sampled_from([1, 2, 3])


def family(problem: Problem, seed: int, n: int = 6) -> list[Problem]:
    """Returns problems of one schema, of two shapes, with whole costs."""
    rng = np.random.default_rng(seed)
    other = _structure(NumpyDice(rng), problem.structure.schema, 4, 6, rules=True)
    problems = [problem]
    for x in range(n - 1):
        shape = other if x % 2 else problem.structure
        if shape._slots or x % 2 == 0:
            problems.append(Problem(shape, rng.integers(-3, 4, shape.n_labels).astype(float), None, problem.table, 0))
        else:
            problems.append(shape.problem(rng.integers(-3, 4, shape.n_labels).astype(float)))
    return problems


def is_whole(problem: Problem) -> bool:
    """Whether all costs are integers, so that sums are exact and ties are ties."""
    tables = [
        problem.table,
        *(k.table.ravel() for k in problem.structure.schema.factors.values() if k.table is not None),
    ]
    values = np.concatenate([problem.cost, *tables])
    values = values[np.isfinite(values)]
    return bool((values == np.round(values)).all())


def any_labels(problems: list[Problem], seed: int) -> list[tuple[int, ...]]:
    """Returns an optimum, or else any labelling, for each problem."""
    rng = np.random.default_rng(seed)
    answers = []
    for problem in problems:
        best = naive.solve(problem).labels if rng.random() < 0.6 else None
        sizes = [len(kind) for kind in problem.structure.kinds]
        answers.append(tuple(int(rng.integers(size)) for size in sizes) if best is None else best)
    return answers


def flat(answers: list[tuple[int, ...]]) -> np.ndarray:
    return np.array([label for answer in answers for label in answer], dtype=np.int64)


@given(
    small_problems(max_variables=4).filter(is_whole),
    WIDTHS,
    st.booleans(),
    st.booleans(),
    st.integers(0, 999),
)
def test_the_kernel_is_algorithm_1_update_for_update(problem, width, enforce, look_ahead, seed):
    problems = family(problem, seed)
    answers = any_labels(problems, seed)
    lessons = naive.algorithm_1(problems, answers, width, 2, 1.0, enforce, look_ahead)
    learner = Learner.paper(width, enforce=enforce, look_ahead=look_ahead)
    for lesson, each, answer in zip(lessons, problems * 2, answers * 2, strict=True):
        before = learner.n_mistakes
        learner.learn_one(each, answer)
        assert (learner.weights == lesson.weights).all()
        assert learner.n_mistakes - before == bool(lesson.mistake)
    whole = Learner.paper(width, enforce=enforce, look_ahead=look_ahead)
    for _ in range(2):
        whole.partial_fit(Batch.of(problems), flat(answers))
    assert (whole.weights == learner.weights).all()
    same = [(a.weights == b.weights).all() for a, b in pairwise(lessons)]
    same.insert(0, not lessons[0].weights.any())
    blind = sum(bool(each.mistake) and unchanged for each, unchanged in zip(lessons, same, strict=True))
    (both,) = whole.trace
    assert both.n_blind == blind
    assert both.n_lost == sum(each.mistake == "lost" for each in lessons)
    assert both.n_wrong == sum(each.mistake == "wrong" for each in lessons)


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("enforce", [False, True])
def test_the_kernel_is_algorithm_1_on_the_papers_task(width, enforce):
    shape = entity_relation(3)
    rng = np.random.default_rng(width)
    problems = [shape.problem(rng.integers(-9, 10, shape.n_labels).astype(float)) for _ in range(12)]
    found = Certifier()(Batch.of(problems))
    answers = [tuple(found[p].labels.tolist()) for p in range(len(problems))]
    lessons = naive.algorithm_1(problems, answers, width, 2, 1.0, enforce)
    learner = Learner.paper(width, enforce=enforce, epochs=2).fit(problems, found)
    assert (learner.weights == lessons[-1].weights).all()
    assert learner.n_mistakes == sum(bool(lesson.mistake) for lesson in lessons) > 0


@given(small_problems(max_variables=4).filter(is_whole), WIDTHS, st.integers(0, 999))
def test_radii_are_the_largest_differences_of_the_nodes_compared(problem, width, seed):
    problems = family(problem, seed)
    answers = any_labels(problems, seed)
    radius_phi = radius_g = 0.0
    each = problems
    for p, lesson in zip(each, naive.algorithm_1(problems, answers, width), strict=True):
        for node in lesson.beam:
            difference = naive.phi(p, lesson.good.labels) - naive.phi(p, node.labels)
            radius_phi = max(radius_phi, float(np.linalg.norm(difference)))
            if math.isfinite(node.g):
                radius_g = max(radius_g, lesson.good.g - node.g)
    learner = Learner.paper(width).partial_fit(Batch.of(problems), flat(answers))
    assert learner.radius_phi == pytest.approx(radius_phi)
    assert learner.radius_g == radius_g


@given(small_problems(max_variables=4).filter(is_whole), WIDTHS, st.integers(0, 999))
def test_averaged_weights_are_the_mean_of_the_weights_after_each_example(problem, width, seed):
    problems = family(problem, seed)
    answers = any_labels(problems, seed)
    lessons = naive.algorithm_1(problems, answers, width, 3, 0.25)
    learner = Learner(width, step=0.25, shuffle=False, enforce=False, look_ahead=False)
    for _ in range(3):
        learner.partial_fit(Batch.of(problems), flat(answers))
    assert learner.n_examples == len(lessons)
    mean = np.mean([lesson.weights for lesson in lessons], axis=0)
    np.testing.assert_allclose(learner.weights, mean, atol=1e-12)


@given(small_problems(max_variables=4).filter(is_whole), WIDTHS, st.integers(0, 999))
def test_a_step_is_a_unit_of_cost(problem, width, seed):
    """Step s on costs c makes s times the weights of step 1 on costs c / s."""
    assume(not problem.structure._slots)
    assume(all(kind.table is None or not kind._costs.any() for kind in problem.structure.schema.factors.values()))
    problems = family(problem, seed)
    answers = flat(any_labels(problems, seed))
    scaled = [each.structure.problem(each.cost * 4) for each in problems]
    ones = Learner.paper(width).partial_fit(problems, answers)
    fours = Learner.paper(width, step=4.0).partial_fit(scaled, answers)
    assert (fours.weights == 4 * ones.weights).all()
    assert fours.n_mistakes == ones.n_mistakes


def test_learning_enforced_never_sees_a_valid_answer_removed():
    rng = np.random.default_rng(5)
    forbidden = learned = 0
    for _ in range(300):
        problem = random_problem(rng, max_variables=5)
        best = naive.solve(problem)
        if best.labels is None:
            continue
        learner = Learner(1, enforce=True, look_ahead=bool(rng.integers(2))).learn_one(problem, best.labels)
        forbidden += learner.state.n_forbidden
        learned += learner.n_examples
    assert forbidden == 0
    assert learned > 150


def test_without_weights_an_optimum_in_the_beam_comes_first():
    rng = np.random.default_rng(6)
    n_lost = n_examples = 0
    for _ in range(300):
        problem = random_problem(rng, ties=False)
        best = naive.solve(problem)
        if best.labels is not None:
            (epoch,) = Learner(2, enforce=True, look_ahead=False).learn_one(problem, best.labels).trace
            assert epoch.n_wrong == 0
            n_lost += epoch.n_lost
            n_examples += epoch.n_examples
    assert 0 < n_lost < n_examples


def test_an_answer_that_constraints_forbid_teaches_nothing_when_they_are_enforced():
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    pair = schema.factor("pair", left=pet, right=pet).forbid(left="cat", right="dog")
    shape = schema.structure()
    shape.connect(pair, left=shape.add(pet), right=shape.add(pet))
    problem = shape.problem([[0.0, 1.0], [0.0, 1.0]])
    strict = Learner(1, enforce=True, look_ahead=False).learn_one(problem, [0, 1])
    assert strict.state.n_forbidden == 1
    assert strict.n_examples == strict.n_mistakes == 0
    assert not strict.weights.any()
    assert Learner(1, enforce=False, look_ahead=False).learn_one(problem, [0, 1]).n_mistakes == 1


def peaked(n: int, n_entities: int = 3, seed: int = 0, scale: float = 1.0) -> tuple[Batch, Solutions]:
    """Returns entity-relation problems whose costs prefer some labels, and their answers."""
    shape = entity_relation(n_entities)
    rng = np.random.default_rng(seed)
    costs = rng.normal(size=(n, shape.n_labels))
    for row in costs:
        for v in range(shape.n_variables):
            first, last = shape.graph.first[v], shape.graph.first[v + 1]
            row[rng.integers(first, last)] -= 3.0
    batch = shape.batch(costs * scale)
    return batch, Certifier()(batch)


def exact(found: Solutions, answers: Solutions) -> float:
    wrong = np.add.reduceat(found.labels != answers.labels, found.batch.variable_at[:-1])
    return float((wrong == 0).mean())


@pytest.mark.parametrize("scale", [0.01, 1.0, 100.0])
def test_defaults_learn_on_any_scale_of_costs(scale):
    batch, answers = peaked(2000, scale=scale)
    learner = Learner(2, enforce=False, look_ahead=False).fit(batch, answers)
    plain = exact(BeamSearch(2, enforce=False)(batch), answers)
    learned = exact(BeamSearch(2, learner.weights, enforce=False)(batch), answers)
    assert learned > plain + 0.2
    assert learner.trace[-1].n_mistakes < learner.trace[0].n_mistakes


def test_the_default_step_is_a_share_of_the_median_gap():
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog", "cow"])
    shape = schema.structure()
    for _ in range(3):
        shape.add(pet)
    assert default_step(shape.batch(np.array([[0, 2, 5, 7, 3, 9, -1e6, 1e6, 1e6]]))) == STEP * 4
    assert default_step(shape.batch(np.array([[0, 0, 5, 3, 3, 9, 1, 0, 2]]))) == STEP * 1
    assert default_step(shape.batch(np.array([[0, math.inf, 8, 3, math.inf, math.inf, 1, 0, 9]]))) == STEP * 4.5
    assert default_step(shape.batch(np.zeros((2, 9)))) == 1.0


def test_learning_stops_after_an_epoch_without_a_mistake():
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    alone = schema.factor("alone", pet=pet)
    shape = schema.structure()
    shape.connect(alone, pet=shape.add(pet))
    learner = Learner.paper(1, epochs=50).fit(shape.batch(np.array([[0.0, 3.0], [1.0, 0.0]])), np.array([1, 1]))
    counts = [epoch.n_mistakes for epoch in learner.trace]
    assert counts[-1] == 0
    assert all(counts[:-1])
    assert len(counts) < 50


def test_learning_is_the_same_under_the_same_seed():
    batch, answers = peaked(300)
    one, two, other = (
        Learner(2, seed=seed, epochs=2, enforce=False, look_ahead=False).fit(batch, answers) for seed in (1, 1, 2)
    )
    assert (one.weights == two.weights).all()
    assert (one.weights != other.weights).any()
    assert (one.fit(batch, answers).weights == two.weights).all()  # fit starts anew


def test_learn_one_is_partial_fit_on_one():
    batch, answers = peaked(50)
    one, many = Learner(2, enforce=False, look_ahead=False), Learner(2, enforce=False, look_ahead=False)
    for p in range(50):
        one.learn_one(batch[p], answers[p])
        many.partial_fit(batch.select([p]), [answers[p]])
    assert (one.weights == many.weights).all()
    assert one.n_mistakes == many.n_mistakes
    assert len(one.trace) == len(many.trace) == 1  # what comes after `fit` shares an entry
    assert one.trace[0].n_examples == 50


def test_the_step_is_logged(caplog):
    batch, answers = peaked(5)
    with caplog.at_level("INFO", logger="hasten"):
        learner = Learner(epochs=1, enforce=False, look_ahead=False).fit(batch, answers)
    assert f"a step of {learner.state.step:.4g}" in caplog.text
    assert learner.trace[0].step == learner.state.step == default_step(batch)


def test_lazy_problems_are_resolved():
    batch, answers = peaked(20)

    def scorer(problems, variables):
        return np.concatenate([batch[p].costs_of(v) for p, v in zip(problems, variables, strict=True)])

    lazy = Batch.build(batch.structures, batch.structure, scorer)
    assert (
        Learner(enforce=False, look_ahead=False).fit(lazy, answers.labels).weights
        == Learner(enforce=False, look_ahead=False).fit(batch, answers).weights
    ).all()
    problem = batch.structures[0].problem(scorer, id=7)
    assert (
        Learner(enforce=False, look_ahead=False).learn_one(problem, answers[7]).weights
        == Learner(enforce=False, look_ahead=False).learn_one(batch[7], answers[7]).weights
    ).all()


def test_problems_without_an_answer_are_skipped():
    batch, answers = peaked(4)
    labels = answers.labels.copy()
    labels[batch.variable_at[1]] = -1
    assert read_answers(batch, labels)[1].tolist() == [0, 2, 3]
    mixed = list(answers)
    mixed[0] = Solution(batch[0], Status.INFEASIBLE, Source.SOLVER, None, math.inf, math.inf, False, 0)
    mixed[2] = Solution(batch[2], Status.TIME_LIMIT, Source.SOLVER, answers[2].labels, 0.0, 0.0, True, 0)
    learner = Learner(epochs=1, enforce=False, look_ahead=False).fit(batch, mixed)
    assert learner.n_examples == 2
    unusable = Learner(enforce=False, look_ahead=False).learn_one(batch[0], mixed[0])
    assert unusable.n_examples == 0
    assert not unusable.weights.any()


def test_misuse_is_said_clearly():
    batch, answers = peaked(4)
    with pytest.raises(NotFittedError, match="not learned anything"):
        _ = Learner(enforce=False, look_ahead=False).weights
    with pytest.raises(ProblemError, match="3 answers for 4"):
        Learner(enforce=False, look_ahead=False).fit(batch, [answers[p] for p in range(3)])
    with pytest.raises(ProblemError, match="5 answers for 4"):
        Learner(enforce=False, look_ahead=False).fit(batch, [*answers, answers[0]])
    with pytest.raises(ProblemError, match="has no label number 9"):
        Learner(enforce=False, look_ahead=False).fit(batch, np.full(batch.variable_at[-1], 9))
    with pytest.raises(ProblemError, match="Give one flat array"):
        Learner(enforce=False, look_ahead=False).fit(batch, np.zeros(3, dtype=np.int64))
    schema = Schema()
    pet = schema.variable("pet", ["cat"])
    shape = schema.structure()
    shape.add(pet)
    learner = Learner(enforce=False, look_ahead=False).fit(batch, answers)
    with pytest.raises(ProblemError, match="another schema"):
        learner.partial_fit(shape.batch(np.zeros((1, 1))), np.zeros(1, dtype=np.int64))
    for wrong in (
        {"width": 0},
        {"width": 2.5},
        {"width": "2"},
        {"epochs": 0},
        {"epochs": 1.5},
        {"step": 0.0},
        {"step": math.nan},
        {"step": "1"},
        {"seed": -1},
        {"seed": None},
    ):
        with pytest.raises(ProblemError):
            Learner(**wrong, enforce=False, look_ahead=False)


def test_answers_come_in_many_forms():
    batch, answers = peaked(30)
    flat = Learner(enforce=False, look_ahead=False).fit(batch, answers)
    rows = [answer.labels for answer in answers]
    forms = [
        answers.labels,
        answers.labels.astype(np.int32),
        list(answers),
        rows,
        [row.tolist() for row in rows],
        [answer.names for answer in answers],
        [answers[p] if p % 2 else answers[p].names for p in range(30)],
    ]
    for form in forms:
        assert (Learner(enforce=False, look_ahead=False).fit(batch, form).weights == flat.weights).all()
    assert Learner(epochs=1, enforce=False, look_ahead=False).fit(batch, [None, *rows[1:]]).n_examples == 29
    one = Learner(enforce=False, look_ahead=False).learn_one(batch[0], answers[0].names)
    assert (one.weights == Learner(enforce=False, look_ahead=False).learn_one(batch[0], answers[0]).weights).all()
    assert Learner(enforce=False, look_ahead=False).learn_one(batch[0], None).n_examples == 0


def test_answers_that_do_not_fit_are_named():
    batch, answers = peaked(4)
    names = [answer.names for answer in answers]
    for wrong, message in [
        ([*names[:3], ["cave"] * len(names[3])], "The answer to problem 3: .* has no label 'cave'"),
        ([*names[:3], names[3][1:]], "The answer to problem 3: Got .* labels for"),
        ([*names[:3], 5], "The answer to problem 3: .* got 5"),
        (answers.labels.tolist(), "answers for 4 problems. Give one for each, or one flat array"),
        (iter(names), "Expected an answer for each problem"),
    ]:
        with pytest.raises(ProblemError, match=message):
            Learner(enforce=False, look_ahead=False).fit(batch, wrong)


def test_what_was_pickled_goes_on_learning_where_its_arrays_cannot_be_written():
    """As those of a file that is mapped, or of a worker that shares memory."""
    batch, answers = peaked(60)
    half = np.arange(30)
    learner = Learner(seed=3, enforce=False, look_ahead=False).partial_fit(batch[half], answers[half])
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(learner, protocol=5, buffer_callback=buffers.append)
    again = pickle.loads(pickled, buffers=[bytes(each) for each in buffers])
    assert buffers
    for each in (learner, again):
        each.partial_fit(batch[half + 30], answers[half + 30])
    assert again.n_mistakes > 0
    assert (again.weights == learner.weights).all()


def test_a_learner_needs_no_standard_error(monkeypatch):
    """Python has none where that was closed, as in some services."""
    monkeypatch.setattr(sys, "stderr", None)
    batch, answers = peaked(20)
    assert Learner(enforce=False, look_ahead=False).fit(batch, answers).n_examples >= 20
