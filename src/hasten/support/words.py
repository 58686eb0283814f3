"""Numbers and lists of names as people write them; HTML and SVG whose text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape

MOST_PAIRS = 16


def amount(value: float) -> str:
    """Returns a number, short; the same number always looks the same.

    >>> amount(1.25), amount(-0.0), amount(float("inf")), amount(1234567.0)
    ('1.25', '0', 'infinite', '1.235e+06')
    """
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    return f"{value + 0.0:.4g}"


def plain_number(value: float) -> float | str:
    """Returns a number as JSON can hold it; what is not finite as a word that `float` reads.

    >>> plain_number(1.5), plain_number(float("inf"))
    (1.5, 'inf')
    """
    return float(value) if math.isfinite(value) else str(float(value))


def count(n: int, name: str) -> str:
    """Returns how many there are of something.

    >>> count(1, "step"), count(1200, "step")
    ('1 step', '1,200 steps')
    """
    return f"{n:,} {name}{'' if n == 1 else 's'}"


def first_few(names: Sequence[str], most: int) -> str:
    """Returns some names, and how many more there are.

    >>> first_few(["cat", "dog", "cow"], 2), first_few(["cat"], 2)
    ('cat, dog and 1 more', 'cat')
    """
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def ordinal(n: int) -> str:
    """Returns a number's place in a row.

    >>> [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 21, 112)]
    ['1st', '2nd', '3rd', '4th', '11th', '12th', '21st', '112th']
    """
    if n % 100 in (11, 12, 13):
        return f"{n:,}th"
    return f"{n:,}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(n % 10, 'th') }"


def paired(names: Sequence[str], labels: Sequence[str]) -> str:
    """Returns names with their labels, the first of them if there are many.

    >>> paired(["Colin", "Ordon Village"], ["person", "location"])
    'Colin = person, Ordon Village = location'
    """
    pairs = [f"{name} = {label}" for name, label in zip(names, labels, strict=True)]
    more = [f"and {len(pairs) - MOST_PAIRS:,} more"] if len(pairs) > MOST_PAIRS else []
    return ", ".join([*pairs[:MOST_PAIRS], *more])


EMPTY = ("meta", "path", "rect", "circle", "polyline")  # elements without content


class Html(str):
    """Text that is HTML already, and is not escaped again."""

    __slots__ = ()


def tag(name: str, *children: object, **attributes: object) -> Html:
    """Returns an element; its children are joined as `join` does.

    A trailing underscore of an attribute's name is dropped (`class_`), other ones are hyphens. Attributes that are None
    or "" are left out; a float has one digit, as coordinates do.
    """
    named = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{f"{value:.1f}" if isinstance(value, float) else escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None and value != ""
    )
    return Html(f"<{name}{named}/>" if name in EMPTY else f"<{name}{named}>{join(*children)}</{name}>")


def join(*children: object) -> Html:
    """Returns children side by side: text is escaped, HTML is not, lists are joined, None is left out."""
    parts = []
    for child in children:
        if isinstance(child, Html):
            parts.append(child)
        elif isinstance(child, Iterable) and not isinstance(child, str):
            parts.append(join(*child))
        elif child is not None:
            parts.append(Html(escape(str(child))))
    return Html("".join(parts))
