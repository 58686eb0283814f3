"""Numba, imported when something is first compiled: dispatchers for kernels and drivers.

`hasten.jit.passes`, which makes compiling faster by what is not public in Numba, may fail.
"""

from __future__ import annotations

import gc
import logging
import threading
from collections.abc import Callable
from functools import cache, partial
from types import FunctionType
from typing import Any

from numba import njit

from hasten.jit import tiers
from hasten.jit.cache import KernelCache, can_write
from hasten.jit.lowering import register_views
from hasten.jit.tracing import Namespaces
from hasten.support import clock

try:
    from hasten.jit import passes
except (ImportError, AttributeError):  # a Numba without what that changes: compiling takes longer, for the same code
    passes = None  # type: ignore[assignment]
try:
    from numba.core import compiler_lock

    LOCK = compiler_lock.global_compiler_lock
except (ImportError, AttributeError):
    LOCK = threading.RLock()

log = logging.getLogger("hasten")
NOTICE = (
    "hasten is compiling kernels for this machine: about {} s of processor time for this one, at most {} s for all "
    "that are left; {}."
)
KEPT, NOT_KEPT = "they are kept for later", "there is no place to keep them"

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}

tiers.FORK_LOCKS.append(LOCK)


class NoticingCache(KernelCache):
    """Says once in each process that drivers are compiled, so that nobody waits in silence."""

    told = False

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Returns what was compiled; if there is nothing, it is compiled next."""
        found = super().load_overload(signature, target)
        if found is None and not NoticingCache.told:
            NoticingCache.told = True
            tell_compiling(self.function)
        return found


def tell_compiling(function: FunctionType) -> None:
    """Says in the log how long compiling takes; bars that a command shows stay below it."""
    this, left = tiers.seconds_to_compile(function), [each.py_func for each in tiers.DRIVERS if not each.is_compiled]
    seconds = [max(1, round(each)) for each in (this, max(this, sum(map(tiers.seconds_to_compile, left))))]
    log.warning(NOTICE.format(*seconds, KEPT if can_write() else NOT_KEPT))


def _dispatcher(copy: FunctionType, function: FunctionType, options: dict[str, Any]) -> Any:
    """Returns a dispatcher that Python can call, with the cache of its function."""
    dispatcher = njit(**_ALWAYS, **options)(copy)
    dispatcher._cache, dispatcher.compile = NoticingCache(function), partial(_uncounted, dispatcher.compile)
    return dispatcher


def _uncounted(compile: Callable[[Any], Any], signature: Any) -> Any:
    """Compiles or loads, without looking for garbage: there is much to look through, and little to find."""
    looked = gc.isenabled()
    gc.disable()
    try:
        with LOCK, clock.uncounted():
            return compile(signature)
    finally:
        if looked:
            gc.enable()


def _make(copy: FunctionType, function: FunctionType) -> Any:
    """Returns the dispatcher of a driver, or of a kernel as a part of those that call it."""
    if not tiers.KERNELS[function]:
        return _dispatcher(copy, function, {})
    compiler = {} if passes is None else {"pipeline_class": passes.PartCompiler}
    part = njit(**_ALWAYS, **tiers.KERNELS[function], **compiler, no_cpython_wrapper=True)(copy)
    if passes is not None:
        passes.take_any_numbers(part)
    return part


_DISPATCHERS = Namespaces(_make)


@cache
def dispatcher_of(function: FunctionType) -> Any:
    """Returns a dispatcher that Python can call, of a driver or a kernel; it compiles when it is called."""
    with LOCK:
        register_views()
        made = _DISPATCHERS.kernel(function)
        return made if not tiers.KERNELS[function] else _dispatcher(made.py_func, function, {"_nrt": False})
