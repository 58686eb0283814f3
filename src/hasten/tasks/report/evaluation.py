"""An evaluation as a page: scores, labels with their intervals, and a picture of what is taken for what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

from hasten.support.files import write_whole
from hasten.tasks.report.formatting import Entry, counted, fixed, number, text, whole
from hasten.tasks.report.page import head, page
from hasten.tasks.report.terminal import warnings

CELL, LEFT, TOP = 26.0, 118.0, 92.0  # of the picture
MOST_LABELS = 24


def write_report(found: Entry, path: Path, title: str, about: Entry) -> None:
    """Writes the page, whole or not at all."""
    write_whole(Path(path), render(found, title, about).encode("utf-8", "replace"))


def render(found: Entry, title: str, about: Entry) -> str:
    """Returns the page for what `Evaluation.as_dict` returned."""
    tiles = [
        (fixed(value, 3), text(name), f"95% interval {_interval(found['intervals'][name])}")
        for name, value in found["scores"].items()
    ]
    tiles.append((fixed(found["valid"], 3), "valid", "share of answers that break no constraint"))
    lead = f"{text(about.get('source') or 'Texts')}: {counted(found['n_texts'], 'text')} with gold labels."
    warned = "".join(f'<p class="synthetic">{escape(line)}</p>' for line in warnings(found))
    sections = (("Labels", warned + labels(found["labels"])), ("What is taken for what", confusion(found)))
    return page(f"hasten: {title}", head(title, lead, tiles, about), sections, about, "evaluation.json")


def labels(rows: Sequence[Entry]) -> str:
    """The labels, the most frequent first."""
    lines = "".join(
        f'<tr><th class="model">{text(row["label"])}</th><td>{whole(row["n_gold"])}</td>'
        + "".join(f"<td>{fixed(row[key], 3)}</td>" for key in ("precision", "recall", "f1"))
        + f"<td>{_interval(row['interval'])}</td></tr>"
        for row in rows
    )
    heads = "".join(f"<th>{name}</th>" for name in ("in gold", "precision", "recall", "F1", "95% interval"))
    return (
        '<div class="scroll"><table class="plain"><thead><tr><th class="model">label</th>'
        f"{heads}</tr></thead><tbody>{lines}</tbody></table></div>"
    )


def confusion(found: Entry) -> str:
    """A square for each pair of labels that are confused: the darker, the larger the share of the gold label."""
    n_gold: Mapping[str, int] = {row["label"]: row["n_gold"] for row in found["labels"]}
    cells = {(gold, mine): n for gold, mine, n in found["confusions"]}
    if not cells:
        return "<p>Every label is as in gold.</p>"
    rows = [label for label in n_gold if any(gold == label for gold, _ in cells)][:MOST_LABELS]
    columns = [label for label in [*n_gold, "no answer"] if any(mine == label for _, mine in cells)][:MOST_LABELS]
    width, height = LEFT + CELL * len(columns) + 40, TOP + CELL * len(rows) + 8
    parts = [f'<svg class="chart" role="img" viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:{width:.0f}px" '
             'aria-label="Which gold labels are taken for which">']  # fmt: skip
    for j, mine in enumerate(columns):
        x = LEFT + CELL * (j + 0.5)
        parts.append(
            f'<text class="tick" style="text-anchor:start" transform="translate({x + 4:.1f} {TOP - 8}) rotate(-55)">'
            f"{escape(mine[:14])}</text>"
        )
    for i, gold in enumerate(rows):
        y = TOP + CELL * i
        parts.append(f'<text class="tick end" x="{LEFT - 8}" y="{y + 17:.1f}">{escape(gold[:16])}</text>')
        for j, mine in enumerate(columns):
            parts.append(_cell(LEFT + CELL * j, y, gold, mine, cells.get((gold, mine), 0), n_gold[gold]))
    return (
        "<p>Gold labels from top to bottom, the model’s from left to right; the number is how often. Hover for more. "
        f"The {MOST_LABELS} most frequent labels at most.</p><figure>{''.join(parts)}</svg></figure>"
    )


def _cell(x: float, y: float, gold: str, mine: str, n: int, of: int) -> str:
    same = ' style="fill:var(--faint)"' if gold == mine else ""
    if not n:
        return f'<rect class="grid" x="{x:.1f}" y="{y:.1f}" width="{CELL}" height="{CELL}"{same}/>'
    share = n / max(1, of)
    strength = 0.12 + 0.88 * min(1.0, 4 * share)
    return (
        f"<g><title>{escape(gold)} taken for {escape(mine)}: {n:,} of {of:,} ({share:.1%})</title>"
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{CELL}" height="{CELL}" '
        f'style="fill:var(--c2);fill-opacity:{strength:.2f}"/>'
        f'<text class="tick" style="fill:var(--ink)" x="{x + CELL / 2:.1f}" y="{y + 17:.1f}">{n if n < 1000 else "…"}'
        "</text></g>"
    )


def _interval(limits: Sequence[object]) -> str:
    low, high = (number(limit) for limit in limits)
    return "" if low is None or high is None else f"{low:.3f}–{high:.3f}"
