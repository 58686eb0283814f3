"""Schemas, structures, problems, batches and solutions as notebooks show them: a title, sentences, a small table.

Looking changes nothing: no structure is closed, no lazy cost computed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.rules import KindRule, Rule
from hasten.model.schema import Schema
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions
from hasten.model.structure import Structure
from hasten.support.words import MOST_ROWS, card, count

FEW = 5  # labels, or broken constraints, that stand for the others


def card_of(thing: Any) -> str:
    """Returns the card of one of them: what it is and its size, and its parts one by one."""
    rows: list[list[Any]] = []
    header, words, n = ["name", "is a", "of"], list[str](), -1
    if isinstance(thing, Schema):
        rows += [[kind.name, "variable kind", _few(kind.labels)] for kind in thing.variables.values()]
        for name, factor in thing.factors.items():
            rows.append([name, "factor kind", ", ".join(f"{role}={of.name}" for role, of in factor.roles.items())])
        rows += [[rule.name, "rule", _limits(rule)] for rule in thing.rules.values()]
        sizes = ("variable kind", thing.variables), ("factor kind", thing.factors), ("rule", thing.rules)
        title = f"Schema: {', '.join(count(len(each), name) for name, each in sizes)}"
    elif isinstance(thing, Structure):
        title, header = repr(thing), ["kind", "how many"]
        rows += map(list, Counter(kind.name for kind in thing.kinds).items())
        rows += map(list, Counter(factor.kind.name for factor in thing.factors).items())
        rows += [[rule.name, _limits(rule)] for rule in thing.rules]
    elif isinstance(thing, Problem):
        title, kinds = repr(thing), thing.structure.kinds
        header = ["variable", "kind", "labels and costs, cheapest first"]
        for v, kind in enumerate(kinds[:MOST_ROWS]):
            costs = np.zeros(len(kind)) if thing.lazy else thing.costs_of(v)
            first = np.argsort(costs, kind="stable")[: FEW + 1].tolist()
            rows.append([v, kind.name, _few([kind.labels[i] + f" {costs[i]:.4g}" * (not thing.lazy) for i in first])])
        n, words = len(kinds), ["Its costs are computed on demand."] * thing.lazy
    elif isinstance(thing, Batch):
        numbers = np.bincount(thing.structure, minlength=len(thing.structures))
        order = np.argsort(-numbers, kind="stable")[: np.count_nonzero(numbers)]
        title, header, n = repr(thing), ["problems", "structure"], len(order)
        rows += [[int(numbers[s]), repr(thing.structures[s])] for s in order[:MOST_ROWS]]
        words = ["Its costs are computed on demand."] * thing.lazy
    elif isinstance(thing, Solution):
        cost = "some costs not computed" if np.isnan(thing.cost) else f"cost {thing.cost:,.6g}"
        title = f"Solution: {'no labelling' if thing.values is None else cost if thing.valid else 'invalid'}"
        known = thing.values is not None and np.isfinite(thing.bound) and not thing.status.optimal
        words = [f"{thing.status} Nothing costs less than {thing.bound:,.6g}." if known else str(thing.status)]
        if thing.values is not None:
            checked, header = thing.problem.check(thing.labels), ["variable", "kind", "label"]
            words += [f"{each}." for each in (*checked.violations, *checked.paid)][:FEW]
            kinds = thing.problem.structure.kinds
            rows += [[v, kind.name, name] for v, (kind, name) in enumerate(zip(kinds, thing.names, strict=True))]
    else:
        assert isinstance(thing, Solutions)
        valid, proved = int(thing.valid.sum()), int(thing.proved.sum())
        title = f"Solutions: {len(thing):,}, of which {valid:,} valid, {proved:,} proved"
        header = ["answers", "by", "how"]
        ways = Counter(zip(thing.source.tolist(), thing.status.tolist(), strict=True))
        rows += [[k, SOURCES[by], STATUSES[how]] for (by, how), k in ways.most_common()]
    return card(title, *words, (header, rows, max(n, len(rows))))


def _few(names: Sequence[str]) -> str:
    return ", ".join([*names[:FEW], "…"] if len(names) > FEW else names)


def _limits(rule: KindRule | Rule) -> str:
    limits = (f"at least {rule.low:g}", rule.low), (f"at most {rule.high:g}", rule.high)
    needs = " and ".join(words for words, limit in limits if np.isfinite(limit))
    needs = f"exactly {rule.low:g}" if rule.low == rule.high else needs
    return needs if rule.price is None else f"{needs}, or pay {rule.price:g}{' per unit' if rule.per_unit else ''}"
