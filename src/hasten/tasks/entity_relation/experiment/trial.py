"""The test sentences, and what any method makes of them: a row of a results table each (paper §5).

The ILP solver answers them first; every row is compared with its answers and with gold labels. Contenders are timed in
turns (`tasks.experiment.contest`). `contenders` lists them; another row is another entry there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.speedup.calibration import relabelled
from hasten.support.arrays import FloatArray
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.experiment.measure import Measured, Reference, finite
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.scoring import native
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.text import Text, Vocabulary
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.experiment.contest import Contender, Contest
from hasten.tasks.experiment.ilp import Ilp, Passes
from hasten.tasks.experiment.timing import ROUNDS


@dataclass(frozen=True, slots=True, eq=False)
class Deal:
    """The test sentences in some order: their text, and all their costs."""

    text: Text
    cost: FloatArray  # flat


@dataclass(frozen=True, eq=False)
class Trial:
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
    ) -> Trial:
        """Computes the costs of the sentences, and lets the ILP solver answer them."""
        tell("Scoring the test sentences", None)
        words, ilp = Vocabulary(), Ilp(solver)
        text = words.intern(sentences)
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
    def as_they_come(self) -> Deal:
        """The test sentences in their own order."""
        return Deal(self.text, self.batch.cost)

    @cached_property
    def contest(self) -> Contest[Deal]:
        """Where contenders take turns; the batches that they get have no features that nobody reads."""
        return Contest(
            self.as_they_come,
            self.deal,
            self.lean_batch,
            lambda deal: self.model.costs(deal.text),
            self.reference.ilp,
            self.ilp,
            self.runs,
            self.seed,
            self.tell,
        )

    @property
    def passes(self) -> Passes:
        """Passes of the ILP solver over the sentences, and what is known of their times."""
        return self.contest.passes

    def deal(self, rng: np.random.Generator) -> Deal:
        """Returns the test sentences in a fresh order."""
        order = rng.permutation(len(self.sentences))
        return Deal(self.words.intern([self.sentences[p] for p in order]), self.batch.select(order).cost)

    def by_ilp(self, **about: Any) -> Contender[Deal]:
        """Returns the ILP solver itself as a contender."""
        return self.contest.by_ilp(Model.ILP, **about)

    def certified(self, **about: Any) -> Contender[Deal]:
        """Returns the contender that proves its answers, and asks the ILP solver where it cannot."""
        return self.contest.certified(Model.CERTIFIED, **about)

    def eager(
        self, model: Model, search: Callable[[Batch], Solutions], *, learned: bool = False, **about: Any
    ) -> Contender[Deal]:
        """Returns a contender that starts from all costs; `learned` where it reads the learned features."""
        task = self.task if learned else self.task.lean  # features that nobody reads cost time

        def ready(deal: Deal) -> Callable[[], Solutions]:
            return lambda: search(task.batch(deal.text.n_entities, deal.cost))

        return Contender(model, ready, about=about)

    def lazily(self, model: Model, search: BeamSearch, **about: Any) -> Contender[Deal]:
        """Returns a contender that computes the costs it needs."""
        about = {"beam": search.width, "theta": finite(search.theta)} | about
        return Contender(model, lambda deal: lambda: self.search_lazily(search, deal), lazy=True, about=about)

    def measure(self, contenders: Sequence[Contender[Deal]], stage: str, *, rounds: int = ROUNDS) -> list[Measured]:
        """Returns a row for each contender, all timed in turns."""
        found = self.contest.measure(contenders, stage, rounds=rounds)
        return [
            self.reference.measured(Model(each.model), answers, features, timing, **about)
            for each, (answers, features, timing, about) in zip(contenders, found, strict=True)
        ]

    def search_lazily(self, search: BeamSearch, deal: Deal | None = None) -> Solutions:
        """Searches sentences, by default as they come, computing the costs that the search asks for."""
        text = (deal or self.as_they_come).text
        weights = None if search.weights is None else self.task.folded(search.weights)
        batch = self.task.lean.batch(text.n_entities, np.zeros(self.batch.cost_at[-1]))
        return native.search(self.model, text, batch, replace(search, weights=weights))

    def changed(self, search: BeamSearch) -> float:
        """Returns the share of test sentences to which theta gives another answer than the search with every cost."""
        with_every_cost = self.search_lazily(replace(search, theta=math.inf))
        return float(relabelled(self.search_lazily(search), with_every_cost).mean())

    def lean_batch(self, deal: Deal) -> Batch:
        """Returns the sentences of a deal with all their costs, and no features that nobody reads."""
        return self.task.lean.batch(deal.text.n_entities, deal.cost)
