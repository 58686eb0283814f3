"""Messages and multipliers that raise a bound: block coordinate ascent, one table or row at a time.

A table takes the costs of its variables, then gives each an equal share of its min-marginals. A row takes the
multiplier at which the bound is highest: the bound is concave in that, and piecewise linear.
"""

from __future__ import annotations

import math

import numpy as np

from hasten.certificates.derivation import Derivation
from hasten.support.arrays import FloatArray

GAIN = 1e-3  # of the gap to the target: sweeps that gain less than that end
BISECTIONS = 60


class Sweeps:
    """The messages of a state's tables, and the multipliers of its rows."""

    def __init__(self, state: Derivation, rows: list[dict[int, FloatArray]], low: FloatArray, high: FloatArray) -> None:
        self.tables = {key: (state.scopes[key], state.entries[key]) for key in sorted(state.scopes) if key >= 0}
        self.costs = {
            v: np.where(np.isfinite(c := state.entries[~v]), c, 0.0)
            for v in range(len(state.sizes))
            if v not in state.gone
        }
        self.forbidden = {v: np.isinf(state.entries[~v]) for v in self.costs}
        self.messages = {(key, v): np.zeros(state.sizes[v]) for key, (scope, _) in self.tables.items() for v in scope}
        self.rows, self.low, self.high = rows, low, high
        self.multipliers = np.zeros(len(rows))

    def run(self, target: float, most: int = 100) -> None:
        """Sweeps until the bound meets the target, or rises too little."""
        before = -math.inf
        for n in range(most):
            keys = list(self.tables)
            for key in keys if n % 2 == 0 else reversed(keys):
                self.update_table(key)
            for r in range(len(self.rows)):
                self.update_row(r)
            bound = self.bound()
            if bound >= target or bound - before < GAIN * (target - bound):
                return
            before = bound

    def bound(self) -> float:
        """Returns the bound, but for constants."""
        total = sum(float(np.where(self.forbidden[v], np.inf, cost).min()) for v, cost in self.costs.items())
        for u, low, high in zip(self.multipliers.tolist(), self.low.tolist(), self.high.tolist(), strict=True):
            total += u * (low if u > 0 else high) if u else 0.0
        return total + sum(float(self.rest(key).min()) for key in self.tables)

    def rest(self, key: int) -> FloatArray:
        """Returns a table without what it sent."""
        scope, entries = self.tables[key]
        for axis, v in enumerate(scope):
            sent = np.where(self.forbidden[v], -np.inf, self.messages[key, v])
            entries = entries - sent.reshape([-1 if a == axis else 1 for a in range(len(scope))])
        return entries

    def update_table(self, key: int) -> None:
        """Gives the variables of a table equal shares of its min-marginals, their costs included; then what is left."""
        scope, entries = self.tables[key]
        axes = range(len(scope))
        total = entries
        for axis, v in enumerate(scope):
            self.costs[v] = self.costs[v] - self.messages[key, v]
            cost = np.where(self.forbidden[v], np.inf, self.costs[v])
            total = total + cost.reshape([-1 if a == axis else 1 for a in axes])
        for axis, v in enumerate(scope):
            marginal = total.min(axis=tuple(a for a in axes if a != axis)) / len(scope)
            self._send(key, v, np.where(np.isfinite(marginal), marginal - self.costs[v], 0.0), replace=True)
        for axis, v in enumerate(scope):
            marginal = self.rest(key).min(axis=tuple(a for a in axes if a != axis))
            self._send(key, v, np.where(np.isfinite(marginal), marginal, 0.0))

    def _send(self, key: int, v: int, more: FloatArray, replace: bool = False) -> None:
        self.messages[key, v] = more if replace else self.messages[key, v] + more
        self.costs[v] = self.costs[v] + more

    def update_row(self, r: int) -> None:
        """Sets a row's multiplier to where the bound is highest."""
        weights, before = self.rows[r], self.multipliers[r]
        if not weights or not weights.keys() <= self.costs.keys():
            return
        free = {v: self.costs[v] + before * each for v, each in weights.items()}

        def slope(u: float) -> float:
            """Returns how the bound changes with the multiplier: the limit less the activity of the cheapest labels."""
            activity = 0.0
            for v, each in weights.items():
                cost = np.where(self.forbidden[v], np.inf, free[v] - u * each)
                activity += float(each[cost.argmin()])
            return float(self.low[r] if u > 0 else self.high[r]) - activity

        scale = 1.0 + max(float(np.ptp(cost)) for cost in free.values())
        if slope(1e-300) <= 0 <= slope(-1e-300):
            best = 0.0
        else:
            low, high = (0.0, 1.0) if slope(1e-300) > 0 else (-1.0, 0.0)
            while low == 0.0 and slope(high) > 0 and high < 1e6 * scale:
                high *= 2.0
            while high == 0.0 and slope(low) < 0 and low > -1e6 * scale:
                low *= 2.0
            for _ in range(BISECTIONS):
                middle = (low + high) / 2
                low, high = (middle, high) if slope(middle) > 0 else (low, middle)
            best = high if low == 0.0 else low if high == 0.0 else (low + high) / 2
        for v, each in weights.items():
            self.costs[v] = free[v] - best * each
        self.multipliers[r] = best
