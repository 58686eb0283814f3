"""The two ways to answer, for everything that predicts."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """How answers come about: proved, or else solved; or trusted to the search."""

    CERTIFIED = "certified"
    SEARCH = "search"

    @classmethod
    def choices(cls) -> str:
        """Returns the modes there are, for an error."""
        return " or ".join(repr(each.value) for each in cls)
