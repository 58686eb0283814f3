"""The arrays that everything is made of, and how groups of things are laid out in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]


def ints(values: Iterable[int]) -> IntArray:
    """Returns whole numbers as an array."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values, dtype=np.int64)
    return np.fromiter(values, dtype=np.int64)


def offsets(counts: Iterable[int]) -> IntArray:
    """Returns where each of some groups starts, and where the last one ends."""
    counts = ints(counts)
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=ends[1:])
    return ends


def sizes_of(first: IntArray) -> IntArray:
    """Returns how large groups are, given where each starts and the last one ends."""
    return first[1:] - first[:-1]


def spans(starts: IntArray, sizes: IntArray) -> IntArray:
    """Returns the numbers from each start on, as many as its size, one span after the other.

    >>> spans(ints([5, 20]), ints([3, 2])).tolist()
    [5, 6, 7, 20, 21]
    """
    ends = offsets(sizes)
    return (starts - ends[:-1]).repeat(sizes) + np.arange(ends[-1])


def stable_order(numbers: IntArray, limit: int) -> IntArray:
    """Returns the order that sorts numbers from 0 to below `limit`, equal ones as they come."""
    if limit <= 2**16:
        return numbers.astype(np.uint16).argsort(kind="stable")  # NumPy has a linear way to sort short integers
    return numbers.argsort(kind="stable")


def strides(shape: Sequence[int]) -> IntArray:
    """Returns how far apart the entries of a flat table are along each axis."""
    steps = np.ones(len(shape), dtype=np.int64)
    np.cumprod(shape[:0:-1], out=steps[-2::-1])
    return steps


def n_bytes(held: Any) -> int:
    """Returns about how many bytes the arrays of a tuple occupy, however deep in it they are."""
    if isinstance(held, np.ndarray):
        return held.nbytes + 112  # what describes it
    return sum(map(n_bytes, held)) if isinstance(held, tuple) else 0
