"""What tests of searches share: problems with weights, ways to search, and when two answers are the same."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from hypothesis import strategies as st
from strategies import rich_problems as problems

from hasten.model.problem import Problem
from hasten.model.solution import Solution

INF = math.inf


def weights_for(problem: Problem, how: int, seed: int) -> np.ndarray | None:
    """Returns no weights, small integers (so that ties are exact), or floats."""
    rng, n = np.random.default_rng(seed), problem.structure.schema.n_weights
    return (None, rng.integers(-3, 4, n).astype(float), rng.normal(size=n) * 2)[how]


@st.composite
def weighted_problems(draw: Any, **family: Any) -> tuple[Problem, np.ndarray | None]:
    problem = draw(problems(**family))
    return problem, weights_for(problem, draw(st.integers(0, 2)), draw(st.integers(0, 999)))


def switches() -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "width": st.integers(1, 6),
            "enforce": st.booleans(),
            "look_ahead": st.booleans(),
            "theta": st.sampled_from([INF, 0.0, 0.5, 1.0, 2.0, 1e9]),
        }
    )


def labels_of(found: Solution) -> tuple[int, ...] | None:
    return None if found.values is None else tuple(found.values.tolist())


def assert_same(one: Solution, other: Solution) -> None:
    assert labels_of(one) == labels_of(other)
    assert one.cost == other.cost or (math.isnan(one.cost) and math.isnan(other.cost))
    assert (one.status, one.source, one.valid, one.n_costs) == (
        other.status,
        other.source,
        other.valid,
        other.n_costs,
    )
