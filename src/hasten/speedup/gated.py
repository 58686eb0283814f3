"""Answers that compute few of the dear costs, and how few, at which risk (paper §4.1).

A gate (`hasten.learning.gate`) guesses the labels of variables whose costs are dear. Where it doubts a guess by less
than `max_doubt`, the variable has that label and its costs are not computed; the costs of all others are asked for
*together*, in one call of the scorer for all problems of a batch; the costs of settled variables, if the gate looks at
them, in one call before. What is left is a problem like any other, and the certifier answers it. So an answer differs
from the black box's only if a guess does.

`calibrate_gate` chooses `max_doubt`: candidates are fixed beforehand and tested from the smallest up, each by the exact
binomial upper limit of the share of answers that are not the black box's, until one is above the risk. The first
that is truly too risky passes with a chance of at most 1 - confidence. This holds for problems like those tested.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from hasten.errors import ProblemError
from hasten.learning.gate import Gate, Guesses
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import place
from hasten.search.searcher import Searcher
from hasten.speedup.audit import upper_limit
from hasten.speedup.calibration import HEADINGS, Tested, disagreeing, limit_in_words
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ranges
from hasten.support.checks import check_number
from hasten.support.words import count

CONFIDENCE = 0.99  # that no more answers are changed than is risked, unless another is asked for
DOUBTS = (0.0, *(10 ** (-7 + n / 8) for n in range(54)))  # candidates, up to 0.42; 0 skips nothing


@dataclass(frozen=True, slots=True, eq=False)
class GatedSearch(Searcher):
    """Answers that leave out the costs of variables whose labels a gate guesses with little doubt.

    gate
        What guesses: a `Gate` that has learned.
    max_doubt
        Guesses that are doubted less are taken; between 0, the default, which takes none, and 1. `calibrate_gate`
        chooses it.
    certifier
        What answers the rest.

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
            compute(batch, cost, ~self.gate.dear(batch))
        return cost, self.gate.guess(with_costs(batch, cost))

    def answer(self, batch: Batch, cost: FloatArray, guesses: Guesses, n_jobs: int = 1) -> Solutions:
        """Computes the costs that the guesses leave, in one call, and answers; `cost` is written to."""
        guessed = guesses.doubt < self.max_doubt
        compute(batch, cost, guesses.dear & ~guessed if self.gate.settled else ~guessed)
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
            whole = self.certifier(with_costs(batch, cost).select(lost), n_jobs=n_jobs)
            labels[batch.places(lost)], done[lost] = whole.values, whole.valid
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TestedDoubt(Tested):
    """A `max_doubt` as tested."""

    max_doubt: float


@dataclass(frozen=True, slots=True)
class GateCalibration:
    """The choice, and what it rests on. Where `met` is false, even computing every cost was not below the risk."""

    max_doubt: float
    met: bool
    risk: float
    confidence: float
    changed: float  # the share of answers that were not the black box's
    limit: float  # the upper limit of that share
    share: float  # of the dear costs that the choice computes
    table: tuple[TestedDoubt, ...]  # the candidates tested, up to the first that failed

    def __str__(self) -> str:
        lines = [
            f"max_doubt {self.max_doubt:.3g}: computes {self.share:.1%} of the dear costs, changes {self.changed:.2%} "
            "of the answers against the black box",
            limit_in_words(self.limit, self.confidence, self.risk, self.met),
            f"{'max_doubt':>10} {HEADINGS}",
        ]
        lines += [f"{each.max_doubt:>10.3g} {each.row}" for each in self.table]
        return "\n".join(lines)


def calibrate_gate(
    search: GatedSearch,
    problems: Batch | Iterable[Problem],
    answers: Solutions,
    *,
    risk: float = 0.01,
    confidence: float = CONFIDENCE,
    n_jobs: int = 1,
) -> GateCalibration:
    """Returns the largest `max_doubt` that changes at most a share `risk` of the black box's `answers`.

    The problems must be new to the gate, by the hundred, and like those to come. A change is a labelling that is
    invalid or does not cost the same (`disagreeing`). The confidence is that of the true share; among the next so
    many problems it may by chance be a little more, which the default of 99% leaves room for.
    """
    if not 0 < risk < 1 or not 0 < confidence < 1:
        raise ProblemError(f"Risk and confidence are shares between 0 and 1; got risk={risk}, confidence={confidence}.")
    batch = as_batch(problems).resolved()
    if not len(batch):
        raise ProblemError("Calibration needs problems to test on, by the hundred; got none.")
    if len(answers) != len(batch):
        raise ProblemError(
            f"Got {count(len(answers), 'answer')} for {count(len(batch), 'problem')}. Give one for each."
        )
    cost, guesses = search.guess(batch)
    n_dear = max(1, int(guesses.dear.sum()))
    table: list[TestedDoubt] = []
    for max_doubt in DOUBTS:
        found = replace(search, max_doubt=max_doubt).answer(batch, cost.copy(), guesses, n_jobs)
        n_changed = int(disagreeing(found, answers).sum())
        limit = upper_limit(n_changed, len(batch), confidence)
        share = 1 - float((batch.n_variables - found.n_costs).sum()) / n_dear
        table.append(
            TestedDoubt(
                max_doubt=max_doubt,
                n_changed=n_changed,
                n=len(batch),
                limit=limit,
                share=share,
                passed=limit <= risk,
            )
        )
        if not table[-1].passed:
            break
    passed = [row for row in table if row.passed]
    best = passed[-1] if passed else table[0]
    return GateCalibration(
        best.max_doubt, bool(passed), risk, confidence, best.changed, best.limit, best.share, tuple(table)
    )
