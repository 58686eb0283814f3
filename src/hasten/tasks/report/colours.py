"""Colours of labels: the same for one label throughout a page."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from html import escape

HUES = ("var(--c1)", "var(--c3)", "var(--c4)", "var(--c6)")  # of the page's style; --c2 warns
GREY = "var(--c5)"  # for labels that say nothing


def label_colours(labels: Iterable[str], quiet: Container[str] = ()) -> dict[str, str]:
    """Returns a colour of its own for every label; grey for those that say nothing.

    Four have the hues of the figures. More have hues evenly spread, but for orange, which warns; every other one is
    darker, so that neighbours differ.
    """
    known = list(dict.fromkeys(labels))
    named = [name for name in known if name not in quiet]
    if len(named) <= len(HUES):
        chosen = dict(zip(named, HUES, strict=False))
    else:
        hues = [round((50 + 320 * i / len(named)) % 360, 1) for i in range(len(named))]
        chosen = {
            name: f"hsl({hue} 65% var(--{'deep' if i % 2 else 'light'}))"
            for i, (name, hue) in enumerate(zip(named, hues, strict=True))
        }
    return chosen | {name: GREY for name in known if name in quiet}


def key_of(colours: Mapping[str, str]) -> str:
    """Returns a legend of labels and their colours."""
    items = "".join(
        f'<li><span class="swatch" style="--tint:{colour}"></span>{escape(name)}</li>'
        for name, colour in colours.items()
    )
    return f'<ul class="legend">{items}</ul>'
