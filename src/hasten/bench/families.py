"""The problems that are measured: families of one shape each, in several sizes, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from hasten.bench import ground
from hasten.errors import ProblemError
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs

TASK = EntityRelationTask(features="both")
PEAK = 3.0  # how much cheaper a planted label is, in standard deviations of the noise
UNRELATED = 0.75  # how often a planted pair has no relation

Make = Callable[[int, int, np.random.Generator], list[Problem]]


@dataclass(frozen=True, slots=True)
class Family:
    """Problems of one kind: `make(size, n, rng)` draws `n` of a size."""

    name: str
    about: str
    unit: str  # what a size counts
    sizes: tuple[int, ...]
    quick: tuple[int, ...]  # the sizes of a quick run
    make: Make

    def problems(self, size: int, n: int, seed: int = 0) -> list[Problem]:
        """Draws `n` problems of a size; a seed gives the same ones, and more of them with a larger `n`."""
        if size < 1 or n < 0:
            raise ProblemError(f"Cannot draw {n} problems of size {size}. Ask for a size of 1 or more.")
        return self.make(size, n, np.random.default_rng([seed, size]))


def _random(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    shape = TASK.structure(size)
    return _stack(shape, rng.normal(size=(n, shape.n_labels)))


def _peaked(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    shape = TASK.structure(size)
    costs = []
    for _ in range(n):
        cost = rng.normal(size=shape.n_labels)
        cost[shape.graph.first[:-1] + plant(size, rng)] -= PEAK
        costs.append(cost)
    return _stack(shape, costs)


def plant(n_entities: int, rng: np.random.Generator) -> IntArray:
    """Draws a valid labelling of a sentence: types at random, and some of the relations that they allow."""
    types, nothing = rng.integers(len(TASK.entity_labels), size=n_entities), len(TASK.relation_labels) - 1
    labels: dict[tuple[int, int], int] = {}
    for source, target in ordered_pairs(n_entities):
        joined = TASK.entity_labels[types[source]], TASK.entity_labels[types[target]]
        fitting = [r for r, name in enumerate(TASK.arguments) if joined in TASK.arguments[name]]
        free = labels.get((target, source), nothing) == nothing
        related = rng.random() >= UNRELATED and free and fitting
        labels[source, target] = fitting[0] if related else nothing
    return np.array([*types, *labels.values()], dtype=np.int64)


def _chain(n_labels: int) -> Make:
    def make(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
        schema = Schema()
        tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
        step = schema.factor("step", before=tag, after=tag)
        step.set_table(rng.normal(size=(n_labels, n_labels)))
        shape = schema.structure()
        tags = [shape.add(tag) for _ in range(size)]
        for before, after in pairwise(tags):
            shape.connect(step, before=before, after=after)
        return _stack(shape, rng.normal(size=(n, shape.n_labels)))

    return make


def _grid(n_labels: int) -> Make:
    def make(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
        schema = Schema()
        cell = schema.variable("cell", [f"label{i}" for i in range(n_labels)])
        edge = schema.factor("edge", one=cell, other=cell)
        shape = schema.structure()
        cells = [[shape.add(cell) for _ in range(size)] for _ in range(size)]
        edges = []
        for r in range(size):
            for c in range(size):
                if c + 1 < size:
                    edges.append(shape.connect(edge, one=cells[r][c], other=cells[r][c + 1]))
                if r + 1 < size:
                    edges.append(shape.connect(edge, one=cells[r][c], other=cells[r + 1][c]))
        problems = []
        for _ in range(n):
            cost = rng.normal(size=shape.n_labels)
            tables = dict(zip(edges, rng.normal(size=(len(edges), n_labels, n_labels)), strict=True))
            problems.append(shape.problem(cost, tables=tables))
        return problems

    return make


def _assignment(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    schema = Schema()
    worker = schema.variable("worker", [f"task{i}" for i in range(size)])
    shape = schema.structure()
    workers = [shape.add(worker) for _ in range(size)]
    for task in worker.labels:
        shape.rule(f"one {task}", [(v, task) for v in workers], exactly=1)
    return _stack(shape, rng.normal(size=(n, shape.n_labels)))


def _matching(size: int, n: int, rng: np.random.Generator) -> list[Problem]:
    schema = Schema()
    worker = schema.variable("worker", [*(f"task{i}" for i in range(max(1, size // 2))), "none"])
    shape = schema.structure()
    workers = [shape.add(worker) for _ in range(size)]
    for task in worker.labels[:-1]:
        shape.rule(f"one {task}", [(v, task) for v in workers], at_most=1)
    return _stack(shape, rng.normal(size=(n, shape.n_labels)))


def _stack(shape: Structure, costs: Iterable[FloatArray]) -> list[Problem]:
    return [shape.problem(row) for row in costs]


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


_ALL = (
    Family(
        "random",
        "entity-relation problems whose costs are noise",
        "entities",
        (2, 4, 6, 8, 12, 16, 20),
        (4,),
        _random,
    ),
    Family(
        "peaked",
        "entity-relation problems whose costs favour a valid labelling, with noise",
        "entities",
        (2, 4, 6, 8, 12, 16, 20),
        (4,),
        _peaked,
    ),
    Family(
        "chain5",
        "chains of 5 labels with transition costs",
        "variables",
        (10, 20, 50, 100),
        (10,),
        _chain(5),
    ),
    Family(
        "chain20",
        "chains of 20 labels with transition costs",
        "variables",
        (10, 20, 50, 100),
        (),
        _chain(20),
    ),
    Family(
        "grid3",
        "square grids of 3 labels with random tables",
        "cells a side",
        (3, 5, 7, 10),
        (4,),
        _grid(3),
    ),
    Family(
        "assignment",
        "workers and tasks, each task exactly once",
        "workers",
        (4, 8, 12, 16, 24),
        (4,),
        _assignment,
    ),
    Family(
        "matching",
        "twice as many workers as tasks, each task at most once",
        "workers",
        (4, 8, 16, 32),
        (4,),
        _matching,
    ),
    Family("ruled", "chains of 5 labels under two rules that count", "variables", (10, 30), (), ground.ruled_chain),
    Family("tree", "classes that imply the one above, few of them", "classes", (50, 200), (), ground.hierarchy),
    Family("dag", "classes that imply one or two others", "classes", (50, 400), (), ground.ontology),
    Family("potts", "grids of two labels that should agree", "cells a side", (10, 20), (), ground.potts),
    Family("order", "relations of all pairs of events, transitive", "events", (6, 10, 14), (5,), ground.order),
    Family("knapsack", "items under three limits of weight", "items", (10, 20, 30), (8,), ground.knapsack),
    Family("spin", "spin glasses on square grids", "cells a side", (6, 10), (), ground.spin_glass),
)
FAMILIES: Mapping[str, Family] = {family.name: family for family in _ALL}
