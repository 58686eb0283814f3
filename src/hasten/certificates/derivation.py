"""The state of a certificate while it is written, in floating point: what `hasten.certificate` keeps exactly.

Functions are arrays over all labels of their variables, with inf for labels that are ruled out. Each function keeps its
*min-marginals*: the least entry for each label of each of its variables. What a label costs at least is then the
bound, plus how far the min-marginals of its variable's functions lie above their least entries.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hasten.support.arrays import FloatArray, IntArray

Scope = tuple[int, ...]


class Derivation:
    """Functions whose sum is at most what a labelling costs; the costs of variable `v` are function `~v`."""

    def __init__(self, costs: Sequence[FloatArray]) -> None:
        self.scopes: dict[int, Scope] = {}
        self.entries: dict[int, FloatArray] = {}
        self.marginals: dict[int, list[FloatArray]] = {}  # by function and axis
        self.least: dict[int, float] = {}
        self.touching: list[frozenset[int]] = [frozenset() for _ in costs]
        self.left: list[IntArray] = [np.arange(len(cost)) for cost in costs]
        self.sizes = [len(cost) for cost in costs]
        self.constant = 0.0
        self.n_tables = 0
        self.gone: set[int] = set()
        self.prices: dict[int, float] = {}  # by row: its multiplier
        for v, cost in enumerate(costs):
            self.put(~v, (v,), cost)

    def copy(self) -> Derivation:
        """Returns a derivation that may change without this one; arrays are shared, and never changed in place."""
        other = object.__new__(Derivation)
        parts = vars(self).items()
        vars(other).update((name, part.copy() if isinstance(part, list | dict | set) else part) for name, part in parts)
        return other

    @property
    def bound(self) -> float:
        """The least that a labelling can cost."""
        return self.constant + math.fsum(self.least.values()) if math.inf not in self.least.values() else math.inf

    @property
    def decided(self) -> bool:
        """Whether each variable has one label left."""
        return all(left.size == 1 for v, left in enumerate(self.left) if v not in self.gone)

    def put(self, key: int, scope: Scope, entries: FloatArray) -> None:
        """Adds a function, or gives it other entries."""
        if key not in self.scopes:
            self.scopes[key] = scope
            for v in scope:
                self.touching[v] |= {key}
        self.entries[key] = entries
        if key < 0:
            self.left[~key] = np.flatnonzero(np.isfinite(entries))
        axes = range(len(scope))
        self.marginals[key] = [entries.min(axis=tuple(a for a in axes if a != axis)) for axis in axes]
        self.least[key] = float(self.marginals[key][0].min())

    def add_table(self, scope: Scope, entries: FloatArray) -> None:
        """Adds a table; one of a single variable joins its costs, one of none is a constant."""
        if len(scope) > 1:
            self.put(self.n_tables, scope, entries)
        elif scope:
            self.put(~scope[0], scope, self.entries[~scope[0]] + entries)
        else:
            self.constant += float(entries)
        self.n_tables += 1

    def n_sums(self, v: int) -> int:
        """Returns how many sums eliminating a variable takes."""
        around = {u for key in self.touching[v] for u in self.scopes[key]}
        return math.prod(self.sizes[u] for u in around)

    def eliminate(self, v: int) -> None:
        """Replaces all functions of a variable by the least of their sum."""
        keys = sorted(self.touching[v])
        around = sorted({u for key in keys for u in self.scopes[key]} - {v})
        axes, total = [*around, v], np.zeros(())
        for key in keys:
            scope = self.scopes[key]
            order = np.argsort([axes.index(u) for u in scope])
            shape = [self.sizes[u] if u in scope else 1 for u in axes]
            total = total + self.entries[key].transpose(order).reshape(shape)
        for key in keys:
            for u in self.scopes.pop(key):
                self.touching[u] -= {key}
            del self.entries[key], self.marginals[key], self.least[key]
        self.gone.add(v)
        self.add_table(tuple(around), np.broadcast_to(total, total.shape).min(axis=-1))

    def shift(self, key: int, v: int, message: FloatArray) -> None:
        """Adds a number for each label of a variable to the entries of a function."""
        scope = self.scopes[key]
        self.put(key, scope, self.entries[key] + message.reshape([-1 if u == v else 1 for u in scope]))

    def restrict(self, v: int, labels: IntArray) -> None:
        """Leaves only some labels of a variable."""
        out = np.ones(self.sizes[v], dtype=bool)
        out[labels] = False
        barrier = np.where(out, np.inf, 0.0)
        for key in self.touching[v]:
            self.shift(key, v, barrier)

    def reduced(self, v: int) -> FloatArray:
        """Returns how much more than the bound each label of a variable costs at least."""
        with np.errstate(invalid="ignore"):
            above = [self.marginals[key][self.scopes[key].index(v)] - self.least[key] for key in self.touching[v]]
        return np.asarray(np.nan_to_num(np.sum(above, axis=0), nan=np.inf, posinf=np.inf))
