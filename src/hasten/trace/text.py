"""Traces as text for a terminal; control characters in names and labels are spelled out."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from hasten.search.theta import theta_in_words
from hasten.support.terminal import printable
from hasten.support.words import amount, count, paired
from hasten.trace.events import Candidate, ProofStep, SearchStep, Trace

MOST_STEPS, MOST_CANDIDATES, MOST_RULED_OUT = 16, 8, 3  # that are printed; all are kept
ROUNDING = 1e-12  # a part of a sum that is smaller than this, relatively, is rounding


def lines(trace: Trace[Any]) -> Iterator[str]:
    """Yields a trace in words, line by line."""
    yield printable(trace.title)
    if trace.eliminated:
        yield printable(f"Minimised out first: {', '.join(trace.eliminated)}")
    for before, t in pairwise([-1, *steps_to_show(trace, MOST_STEPS)]):
        yield ""
        if t > before + 1:
            yield f"… {count(t - before - 1, 'step')} not printed"
            yield ""
        step = trace.steps[t]
        yield printable(f"Step {t + 1}: {name_of(step)} ({facts(trace, step)})")
        yield from map(printable, _candidates(step) if isinstance(step, SearchStep) else [f"  {step.text}"])
    if trace.choice is not None:
        by = "the heuristic alone" if trace.choice.skipped else "priority"
        yield from ("", f"The answer is node {trace.choice.node + 1} of the last beam, by {by}.")
    yield ""
    yield from map(printable, ending(trace))


def name_of(step: SearchStep | ProofStep) -> str:
    """Returns the name of a step: the variable of a search, the kind of step of a proof."""
    return step.name if isinstance(step, SearchStep) else step.step


def facts(trace: Trace[Any], step: SearchStep | ProofStep) -> str:
    """Returns the facts of a step, in a line."""
    if isinstance(step, ProofStep):
        best = amount(step.cost) if math.isfinite(step.cost) else "none yet"
        return f"bound {amount(step.bound)}, best labelling {best}"
    parts = [f"{count(len(step.candidates), 'candidate')}, {len(step.kept)} kept"]
    if step.gap is not None and trace.theta < math.inf:
        compared = (
            f" {'>' if step.skipped else '≤'} theta {theta_in_words(trace.theta)}" if trace.theta else ", theta 0"
        )
        parts.append(f"gap {amount(step.gap)}{compared}")
    parts.append("its costs skipped" if step.skipped else "its costs computed")
    earlier = [name for name in step.computed if name != step.name]
    if earlier:
        parts.append(f"and those of {', '.join(earlier)}")
    return ", ".join(parts)


def ending(trace: Trace[Any]) -> list[str]:
    """Returns how a search or a proof ended, in sentences."""
    said = [str(trace.status)] if trace.labels is None or trace.proof_steps else []
    if trace.labels is not None:
        known = "some costs were never computed" if math.isnan(trace.cost) else f"cost {amount(trace.cost)}"
        about = known if trace.valid else "breaks a constraint"
        said.append(f"Answer ({about}): {paired(trace.names, trace.labels)}.")
    if trace.skipped:
        n, of = len(trace.skipped), count(len(trace.names), "variable")
        said.append(f"Costs never computed, the gap being above theta = {theta_in_words(trace.theta)}: {n} of {of}.")
    if trace.lost is not None:
        where = "" if trace.lost.step is None else f" at step {trace.lost.step + 1}"
        said.append(f"The reference was lost{where}. {trace.lost.why}")
    elif trace.reference is not None:
        said.append("The reference was found.")
    return said


def steps_to_show(trace: Trace[Any], most: int) -> list[int]:
    """Returns the steps to show if there are too many: the first, the last, and the one that lost the reference."""
    n, lost = len(trace.steps), trace.lost
    if n <= most:
        return list(range(n))
    chosen = {n - 3, n - 2, n - 1, *([] if lost is None or lost.step is None else [lost.step])}
    first = (t for t in range(n) if t not in chosen)
    return sorted([*chosen, *(t for t, _ in zip(first, range(most - len(chosen)), strict=False))])


def candidates_to_show(step: SearchStep, most: int) -> list[Candidate]:
    """Returns the candidates to show if there are too many: the best on each side of the beam's edge, and the good."""
    n_kept, n_out = len(step.kept), sum(bool(each.ruled_out) for each in step.candidates)
    others = range(n_kept, len(step.candidates) - max(0, n_out - MOST_RULED_OUT))
    n_others = min(len(others), max(most // 2, most - n_kept))
    chosen = [*range(n_kept)[: most - n_others], *others[:n_others]]
    good = [at for at, each in enumerate(step.candidates) if each.good and at not in chosen]
    return [step.candidates[at] for at in sorted([*chosen[: most - len(good)], *good])]


def small(part: float, total: float) -> float:
    """Returns a part of a sum, zero if it is only rounding."""
    return 0.0 if abs(part) <= ROUNDING * abs(total) else part


def _candidates(step: SearchStep) -> Iterator[str]:
    shown = candidates_to_show(step, MOST_CANDIDATES)
    wide = max((len(each.label) for each in shown), default=0)
    for each in shown:
        sign = "kept  " if each.kept else "out   " if each.ruled_out else "pruned"
        start = f"after {each.node + 1}: " if step.n_nodes > 1 else ""
        good = "  <- reference" if each.good else ""
        yield f"  {sign} {start}{each.label:{wide}s}  {each.ruled_out or _sum(step, each)}{good}"
    if len(shown) < len(step.candidates):
        yield f"  … and {len(step.candidates) - len(shown):,} more"


def _sum(step: SearchStep, each: Candidate) -> str:
    """Returns the priority of a candidate, as the sum that it is."""
    if step.skipped:
        return f"heuristic {amount(each.heuristic)}"
    parts = [f"path cost {amount(each.path_cost)}"]
    for name, part in (("heuristic", each.heuristic), ("look-ahead", each.look_ahead)):
        parts += [f"{name} {amount(part)}"] if small(part, each.path_cost) else []
    return " + ".join(parts) + (f" = {amount(each.priority)}" if len(parts) > 1 else "")
