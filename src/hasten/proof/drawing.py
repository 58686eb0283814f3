"""A proof as a picture: the bound from below, the best labelling from above, step by step, until they meet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import groupby

from hasten.proof.trace import Belief, Message, ProofStep, ProofTrace, Step, some_steps
from hasten.support import pictures
from hasten.support.pictures import WIDE, Page, Picture, escape, text
from hasten.support.words import amount, count

NARROW, HIGH = 340.0, 250.0
LEFT, RIGHT, TOP, BOTTOM = 58.0, 12.0, 14.0, 46.0  # margins
MOST_STEPS, MOST_VARIABLES, MOST_LABELS = 20, 12, 8

SIGNS = (
    (
        '<path class="best" d="M0 7h22"/><rect class="square" x="7" y="3" width="8" height="8"/>',
        "the best labelling so far",
    ),
    ('<path class="bound" d="M0 7h22"/>' + pictures.dot(11, 7, 4), "the bound: nothing costs less"),
    ('<rect class="space" x="1" y="1" width="20" height="12"/>', "what is still open"),
)
MEANING = {
    Step.LOOK: "look: every variable at its cheapest label",
    Step.REPAIR: "repair: change the labels of the few tables that these break",
    Step.ELIMINATE: "eliminate: minimise variables out, exactly",
    Step.CUT: "cut: two labels a variable, none joined against the others: a smallest cut of a network",
    Step.SWEEP: "sweep: tables send messages to their variables, which raises the bound",
    Step.BRANCH: "branch: try labels, and leave out what the bound shows to be too dear",
}


def page(trace: ProofTrace) -> Page:
    """Returns a proof as pictures."""
    shown = sorted(some_steps(len(trace.steps), MOST_STEPS))
    told = [f"{n + 1}. {trace.steps[n].step.name.lower()}: {trace.steps[n].text}" for n in shown]
    return Page(
        "The proof",
        explained(trace),
        SIGNS,
        draw(trace),
        _steps(trace) + _beliefs(trace.beliefs),
        [pictures.lines_picture("Step by step", told, WIDE)],
        trace.summary(),
    )


def explained(trace: ProofTrace) -> list[str]:
    """Returns what the picture shows, for someone who never heard of it."""
    taken = list(dict.fromkeys(each.step for each in trace.steps))
    return [
        "A labelling is optimal if nothing can cost less. So a proof works from both sides: it looks for cheap "
        "labellings, and it raises a bound below which no valid labelling can be. Where the two meet, the labelling is "
        "proved, and no solver is needed.",
        "The steps taken here, each only because the one before left something open: "
        f"{'; '.join(MEANING[step] for step in taken)}.",
    ]


def draw(trace: ProofTrace) -> Picture:
    """Returns the bound and the best labelling over the steps."""
    steps = trace.steps
    known = [value for each in steps for value in (each.cost, each.bound) if math.isfinite(value)]
    low, high = (min(known), max(known)) if known else (0.0, 1.0)
    air = 0.08 * (high - low) or max(abs(high), 1.0) * 0.1
    low, high = low - air, high + air
    width = min(WIDE, max(NARROW, LEFT + RIGHT + 52 * len(steps)))
    right, bottom = width - RIGHT, HIGH - BOTTOM
    across = (right - LEFT) / max(1, len(steps))

    def x(n: float) -> float:
        return LEFT + across * (n + 0.5)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (min(max(value, low), high) - low) / (high - low)

    parts = []
    for value in _ticks(low, high):
        parts.append(f'<path class="rule" d="M{LEFT} {y(value):.1f}H{right}"/>')
        parts.append(text(LEFT - 8, y(value) + 4, amount(value), "t-small t-soft end"))
    for n, each in enumerate(steps):
        if math.isfinite(each.cost) and math.isfinite(each.bound) and each.cost > each.bound:
            top, tall = y(each.cost), y(each.bound) - y(each.cost)
            parts.append(
                f'<rect class="space" x="{x(n - 0.5):.1f}" y="{top:.1f}" width="{across:.1f}" height="{tall:.1f}"/>'
            )
    for style, values in (("best", [each.cost for each in steps]), ("bound", [each.bound for each in steps])):
        points = [(x(n), y(value)) for n, value in enumerate(values) if math.isfinite(value)]
        if len(points) > 1:
            parts.append(f'<polyline class="{style}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in points)}"/>')
    r = min(4.0, max(1.5, 0.3 * across))
    for n, each in enumerate(steps):
        hint = f"<title>{escape(f'{n + 1}. {each.text}')}</title>"
        if math.isfinite(each.bound):
            parts.append(f"<g>{hint}{pictures.dot(x(n), y(each.bound), r)}</g>")
        if math.isfinite(each.cost):
            at = f'x="{x(n) - r:.1f}" y="{y(each.cost) - r:.1f}" width="{2 * r:.1f}" height="{2 * r:.1f}"'
            parts.append(f'<g>{hint}<rect class="square" {at}/></g>')
    parts += _names_of_steps(steps, x, bottom)
    return Picture("".join(parts), width, HIGH, "The bound and the best labelling over the steps of the proof")


def _names_of_steps(steps: Sequence[ProofStep], x: Callable[[float], float], bottom: float) -> list[str]:
    parts = []
    marked = [n for n in range(len(steps)) if len(steps) <= 20 or n % 10 == 9]
    parts += [text(x(n), bottom + 16, str(n + 1), "t-small t-soft middle") for n in marked]
    for name, group in groupby(enumerate(steps), key=lambda pair: pair[1].step):
        numbers = [n for n, _ in group]
        left, right = x(numbers[0] - 0.42), x(numbers[-1] + 0.42)
        parts.append(f'<path class="rule" d="M{left:.1f} {bottom + 23:.1f}H{right:.1f}"/>')
        words = name.name.lower()
        if right - left > 4.5 * len(words):
            parts.append(text((left + right) / 2, bottom + 38, words, "t-small t-soft middle"))
    return parts


def _steps(trace: ProofTrace) -> str:
    rows, shown = [], some_steps(len(trace.steps), MOST_STEPS)
    for n, each in enumerate(trace.steps):
        if n in shown:
            sent = "".join(f'<br><span class="soft">{escape(_told(message))}</span>' for message in each.messages[:2])
            cells = (
                f'<td class="number">{n + 1}</td><td>{each.step.name.lower()}</td><td>{escape(each.text)}{sent}</td>'
            )
            numbers = "".join(f'<td class="number">{_known(value)}</td>' for value in (each.bound, each.cost))
            rows.append(f"<tr>{cells}{numbers}</tr>")
        elif n - 1 in shown:
            hidden = count(len(trace.steps) - len(shown), "step")
            rows.append(f'<tr><td></td><td></td><td class="soft">… {hidden} not shown</td><td></td><td></td></tr>')
    head = '<th></th><th>step</th><th>what was done</th><th class="number">bound</th><th class="number">best</th>'
    return f'<div class="wide"><table><tr>{head}</tr>{"".join(rows)}</table></div>'


def _known(value: float) -> str:
    return escape(amount(value)) if math.isfinite(value) else "—"


def _told(message: Message) -> str:
    change = f"+{amount(message.amount)}" if message.amount > 0 else amount(message.amount)
    return f"message: {message.variable} = {message.label} {change}, from {message.factor}"


def _beliefs(beliefs: Sequence[Belief]) -> str:
    """Returns what labels cost before and after all messages; the cheapest of each variable marked."""
    groups = [list(group) for _, group in groupby(beliefs, key=lambda each: each.variable)]
    if not groups:
        return ""
    rows = []
    for group in groups[:MOST_VARIABLES]:
        least = min(each.belief for each in group)
        cells = []
        for each in sorted(group, key=lambda each: each.belief)[:MOST_LABELS]:
            mark = ' class="least"' if each.belief == least < math.inf else ""
            after = "out" if each.belief == math.inf else amount(each.belief)
            cells.append(f"<span{mark}>{escape(each.label)} {escape(amount(each.cost))} → {escape(after)}</span>")
        more = f" … {len(group) - MOST_LABELS} more" if len(group) > MOST_LABELS else ""
        rows.append(f"<tr><td>{escape(group[0].variable)}</td><td>{', '.join(cells)}{more}</td></tr>")
    left = len(groups) - MOST_VARIABLES
    hidden = f'<p class="soft">… and {count(left, "variable")} more</p>' if left > 0 else ""
    return (
        "<h4>What messages did</h4><p>A message moves cost from a table to the labels that it concerns, or back. The "
        "total of no labelling changes, but the sum of each variable’s cheapest label, marked here, comes closer to "
        "the cost of the best labelling. Shown are costs as given → with all messages.</p>"
        '<div class="wide"><table><tr><th>variable</th><th>labels, the cheapest first</th></tr>'
        f"{''.join(rows)}</table></div>{hidden}"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two limits."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) + 0.0 for n in range(first, last + 1)] if last - first < 20 else []
