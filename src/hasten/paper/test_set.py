"""The test sentences, and how any method answers and is scored on them: a row of a results table each (paper §5).

The ILP solver answers them first; every row is compared with its answers and with gold labels. `methods` lists the
rows; another row is another entry there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.search.beam import BeamSearch
from hasten.speedup.calibration import relabelled
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.tasks.entity_relation.black_boxes import Box
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.scoring import black_box
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation.measuring import Ilp, Method, TestSet
from hasten.tasks.evaluation.study import Measuring, Row, f1_of, finite
from hasten.tasks.text.words import Vocabulary

SCORES = ("entity_f1_gold", "relation_f1_gold", "entity_f1_ilp", "relation_f1_ilp")


class Inputs(NamedTuple):
    """The test sentences in some order: their text, and all their costs."""

    text: Any  # as the black box reads it
    cost: FloatArray  # flat


@dataclass(frozen=True, eq=False)
class SentenceTestSet(TestSet):
    """Test sentences with all their costs, gold labels, and the solver's answers."""

    task: EntityRelationTask
    model: Box
    sentences: Sequence[Sentence]
    words: Vocabulary

    @classmethod
    def of(cls, task: EntityRelationTask, model: Box, sentences: Sequence[Sentence], how: Measuring) -> SentenceTestSet:
        """Computes the costs of the sentences, and lets the ILP solver answer them."""
        how.tell("Scoring the test sentences", None)
        words, ilp = Vocabulary(), Ilp(how.solver, how.time_limit)
        text = model.read(sentences, words)
        answers = ilp.answer(task.batch(text.n_entities, model.costs(text)[0]), how.tell)
        return cls(answers, ilp, how, task, model, sentences, words)

    @cached_property
    def text(self) -> Any:
        """The sentences as the black box reads them, in their own order."""
        return self.model.read(self.sentences, self.words)

    @cached_property
    def reference(self) -> Reference:
        """Gold labels, and how answers are compared with them."""
        names = self.task.entity_labels, self.task.relation_labels
        labels = np.concatenate([gold(sentence, *names, lost=True) for sentence in self.sentences])
        is_entity = np.concatenate([np.arange(n * n) < n for n in self.text.n_entities.tolist()])
        no_entity = names[0].index("none") if "none" in names[0] else -1
        return Reference(labels, is_entity, no_entity, len(names[1]) - 1)

    @cached_property
    def scale(self) -> float:
        """The median, over variables, of what the second-best label costs above the best."""
        some = [self.batch[p] for p in range(min(len(self.batch), 200))]
        costs = [problem.costs_of(v) for problem in some for v in range(problem.n_variables)]
        gaps = [np.diff(np.partition(each, 1)[:2])[0] for each in costs if len(each) > 1]
        return float(np.median(gaps)) if gaps else 1.0

    @property
    def scores(self) -> Sequence[str]:
        """F1 of entities and of relations, against gold labels and against the ILP."""
        return SCORES

    def counts(self, answers: Solutions) -> FloatArray:
        """Returns the counts (n_test, 4, 2) of each sentence, for each of `SCORES`."""
        against = self.reference.gold, self.answers.labels
        each = np.concatenate([self.reference.named(answers.labels, theirs) for theirs in against], axis=1)
        totals = np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)])
        at = self.batch.variable_at
        found: FloatArray = totals[at[1:]] - totals[at[:-1]]
        return found

    def shuffled(self, rng: np.random.Generator | None) -> Inputs:
        """Returns the test sentences in a fresh order."""
        if rng is None:
            return Inputs(self.text, self.batch.cost)
        order = rng.permutation(len(self.sentences))
        return Inputs(self.model.read([self.sentences[p] for p in order], self.words), self.batch.select(order).cost)

    def problems(self, inputs: Inputs) -> Batch:
        """Returns the sentences with all their costs, and no features that nobody reads."""
        return self.task.lean.batch(inputs.text.n_entities, inputs.cost)

    def features(self, inputs: Inputs) -> object:
        """Computes the costs of sentences."""
        return self.model.costs(inputs.text)

    def eager(
        self, model: Model, search: Callable[[Batch], Solutions], *, learned: bool = False, **about: Any
    ) -> Method:
        """Returns a method that starts from all costs; `learned` where it reads the learned features."""
        task = self.task if learned else self.task.lean  # features that nobody reads cost time

        def ready(inputs: Inputs) -> Callable[[], Solutions]:
            return lambda: search(task.batch(inputs.text.n_entities, inputs.cost))

        return Method(model, ready, about=row_of(about))

    def lazily(self, model: Model, search: BeamSearch, **about: Any) -> Method:
        """Returns a method that computes the costs it needs."""
        about = row_of({"beam": search.width, "theta": finite(search.theta)} | about)
        return Method(model, lambda inputs: lambda: self.search_lazily(search, inputs), lazy=True, about=about)

    def search_lazily(self, search: BeamSearch, inputs: Inputs | None = None) -> Solutions:
        """Searches sentences, by default in their own order, computing the costs that the search asks for."""
        text = self.text if inputs is None else inputs.text
        weights = None if search.weights is None else self.task.folded(search.weights)
        how = replace(search, weights=weights)
        if not isinstance(self.model, LinearScorer):
            return how(self.task.lean.batch(text.n_entities, self.model.lazy(text)))
        batch = self.task.lean.batch(text.n_entities, np.zeros(self.batch.cost_at[-1]))
        return black_box.search(self.model, text, batch, how)

    def changed(self, search: BeamSearch) -> float:
        """Returns the share of test sentences to which theta gives another answer than the search with every cost."""
        with_every_cost = self.search_lazily(replace(search, theta=math.inf))
        return float(relabelled(self.search_lazily(search), with_every_cost).mean())


def row_of(about: Row) -> Row:
    """Returns the fields of a row that only this experiment has, where they are not given: those of a row of ours."""
    return {"theta": None, "relative_theta": None, "table": "ours"} | about


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """Gold labels, and which labels of which variables an F1 counts."""

    gold: IntArray  # flat; -1 where no answer can have the label
    is_entity: BoolArray  # (variables,)
    no_entity: int  # the labels that F1 does not count; -1 for none
    no_relation: int

    def f1(self, labels: IntArray, against: IntArray) -> tuple[float, float]:
        """Returns the micro F1 of entities and of relations, the labels for "nothing" not counted."""
        entity, relation = f1_of(self.named(labels, against).sum(axis=0)).tolist()
        return entity, relation

    def named(self, labels: IntArray, against: IntArray) -> FloatArray:
        """Returns, for each variable, its part of the counts of entities and of relations: (variables, 2, 2)."""
        counts = np.zeros((len(labels), 2, 2))
        for kind, nothing in enumerate((self.no_entity, self.no_relation)):
            mine = self.is_entity if kind == 0 else ~self.is_entity
            named = mine & (against != nothing)
            counts[:, kind, 0] = named & (labels == against) & (labels >= 0)
            counts[:, kind, 1] = named.astype(int) + (mine & (labels != nothing) & (labels >= 0))
        return counts
