"""Kernels run as the Python functions that they are, with someone watching.

Compiled code does not show what goes on inside. Uncompiled, the same functions take the same steps, number by number
(spans are arrays, records views of their buffers), and each call of one kernel by another can be watched. So what is
seen is what the search or the proof does, not a second version of it. It takes about a thousand times as long.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

Watcher = Callable[..., Any]
"""Is called in place of a kernel, with that kernel uncompiled and its arguments; returns what the kernel returned."""


Driver = Callable[..., Any]
Opener = Callable[[Any], Driver]
"""Says how a driver is called: `compiled`, or uncompiled and watched."""


def compiled(driver: Any) -> Driver:
    """Returns a driver as it is."""
    found: Driver = driver
    return found


def uncompiled(kernel: Any, watchers: Mapping[Any, Watcher]) -> Driver:
    """Returns a kernel, or a driver, as a Python function that calls others the same way, those watched by watchers."""
    opened = _Opened({_function(watched): watcher for watched, watcher in watchers.items()})(kernel)

    def run(*args: Any) -> Any:
        with np.errstate(all="ignore"):  # compiled code does not warn either
            return opened(*args)

    return run


class _Opened:
    """Opens kernels, module by module, each with a namespace in which all kernels are opened."""

    def __init__(self, watchers: Mapping[FunctionType, Watcher]) -> None:
        self.watchers = watchers
        self.functions: dict[FunctionType, Callable[..., Any]] = {}
        self.spaces: dict[str, dict[str, Any]] = {}

    def __call__(self, kernel: Any) -> Callable[..., Any]:
        function = _function(kernel)
        if function not in self.functions:
            space = self.space(function.__module__)
            plain = FunctionType(function.__code__, space, function.__name__, function.__defaults__)
            watcher = self.watchers.get(function)
            self.functions[function] = plain if watcher is None else _watched(watcher, plain)
        return self.functions[function]

    def space(self, module: str) -> dict[str, Any]:
        """Returns the names of a module, its kernels opened."""
        if module not in self.spaces:
            names = self.spaces[module] = dict(vars(sys.modules[module]))
            for name, value in list(names.items()):
                if _is_kernel(value):
                    names[name] = self(value)
                elif isinstance(value, ModuleType) and value.__name__.startswith("hasten.kernels"):
                    names[name] = _Module(self, value)
        return self.spaces[module]


class _Module:
    """A module whose kernels are opened when they are asked for."""

    def __init__(self, opened: _Opened, module: ModuleType) -> None:
        self._opened = opened
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return self._opened(found) if _is_kernel(found) else found


def _function(kernel: Any) -> FunctionType:
    """Returns the function that a kernel was compiled from; without a compiler it is that function."""
    function = getattr(kernel, "py_func", kernel)
    assert isinstance(function, FunctionType)
    return function


def _is_kernel(value: object) -> bool:
    function = getattr(value, "py_func", value)
    return isinstance(function, FunctionType) and function.__module__.startswith("hasten.kernels")


def _watched(watcher: Watcher, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return watcher(plain, *args)

    return call
