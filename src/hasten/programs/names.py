"""Names with indices: `r[3,4,LiveIn]` and `r[1,2,LiveIn]` are the same label of two variables that play one part."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import count

_NUMBER = re.compile(r"\d+")


def skeleton(name: str) -> str:
    """Returns a name with `#` for each of its numbers.

    >>> skeleton("r[3,4,LiveIn]")
    'r[#,#,LiveIn]'
    """
    return _NUMBER.sub("#", name)


def name_labels(columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns what a variable is called, and its labels, given the names of the columns that they set to 1.

    Numbers that all columns share say which variable it is, others belong to the label; if they share none, labels are
    numbered in the order of the columns.

    >>> name_labels(["e[3,person]", "e[3,place]"])
    ('e[#,person]', ('e[#,person]', 'e[#,place]'))
    >>> name_labels(["x_3_0", "x_3_1"])
    ('x_#_#', ('x_#_0', 'x_#_1'))
    >>> name_labels(["x3", "x4"])
    ('x#', ('x# 0', 'x# 1'))
    """
    bones = [skeleton(name) for name in columns]
    numbers = [_NUMBER.findall(name) for name in columns]
    width = min(len(each) for each in numbers)
    shared = [place for place in range(width) if len({each[place] for each in numbers}) == 1]
    if len(columns) == 1:
        return bones[0], (bones[0],)
    labels = [_without_shared(name, shared) for name in columns]
    if len(set(labels)) < len(labels) or (not shared and all(numbers)):
        labels = [f"{bone} {n}" for n, bone in enumerate(bones)]
    return bones[0], tuple(labels)


def _without_shared(name: str, shared: list[int]) -> str:
    """Returns a name with `#` for some of its numbers, by their places."""
    place = count()
    return _NUMBER.sub(lambda found: "#" if next(place) in shared else found.group(), name)
