"""Files at paths of this machine, or at URLs that fsspec knows (`s3://…`, `gs://…`, `memory://…`).

A written file appears whole or not at all: here by `hasten.support.files`, elsewhere because a store shows an object
only once it is complete.
"""

from __future__ import annotations

import glob
import hashlib
import os
import posixpath
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hasten.errors import CorpusError, HastenError, WriteError
from hasten.support.files import unwritable, whole

# The part of fsspec's interface that is used here, for paths of this machine: fsspec may not be installed.
_LOCAL = SimpleNamespace(
    open=open,
    exists=os.path.exists,
    isdir=os.path.isdir,
    glob=glob.glob,
    unstrip_protocol=lambda path: str(Path(path)),
)

join = posixpath.join


def plain(path: str | os.PathLike[str]) -> str:
    """Returns a path as a string; a `file://` URL is a path."""
    return os.fspath(path).removeprefix("file://")


def find(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the files at some paths, in their order."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for path in map(plain, given):
        files = files_at(path)
        if not files:
            raise CorpusError(f"There is nothing at {path}. Check the path.")
        found += files
    twice = {each for each in found if found.count(each) > 1} if len(found) < 10_000 else set()
    if twice:
        raise CorpusError(f"{min(twice)} is named twice. Name each file once.")
    return found


def files_at(path: str) -> list[str]:
    """Returns a file itself, or the files that are in a directory or match a pattern, by name."""
    with _named_errors(path):
        system, inner = _system(path)
        if system.isdir(inner):
            directory = glob.escape(inner) if system is _LOCAL else inner
            inner = f"{directory.rstrip('/')}/*"
        elif system.exists(inner):
            return [path]
        return sorted(system.unstrip_protocol(each) for each in system.glob(inner) if not system.isdir(each))


@contextmanager
def reading(path: str) -> Iterator[Any]:
    """Opens a file for reading; an error names the file."""
    with _named_errors(path):
        system, inner = _system(path)
        with system.open(inner, "rb") as file:
            yield file


@contextmanager
def _named_errors(path: str) -> Iterator[None]:
    try:
        yield
    except HastenError:
        raise
    except IsADirectoryError:
        raise CorpusError(f"{path}: This is a directory. Name a file in it.") from None
    except OSError as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CorpusError(f"{path}: Cannot be read ({why}). Check the path.") from error


def _exists(path: str) -> bool:
    system, inner = _system(path)
    return bool(system.exists(inner))


def read(path: str) -> bytes:
    """Returns the content of a file; nothing if there is no such file."""
    if not _exists(path):
        return b""
    with reading(path) as file:
        return bytes(file.read())


def digest(path: str) -> str:
    """Returns the SHA-256 of a file; an empty string if there is no such file."""
    if not _exists(path):
        return ""
    with reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def writing(path: str) -> Iterator[Path]:
    """Gives a file of this machine to write to, which is then moved to its place, whole."""
    system, inner = _system(path)
    if system is _LOCAL:
        try:
            Path(path).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(Path(path).parent, error) from error
        with whole(Path(path)) as part:
            yield part
        return
    with tempfile.TemporaryDirectory(prefix="hasten-") as directory:
        part = Path(directory) / "part"
        part.touch()
        yield part
        try:
            system.put_file(str(part), inner)
        except OSError as error:
            raise WriteError(f"{path} cannot be written: {error}. Choose another place.") from error


def write(path: str, data: bytes) -> None:
    """Writes a file, whole."""
    with writing(path) as part:
        part.write_bytes(data)


def _system(path: str) -> tuple[Any, str]:
    """Returns the file system of a path or URL, and the name of the file there."""
    if "://" not in path:
        return _LOCAL, path
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise CorpusError(f"{path} is a URL, which fsspec reads. It is not installed: pip install fsspec") from None
    try:
        system, inner = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise CorpusError(f"{path}: {error}") from None
    return system, inner
