"""One call of the certifier for all that a loss wants to know: answers, perturbed answers, and gold kept fixed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import ProblemError, SolverError
from hasten.kernels.score import score_batch
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.solution import Solutions
from hasten.padded.kernels import (
    CELL,
    FIRST_VARIABLE,
    IGNORED,
    SIZE,
    count_labels,
    gather,
    oppose,
    read_labels,
    scatter,
    write_labels,
)
from hasten.padded.layout import Layout
from hasten.padded.shapes import Placed
from hasten.proof.certifier import Certifier
from hasten.speedup.predictor import Speedup
from hasten.sums.distribution import plans_for, run
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.checks import brief

Answerer = Callable[[Batch], Solutions]
NONE = np.zeros(0, dtype=np.int64)


class Request(NamedTuple):
    """A request about each example.

    samples
        How many perturbed answers; 0 asks for the answer itself.
    sigma
        The standard deviation of the normal noise that is added to every score of a perturbed one.
    margin
        By how much the scores of labels other than gold are raised (the Hamming cost of a hinge).
    strict
        Whether it is an error that no valid labelling agrees with gold.
    flat
        Whether all scores of an example are in a row.
    sharing
        Whether gradients are wanted, too.

    All can be floats, as compilers hold them.
    """

    samples: float = 0
    sigma: float = 0.0
    margin: float = 0.0
    strict: float = False
    flat: float = False
    sharing: float = False


PLAIN = Request()


class Question(NamedTuple):
    """A padded batch, and what is asked of its examples."""

    placed: Placed
    scores: Sequence[Any]  # for each field, or one array with all
    tables: Mapping[str, FloatArray]  # scores of label tuples that are added to the schema's, by kind of factor
    gold: Sequence[IntArray] = ()  # for each field
    asked: Request = PLAIN
    noise: Any = None  # (samples, labels of all examples) normal, for perturbed answers


class Found(NamedTuple):
    """The answers to each example."""

    score: FloatArray  # (examples,) what is maximised; -inf without an answer
    gap: FloatArray  # (examples,)
    proved: BoolArray  # (examples,) whether nothing is left to find out
    labels: list[IntArray]  # (examples, *axes) of each field, padded


class Valued(NamedTuple):
    """A number for each example, such as a loss, and its gradient, if that was asked for."""

    value: FloatArray  # (examples,)
    fields: list[Any]  # where scores are
    tables: list[FloatArray]  # of each kind of tables that is given, summed over the examples


@dataclass(frozen=True, eq=False)
class Inference:
    """Exact inference over padded arrays: a layout, and what answers its batches.

    `sign` is -1 where scores are maximised, and 1 where they are costs.
    """

    layout: Layout
    answer: Answerer
    sign: float = -1.0

    def __deepcopy__(self, memo: Any) -> Inference:
        """Returns itself: what does not change is shared by the copies of a layer."""
        return self

    def decode(self, given: Question) -> Found:
        """Answers the examples of a padded batch."""
        answers = self.answer(self.problems(given))
        gap, optimal = np.zeros(len(answers.cost)), answers.optimal
        if not optimal.all():
            left = ~optimal
            gap[left] = np.where(answers.cost[left] < np.inf, answers.cost[left] - answers.bound[left], np.inf)
        labels = self.write(given.placed, answers.values[None])
        return Found(-answers.cost, gap, optimal, [each[0] for each in labels])

    def loss(self, given: Question, weight: FloatArray | None = None) -> Valued:
        """Returns how much more the answers to each example score, in the mean, than the best one that has gold.

        All are found in one call. Gradients are weighted by example.
        """
        n_rows, n = max(1, int(given.asked.samples)), len(given.placed.number)
        answers = self.answer(self.problems(given))
        if given.asked.strict and not answers.cost.max(initial=0.0) < np.inf:
            self._refuse_gold(given, answers)
        *rows, of_gold = -answers.cost.reshape(n_rows + 1, n)
        value = above(rows[0] if n_rows == 1 else np.mean(rows, axis=0), of_gold)
        if not given.asked.sharing:
            return Valued(value, [], [])
        weights = np.empty((n_rows + 1, n))
        weights[-1] = -self._weights(n, weight)
        weights[:-1] = weights[-1] / -n_rows
        return self._counted(given, value, answers.values, weights)

    def sums(self, given: Question, weight: FloatArray | None = None) -> Valued:
        """Returns the log-partition of the examples; with gold, how far it is above that of what agrees with gold.

        Gradients are weighted by example.
        """
        placed, gold = given.placed, given.gold
        labels = self.read(placed, gold) if gold else NONE
        whole = bool(gold) and not placed.shapes.soft and labels.min(initial=0) >= 0  # then there is one that agrees
        batch = self.problems(given._replace(gold=()) if whole else given)
        sharing, rows, n = bool(given.asked.sharing), 1 + (bool(gold) and not whole), len(placed.number)
        gaining = sharing and bool(placed.shapes.kinds)
        signs = np.tile(self._weights(n, weight), (rows, 1))
        signs[1:] *= -1.0
        found = run(batch, plans_for(batch), (1, int(sharing), int(gaining)), weight=signs.reshape(-1))
        value = -found.value.reshape(rows, n)
        of_gold = value[1:].reshape(-1)
        if whole:
            total, valid = np.empty(n), np.empty(n, dtype=bool)
            score_batch(batch.arrays, labels, total, valid)
            of_gold = np.where(valid, -total, -np.inf)
            if sharing:
                count_labels(batch.arrays, labels, np.where(valid, -signs[0], 0.0), found.share, found.gain)
        if given.asked.strict and np.isneginf(of_gold).any():
            self.loss(given._replace(asked=Request(strict=True)))  # says which, and why
        value = above(value[0], of_gold) if gold else value[0]
        if not sharing:
            return Valued(value, [], [])
        return self._valued(given, value, found.share.reshape(rows, -1).sum(axis=0), found.gain)

    def indicators(self, given: Question) -> list[Any]:
        """Returns the mean indicator of the labels of perturbed answers, where scores are."""
        answers = self.answer(self.problems(given))
        weight = np.full(len(answers.cost), 1.0 / given.asked.samples)
        return self._counted(given, answers.cost, answers.values, weight).fields

    def _weights(self, n: int, weight: FloatArray | None) -> FloatArray:
        """Returns what the gradient of each example is multiplied by, as scores are given."""
        return -self.sign * (np.ones(n) if weight is None else weight)

    def _counted(self, given: Question, value: FloatArray, labels: IntArray, weight: FloatArray) -> Valued:
        """Returns values whose gradient is the labels and label tuples of weighted rows of answers."""
        shapes, share = given.placed.shapes, np.zeros(given.placed.cost_at[-1])
        gain = np.zeros(shapes.n_entries if shapes.kinds else 0)
        count_labels(given.placed.arrays(share, gain), labels, weight.reshape(-1), share, gain)
        return self._valued(given, value, share, gain)

    def _valued(self, given: Question, value: FloatArray, share: FloatArray, gain: FloatArray) -> Valued:
        """Returns values with their gradient, given those of flat costs and of all table entries."""
        types = [np.float64 if each.dtype == np.float64 else np.float32 for each in given.scores]
        brought = given.placed.shapes.brought(gain) if gain.size else {}
        return Valued(value, put_back(given.placed, share, types), list(brought.values()))

    def problems(self, given: Question) -> Batch:
        """Returns the problems of all that is asked of examples, row after row; in the last one, gold is fixed."""
        placed, _, _, gold, asked, noise = given
        table, base = self._table(given), self._costs(given)
        if not gold and not asked.samples:
            return placed.batch(base, table)
        n = max(1, int(asked.samples)) + bool(gold)
        rows, raised, n_drawn = np.empty((n, len(base))), base, n - bool(gold)
        if gold:
            raised = rows[0] if not asked.samples else np.empty_like(base)
            oppose(placed.arrays(base, table), self.read(placed, gold), asked.margin, raised, rows[-1])
        if asked.samples:
            noise[:, placed.price] = 0.0
            np.multiply(noise, asked.sigma, out=rows[:n_drawn])
            np.subtract(raised, rows[:n_drawn], out=rows[:n_drawn])
        return placed.batch(rows.reshape(-1), table, n)

    def _refuse_gold(self, given: Question, answers: Solutions) -> None:
        """Says which example has no answer that agrees with gold, and which constraint gold breaks."""
        placed, p = given.placed, int(np.flatnonzero(np.isposinf(answers.cost))[-1])
        b, problem = p % len(placed.number), answers.batch[p]
        known = self.read(placed, given.gold)[placed.variable_at[b] : placed.variable_at[b + 1]][: problem.n_variables]
        if not answers.optimal[p]:
            raise ProblemError(f"Example {b}: no answer that agrees with gold was found. {answers[p].status}")
        why = str(problem.check(known)) if (known >= 0).all() else str(answers[p].status)
        raise ProblemError(
            f"Example {b}: gold breaks a constraint ({why}). Correct it, or give the loss invalid='skip' to leave such "
            "examples out."
        )

    def _table(self, given: Question) -> FloatArray:
        """Returns all tables of a batch, with the given scores of label tuples added to those of the schema."""
        costs = {}
        for name, table in given.tables.items():
            kind = self.layout.schema.factor_kind(name)
            if table.shape != kind.shape:
                raise ProblemError(f"The table of {name} has shape {table.shape}; it needs {kind.shape}.")
            costs[name] = self.sign * table.astype(np.float64)
            wrong = np.argwhere(~(costs[name] > -np.inf))
            if len(wrong):
                at = tuple(wrong[0].tolist())
                labels = [of.labels[i] for of, i in zip(kind.roles.values(), at, strict=True)]
                raise ProblemError(f"The score of {name} for {', '.join(labels)} is {table[at]}. {self._allowed}")
        return given.placed.shapes.table(costs)

    def _costs(self, given: Question) -> FloatArray:
        """Returns the flat costs of padded scores, or says which one is not a number."""
        placed, cost = given.placed, np.empty(given.placed.cost_at[-1])
        for scores, runs in zip(given.scores, placed.runs, strict=True):
            gather(scores.reshape(-1), runs, self.sign, placed.cost_at, cost)
        if placed.price.size:
            cost[placed.price] = np.concatenate([placed.shapes.prices[s] for s in placed.number.tolist()])
        if not cost.min(initial=0.0) > -np.inf:
            self._refuse(placed, cost)
        return cost

    def _refuse(self, placed: Placed, cost: FloatArray) -> None:
        """Says which cost is not a number: of which example, field, cell and label."""
        at = int(np.flatnonzero(~(cost > -np.inf))[0])
        b = int(np.searchsorted(placed.cost_at, at, side="right")) - 1
        structure = placed.shapes.structures[placed.number[b]]
        v = int(np.searchsorted(structure.graph.first, at - placed.cost_at[b], side="right")) - 1
        label = structure.kinds[v].labels[at - placed.cost_at[b] - structure.graph.first[v]]
        raise ProblemError(
            f"{self._named(placed, b, v)}: the score of label {label} is {self.sign * cost[at]}. {self._allowed}"
        )

    @property
    def _allowed(self) -> str:
        return f"Scores are finite, or {'-inf' if self.sign < 0 else 'inf'} to forbid a label."

    def _named(self, placed: Placed, b: int, v: int) -> str:
        """Returns what people call variable `v` of example `b`."""
        name = placed.shapes.structures[placed.number[b]].kinds[v].name
        if placed.flat:
            return f"Example {b}, variable {v} ({name})"
        f = list(self.layout.fields).index(name)
        number, first, runs = placed.runs[f]
        mine = runs[first[number[b]] : first[number[b] + 1]]
        (run,) = mine[(mine[:, FIRST_VARIABLE] <= v) & (v < mine[:, FIRST_VARIABLE] + mine[:, SIZE])]
        at = np.unravel_index(run[CELL] + v - run[FIRST_VARIABLE], placed.room[f][1:-1])
        return f"Example {b}, {name}[{', '.join(map(str, at))}]"

    def read(self, placed: Placed, padded: Sequence[IntArray]) -> IntArray:
        """Returns padded labels as flat ones, -1 where they are ignored."""
        labels = np.full(placed.variable_at[-1], -1, dtype=np.int64)
        for given, runs in zip(padded, placed.runs, strict=True):
            wrong = read_labels(given.reshape(-1), runs, placed.variable_at, labels)
            if wrong >= 0:
                b = int(np.searchsorted(placed.variable_at, wrong, side="right")) - 1
                name = self._named(placed, b, int(wrong - placed.variable_at[b]))
                raise ProblemError(
                    f"{name} has no label number {labels[wrong]}. Give label numbers from 0, and {IGNORED} where the "
                    "label is not known."
                )
        return labels

    def write(self, placed: Placed, labels: IntArray) -> list[IntArray]:
        """Returns rows of flat labels as padded ones, for each field."""
        found = []
        for shape, runs in zip(placed.room, placed.runs, strict=True):
            axes = (self.layout.structure.n_variables,) if placed.flat else shape[1:-1]
            padded = np.empty((len(labels), shape[0], *axes), dtype=np.int64)
            write_labels(labels, runs, placed.variable_at, padded.reshape(len(labels), -1))
            found.append(padded)
        return found


def answerer(schema: Schema, solver: Any = None) -> Answerer:
    """Returns what answers batches: the certifier, or what was given in its place.

    A solver, or the name of one, is asked for what cannot be proved.
    """
    if solver is None:
        return Certifier()
    if isinstance(solver, Certifier):
        return solver
    if isinstance(solver, Speedup):
        if solver.schema is not schema:
            raise SolverError("The speedup given as solver has another schema. Make one for the layer's.")
        return solver.predict
    if isinstance(solver, str) or callable(getattr(solver, "solve", None)) or callable(solver):
        return Speedup(schema, solver=solver).predict
    raise SolverError(
        f"{brief(solver)} is not a solver. Give a Certifier, a Speedup, or what hasten.make_solver takes."
    )


def put_back(placed: Placed, flat: FloatArray, types: Sequence[Any], fill: float = 0.0) -> list[Any]:
    """Returns flat numbers, one for each label, where the scores of these labels are; `fill` elsewhere."""
    found = [np.full(shape, fill, dtype=kind) for shape, kind in zip(placed.room, types, strict=True)]
    for padded, runs in zip(found, placed.runs, strict=True):
        scatter(flat, runs, placed.cost_at, padded.reshape(-1))
    return found


def above(value: FloatArray, of_gold: FloatArray) -> FloatArray:
    """Returns how far values are above those of gold; inf where nothing valid agrees with gold."""
    found: FloatArray = np.subtract(value, of_gold, out=np.full(len(value), np.inf), where=of_gold > -np.inf)
    return found
