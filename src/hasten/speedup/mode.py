"""The ways to answer, for everything that predicts."""

from __future__ import annotations

from enum import StrEnum


class Mode(StrEnum):
    """How answers come about: proved, or else solved; proved with learned tables; or trusted to the search."""

    CERTIFIED = "certified"
    LEARNED = "learned"
    SEARCH = "search"

    @classmethod
    def choices(cls) -> str:
        """Returns the modes there are, for an error."""
        return " or ".join(repr(each.value) for each in cls)


class TextMode(StrEnum):
    """How a labeller of text answers: its tables are known, so there are none to learn."""

    CERTIFIED = Mode.CERTIFIED.value
    SEARCH = Mode.SEARCH.value

    @classmethod
    def choices(cls) -> str:
        """Returns the modes there are, for an error."""
        return " or ".join(repr(each.value) for each in cls)
