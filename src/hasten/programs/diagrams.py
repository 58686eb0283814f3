"""Decision diagrams: everything that clauses and parities allow, as paths of a small graph, made once.

Binary variables are decided one after the other. Partial labellings are one node if they leave the same clauses still
to be satisfied and the same parities so far. The labellings that satisfy everything are the paths to the end; one pass
finds the cheapest (`hasten.proof.paths`), proved by construction.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hasten.model.formulas import Clause
from hasten.support.arrays import IntArray, ints

MAX_NODES = 60_000
END, DEAD = -1, -2


class Parity(NamedTuple):
    """Variables, from 1, of which an odd or an even number is 1."""

    variables: frozenset[int]
    odd: bool


class Diagram(NamedTuple):
    """Nodes, each after its successors, the root last: the variable decided, and the node for 0 and for 1."""

    variable: IntArray  # (n,)
    successor: IntArray  # (n, 2); END, DEAD
    n_variables: int

    @property
    def n_nodes(self) -> int:
        """The number of nodes."""
        return len(self.variable)


def make_diagram(n: int, clauses: Sequence[Clause], parities: Sequence[Parity]) -> Diagram | None:
    """Returns a diagram over `n` variables, or None where it would be too large."""
    orders = [_by_frontier(n, clauses, parities), list(range(n))]
    made = [each for each in (_made(n, order, clauses, parities) for order in orders) if each is not None]
    return min(made, key=lambda diagram: diagram.n_nodes, default=None)


def _by_frontier(n: int, clauses: Sequence[Clause], parities: Sequence[Parity]) -> list[int]:
    """Returns an order in which few constraints are begun and not done: next comes what begins least, closes most."""
    scopes = [{abs(each) - 1 for each in clause} for clause in clauses]
    scopes += [{v - 1 for v in parity.variables} for parity in parities]
    of: list[list[int]] = [[] for _ in range(n)]
    for k, scope in enumerate(scopes):
        for v in scope:
            of[v].append(k)
    left = [len(scope) for scope in scopes]
    order: list[int] = []
    seen = [False] * n
    for _ in range(n):

        def price(v: int) -> tuple[int, int, int]:
            begins = sum(left[k] == len(scopes[k]) and left[k] > 1 for k in of[v])
            closes = sum(left[k] == 1 and len(scopes[k]) > 1 for k in of[v])
            begun = sum(left[k] < len(scopes[k]) for k in of[v])
            return begins - closes, -begun, v

        chosen = min((v for v in range(n) if not seen[v]), key=price)
        seen[chosen] = True
        order.append(chosen)
        for k in of[chosen]:
            left[k] -= 1
    return order


def _made(n: int, order: Sequence[int], clauses: Sequence[Clause], parities: Sequence[Parity]) -> Diagram | None:
    """Returns the diagram of one order, or None if it is too large. Sets of constraints are the bits of integers."""
    place = {v: at for at, v in enumerate(order)}
    opening, closing, satisfied = [0] * n, [0] * n, [[0, 0] for _ in range(n)]
    flips, odd, parity_closing = [0] * n, 0, [0] * n
    if any(not clause for clause in clauses) or any(not each.variables and each.odd for each in parities):
        return Diagram(ints([0]), np.array([[DEAD, DEAD]]), n)
    for k, clause in enumerate(clauses):
        places = [place[abs(each) - 1] for each in clause]
        opening[min(places)] |= 1 << k
        closing[max(places)] |= 1 << k
        for at, each in zip(places, clause, strict=True):
            satisfied[at][int(each > 0)] |= 1 << k
    for k, parity in enumerate(each for each in parities if each.variables):
        odd |= int(parity.odd) << k
        parity_closing[max(place[v - 1] for v in parity.variables)] |= 1 << k
        for v in parity.variables:
            flips[place[v - 1]] |= 1 << k
    states: dict[tuple[int, int], int] = {(0, 0): 0}  # clauses that are open, and parities so far
    layers, n_nodes = list[list[tuple[int, int]]](), 0
    for at in range(n):
        reached, layer = dict[tuple[int, int], int](), list[tuple[int, int]]()
        for unsatisfied, so_far in states:
            ends = [DEAD, DEAD]
            for value in (0, 1):
                left = (unsatisfied | opening[at]) & ~satisfied[at][value]
                flipped = so_far ^ (flips[at] if value else 0)
                if not (left & closing[at] or (flipped ^ odd) & parity_closing[at]):
                    ends[value] = reached.setdefault((left, flipped & ~parity_closing[at]), len(reached))
            layer.append((ends[0], ends[1]))
        layers.append(layer)
        states, n_nodes = reached, n_nodes + len(layer)
        if n_nodes > MAX_NODES:
            return None
    return _numbered(order, layers)


def _numbered(order: Sequence[int], layers: list[list[tuple[int, int]]]) -> Diagram:
    """Numbers nodes from the end to the root; leaves out those that lead nowhere, and merges those that are alike."""
    after = [END]  # the numbers of the layer that comes next
    variable, successor = list[int](), list[tuple[int, int]]()
    for at in range(len(order) - 1, -1, -1):
        known, own = dict[tuple[int, int], int](), list[int]()
        for zero, one in layers[at]:
            ends = after[zero] if zero != DEAD else DEAD, after[one] if one != DEAD else DEAD
            if ends == (DEAD, DEAD):
                own.append(DEAD)
                continue
            if ends not in known:
                known[ends] = len(variable)
                variable.append(order[at])
                successor.append(ends)
            own.append(known[ends])
        after = own
    if after[0] == DEAD:  # nothing satisfies everything
        return Diagram(ints([0]), np.array([[DEAD, DEAD]]), len(order))
    return Diagram(ints(variable), np.array(successor, dtype=np.int64), len(order))
