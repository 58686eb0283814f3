"""Tracing kernels: they run as plain Python functions, and hooks are called in place of some of them.

Compiled code does not show what goes on inside. Interpreted, the same functions take the same steps, number by number,
and each call of one kernel by another can be seen. So a trace shows what the search or the proof does, not a second
version of it. It takes about a thousand times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from types import FunctionType, ModuleType
from typing import Any

from hasten.jit.tiers import DRIVERS, Driver, function_of, interpreted, is_kernel


class Namespaces:
    """Copies of modules in which `make(copy, function)` stands for each kernel: hooked, or compiled.

    A kernel calls others by the names of its module. So a module is copied, every kernel in it replaced, and the code
    of each kernel is run with the copy's names.
    """

    def __init__(self, make: Callable[[FunctionType, FunctionType], Any]) -> None:
        self.make = make
        self.kernels: dict[FunctionType, Any] = {}
        self.modules: dict[int, ModuleType] = {}  # by the identity of their names, which live as long as the package

    def kernel(self, kernel: Any) -> Any:
        """Returns what stands for a kernel."""
        function = function_of(kernel)
        if function not in self.kernels:
            names = vars(self._copy_of(function.__module__, function.__globals__))
            if function not in self.kernels:  # unless it was made with its module
                copy = FunctionType(function.__code__, names, function.__name__, function.__defaults__)
                copy.__module__, copy.__qualname__ = function.__module__, function.__qualname__
                self.kernels[function] = self.make(copy, function)
        return self.kernels[function]

    def _copy_of(self, name: str, names: dict[str, Any]) -> ModuleType:
        if id(names) not in self.modules:
            copy = self.modules[id(names)] = ModuleType(name)
            vars(copy).update(names)
            for key, value in list(names.items()):
                if is_kernel(value):
                    vars(copy)[key] = self.kernel(value)
                elif isinstance(value, ModuleType) and any(map(is_kernel, vars(value).values())):
                    vars(copy)[key] = self._copy_of(value.__name__, vars(value))
        return self.modules[id(names)]


class Call:
    """A call of a kernel: its arguments, by their names, and `run` to carry it out."""

    def __init__(self, kernel: FunctionType, args: tuple[Any, ...]) -> None:
        names = kernel.__code__.co_varnames[: kernel.__code__.co_argcount]
        self.arguments = dict(zip(names, args, strict=False))  # the last ones may be left to their defaults
        self._kernel = kernel

    def __getattr__(self, name: str) -> Any:
        return self.arguments[name]

    def run(self, **changed: Any) -> Any:
        """Runs the kernel, with some arguments changed, and returns its result."""
        return self._kernel(**self.arguments | changed)


Hook = Callable[[Call], Any]  # is called in place of a kernel, and returns what the kernel should return

_HOOKED: ContextVar[Namespaces | None] = ContextVar("hooked", default=None)
_ONE_AT_A_TIME = Lock()


@contextmanager
def hooked(hooks: Mapping[Any, Hook]) -> Iterator[None]:
    """Interprets the drivers that are called within, in this thread and those that work for it.

    Each hook is called in place of its kernel. Other threads notice nothing, unless they trace as well: then they
    wait.
    """
    of = {function_of(kernel): hook for kernel, hook in hooks.items()}

    def make(copy: FunctionType, function: FunctionType) -> Callable[..., Any]:
        return (lambda *args: of[function](Call(copy, args))) if function in of else copy

    with _ONE_AT_A_TIME:
        before = {driver: driver.func for driver in DRIVERS}
        token = _HOOKED.set(Namespaces(make))
        try:
            for driver, run in before.items():
                driver.point_to(partial(_run, driver, run))
            yield
        finally:
            _HOOKED.reset(token)
            for driver, run in before.items():
                driver.point_to(driver.dispatcher or run)  # another thread may have compiled it


def _run(driver: Driver, run: Callable[..., Any], *args: Any) -> Any:
    kernels = _HOOKED.get()
    if kernels is None:
        return run(*args)
    with interpreted():
        return kernels.kernel(driver)(*args)
