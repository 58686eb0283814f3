"""Learning from shards at the same time, and mixing what they learned."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from strategies import entity_relation, unary
from theory import separate

from hasten.errors import ProblemError
from hasten.learning.learner import Learner, default_step
from hasten.learning.mixing import LocalShards, fit_shards, mix
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch


@pytest.fixture(scope="module")
def lessons():
    shape = entity_relation(3)
    rng = np.random.default_rng(0)
    batch = shape.batch(rng.normal(size=(240, shape.n_labels)))
    return batch, Certifier()(batch).labels


def cut(batch, labels, n):
    """Deals problems to `n` shards, in turn."""
    parts = [np.arange(i, len(batch), n) for i in range(n)]
    return [(batch.select(part), labels[batch.places(part)]) for part in parts]


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one.state.weights, other.state.weights, strict=True))


LEARNERS = [
    Learner(2, epochs=4, progress=False, enforce=False, look_ahead=False),
    Learner(1, epochs=3, shuffle=False, averaged=False, progress=False, enforce=False, look_ahead=False),
    Learner(2, epochs=3, enforce=True, seed=7, progress=False, look_ahead=False),
    Learner.paper(2, epochs=3, progress=False),
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_one_shard_is_the_sequential_algorithm_to_the_last_bit(lessons, learner):
    alone = replace(learner).fit(*lessons)
    mixture = fit_shards(replace(learner), [lessons])
    assert same(mixture.learner, alone)
    assert np.array_equal(mixture.learner.weights, alone.weights)
    assert [replace(each, seconds=0.0) for each in mixture.learner.trace] == [
        replace(each, seconds=0.0) for each in alone.trace
    ]
    assert mixture.mean_mistakes == alone.n_mistakes
    more = [each.partial_fit(*lessons) for each in (mixture.learner, alone)]  # and both go on alike
    assert same(*more)


@pytest.mark.parametrize("learner", LEARNERS[:2])
@pytest.mark.parametrize(("rounds", "momentum"), [(1, None), (3, None), (2, 0.4)])
def test_mixing_is_what_its_definition_says(lessons, learner, rounds, momentum):
    """Against a slow version, which keeps every weight vector of every shard."""
    shards = cut(*lessons, 3)
    step = default_step(shards[0][0])
    again = (2 / 3 if learner.averaged else 0.0) if momentum is None else momentum
    w, every = np.zeros(shards[0][0].structures[0].schema.n_weights), []
    move = w
    rngs = [np.random.default_rng(learner.seed if i == 0 else [learner.seed, i]) for i in range(3)]
    for _ in range(learner.epochs):
        orders = [
            rng.permutation(np.arange(len(batch))) if learner.shuffle else np.arange(len(batch))
            for (batch, _), rng in zip(shards, rngs, strict=True)
        ]
        for pieces in zip(*(np.array_split(order, rounds) for order in orders), strict=True):
            ends = []
            for (batch, labels), piece in zip(shards, pieces, strict=True):
                one = replace(learner, step=step, averaged=False, shuffle=False).start(one_heuristic(batch, w))
                for p in piece:
                    one.partial_fit(batch.select([p]), labels[batch.places(np.array([p]))])
                    every.append(one.weights)
                ends.append(one.weights)
            move = np.full(3, 1 / 3) @ np.stack(ends) - w + again * move
            w = w + move
    found = fit_shards(replace(learner), shards, rounds=rounds, momentum=momentum).learner
    assert len(found.trace) == learner.epochs
    assert found.n_examples == len(every)
    np.testing.assert_allclose(found.weights, np.mean(every, axis=0) if learner.averaged else w, atol=1e-12)


def one_heuristic(batch, weights):
    from hasten.learning.heuristic import Heuristic

    return Heuristic(batch.structures[0].schema, weights)


def test_threads_and_readers_change_nothing(lessons):
    shards = cut(*lessons, 4)
    learner = Learner(2, epochs=3, progress=False, enforce=False, look_ahead=False)
    one = fit_shards(replace(learner), shards).learner
    assert same(one, fit_shards(replace(learner), shards, n_jobs=2).learner)
    assert same(one, fit_shards(replace(learner), [lambda shard=shard: shard for shard in shards]).learner)
    assert same(one, fit_shards(replace(learner), LocalShards(shards)).learner)


@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("n_shards", [1, 2, 5])
def test_distributed_mistake_bound_on_separable_data(width, n_shards):
    shape, y = unary(3, 3), (1, 1, 1)
    rng = np.random.default_rng(width)
    batch = shape.batch(np.round(rng.normal(size=(30, shape.n_labels)) * 4.0))
    answers = np.tile(np.array(y), 30)
    apart = separate(batch, answers)
    assert apart.margin > 0
    mixture = fit_shards(Learner.paper(width, epochs=10_000, progress=False), cut(batch, answers, n_shards))
    learner = mixture.learner
    assert learner.trace[-1].n_mistakes == 0  # it converged
    found = BeamSearch(width, learner.weights, enforce=False)(batch)
    assert (found.labels == answers).all()
    bound = mixture.mistake_bound(apart.margin)
    assert 0 < mixture.mean_mistakes <= bound
    assert learner.n_mistakes == pytest.approx(n_shards * mixture.mean_mistakes)
    assert learner.n_mistakes <= n_shards * bound


def test_growth_and_progress_hold_in_each_epoch(lessons):
    """The two inequalities of the proof, for mixed weights, epoch by epoch."""
    shape, y = unary(2, 3), (2, 2)
    batch = shape.batch(np.round(np.random.default_rng(0).normal(size=(24, shape.n_labels)) * 4.0))
    answers = np.tile(np.array(y), 24)
    apart = separate(batch, answers)
    shards = cut(batch, answers, 4)
    before, mistakes = np.zeros(shape.schema.n_weights), 0.0
    for epochs in range(1, 12):
        mixture = fit_shards(Learner.paper(2, epochs=epochs, progress=False), shards)
        more = mixture.mean_mistakes - mistakes
        w = mixture.learner.weights
        per_mistake = mixture.learner.radius_phi**2 + 2 * mixture.learner.radius_g
        assert w @ w - before @ before <= more * per_mistake + 1e-9
        assert apart.weights @ (w - before) >= more * apart.margin - 1e-9
        before, mistakes = w, mixture.mean_mistakes


@pytest.mark.parametrize("width", [1, 2])
def test_a_mistake_counts_as_much_as_in_sequence(lessons, width):
    """Averaged over shards without momentum, weights get about an eighth as far."""
    learner, shards = Learner(width, epochs=2, progress=False, enforce=False, look_ahead=False), cut(*lessons, 8)
    alone = np.linalg.norm(replace(learner).fit(*lessons).state.weights.w)
    mixed, slow = (
        np.linalg.norm(fit_shards(replace(learner), shards, momentum=momentum).learner.state.weights.w)
        for momentum in (None, 0.0)
    )
    assert 0.6 < mixed / alone < 1.6
    assert slow / alone < 0.4


def test_shards_without_problems_or_answers_do_not_count_as_lessons(lessons):
    batch = lessons[0]
    nothing = (batch.select(np.arange(0)), np.zeros(0, dtype=np.int64))
    silent = (batch.select(np.arange(5)), [None] * 5)
    learner = fit_shards(
        Learner(1, epochs=2, progress=False, enforce=False, look_ahead=False), [nothing, lessons, silent]
    ).learner
    assert learner.state.n_skipped == 5
    assert learner.trace[0].n_examples == len(batch)
    with pytest.raises(ProblemError, match="all shards are empty"):
        fit_shards(Learner(1, enforce=False, look_ahead=False), [nothing])
    with pytest.raises(ProblemError, match="all shards are empty"):
        fit_shards(Learner(1, enforce=False, look_ahead=False), [])
    with pytest.raises(ProblemError, match="rounds must be at least 1"):
        fit_shards(Learner(1, enforce=False, look_ahead=False), [lessons], rounds=0)
    for momentum in (1.0, -0.1, math.nan, "much"):
        with pytest.raises(ProblemError, match="momentum must be"):
            fit_shards(Learner(1, enforce=False, look_ahead=False), [lessons], momentum=momentum)
    other = unary(2, 2)
    with pytest.raises(ProblemError, match="different schemas"):
        fit_shards(Learner(1, enforce=False, look_ahead=False), [lessons, (other.batch(np.zeros((1, 4))), [(0, 0)])])


def test_mixing_equal_weights_changes_nothing(lessons):
    learner = Learner(2, epochs=2, progress=False, enforce=False, look_ahead=False).fit(*lessons)
    weights = learner.state.weights
    mixed = mix(weights, [weights] * 3, np.zeros(weights.w.size))
    assert np.array_equal(mixed.w, weights.w)
    np.testing.assert_allclose(mixed.drift, weights.drift, atol=1e-9)
