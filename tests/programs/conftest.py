"""Tests of programs: constraints that an earlier test has seen are not known in the next."""

from __future__ import annotations

import pytest

from hasten.programs import solving
from hasten.support.threads import Cache


@pytest.fixture(autouse=True)
def _nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "KNOWN", Cache[bytes, solving.Solving](5_000_000))
