"""Schemas, structures, problems, batches and solutions as notebooks show them.

Looking changes nothing: no structure is closed, no lazy cost computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

from hasten.model.batch import Batch
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.model.rules import KindRule, Rule
from hasten.model.schema import Schema
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions
from hasten.model.structure import Structure
from hasten.support.html import MOST_ROWS, card, sentence, table
from hasten.support.words import count

FEW = 5  # answers or labels that stand for the others


def of_schema(schema: Schema) -> str:
    """Shows the kinds and rules of a schema."""
    kinds, factors, rules = schema.variables.values(), schema.factors.values(), schema.rules.values()
    counts = (len(kinds), "variable kind"), (len(factors), "factor kind"), (len(rules), "rule")
    return card(
        f"Schema: {_counts(*counts)}",
        table(["variable kind", "labels", ""], ([k.name, len(k), _several(k.labels)] for k in kinds), len(kinds)),
        table(["factor kind", "over", "table"], ([k.name, _roles(k), _table(k)] for k in factors), len(factors)),
        table(["rule", "needs", "of"], ([r.name, _limits(r), _counted(schema, r)] for r in rules), len(rules)),
    )


def of_structure(structure: Structure) -> str:
    """Shows a structure's variables and factors by kind, and its rules one by one."""
    variables, factors = (
        Counter(kind.name for kind in kinds)
        for kinds in (structure.kinds, [factor.kind for factor in structure.factors])
    )
    known = structure.schema
    kinds = ([name, n, _several(known.variables[name].labels)] for name, n in variables.items())
    scopes = ([name, n, _roles(known.factors[name])] for name, n in factors.items())
    rules = ([rule.name, _limits(rule), _counts((len(rule.terms), "label"))] for rule in structure.rules)
    return card(
        f"Structure: {_size(structure)}",
        table(["variable kind", "variables", "labels"], kinds, len(variables)),
        table(["factor kind", "factors", "over"], scopes, len(factors)),
        table(["rule", "needs", "of"], rules, structure.n_rules),
    )


def of_problem(problem: Problem) -> str:
    """Shows a problem's variables with their cheapest labels; of a lazy one, with their labels."""
    kinds, title = problem.structure.kinds, f"Problem: {_size(problem.structure)}"
    if problem.lazy:
        rows: Iterable[Sequence[object]] = ([v, kind.name, _several(kind.labels)] for v, kind in enumerate(kinds))
        labels = table(["variable", "kind", "labels"], rows, len(kinds))
        return card(title, sentence("Its costs are computed on demand."), labels)
    rows = ([v, kind.name, _cheapest(problem, v)] for v, kind in enumerate(kinds))
    return card(title, table(["variable", "kind", "labels and costs, cheapest first"], rows, len(kinds)))


def of_batch(batch: Batch) -> str:
    """Shows how many problems of a batch have which structure, the most common first."""
    numbers = np.bincount(batch.structure, minlength=len(batch.structures))
    order = np.argsort(-numbers, kind="stable")[: np.count_nonzero(numbers)]
    shapes = [(int(numbers[s]), batch.structures[s]) for s in order[:MOST_ROWS]]
    rows = ([n, each.n_variables, len(each.factors), each.n_rules] for n, each in shapes)
    lazy = [sentence("Its costs are computed on demand.")] if batch.lazy else []
    return card(
        f"Batch: {_counts((len(batch), 'problem'), (len(order), 'structure'))}",
        *lazy,
        table(["problems", "variables", "factors", "rules"], rows, len(order)),
    )


def of_solution(solution: Solution) -> str:
    """Shows the label of each variable, and how the answer came about."""
    problem = solution.problem
    if solution.values is None:
        return card("Solution: no labelling", sentence(str(solution.status)))
    names = zip(problem.structure.kinds, solution.names, strict=True)
    header, rows = ["variable", "kind", "label"], [[v, kind.name, name] for v, (kind, name) in enumerate(names)]
    if not problem.lazy:
        header, costs = [*header, "cost"], problem.cost[problem.graph.first[: problem.n_variables] + solution.labels]
        rows = [[*row, cost] for row, cost in zip(rows, costs.tolist(), strict=True)]
    checked = problem.check(solution.labels)
    broken = *checked.violations, *checked.paid
    cost = "some costs not computed" if np.isnan(solution.cost) else f"cost {solution.cost:,.6g}"
    known = f" Nothing costs less than {solution.bound:,.6g}." if np.isfinite(solution.bound) else ""
    return card(
        f"Solution: {cost if solution.valid else 'invalid'}",
        sentence(f"{solution.status}{'' if solution.status.optimal else known}"),
        *(sentence(f"{violation}.") for violation in broken[:FEW]),
        table(header, rows, len(rows)),
    )


def of_solutions(solutions: Solutions) -> str:
    """Shows how many answers came about in which way, and the first of them."""
    n = len(solutions)
    ways = Counter(zip(solutions.status.tolist(), solutions.source.tolist(), strict=True)).most_common()
    first = [solutions[p] for p in range(min(n, FEW))]
    answers = ([p, "—" if each.values is None else _several(each.names), each.cost] for p, each in enumerate(first))
    return card(
        f"Solutions: {n:,}, of which {int(solutions.valid.sum()):,} valid, {int(solutions.proved.sum()):,} proved",
        table(["answers", "by", "how"], ([k, SOURCES[by], STATUSES[how]] for (how, by), k in ways), len(ways)),
        table(["problem", "labels", "cost"], answers, n),
    )


def _counts(*counted: tuple[int, str]) -> str:
    return ", ".join(count(n, what) for n, what in counted)


def _size(structure: Structure) -> str:
    return _counts((structure.n_variables, "variable"), (len(structure.factors), "factor"), (structure.n_rules, "rule"))


def _several(names: Sequence[str]) -> str:
    return ", ".join([*names[:FEW], "…"] if len(names) > FEW else names)


def _roles(kind: FactorKind) -> str:
    return ", ".join(f"{role}={of.name}" for role, of in kind.roles.items())


def _table(kind: FactorKind) -> str:
    if kind.table is None:
        return "none"
    forbidden = int(np.isposinf(kind.table).sum())
    costly = np.count_nonzero(kind.table) - forbidden
    return f"{forbidden:,} of {kind.size:,} forbidden" + (f", {costly:,} costly" if costly else "")


def _limits(rule: KindRule | Rule) -> str:
    limits = (f"at least {rule.low:g}", rule.low), (f"at most {rule.high:g}", rule.high)
    needs = " and ".join(words for words, limit in limits if np.isfinite(limit))
    needs = f"exactly {rule.low:g}" if rule.low == rule.high else needs
    return needs if rule.price is None else f"{needs}, or pay {rule.price:g}{' per unit' if rule.per_unit else ''}"


def _counted(schema: Schema, rule: KindRule) -> str:
    kinds = list(schema.variables.values())
    names = [kinds[k].labels[i] for k, weights in rule.weights.items() for i in np.flatnonzero(weights)]
    return _several(names)


def _cheapest(problem: Problem, variable: int) -> str:
    costs, labels = problem.costs_of(variable), problem.structure.kinds[variable].labels
    order = np.argsort(costs, kind="stable")
    return _several([f"{labels[i]} {costs[i]:.4g}" for i in order[: FEW + 1]])
