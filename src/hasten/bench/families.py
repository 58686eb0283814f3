"""The problems of the benchmark: families of one shape each, in several sizes, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np

from hasten.errors import ProblemError
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs

TASK = EntityRelationTask(features="both")
PEAK = 3.0  # by which a planted label is cheaper, in standard deviations of the noise
N_WEIGHTS = 3  # rules of a knapsack
UNRELATED = 0.75  # share of planted pairs without a relation

Make = Callable[[int, int, np.random.Generator], list[Problem]]


@dataclass(frozen=True, slots=True)
class ProblemFamily:
    """Problems of one kind: `make(size, n, rng)` draws `n` of a size."""

    name: str
    about: str
    unit: str  # of a size
    sizes: tuple[int, ...]
    make: Make

    def problems(self, size: int, n: int, seed: int = 0) -> list[Problem]:
        """Draws `n` problems of a size; with the same seed, a larger `n` only adds problems."""
        if size < 1 or n < 0:
            raise ProblemError(f"Cannot draw {n} problems of size {size}. Ask for a size of 1 or more.")
        return self.make(size, n, np.random.default_rng([seed, size]))


def _random(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    return drawn(TASK.structure(size), n, rng)


def _peaked(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    shape = TASK.structure(size)
    costs = []
    for _ in range(n):
        cost = rng.normal(size=shape.n_labels)
        cost[shape.graph.first[:-1] + plant(size, rng)] -= PEAK
        costs.append(cost)
    return [shape.problem(row) for row in costs]


def plant(n_entities: int, rng: np.random.Generator) -> IntArray:
    """Draws a valid labelling of a sentence: random types, and some relations that they allow."""
    types, nothing = rng.integers(len(TASK.entity_labels), size=n_entities), len(TASK.relation_labels) - 1
    labels: dict[tuple[int, int], int] = {}
    for source, target in ordered_pairs(n_entities):
        joined = TASK.entity_labels[types[source]], TASK.entity_labels[types[target]]
        fitting = [r for r, name in enumerate(TASK.arguments) if joined in TASK.arguments[name]]
        free = labels.get((target, source), nothing) == nothing
        related = rng.random() >= UNRELATED and free and fitting
        labels[source, target] = fitting[0] if related else nothing
    return np.array([*types, *labels.values()], dtype=np.int64)


def _chain(n_labels: int, *, ruled: bool = False) -> Make:
    """Chains with transition costs; with `ruled`, at least one variable has the first tag and few the second."""

    def make(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
        schema = Schema()
        tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
        step = schema.factor("step", before=tag, after=tag)
        step.set_table(rng.normal(size=(n_labels, n_labels)))
        shape = schema.structure()
        tags = [shape.add(tag) for _ in range(size)]
        for before, after in pairwise(tags):
            shape.connect(step, before=before, after=after)
        if ruled:
            shape.rule("some tag0", [(v, "tag0") for v in tags], at_least=1)
            shape.rule("few tag1", [(v, "tag1") for v in tags], at_most=max(1, size // 8))
        return drawn(shape, n, rng)

    return make


def _assignment(n_tasks: Callable[[int], int], *, free: bool) -> Make:
    """Workers and tasks: each task exactly once; with `free`, at most once, and workers may have none."""

    def make(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
        tasks = [f"task{i}" for i in range(n_tasks(size))]
        schema = Schema()
        worker = schema.variable("worker", [*tasks, "none"] if free else tasks)
        shape = schema.structure()
        workers = [shape.add(worker) for _ in range(size)]
        for task in tasks:
            terms = [(v, task) for v in workers]
            shape.rule(f"one {task}", terms, at_most=1, at_least=None if free else 1)
        return drawn(shape, n, rng)

    return make


def sentence_problems(
    n_entities: Sequence[int] | IntArray, costs: FloatArray, task: EntityRelationTask = TASK
) -> list[Problem]:
    """Returns a problem for each sentence, given the flat costs of all of them."""
    problems, at = [], 0
    for n in map(int, n_entities):
        shape = task.structure(n)
        problems.append(shape.problem(costs[at : at + shape.n_labels]))
        at += shape.n_labels
    return problems


def _hierarchy(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    shape, classes = implications([(v, int(rng.integers(0, v))) for v in range(1, size)], size)
    shape.rule("few", [(v, "yes") for v in classes], at_most=max(1, size // 10))
    return drawn(shape, n, rng)


def _ontology(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    pairs = {(v, int(above)) for v in range(1, size) for above in rng.integers(0, v, size=2)}
    return drawn(implications(sorted(pairs), size)[0], n, rng)


def implications(pairs: list[tuple[int, int]], size: int) -> tuple[Structure, list[int]]:
    """Returns yes/no classes; in each pair, the first implies the second."""
    schema = Schema()
    term = schema.variable("class", ["no", "yes"])
    implies = schema.factor("implies", child=term, parent=term).imply({"child": "yes"}, {"parent": "yes"})
    shape = schema.structure()
    classes = [shape.add(term) for _ in range(size)]
    for child, parent in pairs:
        shape.connect(implies, child=child, parent=parent)
    return shape, classes


def _grid(n_labels: int, draw: Callable[[np.random.Generator, int], FloatArray]) -> Make:
    """Square grids; `draw` returns the tables between pairs of neighbours, given their number."""

    def make(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
        schema = Schema()
        cell = schema.variable("cell", [f"label{i}" for i in range(n_labels)])
        edge = schema.factor("edge", one=cell, other=cell)
        shape, number = schema.structure([cell] * size**2), np.arange(size * size).reshape(size, size)
        across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
        pairs = [pair for one, other in (across, down) for pair in zip(one.ravel(), other.ravel(), strict=True)]
        edges = [shape.connect(edge, one=int(one), other=int(other)) for one, other in pairs]
        costs = ((rng.normal(size=shape.n_labels), draw(rng, len(edges))) for _ in range(n))
        return [shape.problem(cost, tables=dict(zip(edges, tables, strict=True))) for cost, tables in costs]

    return make


def _differing(strength: Callable[[np.random.Generator, int], FloatArray]) -> Make:
    """Square grids of two labels, with a cost where neighbours differ."""
    return _grid(2, lambda rng, edges: strength(rng, edges)[:, None, None] * (1.0 - np.eye(2)))


def _order(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    """Draws relations that favour a hidden order, with noise."""
    schema, table = Schema(), np.zeros((2, 2, 2))
    relation = schema.variable("relation", ["before", "after"])
    table[0, 0, 1] = table[1, 1, 0] = np.inf
    transitive = schema.factor("transitive", ab=relation, bc=relation, ac=relation).set_table(table)
    shape = schema.structure()
    number = {pair: shape.add(relation) for pair in combinations(range(size), 2)}
    for a, b, c in combinations(range(size), 3):
        shape.connect(transitive, ab=number[a, b], bc=number[b, c], ac=number[a, c])
    costs = 0.7 * rng.normal(size=(n, len(number), 2))
    costs[:, :, 0] -= 1.0  # the hidden order is by number
    return [shape.problem(each.ravel()) for each in costs]


def _knapsack(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
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
    """Draws problems of a shape with normal costs."""
    return [shape.problem(each) for each in rng.normal(size=(n, shape.n_labels))]


_ALL = (
    ProblemFamily("random", "entity-relation problems whose costs are noise", "entities", (2, 4, 6, 8, 12, 16, 20),
           _random),
    ProblemFamily("peaked", "entity-relation problems whose costs favour a valid labelling, with noise", "entities",
           (2, 4, 6, 8, 12, 16, 20), _peaked),
    ProblemFamily("chain5", "chains of 5 labels with transition costs", "variables", (10, 20, 50, 100), _chain(5)),
    ProblemFamily("chain20", "chains of 20 labels with transition costs", "variables", (10, 20, 50, 100), _chain(20)),
    ProblemFamily("grid3", "square grids of 3 labels with random tables", "cells a side", (3, 5, 7, 10),
           _grid(3, lambda rng, edges: rng.normal(size=(edges, 3, 3)))),
    ProblemFamily("assignment", "workers and tasks, each task exactly once", "workers", (4, 8, 12, 16, 24),
           _assignment(lambda size: size, free=False)),
    ProblemFamily("matching", "twice as many workers as tasks, each task at most once", "workers", (4, 8, 16, 32),
           _assignment(lambda size: max(1, size // 2), free=True)),
    ProblemFamily("ruled", "chains of 5 labels under two rules that count", "variables", (10, 30),
           _chain(5, ruled=True)),
    ProblemFamily("tree", "classes that imply the one above, few of them", "classes", (50, 200), _hierarchy),
    ProblemFamily("dag", "classes that imply one or two others", "classes", (50, 400), _ontology),
    ProblemFamily("potts", "grids of two labels that should agree", "cells a side", (10, 20),
           _differing(lambda rng, edges: np.ones(edges))),
    ProblemFamily("order", "relations of all pairs of events, transitive", "events", (6, 10, 14), _order),
    ProblemFamily("knapsack", "items under three limits of weight", "items", (10, 20, 30), _knapsack),
    ProblemFamily("spin", "spin glasses on square grids", "cells a side", (6, 10),
           _differing(lambda rng, edges: rng.normal(size=edges))),
)  # fmt: skip
FAMILIES: Mapping[str, ProblemFamily] = {family.name: family for family in _ALL}
