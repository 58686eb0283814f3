"""What a file may hold, declared as forms: each refuses a value that does not have it, and says where it stands.

>>> person = record({"name": text, "age": whole(0, 150)})
>>> person({"name": "Ada", "age": -3}, "it")
Traceback (most recent call last):
...
hasten.support.forms.Misfit: it: 'age' must be a whole number from 0 to 150, not -3
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Form = Callable[[Any, str], None]  # of a value, and what that is called

COUNT = 2**60  # the largest count, which nobody reaches: whatever is added to it still fits 64 bits


class Misfit(ValueError):  # noqa: N818
    """A value does not have its form; the message says which value, and what its form is."""


def read_json(data: str | bytes, what: str) -> Any:
    """Returns what JSON says; `what` is what it is called where it says nothing."""
    try:
        return json.loads(data)
    except RecursionError:
        raise Misfit(f"{what} is nested too deep") from None
    except ValueError as error:  # not JSON, not UTF-8, or a number of thousands of digits
        raise Misfit(f"{what} is not JSON ({error})") from None


def _form(has_it: Callable[[Any], bool], wanted: str) -> Form:
    """Returns the form of the values that a function accepts; `wanted` says in words what they are."""

    def check(value: Any, what: str) -> None:
        if not has_it(value):
            raise Misfit(f"{what} must be {wanted}, not {short(value)}")

    return check


def whole(least: int = 0, most: int = COUNT) -> Form:
    """The form of a whole number."""
    return _form(lambda value: type(value) is int and least <= value <= most, f"a whole number from {least} to {most}")


def number(least: float = -math.inf, most: float = math.inf) -> Form:
    """The form of a number, inf included where the limits include it."""

    def is_number(value: Any) -> bool:
        return type(value) is float or (type(value) is int and abs(value) <= sys.float_info.max)

    words = f"a number from {least:g} to {most:g}"
    return _form(lambda value: is_number(value) and least <= value <= most, words)


switch = _form(lambda value: type(value) is bool, "true or false")
text = _form(lambda value: type(value) is str, "a string")
scalar = _form(lambda value: not isinstance(value, list | dict), "a single value")  # it holds nothing else
_object = _form(lambda value: type(value) is dict, "an object")


def anything(value: Any, what: str) -> None:
    """The form of whatever there is."""


def one_of(*values: str) -> Form:
    """The form of one of some strings."""
    return _form(lambda value: type(value) is str and value in values, " or ".join(map(repr, values)))


def or_none(form: Form) -> Form:
    """The form of what may be missing, which JSON calls null."""

    def check(value: Any, what: str) -> None:
        if value is not None:
            form(value, what)

    return check


def many(form: Form, least: int = 0) -> Form:
    """The form of a list of things of one form."""
    words = f"a list of at least {least}" if least else "a list"
    is_list = _form(lambda value: type(value) is list and len(value) >= least, words)

    def check(value: Any, what: str) -> None:
        is_list(value, what)
        for i, each in enumerate(value):
            form(each, f"{what}: number {i}")

    return check


def row(*forms: Form) -> Form:
    """The form of a list with a form for each place."""
    is_row = _form(lambda value: type(value) is list and len(value) == len(forms), f"a list of {len(forms)}")

    def check(value: Any, what: str) -> None:
        is_row(value, what)
        for i, (form, each) in enumerate(zip(forms, value, strict=True)):
            form(each, f"{what}: number {i}")

    return check


def record(forms: Mapping[str, Form], optional: Collection[str] = ()) -> Form:
    """The form of an object with these keys and no others; the optional ones may be missing."""

    def check(value: Any, what: str) -> None:
        _object(value, what)
        for key in value:
            if key not in forms:
                raise Misfit(f"{what} has the key {short(key)}, which does not belong there")
        for key, form in forms.items():
            if key in value:
                form(value[key], f"{what}: {key!r}")
            elif key not in optional:
                raise Misfit(f"{what} lacks the key {key!r}")

    return check


def table_of(form: Form) -> Form:
    """The form of an object with any keys, whose values have one form."""

    def check(value: Any, what: str) -> None:
        _object(value, what)
        for key, each in value.items():
            form(each, f"{what}: {short(key)}")

    return check


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
