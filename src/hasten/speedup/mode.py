"""The ways to answer, for everything that predicts."""

from __future__ import annotations

from hasten.support.choices import Choices


class Mode(Choices):
    """How answers come about: proved, or else solved; proved with learned tables; or trusted to the search."""

    CERTIFIED = "certified"
    LEARNED = "learned"
    SEARCH = "search"


class TextMode(Choices):
    """How a labeller of text answers: its tables are known, so there are none to learn."""

    CERTIFIED = Mode.CERTIFIED.value
    SEARCH = Mode.SEARCH.value
