"""Amortized inference, a row of the experiment: what past answers are taken for is an optimum."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation

from hasten import Certifier
from hasten.model.batch import Batch
from hasten.paper.analyses import Past

SEEDS = st.integers(0, 2**32 - 1)


def totals(problem) -> list[float]:
    """What every valid labelling costs, by enumeration."""
    every = product(*(range(len(kind)) for kind in problem.structure.kinds))
    checked = ((np.array(labels), problem.check(np.array(labels)).valid) for labels in every)
    return sorted(problem.total(labels) for labels, valid in checked if valid)


def past_of(batch: Batch, margins: bool) -> Past:
    return Past.of(Certifier()(batch), np.arange(len(batch)), margins)


@given(SEEDS, st.booleans())
def test_what_is_recalled_is_an_optimum(seed: int, margins: bool) -> None:
    rng, shape = np.random.default_rng(seed), entity_relation(2)
    costs = rng.normal(size=(4, shape.n_labels))
    past = past_of(shape.batch(costs), margins)
    for _ in range(4):
        moved = costs[rng.integers(4)] + rng.normal(size=shape.n_labels) * 10.0 ** rng.integers(-3, 1)
        labels = past(moved)
        if labels is not None:
            problem = shape.problem(moved)
            assert problem.check(labels).valid
            assert problem.total(labels) == pytest.approx(totals(problem)[0])
    assert past(costs[2]) is not None


@given(SEEDS)
def test_a_margin_is_what_the_second_best_costs_more(seed: int) -> None:
    shape = entity_relation(2)
    batch = shape.batch(np.random.default_rng(seed).normal(size=(1, shape.n_labels)))
    first, second, *_ = totals(batch[0])
    assert past_of(batch, True).margin[0] == pytest.approx(second - first, rel=1e-5, abs=1e-5)
    assert past_of(batch, True).margin[0] <= second - first + 1e-9


def test_a_margin_answers_what_moved_by_less() -> None:
    shape = entity_relation(1)
    costs = np.array([[0.0, 2.0, 5.0, 5.0], [1.9, 2.0, 5.0, 5.0], [3.0, 2.0, 5.0, 5.0], [0.0, 3.0, 6.0, 9.0]])
    plain, wide = (past_of(shape.batch(costs[:1]), margins) for margins in (False, True))
    assert [plain(each) is not None for each in costs] == [True, False, False, True]
    assert [wide(each) is not None for each in costs] == [True, True, False, True]
