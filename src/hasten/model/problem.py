"""The third step: a structure with costs, one input.

Costs are given (a list or array per variable, or one flat) or *lazy*: a scorer is asked for the costs of
single variables, when and if the search needs them (paper §4.1).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.score import entry, row_holds, row_sum, total_cost
from hasten.model.costs import (
    Costs,
    Negated,
    Scorer,
    Tables,
    bring,
    filled,
    read_costs,
    read_tables,
    widened,
)
from hasten.model.kinds import FactorKind, VariableKind, check_tables
from hasten.model.rules import Rule
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import brief, is_text, is_whole, listed
from hasten.support.terminal import printable
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.model.batch import Batch

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
        """The problem as a batch of one."""
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
        """The problem with a graph in which each labelling of its variables is one labelling of the graph's."""
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
        cost = self.batch.augmented(self.labels(labels), weight).cost
        return Problem(self.structure, cost, None, self.table, self.id)

    def check(self, labels: Labels) -> Check:
        """Says whether a labelling is valid, and names each constraint that it breaks."""
        return _check(self, self.values(labels))

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


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken constraint: its name, the variables involved, their labels, and a sentence."""

    constraint: str
    variables: tuple[int, ...]
    labels: tuple[str, ...]
    message: str
    price: float | None = None  # what breaking it costs; None if it must be kept

    def __str__(self) -> str:
        return printable(self.message)


@dataclass(frozen=True, slots=True)
class Check:
    """Whether a labelling is valid; true if it is. Printed, it names what is broken."""

    violations: tuple[Violation, ...]
    paid: tuple[Violation, ...] = ()  # rules that are broken for their price, which leaves the labelling valid

    @property
    def price(self) -> float:
        """The price of all broken soft rules together, which is part of the labelling's cost."""
        return sum((each.price or 0.0 for each in self.paid), 0.0)

    @property
    def valid(self) -> bool:
        """Whether nothing is broken."""
        return not self.violations

    def __bool__(self) -> bool:
        return self.valid

    def __str__(self) -> str:
        broken = [str(each) for each in self.violations] or ["valid"]
        return "\n".join([*broken, *(f"{each}; this costs {each.price:g}" for each in self.paid)])


def _check(problem: Problem, labels: IntArray) -> Check:
    """Names every label, table and rule that a labelling breaks, given with the indicators of soft rules."""
    broken = (*_labels(problem, labels), *_factors(problem, labels), *_rows(problem, labels))
    return Check(broken, tuple(_paid(problem, labels)))


def _labels(problem: Problem, labels: IntArray) -> list[Violation]:
    if problem.lazy:
        return []  # asking would compute every cost
    found = []
    for v, kind in enumerate(problem.structure.kinds):
        if np.isposinf(problem.costs_of(v)[labels[v]]):
            name = kind.labels[labels[v]]
            message = f"{kind.name}: {name} is forbidden (its cost is inf) for variable {v}"
            found.append(Violation(kind.name, (v,), (name,), message))
    return found


def _factors(problem: Problem, labels: IntArray) -> list[Violation]:
    graph = problem.graph
    found = []
    for f, factor in enumerate(problem.structure.factors):
        at = graph.table_at[f]
        if at < 0 or not np.isposinf(problem.table[at + entry(graph, f, labels)]):
            continue
        table = problem.table[at : at + factor.kind.size].reshape(factor.kind.shape)
        chosen = tuple(int(labels[v]) for v in factor.scope)
        names = tuple(kind.labels[label] for kind, label in zip(factor.kind.roles.values(), chosen, strict=True))
        message = f"{factor.kind.name}: {_explain(factor.kind, table, chosen, names, factor.scope)}"
        found.append(Violation(factor.kind.name, factor.scope, names, message))
    return found


def _explain(
    kind: FactorKind, table: FloatArray, chosen: tuple[int, ...], names: tuple[str, ...], scope: tuple[int, ...]
) -> str:
    roles = list(kind.roles)
    allowed = np.argwhere(~np.isposinf(table))
    best: tuple[int, str] | None = None
    for pivot, (role, name) in enumerate(zip(roles, names, strict=True)):
        rest = allowed[allowed[:, pivot] == chosen[pivot]]
        wrong = [other for other in range(len(roles)) if other != pivot and chosen[other] not in rest[:, other]]
        if not len(rest) or not wrong or (best is not None and best[0] <= len(rest)):
            continue
        needs = " and ".join(f"{roles[o]}={_either(kind, roles[o], rest[:, o])}" for o in wrong)
        got = " and ".join(f"{roles[o]}={names[o]} for variable {scope[o]}" for o in wrong)
        shared = sum(kind.roles[role] is each for each in kind.roles.values()) > 1
        subject = f"{role}={name}" if shared else name
        best = len(rest), f"{subject} needs {needs}, got {got}"
    if best is not None:
        return best[1]
    got = ", ".join(f"{role}={name} for variable {v}" for role, name, v in zip(roles, names, scope, strict=True))
    return f"no allowed combination: {got}"


def _either(kind: FactorKind, role: str, labels: IntArray) -> str:
    return "|".join(kind.roles[role].labels[label] for label in sorted(set(labels.tolist())))


def _rows(problem: Problem, labels: IntArray) -> list[Violation]:
    graph = problem.graph
    found = []
    for r, name in enumerate(problem.structure.compiled.row_names):
        if row_holds(graph, r, labels):
            continue
        value, limits = row_sum(graph, r, labels)[0], (graph.row_low[r], graph.row_high[r])
        cells = slice(graph.row_first[r], graph.row_first[r + 1])
        found.append(_missed(problem, labels, name, graph.row_label[cells], value, limits))
    return found


def _paid(problem: Problem, labels: IntArray) -> list[Violation]:
    indicators = problem.structure.compiled.indicators
    if indicators is None:
        return []
    seen, found = labels[: problem.n_variables], []
    sums, numbers = indicators.sums(seen[None])[0].tolist(), indicators.labels(seen[None])[0].tolist()
    for rule, value, number in zip(indicators.indicators, sums, numbers, strict=True):
        if number > 0:
            missed = _missed(problem, labels, rule.name, rule.label, value, (rule.low, rule.high))
            found.append(replace(missed, price=float(rule.cost[number])))
    return found


def _missed(
    problem: Problem, labels: IntArray, name: str, terms: IntArray, value: float, limits: tuple[float, float]
) -> Violation:
    low, high = limits
    chosen = problem.graph.first[:-1] + labels
    counted = np.flatnonzero(np.isin(chosen, terms)).tolist()
    words = tuple(problem.structure.kinds[v].labels[labels[v]] for v in counted)
    listed = ", ".join(f"{word} for variable {v}" for word, v in zip(words, counted, strict=True))
    wanted = f"exactly {low:g}" if low == high else f"at most {high:g}" if value > high else f"at least {low:g}"
    message = f"{name}: needs {wanted}, got {value:g} ({listed or 'nothing counted'})"
    return Violation(name, tuple(counted), words, message)
