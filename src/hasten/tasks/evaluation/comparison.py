"""Any task from top to bottom: train, let methods answer test texts in turns, compare with gold and with the ILP.

Some labelled texts train the model, and the others test; a `Speedup` learns from the training texts, not from their
labels (the paper's Algorithm 1, averaged). With several seeds all of this is done for each. `Comparison.run` returns
plain data, for `results.json` and for `tasks.evaluation.comparison_page`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

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
from hasten.tasks.evaluation.measuring import Ilp, Method, TestSet, same_answers
from hasten.tasks.evaluation.study import Measured, Measuring, Study
from hasten.tasks.task import Baseline, Model, Task

ILP, CERTIFIED, GREEDY, BEAM, SPEEDUP = "ILP", "certified", "greedy search", "beam search", "speedup"
LEAST = 4  # texts
WIDTHS = (2, 8)
N_EXAMPLES = 6
DULL, SHORT = 5, 24  # the fewest and the most variables that an example should have


@dataclass(frozen=True)
class Comparison(Study):
    """A task, its labelled texts, and how to compare methods on them.

    `test` are the texts to test on; without it, `share` of the texts train and the rest test, drawn by the seed.
    """

    task: Task[Any]
    texts: Sequence[Any]
    test: Sequence[Any] | None = None
    share: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise CorpusError(f"A share of {self.share} cannot train. Give one between 0 and 1.")
        least = min(len(self.texts), LEAST if self.test is None else len(self.test))
        if least < (LEAST if self.test is None else 1):
            raise CorpusError(f"Got {len(self.texts)} labelled texts; a comparison needs {LEAST} at least. Give more.")

    def once(self, how: Measuring) -> tuple[list[Measured], IntArray, Callable[[], dict[str, Any]]]:
        """Trains a model and a speedup, lets the ILP solver answer the test texts, and measures every method."""
        if self.test is not None:
            train, test, numbers = self.texts, self.test, np.arange(len(self.test))
        else:
            order = np.random.default_rng(how.seed).permutation(len(self.texts))
            cut = min(max(1, round(self.share * len(order))), len(order) - 1)
            numbers = np.sort(order[cut:])
            train, test = ([self.texts[n] for n in some] for some in (order[:cut], numbers))
        model = self.task.train(train, seed=how.seed, tell=how.tell)
        how.tell("Learning the speedup", None)
        batch = model.batch(train)
        learner = Learner(WIDTHS[0], enforce=False, look_ahead=False, epochs=5, seed=how.seed, progress=False)
        answer = Search(WIDTHS[0], enforce=False, look_ahead=False, guided=True, learner=learner)
        speedup = Speedup.paper(batch.structures[0].schema, answer=answer).fit(batch)
        ilp = Ilp(self.solver, self.time_limit)
        tests = TextTestSet(ilp.answer(model.batch(test), how.tell), ilp, how, model, test, speedup)

        def findings() -> dict[str, Any]:
            batch = tests.batch
            sizes = {"n_train": len(train), "n_test": len(batch), "variables": int(batch.labels_at[-1])}
            most = {"max_variables": int(batch.n_variables.max(initial=0))}
            return {
                "title": self.task.title,
                "scores": list(model.scores),
                "about": sizes | most | dict(model.facts()),
                "proofs": proved_by(batch),
                "by_size": tests.times_by_size(),
                "examples": tests.examples(),
            }

        return tests.rows(), numbers, findings


class Inputs(NamedTuple):
    """The test texts in some order, and their problems."""

    texts: Sequence[Any]
    batch: Batch


@dataclass(frozen=True, eq=False)
class TextTestSet(TestSet):
    """The test texts of one seed, the trained model, and a speedup that learned from its answers."""

    model: Model[Any]
    texts: Sequence[Any]
    speedup: Speedup

    @property
    def scores(self) -> list[str]:
        """The keys of a row's scores: each against gold labels, then each against the ILP."""
        return [f"{name} {against}" for against in ("gold", "ilp") for name in self.model.scores]

    def counts(self, answers: Solutions) -> FloatArray:
        """Returns the counts of each text, against gold labels and against the ILP."""
        found = []
        for p, text in enumerate(self.texts):
            mine, ilps = (in_words(each, p) for each in (answers, self.answers))
            found.append([each for theirs in (self.model.gold(text), ilps) for each in self.model.count(mine, theirs)])
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

        def method(name: str, search: Baseline, note: str, beam: int | None = None) -> Method:
            def ready(inputs: Inputs) -> Callable[[], Solutions]:
                batch = self.problems(inputs)
                return lambda: search(batch)

            return Method(name, ready, about={"beam": beam, "note": note})

        every = [
            self.by_ilp(ILP),
            method(GREEDY, greedy(), "constraints ignored"),
            *(method(BEAM, BeamSearch(width), "forbidden tuples left out", width) for width in WIDTHS),
            method(SPEEDUP, self.speedup.predict, "learned from answers, constraints ignored", WIDTHS[0]),
            *(method(name, baseline, "the task’s own") for name, baseline in self.model.baselines().items()),
            self.certified(CERTIFIED, note="proved, or solved"),
        ]
        return self.measure(every, "Measuring all rows in turns")

    def times_by_size(self) -> list[dict[str, Any]]:
        """Returns the microseconds that a text takes, by its number of variables, in eight classes of size."""
        n_variables = self.batch.n_variables
        bounds = np.unique(np.percentile(n_variables, np.linspace(0, 100, 9)[1:-1]).astype(np.int64))
        group = np.searchsorted(bounds, n_variables)
        mean = np.bincount(group, n_variables) / np.maximum(1, np.bincount(group))
        searches: dict[str, Baseline] = {CERTIFIED: Certifier(), GREEDY: greedy(), **self.model.baselines()}
        return self.by_size(searches, np.round(mean[group], 1), "variables")

    def examples(self) -> list[dict[str, Any]]:
        """Returns some short texts on which greedy search does not find the ILP's answer, labelled by each method."""
        baselines = {name: baseline(self.batch) for name, baseline in self.model.baselines().items()}
        known = {
            GREEDY: greedy()(self.batch),
            SPEEDUP: self.speedup.predict(self.batch),
            **baselines,
            ILP: self.answers,
        }
        wrong = ~same_answers(known[GREEDY], self.answers) & self.answers.valid
        harder = np.sum([wrong, *(~same_answers(found, self.answers) for found in baselines.values())], axis=0)
        sizes = self.batch.n_variables
        order = np.lexsort((sizes, -harder, (sizes < DULL) | (sizes > SHORT))).tolist()
        examples = []
        for p in [p for p in order if wrong[p] and sizes[p] <= 2 * SHORT][:N_EXAMPLES]:
            labels: dict[str, Any] = {name: in_words(found, p) for name, found in known.items()}
            broken = {
                name: [str(each) for each in self.batch[p].check(found[p].labels).violations]
                for name, found in known.items()
                if found[p].values is not None
            }
            example = {"names": list(self.model.names(self.texts[p])), "null_labels": sorted(self.model.null_labels)}
            labels["gold"] = list(self.model.gold(self.texts[p]))
            examples.append(example | {"labels": labels, "violations": broken})
        return examples


def proved_by(batch: Batch) -> dict[str, int]:
    """Returns how many problems each step of the certifier proved, and how many it left open."""
    counts = {str(step): n for step, n in Certifier().report(batch).proved_by.items()}
    return counts | {"left open": len(batch) - sum(counts.values())}


def in_words(found: Solutions, p: int) -> list[str | None]:
    """Returns the labels of an answer by name, None for each where there is none."""
    answer = found[p]
    return [None] * answer.problem.n_variables if answer.values is None else list(answer.names)
