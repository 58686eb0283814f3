"""Learned tables: proved exactly as if they stood in the schema, and learned from answers alone."""

from __future__ import annotations

import copy
import pickle
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.random import Generator

import hasten
from hasten.errors import ProblemError
from hasten.learning.perceptron import Perceptron, StepSize, seconds
from hasten.learning.tables import Changing, Evidence, LearnedTables, chances, n_labels
from hasten.model.batch import Batch
from hasten.model.problem import Problem


def random_tables(schema: hasten.Schema, rng: Generator, share: float = 0.2) -> LearnedTables:
    labels = rng.normal(size=n_labels(schema)).round(2) if rng.random() < 0.7 else None
    forbidden = rng.random(schema.n_weights) < share
    return LearnedTables(schema, forbidden, rng.normal(size=schema.n_weights).round(2), labels)


def three_kinds() -> hasten.Schema:
    """Returns a schema with a factor that says nothing, one that forbids and one that costs, and one not learned."""
    schema = hasten.Schema()
    a, b = schema.variable("a", ["x", "y", "z"]), schema.variable("b", ["u", "v"])
    schema.factor("silent", left=a, right=b)
    schema.factor("hard", left=a, right=a).forbid(left="x", right="x")
    schema.factor("soft", one=a, two=b, three=a).cost(0.5, one="y", three="z")
    schema.factor("fixed", learned=False, left=b, right=b).cost(0.25, left="u", right="u")
    schema.factor("lone", of=b)
    schema.rule("few", at_most=2, a="z")
    return schema


def random_shape(schema: hasten.Schema, rng: Generator) -> hasten.Structure:
    shape = schema.structure()
    kinds = schema.variables
    many = [[shape.add(kinds[name]) for _ in range(n)] for name, n in (("a", 3), ("b", int(rng.integers(2, 4))))]
    for kind in schema.factors.values():
        for _ in range(2):
            scope = [int(rng.choice(many[0 if of.name == "a" else 1])) for of in kind.roles.values()]
            if len(set(scope)) == len(scope):
                shape.connect(kind, **dict(zip(kind.roles, scope, strict=True)))
    return shape


def slowly(tables: LearnedTables, problem: Problem) -> float:
    """Returns the least that any valid labelling costs, what was learned included."""
    best = np.inf
    for labels in product(*(range(len(kind)) for kind in problem.structure.kinds)):
        if not problem.check(list(labels)):
            continue
        total = problem.total(list(labels))
        if tables.label_cost is not None:
            first = {"a": 0, "b": 3}
            total += sum(
                tables.label_cost[first[kind.name] + label]
                for kind, label in zip(problem.structure.kinds, labels, strict=True)
            )
        for factor in problem.structure.factors:
            if factor.kind.learned:
                place = np.ravel_multi_index([labels[v] for v in factor.scope], factor.kind.shape)
                at = factor.kind.weight_at + int(place)
                total += np.inf if tables.forbidden[at] else tables.cost[at]
        best = min(best, total)
    return best


@pytest.mark.parametrize("seed", range(12))
def test_proofs_with_learned_tables_are_those_of_brute_force(seed: int) -> None:
    rng, schema = np.random.default_rng(seed), three_kinds()
    tables, problems = random_tables(schema, rng), []
    for _ in range(4):
        shape = random_shape(schema, rng)
        own = {
            f: rng.normal(size=each.kind.shape).round(1) for f, each in enumerate(shape.factors) if rng.random() < 0.3
        }
        rules = [hasten.Rule.of("own", [(0, "x"), (1, "y")], at_most=1)] if rng.random() < 0.5 else []
        problems.append(shape.problem(rng.normal(size=shape.n_labels).round(2), tables=own, rules=rules))
    batch = Batch.of(problems)
    found = hasten.Certifier()(tables.added_to(batch))
    for p, problem in enumerate(problems):
        least = slowly(tables, problem)
        assert found[p].proved
        assert found.cost[p] == pytest.approx(least, abs=1e-9)
    changing = Changing(batch, tables.forbidden).some(np.arange(4), tables.weights)
    assert hasten.Certifier()(changing).cost == pytest.approx(found.cost, abs=1e-9)
    assert hasten.Certifier()(tables.added_to(batch[:1])).cost == pytest.approx(found.cost[:1], abs=1e-9)


def test_no_tables_leave_problems_as_they_are() -> None:
    schema = three_kinds()
    shape = random_shape(schema, np.random.default_rng(0))
    batch = shape.batch(np.random.default_rng(1).normal(size=(3, shape.n_labels)))
    assert LearnedTables.that_forbid(schema, np.zeros(schema.n_weights, dtype=bool)).added_to(batch) is batch


def test_tables_survive_copies_and_say_what_they_hold() -> None:
    schema = three_kinds()
    tables = random_tables(schema, np.random.default_rng(0))
    for other in (copy.deepcopy(tables), pickle.loads(pickle.dumps(tables))):
        assert (other.forbidden == tables.forbidden).all()
        assert (other.cost == tables.cost).all()
    assert np.isposinf(tables.table("hard")[0, 0])
    assert tables.table("fixed")[0, 0] == 0.25
    with pytest.raises(ProblemError, match="no factor 'other'"):
        tables.table("other")
    with pytest.raises(ProblemError, match="for a schema with"):
        LearnedTables(schema, np.zeros(3, dtype=bool), np.zeros(3))
    with pytest.raises(ProblemError, match="finite"):
        LearnedTables(schema, tables.forbidden, tables.cost * np.nan)


def chain(known: bool, forbid: bool, length: int = 6) -> tuple[hasten.Schema, hasten.Structure]:
    """Returns a chain of three labels whose pairs are forbidden or costly, if that is known."""
    schema = hasten.Schema()
    tag = schema.variable("tag", ["x", "y", "z"])
    pair = schema.factor("pair", left=tag, right=tag)
    if known and forbid:
        pair.forbid(left="x", right="y").forbid(left="z", right="z")
    elif known:
        pair.set_table(np.array([[0.4, -0.7, 0.1], [1.1, 0.0, -0.3], [-0.5, 0.2, 0.9]]))
    return schema, chain_of(schema, length)


def chain_of(schema: hasten.Schema, length: int) -> hasten.Structure:
    """Returns a longer or a shorter chain of the same schema."""
    pairs = [[v, v + 1] for v in range(length - 1)]
    return schema.structure(["tag"] * length, {"pair": pairs} if pairs else None)


def answers_of(forbid: bool, n: int, length: int = 6, seed: int = 0) -> tuple[Batch, np.ndarray]:
    """Returns problems of a schema that knows nothing, and the answers of one that does."""
    _, shape = chain(False, forbid, length)
    costs = np.random.default_rng(seed).normal(size=(n, shape.n_labels))
    return shape.batch(costs), hasten.Certifier()(chain(True, forbid, length)[1].batch(costs)).labels


def test_mining_finds_what_is_forbidden_and_nothing_else() -> None:
    batch, labels = answers_of(forbid=True, n=60)
    before = labels.copy()
    evidence = Evidence.of(batch, labels, np.arange(60))
    truth = np.isposinf(chain(True, True)[0].factors["pair"].table).ravel()
    assert (evidence.forbidden(0.99) == truth).all()
    assert (evidence.shown[truth] == 0).all()
    assert evidence.shown.sum() == 60 * 5
    assert (labels == before).all()


def test_confidence_is_what_chance_leaves() -> None:
    evidence = Evidence(np.array([30, 0, 0, 0]), np.array([9.0, 0.0, 1.0, 3.0]))
    assert evidence.confidence == pytest.approx([0.0, 0.0, 1 - np.exp(-1), 1 - np.exp(-3)])
    assert evidence.forbidden(0.0).tolist() == [False, True, True, True]
    assert evidence.forbidden(0.9).tolist() == [False, False, False, True]


def test_tuples_are_counted_as_the_answers_show_them() -> None:
    rng = np.random.default_rng(0)
    schema, short = chain(False, False, 3)
    shapes = [short, chain_of(schema, 5), chain_of(schema, 1)]
    numbers = rng.integers(3, size=40)
    batch = Batch.build(shapes, numbers, np.zeros(int(np.array([each.n_labels for each in shapes])[numbers].sum())))
    labels, some = rng.integers(3, size=batch.variable_at[-1]), np.arange(0, 40, 3)
    counted = np.zeros((3, 3), dtype=int)
    for p in some.tolist():
        mine = labels[batch.variable_at[p] : batch.variable_at[p + 1]]
        for left, right in pairwise(mine.tolist()):
            counted[left, right] += 1
    assert (Evidence.of(batch, labels, some).shown == counted.ravel()).all()


def test_chance_is_that_of_labels_drawn_one_by_one() -> None:
    schema = hasten.Schema()
    a = schema.variable("a", ["x", "y"])
    schema.factor("pair", left=a, right=a)
    assert chances(schema, np.array([6, 2, 1, 1])).tolist() == pytest.approx([5.6, 2.4, 1.4, 0.6])
    assert chances(schema, np.zeros(4, dtype=np.int64)).tolist() == [0.0] * 4


def test_costs_are_learned_until_no_answer_differs() -> None:
    batch, labels = answers_of(forbid=False, n=80)
    none = np.zeros(9, dtype=bool)
    perceptron = Perceptron(Changing(batch, none), batch, labels, StepSize(1.0, 0.0))
    tables = perceptron.learn(np.arange(80), 200, np.random.default_rng(0))
    assert perceptron.run(np.arange(80)) == 0
    assert (hasten.Certifier()(tables.added_to(batch)).labels == labels).mean() > 0.95
    more, right = answers_of(forbid=False, n=200, length=9, seed=5)  # longer than what it learned from
    found = hasten.Certifier()(tables.added_to(more)).labels.reshape(200, 9)
    assert (found == right.reshape(200, 9)).all(axis=1).mean() > 0.8


def test_an_update_only_levels_the_answer_with_what_was_found() -> None:
    schema = hasten.Schema()
    tag = schema.variable("tag", ["x", "y"])
    schema.factor("lone", of=tag)
    shape = schema.structure()
    shape.connect(schema.factors["lone"], of=shape.add(tag))
    batch, labels = shape.batch(np.array([[0.0, 3.0]])), np.array([1])
    changing = Changing(batch, np.zeros(2, dtype=bool))
    level = Perceptron(changing, batch, labels, StepSize(100.0, 0.0))
    assert level.run(np.array([0])) == 1
    assert level.learned.w.tolist() == [-0.75, 0.75, -0.75, 0.75]  # of the factor's tuples, and of labels
    small = Perceptron(changing, batch, labels, StepSize(0.25, 0.0))
    small.run(np.array([0]))
    assert small.learned.w.tolist() == [-0.25, 0.25, -0.25, 0.25]
    clear = Perceptron(changing, batch, labels, StepSize(100.0, 1.0))
    clear.run(np.array([0]))
    assert clear.learned.w.tolist() == [-1.0, 1.0, -1.0, 1.0]
    assert batch.cost.tolist() == [0.0, 3.0]


def test_time_is_counted_by_size() -> None:
    batch, _ = answers_of(forbid=False, n=10)
    longer, _ = answers_of(forbid=False, n=10, length=60)
    nothing = np.zeros(9, dtype=bool)
    batch, longer = Changing(batch, nothing).batch, Changing(longer, nothing).batch
    assert seconds(longer, np.arange(10)) > seconds(batch, np.arange(10)) > seconds(batch, np.arange(5)) > 0
