"""Numba, imported when something is first compiled: dispatchers for kernels and drivers.

Only what is public in Numba is needed; `hasten.jit.passes`, which makes compiling faster by what is not, may fail.
"""

from __future__ import annotations

import os
import threading
from types import FunctionType
from typing import Any

from numba import njit

from hasten.jit import notices as notices
from hasten.jit import simd_lowering as simd_lowering
from hasten.jit.cache import KernelCache
from hasten.jit.lowering import register_views
from hasten.jit.namespaces import KERNELS, Namespaces

try:
    from hasten.jit import passes
except (ImportError, AttributeError):  # a Numba without what that changes: compiling takes longer, for the same code
    passes = None  # type: ignore[assignment]
try:
    from numba.core import compiler_lock

    LOCK = compiler_lock.global_compiler_lock
except (ImportError, AttributeError):
    LOCK = threading.RLock()

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

if hasattr(os, "register_at_fork"):  # a fork waits for what another thread compiles, which a child could never finish
    os.register_at_fork(before=LOCK.acquire, after_in_parent=LOCK.release, after_in_child=LOCK.release)


def _make(copy: FunctionType, function: FunctionType) -> Any:
    """Returns Numba's dispatcher of a kernel."""
    options = _ALWAYS | KERNELS[function]
    called_by_python = "no_cpython_wrapper" not in options
    if passes is not None:
        options["pipeline_class"] = passes.DriverCompiler if called_by_python else passes.PartCompiler
    dispatcher = njit(**options)(copy)
    if called_by_python:  # other kernels are kept as parts of these
        dispatcher._cache = KernelCache(function)
    elif passes is not None:
        passes.take_any_numbers(dispatcher)
    return dispatcher


_DISPATCHERS = Namespaces(_make)


def dispatcher_of(function: FunctionType) -> Any:
    """Returns Numba's dispatcher of a driver, which compiles when it is called."""
    with LOCK:
        register_views()
        return _DISPATCHERS.kernel(function)


def opened(kernel: FunctionType) -> Any:
    """Returns a kernel compiled so that Python can call it, for tests."""
    copy = dispatcher_of(kernel).py_func
    return njit(nogil=True, error_model="numpy", _nrt=False)(copy)
