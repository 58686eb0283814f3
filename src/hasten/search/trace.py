"""What a search did, step by step: a value to look at, to print, to draw and to write down."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from hasten.model.solution import Solution, Status
from hasten.search.theta import theta_in_words
from hasten.support.pictures import Page
from hasten.support.traces import Trace, plain
from hasten.support.words import amount, count, ordinal, paired

MOST_STEPS, MOST_CANDIDATES, MOST_RULED_OUT = 16, 8, 3  # that are printed; all are kept
ROUNDING = 1e-12  # a part of a sum that is smaller than this, relatively, is rounding


@dataclass(frozen=True, slots=True)
class Candidate:
    """A way to go on: a node of the beam, and a label for the next variable."""

    node: int  # the place in the beam of the node that it goes on from, from 0
    label: str
    path_cost: float  # of its labels and completed tables, without costs that nobody has computed
    heuristic: float
    look_ahead: float
    priority: float  # what it is ranked by; the heuristic alone where the costs are skipped
    rank: int | None  # among the candidates that are allowed, from 1; None if the constraints rule it out
    kept: bool
    good: bool  # agrees with the reference so far (y-good)
    ruled_out: str = ""  # by what


@dataclass(frozen=True, slots=True)
class SearchStep:
    """A step of a search: a variable, and its candidates, the best first, those that are ruled out last."""

    variable: int
    name: str
    n_nodes: int  # in the beam before this step
    candidates: tuple[Candidate, ...]
    gap: float | None  # of the heuristic at the beam's edge; None for a search that has no beam
    skipped: bool  # whether the heuristic decided alone, without the variable's costs
    computed: tuple[str, ...]  # the variables whose costs were computed at this step

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The candidates that are the next beam, best first."""
        return tuple(each for each in self.candidates if each.kept)

    @property
    def good(self) -> Candidate | None:
        """The candidate that agrees with the reference, if there is one."""
        return next((each for each in self.candidates if each.good), None)


@dataclass(frozen=True, slots=True)
class Choice:
    """The last choice of a search with theta: which of the beam's nodes is the answer."""

    node: int
    gap: float
    skipped: bool  # whether the heuristic decided alone
    computed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Where the reference left the beam (the lost gold node), and why."""

    step: int | None  # from 0; None if it was in the beam to the end
    why: str


@dataclass(frozen=True, eq=False)
class SearchTrace(Trace):
    """What a search did with one problem; `str` tells it, notebooks draw it, `to_dict` is plain data.

    It comes from the search's own kernels, run uncompiled, so it takes the very steps of the search, ties included.
    """

    search: str
    width: int
    theta: float
    names: tuple[str, ...] = field(repr=False)  # of the variables
    reference: tuple[str, ...] | None  # its labels
    eliminated: tuple[str, ...]  # the variables that were minimised out before
    steps: tuple[SearchStep, ...] = field(repr=False)
    choice: Choice | None
    labels: tuple[str, ...] | None  # the answer
    cost: float  # nan where some costs were never computed
    valid: bool
    status: Status
    solution: Solution | None = field(default=None, repr=False)  # None if this was read by `from_dict`

    @cached_property
    def lost(self) -> Lost | None:
        """Where the reference was lost; None if the search found it, or there is none."""
        if self.reference is None:
            return None
        for t, step in enumerate(self.steps):
            if not any(each.good for each in step.kept):
                return Lost(t, self._why(step))
        if self.labels is None:
            return Lost(None, "The search came to a dead end.")
        if self.labels == self.reference:
            return None
        if self.eliminated:
            return Lost(None, "It cost no less than another labelling of the variables that were minimised out.")
        return Lost(None, "It was in the beam to the end, but another node had a better priority, or came first.")

    @property
    def skipped(self) -> tuple[str, ...]:
        """The variables whose costs were never computed."""
        computed = {name for step in self.steps for name in step.computed}
        computed |= set() if self.choice is None else set(self.choice.computed)
        return tuple(step.name for step in self.steps if step.name not in computed)

    def path(self, t: int, candidate: Candidate) -> tuple[str, ...]:
        """Returns the labels of a candidate of step `t`, from the first step to its own."""
        labels = [candidate.label]
        for step in reversed(self.steps[:t]):
            candidate = step.kept[candidate.node]
            labels.append(candidate.label)
        return tuple(reversed(labels))

    def to_dict(self) -> dict[str, Any]:
        """Returns it as plain data, with where the reference was lost, and the costs that were never computed."""
        return super().to_dict() | {"lost": plain(self.lost), "skipped": plain(self.skipped)}

    def lines(self) -> list[str]:
        """Returns it in words."""
        return [self.search, *self._told(), "", *self.summary()]

    def summary(self) -> list[str]:
        """Returns how it ended, in sentences."""
        said = []
        if self.labels is None:
            said.append(str(self.status))
        else:
            known = "some costs were never computed" if math.isnan(self.cost) else f"cost {amount(self.cost)}"
            about = known if self.valid else "breaks a constraint"
            said.append(f"Answer ({about}): {paired(self.names, self.labels)}.")
        if self.skipped:
            n, of = len(self.skipped), count(len(self.names), "variable")
            said.append(f"Costs never computed, the gap being above theta = {theta_in_words(self.theta)}: {n} of {of}.")
        if self.reference is not None and self.lost is None:
            said.append("The reference was found.")
        elif self.lost is not None:
            where = "" if self.lost.step is None else f" at step {self.lost.step + 1}"
            said.append(f"The reference was lost{where}. {self.lost.why}")
        return said

    def _told(self) -> list[str]:
        said = []
        if self.eliminated:
            said.append(f"Minimised out first: {', '.join(self.eliminated)}")
        shown = steps_to_show(self, MOST_STEPS)
        for t, step in enumerate(self.steps):
            if t in shown:
                said += ["", *_step_lines(t, step, self.theta)]
            elif t - 1 in shown:
                n = next((u for u in range(t, len(self.steps)) if u in shown), len(self.steps)) - t
                said += ["", f"… {count(n, 'step')} not printed"]
        if self.choice is not None:
            by = "the heuristic alone" if self.choice.skipped else "priority"
            said += ["", f"The answer is node {self.choice.node + 1} of the last beam, by {by}."]
        return said

    def _why(self, step: SearchStep) -> str:
        good = step.good
        if good is None:
            return f"{step.name}: no candidate agrees with it."
        if good.ruled_out:
            return f"{step.name} = {good.label} was ruled out: {good.ruled_out}."
        place = f"{step.name} = {good.label} came {ordinal(good.rank or 0)}"
        if good.rank is not None and good.rank <= self.width and step.kept:
            return f"{place}, but too far behind the best for the spread."
        by = "by the heuristic alone" if step.skipped else "by priority"
        return f"{place} {by}; the beam keeps {self.width}."

    def page(self) -> Page:
        """Returns it as pictures."""
        from hasten.search.drawing import page

        return page(self)


def steps_to_show(trace: SearchTrace, most: int) -> Sequence[int]:
    """Returns the steps to show if there are too many: the first, the last, and where the reference was lost."""
    n = len(trace.steps)
    if n <= most:
        return range(n)
    lost = trace.lost
    around = [] if lost is None or lost.step is None else [lost.step]
    chosen = {*around, *range(n - 3, n)}
    for t in range(n):
        if len(chosen) >= most:
            break
        chosen.add(t)
    return sorted(chosen)


def candidates_to_show(step: SearchStep, most: int, most_ruled_out: int | None = None) -> tuple[Candidate, ...]:
    """Returns the candidates to show if there are too many: the best on each side of the beam's edge, and the good.

    Of those that are ruled out `most_ruled_out` are enough.
    """
    if most_ruled_out is not None:
        out = [each for each in step.candidates if each.ruled_out and not each.good][most_ruled_out:]
        step = replace(step, candidates=tuple(each for each in step.candidates if not any(each is x for x in out)))
    if len(step.candidates) <= most:
        return step.candidates
    kept = [each for each in step.candidates if each.kept]
    others = [each for each in step.candidates if not each.kept]
    n_others = min(len(others), max(most // 2, most - len(kept)))
    shown = [*kept[: most - n_others], *others[:n_others]]
    good = step.good
    if good is not None and not any(each is good for each in shown):
        shown = [*shown[:-1], good]
    return tuple(each for each in step.candidates if any(each is other for other in shown))


def heading(step: SearchStep, theta: float) -> str:
    """Returns what a step is about, in a line."""
    parts = [f"{count(len(step.candidates), 'candidate')}, {len(step.kept)} kept"]
    if step.gap is not None and theta < math.inf:
        compared = ">" if step.skipped else "≤"
        limit = theta_in_words(theta)
        parts.append(
            f"gap {amount(step.gap)} {compared} theta {limit}" if theta else f"gap {amount(step.gap)}, theta 0"
        )
    parts.append("its costs skipped" if step.skipped else "its costs computed")
    earlier = [name for name in step.computed if name != step.name]
    if earlier:
        parts.append(f"and those of {', '.join(earlier)}")
    return ", ".join(parts)


def _step_lines(t: int, step: SearchStep, theta: float) -> list[str]:
    shown = candidates_to_show(step, MOST_CANDIDATES, MOST_RULED_OUT)
    wide = max((len(each.label) for each in shown), default=0)
    lines = [f"Step {t + 1}: {step.name} ({heading(step, theta)})"]
    several = step.n_nodes > 1
    for each in shown:
        sign = "kept  " if each.kept else "pruned" if not each.ruled_out else "out   "
        start = f"after {each.node + 1}: " if several else ""
        numbers = in_numbers(step, each)
        good = "  <- reference" if each.good else ""
        lines.append(f"  {sign} {start}{each.label:{wide}s}  {each.ruled_out or numbers}{good}")
    if len(shown) < len(step.candidates):
        lines.append(f"  … and {len(step.candidates) - len(shown):,} more")
    return lines


def in_numbers(step: SearchStep, each: Candidate) -> str:
    """Returns what a candidate is ranked by, as a sum."""
    if step.skipped:
        return f"heuristic {amount(each.heuristic)}"
    parts = [f"path cost {amount(each.path_cost)}"]
    for name, part in (("heuristic", each.heuristic), ("look-ahead", each.look_ahead)):
        if abs(part) > ROUNDING * abs(each.path_cost):
            parts.append(f"{name} {amount(part)}")
    return " + ".join(parts) + (f" = {amount(each.priority)}" if len(parts) > 1 else "")
