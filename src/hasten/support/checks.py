"""Checks of arguments. Each is cheap where all is well; otherwise it names the argument and what was expected of it."""

from __future__ import annotations

import math
import os
import reprlib
import sys
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from hasten.errors import HastenError, OutOfRange, ProblemError
from hasten.support.arrays import Chosen, FloatArray, IntArray, floats, is_masked, plain

MAX_WIDTH = 2**16  # of a beam: kernels allocate all of it
MAX_WHOLE = 2**62  # what kernels can still count with


def check_whole(name: str, value: object, least: int = 0, most: int | None = MAX_WHOLE) -> None:
    """Refuses what is not a whole number, or is too small or too large."""
    if type(value) is int and value >= least and (most is None or value <= most):
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ProblemError(f"{name} must be a whole number, got {brief(value)}.")
    if value < least:
        raise ProblemError(f"{name} must be at least {least}, got {brief(value)}.")
    if most is not None and value > most:
        raise ProblemError(f"{name} must be at most {most:,}, got {brief(value)}.")


def brief(value: object) -> str:
    """Returns a value in a few letters, for an error message, however large or odd it is.

    >>> brief("cat"), brief(10**30), brief(np.zeros((2, 3)))
    ("'cat'", '1000000000000000000000000000000', 'an array of float64 of shape (2, 3)')
    """
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    if value is None or isinstance(value, str | bytes | int | float | complex | list | tuple | dict | set | np.generic):
        with suppress(Exception):  # a number of 5,000 digits, or a class of which some object cannot be shown
            return reprlib.repr(value)
    return f"an object of type {type(value).__name__}"


def is_text(value: object) -> TypeGuard[str]:
    """Whether a value is text that can be written to a file."""
    if not isinstance(value, str):
        return False
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return True


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number; True and False are not."""
    return type(value) is int or (isinstance(value, int | np.integer) and not isinstance(value, bool))


def finite(value: object, what: str, error: type[HastenError], hint: str = "") -> float:
    """Returns a finite number as a float; refuses everything else, with a hint if there is one."""
    given: Any = value
    try:
        number = math.nan if isinstance(value, str | bytes) or np.ndim(given) else float(given)
    except (TypeError, ValueError, OverflowError):  # a whole number may be too large for a float
        number = math.nan
    if not math.isfinite(number):
        raise error(f"{what} must be a finite number, got {brief(value)}. {hint}".rstrip())
    return number


def listed(
    given: Any, what: str, error: type[HastenError] = ProblemError, kind: type = object, hint: str = ""
) -> tuple[Any, ...]:
    """Returns several values, all of a kind, as a tuple; refuses text, values that are no list, and other kinds."""
    try:
        values = None if isinstance(given, str | bytes | bytearray) else tuple(given)
    except TypeError:
        values = None
    if values is None:
        raise error(f"{what} must be a list, got {brief(given)}.")
    for n, value in enumerate(values) if kind is not object else ():
        if not isinstance(value, kind):
            raise error(f"{what} must be of type {kind.__name__}; number {n} is {brief(value)}. {hint}".rstrip())
    return values


def whole_numbers(
    values: object, what: str, error: type[HastenError] = ProblemError, n_axes: int | None = 1
) -> IntArray:
    """Returns whole numbers as an array of our own, with as many axes as said; None allows any.

    Refuses fractions, text, masked entries and numbers beyond 64 bits.

    >>> whole_numbers([0.7, 1.9], "Labels")
    Traceback (most recent call last):
    ...
    hasten.errors.ProblemError: Labels must be whole numbers, in one row; got [0.7, 1.9].
    """
    given: Any = values
    try:
        found = np.asarray(given.detach().cpu() if hasattr(given, "detach") else given)
    except (TypeError, ValueError, RuntimeError, OverflowError):  # rows of different lengths
        found = np.zeros(())
    if not found.size and (n_axes is None or found.ndim <= n_axes):
        found = np.zeros(found.shape if n_axes in (None, found.ndim) else (0,) * (n_axes or 1), dtype=np.int64)
    fits = found.ndim == n_axes if n_axes is not None else found.ndim > 0
    too_large = found.dtype == np.uint64 and bool((found >= 2**63).any())
    if not fits or found.dtype.kind not in "iu" or too_large or is_masked(values):
        rows = {1: "in one row", None: "in rows"}.get(n_axes, f"in an array with {n_axes} axes")
        raise error(f"{what} must be whole numbers, {rows}; got {brief(values)}.")
    return np.array(found, dtype=np.int64, order="C")


def chosen_numbers(chosen: Chosen, n: int) -> IntArray:
    """Returns the numbers, from 0, of some of `n` problems, or says why something does not choose among them."""
    if isinstance(chosen, slice):
        try:
            return np.arange(n)[chosen]
        except (TypeError, ValueError) as error:
            raise ProblemError(f"{chosen} chooses no problems: {error}.") from None
    given: Any = chosen
    if (isinstance(given, np.ndarray) and given.dtype.kind == "b") or (
        isinstance(given, list) and given and type(given[0]) is bool
    ):
        if np.shape(given) != (n,) or is_masked(given):
            raise ProblemError(f"A mask of shape {np.shape(given)} does not fit {n} problems. Give a value for each.")
        return np.flatnonzero(given)
    numbers = whole_numbers(given, "Choose problems by a slice, a mask or their numbers, which")
    outside = numbers[(numbers < -n) | (numbers >= n)]
    if outside.size:
        raise OutOfRange(f"There is no problem {outside[0]}; the batch has {n}.")
    return np.where(numbers < 0, numbers + n, numbers)


def check_type(value: object, kind: type, what: str, error: type[HastenError] = ProblemError) -> None:
    """Refuses a value that is not of a kind."""
    if not isinstance(value, kind):
        raise error(f"{what} must be a {kind.__name__}, got {brief(value)}.")


def check_path(path: object) -> Path:
    """Returns the path of a file; refuses what is neither text nor a path, and what no file can be called."""
    if not isinstance(path, str | os.PathLike) or isinstance(found := os.fspath(path), bytes) or not is_text(found):
        raise ProblemError(f"A path must be text or a pathlib.Path, got {brief(path)}.")
    return Path(found)


def is_share(value: object) -> TypeGuard[float]:
    """Whether a value is a number between 0 and 1, neither of them included."""
    return isinstance(value, int | float | np.integer | np.floating) and bool(0 < value < 1)


def check_width(width: object) -> None:
    """Refuses what is not the width of a beam."""
    check_whole("The width of a beam", width, least=1, most=MAX_WIDTH)


def check_number(name: str, value: object) -> None:
    """Refuses what is not a number or is negative; inf is a number here."""
    if type(value) is float and value >= 0:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(f"{name} must be a number, got {brief(value)}.")
    if not value >= 0:
        raise ProblemError(f"{name} must be at least 0, got {brief(value)}.")
    if isinstance(value, int) and value > sys.float_info.max:
        raise ProblemError(f"{name} must be at most {sys.float_info.max:g}, or inf; got one of more than 300 digits.")


def check_limit(name: str, value: object) -> None:
    """Refuses what is neither a number of seconds, nor None for no limit."""
    if value is None:
        return
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not (0 <= value <= sys.float_info.max or value == math.inf):  # type: ignore[operator]
        raise ProblemError(f"{name} must be a number of seconds, or None for no limit; got {brief(value)}.")


def check_switch(name: str, value: object, *, or_none: bool = False) -> None:
    """Refuses what is neither on nor off, nor None where that is a choice."""
    if value is True or value is False or (or_none and value is None):
        return
    if not isinstance(value, np.bool_):
        raise ProblemError(f"{name} must be True or False{', or None' if or_none else ''}, got {brief(value)}.")


def check_vector(name: str, values: object) -> FloatArray:
    """Returns finite numbers in a row as an array; refuses everything else."""
    try:
        found = floats(values)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"{name} must be numbers in one row ({error}).") from None
    if found.ndim != 1:
        raise ProblemError(f"{name} must be one row of numbers, got the shape {found.shape}.")
    if not np.isfinite(found).all():
        raise ProblemError(f"{name} must be finite.")
    return plain(found)


class Choices(StrEnum):
    """A few names to choose from."""

    @classmethod
    def choices(cls) -> str:
        """Returns the names there are, for an error."""
        return " or ".join(repr(each.value) for each in cls)
