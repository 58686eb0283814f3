"""Hypothesis tries the same examples on every run; `--hypothesis-profile=thorough` tries more, at random."""

from __future__ import annotations

import os

os.environ.setdefault("HASTEN_TIER", "compiled")  # before the package is imported: many small calls, most of them alike

from hypothesis import HealthCheck, settings

_SLOW_TO_DRAW = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]

settings.register_profile("ci", deadline=None, max_examples=150, derandomize=True, suppress_health_check=_SLOW_TO_DRAW)
settings.register_profile(
    "thorough", deadline=None, max_examples=2000, suppress_health_check=_SLOW_TO_DRAW, print_blob=True
)
settings.load_profile("ci")
