"""A search as a picture: the whole of it in small, then its steps, each with its candidates on both sides of the edge.

Someone who has never heard of beam search, of a lost gold node or of theta should understand them from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from hasten.search.theta import theta_in_words
from hasten.search.trace import (
    MOST_RULED_OUT,
    ROUNDING,
    Candidate,
    SearchStep,
    SearchTrace,
    candidates_to_show,
    steps_to_show,
)
from hasten.support import pictures
from hasten.support.pictures import WIDE, Page, Picture, escape, text
from hasten.support.words import amount, count

CARD = 378.0  # the width of a step
MOST_STEPS, MOST_CANDIDATES, MOST_PARENTS = 16, 12, 8
ROW, BOX = 20.0, 74.0
LABEL = 122.0  # where the label of a candidate starts
COLUMNS = (256.0, 312.0, 371.0)  # where its numbers end

SIGNS = (
    (pictures.dot(11, 7, 4.5), "kept in the beam"),
    (pictures.dot(11, 7, 3.5, "off"), "pruned: outside the beam"),
    (pictures.dot(11, 7, 2.5, "out"), "ruled out by a constraint"),
    ('<path class="edge on" d="M1 7h20"/>', "the way to the answer"),
)
GOOD_SIGNS = (
    (pictures.dot(11, 7, 3.5) + pictures.ring(11, 7, 6), "agrees with the reference so far (★)"),
    (pictures.cross(11, 7, 4), "the reference is lost here"),
)
THETA_SIGN = (
    '<rect class="band" x="2" y="0" width="18" height="14"/><text class="t-small middle t-kept" x="11" y="11">θ</text>'
)


def page(trace: SearchTrace) -> Page:
    """Returns a search as pictures."""
    shown = steps_to_show(trace, MOST_STEPS)
    drawn = {t: draw_step(trace, t) for t in shown}
    cards, last = [], -1
    for t, picture in drawn.items():
        if t > last + 1:
            left = count(t - last - 1, "step")
            cards.append(f'<p class="more">… {left} not drawn one by one; all are in the picture above</p>')
        cards.append(f"<figure>{picture.svg()}</figure>")
        last = t
    hidden = len(trace.steps) - len(shown)
    more = [f"{count(hidden, 'step')} of {len(trace.steps):,} not drawn one by one."] if hidden else []
    return Page(
        trace.search,
        explained(trace),
        signs(trace),
        draw_whole(trace) if trace.steps else None,
        f'<div class="cards">{"".join(cards)}</div>' if cards else "",
        list(drawn.values()),
        [*more, *trace.summary()],
    )


def signs(trace: SearchTrace) -> list[tuple[str, str]]:
    """Returns the signs that a picture uses, and what they mean."""
    skips = [(THETA_SIGN, "costs skipped: the gap is above theta")] if trace.theta < math.inf else []
    return [*SIGNS, *(GOOD_SIGNS if trace.reference is not None else ()), *skips]


def explained(trace: SearchTrace) -> list[str]:
    """Returns what the picture shows, for someone who never heard of it."""
    said, b = [], f"{trace.width:,}"
    if trace.eliminated and not trace.steps:
        return ["All variables were minimised out exactly, so that nothing was left to search: the answer is optimal."]
    if trace.eliminated:
        said.append(
            f"Minimised out first, exactly: {count(len(trace.eliminated), 'variable')}. What they will cost at best is "
            "part of the path costs of the others, and at the end each gets its best label."
        )
    if trace.steps and trace.steps[0].gap is None:
        said.append(
            "The search labels one variable after the other, each with the cheapest label that is left. After each "
            "choice, labels of other variables that no longer fit it are crossed out."
        )
    elif trace.width == 1:
        said.append(
            "Greedy search labels one variable after the other and never looks back. Each label is a candidate; its "
            "priority is its path cost (the costs of all labels so far) plus what the learned heuristic adds. The one "
            "with the smallest priority is kept, the others are pruned."
        )
    else:
        said.append(
            f"Beam search labels one variable after the other. A node is a labelling so far; a beam has the best {b}. "
            "At each step every node is continued with every label of the next variable: these are the candidates. "
            "They are ranked by priority, the smaller the better: path cost (the costs of all labels so far) plus "
            f"heuristic (what was learned). The best {b} are the next beam; the others are pruned, for good."
        )
    if trace.reference is not None:
        said.append(
            "The star follows the reference, the answer that the search should find. Once its candidate falls "
            "below the beam’s edge, no later step can bring it back: the gold node is lost."
        )
    if trace.theta < math.inf:
        said.append(
            "Costs take time to compute. The gap tells how much worse the heuristic finds the first candidate outside "
            "the beam than the last one inside. Where it is above theta, here "
            f"{theta_in_words(trace.theta)}, the heuristic decides alone, and the costs of that variable are skipped."
        )
    return said


def draw_whole(trace: SearchTrace) -> Picture:
    """Returns the whole search in small: a column for each step, a dot for each candidate, the best at the top."""
    n = len(trace.steps)
    step_x = min(56.0, (WIDE - 40) / max(1, n))
    columns = [_column(step) for step in trace.steps]
    tallest = max((len(column) for column in columns), default=1)
    step_y = max(3.0, min(15.0, 280.0 / max(1, tallest)))
    r = max(1.2, min(4.0, 0.36 * step_y, 0.36 * step_x))
    top = 24.0
    places = [
        {id(each): (20 + step_x * (t + 0.5), top + step_y * y) for y, each in column}
        for t, column in enumerate(columns)
    ]
    ways = answer_ways(trace)
    bands, lines, dots = [], [], []
    for t, (step, column) in enumerate(zip(trace.steps, columns, strict=True)):
        x = 20 + step_x * (t + 0.5)
        if step.skipped:
            high = step_y * tallest + 12
            bands.append(
                f'<rect class="band" x="{x - step_x / 2:.1f}" y="2" width="{step_x:.1f}" height="{high + 14:.1f}"/>'
            )
        head = "θ" if step.skipped else str(t + 1)
        if n <= 30 or t % 5 == 4 or step.skipped:
            bands.append(text(x, 14, head, "t-small middle " + ("t-kept" if step.skipped else "t-soft")))
        for _, each in column:
            at = places[t][id(each)]
            before = trace.steps[t - 1].kept if t else ()
            if t and each.kept and id(before[each.node]) in places[t - 1]:
                style = "on" if each is ways[t] else "gold" if each.good else ""
                lines.append(pictures.edge(*places[t - 1][id(before[each.node])], *at, style))
            style, size = ("", r) if each.kept else ("out", 0.6 * r) if each.ruled_out else ("off", 0.75 * r)
            dots.append(pictures.dot(*at, size, style))
            if each.good:
                dots.append(pictures.ring(*at, r + 2))
                if not each.kept:
                    dots.append(pictures.cross(*at, max(4.0, r)))
    lines.sort(key=lambda line: ("on" in line, "gold" in line))
    height = top + step_y * tallest + 12
    title = f"The whole search: {count(n, 'step')}, the best candidates at the top"
    return Picture("".join([*bands, *lines, *dots]), max(200.0, 40 + step_x * n), height, title)


def draw_step(trace: SearchTrace, t: int) -> Picture:
    """Returns one step: the beam on the left, its candidates on the right, the best first, and the beam's edge."""
    step, answer = trace.steps[t], answer_ways(trace)[t]
    shown = candidates_to_show(step, MOST_CANDIDATES, MOST_RULED_OUT)
    columns = columns_of(trace)
    parts = [text(0, 14, f"{t + 1}. {step.name}", "t-bold", room=CARD - 96)]
    computed = "costs skipped (θ)" if step.skipped else "costs computed"
    parts.append(text(CARD, 14, computed, "t-small end " + ("t-kept" if step.skipped else "t-soft")))
    y = 32.0
    for line in pictures.wrapped(what_happened(trace, step), CARD, 11.5):
        parts.append(text(0, y, line, "t-small t-soft"))
        y += 15
    y += 6
    parts += [text(x, y, words, "t-small t-soft end") for words, x in columns.items()]
    y += 16
    top, parents = y, _parents(shown)
    ahead = trace.reference is not None and not any(each.good for each in step.kept)
    edged = False
    for each in shown:
        if not each.kept and not edged:
            edged = True
            parts.append(f'<path class="dash" d="M{LABEL + 72:.0f} {y - 8:.1f}H{CARD:.0f}"/>')
            parts.append(text(LABEL, y - 4, "beam’s edge", "t-small t-soft"))
            y += 14
        place = parents.get(each.node)
        if place is not None and not each.ruled_out:
            style = "on" if each is answer else "gold" if each.good else ""
            parts.append(pictures.edge(BOX, top + ROW * place - 4, LABEL - 14, y - 4, style))
        parts += _row(step, each, y, columns, lost=ahead and each.good, answer=each is answer)
        y += ROW
    for node, place in parents.items():
        label = trace.steps[t - 1].kept[node].label if t else "start"
        way = ", ".join(trace.path(t - 1, trace.steps[t - 1].kept[node])) if t else "no variable is labelled yet"
        at = top + ROW * place
        parts.append(f"<g><title>{escape(way)}</title>{pictures.box(0, at - 13, BOX, 17, 'box')}")
        parts.append(text(5, at, f"{node + 1} {label}" if t else label, "t-small", room=BOX - 8, size=11) + "</g>")
    left = len(step.candidates) - len(shown)
    if left:
        parts.append(text(LABEL, y, f"… and {left:,} more candidates", "t-small t-soft"))
        y += ROW
    height = max(y, top + ROW * len(parents)) - 6
    title = f"Step {t + 1}, {step.name}: {', '.join(each.label for each in step.kept) or 'nothing'} kept"
    return Picture("".join(parts), CARD, height, title)


def what_happened(trace: SearchTrace, step: SearchStep) -> str:
    """Returns a step in a sentence or two."""
    out = sum(bool(each.ruled_out) for each in step.candidates)
    kept = len(step.kept)
    said = f"{count(len(step.candidates), 'candidate')}"
    said += f", {out} ruled out" if out else ""
    said += (
        f"; {'the best is' if kept == 1 else f'the best {kept} are'} kept." if kept else "; none is left: a dead end."
    )
    if trace.theta < math.inf and step.gap is not None:
        gap, theta = amount(step.gap), theta_in_words(trace.theta)
        if step.skipped and step.gap == math.inf:
            said += " All that are left fit into the beam: no cost is needed."
        elif step.skipped:
            said += f" Gap {gap} > θ {theta}: the heuristic decides." if trace.theta else " θ 0: the heuristic decides."
        else:
            said += f" Gap {gap} ≤ θ {theta}: costs decide."
    earlier = [name for name in step.computed if name != step.name]
    if earlier:
        said += f" Computed late: {', '.join(earlier)}."
    if trace.reference is not None and step.good is not None and not step.good.kept:
        said += " The reference is lost."
    return said


def columns_of(trace: SearchTrace) -> dict[str, float]:
    """Returns the numbers that candidates are shown with, and where: the path cost alone if nothing is added to it."""
    every = [each for step in trace.steps for each in step.candidates]
    learned = any(each.heuristic for each in every)
    ahead = any(_small(each.look_ahead, each.path_cost) for each in every)
    if not (learned or ahead or any(step.skipped for step in trace.steps)):
        return {"path cost": COLUMNS[2]}
    added = "look-ahead" if not learned and ahead else "h + look-ahead" if ahead else "heuristic"
    return dict(zip(("path cost", added, "priority"), COLUMNS, strict=True))


def answer_ways(trace: SearchTrace) -> list[Candidate | None]:
    """Returns, for each step, the candidate on the way to the answer."""
    ways: list[Candidate | None] = [None] * len(trace.steps)
    if trace.labels is None or not trace.steps:
        return ways
    node = trace.choice.node if trace.choice is not None else 0
    for t in range(len(trace.steps) - 1, -1, -1):
        ways[t] = chosen = trace.steps[t].kept[node]
        node = chosen.node
    return ways


def _row(
    step: SearchStep, each: Candidate, y: float, columns: Mapping[str, float], *, lost: bool, answer: bool
) -> list[str]:
    parts = []
    if each.good:
        parts.append(pictures.box(LABEL - 20, y - 14, CARD - LABEL + 20, 18, "glow"))
    style, size = ("", 4.0) if each.kept else ("out", 2.5) if each.ruled_out else ("off", 3.2)
    parts.append(pictures.dot(LABEL - 10, y - 4, size, style))
    if lost:
        parts.append(pictures.cross(LABEL - 10, y - 4, 4))
    name = f"★ {each.label}" if each.good else each.label
    weight = (
        "t-gold"
        if each.good
        else "t-out"
        if each.ruled_out
        else "t-bold t-kept"
        if answer
        else ""
        if each.kept
        else "t-soft"
    )
    parts.append(text(LABEL, y, name, weight, room=98))
    if each.ruled_out:
        parts.append(text(LABEL + 98, y, each.ruled_out, "t-small t-soft", room=CARD - LABEL - 98, size=10))
        return parts
    shade = "" if each.kept else " t-soft"
    numbers = (
        "skipped" if step.skipped else amount(each.path_cost),
        amount(_small(each.heuristic + each.look_ahead, each.path_cost)),
        amount(each.priority),
    )
    for number, x in zip(numbers if len(columns) > 1 else numbers[:1], columns.values(), strict=True):
        parts.append(text(x, y, number, f"t-small end{shade}"))
    return parts


def _parents(shown: Sequence[Candidate]) -> dict[int, int]:
    """Returns the nodes of the beam that are drawn, and their places from the top."""
    nodes = sorted({each.node for each in shown})[:MOST_PARENTS]
    return {node: place for place, node in enumerate(nodes)}


def _column(step: SearchStep) -> list[tuple[float, Candidate]]:
    """Returns the candidates of a step that are drawn in small, and how far from the top."""
    some = candidates_to_show(step, 64)
    n_kept = sum(each.kept for each in some)
    return [(place + (0 if place < n_kept else 1.2), each) for place, each in enumerate(some)]


def _small(part: float, whole: float) -> float:
    """Returns a part of a sum, zero if it is only rounding."""
    return 0.0 if abs(part) <= ROUNDING * abs(whole) else part
