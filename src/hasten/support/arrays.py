"""The arrays that everything is made of, and how groups of things are laid out in them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import pack
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]
Array = TypeVar("Array", bound=NDArray[Any])
Chosen: TypeAlias = slice | Sequence[int] | Sequence[bool] | IntArray | BoolArray  # some of several problems


def floats(values: object, *, copy: bool = False) -> FloatArray:
    """Returns numbers as an array of floats, stored row by row; anything else raises TypeError or ValueError.

    A tensor that NumPy cannot read, because it needs gradients or is in another memory, is read without them.
    Masked entries have no value, so they are refused.
    """
    if type(values) is np.ndarray and values.dtype == np.float64 and values.flags.c_contiguous:
        return values.copy() if copy else values
    try:
        found = np.asarray(values)
    except (TypeError, ValueError, RuntimeError) as error:
        if not hasattr(values, "detach"):
            raise TypeError(str(error)) from error
        found = np.asarray(values.detach().cpu().numpy())
    if found.dtype.kind not in "biufO":
        raise TypeError(f"got {found.dtype.name}")
    if is_masked(values):
        raise TypeError("got masked entries; fill them first")
    if found.dtype.kind == "O" and any(isinstance(each, str | bytes) for each in found.flat):
        raise TypeError("got text")
    try:
        return np.array(found, dtype=np.float64, order="C", copy=copy or None)
    except OverflowError as error:
        raise ValueError(str(error)) from None


def is_masked(values: object) -> bool:
    """Whether an array has masked entries, which NumPy would take for numbers."""
    return isinstance(values, np.ma.MaskedArray) and bool(np.ma.is_masked(values))


def all_finite(values: FloatArray) -> bool:
    """Whether all numbers are finite; of few, bytes tell sooner than `all`."""
    return 0 not in np.isfinite(values).tobytes()


def all_of(mask: BoolArray) -> bool:
    """Whether all are true; of few, bytes tell sooner than `all`."""
    return b"\0" not in mask.tobytes()


def plain(array: Array) -> Array:
    """Returns an array that kernels take as it is: one that is strided or cannot be written would compile them anew."""
    flags = array.flags
    return array if flags.c_contiguous and flags.writeable else array.copy()


def ints(values: Iterable[int]) -> IntArray:
    """Returns whole numbers as an array."""
    if isinstance(values, np.ndarray):
        return np.ascontiguousarray(values, dtype=np.int64)
    return np.fromiter(values, dtype=np.int64)


def packed(values: Sequence[int]) -> IntArray:
    """Returns a list of whole numbers as an array: sooner than NumPy, which asks what each is."""
    return np.frombuffer(bytearray(pack(f"{len(values)}q", *values)), np.int64)


def offsets(counts: Iterable[int]) -> IntArray:
    """Returns where each of some groups starts, and where the last one ends."""
    counts = ints(counts)
    ends = np.zeros(len(counts) + 1, dtype=np.int64)
    counts.cumsum(out=ends[1:])
    return ends


def sizes_of(first: IntArray) -> IntArray:
    """Returns how large groups are, given where each starts and the last one ends."""
    return first[1:] - first[:-1]


def ranges(starts: IntArray, sizes: IntArray) -> IntArray:
    """Returns the numbers from each start on, as many as its size, group after group.

    >>> ranges(ints([5, 20]), ints([3, 2])).tolist()
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
