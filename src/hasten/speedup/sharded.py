"""Fitting a speedup to shards: the heuristic by parameter mixing, all decisions on what the shards held out, merged.

Whether weights should guide the search, how far it agrees with the black box, and theta are measured on the held-out
problems of all shards together: counts add up, so that this is what one process with all of them would find.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hasten.errors import ProblemError
from hasten.learning.mixing import LocalShards, Mixture, Shards, fit_shards, merged
from hasten.learning.targets import Answers
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.speedup.audit import Agreement
from hasten.speedup.history import Counters
from hasten.speedup.parts import Learned, as_answer
from hasten.speedup.state import State
from hasten.speedup.strategy import ENOUGH, CertifiedStrategy

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

HELD = 0.1  # of each shard


@dataclass(frozen=True, slots=True, eq=False)
class Sharded:
    """The result of fitting to shards: the mixture, the problems held out, and how often the search agrees on them."""

    mixture: Mixture
    held_out: Batch  # nobody learned from them: `Speedup.calibrate` takes them
    agreement: Agreement
    guided: bool


@dataclass(frozen=True, slots=True, eq=False)
class Labelling:
    """Problems of a shard, answered by the black box where they are."""

    speedup: Speedup
    problems: Batch

    def __call__(self) -> tuple[Batch, Answers]:
        """Returns the problems with their answers."""
        batch = self.problems.resolved()
        return batch, self.speedup._oracle.ask(batch)[0]


def fit_to_shards(
    speedup: Speedup, strategy: CertifiedStrategy, shards: Shards | Sequence[Batch]
) -> tuple[State, Sharded]:
    """Returns a state that has learned the heuristic from shards, and how well that went."""
    part = strategy.part
    if isinstance(as_answer(speedup.answer), Learned) or part.gate is not None:
        raise ProblemError("Shards teach the heuristic alone, neither tables nor a gate. Use fit, or another answer.")
    if not isinstance(shards, Shards):
        sources = [Labelling(speedup, batch) for batch in shards]
        shards = LocalShards(sources, speedup.n_jobs, HELD, speedup.seed)
    learner = strategy.new_learner(progress=False)
    mixture = fit_shards(learner, shards)
    held, labels = merged(shards.held_out())
    wrong = dict.fromkeys((True, False), 0)
    if len(held):
        truth = Solutions.scored(held, labels)
        wrong = {guided: strategy.n_wrong(learner.weights if guided else None, truth) for guided in wrong}
    guided = not part.enforce if part.guided is None else part.guided
    if part.guided is None and len(held) >= ENOUGH // 10:
        guided = wrong[True] < wrong[False]
    n_labelled = learner.trace[0].n_examples + learner.state.n_skipped + len(held)
    state = State(guided=guided, learner=learner, counted=Counters(labelled=n_labelled, updates=learner.n_mistakes))
    return state, Sharded(mixture, held, Agreement.of(len(held) - wrong[guided], len(held)), guided)
