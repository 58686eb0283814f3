"""What notebooks show of a speedup: its settings, what it did, and how far its search can be trusted."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from hasten.support.html import card, sentence, table

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup


def of_speedup(speedup: Speedup) -> str:
    """Shows the settings that differ from their defaults and, once it was used, what there is to tell of that."""
    settings, title = speedup._set(), f"Speedup: {speedup.mode}"
    parts = [table(["setting", "value"], ([name, repr(value)] for name, value in settings.items()), len(settings))]
    memory = speedup._kept
    if memory is None:
        return card(title, sentence("Not used yet."), *parts)
    counts = {name: n for name, n in asdict(memory.counters).items() if n}
    parts.append(table(["counter", "count"], ([name.replace("_", " "), n] for name, n in counts.items()), len(counts)))
    if memory.choice is not None:
        parts.append(sentence(str(memory.choice)))
    if memory.audit.agreement.n:
        parts.append(sentence(f"Agrees with the black box: {memory.audit.agreement}."))
    if not memory.audit.trusted:
        parts.append(sentence(f"It is not trusted for now: agreement was {memory.audit.distrust}."))
    return card(title, *parts)
