"""Any task from top to bottom: train, let methods answer test texts in turns, compare with gold and with the ILP.

Some labelled texts train the model, and the others test; its answers to the training texts, whose labels nobody looks
at any more, teach the speedup (the paper's Algorithm 1, averaged). With several seeds all of this is done for each.
What `run` returns is plain data, for `results.json` and for `tasks.evaluation.comparison_page`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from hasten.errors import CorpusError
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.solvers import make_solver, package_of
from hasten.speedup.black_box import prove_or_solve
from hasten.support.arrays import FloatArray
from hasten.support.environment import package_version
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.methods import Ilp, Method, MethodTimer, same_answers
from hasten.tasks.evaluation.statistics import Resamples, f1_of, figures_of, machine, merged
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
class Comparison(Generic[Text]):
    """What to run: a task, its labelled texts, and how.

    `test` are the texts to test on; without it, `share` of the texts train and the rest test, drawn by the seed.
    """

    task: Task[Text]
    texts: Sequence[Text]
    test: Sequence[Text] | None = None
    share: float = 0.7
    solver: str = "highs"
    runs: int = 3
    seed: int = 0
    seeds: int = 1
    source: str = ""  # what the corpus is called in the report
    synthetic: bool = False

    def __post_init__(self) -> None:
        for what, n in (("run", self.runs), ("seed", self.seeds)):
            if n < 1:
                raise CorpusError(f"Give at least one {what}, not {n}.")
        if not 0 < self.share < 1:
            raise CorpusError(f"A share of {self.share} cannot train. Give one between 0 and 1.")
        least = min(len(self.texts), LEAST if self.test is None else len(self.test))
        if least < (LEAST if self.test is None else 1):
            raise CorpusError(f"Got {len(self.texts)} labelled texts; a comparison needs {LEAST} at least. Give more.")

    def run(self, tell: Tell = tell_nobody) -> dict[str, Any]:
        """Runs it, and returns `results.json`."""
        measured, tests, first = [], [], None
        for seed in range(self.seed, self.seed + self.seeds):
            trained = self.trained(seed, tell)
            measured.append(trained.rows())
            tests.append(trained.numbers)
            first = first or trained
        assert first is not None
        resamples = Resamples.of(tests, self.seed)
        rows = [over_seeds(each, first.scores, resamples) for each in zip(*measured, strict=True)]
        return {
            "title": self.task.title,
            "scores": list(first.model.scores),
            "about": self.about(first) | {"answered_by": rows[0]["answered_by"]},
            "rows": rows,
            "proofs": first.proofs(),
            "by_size": first.by_size(),
            "examples": first.examples(),
        }

    def trained(self, seed: int, tell: Tell) -> Trained[Text]:
        """Trains a model, and lets the ILP solver answer the test texts."""
        train, test, numbers = self._parts(seed)
        model = self.task.train(train, seed=seed, tell=tell)
        tell("Learning the speedup", None)
        answered = model.batch(train)
        answers, _ = prove_or_solve(answered, cache(partial(make_solver, "highs")))
        known = np.flatnonzero(answers.valid)
        answers = answers.select(known)
        learner = Learner(WIDTHS[0], enforce=False, epochs=5, seed=seed, progress=False, look_ahead=False)
        learner.fit(answers.batch, answers.labels)
        ilp, batch = Ilp(self.solver), model.batch(test)
        stage = f"Solving by {ilp.name}"
        solved = ilp.answer(batch, lambda done, of: tell(stage, done / of))
        return Trained(self, model, test, numbers, solved, ilp, learner, len(train), seed, tell)

    def _parts(self, seed: int) -> tuple[Sequence[Text], Sequence[Text], np.ndarray[Any, Any]]:
        """Returns who trains, who tests, and the numbers of the latter."""
        if self.test is not None:
            return self.texts, self.test, np.arange(len(self.test))
        order = np.random.default_rng(seed).permutation(len(self.texts))
        cut = min(max(1, round(self.share * len(order))), len(order) - 1)
        train, test = order[:cut], np.sort(order[cut:])
        return [self.texts[n] for n in train], [self.texts[n] for n in test], test

    def about(self, trained: Trained[Text]) -> dict[str, Any]:
        """Says what was run, on what."""
        return {
            **machine(),
            "source": self.source,
            "synthetic": self.synthetic,
            "solver": self.solver,
            "solver_version": package_version(package_of(self.solver) or "hasten"),
            "runs": self.runs,
            "seed": self.seed,
            "seeds": self.seeds,
            "n_train": trained.n_train,
            "n_test": len(trained.texts),
            "variables": int(trained.batch.seen_at[-1]),
            "max_variables": int(trained.batch.n_variables.max(initial=0)),
        } | dict(trained.model.facts())


@dataclass(frozen=True, eq=False)
class Trained(Generic[Text]):
    """The test texts of one seed, with the ILP solver's answers, and what methods make of them."""

    comparison: Comparison[Text]
    model: Model[Text]
    texts: Sequence[Text]
    numbers: np.ndarray[Any, Any]
    ilp_answers: Solutions
    ilp: Ilp
    learner: Learner
    n_train: int
    seed: int
    tell: Tell

    @property
    def batch(self) -> Batch:
        """The test texts as problems."""
        return self.ilp_answers.batch

    @property
    def scores(self) -> list[str]:
        """The keys of a row's scores: each against gold labels, then each against the ILP."""
        return [f"{name} {against}" for against in ("gold", "ilp") for name in self.model.scores]

    def rows(self) -> list[tuple[dict[str, Any], FloatArray]]:
        """Returns a row for each method, with the counts of each text that its scores are made of."""
        timer = MethodTimer(
            Inputs(self.texts, self.batch),
            self._shuffled,
            lambda inputs: replace(inputs.batch),  # nothing that another method has worked out
            lambda inputs: self.model.batch(inputs.texts),
            self.ilp_answers,
            self.ilp,
            self.comparison.runs,
            self.seed,
            self.tell,
        )
        every = [
            timer.by_ilp(ILP),
            *(_eager(name, search, about) for name, search, about in self.searches()),
            timer.certified(CERTIFIED, note="proved, or solved"),
        ]
        found = timer.measure(every, "Measuring all rows in turns")
        return [self._row(each, *result) for each, result in zip(every, found, strict=True)]

    @property
    def speedup(self) -> BeamSearch:
        """The paper's speedup search: a beam guided by what was learned, and by nothing else."""
        return BeamSearch(WIDTHS[0], self.learner.weights, enforce=False)

    def searches(self) -> list[tuple[str, Baseline, dict[str, Any]]]:
        """Returns all that is not exact, and the task's own baselines: name, method, more about its row."""
        return [
            (GREEDY, greedy(), {"note": "constraints ignored"}),
            *((BEAM, BeamSearch(width), {"beam": width, "note": "forbidden tuples left out"}) for width in WIDTHS),
            (SPEEDUP, self.speedup, {"beam": WIDTHS[0], "note": "learned from answers, constraints ignored"}),
            *((name, baseline, {"note": "the task’s own"}) for name, baseline in self.model.baselines().items()),
        ]

    def _shuffled(self, rng: np.random.Generator) -> Inputs:
        order = rng.permutation(len(self.texts))
        return Inputs([self.texts[n] for n in order], self.batch.select(order))

    def _row(
        self, method: Method[Inputs], answers: Solutions, features: Any, inference: Any, about: dict[str, Any]
    ) -> tuple[dict[str, Any], FloatArray]:
        counts = self._counts(answers)
        scores = dict(zip(self.scores, f1_of(counts.sum(axis=0)).tolist(), strict=True))
        row = {"model": method.model, "beam": None, "note": ""} | scores
        return row | figures_of(answers, self.ilp_answers, features, inference) | about, counts

    def _counts(self, answers: Solutions) -> FloatArray:
        """Returns (n_test, scores, 2) counts: those against gold labels, then those against the ILP."""
        found = []
        for p, text in enumerate(self.texts):
            mine, ilps = (in_words(each, p) for each in (answers, self.ilp_answers))
            against = self.model.gold(text), ilps
            found.append([counts for theirs in against for counts in self.model.count(mine, theirs)])
        return np.array(found, dtype=np.float64).reshape(len(self.texts), len(self.scores), 2)

    def proofs(self) -> dict[str, int]:
        """Returns which step of the certifier proved how many texts, and how many it left open."""
        counts = {str(step): n for step, n in Certifier().report(self.batch).proved_by.items()}
        return counts | {"left open": len(self.batch) - sum(counts.values())}

    def by_size(self) -> list[dict[str, Any]]:
        """Returns the median number of microseconds that a text takes, by its number of variables, one by one."""
        ways: dict[str, Callable[[Any], Any]] = {CERTIFIED: Certifier(), GREEDY: greedy()}
        n_variables = self.batch.n_variables
        bounds = sorted({int(each) for each in np.percentile(n_variables, np.linspace(0, 100, 9))})
        found = []
        for low, high in pairwise(bounds):
            mine = np.flatnonzero((n_variables > low) & (n_variables <= high))[:40]
            if not mine.size:
                continue
            entry: dict[str, Any] = {"variables": float(n_variables[mine].mean()), "texts": int(mine.size)}
            for name, way in ways.items():
                entry[name] = _median_us(way, [self.batch[p] for p in mine.tolist()])
            for name, baseline in self.model.baselines().items():
                entry[name] = _median_us(baseline, [self.batch.select([p]) for p in mine.tolist()])
            found.append(entry)
        return found

    def examples(self) -> list[dict[str, Any]]:
        """Returns some short texts on which greedy search does not find the ILP's answer."""
        known = {GREEDY: greedy()(self.batch), SPEEDUP: self.speedup(self.batch)}
        known |= {name: baseline(self.batch) for name, baseline in self.model.baselines().items()} | {
            ILP: self.ilp_answers
        }
        wrong = ~same_answers(known[GREEDY], self.ilp_answers) & self.ilp_answers.valid
        of_baselines = [~same_answers(known[name], self.ilp_answers) for name in self.model.baselines()]
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


def _eager(name: str, search: Baseline, about: dict[str, Any]) -> Method[Inputs]:
    def ready(inputs: Inputs) -> Callable[[], Solutions]:
        batch = replace(inputs.batch)
        return lambda: search(batch)

    return Method(name, ready, about=about)


def in_words(found: Solutions, p: int) -> list[str | None]:
    """Returns the labels of an answer by name, None for each where there is none."""
    answer = found[p]
    return [None] * answer.problem.n_variables if answer.values is None else list(answer.names)


def over_seeds(
    each: Sequence[tuple[dict[str, Any], FloatArray]], scores: Sequence[str], resamples: Resamples
) -> dict[str, Any]:
    """Returns one row for the same method with several seeds."""
    rows = [row for row, _ in each]
    limits = resamples.intervals([counts for _, counts in each]).tolist()
    row = rows[0] if len(rows) == 1 else rows[0] | merged(rows, scores)
    return {"answered_by": {}, "solving_ms": {}} | row | {"interval": dict(zip(scores, limits, strict=True))}


def _median_us(way: Callable[[Any], Any], problems: Sequence[Any]) -> float:
    """Returns the median microseconds that a problem takes."""
    for problem in problems[:2]:
        way(problem)
    times = []
    for problem in problems:
        began = time.perf_counter()
        way(problem)
        times.append(time.perf_counter() - began)
    return 1e6 * float(np.median(times))
