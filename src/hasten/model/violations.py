"""Validity in words: which constraints a labelling breaks, what each would have needed, and what breaking it costs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hasten.kernels.rows import row_holds, row_sum
from hasten.kernels.score import entry
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import printable


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


def check(problem: Problem, labels: IntArray) -> Check:
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
