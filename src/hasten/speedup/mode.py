"""How labellers of text answer."""

from __future__ import annotations

from hasten.support.choices import Choices


class TextMode(Choices):
    """How a labeller of text answers: its tables are known, so there are none to learn."""

    CERTIFIED = "certified"
    SEARCH = "search"
