"""Settings that are one of a few names."""

from __future__ import annotations

from enum import StrEnum


class Choices(StrEnum):
    """A few names to choose from."""

    @classmethod
    def choices(cls) -> str:
        """Returns the names there are, for an error."""
        return " or ".join(repr(each.value) for each in cls)
