"""Standard problems of other fields, as families: rules on chains and trees, cuts, orders, knapsacks, spin glasses."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise

import numpy as np

from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray

N_TAGS = 5
N_WEIGHTS = 3  # rules of a knapsack


def ruled_chain(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws chains of tags, with at least one of the first tag and few of the second."""
    schema = Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(N_TAGS)])
    step = schema.factor("step", before=tag, after=tag).set_table(rng.normal(size=(N_TAGS, N_TAGS)))
    shape = schema.structure()
    tags = [shape.add(tag) for _ in range(size)]
    for before, after in pairwise(tags):
        shape.connect(step, before=before, after=after)
    shape.rule("some tag0", [(v, "tag0") for v in tags], at_least=1)
    shape.rule("few tag1", [(v, "tag1") for v in tags], at_most=max(1, size // 8))
    return drawn(shape, n, rng)


def hierarchy(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws trees of classes, of which a class implies the one above, with a limit on how many are chosen."""
    shape, classes = implications([(v, int(rng.integers(0, v))) for v in range(1, size)], size)
    shape.rule("few", [(v, "yes") for v in classes], at_most=max(1, size // 10))
    return drawn(shape, n, rng)


def ontology(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws classes that imply one or two others each: a directed graph without cycles."""
    pairs = {(v, int(above)) for v in range(1, size) for above in rng.integers(0, v, size=2)}
    return drawn(implications(sorted(pairs), size)[0], n, rng)


def implications(pairs: list[tuple[int, int]], size: int) -> tuple[Structure, list[int]]:
    """Returns yes/no classes, the first of each pair of which implies the second."""
    schema = Schema()
    term = schema.variable("class", ["no", "yes"])
    implies = schema.factor("implies", child=term, parent=term).imply({"child": "yes"}, {"parent": "yes"})
    shape = schema.structure()
    classes = [shape.add(term) for _ in range(size)]
    for child, parent in pairs:
        shape.connect(implies, child=child, parent=parent)
    return shape, classes


def potts(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws pixels that should agree with their neighbours."""
    return grid(size, n, rng, lambda edges: np.ones(edges))


def spin_glass(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws spins of which some neighbours should agree and others should not."""
    return grid(size, n, rng, lambda edges: rng.normal(size=edges))


def grid(size: int, n: int, rng: np.random.Generator, strength: Callable[[int], FloatArray]) -> list[Problem]:
    """Draws square grids of two labels, with what it costs neighbours to differ."""
    schema = Schema()
    cell = schema.variable("cell", ["off", "on"])
    edge = schema.factor("edge", one=cell, other=cell)
    shape, number = schema.structure(), np.arange(size * size).reshape(size, size)
    for _ in range(size * size):
        shape.add(cell)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    pairs = [pair for one, other in (across, down) for pair in zip(one.ravel(), other.ravel(), strict=True)]
    edges = [shape.connect(edge, one=int(one), other=int(other)) for one, other in pairs]
    problems = []
    for _ in range(n):
        cost = rng.normal(size=shape.n_labels)
        tables = [each * (1.0 - np.eye(2)) for each in strength(len(edges))]
        problems.append(shape.problem(cost, tables=dict(zip(edges, tables, strict=True))))
    return problems


def order(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws the relations of all pairs of events, transitive, which favour a hidden order with noise."""
    schema, table = Schema(), np.zeros((2, 2, 2))
    relation = schema.variable("relation", ["before", "after"])
    table[0, 0, 1] = table[1, 1, 0] = np.inf
    transitive = schema.factor("transitive", ab=relation, bc=relation, ac=relation).set_table(table)
    shape = schema.structure()
    number = {pair: shape.add(relation) for pair in combinations(range(size), 2)}
    for a, b, c in combinations(range(size), 3):
        shape.connect(transitive, ab=number[a, b], bc=number[b, c], ac=number[a, c])
    costs = 0.7 * rng.normal(size=(n, len(number), 2))
    costs[:, :, 0] -= 1.0  # the hidden order is that of the numbers
    return [shape.problem(each.ravel()) for each in costs]


def knapsack(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws items to choose, under several limits of weight."""
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    items = [shape.add(item) for _ in range(size)]
    for r in range(N_WEIGHTS):
        weights = rng.integers(1, 50, size).tolist()
        terms = [(v, "in", float(weight)) for v, weight in zip(items, weights, strict=True)]
        shape.rule(f"weight {r}", terms, at_most=float(sum(weights) // 2))
    costs = np.zeros((n, size, 2))
    costs[:, :, 1] = -rng.integers(1, 100, size=(n, size))
    return [shape.problem(each.ravel()) for each in costs]


def drawn(shape: Structure, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws problems of a shape whose costs are noise."""
    return [shape.problem(each) for each in rng.normal(size=(n, shape.n_labels))]
