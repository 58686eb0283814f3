"""Which tables agree best with the black box: each kind is learned from some answers and tried on others.

A black box may hide rules, preferences, both, or nothing that the declared factors can express. No tables are best for
all: mined ones are exact where rules are hidden, learned costs where preferences are. So all are tried on answers that
they did not learn from, with several confidences for mining and several step sizes for costs. The method that agrees
with the most answers is then learned from all of them.

Up to 1,000 answers are held out in turns, a fold at a time, so that each is tried once. Of more, a fifth is held out,
1,000 at most. To agree is to give the same labelling.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from hasten.learning.learner import typical_gap
from hasten.learning.perceptron import MOST_PASSES, Perceptron, StepSize, nodes_for, seconds
from hasten.learning.tables import Changing, Evidence, LearnedTables
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.solution import Solutions, Source, Status, numbered, same_labels
from hasten.speedup.audit import Agreement
from hasten.speedup.parts import Limits
from hasten.support.arrays import BoolArray, IntArray

log = logging.getLogger(__name__)

FEWEST = 10  # answers to choose by
MOST_HELD = 1000
CONFIDENCES = (0.99, 0.9, 0.0, 0.5, 0.999)  # the first, unless another is clearly better
CLEARLY = 0.003  # of the answers, and one more
STEP_SIZES = ((1.0, 0.0), (0.3, 0.1), (0.1, 0.03), (0.03, 0.1), (0.01, 0.1))  # step and margin, in typical gaps
SETTLED = 0.995  # agreement beyond which there is nothing left to learn
FIRST_PASSES, MORE_PASSES = 2, 6  # with all step sizes, and with the two best
TRIAL, FINAL = 0.6, 15.0  # seconds that a pass of a trial, and all passes of the final learning, may take
NODES, LARGE = 20_000, 3e7  # how far to branch where tuples have costs, unless told, and times labels and tuples


class Method(StrEnum):
    """How learned mode answers; each value is what a user reads. The first of equals is chosen."""

    NONE = "the schema's own tables"
    MINED = "mined tables"
    SOFT = "learned costs"
    BOTH = "mined tables with learned costs"


@dataclass(frozen=True, eq=False)
class Choice:
    """How to answer, and why: what each method agreed on. `str` says it in a sentence."""

    method: Method
    tables: LearnedTables
    agreement: Mapping[Method, Agreement]  # with answers that were held out, by every method that was tried
    n_answers: int  # learned from
    confidence: float | None = None  # of mining
    size: StepSize | None = None  # of learning costs

    def __str__(self) -> str:
        if not self.agreement:
            return f"Answers by {self.method}: {self.n_answers} answers are too few to learn from."
        others = {method: found for method, found in self.agreement.items() if method is not self.method}
        tried = [f"{method} {found.estimate:.3f}" for method, found in others.items()]
        mine = self.agreement[self.method]
        parts = []
        if self.confidence is not None:
            sure = f"with a confidence of {self.confidence:g}" if self.confidence else "since no answer shows them"
            parts.append(f"{self.tables.n_forbidden} tuples forbidden {sure}")
        if self.size is not None:
            parts.append(f"step {self.size.step:.3g}, margin {self.size.margin:.3g}")
        details = f" ({'; '.join(parts)})" if parts else ""
        return (
            f"Answers by {self.method}{details}: the same as the black box's on {mine.estimate:.3f} of {mine.n} "
            f"answers held out (between {mine.low:.3f} and {mine.high:.3f}). The others: {', '.join(tried) or 'none'}. "
            "Scores of a model that was trained on these answers make this too high (docs/lifetime.md)."
        )


class Inference(NamedTuple):
    """How problems are answered with learned tables."""

    limits: Limits
    n_jobs: int = 1

    def by_tables(self, tables: LearnedTables, batch: Batch) -> Solutions:
        """Returns optima for learned tables, as far as the effort goes: of the problems with these tables added."""
        return self.proved(tables.added_to(batch), tables.n_costly > 0)

    def proved(self, batch: Batch, costly: bool = True) -> Solutions:
        """Returns optima, as far as the effort goes: less far in large problems where many tuples have costs."""
        limits = self.limits
        if costly and limits.max_nodes is None:
            limits = replace(limits, max_nodes=nodes_for(batch, LARGE, NODES))
        return limits.certifier()(batch, n_jobs=self.n_jobs)


def answer(choice: Choice, batch: Batch, inference: Inference) -> Solutions:
    """Answers problems as was chosen. An optimum for learned tables says that it is one, and claims nothing else."""
    proved = inference.by_tables(choice.tables, batch)
    found = Solutions.scored(batch, proved.values)
    status = proved.status.copy()
    status[proved.has(Status.PROVED)] = numbered(Status.LEARNED)
    if choice.method is not Method.NONE:
        status[proved.has(Status.INFEASIBLE)] = numbered(Status.RULED_OUT)
    return replace(found, status=status, source=np.repeat(numbered(Source.LEARNED), len(batch)))


class Examples(NamedTuple):
    """Problems with the black box's answers: flat labels, and which of them can be learned from."""

    batch: Batch
    labels: IntArray
    usable: IntArray


def choose(schema: Schema, examples: Examples, inference: Inference, seed: int = 0) -> Choice:
    """Learns how to answer."""
    if len(examples.usable) < FEWEST:
        nothing = LearnedTables.that_forbid(schema, np.zeros(schema.n_weights, dtype=bool))
        return Choice(Method.NONE, nothing, {}, len(examples.usable))
    choice = _Trial(schema, examples, inference, np.random.default_rng(seed)).run()
    log.info("%s", choice)
    return choice


class _Fold(NamedTuple):
    kept: IntArray
    held: IntArray
    batch: Batch  # of the problems held out
    labels: IntArray
    evidence: Evidence  # of the answers kept


class _Costs(NamedTuple):
    """A step size on trial, fold by fold."""

    size: StepSize
    learners: list[Perceptron]
    n_agreed: int


class _Trial:
    """All methods, tried on answers held out."""

    def __init__(self, schema: Schema, examples: Examples, inference: Inference, rng: np.random.Generator) -> None:
        self.schema, self.inference, self.rng = schema, inference, rng
        self.batch, self.labels, self.usable = examples
        self.n_agreed: dict[Method, int] = {}
        n, order = len(self.usable), rng.permutation(self.usable)
        n_folds = 1 if n > MOST_HELD else 5 if n <= 200 else 3
        parts = [order[: min(MOST_HELD, n // 5)]] if n > MOST_HELD else [order[k::n_folds] for k in range(n_folds)]
        self.folds = [self._fold(np.sort(held)) for held in parts]
        self.n_held = sum(len(fold.held) for fold in self.folds)

    def run(self) -> Choice:
        """Tries every method and learns the best from all answers."""
        nothing = np.zeros(self.schema.n_weights, dtype=bool)
        free = [nothing] * len(self.folds)
        self.n_agreed[Method.NONE] = self._try_tables(free)
        confidence, mined = self._try_mining()
        soft: dict[Method, StepSize] = {}
        if self.schema.n_weights and max(self.n_agreed.values()) < SETTLED * self.n_held:
            gap = typical_gap(self.batch)
            sizes = [StepSize(step * gap, margin * gap) for step, margin in STEP_SIZES]
            if any(each.any() for each in mined):
                soft[Method.BOTH], sizes = self._try_costs(Method.BOTH, mined, sizes)
            soft[Method.SOFT], _ = self._try_costs(Method.SOFT, free, sizes)
        method = max(Method, key=lambda each: (self.n_agreed.get(each, -1), -list(Method).index(each)))
        agreement = {each: Agreement.of(self.n_agreed[each], self.n_held) for each in Method if each in self.n_agreed}
        sure, forbidden = None, nothing
        if method in (Method.MINED, Method.BOTH):
            sure, forbidden = confidence, Evidence.of(self.batch, self.labels, self.usable).forbidden(confidence)
        size = soft.get(method)
        tables = LearnedTables.that_forbid(self.schema, forbidden)
        if size is not None:
            tables = self._learn_costs(forbidden, size)
        return Choice(method, tables, agreement, len(self.usable), sure, size)

    def _fold(self, held: IntArray) -> _Fold:
        kept = np.setdiff1d(self.usable, held)
        evidence = Evidence.of(self.batch, self.labels, kept)
        return _Fold(kept, held, self.batch.select(held), self.labels[self.batch.places(held)], evidence)

    def _n_agreed(self, fold: _Fold, found: Solutions) -> int:
        return int(same_labels(fold.batch, found.values, fold.labels).sum())

    def _try_tables(self, forbidden: list[BoolArray]) -> int:
        """Returns how many answers tables that forbid some tuples give, in each fold others."""
        tables = [LearnedTables.that_forbid(self.schema, each) for each in forbidden]
        found = [self.inference.by_tables(each, fold.batch) for fold, each in zip(self.folds, tables, strict=True)]
        return sum(map(self._n_agreed, self.folds, found))

    def _try_mining(self) -> tuple[float, list[BoolArray]]:
        """Tries confidences; returns the best, and what it forbids in each fold."""
        best, mined, tried = CONFIDENCES[0], list[BoolArray](), -1
        for confidence in CONFIDENCES:
            forbidden = [fold.evidence.forbidden(confidence) for fold in self.folds]
            if mined and all(map(np.array_equal, forbidden, mined)):
                continue
            n_agreed = self._try_tables(forbidden)
            if tried < 0 or n_agreed > tried + 1 + CLEARLY * self.n_held:
                best, mined, tried = confidence, forbidden, n_agreed
        if any(each.any() for each in mined):
            self.n_agreed[Method.MINED] = tried
        return best, mined

    def _try_costs(
        self, method: Method, forbidden: list[BoolArray], sizes: list[StepSize]
    ) -> tuple[StepSize, list[StepSize]]:
        """Tries step sizes for a few passes, two for more; returns the best, and these two."""
        made = {id(each): Changing(self.batch, each) for each in forbidden}
        changing = [made[id(each)] for each in forbidden]
        limit, trials = TRIAL / len(self.folds), []
        some = [self._affordable(each, fold.kept, limit) for fold, each in zip(self.folds, changing, strict=True)]
        for size in sizes:
            learners = [Perceptron(each, self.batch, self.labels, size, self.inference.n_jobs) for each in changing]
            trials.append(self._passed(_Costs(size, learners, 0), some, FIRST_PASSES))
        trials.sort(key=lambda each: -each.n_agreed)
        more = [self._passed(each, some, MORE_PASSES) for each in trials[:2]]
        best = max([*more, *trials[:1]], key=lambda each: each.n_agreed)
        self.n_agreed[method] = best.n_agreed
        return best.size, [each.size for each in trials[:2]]

    def _passed(self, trial: _Costs, some: list[IntArray], passes: int) -> _Costs:
        """Makes more passes with a step size, and tries it."""
        n_agreed = 0
        for fold, learner, kept in zip(self.folds, trial.learners, some, strict=True):
            tables = learner.learn(kept, passes, self.rng)
            n_agreed += self._n_agreed(fold, self.inference.proved(learner.changing.some(fold.held, tables.weights)))
        return trial._replace(n_agreed=n_agreed)

    def _affordable(self, changing: Changing, problems: IntArray, limit: float) -> IntArray:
        """Returns as many of some problems, drawn at random, as a pass has the time for."""
        n = int(len(problems) * min(1.0, limit / seconds(changing.batch, problems)))
        return problems if n >= len(problems) else self.rng.permutation(problems)[: max(n, FEWEST)]

    def _learn_costs(self, forbidden: BoolArray, size: StepSize) -> LearnedTables:
        """Learns costs from all answers, in as many passes as there is time for."""
        changing = Changing(self.batch, forbidden)
        problems = self._affordable(changing, self.usable, FINAL / (FIRST_PASSES + MORE_PASSES))
        passes = int(min(max(FINAL / seconds(changing.batch, problems), 1), MOST_PASSES))
        perceptron = Perceptron(changing, self.batch, self.labels, size, self.inference.n_jobs)
        return perceptron.learn(problems, passes, self.rng)
