"""Files wherever they are: a path here, or a URL that fsspec knows (`s3://…`, `gs://…`, `memory://…`).

What is written appears whole or not at all: here by `hasten.support.files`, elsewhere because a store shows an object
only once it is complete.
"""

from __future__ import annotations

import glob
import hashlib
import io
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hasten.errors import CorpusError, HastenError, WriteError
from hasten.support.files import unwritable, whole


def plain(path: str | os.PathLike[str]) -> str:
    """Returns a path as a string; a `file://` URL is a path."""
    return os.fspath(path).removeprefix("file://")


def _is_url(path: str) -> bool:
    return "://" in path


def join(directory: str, name: str) -> str:
    """Returns where a file of a directory is."""
    return f"{directory.rstrip('/')}/{name}" if _is_url(directory) else os.path.join(directory, name)


def find(paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> list[str]:
    """Returns the files that paths stand for, in order: of a pattern or a directory, those in it, by name."""
    given = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    found: list[str] = []
    for path in map(plain, given):
        if _is_url(path):
            files = _find_url(path)
        elif os.path.isdir(path):
            files = sorted(str(each) for each in Path(path).iterdir() if each.is_file() and each.name[0] != ".")
        else:
            files = [path] if os.path.exists(path) else sorted(glob.glob(path))
        if not files:
            raise CorpusError(f"There is nothing at {path}. Check the path.")
        found += files
    twice = {each for each in found if found.count(each) > 1} if len(found) < 10_000 else set()
    if twice:
        raise CorpusError(f"{min(twice)} is named twice. Name each file once.")
    return found


def _find_url(path: str) -> list[str]:
    system, inner = _system(path)
    with _telling(path):
        if system.isdir(inner):
            inner = f"{inner.rstrip('/')}/*"
        if not any(sign in inner for sign in "*?["):
            return [path] if system.exists(inner) else []
        found = [each for each in system.glob(inner) if not system.isdir(each)]
        return sorted(system.unstrip_protocol(each) for each in found)


@contextmanager
def reading(path: str) -> Iterator[Any]:
    """Opens a file to be read; what goes wrong names the file."""
    with _telling(path):
        system, inner = _system(path) if _is_url(path) else (io, path)
        with system.open(inner, "rb") as file:
            yield file


@contextmanager
def _telling(path: str) -> Iterator[None]:
    try:
        yield
    except HastenError:
        raise
    except IsADirectoryError:
        raise CorpusError(f"{path}: This is a directory. Name a file in it.") from None
    except OSError as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise CorpusError(f"{path}: Cannot be read ({why}). Check the path.") from error


def read(path: str) -> bytes | None:
    """Returns all of a file; None if it is not there."""
    with _unless_missing(), reading(path) as file:
        return bytes(file.read())
    return None


def digest(path: str) -> str | None:
    """Returns a digest of a file; None if it is not there."""
    with _unless_missing(), reading(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
    return None


@contextmanager
def _unless_missing() -> Iterator[None]:
    try:
        yield
    except CorpusError as error:
        if not isinstance(error.__cause__, FileNotFoundError):
            raise


@contextmanager
def writing(path: str) -> Iterator[Path]:
    """Gives a file here to write to, which then appears at its place, whole."""
    if not _is_url(path):
        with whole(Path(path)) as part:
            yield part
        return
    with tempfile.TemporaryDirectory(prefix="hasten-") as room:
        part = Path(room) / "part"
        part.touch()
        yield part
        system, inner = _system(path)
        try:
            system.put_file(str(part), inner)
        except OSError as error:
            raise WriteError(f"{path} cannot be written: {error}. Choose another place.") from error


def write(path: str, data: bytes) -> None:
    """Writes a file, whole."""
    with writing(path) as part:
        part.write_bytes(data)


def make_directory(path: str) -> None:
    """Makes a directory, if it is not there."""
    try:
        if _is_url(path):
            system, inner = _system(path)
            system.makedirs(inner, exist_ok=True)
        else:
            Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(Path(path), error) from error


def is_empty(path: str) -> bool:
    """Whether a directory holds nothing, or is not there."""
    if _is_url(path):
        system, inner = _system(path)
        return not system.exists(inner) or not system.ls(inner)
    return not os.path.exists(path) or (os.path.isdir(path) and not os.listdir(path))


def _system(url: str) -> tuple[Any, str]:
    """Returns the file system of a URL, and what the file is called there."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise CorpusError(f"{url} is a URL, which fsspec reads. It is not installed: pip install fsspec") from None
    try:
        system, inner = url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise CorpusError(f"{url}: {error}") from None
    return system, inner
