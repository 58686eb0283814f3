"""The rows of the results (paper §4 and §5): test sentences, speedups that learn, methods that take turns.

The ILP solver answers the test sentences first (`SentenceTestSet`); every row is compared with its answers and with
gold labels. The unlabeled sentences have the black box's answers, proved where that is possible and the solver's
elsewhere (`LearningSet`). Most teach; the rest calibrate theta. No gold label is seen there. The rows are the paper's
two tables, with its own algorithm and with ours, and our own methods. Another row is another entry.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, ConstrainedSearch, Searcher, greedy
from hasten.solvers import make_solver
from hasten.solvers.base import OnError
from hasten.speedup.black_box import solve_open
from hasten.speedup.parts import Search
from hasten.speedup.predictor import Speedup
from hasten.speedup.skipping import Calibration, Calibrator, problems_needed, relabelled
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.terminal import Progress, no_progress, steps
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.extraction import Box
from hasten.tasks.entity_relation.scoring import black_box
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.task import EntityRelationTask, Model
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
        how.progress("Scoring the test sentences", None)
        words, ilp = Vocabulary(), Ilp(how.solver, how.time_limit)
        text = model.read(sentences, words)
        answers = ilp.answer(task.batch(text.n_entities, model.costs(text)[0]), how.progress)
        return cls(answers, ilp, how, task, model, sentences, words)

    @cached_property
    def text(self) -> Any:
        """The sentences as the black box reads them, in their own order."""
        return self.model.read(self.sentences, self.words)

    @cached_property
    def reference(self) -> Reference:
        """Gold labels, and how answers are compared with them."""
        names = self.task.entity_labels, self.task.relation_labels
        is_entity = np.concatenate([np.arange(n * n) < n for n in self.text.n_entities.tolist()])
        no_entity = names[0].index("none") if "none" in names[0] else -1
        return Reference(np.concatenate(self.gold), is_entity, no_entity, len(names[1]) - 1)

    @cached_property
    def gold(self) -> list[IntArray]:
        """The gold labels of each sentence; -1 where no answer can have the label."""
        names = self.task.entity_labels, self.task.relation_labels
        return [gold(sentence, *names, lost=True) for sentence in self.sentences]

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


LABELLING = "Labelling the unlabeled text"
MOST_HELD_OUT = 5000
PLAIN = "ours: by costs alone, as what was learned did worse on sentences held out"
PRESET, OURS = "the paper's preset: step 1, last weights", "ours: averaged weights, step from the costs"
PAPER_THETAS = (0.0, 0.25, 0.5)  # of Table 2
PAPER_WIDTHS = (1, 2)


@dataclass(frozen=True, slots=True, eq=False)
class LearningSet:
    """Unlabeled sentences as a batch with the black box's answers."""

    batch: Batch
    answers: Solutions
    epochs: int
    seed: int
    n_fresh: int  # sentences, the last ones, that the black box was not trained on
    _learned: dict[tuple[int, int, bool], Speedup] = field(default_factory=dict)

    @classmethod
    def of(
        cls, batch: Batch, *, epochs: int, seed: int = 0, n_fresh: int | None = None, jobs: int = 1,
        time_limit: float = math.inf, progress: Progress = no_progress,
    ) -> LearningSet:  # fmt: skip
        """Lets the black box label sentences, which are then learned from in their order.

        The last `n_fresh`, by default all, are those that the black box was not trained on. `jobs` threads share the
        proofs; `time_limit` is for each call of the solver.
        """
        progress(LABELLING, None)
        solver = partial(make_solver, "highs", time_limit=None if math.isinf(time_limit) else time_limit)
        proved = Certifier()(batch, n_jobs=jobs)
        answers, _ = solve_open(proved, cache(solver), lambda done, of: progress(LABELLING, done / of), OnError.RAISE)
        return cls(batch, answers, epochs, seed, len(batch) if n_fresh is None else n_fresh)

    @property
    def n_learned(self) -> int:
        """How many of the sentences are learned from; the rest, up to 5,000 fresh ones, are held out."""
        return len(self.batch) - min(len(self.batch) // 5, MOST_HELD_OUT, self.n_fresh)

    def learned(self, width: int, *, n: int | None = None, paper: bool = False) -> Speedup:
        """Returns a speedup that learned from the first `n` sentences; with `paper`, by Algorithm 1 as listed.

        Ours tries on a tenth of them whether its weights should guide the search at all.
        """
        n = self.n_learned if n is None else n
        key = (width, n, paper)
        if key not in self._learned:
            ours = Learner(width, enforce=False, look_ahead=False, seed=self.seed, epochs=self.epochs)
            learner = Learner.paper(width, epochs=self.epochs) if paper else ours
            guided = True if paper else None
            answer = Search(width, enforce=False, look_ahead=False, guided=guided, learner=learner)
            speedup = Speedup.paper(self.batch.structures[0].schema, answer=answer, seed=self.seed)
            labels = self.answers.labels[: self.batch.variable_at[n]]
            self._learned[key] = speedup.fit(self.batch.select(np.arange(n)), labels)
        return self._learned[key]

    def search(self, width: int, *, n: int | None = None, paper: bool = False) -> BeamSearch:
        """Returns the paper's speedup search: a beam guided by learned weights, and by nothing else."""
        return BeamSearch(width, self.learned(width, n=n, paper=paper).heuristic.weights, enforce=False)

    def chosen(self, width: int) -> BeamSearch:
        """Returns our speedup's search: guided by learned weights, or by costs alone where these did better."""
        search = self.learned(width).search
        assert isinstance(search, BeamSearch)
        return search

    def calibrate(self, search: BeamSearch) -> Calibration:
        """Chooses theta for a search on the sentences that nothing was learned from."""
        held_out = np.arange(self.n_learned, len(self.batch))
        return Calibrator(seed=self.seed).theta(search, self.batch.select(held_out))


def table_1(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Method]:
    """The paper's Table 1: its searches, Algorithm 1 as listed, and ours."""
    rows = [
        test_set.by_ilp(Model.ILP, **row_of({"table": "1"})),
        test_set.eager(Model.GREEDY, greedy(), table="1", note="greedy, constraints ignored"),
        test_set.eager(Model.CONSTRAINED, ConstrainedSearch(), table="1", note="greedy, arc consistency"),
    ]
    for paper, width in product((True, False), PAPER_WIDTHS):
        search = learning_set.search(width, paper=True) if paper else learning_set.chosen(width)
        note = PRESET if paper else PLAIN if search.weights is None else OURS
        rows.append(test_set.eager(Model.speedup(paper), search, learned=True, beam=width, table="1", note=note))
    return rows


def table_2(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Method]:
    """The paper's Table 2, costs skipped by its thetas; and by thetas that we calibrate."""
    return [
        *(
            skipping(test_set, learning_set, True, width, theta, table="2",
                     note=f"{PRESET}; the paper's θ times the cost scale")
            for width, theta in product(PAPER_WIDTHS, PAPER_THETAS)
        ),
        *calibrated(test_set, learning_set),
    ]  # fmt: skip


def skipping(
    test_set: SentenceTestSet, learning_set: LearningSet, paper: bool, width: int, theta: float, **about: Any
) -> Method:
    """Returns the speedup that skips costs by a theta in units of the cost scale."""
    search = replace(learning_set.search(width, paper=paper), theta=theta * test_set.scale)
    return test_set.lazily(Model.speedup(paper), search, relative_theta=theta, **about)


def ours(test_set: SentenceTestSet) -> list[Method]:
    """Our rows: enforced tables, look-ahead, elimination, proof."""
    rows: list[tuple[Model, Searcher, int, str]] = [
        (Model.ENFORCED, BeamSearch(2), 2, "forbidden tuples left out"),
        (Model.LOOK_AHEAD, BeamSearch(2, look_ahead=True), 2, "counts the least still to come"),
        (Model.REDUCED, BeamSearch(1, look_ahead=True, reduce=True), 1, "over what elimination leaves"),
    ]
    return [
        *(test_set.eager(model, search, beam=width, note=note) for model, search, width, note in rows),
        test_set.certified(Model.CERTIFIED, **row_of({"note": "proved, or solved"})),
    ]


def calibrated(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Method]:
    """Searches with calibrated thetas: with learned weights, where these help, and with enforced tables without."""
    found = []
    n, every = len(learning_set.batch) - learning_set.n_learned, list(product(PAPER_WIDTHS, (False, True)))
    for width, enforce in steps(test_set.how.progress, "Calibrating theta", every):
        search = BeamSearch(width) if enforce else learning_set.chosen(width)
        how = learning_set.calibrate(search)
        search, needed = replace(search, theta=how.theta), problems_needed(how.risk, how.confidence)
        note = f"θ changed {how.changed:.1%} of unlabeled answers (limit {how.limit:.1%}), "
        note += f"{test_set.changed(search):.1%} here"
        if n < needed:
            note = f"every cost computed: {n:,} sentences to calibrate on are too few, {needed:,} needed"
        elif finite(how.theta) is None:
            note = f"every cost computed: no θ kept within {how.risk:.0%} of changed answers"
        found.append(test_set.lazily(Model.calibrated(enforce), search, table="2", note=note))
    return found


PAPER_ROWS: tuple[Row, ...] = tuple(
    dict(zip(
        ("table", "model", "beam", "relative_theta", "entity_f1_gold", "relation_f1_gold", "entity_f1_ilp",
         "relation_f1_ilp", "time_ms", "time_ms_std", "validity"),
        row, strict=True,
    ))
    for row in (
        ("1", Model.ILP, None, None, 0.827, 0.482, 1.0, 1.0, 239, 11.4, 1.0),
        ("1", Model.GREEDY, None, None, 0.822, 0.334, 0.877, 0.546, 170, 6.5, 0.29),
        ("1", Model.CONSTRAINED, None, None, 0.800, 0.572, 0.880, 0.741, 844, 31.0, 1.0),
        ("1", Model.PAPER_SPEEDUP, 1, None, 0.822, 0.447, 0.877, 0.674, 136, 2.1, 0.96),
        ("1", Model.PAPER_SPEEDUP, 2, None, 0.844, 0.484, 0.930, 0.752, 158, 19.8, 0.95),
        ("2", Model.PAPER_SPEEDUP, 1, 0.0, 0.21, 0.0, 0.173, 0.0, 39, 3.7, 1.0),
        ("2", Model.PAPER_SPEEDUP, 1, 0.25, 0.822, 0.435, 0.877, 0.546, 87, 2.5, 0.99),
        ("2", Model.PAPER_SPEEDUP, 1, 0.5, 0.822, 0.455, 0.877, 0.672, 114, 4.7, 0.98),
        ("2", Model.PAPER_SPEEDUP, 2, 0.0, 0.373, 0.152, 0.377, 0.139, 55, 2.5, 1.0),
        ("2", Model.PAPER_SPEEDUP, 2, 0.25, 0.819, 0.461, 0.893, 0.623, 130, 14.4, 0.99),
        ("2", Model.PAPER_SPEEDUP, 2, 0.5, 0.825, 0.494, 0.907, 0.689, 134, 4.0, 0.98),
    )
)  # fmt: skip
