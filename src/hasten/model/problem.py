"""The third step: a structure with costs, one input.

Costs are given (a list or array per variable, or one flat) or *lazy*: a scorer is asked for the costs of
single variables, when and if the search needs them (paper §4.1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.score import total_cost
from hasten.model.rules import Rule
from hasten.model.structure import Structure
from hasten.model.tables import NOTHING, Tables, bring, check_tables, filled, read_tables, refilled, widened
from hasten.support.arrays import FloatArray, IntArray, all_finite, floats
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.model.batch import Batch
    from hasten.model.violations import Check


class Scorer(Protocol):
    """Answers requests for costs: those of variable `variables[r]` of problem `problems[r]`, one after the other."""

    def __call__(self, problems: IntArray, variables: IntArray, /) -> FloatArray:
        """Returns the costs of the requested variables, all labels of the first, then of the second, …"""
        ...


@dataclass(frozen=True, slots=True)
class Negated:
    """A scorer whose scores are maximised."""

    scorer: Scorer

    def __call__(self, problems: IntArray, variables: IntArray, /) -> FloatArray:
        """Returns minus the scores."""
        return -floats(self.scorer(problems, variables))


Given: TypeAlias = FloatArray | Sequence[float] | Sequence[Sequence[float] | FloatArray]
Costs: TypeAlias = Given | Scorer
Labels: TypeAlias = Sequence[int] | Sequence[str] | IntArray  # by number or by name


class Problem:
    """One input: minimise the costs of its labels and tables, subject to its tables and rules.

    Made by `Structure.problem`. `cost` is flat: variable `v` owns `cost[first[v]:first[v + 1]]`; a cost of
    `inf` forbids a label. Behind them are the prices of rules that may be broken (`hasten.model.prices`).
    """

    def __init__(
        self, structure: Structure, cost: FloatArray | None, scorer: Scorer | None, table: FloatArray, id: int
    ) -> None:
        self.structure = structure
        self.graph = structure.graph
        self.table = table
        self.scorer = scorer
        self.id = id
        self._cost = cost

    @classmethod
    def of(
        cls,
        structure: Structure,
        costs: Costs,
        *,
        maximize: bool = False,
        tables: Tables,
        rules: tuple[Rule, ...],
        id: int,
    ) -> Problem:
        """Checks costs, or scores to maximise, tables and rules against their structure."""
        check_tables(tables)
        if tables and not rules:
            structure, table = bring(structure, tables)
        else:
            brought = read_tables(structure, tables) if tables else NOTHING
            structure = structure._bringing(brought.own)  # another problem's tables are not this one's
            if rules:
                structure = structure.with_rules(rules)
            table = filled(structure, brought) if tables else structure.graph.table
        if callable(costs):
            return cls(structure, None, Negated(costs) if maximize else costs, table, id)
        return cls(structure, _flat_costs(structure, costs, maximize), None, table, id)

    @property
    def lazy(self) -> bool:
        """Whether costs are computed on demand."""
        return self._cost is None

    @property
    def cost(self) -> FloatArray:
        """The flat costs; a lazy problem computes all of them, and keeps them."""
        if self._cost is None:
            self._cost = self.batch.resolved().cost
            del self.batch  # the lazy one; from now on the costs are given
        return self._cost

    @cached_property
    def batch(self) -> Batch:
        """This problem as a batch of one."""
        from hasten.model.batch import Batch

        return Batch.of_one(self)

    def with_tables(self, tables: Tables) -> Problem:
        """Returns this problem with other tables: of factors, by number, or of all factors of a kind, by its name.

        Where both are given, a factor's own counts. What the problem brought before stays, unless it is given anew.
        """
        check_tables(tables)
        brought = read_tables(self.structure, tables)
        structure = widened(self.structure, brought)
        table = refilled(self.structure, self.table, structure, brought)
        return Problem(structure, self._cost, self.scorer, table, self.id)

    @property
    def n_variables(self) -> int:
        """The number of variables."""
        return len(self.structure.kinds)

    @property
    def n_outputs(self) -> int:
        """The number of labellings, valid or not."""
        return math.prod(map(len, self.structure.kinds))

    @property
    def exact(self) -> Problem:
        """This problem, in which each labelling has one labelling of the indicators (`hasten.model.prices`)."""
        structure = self.structure.exact
        return self if structure is self.structure else Problem(structure, self.cost, None, self.table, self.id)

    def alike(self, costs: FloatArray) -> Batch:
        """Returns problems that differ from this one in their costs alone: a row of flat costs for each, as a batch."""
        from hasten.model.batch import Batch

        return Batch.alike(self, costs)

    def costs_of(self, variable: int) -> FloatArray:
        """Returns the costs of one variable's labels."""
        return self.cost[self.graph.first[variable] : self.graph.first[variable + 1]]

    def total(self, labels: Labels) -> float:
        """Returns the cost of a labelling: inf if a table or a label's cost forbids it. Of rules, only prices count."""
        return float(total_cost(self.graph, self.cost, self.table, self.values(labels)))

    def augmented(self, labels: Labels, weight: float | FloatArray = 1.0) -> Problem:
        """Returns this problem with a loss in its costs: every label but the given one is cheaper by `weight`.

        Its cheapest labelling is the one that a structured learner has to push away from: wrong, and cheap
        (loss-augmented inference, with the Hamming loss). `weight` is one number, or one for each variable.
        """
        loss = hamming_loss(self.graph.first[: self.n_variables + 1], self.labels(labels), weight)
        cost = self.cost.copy()
        cost[: len(loss)] -= loss
        return Problem(self.structure, cost, None, self.table, self.id)

    def check(self, labels: Labels) -> Check:
        """Says whether a labelling is valid, and names each constraint that it breaks."""
        from hasten.model.violations import check

        return check(self, self.values(labels))

    def labels(self, labels: Labels) -> IntArray:
        """Returns a labelling, given by label numbers or names, as numbers; one that does not fit is an error."""
        kinds = self.structure.kinds
        if not hasattr(labels, "__len__"):
            raise ProblemError(f"A labelling has a label for each variable, by number or name; got {labels!r}.")
        if len(labels) != len(kinds):
            raise ProblemError(
                f"Got {count(len(labels), 'label')} for {count(len(kinds), 'variable')}. Give one for each."
            )
        numbers = np.empty(len(kinds), dtype=np.int64)
        for v, (kind, label) in enumerate(zip(kinds, labels, strict=True)):
            numbers[v] = kind.label(label) if isinstance(label, str) else _whole(label)
            if not 0 <= numbers[v] < len(kind):
                raise ProblemError(
                    f"Variable {v} ({kind.name}) has no label number {label}; "
                    f"it has {count(len(kind), 'label')}, from 0."
                )
        return numbers

    def values(self, labels: Labels) -> IntArray:
        """Returns a labelling as numbers, with the indicators of rules that may be broken (`hasten.model.prices`)."""
        numbers, prices = self.labels(labels), self.structure.prices
        return numbers if prices is None else np.append(numbers, prices.complete(numbers[None])[0])

    def names(self, labels: IntArray) -> list[str]:
        """Returns the names of a labelling's labels."""
        kinds = self.structure.kinds if len(labels) == self.n_variables else self.structure.all_kinds
        return [kind.labels[label] for kind, label in zip(kinds, labels, strict=True)]

    def variable_names(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Returns what people call the variables: the names given, one for each, or their kinds and numbers.

        A name that was there before gets a number. Indicators of rules come last.
        """
        hidden = [kind.name for kind in self.structure.all_kinds[self.n_variables :]]
        if names is None:
            names = [f"{kind.name} {v}" for v, kind in enumerate(self.structure.kinds)]
        if isinstance(names, str) or not isinstance(names, Iterable):
            raise ProblemError(f"The names of variables are a list, one for each of {self.n_variables}; got {names!r}.")
        given = [str(name) for name in names]
        if len(given) != self.n_variables:
            raise ProblemError(
                f"Got {count(len(given), 'name')} for {count(self.n_variables, 'variable')}. Give one for each."
            )
        seen: Counter[str] = Counter()
        unique = []
        for name in given + hidden:
            seen[name] += 1
            unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(unique)

    def __repr__(self) -> str:
        return f"Problem({count(self.n_variables, 'variable')}{', lazy' if self.lazy else ''})"

    def _repr_html_(self) -> str:
        from hasten.model.display import of_problem

        return of_problem(self)


def hamming_loss(first: IntArray, labels: IntArray, weight: float | FloatArray) -> FloatArray:
    """Returns `weight`, of its variable, for each label that is not the given one; labels start at `first`."""
    loss = loss_weights(weight, len(first) - 1).repeat(np.diff(first))
    loss[first[:-1] + labels] = 0.0
    return loss


def loss_weights(weight: float | FloatArray, n: int) -> FloatArray:
    """Returns the weight of a loss for each of `n` variables, or says why it is not one."""
    try:
        weights = np.broadcast_to(floats(weight), (n,))
    except (TypeError, ValueError):
        raise ProblemError(f"The weight of a loss is a number, or one for each of {n} variables.") from None
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ProblemError("The weight of a loss must be finite, and 0 or more.")
    return weights


def _whole(label: Any) -> int:
    """Returns a label's number; -1 for what is not a label."""
    try:
        number = int(label)
    except (TypeError, ValueError, OverflowError):
        return -1
    return number if number == label else -1


def _flat_costs(structure: Structure, costs: Given, maximize: bool) -> FloatArray:
    """Returns given costs, or scores, as one flat array of costs; those that do not fit the structure are an error."""
    if isinstance(costs, np.ndarray) and costs.ndim == 1 and costs.dtype.kind in "biuf":
        flat = np.array(costs, dtype=np.float64)
        prices = structure.compiled.prices
        if prices is not None and flat.size == structure.n_labels + prices.cost.size:
            flat = flat[: structure.n_labels]  # the costs of another problem, with their prices
        _check_size(structure, flat)
    else:
        flat, prices = _joined_costs(structure, costs), structure.compiled.prices
    if maximize:
        np.negative(flat, out=flat)
    check_costs(structure, flat, maximize)
    return flat if prices is None else np.append(flat, prices.cost)


def _joined_costs(structure: Structure, costs: Given) -> FloatArray:
    """Returns the costs of each variable, or a flat list, as one array."""
    try:
        parts = [floats(part) for part in (floats(costs) if hasattr(costs, "detach") else costs)]
    except (TypeError, ValueError):
        raise ProblemError(
            "Costs are numbers. Give a list or array for each variable, one flat list or array, or a scorer."
        ) from None
    if parts and all(part.ndim == 0 for part in parts):
        flat = np.array(parts)
        _check_size(structure, flat)
        return flat
    if len(parts) != structure.n_variables:
        raise ProblemError(
            f"Got costs for {count(len(parts), 'variable')}; the structure has {structure.n_variables:,}. "
            "Give a list or array of costs for each variable, or one flat list or array."
        )
    for v, (kind, part) in enumerate(zip(structure.kinds, parts, strict=True)):
        if part.shape != (len(kind),):
            raise ProblemError(
                f"Variable {v} ({kind.name}) got costs of shape {part.shape}; "
                f"it needs one for each of {', '.join(kind.labels)}."
            )
    return np.concatenate(parts) if parts else np.zeros(0)


def _check_size(structure: Structure, flat: FloatArray) -> None:
    if flat.size != structure.n_labels:
        raise ProblemError(
            f"Got {count(flat.size, 'cost')} for {count(structure.n_labels, 'label')}. "
            "Give one cost per label, in the order of the structure's variables."
        )


def check_costs(structure: Structure, flat: FloatArray, scores: bool = False) -> None:
    """Refuses costs that are neither finite nor inf, and names the first; `scores` says that minus these were given."""
    if all_finite(flat):
        return
    wrong = np.isnan(flat) | np.isneginf(flat)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        v = int(np.searchsorted(structure.graph.first, at, side="right")) - 1
        label = structure.kinds[v].labels[at - structure.graph.first[v]]
        what, value, forbids = ("score", -flat[at], "-inf") if scores else ("cost", flat[at], "inf")
        raise ProblemError(
            f"The {what} of variable {v} ({structure.kinds[v].name}) for label {label} is {value}. "
            f"{what.title()}s are finite, or {forbids} to forbid a label."
        )


def check_one(problem: object) -> None:
    """Refuses what is not a single problem."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise ProblemError(f"Expected one problem, got {kind}. Of a batch, give one: batch[0].")
