"""Learning a heuristic from a solver's answers (paper §4): Algorithm 1, exactly or with better defaults.

The paper's algorithm adds whole feature vectors (a step of 1) to weights that are compared with path costs.
So the step sets how much one mistake counts against the model's own costs: learning with step s is learning
with step 1 from costs divided by s. A step of 1 suits costs in the tens; against log-probabilities it drowns
the model. By default the step is therefore `STEP` times the median, over all variables, of what the
second-best label costs above the best, and the weights are averaged over all examples. `Learner.paper` is the
paper's own form.

There are no gold labels here: the answers are those of the solver that the search is to imitate.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from msgspec import Struct, structs

from hasten.errors import NotFittedError, ProblemError
from hasten.kernels.search import nodes
from hasten.learning import algorithm_1 as learn
from hasten.learning.heuristic import Heuristic
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Labels, Problem
from hasten.model.schema import Schema
from hasten.model.solution import Answers, Solution, read_answers
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.checks import check_number, check_switch, check_type, check_whole, check_width, finite
from hasten.support.forms import Count, Positive, Size

log = logging.getLogger(__name__)

STEP = 0.01  # of the median gap; 0.003 does about as well, from 0.03 on wide beams lose (benchmarks/)
CHUNK = 8192  # problems after which Ctrl-C is heard


class Epoch(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Counts of one pass over some problems; weights and radii are as of its end."""

    n_examples: Count
    n_lost: Count  # updates because no node of the beam led to the answer any more
    n_wrong: Count  # updates because another node came before the answer at the end
    n_blind: Count  # of these, updates of nothing: the nodes compared had the same features
    step: Positive
    norm: Size  # of the last weights
    radius_phi: Size  # Theorem 1's R_phi: the largest |phi(v*) - phi(v)| of all updates so far
    radius_g: Size  # Theorem 1's R_g: the largest g(v*) - g(v) of all updates so far

    @property
    def n_mistakes(self) -> int:
        """The number of updates."""
        return self.n_lost + self.n_wrong

    def then(self, next: Epoch) -> Epoch:
        """Returns this pass and the next as one; weights and radii are the next one's."""
        added = ("n_examples", "n_lost", "n_wrong", "n_blind")
        return structs.replace(next, **{name: getattr(self, name) + getattr(next, name) for name in added})


@dataclass(eq=False)
class State:
    """All that a learner has learned so far; `Learner.fit` replaces it."""

    schema: Schema | None = None
    step: float | None = None
    weights: learn.Weights | None = None
    trace: list[Epoch] = field(default_factory=list)
    n_forbidden: int = 0  # answers that the enforced constraints forbid
    n_passes: int = 0  # of `fit`; what came after is one entry of the trace
    rng: np.random.Generator | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.weights is not None:  # read from a mapped file, or sent to a worker, they may not be written
            self.weights = learn.Weights._make(map(np.array, self.weights))


@dataclass(eq=False)
class Learner:
    """Learns a heuristic for a beam search: its settings, and in `state` all that it has learned so far.

    The search that the heuristic is for; these should be its own settings, and their defaults are those of `Search`:

    width
        Nodes kept at each step, from 1 to 65,536. 2 by default.
    enforce
        Whether constraints are enforced. On by default; the paper does not.
    look_ahead
        Whether it looks ahead. On by default; the paper does not.

    How much one mistake counts:

    step
        The factor of features that a mistake adds to the weights; positive. None takes a hundredth of the typical gap
        between the two cheapest labels of the first problems, so that weights have the scale of the costs.
    averaged
        Whether the result is the average of the weights after each example, or the last ones. On by default:
        averages change less with the order of the examples.

    The passes of `fit`:

    epochs
        The most passes, at least 1. 10 by default; `fit` stops after one without a mistake.
    shuffle
        Whether each pass has an order of its own. On by default; the paper does not shuffle.
    seed
        Fixes these orders.
    """

    width: int = 2
    step: float | None = None
    averaged: bool = True
    enforce: bool = True
    look_ahead: bool = True
    epochs: int = 10
    shuffle: bool = True
    seed: int = 0
    state: State = field(default_factory=State, init=False, repr=False)

    def __post_init__(self) -> None:
        check_width(self.width)
        check_whole("epochs", self.epochs, least=1)
        check_whole("seed", self.seed, most=None)
        for name in ("averaged", "enforce", "look_ahead", "shuffle"):
            check_switch(name, getattr(self, name))
        if self.step is not None:
            check_number("step", self.step)
            if not 0 < self.step < math.inf:
                raise ProblemError(f"A step must be positive and finite, got {self.step}.")

    @classmethod
    def paper(cls, width: int = 2, **settings: Any) -> Learner:
        """Returns Algorithm 1 as the paper lists it: step 1, last weights, no constraints, no shuffling."""
        off = dict.fromkeys(("averaged", "enforce", "look_ahead", "shuffle"), False)
        return cls(width, **({"step": 1.0} | off | settings))

    def fit(self, problems: Batch | Iterable[Problem], answers: Answers) -> Learner:
        """Learns from scratch, epoch by epoch, until one makes no mistake.

        `answers` has one for each problem: a `Solution`, its labels by number or name, or None where there is
        none. Or it is one flat array of label numbers, all of the first problem, then all of the second, ….
        """
        batch = as_batch(problems).resolved()
        labels, usable = read_answers(batch, answers)
        self.state = State()
        self._begin(batch)
        for n in range(self.epochs):
            epoch, usable = self.pass_over(batch, labels, usable)
            log.info("Learning, epoch %d of %d: %d mistakes.", n + 1, self.epochs, epoch.n_mistakes)
            self.state.trace.append(epoch)
            self.state.n_passes += 1
            if not epoch.n_mistakes:
                break
        return self

    def partial_fit(self, problems: Batch | Iterable[Problem], answers: Answers) -> Learner:
        """Goes on learning: one pass over more problems."""
        batch = as_batch(problems).resolved()
        labels, usable = read_answers(batch, answers)
        self._begin(batch)
        state, (epoch, _) = self.state, self.pass_over(batch, labels, usable)
        state.trace[state.n_passes :] = [each.then(epoch) for each in state.trace[state.n_passes :]] or [epoch]
        return self

    def learn_one(self, problem: Problem, answer: Solution | Labels | None) -> Learner:
        """Goes on learning from one problem."""
        check_type(problem, Problem, "What a learner learns from")
        return self.partial_fit(problem.batch, [answer])

    def forget_average(self) -> None:
        """Begins the average of the weights anew, so that what was learned before weighs less."""
        if self.state.weights is not None:
            self.state.weights.drift[:] = 0.0
            self.state.weights.n_examples[0] = 0

    @property
    def weights(self) -> FloatArray:
        """The weights learned so far: averaged, or the last ones."""
        learned = self._learned()
        return learned.average if self.averaged else learned.w.copy()

    @property
    def heuristic(self) -> Heuristic:
        """The heuristic learned so far, as a value."""
        weights = self.weights
        assert self.state.schema is not None
        return Heuristic(self.state.schema, weights)

    @property
    def trace(self) -> tuple[Epoch, ...]:
        """An entry for each pass of `fit`, and one for all calls of `partial_fit` after that."""
        return tuple(self.state.trace)

    @property
    def n_examples(self) -> int:
        """How many problems were learned from, each counted as often as it was seen."""
        return int(self._learned().n_examples[0])

    @property
    def n_mistakes(self) -> int:
        """The number of updates made: what Theorem 1 bounds."""
        return sum(epoch.n_mistakes for epoch in self.state.trace)

    @property
    def radius_phi(self) -> float:
        """R_phi as observed: the largest |phi(v*) - phi(v)| over the pairs of nodes compared in updates."""
        return math.sqrt(self._learned().radius[0])

    @property
    def radius_g(self) -> float:
        """R_g as observed: the largest g(v*) - g(v) over the pairs of nodes compared in updates."""
        return float(self._learned().radius[1])

    def mistake_bound(self, margin: float) -> float:
        """Returns Theorem 1's bound on the number of updates, for the level margin of some unit vector.

        Its proof compares only the nodes that meet in updates, so the observed radii are enough; they make
        the bound sharper than radii over all nodes would. A step divides path costs.
        """
        margin = finite(margin, "A margin", ProblemError)
        if margin <= 0:
            return math.inf
        step = self.state.step or 1.0
        return (self.radius_phi**2 + 2 * self.radius_g / step) / margin / margin

    def _learned(self) -> learn.Weights:
        if self.state.weights is None:
            raise NotFittedError("This learner has not learned anything yet. Call fit, partial_fit or learn_one.")
        return self.state.weights

    def _begin(self, batch: Batch) -> None:
        """Sets up the weights at the first problems; later ones must have the same schema."""
        schemas = [structure.schema for structure in batch.structures]
        if self.state.schema is None and not schemas:
            raise ProblemError("There is nothing to learn from: the first batch is empty.")
        schema = self.state.schema or schemas[0]
        if any(other is not schema and other.digest != schema.digest for other in schemas):
            raise ProblemError("These problems have another schema than those learned from. Use another learner.")
        state = self.state
        if state.weights is None:
            state.schema, state.rng = schema, np.random.default_rng(self.seed)
            state.weights = learn.Weights.of(np.zeros(schema.n_weights))
        if state.step is None:
            state.step = default_step(batch) if self.step is None else float(self.step)
            log.info("Learning with a step of %.4g, for a beam of width %d.", state.step, self.width)

    def pass_over(self, batch: Batch, labels: IntArray, usable: IntArray) -> tuple[Epoch, IntArray]:
        """Runs once over the usable problems; returns what happened, and which are still usable."""
        state, learned = self.state, self._learned()
        assert state.rng is not None
        assert state.step is not None
        blind = int(learned.n_blind[0])
        order = state.rng.permutation(usable) if self.shuffle and len(usable) > 1 else usable
        options = nodes.Options(int(self.width), math.inf, bool(self.enforce), bool(self.look_ahead))
        outcome = np.zeros(len(order), dtype=np.int64)
        for at in range(0, len(order), CHUNK):
            chunk = slice(at, at + CHUNK)
            learn.learn_from_some(batch.arrays, labels, options, state.step, order[chunk], learned, outcome[chunk])
        forbidden = outcome == learn.FORBIDDEN
        n_forbidden, n_lost = int(forbidden.sum()), int((outcome == learn.LOST).sum())
        state.n_forbidden += n_forbidden
        epoch = Epoch(
            *(len(order) - n_forbidden, n_lost, int((outcome == learn.WRONG).sum())),
            *(int(learned.n_blind[0]) - blind, state.step, float(np.linalg.norm(learned.w))),
            *(self.radius_phi, self.radius_g),
        )
        return epoch, np.setdiff1d(usable, order[forbidden]) if n_forbidden else usable


def gaps(batch: Batch) -> FloatArray:
    """Returns for each variable what its second-best label costs above the best; nan if it has none."""
    gap = np.empty(batch.variable_at[-1])
    learn.cost_gaps(batch.arrays, gap)
    return gap


def typical_gap(batch: Batch, of: BoolArray | None = None) -> float:
    """Returns the median of the gaps that are positive and finite, of some variables or of all; 1 without any."""
    gap = gaps(batch) if of is None else gaps(batch)[of]
    gap = gap[np.isfinite(gap) & (gap > 0)]
    return float(np.median(gap)) if gap.size else 1.0


def default_step(batch: Batch) -> float:
    """Returns a step for the scale of a batch's costs: `STEP` of the median gap between two best labels.

    The median ignores the few variables on which a cost of a million stands for a ban. Where more than half
    of the gaps are zero, the median of the others serves; without any, there is no scale and the step is 1.
    """
    gap = gaps(batch)
    gap = gap[np.isfinite(gap)]
    return STEP * (float(np.median(gap)) or typical_gap(batch)) if gap.any() else 1.0
