"""The black box's answers to some problems, however they are given, as the labels to learn from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hasten.errors import HastenError, ProblemError
from hasten.model.batch import Batch
from hasten.model.problem import Labels
from hasten.model.solution import Solution, Solutions, Status
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.checks import brief
from hasten.support.words import count

Answers = Solutions | Sequence[Solution | Labels | None] | IntArray  # an array is flat: all labels in a row


def read_answers(batch: Batch, answers: Answers) -> tuple[IntArray, IntArray]:
    """Returns flat labels, which are the caller's own, and the problems that can be learned from.

    Left out: problems without a labelling (None, or a label of -1), answers that are invalid, those that a
    time limit cut short, which would differ from run to run, and those on which the solver failed.
    """
    usable = np.ones(len(batch), dtype=bool)
    if isinstance(answers, np.ndarray) and answers.ndim == 1 and answers.dtype.kind in "iu":
        labels = batch.values(answers.astype(np.int64))
    elif not hasattr(answers, "__len__") or np.ndim(answers if isinstance(answers, np.ndarray) else ()) == 0:
        raise ProblemError(f"Expected an answer for each problem, got {brief(answers)}.")
    elif len(answers) != len(batch):
        raise ProblemError(
            f"Got {count(len(answers), 'answer')} for {count(len(batch), 'problem')}. Give one for each, or "
            "one flat array of numbers."
        )
    elif isinstance(answers, Solutions):
        usable = answers.valid & ~answers.has(Status.TIME_LIMIT) & ~answers.has(Status.FAILED)
        labels = answers.values.copy()
    else:
        labels, usable = _gather(batch, answers)
    if labels.shape != (batch.variable_at[-1],):
        raise ProblemError(
            f"Got labels of shape {labels.shape} for {batch.variable_at[-1]} variables. "
            "Give one flat array: the labels of the first problem, then those of the second, and so on."
        )
    owner = np.repeat(np.arange(len(batch)), batch.n_variables)
    variable = np.arange(len(labels)) - batch.variable_at[owner]
    _, sizes = batch.label_ranges(owner, variable)
    wrong = np.flatnonzero(labels >= sizes)
    if wrong.size:
        v = wrong[0]
        raise ProblemError(
            f"Problem {owner[v]}: variable {variable[v]} has no label number {labels[v]}. Are the answers "
            "in the order of the problems?"
        )
    usable[owner[labels < 0]] = False
    return labels, np.flatnonzero(usable)


def _gather(batch: Batch, answers: Iterable[Solution | Labels | None]) -> tuple[IntArray, BoolArray]:
    labels = np.full(batch.variable_at[-1], -1, dtype=np.int64)
    usable = np.zeros(len(batch), dtype=bool)
    for p, said in enumerate(answers):
        mine = labels[batch.variable_at[p] : batch.variable_at[p + 1]]
        if isinstance(said, Solution) and said.values is not None and said.values.shape == mine.shape:
            mine[:] = said.values
            usable[p] = said.valid and said.status not in (Status.TIME_LIMIT, Status.FAILED)
            continue
        if said is None or (isinstance(said, Solution) and said.values is None):
            continue
        given = said.labels if isinstance(said, Solution) else said
        try:
            mine[:], usable[p] = batch[p].values(given), True
        except HastenError as error:
            raise ProblemError(f"The answer to problem {p}: {error}") from None
    return labels, usable
