"""Kernels as compiled functions that Python can call: most are compiled only to be called by other kernels."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from hasten.jit import backend, tiers
from hasten.jit.tiers import function_of, is_kernel


@cache
def opened(kernel: Any) -> Callable[..., Any]:
    """Returns a kernel compiled so that Python can call it."""
    if isinstance(kernel, tiers.Driver) or tiers.TIER == tiers.INTERPRETED:
        return kernel
    return backend.dispatcher_of(kernel)


def interpreted(kernel: Any) -> Callable[..., Any]:
    """Returns a kernel as the Python function that it is, and all that it calls."""

    def run(*args: Any) -> Any:
        with tiers.interpreted():
            return function_of(kernel)(*args)

    return run


class OpenedModule:
    """A module of kernels, each opened when it is asked for."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return opened(found) if is_kernel(found) else found
