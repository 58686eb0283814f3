"""What a proof did, step by step: the bound rises, the best labelling falls, and where they meet it is proved."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

from hasten.model.solution import Solution, Status
from hasten.support.words import amount, count, paired, plain_fields, plain_number

MOST_STEPS = 24  # that are printed; all that were watched are kept


class Step(StrEnum):
    """The steps of a proof, in the order in which they are tried."""

    LOOK = "by looking"
    MEND = "by mending"
    ELIMINATE = "by eliminating"
    CUT = "by cutting"
    SWEEP = "by sweeping"
    BRANCH = "by branching"


@dataclass(frozen=True, slots=True)
class Message:
    """What a factor adds to the cost of a label: it moves cost between the two, and changes no labelling's total."""

    factor: str
    variable: str
    label: str
    amount: float


@dataclass(frozen=True, slots=True)
class Belief:
    """A label's cost as it was given to the sweeps, or to mending, and with all messages."""

    variable: str
    label: str
    cost: float
    belief: float  # inf: the label is in no valid labelling


@dataclass(frozen=True, slots=True)
class ProofStep:
    """A step of a proof: what was done, and what was known after it."""

    step: Step
    text: str
    cost: float  # of the best labelling so far; inf without one
    bound: float  # no valid labelling costs less
    labels: tuple[str, ...] | None = None  # of the variables that were looked at, where a better labelling was found
    messages: tuple[Message, ...] = ()  # the largest
    n_nodes: int = 0  # of branching


@dataclass(frozen=True, eq=False)
class ProofTrace:
    """How a problem was certified; `str` tells it, notebooks draw it, `to_dict` is plain data.

    It comes from the certifier's own kernels, run uncompiled. Where that would take too long, the rest of the work is
    left to the compiled ones: `watched` is then false, and the last step tells how much it was.
    """

    names: tuple[str, ...] = field(repr=False)  # of the variables
    eliminated: tuple[str, ...]  # the variables that were minimised out
    steps: tuple[ProofStep, ...] = field(repr=False)
    beliefs: tuple[Belief, ...] = field(repr=False)  # after the last sweep, or mending
    watched: bool  # whether every step was watched
    labels: tuple[str, ...] | None  # the answer
    cost: float
    bound: float
    status: Status
    solution: Solution | None = field(default=None, repr=False)  # None if this was read by `from_dict`

    def to_dict(self) -> dict[str, Any]:
        """Returns it as lists, words and numbers that JSON can hold; an infinite number is the word "inf"."""
        return {
            "variables": list(self.names),
            "eliminated": list(self.eliminated),
            "steps": [
                plain_fields(asdict(each)) | {"messages": [plain_fields(asdict(message)) for message in each.messages]}
                for each in self.steps
            ],
            "beliefs": [plain_fields(asdict(belief)) for belief in self.beliefs],
            "watched": self.watched,
            "labels": None if self.labels is None else list(self.labels),
            "cost": plain_number(self.cost),
            "bound": plain_number(self.bound),
            "status": str(self.status),
        }

    @classmethod
    def from_dict(cls, found: Mapping[str, Any]) -> ProofTrace:
        """Returns the trace that `to_dict` wrote down, but for its solution."""
        return cls(
            _names(found["variables"]) or (),
            _names(found["eliminated"]) or (),
            tuple(_step_of(each) for each in found["steps"]),
            tuple(
                Belief(str(each["variable"]), str(each["label"]), float(each["cost"]), float(each["belief"]))
                for each in found["beliefs"]
            ),
            bool(found["watched"]),
            _names(found["labels"]),
            float(found["cost"]),
            float(found["bound"]),
            Status(found["status"]),
        )

    def __str__(self) -> str:
        lines = ["Proof"]
        shown = some_steps(len(self.steps), MOST_STEPS)
        for n, each in enumerate(self.steps):
            if n in shown:
                best = amount(each.cost) if math.isfinite(each.cost) else "none yet"
                known = f"bound {amount(each.bound)}, best labelling {best}"
                lines.append(f"{n + 1:4d}. {each.step.name.lower():9s} {each.text}\n      {known}")
            elif n - 1 in shown:
                lines.append(f"      … {count(len(self.steps) - len(shown), 'step')} not printed")
        return "\n".join([*lines, "", *self.summary()])

    def summary(self) -> list[str]:
        """Returns how it ended, in sentences."""
        said = [str(self.status)]
        if self.labels is not None:
            said.append(f"Answer (cost {amount(self.cost)}): {paired(self.names, self.labels)}.")
        return said

    def _repr_html_(self) -> str:
        from hasten.proof.drawing import to_html

        return to_html(self)

    def _repr_svg_(self) -> str:
        from hasten.proof.drawing import to_svg

        return to_svg(self)


def some_steps(n: int, most: int) -> set[int]:
    """Returns which of `n` steps to show if there are too many: the first and the last."""
    if n <= most:
        return set(range(n))
    return {*range(most - most // 2), *range(n - most // 2, n)}


def _step_of(found: Mapping[str, Any]) -> ProofStep:
    return ProofStep(
        Step(found["step"]),
        str(found["text"]),
        float(found["cost"]),
        float(found["bound"]),
        _names(found["labels"]),
        tuple(
            Message(str(each["factor"]), str(each["variable"]), str(each["label"]), float(each["amount"]))
            for each in found["messages"]
        ),
        int(found["n_nodes"]),
    )


def _names(found: Sequence[Any] | None) -> tuple[str, ...] | None:
    return None if found is None else tuple(str(name) for name in found)
