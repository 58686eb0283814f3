"""The agreement estimate and the rule that ends and restores trust."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import ProblemError
from hasten.speedup.audit import SHORTEST, Agreement, Audit, lower_limit, upper_limit
from hasten.speedup.history import Counters
from hasten.speedup.parts import Trust


def at_most(k: int, n: int, share: float) -> float:
    """The chance of at most k successes, as the textbook writes it."""
    return sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k + 1))


@given(st.integers(1, 60), st.data(), st.sampled_from([0.8, 0.95, 0.999]))
def test_limits_are_exact(n, data, confidence):
    k = data.draw(st.integers(0, n))
    high, low = upper_limit(k, n, confidence), lower_limit(k, n, confidence)
    assert 0 <= low <= k / n <= high <= 1
    if k < n:
        assert at_most(k, n, high) == pytest.approx(1 - confidence, rel=1e-6)
    if k > 0:
        assert 1 - at_most(k - 1, n, low) == pytest.approx(1 - confidence, rel=1e-6)


def test_limits_of_large_samples_are_finite_and_close():
    assert upper_limit(0, 299, 0.95) < 0.01 < upper_limit(0, 298, 0.95)
    assert 0.0100 < upper_limit(10_000, 1_000_000, 0.95) < 0.0102


def test_limits_cover_the_truth_as_often_as_they_say():
    rng = np.random.default_rng(0)
    for truth in (0.5, 0.9, 0.99):
        seen = [Agreement.of(int(k), 80) for k in rng.binomial(80, truth, 2000)]
        assert np.mean([each.low <= truth <= each.high for each in seen]) >= 0.945


def test_without_audits_nothing_is_known():
    agreement = Audit().agreement
    assert math.isnan(agreement.estimate)
    assert (agreement.low, agreement.high, agreement.n) == (0, 1, 0)
    assert str(agreement) == "not audited yet"


def test_the_estimate_forgets_what_is_older_than_the_window():
    audit = Audit(None)
    audit.observe(np.zeros(50, dtype=bool))
    audit.observe(np.ones(10_000, dtype=bool))
    assert audit.agreement.estimate == 1
    assert audit.agreement.n == audit.window


def test_a_sudden_drift_is_seen_after_few_audits():
    audit = Audit(0.95)
    audit.observe(np.ones(5000, dtype=bool))
    for n in range(1, 100):
        if audit.observe(np.array([n % 2 == 0])):
            break
    assert not audit.trusted
    assert n <= SHORTEST


def test_a_slow_drift_is_seen_in_the_end():
    rng, audit = np.random.default_rng(1), Audit(0.95)
    audit.observe(rng.random(5000) < 0.99)
    assert audit.trusted
    for _ in range(5000):
        audit.observe(rng.random(1) < 0.90)
        if not audit.trusted:
            break
    assert not audit.trusted


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_trust_returns_on_evidence_and_not_before(level):
    audit = Audit(level)
    audit.observe(np.zeros(SHORTEST, dtype=bool))
    assert not audit.trusted
    assert audit.agreement == audit.distrust == Agreement.of(0, SHORTEST)  # what ended it, until there is more
    n = 0
    while not audit.trusted:
        audit.observe(np.ones(1, dtype=bool))
        n += 1
        assert audit.trusted or (audit.agreement.n, audit.distrust.n) == (n, SHORTEST)
    assert lower_limit(n, n, 0.95) >= level
    assert audit.distrust is None
    assert audit.agreement.low >= level - 0.02
    assert n <= audit.window


def test_agreement_above_the_level_is_rarely_mistrusted():
    rng, falls = np.random.default_rng(2), 0
    for _ in range(40):
        audit = Audit(0.95)
        for agreed in rng.random((100, 20)) < 0.985:
            falls += audit.observe(agreed) and not audit.trusted
    assert falls <= 2


def test_a_level_of_none_trusts_for_ever():
    audit = Audit(None)
    assert not audit.observe(np.zeros(1000, dtype=bool))
    assert audit.trusted


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_level_that_no_audit_can_show_is_refused(level):
    with pytest.raises(ProblemError, match="between 0 and 1"):
        Trust(min_agreement=level)


def test_counters_add_up_by_name():
    total = Counters(problems=1, by_bound=1, costs=3) + Counters(problems=2, updates=5)
    assert total == Counters(problems=3, by_bound=1, costs=3, updates=5)
    assert "3 problems" in str(total)


def test_counters_are_kept_by_name_and_name_no_solver():
    asked = Counters(problems=2, asked={"highs": 1}) + Counters(asked={"highs": 2, "another": 1})
    assert asked == Counters(problems=2, asked={"highs": 3, "another": 1})
    assert str(asked).endswith("asked highs 3 times, another 1 time")
    named = asked.as_dict()
    assert Counters.from_dict(named) == asked
    del named["by_branch"]  # as in a file from before there was such a counter
    assert Counters.from_dict(named | {"added later": 1}) == asked
