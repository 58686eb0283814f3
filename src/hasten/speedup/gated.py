"""Answers that compute few of the expensive costs (paper §4.1).

A gate (`hasten.learning.gate`) guesses the labels of variables with expensive costs. Where it doubts a guess by less
than `max_doubt`, the variable has that label and its costs are not computed; the costs of all others are asked for
*together*, in one call of the scorer for all problems of a batch; the costs of settled variables, if the gate looks at
them, in one call before. What is left is a problem like any other, and the certifier answers it. So an answer differs
from the black box's only if a guess does. `Speedup.calibrate` chooses `max_doubt` (`hasten.speedup.calibration`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from hasten.errors import ProblemError
from hasten.learning.gate import Gate, Guesses
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import Searcher, place
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ranges
from hasten.support.checks import check_number


@dataclass(frozen=True, slots=True, eq=False)
class GatedSearch(Searcher):
    """Answers that leave out the costs of variables whose labels a gate guesses with little doubt.

    gate
        The `Gate` that guesses; it has learned.
    max_doubt
        Guesses that are doubted less are taken; between 0, the default, which takes none, and 1. `Calibrator`
        chooses it.
    certifier
        The `Certifier` that answers the rest.

    A cost of inf forbids a label only if it is computed: a guess may be such a label, which goes unnoticed where
    costs are lazy.
    """

    gate: Gate
    max_doubt: float = 0.0
    certifier: Certifier = field(default_factory=Certifier)

    def __post_init__(self) -> None:
        check_number("max_doubt", self.max_doubt)
        if self.max_doubt > 1:
            raise ProblemError(f"max_doubt must be between 0 and 1, got {self.max_doubt}.")

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        cost, guesses = self.guess(batch)
        return self.answer(batch, cost, guesses, n_jobs)

    def guess(self, batch: Batch) -> tuple[FloatArray, Guesses]:
        """Guesses; if the gate looks at their costs, computes those of the settled variables before, in one call."""
        cost = batch.cost.copy()
        if self.gate.settled:
            compute(batch, cost, ~self.gate.expensive(batch))
        return cost, self.gate.guess(with_costs(batch, cost))

    def answer(self, batch: Batch, cost: FloatArray, guesses: Guesses, n_jobs: int = 1) -> Solutions:
        """Computes the costs that the guesses leave, in one call, and answers; `cost` is written to."""
        guessed = guesses.doubt < self.max_doubt
        compute(batch, cost, guesses.expensive & ~guessed if self.gate.settled else ~guessed)
        held = with_costs(batch, cost)
        held.cost[:] = hold(batch, cost, guessed, guesses.label)
        answers = self.certifier(held, n_jobs=n_jobs)
        labels, done = answers.values.copy(), answers.valid.copy()
        lost = np.flatnonzero(~done)
        if lost.size:  # guesses that contradict each other, or the costs
            again = np.zeros(guessed.size, dtype=bool)
            again[batch.places(lost)] = True
            compute(batch, cost, again & guessed)
            guessed &= ~again
            again_found = self.certifier(with_costs(batch, cost).select(lost), n_jobs=n_jobs)
            labels[batch.places(lost)], done[lost] = again_found.values, again_found.valid
        owner = np.repeat(np.arange(len(batch)), batch.n_variables)
        n_costs = np.bincount(owner[~guessed], minlength=len(batch))
        return Solutions.scored(batch, labels, done, n_costs, cost if batch.lazy else None)


def with_costs(batch: Batch, cost: FloatArray) -> Batch:
    """Returns a batch with these costs, copied, as given."""
    return replace(batch, cost=cost.copy(), scorer=None)


def compute(batch: Batch, cost: FloatArray, wanted: BoolArray) -> None:
    """Writes the costs of the variables that are wanted, flat, asking for all of them together."""
    if not batch.lazy:
        return
    at = np.flatnonzero(wanted)
    problems = np.searchsorted(batch.variable_at, at, side="right") - 1
    variables = at - batch.variable_at[problems]
    place(batch, cost, problems, variables, batch.score(problems, variables))


def hold(batch: Batch, cost: FloatArray, guessed: BoolArray, label: IntArray) -> FloatArray:
    """Returns costs that leave each guessed variable its guess alone."""
    held = cost.copy()
    at = np.flatnonzero(guessed)
    problems = np.searchsorted(batch.variable_at, at, side="right") - 1
    starts, sizes = batch.label_ranges(problems, at - batch.variable_at[problems])
    starts += batch.cost_at[problems]
    held[ranges(starts, sizes)] = np.inf
    held[starts + label[at]] = cost[starts + label[at]] if not batch.lazy else 0.0
    return held
