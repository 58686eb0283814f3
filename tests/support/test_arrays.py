"""Arrays are what they say they are."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from hasten.support.arrays import all_finite

INF = np.inf


@pytest.mark.parametrize(
    "values",
    [[], [1e300, -1e300], [INF, 0.0], [INF, -INF], [np.nan], [[0.0, 1.0], [2.0, 3.0]], [[1.0, -INF], [0.0, 0.0]]],
)
def test_all_numbers_are_finite_if_each_is(values: list[float]) -> None:
    array = np.array(values, dtype=np.float64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all_finite(array) == bool(np.isfinite(array).all())
        assert all_finite(array.T) == all_finite(array)
