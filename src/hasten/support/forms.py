"""Forms of values in files, and files of tensors: safetensors, never pickles, with a digest of all that a file holds.

A file that was cut short or changed is refused. The digest keeps nobody from forging a file, so what comes out is
checked by those who load it, against types (msgspec) and the forms of tensors; `reading` says of all they find wrong in
which file it is.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import stat
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from hasten.errors import HastenError, ModelError
from hasten.support.checks import check_path
from hasten.support.files import write_whole

COUNT = 2**60  # the largest count, which nobody reaches: whatever is added to it still fits 64 bits
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT)]
Size = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0, le=sys.float_info.max)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Names = Annotated[list[str], msgspec.Meta(min_length=1)]


class Misfit(ValueError):  # noqa: N818
    """A value does not have its form; the message says where, and what its form is."""


def read_json(data: str | bytes, what: str, form: Any = Any) -> Any:
    """Returns what JSON says, if it has the form of a type; `what` is what it is called where it has not."""
    try:
        value = json.loads(data)
    except RecursionError:
        raise Misfit(f"{what} is nested too deep") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise Misfit(f"{what} is not JSON ({error})") from None
    return value if form is Any else fitted(value, form, what)


def fitted(value: Any, form: Any, what: str) -> Any:
    """Returns a value of JSON as a type; the message of a `Misfit` says where it differs.

    >>> fitted({"ages": [40, -3]}, dict[str, list[Count]], "it")
    Traceback (most recent call last):
    ...
    hasten.support.forms.Misfit: it: Expected `int` >= 0 - at `$[...][1]`
    """
    try:
        return msgspec.convert(value, form)
    except msgspec.ValidationError as error:
        raise Misfit(f"{what}: {error}") from None
    except UnicodeEncodeError:
        raise Misfit(f"{what} has text with half of a character") from None


def short(value: Any) -> str:
    """Returns a value in a few letters, however large or deep it is."""
    if isinstance(value, list | dict):
        return f"{'a list' if isinstance(value, list) else 'an object'} of {len(value)}"
    if isinstance(value, int) and abs(value) >= 10**30:
        return "a number of more than 30 digits"
    if isinstance(value, str) and len(value) > 60:
        return f"{value[:60]!r}…"
    return repr(value)


@dataclass(frozen=True, slots=True)
class Array:
    """The form of a tensor: its type, its shape (None: any length), and limits that all of its entries keep."""

    dtype: str
    shape: Sequence[int | None]
    least: float = -math.inf
    most: float = math.inf

    def check(self, tensor: np.ndarray[Any, Any], what: str) -> None:
        """Refuses a tensor of another form, and one with entries that are not finite."""
        if tensor.dtype != self.dtype:
            raise Misfit(f"{what} must be of type {self.dtype}, not {tensor.dtype}")
        if len(tensor.shape) != len(self.shape) or any(
            wanted not in (None, found) for wanted, found in zip(self.shape, tensor.shape, strict=True)
        ):
            wanted = ", ".join("any" if size is None else str(size) for size in self.shape)
            raise Misfit(f"{what} must have the shape ({wanted}), not {tensor.shape}")
        if not (np.isfinite(tensor).all() and (tensor >= self.least).all() and (tensor <= self.most).all()):
            raise Misfit(f"{what} must hold finite numbers from {self.least:g} to {self.most:g}")


def check_tensors(tensors: Mapping[str, np.ndarray[Any, Any]], forms: Mapping[str, Array]) -> None:
    """Refuses tensors that are missing, that do not belong, or that have another form."""
    for name in tensors:
        if name not in forms:
            raise Misfit(f"it has a tensor {short(name)}, which does not belong there")
    for name, form in forms.items():
        if name not in tensors:
            raise Misfit(f"it lacks the tensor {name!r}")
        form.check(tensors[name], f"the tensor {name!r}")


Tensors = dict[str, np.ndarray[Any, Any]]


class _Described(msgspec.Struct, forbid_unknown_fields=True):
    dtype: Literal["F64", "F32", "I64", "U8"]  # all that we ever save
    shape: list[Count]
    data_offsets: list[Count]


def save_tensors(path: str | os.PathLike[str], format: str, tensors: Tensors, about: Mapping[str, str]) -> None:
    """Writes tensors, and what is said about them, with the name of their format and a digest."""
    described = {**about, "format": format}
    write_whole(check_path(path), save(tensors, {**described, "sha256": digest_of(tensors, described)}))


def load_tensors(path: str | os.PathLike[str], format: str, what: str) -> tuple[Tensors, dict[str, str]]:
    """Reads what `save_tensors` wrote in this format; `what` says in errors what was looked for."""
    data = _read(path)
    try:
        tensors, about = _parse(data)
    except Misfit as error:
        raise ModelError(
            f"{os.fspath(path)} is not a {what}, or is damaged: {error}. Use another copy, or make it again."
        ) from None
    if about.get("format") != format:
        found = short(about.get("format"))
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
    except (Misfit, ModelError):
        return None


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turns what is found wrong with the content of a file into an error that names the file."""
    try:
        yield
    except Misfit as error:
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
        raise Misfit("it does not begin as our files do")
    header = read_json(data[8 : 8 + size], "its header", dict[str, dict[str, Any]])
    return header, fitted(header.pop("__metadata__", {}), dict[str, str], "its metadata")


def _parse(data: bytes) -> tuple[Tensors, dict[str, str]]:
    header, about = _header(data)
    fitted(header, dict[str, _Described], "its header")
    try:
        return load(data), about
    except (SafetensorError, ValueError) as error:
        raise Misfit(str(error)) from None


def digest_of(tensors: Tensors, about: Mapping[str, str]) -> str:
    """Returns a digest of tensors and of what is said about them."""
    digest = hashlib.sha256(json.dumps(sorted(about.items())).encode())
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name])
        digest.update(json.dumps([name, tensor.dtype.str, tensor.shape]).encode())
        digest.update(tensor.tobytes())
    return digest.hexdigest()
