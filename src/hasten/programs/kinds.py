"""Kinds that carry over: variables and tables that play the same part share one kind.

Two variables are of one kind if their labels are called alike, up to indices, and take the same values. Where names say
nothing (`x1`, `x2`, …), colour refinement tells apart what the tables tell apart, one round of it: more would tell the
end of a chain from its middle. Two tables are of one kind if they hold the same costs over the same kinds of variables,
in some order of those of one kind. None of this depends on how large a program is, so that `Kinds` can serve many.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import permutations, product

import numpy as np

from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.schema import Schema
from hasten.programs.labels import Space
from hasten.programs.names import name_labels, skeleton
from hasten.programs.tables import Scope, Tables
from hasten.support.arrays import FloatArray

MAX_ORDERS = 24  # of the roles of one table
VariableKey = tuple[str, tuple[str, ...], str]  # a name, labels, a colour
FactorKey = tuple[tuple[VariableKey, ...], bytes]


@dataclass(slots=True)
class Parts:
    """Which part each variable and each table of a program plays: its key."""

    variables: list[VariableKey]
    factors: list[tuple[Scope, FactorKey, str]] = field(default_factory=list)
    tables: dict[FactorKey, FloatArray] = field(default_factory=dict)


def find_parts(space: Space, columns: Sequence[str], tables: Tables) -> Parts:
    """Returns the part that each variable and each table plays."""
    names = [_labels_of(space, v, columns) for v in range(space.n_variables)]
    colour = [""] * space.n_variables
    if len({name for name, _ in names}) == 1 and names[0][0].count("#") < 2:  # `x1`, `x2` and so on tell nothing
        colour = _refined(space.n_variables, tables)
    parts = Parts([(name, labels, c) for (name, labels), c in zip(names, colour, strict=True)])
    rank = {key: n for n, key in enumerate(sorted(set(parts.variables)))}
    ranks = [rank[key] for key in parts.variables]
    known: dict[tuple[tuple[int, ...], bytes], tuple[tuple[int, ...], FactorKey]] = {}
    for scope, table in tables.table.items():
        seen = tuple(ranks[v] for v in scope), table.tobytes()
        if seen not in known:
            order, costs = _canonical(seen[0], table)
            key = tuple(parts.variables[scope[i]] for i in order), costs.tobytes()
            parts.tables[key] = costs
            known[seen] = order, key
        order, key = known[seen]
        parts.factors.append((tuple(scope[i] for i in order), key, tables.name[scope]))
    return parts


def _labels_of(space: Space, v: int, columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns what a variable is called, and its labels."""
    at = range(int(space.first[v]), int(space.first[v + 1]))
    named = [int(space.column[label]) for label in at]
    values = [float(space.value[label]) for label in at]
    if len({j for j in named if j >= 0}) == 1 and len(named) > 1 and min(named) >= 0:  # one column, several values
        return skeleton(columns[named[0]]), tuple(f"{value:g}" if abs(value) < 1e6 else repr(value) for value in values)
    called, labels = name_labels([columns[j] for j in named if j >= 0])
    labelled = iter(labels)
    return called, tuple(next(labelled) if j >= 0 else "none" for j in named)


def _refined(n_variables: int, tables: Tables) -> list[str]:
    """Returns a colour for each variable: one round of refinement, by the set of tables that it is in, and where."""
    seen: list[set[bytes]] = [set() for _ in range(n_variables)]
    views: dict[int, list[bytes]] = {}  # by table: what each of its axes sees, whatever the order of the others
    for scope, table in tables.table.items():
        if id(table) not in views:
            fronts = (np.moveaxis(table, slot, 0).reshape(table.shape[slot], -1) for slot in range(table.ndim))
            views[id(table)] = [np.sort(front, axis=1).tobytes() for front in fronts]
        for view, v in zip(views[id(table)], scope, strict=True):
            seen[v].add(view)
    return [sha256(repr(sorted(each)).encode()).hexdigest()[:16] for each in seen]


def _canonical(ranks: tuple[int, ...], table: FloatArray) -> tuple[tuple[int, ...], FloatArray]:
    """Returns the order of a table's axes that all tables of its kind have, and the table in that order."""
    by_rank = defaultdict(list)
    for axis, rank in enumerate(ranks):
        by_rank[rank].append(axis)
    groups = [by_rank[rank] for rank in sorted(by_rank)]
    orders: Iterable[tuple[int, ...]] = (
        tuple(axis for group in choice for axis in group) for choice in product(*map(permutations, groups))
    )
    n_orders = int(np.prod([np.prod(np.arange(1, len(group) + 1)) for group in groups]))
    if n_orders > MAX_ORDERS:
        orders = [tuple(axis for group in groups for axis in group)]
    tried = [(np.ascontiguousarray(table.transpose(order)), order) for order in orders]
    costs, order = min(tried, key=lambda each: each[0].tobytes())
    return order, costs


class Kinds:
    """The kinds of one schema, by the parts that they stand for."""

    def __init__(self, parts: Iterable[Parts]) -> None:
        self.schema = Schema()
        self.variables: dict[VariableKey, VariableKind] = {}
        self.factors: dict[FactorKey, FactorKind] = {}
        taken: Counter[str] = Counter()
        parts = list(parts)
        for each in parts:
            for key in each.variables:
                if key not in self.variables:
                    self.variables[key] = self.schema.variable(_fresh(key[0], taken), key[1])
        for each in parts:
            for _, part, name in each.factors:
                if part not in self.factors:
                    self.factors[part] = self._declare(part, _fresh(skeleton(name), taken), each.tables[part])

    def _declare(self, key: FactorKey, name: str, costs: FloatArray) -> FactorKind:
        kinds = [self.variables[each] for each in key[0]]
        roles = {f"{kind.name} {n}": kind for n, kind in enumerate(kinds, start=1)}
        return self.schema.factor(name, learned=True, **roles).set_table(costs)

    def know(self, parts: Parts) -> bool:
        """Whether all parts of a program are among these kinds."""
        return set(parts.variables) <= set(self.variables) and {key for _, key, _ in parts.factors} <= set(self.factors)


def _fresh(name: str, taken: Counter[str]) -> str:
    """Returns a name that was not given out before: the second `x` is `x (2)`."""
    taken[name] += 1
    chosen = name or "part"
    while taken[name] > 1 and taken[f"{name} ({taken[name]})"]:
        taken[name] += 1
    if taken[name] > 1:
        chosen = f"{name} ({taken[name]})"
        taken[chosen] += 1
    return chosen
