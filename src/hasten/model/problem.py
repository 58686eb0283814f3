"""The third step: a structure with costs, one input.

Costs are given (a list or array per variable, or one flat) or *lazy*: a scorer is asked for the costs of
single variables, when and if the search needs them (paper §4.1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.score import total_cost
from hasten.model.costs import Costs, Negated, Scorer, read_costs, with_loss
from hasten.model.kinds import VariableKind, check_tables
from hasten.model.rules import Rule
from hasten.model.structure import Structure
from hasten.model.tables import Tables, bring, filled, read_tables, widened
from hasten.support.arrays import FloatArray, IntArray, sizes_of
from hasten.support.checks import brief, is_text, is_whole, listed
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.model.batch import Batch
    from hasten.model.violations import Check

Labels: TypeAlias = Sequence[int] | Sequence[str] | IntArray  # by number or by name


class Problem:
    """One input: minimise the costs of its labels and tables, subject to its tables and rules.

    Made by `Structure.problem`. `cost` is flat: variable `v` owns `cost[first[v]:first[v + 1]]`; a cost of
    `inf` forbids a label. Behind them are the prices of soft rules (`hasten.model.soft`).
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
        cls, structure: Structure, costs: Costs, maximize: bool, tables: Tables, rules: Sequence[Rule], id: int
    ) -> Problem:
        """Checks costs, or scores to maximise, tables and rules against their structure."""
        check_tables(tables)
        structure, table = bring(structure, tables)  # another problem's tables are not this one's
        if rules:
            structure = structure.with_rules(rules)
        if callable(costs):
            return cls(structure, None, Negated(costs) if maximize else costs, table, id)
        return cls(structure, read_costs(structure, costs, maximize), None, table, id)

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
        brought = read_tables(self.structure.schema, tables, self.structure)
        structure = widened(self.structure, brought)
        table = filled(structure, brought, self.structure, self.table)
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
    def distinct(self) -> Problem:
        """This problem with a graph in which each labelling of its variables is one labelling of the graph's."""
        structure = self.structure.distinct
        return self if structure is self.structure else Problem(structure, self.cost, None, self.table, self.id)

    def alike(self, costs: FloatArray) -> Batch:
        """Returns problems that differ from this one in their costs alone: a row of flat costs for each, as a batch."""
        from hasten.model.batch import Batch

        return Batch.stack(self.structure, costs, table=self.table)

    def costs_of(self, variable: int) -> FloatArray:
        """Returns the costs of one variable's labels."""
        first = self.graph.first
        if not is_whole(variable) or not 0 <= variable < len(first) - 1:
            raise ProblemError(f"There is no variable {brief(variable)}; the problem has {self.n_variables}, from 0.")
        return self.cost[first[variable] : first[variable + 1]]

    def total(self, labels: Labels) -> float:
        """Returns the cost of a labelling: inf if a table or a label's cost forbids it. Of rules, only prices count."""
        return float(total_cost(self.graph, self.cost, self.table, self.values(labels)))

    def augmented(self, labels: Labels, weight: float | FloatArray = 1.0) -> Problem:
        """Returns this problem with a loss in its costs: every label but the given one is cheaper by `weight`.

        Its cheapest labelling is the one that a structured learner has to push away from: wrong, and cheap
        (loss-augmented inference, with the Hamming loss). `weight` is one number, or one for each variable.
        """
        first = self.graph.first[: self.n_variables + 1]
        cost = with_loss(self.cost, first[:-1], sizes_of(first), self.labels(labels), weight)
        return Problem(self.structure, cost, None, self.table, self.id)

    def check(self, labels: Labels) -> Check:
        """Says whether a labelling is valid, and names each constraint that it breaks."""
        from hasten.model.violations import check

        return check(self, self.values(labels))

    def labels(self, labels: Labels) -> IntArray:
        """Returns a labelling, given by label numbers or names, as numbers; one that does not fit is an error."""
        return _numbers(self.structure.kinds, labels)

    def values(self, labels: Labels) -> IntArray:
        """Returns a labelling as numbers, as its graph has it: with the indicators of soft rules."""
        numbers, indicators = self.labels(labels), self.structure.compiled.indicators
        return numbers if indicators is None else np.append(numbers, indicators.labels(numbers[None])[0])

    def names(self, labels: IntArray) -> list[str]:
        """Returns the names of a labelling's labels, given their numbers, with or without indicators."""
        kinds = self.structure.kinds
        if len(listed(labels, "A labelling", ProblemError)) > len(kinds):
            kinds = self.structure.all_kinds
        return [kind.labels[label] for kind, label in zip(kinds, _numbers(kinds, labels).tolist(), strict=True)]

    def variable_names(self, names: Sequence[str] | None = None) -> tuple[str, ...]:
        """Returns what people call the variables: the names given, one for each, or their kinds and numbers.

        A name that was there before gets a number. Indicators of soft rules come last.
        """
        indicators = [kind.name for kind in self.structure.all_kinds[self.n_variables :]]
        if names is None:
            names = [f"{kind.name} {v}" for v, kind in enumerate(self.structure.kinds)]
        given = [
            name if is_text(name) else brief(name) for name in listed(names, "The names of variables", ProblemError)
        ]
        if len(given) != self.n_variables:
            raise ProblemError(
                f"Got {count(len(given), 'name')} for {count(self.n_variables, 'variable')}. Give one for each."
            )
        seen: Counter[str] = Counter()
        unique = []
        for name in given + indicators:
            seen[name] += 1
            unique.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
        return tuple(unique)

    def __repr__(self) -> str:
        return f"Problem({count(self.n_variables, 'variable')}{', lazy' if self.lazy else ''})"

    def _repr_html_(self) -> str:
        from hasten.model.display import card_of

        return card_of(self)


def _numbers(kinds: Sequence[VariableKind], labels: Any) -> IntArray:
    given = listed(labels, "A labelling", ProblemError)
    if isinstance(labels, Mapping | Set):
        raise ProblemError(f"A labelling is a list of labels, by number or name, in order; got {brief(labels)}.")
    if len(given) != len(kinds):
        raise ProblemError(f"Got {count(len(given), 'label')} for {count(len(kinds), 'variable')}. Give one for each.")
    numbers = np.empty(len(kinds), dtype=np.int64)
    for v, (kind, label) in enumerate(zip(kinds, given, strict=True)):
        number = kind.label(label) if isinstance(label, str) else _whole(label)
        if not 0 <= number < len(kind):
            raise ProblemError(
                f"Variable {v} ({kind.name}) has no label number {brief(label)}; "
                f"it has {count(len(kind), 'label')}, from 0."
            )
        numbers[v] = number
    return numbers


def _whole(label: Any) -> int:
    """Returns a label's number; -1 for a value that is not one."""
    if label is np.ma.masked:
        return -1
    try:
        number = int(label)
        return number if bool(number == label) else -1
    except (TypeError, ValueError, OverflowError):
        return -1


def check_one(problem: object) -> None:
    """Refuses what is not a single problem."""
    if not isinstance(problem, Problem):
        kind = type(problem).__name__
        raise ProblemError(f"Expected one problem, got {kind}. Of a batch, give one: batch[0].")
