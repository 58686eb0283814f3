"""Answers that compute few of the expensive costs, and how many to skip (paper §4.1).

A gate (`hasten.learning.gate`) guesses the labels of variables with expensive costs. Where it doubts a guess by less
than `max_doubt`, the variable has that label and its costs are not computed; the costs of all others are asked for
*together*, in one call of the scorer for all problems of a batch; the costs of settled variables, if the gate looks at
them, in one call before. What is left is a problem like any other, and the certifier answers it. So an answer differs
from the black box's only if a guess does. The paper's way is `theta`: the gap above which the heuristic of a beam
search decides without costs.

A `Calibrator` returns the `theta`, or the `max_doubt`, that skips the most of which it is confident that it changes no
more than a given share, `risk`, of the answers. The share need not grow with the setting, so a plain optimum over many
candidates would be too lucky. Instead they are tested from the safest on, each by the exact binomial upper limit of its
share, until one fails: the first candidate that is truly too risky passes with a chance of at most 1 - confidence. For
this the candidates must not depend on the answers that test them: those of `max_doubt` are fixed beforehand, those of
`theta` come from the gaps of other problems, a fifth of those given.

`theta = inf` computes every cost. The next candidate, `FORCED`, skips a cost only where the constraints leave no more
candidates than the beam can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.search import drivers, nodes
from hasten.kernels.search.nodes import FORCED, theta_in_words
from hasten.kernels.tolerance import TOLERANCE
from hasten.learning.gate import Gate, Guesses
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.solution import Solutions, Status, same_labels
from hasten.proof.certifier import Certifier
from hasten.search.beam import NO_WEIGHTS, BeamSearch, Searcher, place
from hasten.speedup.audit import upper_limit
from hasten.support.arrays import BoolArray, FloatArray, IntArray, ranges
from hasten.support.checks import brief, check_number, is_share
from hasten.support.words import count

N_CANDIDATES = 24  # thetas
DOUBTS = (0.0, *(10 ** (-7 + n / 8) for n in range(54)))  # candidates, up to 0.42; 0 skips nothing
GATE_CONFIDENCE = 0.99  # leaves room for chance among the problems to come


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A setting as tested: how many of `n` answers it changed, and which share of the costs it computed."""

    name: str  # the setting, in words
    theta: float = math.inf
    max_doubt: float = 0.0
    n_changed: int
    n: int
    limit: float  # of the share of answers that it changes
    share: float
    passed: bool

    @classmethod
    def of(cls, changed: BoolArray, share: float, confidence: float, risk: float, **setting: Any) -> Candidate:
        """Tests a setting by the answers that it changed; without a confidence there is nothing it could change."""
        n_changed, n = int(changed.sum()), len(changed)
        limit = upper_limit(n_changed, n, confidence) if confidence else 0.0
        return cls(**setting, n_changed=n_changed, n=n, limit=limit, share=share, passed=limit <= risk)

    @property
    def changed(self) -> float:
        """The share of answers that it changed."""
        return self.n_changed / self.n if self.n else math.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration(Candidate):
    """The candidate that was chosen, and what the choice rests on.

    Where `met` is false, even computing every cost was not below the risk.
    """

    met: bool
    risk: float
    confidence: float
    against: str
    table: tuple[Candidate, ...]  # the candidates tested, up to the first that failed
    note: str = ""  # which settings kept theta from being finite

    @classmethod
    def by(cls, tests: Iterable[Candidate], **about: Any) -> Calibration:
        """Tests candidates, from the safest on, until one fails; the last that passed is chosen, or else the safest."""
        table = list[Candidate]()
        for tested in tests:
            table.append(tested)
            if not tested.passed:
                break
        best = next((row for row in reversed(table) if row.passed), table[0])
        return cls(**asdict(best), **about, met=best.passed, table=tuple(table))

    def __str__(self) -> str:
        unmet = "" if self.met else ", which no candidate met"
        lines = [
            f"{self.name}: computes {self.share:.1%} of the costs, changes {self.changed:.2%} of the answers "
            f"against the {self.against}",
            f"(at most {self.limit:.2%}, with confidence {self.confidence:.0%}; the risk allowed is {self.risk:.2%}"
            f"{unmet})",
            f"{'candidate':>26} {'costs':>8} {'changed':>8} {'at most':>8}",
        ]
        for row in self.table:
            found = f"{row.name:>26} {row.share:>8.1%} {row.changed:>8.2%} {row.limit:>8.2%}"
            lines.append(found if row.passed else f"{found}  too risky")
        return "\n".join([*lines, self.note] if self.note else lines)


@dataclass(frozen=True, slots=True)
class Calibrator:
    """Chooses how many costs to skip.

    risk
        The share of answers that may be changed, between 0 and 1. 0.01 by default.
    confidence
        How sure of that to be, between 0 and 1. None, the default, is 0.95 for theta and 0.99 for a gate.
    seed
        Draws the problems whose gaps give the candidates.
    n_jobs
        How many threads share the problems.
    """

    risk: float = 0.01
    confidence: float | None = None
    seed: int = 0
    n_jobs: int = 1

    def __post_init__(self) -> None:
        if not is_share(self.risk) or not (self.confidence is None or is_share(self.confidence)):
            given = f"got risk={brief(self.risk)}, confidence={brief(self.confidence)}."
            raise ProblemError(f"Risk and confidence are shares between 0 and 1; {given}")

    def theta(
        self,
        search: BeamSearch,
        problems: Batch | Iterable[Problem],
        *,
        black_box: Callable[[Batch], Solutions] | None = None,
        run_as: Callable[[BeamSearch], BeamSearch] = lambda search: search,
    ) -> Calibration:
        """Returns the smallest theta that changes at most a share `risk` of the answers.

        Answers are compared with those of the same search with `theta = inf`: a change is another labelling. Given a
        `black_box`, they are compared with its: a change is a labelling that is invalid or does not cost the same
        (`disagreeing`). The problems should be new to the search, and need no labels. `run_as` gives the search to run
        in place of one with some theta, if that is another.
        """
        batch = as_batch(problems).resolved()
        if len(batch) < 2:
            raise ProblemError(f"Calibration needs problems to test on, by the hundred; got {len(batch)}.")
        order = np.random.default_rng(self.seed).permutation(len(batch))
        cut = max(1, len(batch) // 5)
        shown, tested = batch.select(np.sort(order[:cut])), batch.select(np.sort(order[cut:]))
        complete = run_as(replace(search, theta=math.inf))
        reference = black_box(tested) if black_box is not None else complete(tested, n_jobs=self.n_jobs)
        confidence, n_costs = 0.95 if self.confidence is None else self.confidence, max(1, int(tested.variable_at[-1]))

        def test(theta: float) -> Candidate:
            found = run_as(replace(search, theta=theta))(tested, n_jobs=self.n_jobs)
            changed = relabelled(found, reference) if black_box is None else disagreeing(found, reference)
            sure = 0.0 if black_box is None and theta == math.inf else confidence  # it is compared with itself
            name, share = f"theta {theta_in_words(theta)}", float(found.n_costs.sum()) / n_costs
            return Candidate.of(changed, share, sure, self.risk, name=name, theta=theta)

        against = "search that computes every cost" if black_box is None else "black box"
        about = {"risk": self.risk, "confidence": confidence, "against": against}
        chosen = Calibration.by(map(test, candidates(search, shown)), **about)
        needs = ["look_ahead"] * search.look_ahead + ["reduce"] * complete.reduce
        if chosen.theta < math.inf or not needs:
            return chosen
        off = ", ".join(f"{name}=False" for name in needs)
        note = (
            f"Each finite theta was tried without {' and '.join(needs)}: a search that skips costs cannot have "
            f"what needs all of them. If that is why none passed, set {off} and calibrate again."
        )
        return replace(chosen, note=note)

    def max_doubt(self, search: GatedSearch, problems: Batch | Iterable[Problem], answers: Solutions) -> Calibration:
        """Returns the largest `max_doubt` that changes at most a share `risk` of the black box's `answers`.

        The problems must be new to the gate, by the hundred, and like those to come. A change is a labelling that is
        invalid or does not cost the same (`disagreeing`).
        """
        batch = as_batch(problems).resolved()
        if not len(batch):
            raise ProblemError("Calibration needs problems to test on, by the hundred; got none.")
        if len(answers) != len(batch):
            raise ProblemError(
                f"Got {count(len(answers), 'answer')} for {count(len(batch), 'problem')}. Give one for each."
            )
        confidence = GATE_CONFIDENCE if self.confidence is None else self.confidence
        cost, guesses = search.guess(batch)
        n_guessed = max(1, int(guesses.expensive.sum()))

        def test(max_doubt: float) -> Candidate:
            found = replace(search, max_doubt=max_doubt).answer(batch, cost.copy(), guesses, self.n_jobs)
            share = 1 - float((batch.n_variables - found.n_costs).sum()) / n_guessed
            changed, name = disagreeing(found, answers), f"max_doubt {max_doubt:.3g}"
            return Candidate.of(changed, share, confidence, self.risk, name=name, max_doubt=max_doubt)

        return Calibration.by(map(test, DOUBTS), risk=self.risk, confidence=confidence, against="black box")


def problems_needed(risk: float, confidence: float = 0.95) -> int:
    """Returns how many problems calibration needs: fewer prove too little even if no answer is changed."""
    tested = math.ceil(math.log1p(-confidence) / math.log1p(-risk))
    n = tested + 1
    while n - n // 5 < tested:
        n += 1
    return n


def candidates(search: BeamSearch, batch: Batch) -> list[float]:
    """Returns thetas to test, largest first: inf, `FORCED`, quantiles of the gaps seen, and 0."""
    gap = gaps(search, batch)
    gap = gap[np.isfinite(gap) & (gap > 0)]
    inner = np.unique(np.quantile(gap, np.linspace(0, 1, N_CANDIDATES))) if gap.size else gap
    return [math.inf, FORCED, *inner[::-1].tolist(), 0.0]


def gaps(search: BeamSearch, batch: Batch) -> FloatArray:
    """Returns the heuristic's gap at each step of a search: inf where all candidates fit into the beam."""
    gap = np.empty(batch.variable_at[-1])
    weights = NO_WEIGHTS if search.weights is None else search.weights
    options = nodes.Options(int(search.width), math.inf, bool(search.enforce), False)
    drivers.observe_gaps(batch.arrays, weights, options, batch.order, gap)
    return gap


def relabelled(found: Solutions, reference: Solutions) -> BoolArray:
    """Tells which answers have other labels."""
    return ~same_labels(found.batch, found.values, reference.values)


def disagreeing(found: Solutions, reference: Solutions) -> BoolArray:
    """Tells which answers are invalid, or do not cost what those of the black box cost, within the tolerance.

    To cost less is to disagree as well: with a black box that does not answer with the cheapest labelling, on
    purpose. Only answers that a time limit cut short, or that were kept where the solver failed, may be bettered.
    """
    solvable = ~reference.has(Status.INFEASIBLE)
    cut_short = reference.has(Status.TIME_LIMIT) | reference.has(Status.FAILED)
    slack = TOLERANCE * np.maximum(1.0, np.abs(reference.cost))
    with np.errstate(invalid="ignore"):  # inf less inf, where there is no answer
        more = found.cost - reference.cost
    changed: BoolArray = np.where(solvable, ~found.valid | (more > slack) | ((more < -slack) & ~cut_short), found.valid)
    return changed
