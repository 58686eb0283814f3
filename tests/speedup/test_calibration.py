"""Calibration, on problems whose rate of changed answers is known for every theta."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from strategies import entity_relation

from hasten.errors import ProblemError
from hasten.kernels.search.nodes import FORCED
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.speedup.skipping import (
    Calibration,
    Calibrator,
    Candidate,
    candidates,
    gaps,
    problems_needed,
)

GAPS = np.arange(1.0, 11.0)
REVERSED = np.array([0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0, 0.0, 0.0])  # the larger the gap, the rarer


@lru_cache
def shapes() -> tuple[Structure, ...]:
    """One structure per gap: a variable whose first label is preferred by a weight of that size."""
    schema = Schema()
    choice = schema.variable("choice", ["this", "that"])
    kinds = [schema.factor(f"gap{gap:g}", choice=choice) for gap in GAPS]
    made = []
    for kind in kinds:
        shape = schema.structure()
        shape.connect(kind, choice=shape.add(choice))
        made.append(shape)
    return tuple(made)


def calibrate(search: BeamSearch, batch: Batch, black_box=None, **settings) -> Calibration:
    return Calibrator(**settings).theta(search, batch, black_box=black_box)


def search() -> BeamSearch:
    return BeamSearch(1, np.stack([GAPS, np.zeros(len(GAPS))], axis=1).ravel())


def problems(rng: np.random.Generator, n: int, reversed_rates: np.ndarray = REVERSED) -> Batch:
    """The heuristic prefers `this`; with its gap's chance the costs prefer `that` by more."""
    kind = rng.integers(len(GAPS), size=n)
    reverses = rng.random(n) < reversed_rates[kind]
    costs = np.stack([np.zeros(n), np.where(reverses, -GAPS[kind] - 1, 1.0)], axis=1)
    return Batch.build(shapes(), kind, costs.ravel())


def true_rate(theta: float, rates: np.ndarray = REVERSED) -> float:
    return float(np.mean(rates * (theta < GAPS))) if theta > 0 else float(np.mean(rates))


def test_gaps_are_those_of_the_heuristic():
    batch = problems(np.random.default_rng(0), 200)
    assert gaps(search(), batch).tolist() == GAPS[batch.structure].tolist()
    assert np.isinf(gaps(BeamSearch(2, search().weights), batch)).all()


def test_candidates_go_down_from_inf_to_0():
    thetas = candidates(search(), problems(np.random.default_rng(0), 500))
    assert thetas[:2] == [math.inf, FORCED]
    assert thetas[-1] == 0
    assert thetas == sorted(thetas, reverse=True)
    assert set(thetas[2:-1]) <= set(GAPS.tolist())


def test_with_many_problems_it_finds_the_right_theta():
    chosen = calibrate(search(), problems(np.random.default_rng(0), 20_000), risk=0.025)
    right = min(theta for theta in GAPS if true_rate(theta) <= 0.025)
    assert chosen.theta == right
    assert chosen.met
    assert chosen.changed <= chosen.limit <= 0.025
    assert chosen.share == pytest.approx(np.mean(right >= GAPS), abs=0.02)
    assert "too risky" in str(chosen)


def test_the_confidence_statement_holds():
    rng = np.random.default_rng(3)
    for rates in (REVERSED, REVERSED[::-1]):  # also where the rate is far from monotone
        thetas = [calibrate(search(), problems(rng, 1000, rates), risk=0.02).theta for _ in range(100)]
        broken = sum(true_rate(theta, rates) > 0.02 for theta in thetas)
        assert broken <= 10  # 5 expected at most


def test_a_larger_risk_never_gives_a_larger_theta():
    for seed in range(10):
        batch = problems(np.random.default_rng(seed), 1500)
        thetas = [calibrate(search(), batch, risk=risk).theta for risk in (0.005, 0.01, 0.03, 0.08, 0.2, 0.5)]
        assert thetas == sorted(thetas, reverse=True)


def test_a_higher_confidence_never_gives_a_smaller_theta():
    batch = problems(np.random.default_rng(0), 1500)
    thetas = [calibrate(search(), batch, risk=0.03, confidence=c).theta for c in (0.5, 0.8, 0.95, 0.999)]
    assert thetas == sorted(thetas)


def test_too_few_problems_prove_nothing_and_change_nothing():
    chosen = calibrate(search(), problems(np.random.default_rng(0), 300), risk=0.01)
    assert chosen.theta == math.inf
    assert chosen.share == 1
    assert chosen.changed == chosen.limit == 0


def test_it_is_the_same_for_given_and_for_lazy_costs_and_any_number_of_threads():
    batch = problems(np.random.default_rng(1), 1500)
    lazy = Batch.build(batch.structures, batch.structure, lambda p, v: batch.cost.reshape(-1, 2)[p].ravel())
    assert calibrate(search(), batch) == calibrate(search(), lazy) == calibrate(search(), batch, n_jobs=2)


def test_against_the_black_box_ties_are_no_changes_and_mistakes_are():
    shape = entity_relation(3)
    batch = shape.batch(np.random.default_rng(0).normal(size=(2000, shape.n_labels)))
    chosen = calibrate(BeamSearch(2), batch, risk=0.05, black_box=Certifier())
    assert not chosen.met
    assert chosen.theta == math.inf
    assert chosen.changed > 0.05
    assert "no candidate met" in str(chosen)
    ties = shape.batch(np.zeros((2000, shape.n_labels)))
    assert calibrate(BeamSearch(2), ties, risk=0.05, black_box=Certifier()).changed == 0


def test_the_last_candidate_that_passed_is_chosen_and_the_safest_if_none_did():
    def row(theta: float, passed: bool) -> Candidate:
        return Candidate(name="", theta=theta, n_changed=0, n=10, limit=0.0, share=1.0, passed=passed)

    about = {"risk": 0.1, "confidence": 0.9, "against": "nothing"}
    chosen = Calibration.by([row(math.inf, True), row(2.0, True), row(1.0, False), row(0.0, True)], **about)
    assert [each.theta for each in chosen.table] == [math.inf, 2.0, 1.0]
    assert (chosen.theta, chosen.met) == (2.0, True)
    assert Calibration.by([row(math.inf, False)], **about).theta == math.inf


@pytest.mark.parametrize("wrong", [{"risk": 0}, {"risk": 1.5}, {"confidence": 1}])
def test_what_makes_no_sense_is_refused(wrong):
    with pytest.raises(ProblemError):
        calibrate(search(), problems(np.random.default_rng(0), 100), **wrong)


def test_one_problem_is_not_enough():
    with pytest.raises(ProblemError, match="by the hundred"):
        calibrate(search(), problems(np.random.default_rng(0), 1))


@pytest.mark.parametrize(("risk", "needed"), [(0.01, 373), (0.05, 73), (0.5, 6)])
def test_fewer_problems_than_needed_prove_nothing(risk, needed):
    assert problems_needed(risk) == needed
    batch = Batch.build(shapes()[:1], np.zeros(needed, dtype=int), np.tile([0.0, 1.0], needed))  # nothing ever changes
    assert calibrate(search(), batch, risk=risk).theta == 0.0
    fewer = Batch.build(shapes()[:1], np.zeros(needed - 1, dtype=int), np.tile([0.0, 1.0], needed - 1))
    assert calibrate(search(), fewer, risk=risk).theta == math.inf
