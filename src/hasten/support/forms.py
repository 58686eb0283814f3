"""What a file may hold: types that msgspec holds JSON against, and the forms of tensors."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import numpy as np

COUNT = 2**60  # the largest count, which nobody reaches: whatever is added to it still fits 64 bits
Count = Annotated[int, msgspec.Meta(ge=0, le=COUNT)]
Size = Annotated[float, msgspec.Meta(ge=0)]
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
