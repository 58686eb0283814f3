"""How kernels are compiled.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts:
that is a `kernel`. What allocates working space, once for many problems, is a `driver`. Both release the
interpreter's lock, are cached on disk, and divide by zero the IEEE way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates nothing."""
    compiled: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy", _nrt=False)(function)
    return compiled


def driver(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates working space and runs kernels in it."""
    compiled: Callable[P, R] = njit(cache=True, nogil=True, error_model="numpy")(function)
    return compiled
