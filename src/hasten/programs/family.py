"""Programs of one family, of any sizes, with the kinds that all of them need in one schema."""

from __future__ import annotations

from collections.abc import Sequence

from hasten.programs.kinds import Kinds
from hasten.programs.program import Program


def share_kinds(programs: Sequence[Program]) -> list[Program]:
    """Gives programs one schema, with the kinds of all of those that were recognised; returns them."""
    able = [program for program in programs if not program.only_solver]
    if able:
        kinds = Kinds([program.recognised.parts for program in able])
        for program in able:
            program.use(kinds)
    return list(programs)
