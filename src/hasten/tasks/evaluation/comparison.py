"""Any task from top to bottom: train, let methods answer test texts in turns, compare with gold and with the ILP.

Some labelled texts train the model, and the others test; a `Speedup` learns from the training texts, not from their
labels (the paper's Algorithm 1, averaged). With several seeds all of this is done for each. `Comparison.run` returns
plain data, for `results.json` and for `tasks.evaluation.comparison_page`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hasten.errors import CorpusError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.speedup.parts import Search
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.progress import Tell
from hasten.tasks.evaluation.methods import Method, TestSet, same_answers
from hasten.tasks.evaluation.study import Measured, Study
from hasten.tasks.evaluation.timing import Ilp
from hasten.tasks.task import Baseline, Model, Task

Text = TypeVar("Text")

ILP, CERTIFIED, GREEDY, BEAM, SPEEDUP = "ILP", "certified", "greedy search", "beam search", "speedup"
LEAST = 4  # texts
WIDTHS = (2, 8)
N_EXAMPLES = 6
DULL, SHORT = 5, 24  # the fewest and the most variables that an example should have


class Inputs(NamedTuple):
    """The test texts in some order, and their problems."""

    texts: Sequence[Any]
    batch: Batch


@dataclass(frozen=True)
class Comparison(Study["TextTestSet[Text]"], Generic[Text]):
    """A task, its labelled texts, and how to compare methods on them.

    `test` are the texts to test on; without it, `share` of the texts train and the rest test, drawn by the seed.
    """

    task: Task[Text]
    texts: Sequence[Text]
    test: Sequence[Text] | None = None
    share: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise CorpusError(f"A share of {self.share} cannot train. Give one between 0 and 1.")
        least = min(len(self.texts), LEAST if self.test is None else len(self.test))
        if least < (LEAST if self.test is None else 1):
            raise CorpusError(f"Got {len(self.texts)} labelled texts; a comparison needs {LEAST} at least. Give more.")

    def prepare(self, seed: int, tell: Tell) -> tuple[TextTestSet[Text], IntArray]:
        """Trains a model and a speedup, and lets the ILP solver answer the test texts."""
        train, test, numbers = self._parts(seed)
        model = self.task.train(train, seed=seed, tell=tell)
        tell("Learning the speedup", None)
        batch = model.batch(train)
        learner = Learner(WIDTHS[0], enforce=False, look_ahead=False, epochs=5, seed=seed, progress=False)
        answer = Search(WIDTHS[0], enforce=False, look_ahead=False, guided=True, learner=learner)
        speedup = Speedup.paper(batch.structures[0].schema, answer=answer).fit(batch)
        ilp = Ilp(self.solver, self.time_limit)
        answers = ilp.answer(model.batch(test), tell)
        return TextTestSet(answers, ilp, self.measuring(seed, tell), model, test, speedup, len(train)), numbers

    def _parts(self, seed: int) -> tuple[Sequence[Text], Sequence[Text], IntArray]:
        """Returns the texts that train, those that test, and the numbers of the latter."""
        if self.test is not None:
            return self.texts, self.test, np.arange(len(self.test))
        order = np.random.default_rng(seed).permutation(len(self.texts))
        cut = min(max(1, round(self.share * len(order))), len(order) - 1)
        train, test = order[:cut], np.sort(order[cut:])
        return [self.texts[n] for n in train], [self.texts[n] for n in test], test

    def rows(self, prepared: TextTestSet[Text]) -> list[Measured]:
        """Returns a row for each method, all timed in turns."""
        return prepared.rows()

    def findings(self, prepared: TextTestSet[Text]) -> dict[str, Any]:
        """Returns proofs by step, times by size, and examples."""
        batch = prepared.batch
        sizes = {"n_train": prepared.n_train, "n_test": len(batch), "variables": int(batch.labels_at[-1])}
        most = {"max_variables": int(batch.n_variables.max(initial=0))}
        return {
            "title": self.task.title,
            "scores": list(prepared.model.scores),
            "about": sizes | most | dict(prepared.model.facts()),
            "proofs": proved_by(batch),
            "by_size": prepared.times_by_size(),
            "examples": prepared.examples(),
        }


@dataclass(frozen=True, eq=False)
class TextTestSet(TestSet[Inputs], Generic[Text]):
    """The test texts of one seed, the trained model, and a speedup that learned from its answers."""

    model: Model[Text]
    texts: Sequence[Text]
    speedup: Speedup
    n_train: int

    @property
    def scores(self) -> list[str]:
        """The keys of a row's scores: each against gold labels, then each against the ILP."""
        return [f"{name} {against}" for against in ("gold", "ilp") for name in self.model.scores]

    def counts(self, answers: Solutions) -> FloatArray:
        """Returns the counts of each text, against gold labels and against the ILP."""
        found = []
        for p, text in enumerate(self.texts):
            mine, ilps = (in_words(each, p) for each in (answers, self.answers))
            found.append(
                [counts for theirs in (self.model.gold(text), ilps) for counts in self.model.count(mine, theirs)]
            )
        return np.array(found, dtype=np.float64).reshape(len(self.texts), len(self.scores), 2)

    def shuffled(self, rng: np.random.Generator | None) -> Inputs:
        """Returns the texts in a fresh order."""
        if rng is None:
            return Inputs(self.texts, self.batch)
        order = rng.permutation(len(self.texts))
        return Inputs([self.texts[n] for n in order], self.batch.select(order))

    def problems(self, inputs: Inputs) -> Batch:
        """Returns texts as problems."""
        return replace(inputs.batch)

    def features(self, inputs: Inputs) -> object:
        """Computes the costs of texts."""
        return self.model.batch(inputs.texts)

    def rows(self) -> list[Measured]:
        """Returns a row for each method, all timed in turns."""
        searches = [Method(name, self._eager(search), about=about) for name, search, about in self.searches()]
        every = [self.by_ilp(ILP), *searches, self.certified(CERTIFIED, note="proved, or solved")]
        return self.measure(every, "Measuring all rows in turns")

    def searches(self) -> Iterator[tuple[str, Baseline, dict[str, Any]]]:
        """Yields every method that is not exact, and the task's own baselines: name, method, fields of its row."""
        yield GREEDY, greedy(), {"note": "constraints ignored"}
        for width in WIDTHS:
            yield BEAM, BeamSearch(width), {"beam": width, "note": "forbidden tuples left out"}
        yield SPEEDUP, self.speedup.predict, {"beam": WIDTHS[0], "note": "learned from answers, constraints ignored"}
        for name, baseline in self.model.baselines().items():
            yield name, baseline, {"note": "the task’s own"}

    def _eager(self, search: Baseline) -> Callable[[Inputs], Callable[[], Solutions]]:
        def ready(inputs: Inputs) -> Callable[[], Solutions]:
            batch = self.problems(inputs)
            return lambda: search(batch)

        return ready

    def times_by_size(self) -> list[dict[str, Any]]:
        """Returns the microseconds that a text takes, by its number of variables, in eight classes of size."""
        n_variables = self.batch.n_variables
        bounds = np.unique(np.percentile(n_variables, np.linspace(0, 100, 9)[1:-1]).astype(np.int64))
        group = np.searchsorted(bounds, n_variables)
        mean = np.bincount(group, n_variables) / np.maximum(1, np.bincount(group))
        searches: dict[str, Baseline] = {CERTIFIED: Certifier(), GREEDY: greedy(), **self.model.baselines()}
        return self.by_size(searches, np.round(mean[group], 1), "variables")

    def examples(self) -> list[dict[str, Any]]:
        """Returns some short texts on which greedy search does not find the ILP's answer."""
        known = {GREEDY: greedy()(self.batch), SPEEDUP: self.speedup.predict(self.batch)}
        known |= {name: baseline(self.batch) for name, baseline in self.model.baselines().items()}
        known[ILP] = self.answers
        wrong = ~same_answers(known[GREEDY], self.answers) & self.answers.valid
        of_baselines = [~same_answers(known[name], self.answers) for name in self.model.baselines()]
        harder = np.sum([wrong, *of_baselines], axis=0)
        sizes = self.batch.n_variables
        dull = (sizes < DULL) | (sizes > SHORT)
        order = np.lexsort((sizes, -harder, dull)).tolist()
        chosen = [p for p in order if wrong[p] and sizes[p] <= 2 * SHORT][:N_EXAMPLES]
        return [self._example(p, known) for p in chosen]

    def _example(self, p: int, known: dict[str, Solutions]) -> dict[str, Any]:
        problem, names = self.batch[p], {name: in_words(found, p) for name, found in known.items()}
        return {
            "names": list(self.model.names(self.texts[p])),
            "labels": names | {"gold": list(self.model.gold(self.texts[p]))},
            "null_labels": sorted(self.model.null_labels),
            "violations": {
                name: [str(each) for each in problem.check(found[p].labels).violations]
                for name, found in known.items()
                if found[p].values is not None
            },
        }


def proved_by(batch: Batch) -> dict[str, int]:
    """Returns how many problems each step of the certifier proved, and how many it left open."""
    counts = {str(step): n for step, n in Certifier().report(batch).proved_by.items()}
    return counts | {"left open": len(batch) - sum(counts.values())}


def in_words(found: Solutions, p: int) -> list[str | None]:
    """Returns the labels of an answer by name, None for each where there is none."""
    answer = found[p]
    return [None] * answer.problem.n_variables if answer.values is None else list(answer.names)
