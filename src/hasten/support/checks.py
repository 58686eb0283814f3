"""What settings may be. Each check is cheap where all is well, and otherwise names the setting and what it expects."""

from __future__ import annotations

import numpy as np

from hasten.errors import ProblemError


def check_whole(name: str, value: object, least: int = 0) -> None:
    """Refuses what is not a whole number, or is too small."""
    if type(value) is int and value >= least:
        return
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise ProblemError(f"{name} must be a whole number, got {value!r}.")
    if value < least:
        raise ProblemError(f"{name} must be at least {least}, got {value}.")


def check_width(width: object) -> None:
    """Refuses what is not the width of a beam."""
    if type(width) is int and width >= 1:
        return
    if isinstance(width, bool) or not isinstance(width, int | np.integer):
        raise ProblemError(f"The width of a beam must be a whole number, got {width!r}.")
    if width < 1:
        raise ProblemError(f"A beam needs a width of at least 1, got {width}.")


def check_number(name: str, value: object, least: float = 0.0) -> None:
    """Refuses what is not a number, inf included, or is too small."""
    if type(value) is float and value >= least:
        return
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise ProblemError(f"{name} must be a number, got {value!r}.")
    if not value >= least:
        raise ProblemError(f"{name} must be at least {least:g}, got {value}.")


def check_switch(name: str, value: object, *, or_none: bool = False) -> None:
    """Refuses what is neither on nor off, nor None where that is a choice."""
    if value is True or value is False or (or_none and value is None):
        return
    if not isinstance(value, np.bool_):
        raise ProblemError(f"{name} must be True or False{', or None' if or_none else ''}, got {value!r}.")
