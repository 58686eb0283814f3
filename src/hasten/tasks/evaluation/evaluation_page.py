"""An evaluation as a page in the style of the reports: scores in tables, and which labels are taken for which."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence
from html import escape

from hasten.tasks.evaluation.page import Entry, fixed, head, number, page, percent, text, what_was_run, whole

MOST_LABELS = 24  # of a picture; the rarest share a row
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
    sections.append(("What was run", what_was_run(about, {})))
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
    """Returns a table: a row for each gold label, a column for each found, darker the larger its share of the row."""
    counts = Counter({(each["gold"], each["found"]): int(each["n"]) for each in pairs})
    often: Counter[str] = Counter()
    for pair, n in counts.items():
        often.update({label: n for label in set(pair) if label is not None})
    common = {label for label, _ in often.most_common(MOST_LABELS)}
    grid: Counter[tuple[str, str]] = Counter()
    for (gold, found), n in counts.items():
        grid[_shown(gold, common), _shown(found, common)] += n
    names = [*sorted(common), *([OTHERS] if len(often) > len(common) else []), NOTHING]
    heads = "".join(f"<th><span>{escape(name)}</span></th>" for name in names)
    lines = []
    for gold in names:
        total = sum(grid[gold, found] for found in names)
        cells = "".join(_cell(gold, found, grid[gold, found], total) for found in names)
        lines.append(f"<tr>{LEFT}{escape(gold)}</th>{cells}</tr>")
    return (
        "<p>A row is a gold label, a column what was found in its place; numbers are counts, and a cell is darker the "
        'larger its share of the row.</p><div class="scroll"><table class="confusion"><thead><tr><th></th>'
        f"{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table></div>"
    )


def _shown(label: str | None, common: Container[str]) -> str:
    return NOTHING if label is None else label if label in common else OTHERS


def _cell(gold: str, found: str, n: int, total: int) -> str:
    if not n:
        return "<td></td>"
    share = n / total
    said = f"{gold} found as {found}: {n:,} ({share:.0%} of its row)"
    hue, dark = "--c3" if gold == found else "--c2", ' class="dark"' if share >= 0.6 else ""
    tint = f"background:color-mix(in srgb, var({hue}) {8 + 92 * share:.0f}%, transparent)"
    return f'<td{dark} style="{tint}" title="{escape(said)}">{whole(n)}</td>'


def unreachable(found: Entry) -> str:
    """Says which gold labels no valid answer has."""
    return f"<p>{text(found.get('in_words'))}</p>" if found.get("in_words") else ""
