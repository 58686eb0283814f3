"""Two tiers: a driver is interpreted at first, and compiled once that pays.

Kernels are plain Python functions on arrays, and Numba's compiler takes seconds for a driver. Python itself answers a
few small problems sooner. So a *driver*, which Python calls, is interpreted until that has cost about as much as
compiling it would (the ski-rental rule: never more than twice the best), or until a call is clearly too large. Then it
is compiled, or loaded from the kernel cache, and all later calls go straight to the compiled code. Both tiers give the
same bits. HASTEN_TIER=compiled or interpreted forces a tier, as NUMBA_DISABLE_JIT=1 does.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts: that is a
`kernel`. A function that allocates scratch space, once for many problems, is a `driver`. Both release the interpreter's
lock and divide by zero the IEEE way. Only drivers and open kernels have code for calling them from Python; a `kernel`
called from Python is interpreted (`tests/opened.py` shows how to test the compiled one).
"""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, partial
from itertools import pairwise
from types import CodeType, FunctionType, ModuleType
from typing import Any, ClassVar, ParamSpec, TypeVar, cast

import numpy as np

from hasten.jit.cache import is_on_disk
from hasten.jit.records import Record
from hasten.support import clock

P = ParamSpec("P")
R = TypeVar("R")

COMPILED, INTERPRETED, AUTO = "compiled", "interpreted", "auto"
TIER = INTERPRETED if os.environ.get("NUMBA_DISABLE_JIT", "0") == "1" else os.environ.get("HASTEN_TIER") or AUTO
if TIER not in (COMPILED, INTERPRETED, AUTO):
    raise ValueError(f"HASTEN_TIER is {TIER!r}. Set it to compiled, interpreted or auto.")
clock.SLOWNESS = 1.0 if TIER == COMPILED else 100.0

FREE = 0.25  # seconds that a process interprets before it imports Numba, which takes twice as long
PRIOR = 3e-7  # seconds that a call may take for each number of its arrays, times the root of how many they are
TRIAL = 0.05  # of the time that compiling takes, for which a call is interpreted that seems too large
COPYING = 2e-8  # seconds that are lost for each number if that was in vain
SECONDS = 1e-4  # that compiling takes for each byte of bytecode
KERNELS: dict[FunctionType, dict[str, Any]] = {}  # every kernel and driver, with the options that it is compiled with
DRIVERS: list[Driver] = []  # every driver that was imported, for `hasten compile`
_HERE = threading.local()  # whether this thread interprets a driver
FORK_LOCKS: list[Any] = [threading.RLock()]  # of importing Numba; and Numba's own, for compiling, once it is imported


def _hold_locks() -> None:
    for lock in FORK_LOCKS:  # while this waits for the first, the second may be added
        lock.acquire()


def _release_locks() -> None:
    for lock in FORK_LOCKS:
        lock.release()


if hasattr(
    os, "register_at_fork"
):  # a fork waits for what another thread imports or compiles: no child could finish it
    os.register_at_fork(before=_hold_locks, after_in_parent=_release_locks, after_in_child=_release_locks)


def function_of(kernel: Any) -> FunctionType:
    """Returns the Python function of a kernel or a driver."""
    function = getattr(kernel, "py_func", kernel)
    assert isinstance(function, FunctionType)
    return function


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel or a driver."""
    return isinstance(value, FunctionType | partial) and getattr(value, "py_func", value) in KERNELS


@cache
def seconds_to_compile(kernel: Any) -> float:
    """Returns about how long compiling a kernel takes, with all that it calls: by the size of their bytecode."""
    seen: set[CodeType] = set()

    def size(function: FunctionType) -> int:
        """Returns the bytes of a function and of all that it calls; an inlined one counts each time."""
        code = function.__code__
        if code in seen and "inline" not in KERNELS.get(function, ()):
            return 0
        seen.add(code)
        found = [function.__globals__.get(name) for name in code.co_names]
        within = [vars(each).get(name) for each in found if isinstance(each, ModuleType) for name in code.co_names]
        return len(code.co_code) + sum(size(function_of(each)) for each in (*found, *within) if is_kernel(each))

    return SECONDS * size(function_of(kernel))


class _TooLong(BaseException):
    """Interpreting a driver took longer than it was worth."""


class Driver(partial[Any]):
    """A function that Python calls. It is a `partial` whose function is replaced: once compiled, it costs nothing."""

    py_func: Any  # the Python function
    is_open: bool  # called by kernels as well
    stop_flag_at: int | None  # which argument is the watch by which it is stopped
    dispatcher: Any  # Numba's, once it is compiled
    seconds: float  # that it was interpreted
    rate: float  # seconds for each number of its arrays, in the slowest call
    all_seconds: ClassVar[float] = 0.0  # that this process interpreted

    def __new__(cls, function: FunctionType, is_open: bool = False) -> Driver:
        """Makes a driver that is not compiled yet."""
        driver = super().__new__(cls, function)
        names = function.__code__.co_varnames[: function.__code__.co_argcount]
        about = {name: getattr(function, name) for name in ("__module__", "__name__", "__qualname__", "__doc__")}
        driver.__dict__.update(about, __wrapped__=function, py_func=function, is_open=is_open, dispatcher=None)
        driver.__dict__.update(
            stop_flag_at=names.index("stop_flag") if "stop_flag" in names else None, seconds=0.0, rate=0.0
        )
        driver.point_to(driver._choose)
        return driver

    def point_to(self, run: Callable[..., Any]) -> None:
        """Says what is called in its place from now on."""
        self.__setstate__((run, (), {}, self.__dict__))  # type: ignore[attr-defined]

    def __reduce__(self) -> str:
        return str(self.py_func.__qualname__)

    @property
    def overloads(self) -> dict[Any, Any]:
        """The signatures that were compiled or loaded."""
        return {} if self.dispatcher is None else dict(self.dispatcher.overloads)

    @property
    def is_compiled(self) -> bool:
        """Whether there is machine code, in memory or on disk, so that calling it will not compile."""
        return bool(self.overloads) or is_on_disk(self.py_func)

    @cached_property
    def _is_kept(self) -> bool:
        return is_on_disk(self.py_func)

    def compile(self) -> Callable[..., Any]:
        """Goes over to compiled code for good, and returns it: Numba compiles or loads it when it is called."""
        if self.dispatcher is None:
            try:
                with FORK_LOCKS[0]:
                    from hasten.jit.backend import dispatcher_of
            except (ImportError, AttributeError) as error:
                return self._do_without(error)
            self.dispatcher = dispatcher_of(self.py_func)
            if not self.is_open:  # an interpreted kernel may call it, with arrays of other layouts
                self.point_to(self.dispatcher)
        run: Callable[..., Any] = self.dispatcher
        return run

    def _do_without(self, error: Exception) -> Callable[..., Any]:
        global TIER
        if TIER == COMPILED:  # it was asked for
            raise error
        TIER = INTERPRETED
        warnings.warn(
            f"hasten cannot compile its kernels with the Numba that is installed ({error}), so it interprets them, "
            "which takes about a hundred times as long. Install a Numba that hasten supports: pip install hasten.",
            RuntimeWarning,
            stacklevel=2,
        )
        return self

    def _choose(self, *args: Any) -> Any:
        if getattr(_HERE, "interpreting", False):
            return self.py_func(*args)
        seconds = 0.0 if self.dispatcher is not None else self._worth(args)
        if not seconds:
            return self.compile()(*args)
        start = time.thread_time()
        found = self._interpret(args) if TIER == INTERPRETED else self._try(args, seconds)
        took = time.thread_time() - start
        self.seconds, Driver.all_seconds = self.seconds + took, Driver.all_seconds + took
        self.rate = max(self.rate, took / max(1, sum(each.size for each in _arrays(args))))
        return found

    def _worth(self, args: tuple[Any, ...]) -> float:
        """Returns for how many seconds a call is worth interpreting; 0 is not at all."""
        if TIER != AUTO:
            return 0.0 if TIER == COMPILED else np.inf
        n = sum(each.size for each in _arrays(args))
        expected = n * max(self.rate, PRIOR * n**0.5)
        is_free = Driver.all_seconds + expected <= FREE and "hasten.jit.backend" not in sys.modules
        wait, left = seconds_to_compile(self.py_func), np.inf
        if self.stop_flag_at is not None:
            left = clock.seconds_left(args[self.stop_flag_at])
        if not (is_free and left > 2 * wait) and self._is_kept:
            return FREE if is_free else 0.0
        if left < 2 * wait:
            return np.inf  # a clock stops it before compiled code would pay
        if is_free:
            return max(FREE, wait)
        budget = wait - self.seconds
        if expected < budget:
            return budget
        return TRIAL * wait if n * COPYING < TRIAL * wait < budget else 0.0  # a large batch, of which it may answer few

    def _try(self, args: tuple[Any, ...], seconds: float) -> Any:
        """Interprets a driver for so long, on copies of its arrays; if that is not enough, drops them and compiles.

        A driver that does not look at its stop flag in time is begun anew, with the flag set.
        Other threads may write to other entries of the same arrays meanwhile, so only changed entries are copied back.
        A stop flag is not copied: its clock writes to it.
        """
        stop_flag = None if self.stop_flag_at is None else args[self.stop_flag_at]
        written = {id(each): each for each in _arrays(args) if each.flags.writeable and each is not stop_flag}
        if sys.gettrace() is not None or _overlap(written.values()):
            return self._interpret(args)  # a debugger has the hook, or copies would not see each other's changes
        copies = {key: (each, each.copy(), each.copy()) for key, each in written.items()}
        until, at_least = time.thread_time() + seconds, time.perf_counter() + seconds

        def stop_when_late(*_: Any) -> None:
            late = time.perf_counter() > at_least and time.thread_time() > until  # the first takes no time to ask
            if late or (stop_flag is not None and clock.seconds_left(stop_flag) < -clock.PATIENCE):
                raise _TooLong

        try:
            found = self._interpret(args, {key: after for key, (_, _, after) in copies.items()}, stop_when_late)
        except _TooLong:
            if stop_flag is None or clock.seconds_left(stop_flag) > 0.0:
                return self.compile()(*args)
            stop_flag[clock.STOP_ALL] = 1
            return self._interpret(args)
        for array, before, after in copies.values():
            if before.tobytes() != after.tobytes():
                bits = f"V{array.itemsize}"
                np.copyto(array, after, where=before.view(bits) != after.view(bits))
        return found

    def _interpret(
        self, args: tuple[Any, ...], copies: dict[int, Any] | None = None, on_call: Callable[..., None] | None = None
    ) -> Any:
        """Interprets a driver, maybe on copies of arrays; `on_call` is called whenever it calls a kernel."""
        prepared = _interpretable(args, copies or {})
        with interpreted():
            if on_call is None:
                found = self.py_func(*prepared)
            else:
                sys.settrace(on_call)
                try:
                    found = self.py_func(*prepared)
                finally:
                    sys.settrace(None)
        return _plain(found)


@contextmanager
def interpreted() -> Iterator[None]:
    """Runs kernels within as Python functions, open ones too, and without warnings: compiled code gives none either."""
    before, _HERE.interpreting = getattr(_HERE, "interpreting", False), True
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        _HERE.interpreting = before


def _arrays(value: Any) -> Iterator[Any]:
    for each in value:
        if isinstance(each, tuple):
            yield from _arrays(each)
        elif isinstance(each, Record):
            yield each.buffer
        elif isinstance(each, np.ndarray):
            yield each


def _overlap(arrays: Iterable[Any]) -> bool:
    bounds = sorted(np.lib.array_utils.byte_bounds(each) for each in arrays if each.size)
    return any(begin < end for (_, end), (begin, _) in pairwise(bounds))


def _interpretable(value: Any, copies: dict[int, Any]) -> Any:
    """Returns arguments with their arrays replaced by copies, and NumPy's floats: they divide by zero the IEEE way."""
    if isinstance(value, tuple):
        values = [_interpretable(each, copies) for each in value]
        return value._make(values) if hasattr(value, "_make") else tuple(values)
    if isinstance(value, Record):
        return type(value)(copies[id(value.buffer)]) if id(value.buffer) in copies else value
    return np.float64(value) if type(value) is float else copies.get(id(value), value)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return value.item() if isinstance(value, np.generic) else value


_KERNEL: dict[str, Any] = {"_nrt": False}  # no references are counted


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that allocates nothing, for other kernels and drivers to call."""
    KERNELS[cast(FunctionType, function)] = _KERNEL
    return function


def inlined_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a kernel to be compiled into each caller: a small one in inner loops, whose call would cost more."""
    KERNELS[cast(FunctionType, function)] = _KERNEL | {"inline": "always"}
    return function


def open_kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that allocates nothing, for Python to call as well."""
    KERNELS[cast(FunctionType, function)] = _KERNEL
    return Driver(cast(FunctionType, function), is_open=True)


def driver(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function that allocates scratch space and runs kernels in it."""
    KERNELS[cast(FunctionType, function)] = {}
    found = Driver(cast(FunctionType, function))
    DRIVERS.append(found)
    return found
