"""Drawing a trace: all of it in one small picture, then a card for each event.

Someone who has never heard of beam search, of a lost gold node, of theta or of bounds should understand them from here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from hasten.kernels.tolerance import TOLERANCE
from hasten.support.words import amount, count
from hasten.trace.events import Belief, Candidate, Message, ProofStep, SearchStep, Trace
from hasten.trace.pictures import (
    WIDE,
    Page,
    Picture,
    box,
    cross,
    dot,
    edge,
    escape,
    paragraph,
    path,
    rect,
    ring,
    text,
)
from hasten.trace.text import candidates_to_show, ending, facts, name_of, small, steps_to_show

CARD, ROW, BOX, LABEL = 378.0, 20.0, 74.0, 122.0  # width of a card, height of a row, a node's box, where labels start
COLUMNS = {"path cost": 256.0, "heuristic": 312.0, "priority": 371.0}  # where the numbers of a candidate end
HIGH, LEFT, RIGHT, TOP, BOTTOM = 250.0, 58.0, 12.0, 14.0, 46.0  # the picture of a proof: its height and margins
MOST_STEPS, MOST_CANDIDATES, MOST_VARIABLES = 16, 12, 12

SEARCH_SIGNS = (
    (dot(11, 7, 4.5), "kept in the beam"),
    (dot(11, 7, 3.5, "off"), "pruned: outside the beam"),
    (dot(11, 7, 2.5, "out"), "ruled out by a constraint"),
    (path("edge on", "M1 7h20"), "the way to the answer"),
)
REFERENCE_SIGNS = (
    (dot(11, 7, 3.5) + ring(11, 7, 6), "agrees with the reference so far (★)"),
    (cross(11, 7, 4), "the reference is lost here"),
)
THETA_SIGN = (rect("band", 2, 0, 18, 14) + text(11, 11, "θ", "t-small middle t-kept"), "costs skipped: gap above theta")
PROOF_SIGNS = (
    (path("best", "M0 7h22") + rect("square", 7, 3, 8, 8), "the best labelling so far"),
    (path("bound", "M0 7h22") + dot(11, 7, 4), "the bound: nothing costs less"),
    (rect("space", 1, 1, 20, 12), "still open"),
)


def page(trace: Trace[Any]) -> Page:
    """Returns a trace as pictures."""
    shown, n = steps_to_show(trace, MOST_STEPS), len(trace.steps)
    answer = way_to_answer(trace)
    cards = [draw_step(trace, t, answer) for t in shown]
    if trace.proof_steps:
        signs, overview = [*PROOF_SIGNS], draw_bounds(trace.proof_steps)
        cards += [draw_beliefs(trace.beliefs)] if trace.beliefs else []
    else:
        signs, overview = [*SEARCH_SIGNS], draw_beams(trace, answer)
        signs += REFERENCE_SIGNS if trace.reference is not None else ()
        signs += [THETA_SIGN] if trace.theta < math.inf else []
    more = [f"{count(n - len(shown), 'step')} of {n:,} not drawn one by one."] if n > len(shown) else []
    return Page(trace.title, trace.explained, signs, overview, cards, [*more, *ending(trace)])


def way_to_answer(trace: Trace[Any]) -> list[Candidate]:
    """Returns, for each step of a search, the candidate on the way to the answer; none without an answer."""
    way: list[Candidate] = []
    node = 0 if trace.choice is None else trace.choice.node
    for step in reversed(trace.search_steps if trace.labels is not None else []):
        way.insert(0, step.kept[node])
        node = way[0].node
    return way


def draw_beams(trace: Trace[Any], answer: Sequence[Candidate]) -> Picture:
    """Returns a whole search in small: a column for each step, a dot for each candidate, the best at the top."""
    steps = trace.search_steps
    columns = [candidates_to_show(step, 64) for step in steps]
    tallest = max(map(len, columns), default=1) + 1.2  # with the gap at the beam's edge
    step_x, step_y = min(56.0, (WIDE - 40) / max(1, len(steps))), max(3.0, min(15.0, 280.0 / tallest))
    r, height = max(1.2, min(4.0, 0.36 * step_y, 0.36 * step_x)), 36 + step_y * tallest
    heads, lines, dots = [], [], []
    before: dict[int, tuple[float, float]] = {}  # where the nodes of the step before are
    for t, (step, column) in enumerate(zip(steps, columns, strict=True)):
        x, places = 20 + step_x * (t + 0.5), dict[int, tuple[float, float]]()
        if step.skipped:
            heads.append(rect("band", x - step_x / 2, 2, step_x, height - 10))
        if len(steps) <= 30 or t % 5 == 4 or step.skipped:
            style = "t-kept" if step.skipped else "t-soft"
            heads.append(text(x, 14, "θ" if step.skipped else str(t + 1), f"t-small middle {style}"))
        for place, each in enumerate(column):
            y = 24 + step_y * (place if each.kept else place + 1.2)
            if each.kept:
                places[len(places)] = x, y
                if each.node in before:
                    lines.append((_way(each, answer[t:]), edge(*before[each.node], x, y, _way(each, answer[t:]))))
            dots.append(_dot(x, y, r, each))
            if each.good:
                dots += [ring(x, y, r + 2), "" if each.kept else cross(x, y, max(4.0, r))]
        before = places
    lines.sort()  # the ways to the answer and to the reference over the others
    title = f"The whole search: {count(len(steps), 'step')}, the best candidates at the top"
    body = "".join([*heads, *(line for _, line in lines), *dots])
    return Picture(body, max(200.0, 40 + step_x * len(steps)), height, title)


def draw_step(trace: Trace[Any], t: int, answer: Sequence[Candidate]) -> Picture:
    """Returns one step as a card."""
    step = trace.steps[t]
    lost = trace.lost is not None and trace.lost.step == t
    about, y = paragraph(facts(trace, step) + (". The reference is lost." if lost else "."), 32, CARD, "t-small t-soft")
    head = text(0, 14, f"{t + 1}. {name_of(step)}", "t-bold", room=CARD)
    if isinstance(step, ProofStep):
        rows, y = paragraph(step.text, y + 4, CARD)
        for message in step.messages[:2]:
            row, y = paragraph(_message(message), y, CARD, "t-small t-soft")
            rows += row
        return Picture(head + about + rows, CARD, y, f"Step {t + 1}, {step.step}: {step.text}")
    rows, y = _candidates(trace, t, y + 6, answer)
    kept = ", ".join(each.label for each in step.kept) or "nothing"
    return Picture(head + about + rows, CARD, y, f"Step {t + 1}, {step.name}: {kept} kept")


def _candidates(trace: Trace[Any], t: int, y: float, answer: Sequence[Candidate]) -> tuple[str, float]:
    """Returns the beam on the left, its candidates on the right, the best first, and the beam's edge."""
    step: SearchStep = trace.steps[t]
    shown = candidates_to_show(step, MOST_CANDIDATES)
    every = [each for others in trace.search_steps for each in others.candidates]
    plain = not any(small(each.heuristic + each.look_ahead, each.path_cost) for each in every)
    columns = {"path cost": COLUMNS["priority"]} if plain and not step.skipped else COLUMNS
    parts = [text(x, y, name, "t-small t-soft end") for name, x in columns.items()]
    y += 16
    top, edged = y, False
    nodes = {node: top + ROW * place for place, node in enumerate(sorted({each.node for each in shown})[:8])}
    for each in shown:
        if not each.kept and not edged:
            parts += [
                path("dash", f"M{LABEL + 72} {y - 8}H{CARD}"),
                text(LABEL, y - 4, "beam’s edge", "t-small t-soft"),
            ]
            y, edged = y + 14, True
        if each.node in nodes and not each.ruled_out:
            parts.append(edge(BOX, nodes[each.node] - 4, LABEL - 14, y - 4, _way(each, answer[t:])))
        parts += [box("glow", LABEL - 20, y - 14, CARD - LABEL + 20, 18)] if each.good else []
        parts.append(_dot(LABEL - 10, y - 4, 4.0, each))
        parts += [cross(LABEL - 10, y - 4, 4)] if each.good and not each.kept else []
        style = "t-gold" if each.good else "t-out" if each.ruled_out else "" if each.kept else "t-soft"
        style = "t-bold t-kept" if not style and _way(each, answer[t:]) else style
        parts.append(text(LABEL, y, f"★ {each.label}" if each.good else each.label, style, room=98))
        if each.ruled_out:
            parts.append(text(LABEL + 98, y, each.ruled_out, "t-small t-soft", room=CARD - LABEL - 98, size=10))
        else:
            cost = "skipped" if step.skipped else amount(each.path_cost)
            added = amount(small(each.heuristic + each.look_ahead, each.path_cost))
            numbers, shade = (cost, added, amount(each.priority)), "" if each.kept else " t-soft"
            parts += [
                text(x, y, number, f"t-small end{shade}") for number, x in zip(numbers, columns.values(), strict=False)
            ]
        y += ROW
    for node, at in nodes.items():
        parent = trace.search_steps[t - 1].kept[node] if t else None
        way = "no variable is labelled yet" if parent is None else ", ".join(trace.path(t - 1, parent))
        name = "start" if parent is None else f"{node + 1} {parent.label}"
        inside = box("box", 0, at - 13, BOX, 17) + text(5, at, name, "t-small", room=BOX - 8, size=11)
        parts.append(f"<g><title>{escape(way)}</title>{inside}</g>")
    if len(shown) < len(step.candidates):
        parts.append(text(LABEL, y, f"… and {len(step.candidates) - len(shown):,} more candidates", "t-small t-soft"))
        y += ROW
    return "".join(parts), max(y, top + ROW * len(nodes)) - 6


def _dot(x: float, y: float, r: float, each: Candidate) -> str:
    style, size = ("", r) if each.kept else ("out", 0.6 * r) if each.ruled_out else ("off", 0.8 * r)
    return dot(x, y, size, style)


def _way(each: Candidate, answer: Sequence[Candidate]) -> str:
    """Returns the style of the way to a candidate, given the rest of the way to the answer."""
    return "on" if answer and each is answer[0] else "gold" if each.good else ""


def draw_bounds(steps: Sequence[ProofStep]) -> Picture:
    """Returns the bound and the best labelling over the steps of a proof, until they meet."""
    known = [value for each in steps for value in (each.cost, each.bound) if math.isfinite(value)] or [0.0, 1.0]
    size = max(abs(known[0]), 1.0)
    apart = max(known) - min(known)
    air = 0.08 * apart if apart > TOLERANCE * size else 0.1 * size  # less is rounding: it would fill the picture
    low, high = min(known) - air, max(known) + air
    width = min(WIDE, max(340.0, LEFT + RIGHT + 52 * len(steps)))
    right, bottom, across = width - RIGHT, HIGH - BOTTOM, (width - RIGHT - LEFT) / len(steps)

    def x(n: float) -> float:
        return LEFT + across * (n + 0.5)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * (value - low) / (high - low)

    parts, r = [], min(4.0, max(1.5, 0.3 * across))
    for value in _ticks(low, high):
        parts.append(path("rule", f"M{LEFT} {y(value):.1f}H{right}"))
        parts.append(text(LEFT - 8, y(value) + 4, amount(value), "t-small t-soft end"))
    for n, each in enumerate(steps):
        if math.isfinite(each.cost - each.bound) and each.cost - each.bound > TOLERANCE * size:
            parts.append(rect("space", x(n - 0.5), y(each.cost), across, y(each.bound) - y(each.cost)))
    for style, values in (("best", [each.cost for each in steps]), ("bound", [each.bound for each in steps])):
        places = [(n, x(n), y(value)) for n, value in enumerate(values) if math.isfinite(value)]
        points = " ".join(f"{a:.1f},{b:.1f}" for _, a, b in places)
        parts.append(f'<polyline class="{style}" points="{points}"/>')
        for n, a, b in places:
            mark = dot(a, b, r) if style == "bound" else rect("square", a - r, b - r, 2 * r, 2 * r)
            parts.append(f"<g><title>{escape(f'{n + 1}. {steps[n].text}')}</title>{mark}</g>")
    marked = [n for n in range(len(steps)) if len(steps) <= 20 or n % 10 == 9]
    parts += [text(x(n), bottom + 16, str(n + 1), "t-small t-soft middle") for n in marked]
    for name, group in groupby(range(len(steps)), key=lambda n: steps[n].step):
        first, *rest = group
        start, end = x(first - 0.42), x((rest or [first])[-1] + 0.42)
        parts.append(path("rule", f"M{start:.1f} {bottom + 23:.1f}H{end:.1f}"))
        if end - start > 4.5 * len(name):
            parts.append(text((start + end) / 2, bottom + 38, name, "t-small t-soft middle"))
    return Picture("".join(parts), width, HIGH, "The bound and the best labelling over the steps of the proof")


def draw_beliefs(beliefs: Sequence[Belief]) -> Picture:
    """Returns the costs of labels before and after all messages, the cheapest of each variable first."""
    body, y = paragraph(
        "A message moves cost from a table to the labels that it concerns, or back. The total of no labelling changes, "
        "but the sum of each variable’s cheapest label comes closer to the cost of the best labelling. Shown are costs "
        "as given → with all messages, the cheapest label first.", 34, WIDE, "t-soft",
    )  # fmt: skip
    groups = [list(group) for _, group in groupby(beliefs, key=lambda each: each.variable)]
    y += 4
    for group in groups[:MOST_VARIABLES]:
        labels = [
            f"{each.label} {amount(each.cost)} → {'out' if each.belief == math.inf else amount(each.belief)}"
            for each in sorted(group, key=lambda each: each.belief)
        ]
        body += text(0, y, group[0].variable, room=180) + text(190, y, ", ".join(labels), "t-small", room=WIDE - 190)
        y += 18
    if len(groups) > MOST_VARIABLES:
        body += text(0, y, f"… and {count(len(groups) - MOST_VARIABLES, 'variable')} more", "t-soft")
        y += 18
    return Picture(text(0, 14, "What messages did", "t-bold") + body, WIDE, y, "What messages did")


def _message(message: Message) -> str:
    sign = "+" if message.amount > 0 else ""
    return f"message: {message.variable} = {message.label} {sign}{amount(message.amount)}, from {message.factor}"


def _ticks(low: float, high: float) -> list[float]:
    """Returns round numbers between two limits."""
    raw = (high - low) / 4
    power = 10.0 ** math.floor(math.log10(raw))
    step = power * next(digit for digit in (1.0, 2.0, 2.5, 5.0, 10.0) if digit * power >= raw * (1 - 1e-9))
    first, last = math.ceil(low / step), math.floor(high / step)
    return [round(n * step, 12) + 0.0 for n in range(first, last + 1)] if last - first < 20 else []
