"""The statements of `docs/theory.md`: mistake bound, gap theorem, dual heuristic, proof of optimality."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from pathlib import Path

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem, small_problems, unary
from theory import Radii, dual_heuristic, radii, separate

from hasten.errors import ProblemError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.search.beam import BeamSearch, greedy

# Constructions of separable data. Features do not see the input, so that all problems of one shape must have
# one answer; and the first variable needs a feature of its own, or only one label (docs/theory.md says why).


def chain(n_variables: int, n_labels: int) -> Structure:
    """A chain that starts from a variable with one label; its features are transitions."""
    schema = Schema()
    kind = schema.variable("kind", [f"label{i}" for i in range(n_labels)])
    start = schema.variable("start", ["start"])
    begins = schema.factor("begins", start=start, first=kind)
    follows = schema.factor("follows", left=kind, right=kind)
    shape = schema.structure()
    before = shape.add(start)
    for t in range(n_variables):
        here = shape.add(kind)
        if t == 0:
            shape.connect(begins, start=before, first=here)
        else:
            shape.connect(follows, left=before, right=here)
        before = here
    return shape


def triples(n_entities: int, n_labels: int) -> Structure:
    """Entities with features of their own, and relations, with features of three, between neighbours."""
    schema = Schema()
    entity = schema.variable("entity", [f"label{i}" for i in range(n_labels)])
    relation = schema.variable("relation", ["yes", "no"])
    alone = schema.factor("alone", entity=entity)
    joins = schema.factor("joins", source=entity, relation=relation, target=entity)
    shape = schema.structure()
    entities = [shape.add(entity) for _ in range(n_entities)]
    for each in entities:
        shape.connect(alone, entity=each)
    for source, target in pairwise(entities):
        shape.connect(joins, source=source, relation=shape.add(relation), target=target)
    return shape


SEPARABLE = [
    (unary(3, 3), (1, 1, 1)),
    (chain(4, 3), (0, 0, 1, 2, 0)),
    (chain(5, 2), (0, 1, 0, 1, 0, 1)),
    (triples(3, 2), (1, 1, 1, 0, 0)),
]


def examples(shape: Structure, n: int, scale: float, seed: int) -> Batch:
    """Returns problems of one shape with whole costs."""
    rng = np.random.default_rng(seed)
    return shape.batch(np.round(rng.normal(size=(n, shape.n_labels)) * scale))


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(("shape", "y"), SEPARABLE)
def test_mistake_bound_on_separable_data(shape, y, width):
    batch = examples(shape, 20, 4.0, seed=width)
    answers = np.tile(np.array(y), 20)
    apart = separate(batch, answers)
    assert apart.margin > 0
    assert np.linalg.norm(apart.weights) == pytest.approx(1.0)
    for step in (1.0, 0.25):
        learner = Learner.paper(width, step=step, epochs=10_000).fit(batch, answers)
        assert learner.trace[-1].n_mistakes == 0  # it converged, to a consistent vector
        assert 0 < learner.n_mistakes <= learner.mistake_bound(apart.margin)
        everywhere = radii(batch)
        assert learner.radius_phi <= everywhere.phi
        assert learner.radius_g <= everywhere.g
        assert learner.mistake_bound(apart.margin) <= apart.mistake_bound(everywhere, step)
        found = BeamSearch(width, learner.weights, enforce=False)(batch)
        assert (found.labels == answers).all()


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize(("shape", "y"), SEPARABLE)
def test_lemmas_one_and_two_step_by_step(shape, y, width):
    batch = examples(shape, 6, 4.0, seed=width)
    problems = [batch[p] for p in range(len(batch))]
    apart, bounds = separate(batch, np.tile(np.array(y), 6)), radii(batch)
    before = np.zeros(shape.schema.n_weights)
    n_mistakes = 0
    for lesson in naive.algorithm_1(problems, [y] * 6, width, epochs=6):
        if lesson.mistake:
            n_mistakes += 1
            growth = lesson.weights @ lesson.weights - before @ before
            assert growth <= bounds.phi**2 + 2 * bounds.g + 1e-9  # lemma 1
            assert apart.weights @ (lesson.weights - before) >= apart.margin - 1e-9  # lemma 2
            for node in lesson.beam:  # what lemma 1 stands on: the good node was a candidate, and lost
                assert lesson.good.priority >= node.priority
        before = lesson.weights
    assert n_mistakes


def test_the_margin_of_known_data():
    """One variable of two labels, each with a feature: w = (1, -1) / sqrt(2) has margin sqrt(2), the best."""
    shape = unary(1, 2)
    apart = separate(shape.batch(np.zeros((1, 2))), np.array([0]))
    assert apart.margin == pytest.approx(math.sqrt(2))
    assert apart.weights == pytest.approx(np.array([1, -1]) / math.sqrt(2))
    assert apart.mistake_bound(Radii(math.sqrt(2), 3.0)) == pytest.approx((2 + 6) / 2)


@given(small_problems(max_variables=4, max_labels=3), st.integers(0, 999))
def test_radii_hold_for_every_pair_of_nodes_of_a_level(problem, seed):
    rng = np.random.default_rng(seed)
    bounds = radii(problem.batch)
    for t in range(problem.n_variables + 1):
        nodes = [
            {k: int(rng.integers(len(problem.structure.kinds[k]))) for k in naive.order_of(problem)[:t]}
            for _ in range(6)
        ]
        everything = set(range(problem.n_variables))
        for one in nodes:
            for two in nodes:
                apart = np.linalg.norm(naive.phi(problem, one) - naive.phi(problem, two))
                assert apart <= bounds.phi + 1e-9
                if bounds.g < math.inf:
                    g, other = (naive.path_cost(problem, node, everything) for node in (one, two))
                    assert g - other <= bounds.g + 1e-9


def test_no_margin_without_a_feature_of_the_first_variable():
    """At the first level all nodes of the paper's task have the same features: none."""
    shape = entity_relation(2)
    assert separate(shape.batch(np.zeros((1, shape.n_labels))), np.array([0, 1, 1, 5])).margin == 0


def test_no_margin_when_one_shape_has_two_answers():
    """Features do not see the input, so each answer would have to score above the other."""
    shape = unary(2, 2)
    batch = shape.batch(np.zeros((2, 4)))
    assert separate(batch, np.array([0, 0, 0, 0])).margin > 0
    assert separate(batch, np.array([0, 0, 1, 1])).margin == 0
    assert separate(batch, np.array([0, 0, 1, 1])).mistake_bound(Radii(1.0, 1.0)) == math.inf


def test_separate_refuses_what_it_cannot_enumerate():
    shape = unary(20, 3)
    with pytest.raises(ProblemError, match="at most 100,000 are enumerated"):
        separate(shape.batch(np.zeros((1, 60))), np.zeros(20, dtype=np.int64))


@given(small_problems(infinite_costs=False), st.integers(1, 4), st.integers(0, 999))
def test_a_gap_above_all_path_costs_decides_like_the_full_priority(problem, width, seed):
    """Theorem 2, at each step of a search."""
    weights = np.random.default_rng(seed).normal(size=problem.structure.schema.n_weights) * 10
    for step in naive.beam_search(problem, width, weights, enforce=False).steps:
        costs = [node.g for node in step.candidates]
        if step.gap > max(costs) - min(costs):
            by_h = sorted(step.candidates, key=lambda node: node.h)[:width]
            assert {tuple(node.labels.items()) for node in by_h} == {tuple(node.labels.items()) for node in step.beam}


def test_greedy_search_with_the_dual_heuristic_finds_the_optimum():
    """No duality gap: every optimum is made of labels that h* ranks first, and they are it where unique."""
    rng = np.random.default_rng(3)
    tight = unique = loose = 0
    for _ in range(400):
        problem = random_problem(rng, max_variables=5, ties=False)
        best, dual = naive.solve(problem), dual_heuristic(problem)
        if best.labels is None or problem.n_variables == 0:
            continue
        assert dual is not None
        assert dual.bound <= best.cost + 1e-6 * max(1.0, abs(best.cost))  # weak duality
        if best.cost - dual.bound > 1e-6 * max(1.0, abs(best.cost)):
            loose += 1
            continue
        tight += 1
        ties = dual.ties()
        assert all(label in tied for label, tied in zip(best.labels, ties, strict=True))
        if all(len(tied) == 1 for tied in ties):
            unique += 1
            assert tuple(dual.labels) == best.labels
    assert tight > 150
    assert unique > 0.95 * tight  # interior multipliers: only true ties are left
    assert loose > 0


def test_the_dual_heuristic_is_a_heuristic_for_the_search():
    """On the paper's task: with h* added to the costs, greedy search that knows no constraint is optimal."""
    rng = np.random.default_rng(4)
    shape = entity_relation(3)
    n_unique = 0
    for _ in range(40):
        cost = rng.normal(size=shape.n_labels) * 2
        for v in range(shape.n_variables):  # planted: each variable prefers a label
            cost[rng.integers(shape.graph.first[v], shape.graph.first[v + 1])] -= 2.0
        problem = shape.problem(cost)
        dual, wide = dual_heuristic(problem), BeamSearch(10_000)(problem)
        if wide.cost - dual.bound > 1e-6 or any(len(tied) > 1 for tied in dual.ties()):
            continue
        n_unique += 1
        assert (greedy()(shape.problem(cost + dual.h)).labels == wide.labels).all()
    assert n_unique >= 10


def test_every_test_that_the_theory_names_exists():
    here = Path(__file__).parents[1]
    named = set(re.findall(r"`(test_\w+)`", (here.parent / "docs" / "theory.md").read_text()))
    defined = set(re.findall(r"def (test_\w+)", "".join(path.read_text() for path in here.rglob("test_*.py"))))
    assert named
    assert named <= defined, named - defined
