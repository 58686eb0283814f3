"""Example sentences step by step: how the search lost the ILP's answer, and how that was proved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from hasten.proof.drawing import section as draw_proof
from hasten.proof.trace import ProofTrace
from hasten.search.drawing import section as draw_search
from hasten.search.trace import SearchTrace
from hasten.support.pictures import on_a_page


def draw_traces(examples: Sequence[Mapping[str, Any]]) -> str:
    """Returns the examples that have traces, each to be unfolded; nothing if none has."""
    drawn = [drawing for drawing in map(_draw, examples) if drawing]
    if not drawn:
        return ""
    return (
        '<h3>Step by step</h3><p class="unfold">How greedy search and the learned search label a sentence, where they '
        "lose the ILP’s answer, and how that answer is proved. Click on a sentence to unfold it.</p>" + "".join(drawn)
    )


def _draw(example: Mapping[str, Any]) -> str:
    """Returns one example; nothing if its traces are missing, or not what `to_dict` wrote."""
    try:
        traces = example["traces"]
        searches = [SearchTrace.from_dict(each) for each in traces["searches"]]
        parts = [*map(draw_search, searches), draw_proof(ProofTrace.from_dict(traces["proof"]))]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, OverflowError):
        return ""
    words = " ".join(str(token) for token in example.get("tokens") or ())
    bodies = "".join(f'<div class="part">{part}</div>' for part in parts)
    return f'<details class="trace"><summary>{escape(words)}</summary>{on_a_page(bodies)}</details>'
