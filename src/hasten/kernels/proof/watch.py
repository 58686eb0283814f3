"""How work on long problems is stopped from outside: a few numbers that a kernel looks at as it goes.

Kernels hold no lock and hear no signals. Whoever waits for one writes into its watch (`hasten.support.clock`).
"""

from __future__ import annotations

from hasten.jit import inlined_kernel
from hasten.support.arrays import IntArray
from hasten.support.clock import ALL, AT, ONE


@inlined_kernel
def stopped(watch: IntArray) -> bool:
    """Whether the problem that is worked on shall be left as it is."""
    return bool(watch[ALL] != 0 or watch[ONE] == watch[AT])
