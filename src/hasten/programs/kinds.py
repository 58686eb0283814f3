"""Kinds that carry over: variables and tables that play the same part share one kind, however large a program is.

Variables are of one kind if their labels are called alike, up to indices, and take the same values. Where names say
nothing (`x1`, `x2`), one round of colour refinement tells apart what the tables tell apart. Tables are of one kind if
they hold the same costs over the same kinds, in some order of those of one kind.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from hashlib import sha256
from itertools import count, permutations, product

import numpy as np

from hasten.kernels.tolerance import SLACK
from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.programs.state import Cells, FactorKey, Parts, Recognised, Tables, VariableKey
from hasten.support.arrays import FloatArray

MAX_ORDERS = 24  # of the roles of one table
_NUMBER = re.compile(r"\d+")


def find_parts(found: Recognised) -> None:
    """Finds the part that each variable and each table plays."""
    space, tables = found.space, found.tables
    if not space.n_variables:
        return found.fix_all(space.fixed)
    names = [_labels_of(found, v) for v in range(space.n_variables)]
    colour = [""] * space.n_variables
    if len({name for name, _ in names}) == 1 and names[0][0].count("#") < 2:  # `x1`, `x2` and so on tell nothing
        colour = _refined(space.n_variables, tables)
    parts = found.parts = Parts([(name, labels, c) for (name, labels), c in zip(names, colour, strict=True)])
    rank = {key: n for n, key in enumerate(sorted(set(parts.variables)))}
    ranks = [rank[key] for key in parts.variables]
    known: dict[tuple[tuple[int, ...], bytes], tuple[tuple[int, ...], FactorKey]] = {}
    for scope, table in tables.table.items():
        seen = tuple(ranks[v] for v in scope), table.tobytes()
        if seen not in known:
            order, costs = _canonical(seen[0], table)
            known[seen] = order, (tuple(parts.variables[scope[i]] for i in order), costs.tobytes())
        order, key = known[seen]
        parts.factors.append((tuple(scope[i] for i in order), key, tables.name[scope]))
    return None


def _labels_of(found: Recognised, v: int) -> tuple[str, tuple[str, ...]]:
    """Returns the name of a variable, and its labels."""
    space, columns = found.space, found.statement.columns
    own = slice(int(space.first[v]), int(space.first[v + 1]))
    named, values = space.column[own].tolist(), space.value[own].tolist()
    if len(named) > 1 and min(named) >= 0 and len(set(named)) == 1:  # one column, several values
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
                    self.factors[part] = self._declare(part, _fresh(skeleton(name), taken))

    def _declare(self, key: FactorKey, name: str) -> FactorKind:
        kinds = [self.variables[each] for each in key[0]]
        costs = np.frombuffer(key[1]).reshape([len(kind) for kind in kinds])
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


def build_structure(found: Recognised, kinds: Kinds) -> Structure:
    """Builds the structure of a recognised program, with kinds that know all its parts."""
    structure, keys, cells = kinds.schema.structure(), found.parts.variables, found.rules
    for key in keys:
        structure.add(kinds.variables[key])
    for scope, part, _ in found.parts.factors:
        kind = kinds.factors[part]
        structure.connect(kind, **dict(zip(kind.roles, scope, strict=True)))
    if found.infeasible:
        structure.rule("no answer is possible", [(0, keys[0][1][0], 1.0)], at_least=2.0)
    variable = found.space.variable[cells.label]
    at = np.searchsorted(cells.row, np.arange(cells.n_rows + 1))
    label = (cells.label - found.space.first[variable]).tolist()
    variables, weights = variable.tolist(), cells.weight.tolist()
    low, high = limits_before_slack(cells)
    for r in range(cells.n_rows):
        terms = [(variables[k], keys[variables[k]][1][label[k]], weights[k]) for k in range(at[r], at[r + 1])]
        limits = {} if low[r] == -np.inf else {"at_least": low[r]}
        limits |= {} if high[r] == np.inf else {"at_most": high[r]}
        structure.rule(found.statement.rows[cells.source[r]], terms, **limits)
    return structure


def limits_before_slack(cells: Cells) -> tuple[FloatArray, FloatArray]:
    """Returns the limits of rules without the slack that a structure adds where weights are not whole."""

    def inverse(most: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore"):
            near = np.abs(most - SLACK) <= 1.0
            far = np.where(most > 0, most / (1 + SLACK), most / (1 - SLACK))
            return np.where(np.isinf(most) | cells.whole, most, np.where(near, most - SLACK, far))

    return -inverse(-cells.least), inverse(cells.most)


def skeleton(name: str) -> str:
    """Returns a name with `#` for each of its numbers.

    >>> skeleton("r[3,4,LiveIn]")
    'r[#,#,LiveIn]'
    """
    return _NUMBER.sub("#", name)


def name_labels(columns: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """Returns the name of a variable, and its labels, given the names of the columns that they set to 1.

    Numbers that all columns share say which variable it is, others belong to the label; if they share none, labels are
    numbered in the order of the columns.

    >>> name_labels(["e[3,person]", "e[3,place]"])
    ('e[#,person]', ('e[#,person]', 'e[#,place]'))
    >>> name_labels(["x_3_0", "x_3_1"])
    ('x_#_#', ('x_#_0', 'x_#_1'))
    >>> name_labels(["x3", "x4"])
    ('x#', ('x# 0', 'x# 1'))
    """
    bones = [skeleton(name) for name in columns]
    numbers = [_NUMBER.findall(name) for name in columns]
    width = min(len(each) for each in numbers)
    shared = [place for place in range(width) if len({each[place] for each in numbers}) == 1]
    if len(columns) == 1:
        return bones[0], (bones[0],)
    labels = [_without_shared(name, shared) for name in columns]
    if len(set(labels)) < len(labels) or (not shared and all(numbers)):
        labels = [f"{bone} {n}" for n, bone in enumerate(bones)]
    return bones[0], tuple(labels)


def _without_shared(name: str, shared: list[int]) -> str:
    """Returns a name with `#` for some of its numbers, by their places."""
    place = count()
    return _NUMBER.sub(lambda found: "#" if next(place) in shared else found.group(), name)
