"""The test sentences, and what any method makes of them: a row of a results table each (paper §5).

The ILP solver answers them first; every row is compared with its answers and with gold labels. Methods are timed in
turns (`tasks.evaluation.methods`). `methods` lists them; another row is another entry there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.speedup.calibration import relabelled
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.scoring import native
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation.methods import ROUNDS, Ilp, Method, MethodTimer, Passes, Timing, same_answers
from hasten.tasks.evaluation.statistics import Resamples, f1_of, figures_of, merged
from hasten.tasks.text.words import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The test sentences in some order: their text, and all their costs."""

    text: Text
    cost: FloatArray  # flat


@dataclass(frozen=True, eq=False)
class TestSet:
    """Test sentences with all their costs and the answers to compare with."""

    task: EntityRelationTask
    model: LinearScorer
    sentences: Sequence[Sentence]
    words: Vocabulary
    text: Text
    batch: Batch
    ilp: Ilp
    reference: Reference
    runs: int
    seed: int
    tell: Tell

    @classmethod
    def of(
        cls,
        task: EntityRelationTask,
        model: LinearScorer,
        sentences: Sequence[Sentence],
        *,
        solver: str,
        runs: int,
        tell: Tell,
        seed: int = 0,
    ) -> TestSet:
        """Computes the costs of the sentences, and lets the ILP solver answer them."""
        tell("Scoring the test sentences", None)
        words, ilp = Vocabulary(), Ilp(solver)
        text = intern(sentences, words)
        batch = task.batch(text.n_entities, model.costs(text)[0])
        stage = f"Solving by {ilp.name}"
        answers = ilp.answer(batch, lambda done, of: tell(stage, done / of))
        names = task.entity_labels, task.relation_labels
        labels = np.concatenate([gold(sentence, *names, lost=True) for sentence in sentences])
        is_entity = np.concatenate([np.arange(n * n) < n for n in text.n_entities.tolist()])
        no_entity = task.entity_labels.index("none") if "none" in task.entity_labels else -1
        reference = Reference(labels, answers, is_entity, no_entity, len(task.relation_labels) - 1)
        return cls(task, model, sentences, words, text, batch, ilp, reference, runs, seed, tell)

    @cached_property
    def scale(self) -> float:
        """The median, over variables, of what the second-best label costs above the best."""
        gaps = []
        for p in range(min(len(self.batch), 200)):
            problem = self.batch[p]
            for costs in (problem.costs_of(v) for v in range(problem.n_variables)):
                if len(costs) > 1:
                    two = np.partition(costs, 1)[:2]
                    gaps.append(two[1] - two[0])
        return float(np.median(gaps)) if gaps else 1.0

    @cached_property
    def in_order(self) -> Inputs:
        """The test sentences in their own order."""
        return Inputs(self.text, self.batch.cost)

    @cached_property
    def timer(self) -> MethodTimer[Inputs]:
        """Where methods take turns; the batches that they get have no features that nobody reads."""
        return MethodTimer(
            self.in_order,
            self.shuffled,
            self.lean_batch,
            lambda inputs: self.model.costs(inputs.text),
            self.reference.ilp,
            self.ilp,
            self.runs,
            self.seed,
            self.tell,
        )

    @property
    def passes(self) -> Passes:
        """Passes of the ILP solver over the sentences, and what is known of their times."""
        return self.timer.passes

    def shuffled(self, rng: np.random.Generator) -> Inputs:
        """Returns the test sentences in a fresh order."""
        order = rng.permutation(len(self.sentences))
        return Inputs(intern([self.sentences[p] for p in order], self.words), self.batch.select(order).cost)

    def by_ilp(self, **about: Any) -> Method[Inputs]:
        """Returns the ILP solver itself as a method."""
        return self.timer.by_ilp(Model.ILP, **about)

    def certified(self, **about: Any) -> Method[Inputs]:
        """Returns the method that proves its answers, and asks the ILP solver where it cannot."""
        return self.timer.certified(Model.CERTIFIED, **about)

    def eager(
        self, model: Model, search: Callable[[Batch], Solutions], *, learned: bool = False, **about: Any
    ) -> Method[Inputs]:
        """Returns a method that starts from all costs; `learned` where it reads the learned features."""
        task = self.task if learned else self.task.lean  # features that nobody reads cost time

        def ready(inputs: Inputs) -> Callable[[], Solutions]:
            return lambda: search(task.batch(inputs.text.n_entities, inputs.cost))

        return Method(model, ready, about=about)

    def lazily(self, model: Model, search: BeamSearch, **about: Any) -> Method[Inputs]:
        """Returns a method that computes the costs it needs."""
        about = {"beam": search.width, "theta": finite(search.theta)} | about
        return Method(model, lambda inputs: lambda: self.search_lazily(search, inputs), lazy=True, about=about)

    def measure(self, methods: Sequence[Method[Inputs]], stage: str, *, rounds: int = ROUNDS) -> list[Measured]:
        """Returns a row for each method, all timed in turns."""
        found = self.timer.measure(methods, stage, rounds=rounds)
        return [
            self.reference.measured(Model(each.model), answers, features, timing, **about)
            for each, (answers, features, timing, about) in zip(methods, found, strict=True)
        ]

    def search_lazily(self, search: BeamSearch, inputs: Inputs | None = None) -> Solutions:
        """Searches sentences, by default as they come, computing the costs that the search asks for."""
        text = (inputs or self.in_order).text
        weights = None if search.weights is None else self.task.folded(search.weights)
        batch = self.task.lean.batch(text.n_entities, np.zeros(self.batch.cost_at[-1]))
        return native.search(self.model, text, batch, replace(search, weights=weights))

    def changed(self, search: BeamSearch) -> float:
        """Returns the share of test sentences to which theta gives another answer than the search with every cost."""
        with_every_cost = self.search_lazily(replace(search, theta=math.inf))
        return float(relabelled(self.search_lazily(search), with_every_cost).mean())

    def lean_batch(self, inputs: Inputs) -> Batch:
        """Returns the sentences with all their costs, and no features that nobody reads."""
        return self.task.lean.batch(inputs.text.n_entities, inputs.cost)


SCORES = ("entity_f1_gold", "relation_f1_gold", "entity_f1_ilp", "relation_f1_ilp")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a results table; the keys of `results.json`. Times are of the whole test set."""

    model: Model
    beam: int | None
    theta: float | None
    entity_f1_gold: float
    relation_f1_gold: float
    entity_f1_ilp: float
    relation_f1_ilp: float
    validity: float
    exact_match: float
    proved: float
    solver_calls: float
    costs_computed: float
    time_ms: float
    time_ms_std: float
    features_ms: float | None  # None where features and inference are one
    inference_ms: float | None
    relative_theta: float | None = None  # theta as the paper prints it, where it is the paper's
    building_ms: float | None = None  # of models, or plans of proofs, before inference; no part of the time
    table: str = "ours"  # where the paper has it: "1", "2", or it is ours
    note: str = ""
    answered_by: Mapping[str, float] = field(default_factory=dict)  # sentences by solver, of all seeds
    solving_ms: Mapping[str, float] = field(default_factory=dict)  # and their time
    interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of each F1
    std: Mapping[str, float] = field(default_factory=dict)  # over seeds, where there are several

    def as_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        found = asdict(self)
        found["interval"] = {key: list(limits) for key, limits in self.interval.items()}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A row of one seed, and what resampling needs: counts of each test sentence for each of `SCORES`."""

    row: Row
    counts: FloatArray  # (n_test, 4, 2): see `f1_of`


def finite(theta: float) -> float | None:
    """Returns theta for JSON, which has no infinity: None stands for computing every cost."""
    return theta if math.isfinite(theta) else None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What answers are compared with: gold labels and the black box's own answers."""

    gold: IntArray  # flat
    ilp: Solutions
    is_entity: BoolArray  # (variables,)
    no_entity: int  # the labels that F1 does not count; -1 for none
    no_relation: int

    def f1(self, labels: IntArray, against: IntArray) -> tuple[float, float]:
        """Returns the micro F1 of entities and of relations, the labels for "nothing" not counted."""
        entity, relation = f1_of(self._named(labels, against).sum(axis=0)).tolist()
        return entity, relation

    def _named(self, labels: IntArray, against: IntArray) -> FloatArray:
        """Returns, for each variable, what it adds to the counts of entities and of relations: (variables, 2, 2)."""
        counts = np.zeros((len(labels), 2, 2))
        for kind, nothing in enumerate((self.no_entity, self.no_relation)):
            mine = self.is_entity if kind == 0 else ~self.is_entity
            named = mine & (against != nothing)
            counts[:, kind, 0] = named & (labels == against) & (labels >= 0)  # -1 is gold that no answer can be
            counts[:, kind, 1] = named.astype(int) + (mine & (labels != nothing) & (labels >= 0))
        return counts

    def counts(self, labels: IntArray) -> FloatArray:
        """Returns the counts (n_test, 4, 2) of each sentence, for each of `SCORES`."""
        at = self.ilp.batch.variable_at
        each = np.concatenate([self._named(labels, against) for against in (self.gold, self.ilp.labels)], axis=1)
        totals = np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)])
        found: FloatArray = totals[at[1:]] - totals[at[:-1]]
        return found

    def exact(self, found: Solutions) -> BoolArray:
        """Which answers are the black box's: the same labels, or as good ones."""
        return same_answers(found, self.ilp)

    def measured(
        self, model: Model, found: Solutions, features: Timing | None, inference: Timing, **about: Any
    ) -> Measured:
        """Measures answers; `features` None: inference holds both. `about` are fields of `Row`."""
        counts = self.counts(found.labels)
        values: dict[str, Any] = dict(zip(SCORES, f1_of(counts.sum(axis=0)).tolist(), strict=True)) | {
            "beam": None,
            "theta": None,
        }
        values |= figures_of(found, self.ilp, features, inference)
        return Measured(Row(model, **(values | about)), counts)


def over_seeds(measured: Sequence[Measured], resamples: Resamples) -> Row:
    """Returns one row for the same method with several seeds: means, standard deviations and intervals.

    With one seed, the standard deviation of the time is that of its runs. Theta is the median of those chosen, inf the
    largest, and the lower one of two.
    """
    rows = [each.row for each in measured]
    limits = resamples.intervals([each.counts for each in measured])
    interval = {key: (float(low), float(high)) for key, (low, high) in zip(SCORES, limits, strict=True)}
    if len(rows) == 1:
        return replace(rows[0], interval=interval)
    thetas = sorted(math.inf if row.theta is None else row.theta for row in rows)
    return replace(
        rows[0],
        **merged([row.as_dict() for row in rows], SCORES),
        theta=finite(thetas[(len(thetas) - 1) // 2]),
        interval=interval,
    )
