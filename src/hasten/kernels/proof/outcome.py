"""How a certification ends: what is known of a problem, and by which step."""

from __future__ import annotations

PROVED, OPEN, INFEASIBLE = 0, 1, 2
GIVEN, SIGHT, MENDING, ELIMINATION, SWEEPS, BRANCHING = 0, 1, 2, 3, 4, 5  # labels may also be those given
