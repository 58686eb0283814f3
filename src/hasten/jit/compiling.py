"""How kernels are compiled, and where what was compiled is kept.

Numba counts the references to each array of each tuple at each call, which costs more than the small kernels
themselves (five times the whole of a beam search). A function that allocates nothing needs no such counts:
that is a `kernel`. What allocates scratch space, once for many problems, is a `driver`. Both release the
interpreter's lock, are cached on disk, and divide by zero the IEEE way.

Kernels are called by drivers and by each other; code for calling them from Python would double the time that
compiling takes, so only an `open_kernel` has it. Never call another from Python: there is nothing to call, and the
interpreter crashes (`tests/opened.py` shows how to test them).

A compiled kernel contains the kernels that it calls, whose files Numba's cache does not look at. Ours looks at all
modules that have to do with kernels, that is, that mention `hasten.jit` or stand in its room or in `kernels`: after
an edit or an upgrade of any, all kernels are compiled anew. What was compiled is kept beside the package; where that
cannot be written, in the user's cache directory; where neither can, in memory, with a warning. NUMBA_CACHE_DIR names
another place.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from numba import config, njit

P = ParamSpec("P")
R = TypeVar("R")

_ALWAYS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}
_KERNEL: dict[str, Any] = {"_nrt": False, "no_cpython_wrapper": True}
_HOMES = {"jit", "kernels"}  # the rooms whose modules all count


def stamp_of(package: Path) -> str:
    """Returns what changes with any module of a package that has to do with kernels."""
    digest = hashlib.sha256(f"bounds checked: {config.BOUNDSCHECK}".encode())
    for file in sorted(package.rglob("*.py")):
        source = file.read_bytes()
        if b"hasten.jit" in source or _HOMES & set(file.relative_to(package).parts):
            digest.update(source)
    return digest.hexdigest()


PACKAGE = Path(__file__).parents[1]
STAMP = stamp_of(PACKAGE)
DRIVERS: list[Any] = []  # every driver that was imported, for `hasten compile`


def _compile(function: Callable[P, R], **options: Any) -> Callable[P, R]:
    try:
        compiled: Callable[P, R] = njit(**_ALWAYS, **options, cache=True)(function)
    except RuntimeError:  # Numba found no place that it can write
        _warn_once()
        return njit(**_ALWAYS, **options)(function)  # type: ignore[no-any-return]
    cache: Any = getattr(compiled, "_cache", None)  # none where NUMBA_DISABLE_JIT is set
    if hasattr(cache, "_cache_file"):  # Numba has no public way to say it, and another version may have another name
        name = f"{cache._impl.filename_base}.{STAMP[:12]}"  # old files are not even opened: their types may be gone
        cache._cache_file = type(cache._cache_file)(cache.cache_path, name, STAMP)
    return compiled


def _warn_once() -> None:
    if not _warn_once.__dict__.setdefault("done", False):
        _warn_once.__dict__["done"] = True
        warnings.warn(
            "hasten can write neither beside its package nor to the user's cache directory: it will compile its "
            "kernels in every process, for about half a minute. Set NUMBA_CACHE_DIR to a directory that it can write.",
            RuntimeWarning,
            stacklevel=2,
        )


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
    """Compiles a function that allocates scratch space and runs kernels in it."""
    compiled = _compile(function)
    DRIVERS.append(compiled)
    return compiled


def is_compiled(function: Any) -> bool:
    """Whether a driver has machine code, in memory or on disk, so that calling it will not compile."""
    if function.overloads:
        return True
    cache: Any = getattr(function, "_cache", None)
    index = getattr(getattr(cache, "_cache_file", None), "_index_path", None)
    return index is not None and Path(index).exists()


def remove_old_files() -> int:
    """Removes what other versions of the package left in the cache; returns how many files that were."""
    caches: list[Any] = [getattr(each, "_cache", None) for each in DRIVERS]
    places = {str(cache.cache_path) for cache in caches if hasattr(cache, "cache_path")}
    old = [
        file
        for place in places
        for file in Path(place).glob("*.nb[ic]")
        if f".{STAMP[:12]}." not in file.name and _is_ours(file)
    ]
    for file in old:
        file.unlink(missing_ok=True)
    return len(old)


def _is_ours(file: Path) -> bool:
    """Whether a file of a cache was compiled from a module of this package: its place tells, or its name does."""
    return PACKAGE in file.parents or "hasten" in file.parent.name
