"""Files that are whole or not there at all, and say when they are not what was written.

Weights are kept as safetensors, never as pickles, with a digest of all that the file holds: one that was cut
short or changed is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hasten.errors import ModelError

Tensors = dict[str, np.ndarray[Any, Any]]


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file beside its place, then moves it there: a reader finds all of it, or the old one."""
    handle, beside = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(beside, 0o644)
        os.replace(beside, path)
    except BaseException:
        Path(beside).unlink(missing_ok=True)
        raise


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
