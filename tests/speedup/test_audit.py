"""The agreement estimate and the rule that ends and restores trust."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import ProblemError
from hasten.speedup.audit import ALARM, ALERT, RECOVERED, WINDOW, Agreement, Audit, Bet, lower_limit, upper_limit
from hasten.speedup.parts import Trust
from hasten.speedup.state import Counters


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


def observe(audit: Audit, agreed) -> int | None:
    """Takes in audits of answers that come one after the other."""
    agreed = np.asarray(agreed, dtype=bool)
    return audit.observe(agreed, np.arange(len(agreed)))


def test_without_audits_nothing_is_known():
    agreement = Audit().agreement
    assert math.isnan(agreement.estimate)
    assert (agreement.low, agreement.high, agreement.n) == (0, 1, 0)
    assert str(agreement) == "not audited yet"


def test_the_estimate_forgets_what_is_older_than_the_window():
    audit = Audit(None)
    observe(audit, np.zeros(50))
    observe(audit, np.ones(10_000))
    assert audit.agreement.estimate == 1
    assert audit.agreement.n == WINDOW


@given(st.floats(0.01, 0.99), st.floats(-1, 0.999).filter(bool))
def test_no_bet_gains_on_average_at_the_allowed_rate(allowed, share):
    """Two audits from every state: what a bet is expected to have is what it had, and its stakes."""
    bet = Bet(share)

    def expected(stake: float, left: int) -> float:
        if not left:
            return stake
        after = []
        for agreed in (True, False):
            trial = Bet(bet.share, stake)
            trial.observe(allowed, agreed)
            assert trial.stake >= 0
            after.append(expected(trial.stake, left - 1))
        return (1 - allowed) * after[0] + allowed * after[1]

    assert expected(7.0, 3) == pytest.approx(10.0)


def test_a_sudden_drift_is_seen_after_few_audits_and_named():
    audit = Audit(0.95)
    assert audit.observe(np.ones(5000, dtype=bool), np.arange(5000) * 10) is None
    drifted = np.arange(200) % 2 == 0
    turned = audit.observe(drifted, 60_000 + np.arange(200) * 10)
    assert turned is not None
    assert turned < 30
    assert not audit.trusted
    assert 49_800 <= audit.suspect.start <= 49_991  # a few agreements before
    assert audit.suspect.stop == 60_000 + turned * 10 + 1
    assert audit.distrust.high < 0.95


def test_a_slow_drift_is_seen_in_the_end():
    rng, audit = np.random.default_rng(1), Audit(0.95)
    observe(audit, rng.random(5000) < 0.99)
    assert audit.trusted
    assert observe(audit, rng.random(5000) < 0.90) is not None
    assert not audit.trusted


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_trust_returns_on_evidence_and_not_before(level):
    audit = Audit(level)
    n_wrong = observe(audit, np.zeros(100)) + 1
    assert not audit.trusted
    assert audit.agreement == audit.distrust == Agreement.of(0, n_wrong)  # what ended it, until there is more
    assert audit.suspect == range(n_wrong)
    n = 0
    while not audit.trusted:
        observe(audit, np.ones(1))
        n += 1
        assert audit.trusted or (audit.agreement.n, audit.distrust.n) == (n, n_wrong)
    assert lower_limit(n, n, 0.95) >= level
    assert audit.distrust is audit.suspect is None
    assert audit.agreement.low >= level - 0.02


def test_false_alarms_are_as_rare_as_stated():
    """At the allowed rate itself the mean is ALARM audits; 40,000 of them would have 0.4 alarms."""
    rng, alarms = np.random.default_rng(2), 0
    for _ in range(20):
        alarms += observe(Audit(0.95), rng.random(2000) >= 0.05) is not None
    assert alarms <= 3
    assert ALARM >= 1e5


def test_trust_does_not_return_at_the_level_itself():
    rng, returns = np.random.default_rng(3), 0
    for _ in range(20):
        audit = Audit(0.95)
        audit.end_trust(Agreement.of(0, 5))
        returns += observe(audit, rng.random(1000) >= 0.05) is not None
    assert returns <= 20_000 / RECOVERED + 4


@pytest.mark.parametrize("n", [ALERT, 10])
def test_audits_of_all_answers_follow_a_disagreement(n):
    audit = Audit(0.95, n)
    observe(audit, [True, False])
    assert audit.alert == n
    observe(audit, np.ones(5))
    assert audit.alert == n - 5
    observe(audit, [False])
    assert audit.alert == n


@given(st.lists(st.booleans(), max_size=60), st.integers(0, 60))
def test_audits_may_come_in_parts(agreed, at):
    at = min(at, len(agreed))
    one, other = Audit(0.9), Audit(0.9)

    def take(audit: Audit, some: list[bool], start: int) -> None:
        done = 0
        while done < len(some):
            left = np.array(some[done:])
            turned = audit.observe(left, np.arange(start + done, start + len(some)))
            done = len(some) if turned is None else done + turned + 1

    take(one, agreed, 0)
    take(other, agreed[:at], 0)
    take(other, agreed[at:], at)
    assert (one.bets, one.trusted, one.suspect, one.alert) == (other.bets, other.trusted, other.suspect, other.alert)
    assert one.recent.tolist() == other.recent.tolist()


def test_a_level_of_none_trusts_for_ever():
    audit = Audit(None)
    assert observe(audit, np.zeros(1000)) is None
    assert audit.trusted


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, 2.0, math.nan])
def test_a_level_that_no_audit_can_show_is_refused(level):
    with pytest.raises(ProblemError, match="between 0 and 1"):
        Trust(min_agreement=level)


def test_counters_are_kept_by_name():
    counted = Counters(problems=3, by_bound=1, costs=3, updates=5)
    assert "3 problems" in str(counted)
    named = counted.as_dict()
    assert Counters.from_dict(named) == counted
    del named["by_branch"]  # as in a file from before there was such a counter
    assert Counters.from_dict(named | {"added later": 1}) == counted
