"""The arrays that everything is made of, and how groups of things are laid out in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Chosen = Sequence[int] | Sequence[bool] | IntArray | BoolArray  # some of many things: their numbers, or a mask


def ints(values: Iterable[int]) -> IntArray:
    """Returns whole numbers as an array."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values, dtype=np.int64)
    return np.fromiter(values, dtype=np.int64)


def chosen_numbers(chosen: Chosen, n: int) -> IntArray:
    """Returns the numbers of some of `n` things, given by number (a negative one from the end) or by a mask."""
    index = np.asarray(chosen)
    numbers: IntArray = np.arange(n)[index if index.size or index.dtype == bool else index.astype(np.int64)]
    return numbers


def offsets(counts: Iterable[int]) -> IntArray:
    """Returns where each of some groups starts, and where the last one ends."""
    return np.concatenate([[0], np.cumsum(ints(counts))]).astype(np.int64)


def strides(shape: Sequence[int]) -> IntArray:
    """Returns how far apart the entries of a flat table are along each axis."""
    return ints(int(np.prod(shape[i + 1 :])) for i in range(len(shape)))
