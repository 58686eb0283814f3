"""Writing a certificate: the problem, a proved answer, and steps that show that nothing costs less.

Variables that take few sums are eliminated; messages and multipliers raise the bound of what is left; then labels are
split until each part costs as much as the answer. The optimum is known, so every part is closed as soon as it can be.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hasten import certificate as checker
from hasten.certificates.derivation import Derivation
from hasten.certificates.parts import Node, Rows
from hasten.certificates.sweeps import Sweeps
from hasten.errors import ProblemError
from hasten.kernels.tolerance import EXACT, FINE, TOLERANCE
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.files import write_whole
from hasten.support.words import count

MOST_NODES = 200_000
MOST_SUMS = 5_000  # of one elimination
UNPROVED = -(1 << 1099)  # a lower limit that holds of everything


@dataclass(frozen=True, slots=True)
class Certificate:
    """A proof that no labelling costs less than `lower`, and that the answer costs at most `upper`.

    Made by `Certifier.certificate`. `hasten.certificate`, which shares no code with the package, checks its lines.
    """

    lower: float
    upper: float
    lines: tuple[str, ...] = field(repr=False)

    @classmethod
    def of(cls, answer: Solution) -> Certificate:
        """Writes down why an answer is proved; of one that is not, what every labelling costs at least."""
        problem, values, unit = answer.problem, answer.values, _unit(answer.problem)
        writer = Writer(problem)
        at, cost = len(writer.lines), math.inf if values is None else answer.cost
        upper = "inf" if values is None else _upper(problem, values)
        labels = None if values is None else values.tolist()
        writer.step("claim", UNPROVED, upper, labels, unit)
        target = cost
        if math.isfinite(cost):
            slack = FINE * TOLERANCE * max(abs(cost), min(1.0, writer.size))
            target = cost - (unit - slack if unit else slack)
        writer.eliminate(MOST_SUMS)
        writer.forbid()
        if math.isfinite(cost):
            writer.raise_bound(target)
        writer.close(target if answer.proved else -math.inf)
        lower = _below(checker.check(writer.lines)[0])
        writer.lines[at] = json.dumps(["claim", "inf" if lower == math.inf else lower, upper, labels, unit])
        return cls(lower, math.inf if values is None else float(upper), tuple(writer.lines))

    def save(self, path: str | Path) -> None:
        """Writes the file that `python -m hasten.certificate` checks."""
        write_whole(Path(path), "".join(f"{line}\n" for line in self.lines).encode())

    def __str__(self) -> str:
        if self.lower == math.inf:
            return f"No labelling is valid, in {count(len(self.lines), 'step')}."
        return f"{self.lower!r} ≤ optimum ≤ {self.upper!r}, in {count(len(self.lines), 'step')}."


class Writer:
    """Lays the steps of a certificate, and keeps the state that they lead to."""

    def __init__(self, problem: Problem) -> None:
        first = problem.graph.first
        self.graph = problem.graph
        self.costs = [problem.cost[first[v] : first[v + 1]] for v in range(len(first) - 1)]
        self.state, self.rows = Derivation(self.costs), Rows(problem.graph)
        self.lines: list[str] = []
        self.n_nodes = 0
        self._state_problem(problem)
        self.size = sum(float(np.abs(each[np.isfinite(each)]).max(initial=0.0)) for each in self.state.entries.values())

    def step(self, *words: Any) -> None:
        """Writes a line."""
        self.lines.append(json.dumps(words, separators=(",", ":")))

    def _state_problem(self, problem: Problem) -> None:
        graph = self.graph
        for cost in self.costs:
            self.step("variable", *_numbers(cost))
        for f, at in enumerate(graph.table_at.tolist()):
            if at >= 0:
                scope = tuple(graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist())
                shape = [len(self.costs[v]) for v in scope]
                entries = problem.table[at : at + math.prod(shape)]
                self.step("table", scope, _numbers(entries))
                self.state.add_table(scope, entries.reshape(shape))
        for r, weights in enumerate(self.rows.weights):
            terms = [[v, i, each[i]] for v, each in weights.items() for i in np.flatnonzero(each).tolist()]
            limits = float(self.rows.low[r]), float(self.rows.high[r])
            self.step("row", terms, *(limit if math.isfinite(limit) else None for limit in limits))

    def eliminate(self, most: int) -> None:
        """Eliminates variables that no row has, the cheapest first, as long as that takes few sums."""
        state = self.state
        price = {v: state.n_sums(v) for v in range(len(self.costs)) if not self.rows.of[v]}
        while price:
            v = min(price, key=price.__getitem__)
            if price.pop(v) > most:
                return
            around = {u for key in state.touching[v] for u in state.scopes[key]} - {v}
            self.step("eliminate", v)
            state.eliminate(v)
            price |= {u: state.n_sums(u) for u in around & price.keys()}

    def forbid(self) -> None:
        """Takes labels of infinite cost out of tables: a split of which one part is all that is left."""
        for v, left in enumerate(self.state.left):
            if v not in self.state.gone and 0 < left.size < self.state.sizes[v]:
                self.step("split", v, [left.tolist()])
                self.state.restrict(v, left)

    def raise_bound(self, target: float) -> None:
        """Sweeps over tables and rows, each of which takes the share that raises the bound most by itself."""
        state, sweeps = self.state, Sweeps(self.state, self.rows.weights, self.rows.low, self.rows.high)
        sweeps.run(target - state.constant)
        for (key, v), message in sweeps.messages.items():
            if message.any():
                self.step("move", key, v, message.tolist())
                state.shift(key, v, -message)
                state.shift(~v, v, message)
        for r, u in enumerate(sweeps.multipliers.tolist()):
            if u:
                self.price(state, r, u)

    def price(self, state: Derivation, r: int, u: float) -> None:
        """Sets the multiplier of a row."""
        self.step("price", r, u)
        old = state.prices.get(r, 0.0)
        for sign, each in ((1.0, u), (-1.0, old)):
            state.constant += sign * each * float(self.rows.low[r] if each > 0 else self.rows.high[r]) if each else 0.0
        state.prices[r] = u
        for v, weights in self.rows.weights[r].items():
            state.shift(~v, v, (old - u) * weights)

    def close(self, target: float) -> None:
        """Splits labels until every part costs at least `target`."""
        waiting = [Node(self.state, self.rows, *self.rows.ranges(self.state))]
        while waiting:
            node = waiting.pop()
            self.n_nodes += 1
            if self.n_nodes > MOST_NODES:
                raise ProblemError(f"The proof of this problem takes more than {MOST_NODES:,} nodes to write down.")
            bound = node.state.bound
            if bound < target and (broken := node.broken()) is not None:
                self.step("violated", broken)
                self.step("sum")
                continue
            decided = node.state.decided
            if bound < target and decided:  # what is left is one labelling, and rows say no more of it
                for r in [r for r, u in node.state.prices.items() if u]:
                    self.price(node.state, r, 0.0)
            if decided or bound >= target:
                self.step("sum")
            else:
                waiting += reversed(self._split(node, bound, target))

    def _split(self, node: Node, bound: float, target: float) -> list[Node]:
        """Splits on the variable with the fewest labels that may be part of an answer below `target`."""
        state, best = node.state, None
        for v in range(len(self.costs)):
            left = state.left[v]
            if v in state.gone or left.size == 1:
                continue
            out = node.excluded(v)
            alive = left[bound + state.reduced(v)[left] < target]
            alive = alive[[label not in out for label in alive.tolist()]]
            if best is None or alive.size < best[1].size:
                best = v, alive, out
                if alive.size <= 1:
                    break
        assert best is not None, "a node that is decided is not split"
        v, alive, out = best
        dead = [label for label in state.left[v].tolist() if label not in out and label not in alive]
        parts = [[label] for label in [*dead, *out, *alive.tolist()]]
        if len(dead) > 1 and node.restricted(v, np.array(dead)).state.bound >= target:
            parts[: len(dead)] = [dead]
        self.step("split", v, parts)
        return [node.restricted(v, np.array(part)) for part in parts]


def _numbers(values: FloatArray) -> list[float | str]:
    """Returns numbers as a certificate has them."""
    return ["inf" if value == math.inf else value for value in values.tolist()]


def _unit(problem: Problem) -> int:
    """Returns the largest whole number that all costs are multiples of; 0 if they are not all whole."""
    every = np.concatenate([problem.cost, problem.table])
    entries = every[np.isfinite(every)]
    if not np.array_equal(entries, np.floor(entries)) or (np.abs(entries) >= EXACT / (1 + entries.size)).any():
        return 0
    return int(np.gcd.reduce(entries.astype(np.int64), initial=0))


def _upper(problem: Problem, values: IntArray) -> float:
    """Returns what a labelling costs, rounded up."""
    graph = problem.graph
    terms = [problem.cost[graph.first[v] + label] for v, label in enumerate(values.tolist())]
    for f, at in enumerate(graph.table_at.tolist()):
        slots = slice(graph.scope_first[f], graph.scope_first[f + 1])
        if at >= 0:
            terms.append(problem.table[at + int(graph.stride[slots] @ values[graph.scope[slots]])])
    return 0.0 - _below(-sum(checker.exact(float(term)) for term in terms))


def _below(exact: int) -> float:
    """Returns the largest double that is not above an exact number."""
    if exact >= checker.INFINITE >> 1:
        return math.inf
    try:
        nearest = exact / checker.UNIT
    except OverflowError:
        raise ProblemError("The costs are too large to certify: their sums are beyond what a float holds.") from None
    return nearest if checker.exact(nearest) <= exact else math.nextafter(nearest, -math.inf)
