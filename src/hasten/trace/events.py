"""The log of a search or a proof: its events as plain values, told as text, and the recorder that writes it down.

Searches and proofs run their own kernels interpreted, and a recorder watches these (`hasten.jit.tracing`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import msgspec

from hasten.jit.tracing import Call as Call
from hasten.jit.tracing import Hook as Hook
from hasten.jit.tracing import hooked
from hasten.kernels.search.nodes import theta_in_words
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Status
from hasten.support.terminal import printable
from hasten.support.words import amount, count, ordinal, paired, plain_number

MOST_STEPS, MOST_CANDIDATES, MOST_RULED_OUT, MOST_VARIABLES = 16, 8, 3, 12  # that are told or drawn; all are kept
REFERENCE = "  <- reference"  # ends the line of a candidate that agrees with it
ROUNDING = 1e-12  # a part of a sum that is smaller than this, relatively, is rounding


@dataclass(slots=True)
class Candidate:
    """A node of the beam, extended by a label of the next variable."""

    node: int  # its parent's place in the beam, from 0
    label: str
    path_cost: float = math.inf  # of its labels and completed tables, without the costs that were not computed
    heuristic: float = 0.0
    look_ahead: float = 0.0
    priority: float = math.inf  # candidates are ranked by it; the heuristic alone where the costs are skipped
    rank: int | None = None  # among the candidates that are allowed, from 1; None if a constraint rules it out
    kept: bool = False
    good: bool = False  # agrees with the reference so far (y-good)
    ruled_out: str = ""  # by which constraint


@dataclass(slots=True)
class SearchStep:
    """A step of a search: a variable and its candidates, the best first, those that are ruled out last."""

    variable: int
    name: str
    n_nodes: int  # in the beam before this step
    candidates: tuple[Candidate, ...]
    gap: float = math.inf  # of the heuristic at the beam's edge
    skipped: bool = True  # whether the heuristic decided alone, without the variable's costs
    computed: tuple[str, ...] = ()  # the variables whose costs were computed at this step

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The candidates that are the next beam, best first."""
        return tuple(each for each in self.candidates if each.kept)

    def shown(self, most: int) -> list[Candidate]:
        """Returns the candidates to show if there are too many: the best on each side of the edge, and the good."""
        n_kept, n_out = len(self.kept), sum(bool(each.ruled_out) for each in self.candidates)
        others = range(n_kept, len(self.candidates) - max(0, n_out - MOST_RULED_OUT))
        n_others = min(len(others), max(most // 2, most - n_kept))
        chosen = [*range(n_kept)[: most - n_others], *others[:n_others]]
        good = [at for at, each in enumerate(self.candidates) if each.good and at not in chosen]
        return [self.candidates[at] for at in sorted([*chosen[: most - len(good)], *good])]

    def facts(self, trace: Trace) -> str:
        """Returns the facts of the step, in a line."""
        parts = [f"{count(len(self.candidates), 'candidate')}, {len(self.kept)} kept"]
        if trace.theta < math.inf:
            sign, theta = ">" if self.skipped else "≤", theta_in_words(trace.theta)
            parts.append(f"gap {amount(self.gap)}{f' {sign} theta {theta}' if trace.theta else ', theta 0'}")
        parts.append("its costs skipped" if self.skipped else "its costs computed")
        if earlier := [name for name in self.computed if name != self.name]:
            parts.append(f"and those of {', '.join(earlier)}")
        return ", ".join(parts)


@dataclass(slots=True)
class Message:
    """The cost that a factor moves to a label: it changes no labelling's total."""

    factor: str
    variable: str
    label: str
    amount: float


@dataclass(slots=True)
class ProofStep:
    """A step of a proof, and the bound and the best labelling after it."""

    step: str  # its name: look, sweep, branch, …
    text: str
    cost: float  # of the best labelling so far; inf without one
    bound: float  # no valid labelling costs less
    messages: tuple[Message, ...] = ()  # the largest
    n_nodes: int = 0  # of branching

    @property
    def name(self) -> str:
        """The name of the step, as steps of a search have one."""
        return self.step

    def facts(self, _: Trace) -> str:
        """Returns the facts of the step, in a line."""
        best = amount(self.cost) if math.isfinite(self.cost) else "none yet"
        return f"bound {amount(self.bound)}, best labelling {best}"


@dataclass(slots=True)
class Choice:
    """The last choice of a search with theta: which of the beam's nodes is the answer."""

    node: int
    gap: float
    skipped: bool  # whether the heuristic decided alone
    computed: tuple[str, ...]


@dataclass(slots=True)
class Belief:
    """A label's cost as it was given to the sweeps, or to the repair, and with all messages."""

    variable: str
    label: str
    cost: float
    belief: float  # inf: the label is in no valid labelling


class Lost(NamedTuple):
    """Where the reference left the beam (the lost gold node), and why."""

    step: int | None  # from 0; None if it was in the beam to the end
    why: str


@dataclass(frozen=True, eq=False)
class Trace:
    """A log of a search or a proof of one problem; `str` tells it, notebooks draw it, `to_dict` is plain data.

    It comes from the very kernels that search and prove, interpreted, so it takes the same steps, ties included.
    """

    title: str
    explained: tuple[str, ...] = field(repr=False)  # in sentences, for someone who never saw such a thing
    names: tuple[str, ...] = field(repr=False)  # of the variables
    eliminated: tuple[str, ...]  # the variables that were minimised out
    steps: tuple[Any, ...] = field(repr=False)  # of a search: `SearchStep`; of a proof: `ProofStep`
    labels: tuple[str, ...] | None  # the answer
    cost: float  # nan where some costs were never computed
    bound: float
    valid: bool
    status: Status
    solution: Any = field(default=None, repr=False)  # a `Solution`; None if this was read by `from_dict`
    # Of searches:
    width: int = 1
    theta: float = math.inf
    reference: tuple[str, ...] | None = None  # the labels that the search should find
    choice: Choice | None = None
    # Of proofs:
    beliefs: tuple[Belief, ...] = field(default=(), repr=False)  # after the last sweep or repair
    watched: bool = True  # false where the compiled kernels did the rest: watching would have taken too long

    @property
    def search_steps(self) -> list[SearchStep]:
        """The steps of a search."""
        return [each for each in self.steps if isinstance(each, SearchStep)]

    @property
    def proof_steps(self) -> list[ProofStep]:
        """The steps of a proof."""
        return [each for each in self.steps if isinstance(each, ProofStep)]

    @cached_property
    def lost(self) -> Lost | None:
        """Where the reference was lost; None if the search found it, or there is none."""
        if self.reference is None:
            return None
        for t, step in enumerate(self.search_steps):
            if not any(each.good for each in step.kept):
                return Lost(t, self._why(step))
        if self.labels is None:
            return Lost(None, "The search came to a dead end.")
        if self.labels == self.reference:
            return None
        if self.eliminated:
            return Lost(None, "It cost no less than another labelling of the variables that were minimised out.")
        return Lost(None, "It was in the beam to the end, but another node had a better priority, or came first.")

    def _why(self, step: SearchStep) -> str:
        good = next((each for each in step.candidates if each.good), None)
        if good is None:
            return f"{step.name}: no candidate agrees with it."
        if good.ruled_out:
            return f"{step.name} = {good.label} was ruled out: {good.ruled_out}."
        place = f"{step.name} = {good.label} came {ordinal(good.rank or 0)}"
        by = "by the heuristic alone" if step.skipped else "by priority"
        return f"{place} {by}; the beam keeps {self.width}."

    @property
    def skipped(self) -> tuple[str, ...]:
        """The variables whose costs were never computed."""
        late = () if self.choice is None else self.choice.computed
        computed = {name for step in self.search_steps for name in step.computed} | set(late)
        return tuple(step.name for step in self.search_steps if step.name not in computed)

    def path(self, t: int, candidate: Candidate) -> tuple[str, ...]:
        """Returns the labels of a candidate of step `t`, from the first step to its own."""
        labels = [candidate.label]
        for step in reversed(self.search_steps[:t]):
            candidate = step.kept[candidate.node]
            labels.append(candidate.label)
        return tuple(reversed(labels))

    def to_dict(self) -> dict[str, Any]:
        """Returns it as lists, words and numbers that JSON can hold; an infinite number is the word "inf"."""
        lost = None if self.lost is None else self.lost._asdict()
        return {**plain(self), "lost": lost, "skipped": list(self.skipped)}

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> Trace:
        """Returns the trace that `to_dict` wrote down, but for its solution."""
        trace = msgspec.convert(found, cls, strict=False)  # "inf" is a number
        kinds = [SearchStep if "candidates" in step else ProofStep for step in trace.steps]
        steps = [msgspec.convert(step, kind, strict=False) for step, kind in zip(trace.steps, kinds, strict=True)]
        return replace(trace, steps=tuple(steps))

    def shown(self, most: int) -> list[int]:
        """Returns the steps to show if there are too many: the first, the last, and the one that lost the reference."""
        n, lost = len(self.steps), self.lost
        if n <= most:
            return list(range(n))
        chosen = {n - 3, n - 2, n - 1, *([] if lost is None or lost.step is None else [lost.step])}
        return sorted([*chosen, *[t for t in range(n) if t not in chosen][: most - len(chosen)]])

    def summary(self) -> list[str]:
        """Returns how it ended, in sentences."""
        said = [str(self.status)] if self.labels is None or self.proof_steps else []
        if self.labels is not None:
            known = "some costs were never computed" if math.isnan(self.cost) else f"cost {amount(self.cost)}"
            about = known if self.valid else "breaks a constraint"
            said.append(f"Answer ({about}): {paired(self.names, self.labels)}.")
        if self.skipped:
            n, of, theta = len(self.skipped), count(len(self.names), "variable"), theta_in_words(self.theta)
            said.append(f"Costs never computed, the gap being above theta = {theta}: {n} of {of}.")
        if self.lost is not None:
            where = "" if self.lost.step is None else f" at step {self.lost.step + 1}"
            said.append(f"The reference was lost{where}. {self.lost.why}")
        elif self.reference is not None:
            said.append("The reference was found.")
        return said

    def section(self) -> str:
        """Returns its pictures as a part of a page that has the style already (`hasten.trace.drawing`)."""
        from hasten.trace.drawing import section

        return section(self)

    def __str__(self) -> str:
        return "\n".join(lines(self))

    def _repr_html_(self) -> str:
        from hasten.trace.drawing import on_a_page

        return on_a_page(self.section())

    def _repr_svg_(self) -> str:
        from hasten.trace.drawing import svg

        return svg(self)


def plain(value: Any) -> Any:
    """Returns a value as JSON can hold it: lists in place of tuples, words in place of infinite numbers."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name != "solution"}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, StrEnum):
        return str(value)
    return plain_number(value) if isinstance(value, float) else value


# -- as text, for a terminal and for pictures; control characters in names and labels are spelled out -----------------


def lines(trace: Trace) -> Iterator[str]:
    """Yields a trace in words, line by line."""
    yield printable(trace.title)
    if trace.eliminated:
        yield printable(f"Minimised out first: {', '.join(trace.eliminated)}")
    for before, t in pairwise([-1, *trace.shown(MOST_STEPS)]):
        if t > before + 1:
            yield from ("", f"… {count(t - before - 1, 'step')} not printed")
        yield from ("", *step_lines(trace, t))
    if trace.choice is not None:
        by = "the heuristic alone" if trace.choice.skipped else "priority"
        yield from ("", f"The answer is node {trace.choice.node + 1} of the last beam, by {by}.")
    if trace.beliefs:
        yield from ("", *belief_lines(trace))
    yield ""
    yield from map(printable, trace.summary())


def step_lines(trace: Trace, t: int) -> Iterator[str]:
    """Yields a step: a heading and, of a search, a line for each candidate."""
    step = trace.steps[t]
    yield printable(f"Step {t + 1}: {step.name} ({step.facts(trace)})")
    yield from map(printable, _candidates(step) if isinstance(step, SearchStep) else _proof(step))


def belief_lines(trace: Trace) -> Iterator[str]:
    """Yields what each label costs before and after all messages, the cheapest of each variable first."""
    yield "What messages did: costs as given → with all messages, whose sums bound the cost of every labelling"
    groups = [list(group) for _, group in groupby(trace.beliefs, key=lambda each: each.variable)]
    for group in groups[:MOST_VARIABLES]:
        labels = [
            f"{each.label} {amount(each.cost)} → {'out' if each.belief == math.inf else amount(each.belief)}"
            for each in sorted(group, key=lambda each: each.belief)
        ]
        yield printable(f"  {group[0].variable}: {', '.join(labels)}")
    if len(groups) > MOST_VARIABLES:
        yield f"  … and {count(len(groups) - MOST_VARIABLES, 'variable')} more"


def _small(part: float, total: float) -> float:
    """Returns a part of a sum, zero if it is only rounding."""
    return 0.0 if abs(part) <= ROUNDING * abs(total) else part


def _proof(step: ProofStep) -> Iterator[str]:
    yield f"  {step.text}"
    for each in step.messages[:2]:
        yield f"  message: {each.variable} = {each.label} {each.amount:+.4g}, from {each.factor}"


def _candidates(step: SearchStep) -> Iterator[str]:
    shown = step.shown(MOST_CANDIDATES)
    wide = max((len(each.label) for each in shown), default=0)
    for each in shown:
        sign = "kept  " if each.kept else "out   " if each.ruled_out else "pruned"
        start = f"after {each.node + 1}: " if step.n_nodes > 1 else ""
        parts = [f"heuristic {amount(each.heuristic)}" if step.skipped else f"path cost {amount(each.path_cost)}"]
        for name, part in (("heuristic", each.heuristic), ("look-ahead", each.look_ahead)):
            parts += [f"{name} {amount(part)}"] if not step.skipped and _small(part, each.path_cost) else []
        total = " + ".join(parts) + (f" = {amount(each.priority)}" if len(parts) > 1 else "")
        good = REFERENCE if each.good else ""
        yield f"  {sign} {start}{each.label:{wide}s}  {each.ruled_out or total}{good}"
    if len(shown) < len(step.candidates):
        yield f"  … and {len(step.candidates) - len(shown):,} more"


class Recorder:
    """A log in the making, of one problem; a subclass says which kernels it watches, each by a method of its own."""

    def __init__(self, problem: Problem, names: Sequence[str] | None) -> None:
        self.problem, self.names = problem, problem.variable_names(names)
        self.variables = list(range(len(problem.graph.order)))  # of the graph at hand, as the problem numbers them
        self.eliminated: tuple[str, ...] = ()
        self.steps: list[Any] = []

    def hooks(self) -> Mapping[Any, Hook]:
        """Returns the method that is called in place of each kernel."""
        raise TypeError(f"{type(self).__name__} does not say what it watches. Define watchers.")

    def hooked(self) -> AbstractContextManager[None]:
        """Watches the kernels that run within."""
        return hooked(self.hooks())

    def keep_only(self, variables: Sequence[int]) -> None:
        """Says which variables the graph at hand has; the others were minimised out."""
        self.variables = list(variables)
        self.eliminated = tuple(name for v, name in enumerate(self.names) if v not in set(variables))

    def name(self, v: int) -> str:
        """Returns the name of a variable of the graph at hand."""
        return self.names[self.variables[v]]

    def labels(self, v: int) -> tuple[str, ...]:
        """Returns the labels of a variable of the graph at hand."""
        return self.problem.structure.all_kinds[self.variables[v]].labels

    def ended(self, title: str, explained: Sequence[str], solution: Solution, **more: Any) -> Trace:
        """Returns the log as a value."""
        labels = None if solution.values is None else tuple(self.problem.names(solution.values))
        known = (solution.cost, solution.bound, solution.valid, solution.status, solution)
        return Trace(title, tuple(explained), self.names, self.eliminated, tuple(self.steps), labels, *known, **more)
