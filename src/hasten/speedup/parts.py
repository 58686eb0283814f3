"""The parts that a speedup is made of: how it answers, what it trusts, and how long it may take.

Each part is a frozen value with a few settings of its own, checked when it is made.
"""

from __future__ import annotations

from dataclasses import dataclass

from hasten.support.checks import check_limit, check_whole


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an answer may take. What runs out of time is the best labelling found so far, and says so.

    time_limit
        Seconds of the wall clock that a problem may take in all. The proof has at most half of them; the solver has
        what the proof leaves. None, the default, is no limit.
    call_limit
        Seconds that all problems of a call may take. None, the default, is no limit.
    max_nodes
        How far a proof branches before the solver is asked (`Certifier`). None, the default, branches as far as pays.
    """

    time_limit: float | None = None
    call_limit: float | None = None
    max_nodes: int | None = None

    def __post_init__(self) -> None:
        check_limit("time_limit", self.time_limit)
        check_limit("call_limit", self.call_limit)
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)

    @property
    def timed(self) -> bool:
        """Whether time is limited."""
        return self.time_limit is not None or self.call_limit is not None
