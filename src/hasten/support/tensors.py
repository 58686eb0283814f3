"""Arrays in files, and what is said about them: safetensors, never pickles, with a digest of all that a file holds.

A file that was cut short or changed is refused. The digest keeps nobody from forging a file, so what comes out is
checked by those who load it (`hasten.support.forms`); `reading` says of all they find wrong in which file it is.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hasten.errors import HastenError, ModelError
from hasten.support import forms
from hasten.support.checks import check_path
from hasten.support.files import write_whole

Tensors = dict[str, np.ndarray[Any, Any]]


class _Described(msgspec.Struct, forbid_unknown_fields=True):
    dtype: Literal["F64", "F32", "I64", "U8"]  # all that we ever save
    shape: list[forms.Count]
    data_offsets: list[forms.Count]


def save_tensors(path: str | os.PathLike[str], format: str, tensors: Tensors, about: Mapping[str, str]) -> None:
    """Writes tensors, and what is said about them, with the name of their format and a digest."""
    described = {**about, "format": format}
    write_whole(check_path(path), save(tensors, {**described, "sha256": digest_of(tensors, described)}))


def load_tensors(path: str | os.PathLike[str], format: str, what: str) -> tuple[Tensors, dict[str, str]]:
    """Reads what `save_tensors` wrote in this format; `what` says in errors what was looked for."""
    data = _read(path)
    try:
        tensors, about = _parse(data)
    except forms.Misfit as error:
        raise ModelError(
            f"{os.fspath(path)} is not a {what}, or is damaged: {error}. Use another copy, or make it again."
        ) from None
    if about.get("format") != format:
        found = forms.short(about.get("format"))
        raise ModelError(
            f"{os.fspath(path)} is not a {what}, or is of another version: its format is {found}, not {format!r}. Name "
            "another file, or make it again."
        )
    del about["format"]
    if about.pop("sha256", None) != digest_of(tensors, about | {"format": format}):
        raise damaged(path, "its content does not match its digest")
    return tensors, about


def format_of(path: str | os.PathLike[str]) -> str | None:
    """Returns the format that a file says it has; None if it is not one of ours, or not there."""
    try:
        return _header(_read(path))[1].get("format")
    except (forms.Misfit, ModelError):
        return None


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what is found wrong with the content of a file into an error that names the file."""
    try:
        yield
    except forms.Misfit as error:
        raise damaged(path, str(error)) from None
    except HastenError as error:
        raise damaged(path, str(error).rstrip(".")) from error


def damaged(path: str | os.PathLike[str], why: str) -> ModelError:
    """Returns the error of a file that is not what was written."""
    return ModelError(f"{os.fspath(path)} is damaged: {why}. Use another copy, or make it again.")


def _read(path: str | os.PathLike[str]) -> bytes:
    name = str(check_path(path))
    try:
        if not stat.S_ISREG(os.stat(name).st_mode):  # a device may have no end, a pipe no beginning
            raise ModelError(f"{name} cannot be read: it is not a file. Name one.")
        return Path(name).read_bytes()
    except FileNotFoundError:
        raise ModelError(f"There is no file {name}.") from None
    except OSError as error:
        raise ModelError(f"{name} cannot be read: {error.strerror}.") from None
    except ValueError as error:  # a null character in the name
        raise ModelError(f"{name!r} cannot be read: {error}. Choose another name.") from None


def _header(data: bytes) -> tuple[dict[str, Any], dict[str, str]]:
    """Returns what a file says of its tensors, and what it says besides."""
    size = int.from_bytes(data[:8], "little")
    if not 2 <= size <= len(data) - 8:
        raise forms.Misfit("it does not begin as our files do")
    header = forms.read_json(data[8 : 8 + size], "its header", dict[str, dict[str, Any]])
    return header, forms.fitted(header.pop("__metadata__", {}), dict[str, str], "its metadata")


def _parse(data: bytes) -> tuple[Tensors, dict[str, str]]:
    header, about = _header(data)
    forms.fitted(header, dict[str, _Described], "its header")
    try:
        return load(data), about
    except (SafetensorError, ValueError) as error:
        raise forms.Misfit(str(error)) from None


def digest_of(tensors: Tensors, about: Mapping[str, str]) -> str:
    """Returns a digest of tensors and of what is said about them."""
    digest = hashlib.sha256(json.dumps(sorted(about.items())).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(json.dumps([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
