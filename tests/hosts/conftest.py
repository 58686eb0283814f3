"""Each test begins as a new process would: nothing is known of whether HiGHS alone is faster."""

from __future__ import annotations

import pytest

from hasten.programs import solving


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solving, "FIRST_TIMES", {})
