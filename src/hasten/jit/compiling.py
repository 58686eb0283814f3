"""The ways to compile a kernel.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts:
that is a `kernel`. What allocates scratch space, once for many problems, is a `driver`. Both release the
interpreter's lock and divide by zero the IEEE way. What Python can call is kept on disk once it is compiled, with the
kernels that it calls (`hasten.jit.keeping`).

Kernels are called by drivers and by each other; code for calling them from Python would double the time that
compiling takes, so only an `open_kernel` has it. Never call another from Python: there is nothing to call, and the
interpreter crashes (`tests/opened.py` shows how to test them).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from numba import njit
from numba.core.compiler_lock import global_compiler_lock

from hasten.jit.keeping import KernelCache, keep_on_disk
from hasten.jit.parts import KNOWN, take_any_numbers
from hasten.jit.pipelines import DriverCompiler, PartCompiler

P = ParamSpec("P")
R = TypeVar("R")

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_KERNEL: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True}
if KNOWN:
    _ALWAYS["pipeline_class"], _KERNEL["pipeline_class"] = DriverCompiler, PartCompiler
DRIVERS: list[Any] = []  # every driver that was imported, for `hasten compile`


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    compiled: Callable[P, R] = njit(**_ALWAYS | options)(function)
    if not hasattr(compiled, "py_func"):  # where NUMBA_DISABLE_JIT is set
        return compiled
    if "no_cpython_wrapper" not in options:  # others, which Python does not call, are kept as parts of these
        keep_on_disk(compiled)
    elif KNOWN:
        take_any_numbers(compiled)
    return compiled


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates nothing, for other kernels and drivers to call."""
    return _compile(function, **_KERNEL)


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a kernel into each of its callers: for the small ones in inner loops, whose call would cost more."""
    return _compile(function, **_KERNEL, inline="always")


def open_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates nothing, for Python to call as well."""
    return _compile(function, _nrt=False)


def driver(function: Callable[P, R]) -> Callable[P, R]:
    """Compiles a function that allocates scratch space and runs kernels in it."""
    compiled = _compile(function)
    DRIVERS.append(compiled)
    return compiled


if hasattr(os, "register_at_fork"):  # a fork waits for what another thread compiles, which a child could never finish
    release = global_compiler_lock.release
    os.register_at_fork(before=global_compiler_lock.acquire, after_in_parent=release, after_in_child=release)


def is_compiled(function: Any) -> bool:
    """Whether a driver has machine code, in memory or on disk, so that calling it will not compile."""
    cache = function._cache
    return bool(function.overloads) or (isinstance(cache, KernelCache) and cache.has_files)
