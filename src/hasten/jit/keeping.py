"""Where compiled kernels are kept: NUMBA_CACHE_DIR, else beside the package, else the user's cache directory.

Numba looks for a place that it can write. A container often has none: its kernels were compiled when the image was
built, by another user, or its file system is read-only now. So here a place also counts if it can only be read but
holds the kernel in question. Where a kernel is compiled and cannot be written, there is one warning, and it stays
in memory.

A compiled kernel contains the kernels that it calls, whose files Numba's cache does not look at. Ours looks at all
modules that have to do with kernels: after an edit or an upgrade of any of them, all kernels are compiled anew.
"""

from __future__ import annotations

import hashlib
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar

from numba import config
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, NullCache

from hasten.jit.notices import NOTICES

_HOMES = {"jit", "kernels"}  # the rooms whose modules all count


def counts(file: Path, package: Path) -> bool:
    """Whether a module has to do with kernels: it mentions `hasten.jit`, or stands in its room or in `kernels`."""
    return bool(_HOMES & set(file.relative_to(package).parts)) or b"hasten.jit" in file.read_bytes()


def stamp_of(package: Path) -> str:
    """Returns what changes with any module of a package that has to do with kernels."""
    digest = hashlib.sha256(f"bounds checked: {config.BOUNDSCHECK}".encode())
    for file in sorted(package.rglob("*.py")):
        if counts(file, package):
            digest.update(file.read_bytes())
    return digest.hexdigest()


PACKAGE = Path(__file__).parents[1]
STAMP = stamp_of(PACKAGE)


class _Readable:
    """A place that can be written or, if it cannot, has what was compiled of this function."""

    def __init__(self, function: Any, file: str) -> None:
        super().__init__(function, file)  # type: ignore[call-arg]
        self.pattern = f"{Path(file).stem}.{function.__qualname__}-*.{STAMP[:12]}.nbi"

    def ensure_cache_path(self) -> None:
        try:
            super().ensure_cache_path()  # type: ignore[misc]
        except OSError:
            if not any(Path(self.get_cache_path()).glob(self.pattern)):  # type: ignore[attr-defined]
                raise


class _Places(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes: ClassVar[list[type]] = [
        type(each.__name__, (_Readable, each), {}) for each in CompileResultCacheImpl._locator_classes
    ]


class KernelCache(FunctionCache):  # type: ignore[misc]
    """What is kept of one kernel. Its files carry the stamp: those of other versions are not even opened."""

    _impl_class = _Places

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        name = f"{self._impl.filename_base}.{STAMP[:12]}"
        self._cache_file: Any = IndexDataCacheFile(self.cache_path, name, STAMP)

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Writes what was compiled, if that is possible."""
        try:
            super().save_overload(signature, compiled)
        except OSError:  # the place can only be read, or is full
            _warn_once()
        except RuntimeError:
            if getattr(compiled.library, "_compiled_object", None) is not None:
                raise
            signal.raise_signal(signal.SIGINT)  # it came while LLVM handed over the code, and was lost

    @property
    def has_files(self) -> bool:
        """Whether something compiled of this kernel is there."""
        return Path(self._cache_file._index_path).exists()


class _Nowhere(NullCache):  # type: ignore[misc]
    """Keeps nothing, and says so once there is something to keep."""

    def save_overload(self, signature: Any, compiled: Any) -> None:
        _warn_once()


def keep_on_disk(compiled: Any) -> None:
    """Lets a kernel be read from where it is kept, and be written there once it is compiled."""
    try:
        compiled._cache = KernelCache(compiled.py_func)
    except RuntimeError:  # no place can be written, and none has it
        NOTICES.kept = False
        compiled._cache = _Nowhere()


def _warn_once() -> None:
    if not NOTICES.warned:
        NOTICES.warned = True
        warnings.warn(
            "hasten can write its compiled kernels neither beside its package nor to the user's cache directory, so it "
            "compiles them again in each process. Set NUMBA_CACHE_DIR to a directory that it can write, or run "
            "`hasten compile` once as a user who can write beside the package.",
            RuntimeWarning,
            stacklevel=2,
        )


def remove_old_files(kernels: list[Any]) -> int:
    """Removes what other versions of the package left where its kernels are kept; returns how many files it removed."""
    ours = [each for each in kernels if PACKAGE in Path(each.py_func.__code__.co_filename).parents]
    places = {Path(each._cache.cache_path) for each in ours if isinstance(each._cache, KernelCache)}
    n_removed = 0
    for file in (file for place in places for file in place.glob("*.nb[ic]")):
        if f".{STAMP[:12]}." not in file.name:
            with suppress(OSError):  # it can only be read
                file.unlink()
                n_removed += 1
    return n_removed
