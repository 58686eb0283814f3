"""The kernel cache: compiled drivers on disk, in NUMBA_CACHE_DIR, else beside the package, else in the user's cache.

A driver is looked for in each of these directories, and written to the first that can be written: a container often has
none, and its kernels were compiled when the image was built, by another user. Where none can be written, there is one
warning, and the driver stays in memory. A wheel may carry kernels of its own (`tools/wheel.py`), which are only read.

A compiled driver contains the kernels that it calls. So the name of its file carries the stamp of the modules with
kernels that its own module imports, and these in turn: after an edit of any of them it is compiled anew. The name also
says for which Numba, Python and processor it was compiled: this one, or a portable one like it. A file that is
broken, in whatever way, counts as missing, and is written again.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType
from typing import Any

from hasten.support.files import write_whole

_IMPORT = re.compile(rb"^\s*from hasten\.([\w.]+) import (\([^)]*\)|.*)", re.MULTILINE)
_HOMES = {"jit", "kernels"}  # the rooms whose modules all count
PACKAGE = Path(__file__).parents[1]
CARRIED = PACKAGE / "carried"  # the kernels that came with a wheel
SUFFIX = ".kernel"

# Processors that kernels can be compiled for elsewhere: their names, and the features that this one needs to run those.
PORTABLE = {
    "x86_64": ("x86-64-v3", {"avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"}),
    "aarch64": ("generic", set[str]()),
    "arm64": ("generic", set[str]()),
}


def counts(file: Path, package: Path) -> bool:
    """Whether a module has to do with kernels: it mentions `hasten.jit`, or stands in its room or in `kernels`."""
    return bool(_HOMES & set(file.relative_to(package).parts)) or b"hasten.jit" in file.read_bytes()


def _imported(file: Path, package: Path) -> Iterator[Path]:
    for module, names in _IMPORT.findall(file.read_bytes()):
        place = package.joinpath(*module.decode().split("."))
        inside = [place / f"{name}.py" for name in re.findall(r"\w+", names.decode())]
        yield from (each for each in (place.with_suffix(".py"), place / "__init__.py", *inside) if each.is_file())


@cache
def stamp(file: Path, package: Path = PACKAGE) -> str:
    """Returns a digest of all that a module's drivers are made of: it, `jit`, and modules with kernels it imports."""
    seen, left = set(package.glob("jit/*.py")), [file]
    while left:
        each = left.pop()
        if each not in seen and (each == file or counts(each, package)):
            seen.add(each)
            left += _imported(each, package)
    digest = hashlib.sha256(f"bounds checked: {os.environ.get('NUMBA_BOUNDSCHECK')}".encode())
    for each in sorted(seen):
        digest.update(each.read_bytes())
    return digest.hexdigest()[:12]


def directories() -> list[Path]:
    """Returns where drivers may be kept, the best place first."""
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return [Path(chosen)]
    home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    user = Path(os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA") or home)
    return [PACKAGE / "__pycache__", user / "hasten"]


def is_on_disk(function: FunctionType) -> bool:
    """Whether something compiled of a driver is there, maybe for another processor or Numba."""
    pattern = f"{_name(function)}.*{SUFFIX}"
    return any(any(directory.glob(pattern)) for directory in (*directories(), CARRIED))


def can_write() -> bool:
    """Whether there is a place for compiled drivers."""
    return any(os.access(_existing(directory), os.W_OK) for directory in directories())


def _existing(path: Path) -> Path:
    return path if path.exists() or path == path.parent else _existing(path.parent)


def _name(function: FunctionType) -> str:
    return f"{function.__module__}.{function.__qualname__}.{stamp(Path(function.__code__.co_filename))}"


class KernelCache:
    """The files of one driver, one for each signature, as Numba's dispatchers ask for them."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.cache_path = str(directories()[0])

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Returns what was compiled for a signature and this processor; None if it is not there, or broken."""
        from numba.core.compiler import CompileResult
        from numba.core.runtime import rtsys

        rtsys.initialize(target)  # all that running needs; what compiling needs, SciPy too, Numba imports then
        for processor in _processors(target):
            for directory in (*directories(), CARRIED):
                with suppress(Exception):
                    data = (directory / self._file(signature, processor)).read_bytes()
                    if hashlib.sha256(data[32:]).digest() == data[:32]:
                        return CompileResult._rebuild(target, *pickle.loads(data[32:]))
        return None

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Writes what was compiled, if that is possible."""
        from numba.core import serialize

        try:
            data = serialize.dumps(compiled._reduce())
        except RuntimeError:
            if getattr(compiled.library, "_compiled_object", None) is not None:
                raise
            signal.raise_signal(signal.SIGINT)  # it came while LLVM handed over the code, and was lost
            return
        file = self._file(signature, compiled.target_context.codegen().magic_tuple())
        if not any(_written(each / file, hashlib.sha256(data).digest() + data) for each in directories()):
            _warn_once()

    def _file(self, signature: Any, processor: tuple[str, str, str]) -> str:
        import llvmlite
        import numba

        versions = numba.__version__, llvmlite.__version__, sys.implementation.cache_tag
        key = hashlib.sha256(repr((str(signature), processor, versions)).encode())
        return f"{_name(self.function)}.{key.hexdigest()[:12]}{SUFFIX}"

    def flush(self) -> None:
        """Forgets nothing: there is no index."""


def _processors(target: Any) -> list[tuple[str, str, str]]:
    """Returns the processors whose code runs here, this one first: each a system, a name, and further features."""
    from llvmlite import binding

    this: tuple[str, str, str] = target.codegen().magic_tuple()
    if this[1] != binding.get_host_cpu_name():  # NUMBA_CPU_NAME asks for another
        return [this]
    name, needed = PORTABLE.get(this[0].partition("-")[0], ("generic", set[str]()))
    features = binding.get_host_cpu_features() if needed else {}
    return [this, (this[0], name, "")] if all(features.get(each) for each in needed) else [this]


def _written(path: Path, data: bytes) -> bool:
    """Writes a file, all of it or nothing; returns whether that was possible."""
    with suppress(OSError):  # the place can only be read, or is full
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, data)
        return True
    return False


@cache
def _warn_once() -> None:
    warnings.warn(
        "hasten can write its compiled kernels neither beside its package nor to the user's cache directory, so it "
        "compiles them again in each process. Set NUMBA_CACHE_DIR to a directory that it can write, or run "
        "`hasten compile` once as a user who can write beside the package.",
        RuntimeWarning,
        stacklevel=2,
    )


def remove_old_files() -> int:
    """Removes what other versions of the package left in its directories; returns how many files it removed."""
    n_removed = 0
    for file in (each for directory in directories() for each in directory.glob(f"hasten.*{SUFFIX}")):
        _, *names, _, was, _, _ = file.name.split(".")  # of the module, then the driver, the stamp and the key
        place = PACKAGE.joinpath(*names)
        source = place.with_suffix(".py") if place.with_suffix(".py").is_file() else place / "__init__.py"
        if not source.is_file() or was != stamp(source):
            with suppress(OSError):  # it can only be read
                file.unlink()
                n_removed += 1
    return n_removed
