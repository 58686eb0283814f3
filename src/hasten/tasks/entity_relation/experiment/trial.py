"""The test sentences, and what any search makes of them: a row of a results table each (paper §5).

The ILP solver answers them first; every row is compared with its answers and with gold labels. A search either
starts from all costs, and its time is that of the features plus its own; or it computes the costs that it
asks for, and one time holds both. All times are CPU time in one thread.
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
from hasten.search.beam import BeamSearch, greedy
from hasten.solvers import Solver, make_solver
from hasten.speedup.calibration import relabelled
from hasten.support.progress import Tell
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.experiment.measure import (
    Reference,
    Row,
    Timing,
    finite,
    solve_in_turn,
    timed,
    times_faster,
)
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.entity_relation.scoring import native
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.text import Text, intern
from hasten.tasks.entity_relation.scoring.training import gold
from hasten.tasks.entity_relation.task import EntityRelationTask


@dataclass(frozen=True, eq=False)
class Trial:
    """Test sentences with all their costs and the answers to compare with; how long features and solving took."""

    task: EntityRelationTask
    model: LinearScorer
    sentences: Sequence[Sentence]
    text: Text
    batch: Batch
    features: Timing
    solver: Solver
    large: Solver  # answers what is too large for it
    reference: Reference
    solving: Timing
    n_too_large: int
    runs: int
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
    ) -> Trial:
        """Computes the costs of the sentences, and lets the ILP solver answer them."""
        tell("Scoring the test sentences", None)
        text, ilp = intern(sentences), make_solver(solver, interruptible=False)
        # HiGHS cannot share a process with cpsat.
        large = ilp if solver == "cpsat" else make_solver("highs", interruptible=False)
        costs, features = timed(lambda: model.costs(text)[0], runs)
        batch = task.batch(text.n_entities, costs)
        times: list[float] = []
        for run in range(runs + 1):  # the first builds the solver's models

            def progress(share: float, run: int = run) -> None:
                tell(f"Solving by {ilp.name}", (run + share) / (runs + 1))

            answers, elapsed, n_too_large = solve_in_turn(ilp, large, batch, progress)
            times.append(elapsed)
        labels = np.concatenate([gold(sentence, task.entity_labels, task.relation_labels) for sentence in sentences])
        is_entity = np.concatenate([np.arange(n * n) < n for n in text.n_entities.tolist()])
        no_entity = task.entity_labels.index("none") if "none" in task.entity_labels else -1
        reference = Reference(labels, answers, is_entity, no_entity, len(task.relation_labels) - 1)
        solving = Timing(tuple(times[1:]))
        return cls(
            task, model, sentences, text, batch, features, ilp, large, reference, solving, n_too_large, runs, tell
        )

    @cached_property
    def scale(self) -> float:
        """The median, over variables, of what the second-best label costs above the best."""
        gaps = []
        for p in range(min(len(self.batch), 200)):
            problem = self.batch[p]
            for v in range(problem.n_variables):
                two = np.partition(problem.costs_of(v), 1)[:2]
                gaps.append(two[1] - two[0])
        return float(np.median(gaps))

    def measure_ilp(self, **about: Any) -> Row:
        """Returns the row of the ILP solver itself."""
        answers = self.reference.ilp
        return self.reference.row(Model.ILP, answers, self.features, self.solving, solver_calls=len(answers), **about)

    def measure(
        self, model: Model, search: Callable[[Batch], Solutions], *, learned: bool = False, **about: Any
    ) -> Row:
        """Returns the row of a search that starts from all costs; `learned` where it reads the learned features."""
        task = self.task if learned else self.task.lean  # features that nobody reads cost time
        found, inference = timed(lambda: search(task.batch(self.text.n_entities, self.batch.cost)), self.runs)
        return self.reference.row(model, found, self.features, inference, **about)

    def measure_lazily(self, model: Model, search: BeamSearch, **about: Any) -> Row:
        """Returns the row of a search that computes the costs it needs."""
        found, timing = timed(lambda: self.search_lazily(search), self.runs)
        return self.reference.row(model, found, None, timing, beam=search.width, theta=finite(search.theta), **about)

    def search_lazily(self, search: BeamSearch) -> Solutions:
        """Searches the test sentences, computing the costs that the search asks for."""
        weights = None if search.weights is None else self.task.folded(search.weights)
        batch = self.task.lean.batch(self.text.n_entities, np.zeros(self.batch.cost_at[-1]))
        return native.search(self.model, self.text, batch, replace(search, weights=weights))

    def changed(self, search: BeamSearch) -> float:
        """Returns the share of test sentences to which theta gives another answer than the search with every cost."""
        with_every_cost = self.search_lazily(replace(search, theta=math.inf))
        return float(relabelled(self.search_lazily(search), with_every_cost).mean())

    def times_faster_than_greedy(self, search: BeamSearch) -> float:
        """Returns how many times faster a lazy search is, end to end, than greedy search, which computes every cost."""

        def search_greedily() -> Solutions:
            return greedy()(self.task.lean.batch(self.text.n_entities, self.model.costs(self.text)[0]))

        return times_faster(lambda: self.search_lazily(search), search_greedily, 20 * self.runs)
