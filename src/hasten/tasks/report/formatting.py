"""What `results.json` holds, as the text of a page: escaped, rounded, a dash where there is nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

Entry = Mapping[str, Any]  # one object of results.json

DASH = '<span class="dash">–</span>'


def text(value: object) -> str:
    """Returns any value, escaped; a dash for None."""
    return DASH if value is None or value == "" else escape(str(value))


def number(value: object) -> float | None:
    """Returns a finite number, or None."""
    known = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    return float(value) if known else None  # type: ignore[arg-type]


def fixed(value: object, digits: int) -> str:
    """Returns a number with so many digits."""
    known = number(value)
    return DASH if known is None else f"{known:,.{digits}f}"


def whole(value: object) -> str:
    """Returns a count."""
    return fixed(value, 0)


def percent(value: object, digits: int = 1) -> str:
    """Returns a share as a percentage."""
    known = number(value)
    return DASH if known is None else f"{100 * known:.{digits}f}%"


def spread(row: Entry) -> str:
    """Returns the mean of the time and its standard deviation."""
    mean, std = number(row.get("time_ms")), number(row.get("time_ms_std"))
    if mean is None:
        return DASH
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2
    more = "" if std is None else f' <span class="std">± {std:,.{digits}f}</span>'
    return f"{mean:,.{digits}f}{more}"


def scored(row: Entry, key: str) -> str:
    """Returns an F1 and, below it, its standard deviation over seeds, if there are several, and its interval."""
    mean = fixed(row.get(key), 3)
    std = number((row.get("std") or {}).get(key))
    limits = [number(limit) for limit in (row.get("interval") or {}).get(key) or ()]
    more = "" if std is None else f'<span class="below">± {std:.3f}</span>'
    known = len(limits) == 2 and None not in limits
    below = f'<span class="below">{limits[0]:.2f}–{limits[1]:.2f}</span>' if known else ""
    return f"{mean}{more}{below}"


def counted(n: object, thing: str) -> str:
    """Returns how many things there are, as one says it."""
    return f"{whole(n)} {thing}" if number(n) == 1 else f"{whole(n)} {thing}s"


def solvers_of(about: Entry) -> str:
    """Returns who answered for the ILP: the solver, and how many sentences another had to answer in its place."""
    answered = about.get("answered_by") or {}
    if len(answered) < 2:
        return text(next(iter(answered), about.get("solver")))
    return " and ".join(f"{text(name)} ({whole(n)} sentences)" for name, n in answered.items())


def solvers_in_words(about: Entry) -> str:
    """Returns who answered for the ILP, as plain text."""
    answered = about.get("answered_by") or {about.get("solver"): about.get("n_test")}
    return " and ".join(f"{name} ({n:,.0f})" if len(answered) > 1 else str(name) for name, n in answered.items())


def ratio(slow: Entry, fast: Entry, key: str) -> str:
    """Returns how many times faster one row is than another."""
    above, below = number(slow.get(key)), number(fast.get(key))
    if above is None or below is None or below <= 0.0:
        return DASH
    return times(above / below)


def times(value: object) -> str:
    """Returns how many times."""
    known = number(value)
    if known is None:
        return DASH
    return f"{known:,.0f}×" if known >= 100 else f"{known:.1f}×" if known >= 2 else f"{known:.2f}×"
