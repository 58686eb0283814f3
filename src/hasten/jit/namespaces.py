"""Copies of kernels that call copies of each other: watched ones, or compiled ones.

A kernel calls others by the names of its module. So a module is copied, every kernel in it replaced, and the code of
each kernel is run with the copy's names.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

SECONDS = 1e-4  # that compiling takes for each byte of bytecode
KERNELS: dict[FunctionType, dict[str, Any]] = {}  # every kernel and driver, with the options that it is compiled with


def function_of(kernel: Any) -> FunctionType:
    """Returns the Python function of a kernel or a driver."""
    function = getattr(kernel, "py_func", kernel)
    assert isinstance(function, FunctionType)
    return function


def is_kernel(value: Any) -> bool:
    """Whether a value is a kernel or a driver."""
    return isinstance(value, FunctionType | partial) and getattr(value, "py_func", value) in KERNELS


class Namespaces:
    """Copies of modules in which `make(copy, function)` stands for each kernel."""

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
