"""An evaluation as a page in the style of the reports: scores in tables, and which labels are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import Any

from hasten.tasks.report.formatting import Entry, fixed, number, percent, text, whole
from hasten.tasks.report.page import any_value, head, page

MOST_LABELS = 24  # of a picture; the rarest share a row
CELL, MARGIN = 26, 190  # pixels
NOTHING = "no label"
LEFT = '<th style="text-align:left">'
OTHERS = "other labels"


def render(found: Entry) -> str:
    """Returns the page of what `evaluation.json` holds."""
    about = found["about"]
    tiles = [
        (fixed(kind["micro"]["f1"], 3), f"F1 of every {escape(name)}", limits_of(kind["micro"], "f1"))
        for name, kind in found["kinds"].items()
    ]
    tiles.append((percent(found["exact"]), "of the sentences are right in every label", "compared with gold"))
    tiles.append((percent(found["valid"]), "of the answers keep every constraint", text(about.get("mode"))))
    lead = (
        f"{whole(found['n'])} labelled sentences of {text(about.get('source'))}, answered by the model "
        f"{text(about.get('model'))}. Intervals are 95% intervals by the bootstrap over sentences."
    )
    sections = [(f"Every {name}", scores(kind)) for name, kind in found["kinds"].items()]
    sections += [
        (f"What {name} is taken for what", confusion(kind["confused"]))
        for name, kind in found["kinds"].items()
        if kind["confused"]
    ]
    sections.append(("Gold that cannot be reached", unreachable(found.get("unreachable") or {})))
    sections.append(("What was run", facts(about)))
    return page("hasten: an evaluation", head("Evaluation", lead, tiles, about), sections, about, "evaluation.json")


def limits_of(score: Entry, name: str) -> str:
    """Returns the interval of a number."""
    limits = [number(each) for each in (score.get("intervals") or {}).get(name) or ()]
    return f"{limits[0]:.3f}–{limits[1]:.3f}" if len(limits) == 2 and None not in limits else ""


def scores(kind: Entry) -> str:
    """Returns the table of one kind: a row for each label, and one for all."""
    lines = [_row(score) for score in kind["labels"]]
    lines.append(_row(kind["micro"], "all (micro)"))
    macro = f"<p>Macro F1, the mean over labels that have gold: {fixed(kind['macro_f1'], 3)}.</p>"
    return (
        '<div class="scroll"><table><thead><tr>' + LEFT + "label</th><th>gold</th><th>found</th><th>right</th>"
        f"<th>precision</th><th>recall</th><th>F1</th></tr></thead><tbody>{''.join(lines)}</tbody></table></div>{macro}"
    )


def _row(score: Entry, name: str | None = None) -> str:
    shares = "".join(
        f'<td>{fixed(score[key], 3)}<span class="below">{limits_of(score, key)}</span></td>'
        for key in ("precision", "recall", "f1")
    )
    counts = "".join(f"<td>{whole(score[key])}</td>" for key in ("n_gold", "n_found", "n_right"))
    return f"<tr>{LEFT}{escape(name or str(score['label']))}</th>{counts}{shares}</tr>"


def confusion(pairs: Sequence[Entry]) -> str:
    """Returns a picture: a row for each gold label, a column for each found, darker the larger its share of the row."""
    counts = Counter({(each["gold"], each["found"]): int(each["n"]) for each in pairs})
    common = [label for label, _ in _frequencies(counts).most_common(MOST_LABELS)]
    names: list[str | None] = [*sorted(common), *([OTHERS] if len(_frequencies(counts)) > len(common) else []), None]
    grid: Counter[tuple[str | None, str | None]] = Counter()
    for (gold, found), n in counts.items():
        grid[_shown(gold, common), _shown(found, common)] += n
    size, parts = MARGIN + CELL * len(names), list[str]()
    for i, gold in enumerate(names):
        total = sum(grid[gold, found] for found in names)
        y = MARGIN + CELL * i
        parts.append(_label(gold, MARGIN - 8, y + CELL * 0.68))
        parts.append(_label(gold, MARGIN + CELL * (i + 0.68), MARGIN - 8, upright=True))
        for j, found in enumerate(names):
            if n := grid[gold, found]:
                parts.append(_cell(gold, found, n, total, MARGIN + CELL * j, y))
    return (
        "<p>A row is a gold label, a column what was found in its place; numbers are counts, and a cell is darker the "
        "larger its share of the row.</p>"
        f'<svg class="confusion" viewBox="0 0 {size} {size}" width="{size}" role="img" '
        f'aria-label="Which labels are taken for which" style="max-width:100%;height:auto">{"".join(parts)}</svg>'
    )


def _frequencies(counts: Counter[tuple[str | None, str | None]]) -> Counter[str]:
    found: Counter[str] = Counter()
    for pair, n in counts.items():
        found.update({label: n for label in set(pair) if label is not None})
    return found


def _shown(label: str | None, common: Sequence[str]) -> str | None:
    return label if label is None or label in common else OTHERS


def _label(name: str | None, x: float, y: float, *, upright: bool = False) -> str:
    shown = NOTHING if name is None else name if len(name) <= 24 else name[:23] + "…"
    place = f'transform="translate({x} {y}) rotate(-90)"' if upright else f'x="{x}" y="{y}" text-anchor="end"'
    return f'<text {place} font-size="12" fill="currentColor">{escape(shown)}</text>'


def _cell(gold: str | None, found: str | None, n: int, total: int, x: int, y: int) -> str:
    share = n / total if total else 0.0
    said = f"{gold or NOTHING} found as {found or NOTHING}: {n:,} ({share:.0%} of its row)"
    hue = "var(--c3)" if gold == found else "var(--c2)"
    shown = f"{n:,}" if n < 1000 else f"{n / 1000:.0f}k"
    ink = "currentColor" if share < 0.6 else "#fff"
    return (
        f'<g><title>{escape(said)}</title><rect x="{x + 1}" y="{y + 1}" width="{CELL - 2}" height="{CELL - 2}" rx="3" '
        f'fill="{hue}" fill-opacity="{0.08 + 0.92 * share:.2f}"/><text x="{x + CELL / 2}" y="{y + CELL * 0.64}" '
        f'font-size="9" text-anchor="middle" fill="{ink}">{shown}</text></g>'
    )


def unreachable(found: Entry) -> str:
    """Says which gold labels no valid answer has."""
    return f"<p>{text(found.get('in_words'))}</p>" if found.get("in_words") else ""


def facts(about: Entry) -> str:
    """Returns what is known of the model and the file."""
    lines: list[str] = []
    for key, value in about.items():
        shown: Any = any_value(value)
        lines.append(f"<div><dt>{escape(key.replace('_', ' '))}</dt><dd>{shown}</dd></div>")
    return f'<dl class="about">{"".join(lines)}</dl>'
