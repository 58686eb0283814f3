"""Constants of the library that decide which step a proof takes, changed for the time of a trial."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch


@contextmanager
def lowered(constants: dict[str, Any]) -> Iterator[None]:
    """Gives constants, by the names of their modules and their own, other values while it lasts."""
    with ExitStack() as stack:
        for name, value in constants.items():
            stack.enter_context(patch(name, value))
        yield
