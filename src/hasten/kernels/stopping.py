"""The stop flag, as kernels look at it (`hasten.support.clock`)."""

from __future__ import annotations

from hasten.jit import inlined_kernel
from hasten.support.arrays import IntArray
from hasten.support.clock import ALL, AT, ONE


@inlined_kernel
def stopped(watch: IntArray) -> bool:
    """Whether work on the problem at hand shall stop."""
    return bool(watch[ALL] != 0 or watch[ONE] == watch[AT])
