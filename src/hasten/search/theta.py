"""Theta, the gap above which a search decides without costs (paper §4.1): the one that has a name, and its words."""

from __future__ import annotations

import sys

FORCED = sys.float_info.max
"""The theta of a search that skips a cost only where it cannot change the beam: where no more candidates are left,
by the constraints, than the beam can hold. The gap there is infinite, and everywhere else it is smaller than this.
"""


def theta_in_words(theta: float, digits: int = 4) -> str:
    """Returns theta as people write it.

    >>> theta_in_words(0.25), theta_in_words(FORCED), theta_in_words(float("inf"))
    ('0.25', 'forced', 'inf')
    """
    return "forced" if theta == FORCED else f"{theta:.{digits}g}"
