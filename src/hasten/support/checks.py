"""What arguments may be. Each check is cheap where all is well, and otherwise names one, and what was expected."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TypeVar

import numpy as np

from hasten.errors import HastenError, ProblemError
from hasten.support.arrays import FloatArray, floats, plain

Item = TypeVar("Item")

MAX_WIDTH = 2**16  # of a beam: kernels allocate all of it
MAX_WHOLE = 2**62  # what kernels can still count with


def check_whole(name: str, value: object, least: int = 0, most: int | None = MAX_WHOLE) -> None:
    """Refuses what is not a whole number, or is too small or too large."""
    if type(value) is int and value >= least and (most is None or value <= most):
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ProblemError(f"{name} must be a whole number, got {value!r}.")
    if value < least:
        raise ProblemError(f"{name} must be at least {least}, got {value}.")
    if most is not None and value > most:
        raise ProblemError(f"{name} must be at most {most}, got {value}.")


def listed(given: Iterable[Item], what: str, error: type[HastenError]) -> tuple[Item, ...]:
    """Returns several things as a tuple, or says that there should be several."""
    try:
        return tuple(given)
    except TypeError:
        raise error(f"{what} must be a list, got {given!r}.") from None


def check_width(width: object) -> None:
    """Refuses what is not the width of a beam."""
    if type(width) is int and 1 <= width <= MAX_WIDTH:
        return
    if isinstance(width, bool) or not isinstance(width, int | np.integer):
        raise ProblemError(f"The width of a beam must be a whole number, got {width!r}.")
    if width < 1:
        raise ProblemError(f"A beam needs a width of at least 1, got {width}.")
    if width > MAX_WIDTH:
        raise ProblemError(f"A beam has a width of at most {MAX_WIDTH:,}, got {width}. Use a solver instead.")


def check_number(name: str, value: object) -> None:
    """Refuses what is not a number or is negative; inf is a number here."""
    if type(value) is float and value >= 0:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(f"{name} must be a number, got {value!r}.")
    if not value >= 0:
        raise ProblemError(f"{name} must be at least 0, got {value}.")
    if isinstance(value, int) and value > sys.float_info.max:
        raise ProblemError(f"{name} must be at most {sys.float_info.max:g}, or inf; got one of more than 300 digits.")


def check_limit(name: str, value: object) -> None:
    """Refuses what is neither a number of seconds, nor None for no limit."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating) or not value >= 0:
        raise ProblemError(f"{name} must be a number of seconds, or None for no limit; got {value!r}.")


def check_switch(name: str, value: object, *, or_none: bool = False) -> None:
    """Refuses what is neither on nor off, nor None where that is a choice."""
    if value is True or value is False or (or_none and value is None):
        return
    if not isinstance(value, np.bool_):
        raise ProblemError(f"{name} must be True or False{', or None' if or_none else ''}, got {value!r}.")


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
