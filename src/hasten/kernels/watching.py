"""Kernels run as the Python functions that they are, with someone watching.

Compiled code does not show what goes on inside. Uncompiled, the same functions take the same steps, number by number
(spans are arrays, records views of their buffers), and each call of one kernel by another can be watched. So what is
seen is what the search or the proof does, not a second version of it. It takes about a thousand times as long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from hasten.jit.namespaces import Namespaces, function_of
from hasten.jit.tiers import interpreted

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
    of = {function_of(watched): watcher for watched, watcher in watchers.items()}

    def make(copy: FunctionType, function: FunctionType) -> Callable[..., Any]:
        return _watched(of[function], copy) if function in of else copy

    opened = Namespaces(make).kernel(kernel)

    def run(*args: Any) -> Any:
        with interpreted():
            return opened(*args)

    return run


def _watched(watcher: Watcher, plain: Callable[..., Any]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        return watcher(plain, *args)

    return call
