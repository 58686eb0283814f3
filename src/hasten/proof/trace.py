"""What a proof did, step by step: the bound rises, the best labelling falls, and where they meet it is proved."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

from hasten.model.solution import Solution, Status
from hasten.support.pictures import Page
from hasten.support.traces import Trace
from hasten.support.words import amount, count, paired

MOST_STEPS = 24  # that are printed; all that were watched are kept


class Step(StrEnum):
    """The steps of a proof, in the order in which they are tried."""

    LOOK = "by looking"
    REPAIR = "by repairing"
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
    """A label's cost as it was given to the sweeps, or to repair, and with all messages."""

    variable: str
    label: str
    cost: float
    belief: float  # inf: the label is in no valid labelling


@dataclass(slots=True)
class ProofStep:
    """A step of a proof: what was done, and what was known after it. A recorder completes it while it is taken."""

    step: Step
    text: str
    cost: float  # of the best labelling so far; inf without one
    bound: float  # no valid labelling costs less
    labels: tuple[str, ...] | None = None  # of the variables that were looked at, where a better labelling was found
    messages: tuple[Message, ...] = ()  # the largest
    n_nodes: int = 0  # of branching


@dataclass(frozen=True, eq=False)
class ProofTrace(Trace):
    """How a problem was certified; `str` tells it, notebooks draw it, `to_dict` is plain data.

    It comes from the certifier's own kernels, run uncompiled. Where that would take too long, the rest of the work is
    left to the compiled ones: `watched` is then false, and the last step tells how much it was.
    """

    names: tuple[str, ...] = field(repr=False)  # of the variables
    eliminated: tuple[str, ...]  # the variables that were minimised out
    steps: tuple[ProofStep, ...] = field(repr=False)
    beliefs: tuple[Belief, ...] = field(repr=False)  # after the last sweep, or repair
    watched: bool  # whether every step was watched
    labels: tuple[str, ...] | None  # the answer
    cost: float
    bound: float
    status: Status
    solution: Solution | None = field(default=None, repr=False)  # None if this was read by `from_dict`

    def lines(self) -> list[str]:
        """Returns it in words."""
        said = ["Proof"]
        shown = some_steps(len(self.steps), MOST_STEPS)
        for n, each in enumerate(self.steps):
            if n in shown:
                best = amount(each.cost) if math.isfinite(each.cost) else "none yet"
                said.append(f"{n + 1:4d}. {each.step.name.lower():9s} {each.text}")
                said.append(f"      bound {amount(each.bound)}, best labelling {best}")
            elif n - 1 in shown:
                said.append(f"      … {count(len(self.steps) - len(shown), 'step')} not printed")
        return [*said, "", *self.summary()]

    def summary(self) -> list[str]:
        """Returns how it ended, in sentences."""
        said = [str(self.status)]
        if self.labels is not None:
            said.append(f"Answer (cost {amount(self.cost)}): {paired(self.names, self.labels)}.")
        return said

    def page(self) -> Page:
        """Returns it as pictures."""
        from hasten.proof.drawing import page

        return page(self)


def some_steps(n: int, most: int) -> set[int]:
    """Returns which of `n` steps to show if there are too many: the first and the last."""
    if n <= most:
        return set(range(n))
    return {*range(most - most // 2), *range(n - most // 2, n)}
