"""How kernels are compiled.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts:
that is a `kernel`. What allocates working space, once for many problems, is a `driver`. Both release the
interpreter's lock, are cached on disk, and divide by zero the IEEE way.

Kernels are called by drivers and by each other; code for calling them from Python would double the time that
compiling takes, so only an `open_kernel` has it. Never call another from Python: there is nothing to call, and the
interpreter crashes (`tests/opened.py` shows how to test them).

A compiled kernel contains the kernels that it calls, whose files Numba's cache does not look at. Ours looks at all
modules that have to do with kernels, that is, that mention `hasten.jit`: after an edit or an upgrade of any, all
kernels are compiled anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import njit

P = ParamSpec("P")
R = TypeVar("R")

_ALWAYS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_KERNEL: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True}


def stamp_of(package: Path) -> str:
    """Returns what changes with any module of a package that has to do with kernels."""
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if b"hasten.jit" in source or {"jit", "kernels"} & set(file.parts):
            digest.update(source)
    return digest.hexdigest()


STAMP = stamp_of(Path(__file__).parents[1])


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    compiled: Callable[P, R] = njit(**_ALWAYS, **options)(function)
    cache: Any = getattr(compiled, "_cache", None)  # none where NUMBA_DISABLE_JIT is set
    if hasattr(cache, "_cache_file"):  # Numba has no public way to say it, and another version may have another name
        name = f"{cache._impl.filename_base}.{STAMP[:12]}"  # old files are not even opened: their types may be gone
        cache._cache_file = type(cache._cache_file)(cache.cache_path, name, STAMP)
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
    """Compiles a function that allocates working space and runs kernels in it."""
    return _compile(function)
