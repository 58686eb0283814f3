"""The events of searches and proofs as plain values, and the log that holds them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from functools import cache, cached_property
from types import UnionType
from typing import Any, Generic, NamedTuple, TypeVar, get_args, get_origin, get_type_hints

from hasten.model.solution import Solution, Status
from hasten.support.words import ordinal, plain_number


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
    gap: float | None = None  # of the heuristic at the beam's edge; None for a search without a beam
    skipped: bool = True  # whether the heuristic decided alone, without the variable's costs
    computed: tuple[str, ...] = ()  # the variables whose costs were computed at this step

    @property
    def kept(self) -> tuple[Candidate, ...]:
        """The candidates that are the next beam, best first."""
        return tuple(each for each in self.candidates if each.kept)

    @property
    def good(self) -> Candidate | None:
        """The candidate that agrees with the reference, if there is one."""
        return next((each for each in self.candidates if each.good), None)


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


Event = TypeVar("Event", bound=SearchStep | ProofStep)


@dataclass(frozen=True, eq=False)
class Trace(Generic[Event]):
    """A log of a search or a proof of one problem; `str` tells it, notebooks draw it, `to_dict` is plain data.

    It comes from the very kernels that search and prove, interpreted, so it takes the same steps, ties included.
    """

    title: str
    explained: tuple[str, ...] = field(repr=False)  # in sentences, for someone who never saw such a thing
    names: tuple[str, ...] = field(repr=False)  # of the variables
    eliminated: tuple[str, ...]  # the variables that were minimised out
    steps: tuple[Event, ...] = field(repr=False)
    labels: tuple[str, ...] | None  # the answer
    cost: float  # nan where some costs were never computed
    bound: float
    valid: bool
    status: Status
    solution: Solution | None = field(default=None, repr=False)  # None if this was read by `from_dict`
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
    def from_dict(cls, found: Mapping[str, Any]) -> Trace[Any]:
        """Returns the trace that `to_dict` wrote down, but for its solution."""
        trace: Trace[Any] = typed(Trace, found)
        return trace

    def summary(self) -> list[str]:
        """Returns how it ended, in sentences."""
        from hasten.trace.text import ending

        return ending(self)

    def section(self) -> str:
        """Returns its pictures as a part of a page that has the style already (`hasten.trace.pictures`)."""
        from hasten.trace.drawing import page

        return page(self).section()

    def __str__(self) -> str:
        from hasten.trace.text import lines

        return "\n".join(lines(self))

    def _repr_html_(self) -> str:
        from hasten.trace.pictures import on_a_page

        return on_a_page(self.section())

    def _repr_svg_(self) -> str:
        from hasten.trace.drawing import page

        return page(self).svg()


def plain(value: Any) -> Any:
    """Returns a value as JSON can hold it: lists in place of tuples, words in place of infinite numbers."""
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value) if each.name != "solution"}
    if isinstance(value, tuple):
        return [plain(each) for each in value]
    if isinstance(value, StrEnum):
        return str(value)
    return plain_number(value) if isinstance(value, float) else value


def typed(kind: Any, found: Any) -> Any:
    """Returns a value of a type from the plain data that `plain` made of it."""
    if kind is Event:
        kind = SearchStep if "candidates" in found else ProofStep
    if is_dataclass(kind):
        of: Any = kind
        return of(**{name: typed(hint, found[name]) for name, hint in _hints(of).items()})
    if get_origin(kind) is tuple:
        return tuple(typed(get_args(kind)[0], each) for each in found)
    if isinstance(kind, UnionType):  # X | None
        return None if found is None else typed(get_args(kind)[0], found)
    return kind(found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind) if each.name != "solution"}
