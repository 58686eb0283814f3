"""Kernels as Python functions: most are compiled only to be called by other kernels (`hasten.jit`)."""

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from numba import njit


@cache
def opened(kernel: Any) -> Callable[..., Any]:
    """Returns a kernel compiled so that Python can call it."""
    if getattr(kernel, "targetoptions", {}).get("no_cpython_wrapper"):
        return njit(nogil=True, error_model="numpy", _nrt=False)(kernel.py_func)
    return kernel


class OpenedModule:
    """A module of kernels, each opened when it is asked for."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        return opened(found) if hasattr(found, "py_func") else found
