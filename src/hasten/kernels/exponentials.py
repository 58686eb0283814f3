"""Exponentials and logarithms of lanes (`hasten.jit.records`), by series: the same bits on every tier."""

from __future__ import annotations

import math

from hasten.jit import kernel
from hasten.jit.records import exponent, greater, scale, spread, where_less
from hasten.support.arrays import FloatArray

LEAST = -708.0  # below which exponentials are taken for 0
PER_OCTAVE, OCTAVE, OCTAVE_REST = 1.0 / math.log(2.0), 6.93147180369123816490e-01, 1.90821492927058770002e-10
TO_WHOLE = 1.5 * 2.0**52  # added and subtracted again, rounds a float to a whole number
ROOT = math.sqrt(2.0)
E2, E3, E4, E5, E6, E7, E8, E9, E10, E11, E12, E13 = (1.0 / math.factorial(n) for n in range(2, 14))
L1, L2, L3, L4, L5, L6, L7, L8, L9, L10 = (1.0 / (2 * n + 1) for n in range(1, 11))


@kernel
def exponential(x: FloatArray) -> FloatArray:
    """Returns e to the power of lanes that are at most about 0; -inf included."""
    least = spread(LEAST)
    y = greater(x, least)
    n = (y * spread(PER_OCTAVE) + spread(TO_WHOLE)) - spread(TO_WHOLE)
    r = (y - n * spread(OCTAVE)) - n * spread(OCTAVE_REST)
    series = spread(E12) + r * spread(E13)
    series = spread(E11) + r * series
    series = spread(E10) + r * series
    series = spread(E9) + r * series
    series = spread(E8) + r * series
    series = spread(E7) + r * series
    series = spread(E6) + r * series
    series = spread(E5) + r * series
    series = spread(E4) + r * series
    series = spread(E3) + r * series
    series = spread(E2) + r * series
    found: FloatArray = where_less(x, least, spread(0.0), scale(spread(1.0) + (r + r * r * series), n))
    return found


@kernel
def logarithm(x: FloatArray) -> FloatArray:
    """Returns the logarithm of lanes that are positive, and not subnormal."""
    n = exponent(x)
    m = scale(x, spread(0.0) - n)
    high = where_less(m, spread(ROOT), spread(0.0), spread(1.0))
    n, m = n + high, scale(m, spread(0.0) - high)
    f = m - spread(1.0)
    s = f / (m + spread(1.0))
    z = s * s
    series = spread(L9) + z * spread(L10)
    series = spread(L8) + z * series
    series = spread(L7) + z * series
    series = spread(L6) + z * series
    series = spread(L5) + z * series
    series = spread(L4) + z * series
    series = spread(L3) + z * series
    series = spread(L2) + z * series
    series = spread(L1) + z * series
    small = spread(2.0) * s + spread(2.0) * s * z * series
    found: FloatArray = n * spread(OCTAVE) + (small + n * spread(OCTAVE_REST))
    return found
