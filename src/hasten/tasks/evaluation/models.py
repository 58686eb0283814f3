"""Evaluates a model of any task, through the interface that all tasks share (`tasks.task`).

What the gold labels ask for that no answer can give is counted: labels that the model lacks, and texts whose gold
labels break its rules.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import islice
from typing import Any, TypeVar

import numpy as np

from hasten.errors import CorpusError
from hasten.model.batch import Batch
from hasten.model.solution import Solutions, Source
from hasten.solvers import make_solver
from hasten.speedup.black_box import prove_or_solve
from hasten.support.progress import Tell, tell_nobody
from hasten.tasks.evaluation.result import Evaluation
from hasten.tasks.evaluation.scores import Tally
from hasten.tasks.experiment.comparison import in_words
from hasten.tasks.task import Model

Text = TypeVar("Text")
Answer = Callable[[Batch], Solutions]

CHUNK = 256  # texts answered together
MOST = 8  # labels that are named


@dataclass(slots=True)
class OutOfReach:
    """Texts whose gold labels no answer can have, and labels that the model has never seen."""

    n_texts: int = 0
    unknown: Counter[str] = field(default_factory=Counter)

    def add(self, batch: Batch, p: int, gold: Sequence[str]) -> None:
        """Looks at the gold labels of a problem."""
        problem = batch[p]
        kinds = problem.structure.kinds
        unknown = [label for label, kind in zip(gold, kinds, strict=True) if label not in kind.places]
        self.unknown.update(unknown)
        if unknown:
            self.n_texts += 1
            return
        labels = np.array([kind.places[label] for label, kind in zip(gold, kinds, strict=True)], dtype=np.int64)
        self.n_texts += not problem.check(labels).valid

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        return {"n_texts": self.n_texts, "unknown": dict(self.unknown.most_common())}

    def __str__(self) -> str:
        if not self.n_texts:
            return "All gold labels can be reached."
        named = ", ".join(f"{name} ({n:,})" for name, n in self.unknown.most_common(MOST))
        lost = f" Labels that the model has never seen, each a lost point: {named}." if named else ""
        what = "the gold labels of one text" if self.n_texts == 1 else f"the gold labels of {self.n_texts:,} texts"
        return f"No answer can have all of {what}: they break the rules, or the model lacks them.{lost}"


def evaluate(
    model: Model[Text], texts: Iterable[Text], *, answer: Answer | None = None, seed: int = 0, tell: Tell = tell_nobody
) -> Evaluation:
    """Lets a model answer texts, any number of them, and compares that with their gold labels.

    `answer` is how: by default certified, that is, proved, or solved by HiGHS.
    """
    answer = answer or partial(_certified, cache(partial(make_solver, "highs")))
    tally, reach = Tally(tuple(model.items(())), seed), OutOfReach()
    counts: Counter[str] = Counter()
    stream = iter(texts)
    while chunk := list(islice(stream, CHUNK)):
        found = answer(model.batch(chunk))
        for p, text in enumerate(chunk):
            gold = list(model.gold(text))
            tally.add(model.items(gold), model.items(in_words(found, p)))
            reach.add(found.batch, p, gold)
            one = found[p]
            counts.update(
                valid=one.valid, proved=one.proved, solver=one.source is Source.SOLVER, failed=one.values is None
            )
        tell("Answering", None, f"{tally.n:,}")
    if not tally.n:
        raise CorpusError("There is nothing to evaluate on. Give texts with gold labels.")
    tell("Comparing", None)
    return Evaluation(
        tally.result(),
        tally.n,
        tally.n_exact,
        n_valid=counts["valid"],
        n_proved=counts["proved"],
        n_by_solver=counts["solver"],
        n_failed=counts["failed"],
        unreachable=reach,
    )


def _certified(solver: Callable[[], Any], batch: Batch) -> Solutions:
    return prove_or_solve(batch, solver)[0]
