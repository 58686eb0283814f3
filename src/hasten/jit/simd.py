"""SIMD lanes: eight problems side by side, whose numbers are added and compared eight at a time.

A kernel does the same to every problem of one shape, so it does it to eight at once: number `x` of problem `lane`
lies at `WIDTH * x + lane` of a span. Compiled, lanes are a vector register (`hasten.jit.simd_lowering`); in Python they
are an array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

WIDTH = 8


def load(span: Any, x: int) -> Any:
    """Returns number `x` of each problem."""
    return span[WIDTH * x : WIDTH * (x + 1)].copy()


def store(span: Any, x: int, lanes: Any) -> None:
    """Writes number `x` of each problem."""
    span[WIDTH * x : WIDTH * (x + 1)] = lanes


def gather(span: Any, start: Any, x: int) -> Any:
    """Returns number `x` of each problem, where those of problem `lane` start at `start[lane]`."""
    return np.array([span[start[lane] + x] for lane in range(WIDTH)])


def spread(value: float) -> Any:
    """Returns the same number for each problem."""
    return np.full(WIDTH, value)


def lesser(one: Any, other: Any) -> Any:
    """Returns the lesser of two numbers of each problem."""
    return np.where(one < other, one, other)


def greater(one: Any, other: Any) -> Any:
    """Returns the greater of two numbers of each problem."""
    return np.where(one > other, one, other)


def where_less(one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    """Returns `then` where one number is less than the other."""
    return np.where(one < other, then, otherwise)


def where_equal(one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    """Returns `then` where two numbers are equal."""
    return np.where(one == other, then, otherwise)


def scale(one: Any, power: Any) -> Any:
    """Returns numbers times two to the power of whole numbers; neither they nor the products are subnormal."""
    return np.ldexp(one, power.astype(np.int64))


def exponent(one: Any) -> Any:
    """Returns the power of two at or below numbers that are positive and not subnormal."""
    return np.frexp(one)[1] - 1.0
