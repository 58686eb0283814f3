"""Schemas, structures, problems, batches and solutions as notebooks show them: a title, sentences, small tables.

Looking changes nothing: no structure is closed, no lazy cost computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from hasten.model.batch import Batch
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.model.rules import KindRule, Rule
from hasten.model.schema import Schema
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions
from hasten.model.structure import Structure
from hasten.support.html import MOST_ROWS, card
from hasten.support.words import count

FEW = 5  # answers or labels that stand for the others
ON_DEMAND = "Its costs are computed on demand."


def of_schema(schema: Schema) -> str:
    """Shows the kinds and rules of a schema."""
    kinds, factors, rules = list(schema.variables.values()), schema.factors.values(), schema.rules.values()

    def table(kind: FactorKind) -> str:
        forbidden = 0 if kind.table is None else int(np.isposinf(kind.table).sum())
        costly = 0 if kind.table is None else int(np.count_nonzero(kind.table)) - forbidden
        return "none" if kind.table is None else f"{forbidden:,} of {kind.size:,} forbidden" + _if(costly, "costly")

    def counted(rule: KindRule) -> str:
        return _few([kinds[k].labels[i] for k, weights in rule.weights.items() for i in np.flatnonzero(weights)])

    title = f"{count(len(kinds), 'variable kind')}, {count(len(factors), 'factor kind')}, {count(len(rules), 'rule')}"
    return card(
        f"Schema: {title}",
        (["variable kind", "labels", ""], ([kind.name, len(kind), _few(kind.labels)] for kind in kinds), len(kinds)),
        (["factor kind", "over", "table"], ([kind.name, _roles(kind), table(kind)] for kind in factors), len(factors)),
        (["rule", "needs", "of"], ([rule.name, _limits(rule), counted(rule)] for rule in rules), len(rules)),
    )


def of_structure(structure: Structure) -> str:
    """Shows a structure's variables and factors by kind, and its rules one by one."""
    known, variables = structure.schema, Counter(kind.name for kind in structure.kinds)
    factors, rules = Counter(factor.kind.name for factor in structure.factors), structure.rules
    kinds = ([name, n, _few(known.variables[name].labels)] for name, n in variables.items())
    scopes = ([name, n, _roles(known.factors[name])] for name, n in factors.items())
    limits = ([rule.name, _limits(rule), count(len(rule.terms), "label")] for rule in rules)
    return card(
        f"Structure: {_size(structure)}",
        (["variable kind", "variables", "labels"], kinds, len(variables)),
        (["factor kind", "factors", "over"], scopes, len(factors)),
        (["rule", "needs", "of"], limits, len(rules)),
    )


def of_problem(problem: Problem) -> str:
    """Shows a problem's variables with their cheapest labels; of a lazy one, with their labels."""
    kinds, title = problem.structure.kinds, f"Problem: {_size(problem.structure)}"
    if problem.lazy:
        rows = ([v, kind.name, _few(kind.labels)] for v, kind in enumerate(kinds))
        return card(title, ON_DEMAND, (["variable", "kind", "labels"], rows, len(kinds)))

    def cheapest(v: int) -> str:
        costs = problem.costs_of(v)
        return _few([f"{kinds[v].labels[i]} {costs[i]:.4g}" for i in np.argsort(costs, kind="stable")[: FEW + 1]])

    rows = ([v, kind.name, cheapest(v)] for v, kind in enumerate(kinds))
    return card(title, (["variable", "kind", "labels and costs, cheapest first"], rows, len(kinds)))


def of_batch(batch: Batch) -> str:
    """Shows how many problems of a batch have which structure, the most common first."""
    numbers = np.bincount(batch.structure, minlength=len(batch.structures))
    order = np.argsort(-numbers, kind="stable")[: np.count_nonzero(numbers)]
    shapes = [(int(numbers[s]), batch.structures[s]) for s in order[:MOST_ROWS]]
    rows = ([n, each.n_variables, len(each.factors), each.n_rules] for n, each in shapes)
    title = f"Batch: {count(len(batch), 'problem')}, {count(len(order), 'structure')}"
    shown = (["problems", "variables", "factors", "rules"], rows, len(order))
    return card(title, ON_DEMAND, shown) if batch.lazy else card(title, shown)


def of_solution(solution: Solution) -> str:
    """Shows the label of each variable, and how the answer came about."""
    problem = solution.problem
    if solution.values is None:
        return card("Solution: no labelling", str(solution.status))
    names = zip(problem.structure.kinds, solution.names, strict=True)
    header, rows = ["variable", "kind", "label"], [[v, kind.name, name] for v, (kind, name) in enumerate(names)]
    if not problem.lazy:
        header, costs = [*header, "cost"], problem.cost[problem.graph.first[: problem.n_variables] + solution.labels]
        rows = [[*row, cost] for row, cost in zip(rows, costs.tolist(), strict=True)]
    checked = problem.check(solution.labels)
    broken = [f"{each}." for each in (*checked.violations, *checked.paid)][:FEW]
    cost = "some costs not computed" if np.isnan(solution.cost) else f"cost {solution.cost:,.6g}"
    known = np.isfinite(solution.bound) and not solution.status.optimal
    how = f"{solution.status} Nothing costs less than {solution.bound:,.6g}." if known else str(solution.status)
    return card(f"Solution: {cost if solution.valid else 'invalid'}", how, *broken, (header, rows, len(rows)))


def of_solutions(solutions: Solutions) -> str:
    """Shows how many answers came about in which way, and the first of them."""
    n, ways = len(solutions), Counter(zip(solutions.status.tolist(), solutions.source.tolist(), strict=True))
    first = [solutions[p] for p in range(min(n, FEW))]
    answers = ([p, "—" if each.values is None else _few(each.names), each.cost] for p, each in enumerate(first))
    rows = ([k, SOURCES[by], STATUSES[how]] for (how, by), k in ways.most_common())
    return card(
        f"Solutions: {n:,}, of which {int(solutions.valid.sum()):,} valid, {int(solutions.proved.sum()):,} proved",
        (["answers", "by", "how"], rows, len(ways)),
        (["problem", "labels", "cost"], answers, n),
    )


def _size(structure: Structure) -> str:
    n_variables, n_factors = count(structure.n_variables, "variable"), count(structure.n_factors, "factor")
    return f"{n_variables}, {n_factors}, {count(structure.n_rules, 'rule')}"


def _few(names: Sequence[str]) -> str:
    return ", ".join([*names[:FEW], "…"] if len(names) > FEW else names)


def _if(n: int, word: str) -> str:
    return f", {n:,} {word}" if n else ""


def _roles(kind: FactorKind) -> str:
    return ", ".join(f"{role}={of.name}" for role, of in kind.roles.items())


def _limits(rule: KindRule | Rule) -> str:
    limits = (f"at least {rule.low:g}", rule.low), (f"at most {rule.high:g}", rule.high)
    needs = " and ".join(words for words, limit in limits if np.isfinite(limit))
    needs = f"exactly {rule.low:g}" if rule.low == rule.high else needs
    return needs if rule.price is None else f"{needs}, or pay {rule.price:g}{' per unit' if rule.per_unit else ''}"
