"""Files that are whole or not there at all, whenever the process that writes them ends.

A file is written beside its place, under a name of its own, and then moved there, which is one step: a reader finds all
of the new file or all of the old one. Whoever writes holds a lock on the part beside. One without a lock was left by
a process that was killed, and the next that writes the same file takes it away.

What cannot be written is told by the name that the user gave, never by that of the part beside it. Long commands
look at their place first (`output_directory`), so that nothing is lost at the end.
"""

from __future__ import annotations

import errno
import glob
import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hasten.errors import WriteError

try:
    import fcntl
except ImportError:  # without locks nobody knows which parts are left over: they stay
    fcntl = None  # type: ignore[assignment]


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside its place, then moves it there: a reader finds all of it, or the old one."""
    with whole(path) as part:
        part.write_bytes(data)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Gives a name beside a file to write to, and moves what was written there: all of it, or nothing.

    A device or a pipe, which cannot be replaced, is written to itself; a link leads to the file that is replaced.
    """
    if "\0" in str(path):
        raise WriteError(f"{str(path)!r} cannot be written: a name holds no null character. Choose another.")
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            yield path
            return
        place = Path(os.path.realpath(path))
        _remove_leftovers(place)
        with _part_beside(place) as part:
            yield part
            _sync(part)
            os.replace(part, place)
            with suppress(OSError):  # not every system can
                _sync(place.parent)
    except OSError as error:
        raise unwritable(path, error) from error


@contextmanager
def _part_beside(path: Path) -> Iterator[Path]:
    """Makes an empty file beside another, locked while it is written; takes away what is not moved from there."""
    while True:
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        lock = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        try:
            if not (_locked(lock, wait=True) and not part.exists()):  # taken for a leftover before it was locked
                try:
                    yield part
                finally:
                    part.unlink(missing_ok=True)
                return
        finally:
            os.close(lock)


def _remove_leftovers(path: Path) -> None:
    for part in path.parent.glob(f".{glob.escape(path.name)}.????????.part"):
        with suppress(OSError):
            lock = os.open(part, os.O_RDWR)
            try:
                if _locked(lock, wait=False):
                    part.unlink()
            finally:
                os.close(lock)


def _locked(file: int, *, wait: bool) -> bool:
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # another has it, or this file system has no locks
        return False
    return True


def _sync(path: Path) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


@contextmanager
def output_directory(path: Path) -> Iterator[None]:
    """Makes a directory and sees that it can be written; if what follows fails, takes away what it made."""
    made: list[Path] = []
    try:
        try:
            made = [each for each in (path, *path.parents) if not each.exists()]  # the innermost first
            path.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=path):
                pass
        except OSError as error:
            raise unwritable(path, error) from error
        yield
    except BaseException:
        for each in made:
            with suppress(OSError):  # it was never made, or holds what was written in time
                each.rmdir()
        raise


def unwritable(path: Path, error: OSError) -> WriteError:
    """Returns the error of a place that cannot be written: its name, the reason, what to do."""
    if isinstance(error, WriteError) and isinstance(error.__cause__, OSError):  # of a part of it
        error = error.__cause__
    if isinstance(error, FileNotFoundError):
        place = path if path.is_dir() else path.parent
        if place.is_dir():  # as in /proc
            return WriteError(f"{path} cannot be written: nothing can be made in {place}. Choose another place.")
        return WriteError(f"{path} cannot be written: there is no directory {path.parent}. Make it first.")
    if isinstance(error, IsADirectoryError):
        return WriteError(f"{path} cannot be written: it is a directory. Name a file.")
    if isinstance(error, NotADirectoryError | FileExistsError):
        blocking = next((each for each in (path, *path.parents) if each.exists()), path)
        return WriteError(f"{path} cannot be written: {blocking} is not a directory. Choose another place.")
    why = error.strerror or str(error)
    return WriteError(f"{path} cannot be written: {why[:1].lower()}{why[1:]}. Choose another place.")
