"""How kernels are compiled.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts:
that is a `kernel`. What allocates working space, once for many problems, is a `driver`. Both release the
interpreter's lock, are cached on disk, and divide by zero the IEEE way.

Kernels are called by drivers and by each other; code for calling them from Python would double the time that
compiling takes, so only an `open_kernel` has it. Never call another from Python: there is nothing to call, and the
interpreter crashes (`tests/opened.py` shows how to test them).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_ALWAYS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates nothing, for other kernels and drivers to call."""
    compiled: Callable[P, R] = njit(**_ALWAYS, _nrt=False, no_cpython_wrapper=True)(function)
    return compiled


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a kernel into each of its callers: for the small ones in inner loops, whose call would cost more."""
    compiled: Callable[P, R] = njit(**_ALWAYS, _nrt=False, no_cpython_wrapper=True, inline="always")(function)
    return compiled


def open_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates nothing, for Python to call as well."""
    compiled: Callable[P, R] = njit(**_ALWAYS, _nrt=False)(function)
    return compiled


def driver(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates working space and runs kernels in it."""
    compiled: Callable[P, R] = njit(**_ALWAYS)(function)
    return compiled
