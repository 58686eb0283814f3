"""Files that are whole or not there at all, and say when they are not what was written.

What cannot be written is told by the name that the user gave, never by that of the part beside it. Long commands
look at their place first (`output_directory`), so that nothing is lost at the end. Weights are kept as safetensors,
never as pickles, with a digest of all that the file holds: one that was cut short or changed is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hasten.errors import ModelError, WriteError

Tensors = dict[str, np.ndarray[Any, Any]]


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside its place, then moves it there: a reader finds all of it, or the old one."""
    with whole(path) as part:
        part.write_bytes(data)


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """Gives a name beside a file to write to, and moves what was written there: all of it, or nothing.

    A device or a pipe, which cannot be replaced, is written to itself.
    """
    try:
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if path.exists() and not path.is_file():
            yield path
            return
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            yield part
            with open(part, "rb") as file:
                os.fsync(file.fileno())
            os.replace(part, path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


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
        return WriteError(f"{path} cannot be written: there is no directory {path.parent}. Make it first.")
    if isinstance(error, IsADirectoryError):
        return WriteError(f"{path} cannot be written: it is a directory. Name a file.")
    if isinstance(error, NotADirectoryError | FileExistsError):
        blocking = next((each for each in (path, *path.parents) if each.exists()), path)
        return WriteError(f"{path} cannot be written: {blocking} is no directory. Choose another place.")
    why = error.strerror or str(error)
    return WriteError(f"{path} cannot be written: {why[:1].lower()}{why[1:]}. Choose another place.")


def save_tensors(path: str | os.PathLike[str], format: str, tensors: Tensors, about: Mapping[str, str]) -> None:
    """Writes tensors, and what is said about them, with the name of their format and a digest."""
    described = {**about, "format": format}
    write_whole(Path(path), save(tensors, {**described, "sha256": _digest(tensors, described)}))


def load_tensors(path: str | os.PathLike[str], format: str, what: str) -> tuple[Tensors, dict[str, str]]:
    """Reads what `save_tensors` wrote in this format; `what` says in errors what was looked for."""
    path = Path(path)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise ModelError(f"There is no file {path}.") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.") from None
    try:
        tensors: Tensors = load(data)
        about = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise damaged(path, f"it is no safetensors file ({error})") from None
    if about.get("format") != format:
        raise ModelError(f"{path} is no {what} of this version: its format is {about.get('format')!r}, not {format!r}.")
    if about.pop("sha256", None) != _digest(tensors, about):
        raise damaged(path, "its content does not match its digest")
    return tensors, about


def damaged(path: str | os.PathLike[str], why: str) -> ModelError:
    """Returns the error of a file that is not what was written."""
    return ModelError(f"{os.fspath(path)} is damaged: {why}. Use another copy, or make it again.")


def _digest(tensors: Tensors, about: Mapping[str, str]) -> str:
    digest = hashlib.sha256(json.dumps(sorted(about.items())).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(json.dumps([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
