"""Guessing the labels of variables with expensive costs from cheap features of the input (paper §4.1).

The paper's theta decides by label tuples alone, so it cannot know that *this* pair of words is surely unrelated. A gate
also sees the input: cheap features of each variable that the user declares, the cheapest labels of the variables that
are *settled* (those of all other kinds, whose costs are always computed), and the *regret* of each label, that is, what
the settled variables would have to pay for it at least. From the black box's answers it learns, by logistic
regression, which label a variable will have, and how much to *doubt* that.

`hasten.speedup.skipping` answers by it, and chooses how much doubt to allow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from hasten.errors import NotFittedError, ProblemError, SchemaError
from hasten.learning.features import OWN, Examples, describe, guess_some, learn_some
from hasten.learning.learner import typical_gap
from hasten.model.batch import Batch, as_batch
from hasten.model.kinds import VariableKind
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Answers, read_answers
from hasten.support import forms
from hasten.support.arrays import BoolArray, FloatArray, IntArray, floats, offsets, plain, ranges
from hasten.support.checks import brief, check_switch, check_type, check_whole
from hasten.support.forms import Tensors

CHUNK = 2**17  # variables whose features are held at once, while guessing
MOST_ID = 2**63 - 1
EPOCHS, RATE = 4, 0.1  # passes over the examples; how large steps are
FIRST_SQUARE = 0.01  # of each slope: keeps the first steps small

Cheap: TypeAlias = Callable[[IntArray, IntArray], Any]
"""Gives cheap features of variables `variables[r]` of problems `problems[r]`: an array of whole numbers, a row for each
request and a feature in each column, -1 for none; or a pair of such an array and one of the same shape, their values.
"""


class Guesses(NamedTuple):
    """The guesses of a gate about a batch; flat, as labellings are."""

    expensive: BoolArray  # (variables,) whether it was guessed at all
    label: IntArray  # (variables,) -1 where it was not
    doubt: FloatArray  # (variables,) how likely another label is; inf where it was not guessed


@dataclass(eq=False)
class GateState:
    """The weights that a gate has learned so far; `Gate.fit` begins them anew."""

    schema: Schema | None = None
    scale: float = 1.0  # of regrets: the median of what a settled variable's second-best label costs above the best
    weights: dict[str, FloatArray] = field(default_factory=dict)  # by kind: (n_rows, labels)
    n_examples: int = 0

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.weights = {kind: plain(weights) for kind, weights in self.weights.items()}  # of a mapped file, perhaps


@dataclass(eq=False)
class Gate:
    """Guesses the labels of variables whose costs are expensive.

    cheap
        The kinds of variables whose costs are expensive, by name, each with a function that gives cheap features of the
        input (`Cheap`), or None to see nothing of the input. Variables of all other kinds are settled.
    settled
        Whether it also sees the costs of the settled variables, which are then computed first. On by default. Without,
        it guesses before any cost is computed, so that all costs can be asked for in one call, but fewer are spared.
    n_rows
        Rows of weights for each kind; features share them by their hash. A power of two; 65,536 by default.
    seed
        Fixes the order of the examples.
    """

    cheap: Mapping[str, Cheap | None]
    settled: bool = True
    n_rows: int = 2**16
    seed: int = 0
    state: GateState = field(default_factory=GateState, init=False, repr=False)

    def __post_init__(self) -> None:
        if not isinstance(self.cheap, Mapping) or not self.cheap:
            raise ProblemError(
                "A gate needs the kinds of variables whose costs are expensive, each with a function for its cheap "
                f'features, or None: Gate({{"relation": features}}). Got {brief(self.cheap)}.'
            )
        for kind, given in self.cheap.items():
            if not isinstance(kind, str) or not (given is None or callable(given)):
                raise ProblemError(
                    f"The cheap features of kind {brief(kind)} must be a function or None, got {brief(given)}."
                )
        check_switch("settled", self.settled)
        check_whole("n_rows", self.n_rows, least=1, most=2**28)
        if self.n_rows & (self.n_rows - 1):
            raise ProblemError(f"n_rows must be a power of two, such as 65536; got {self.n_rows}.")
        check_whole("seed", self.seed, most=None)

    def fit(self, problems: Batch | Iterable[Problem], answers: Answers) -> Gate:
        """Learns, from scratch, from the black box's answers to some problems; computes all of their costs."""
        batch = as_batch(problems).resolved()
        labels, usable = read_answers(batch, answers)
        batch = self._seen(batch)
        expensive = self.expensive(batch)
        state = GateState(_schema_of(batch), typical_gap(batch, ~expensive))
        learned = np.isin(np.repeat(np.arange(len(batch)), batch.n_variables), usable)
        rng = np.random.default_rng(self.seed)
        for kind, mask in self._masks(batch):
            at = np.flatnonzero(learned & mask)
            examples = self._describe(batch, expensive, kind, at, state.scale)
            state.weights[kind.name] = self._learn(examples, labels[at], len(kind), rng)
            state.n_examples += at.size
        self.state = state
        return self

    def seeing(self, cheap: Mapping[str, Cheap | None]) -> Gate:
        """Returns this gate, with what it has learned, for other problems: `cheap` gives the features of theirs."""
        other = replace(self, cheap=cheap)
        other.state = self.state
        return other

    def expensive(self, batch: Batch) -> BoolArray:
        """Tells which variables of a batch, flat, have expensive costs."""
        masks = [mask for _, mask in self._masks(batch)]
        found: BoolArray = np.logical_or.reduce([np.zeros(batch.variable_at[-1], dtype=bool), *masks])
        return found

    def guess(self, batch: Batch) -> Guesses:
        """Guesses the expensive variables of a batch; looks at no costs but those of the settled variables."""
        state, batch = self.state, self._seen(batch)
        if state.schema is None:
            raise NotFittedError("This gate has not learned to guess yet. Call fit with the black box's answers.")
        schema = _schema_of(batch)
        if schema not in (None, state.schema) and schema.digest != state.schema.digest:
            raise ProblemError("These problems have another schema than this gate has learned. Fit one for theirs.")
        label = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        doubt = np.full(batch.variable_at[-1], np.inf)
        expensive = self.expensive(batch)
        for kind, mask in self._masks(batch):
            found = np.flatnonzero(mask)
            for at in np.split(found, range(CHUNK, found.size, CHUNK)):
                some = self._describe(batch, expensive, kind, at, state.scale)
                guessed, others = np.empty(at.size, dtype=np.int64), np.empty(at.size)
                guess_some(some, state.weights[kind.name], guessed, others)
                label[at], doubt[at] = guessed, others
        return Guesses(expensive, label, doubt)

    def tensors(self) -> Tensors:
        """Returns what a file holds of it."""
        scale = {"scale": np.array([self.state.scale])}
        return scale | {f"weights/{kind}": each.astype(np.float32) for kind, each in self.state.weights.items()}

    def learn_from_tensors(self, schema: Schema, tensors: Tensors) -> None:
        """Takes over what `tensors` returned of a gate set like this one; what is not of this schema is a `Misfit`."""
        weights = {kind: f"weights/{kind.name}" for kind in self._kinds(schema)}
        expected = {name: forms.Array("float32", (self.n_rows, len(kind))) for kind, name in weights.items()}
        forms.check_tensors(tensors, expected | {"scale": forms.Array("float64", (1,), math.ulp(0.0))})
        learned = {kind.name: tensors[name].astype(np.float64) for kind, name in weights.items()}
        self.state = GateState(schema, float(tensors["scale"][0]), learned)

    def _seen(self, batch: Batch) -> Batch:
        """Returns a batch as the gate sees it: without costs, if those of settled variables are not there yet."""
        return batch if self.settled else replace(batch, cost=np.zeros_like(batch.cost), scorer=None)

    def _kinds(self, schema: Schema | None) -> list[VariableKind]:
        if schema is None:
            return []
        unknown = [kind for kind in self.cheap if kind not in schema.variables]
        if unknown:
            raise SchemaError(
                f"There is no kind of variable {unknown[0]!r} for a gate to guess. The schema has "
                f"{', '.join(schema.variables)}."
            )
        return [schema.variables[kind] for kind in self.cheap]

    def _masks(self, batch: Batch) -> Iterator[tuple[VariableKind, BoolArray]]:
        """Yields each expensive kind, and which variables, flat, are of it."""
        expensive = self._kinds(_schema_of(batch))
        known = [structure.all_kinds for structure in batch.structures]
        first = offsets(map(len, known))[:-1]
        places = ranges(first[batch.structure], batch.n_variables)
        for kind in expensive:
            yield kind, np.array([each.name == kind.name for kinds in known for each in kinds], dtype=bool)[places]

    def _describe(self, batch: Batch, expensive: BoolArray, kind: VariableKind, at: IntArray, scale: float) -> Examples:
        problems = np.searchsorted(batch.variable_at, at, side="right") - 1
        variables = at - batch.variable_at[problems]
        ids, values = self._cheap_features(batch, kind, problems, variables)
        rows = np.empty((at.size, OWN + len(kind) + ids.shape[1]), dtype=np.int64)
        examples = Examples(rows, values, np.empty((at.size, len(kind))))
        describe(batch.arrays, expensive, problems, variables, ids, scale, self.n_rows, examples)
        return examples

    def _cheap_features(
        self, batch: Batch, kind: VariableKind, problems: IntArray, variables: IntArray
    ) -> tuple[IntArray, FloatArray]:
        """Asks for the cheap features of some variables, and checks what comes."""
        cheap = self.cheap[kind.name]
        if cheap is None or not problems.size:
            return np.zeros((problems.size, 0), dtype=np.int64), np.zeros((problems.size, 0))
        given = cheap(problems if batch.ids is None else batch.ids[problems], variables)
        ids, values = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
        ids = np.asarray(ids)
        if ids.dtype.kind == "u":
            ids = ids & np.array(MOST_ID, dtype=np.uint64)
        if ids.ndim != 2 or len(ids) != problems.size or ids.dtype.kind not in "iu":
            raise ProblemError(
                f"The cheap features of kind {kind.name!r} came as an array of {ids.dtype} of shape {ids.shape} for "
                f"{problems.size} variables. Return whole numbers, a row for each variable, -1 for none."
            )
        try:
            numbers = np.ones(ids.shape) if values is None else floats(values)
        except (TypeError, ValueError) as error:
            raise ProblemError(f"The values of the cheap features of kind {kind.name!r}: {error}.") from None
        if numbers.shape != ids.shape or not np.isfinite(numbers).all():
            raise ProblemError(
                f"The values of the cheap features of kind {kind.name!r} must be finite numbers of shape {ids.shape}, "
                f"one for each feature; got the shape {numbers.shape}."
            )
        ids = ids.astype(np.int64)
        ids = np.where(ids < -1, ids & MOST_ID, ids)  # any other number will do, such as a negative hash
        return np.ascontiguousarray(ids), np.ascontiguousarray(numbers)

    def _learn(self, examples: Examples, labels: IntArray, n_labels: int, rng: np.random.Generator) -> FloatArray:
        """Returns weights learned from examples of one kind: the average over all steps."""
        weights, lag = np.zeros((2, self.n_rows, n_labels))
        squares = np.full((self.n_rows, n_labels), FIRST_SQUARE)
        for epoch in range(EPOCHS):
            order = rng.permutation(labels.size)
            step = epoch * labels.size
            learn_some(examples, labels, order, RATE, step, weights, squares, lag)
        mean: FloatArray = weights - lag / max(1, EPOCHS * labels.size)
        return mean.astype(np.float32).astype(np.float64)  # as a file holds them


def _schema_of(batch: Batch) -> Schema | None:
    """Returns the schema of a batch's problems, None if it has none; several are an error."""
    check_type(batch, Batch, "The problems of a gate")
    schemas = list({id(structure.schema): structure.schema for structure in batch.structures}.values())
    if len(schemas) > 1 and len({schema.digest for schema in schemas}) > 1:
        raise ProblemError("These problems have several schemas; a gate is for one. Sort them by schema.")
    return schemas[0] if schemas else None
