"""A gate: what it sees, what it learns from that, and what it refuses."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem

import hasten
from hasten.errors import NotFittedError, ProblemError, SchemaError
from hasten.learning.features import Examples, describe, guess_some
from hasten.learning.gate import Gate
from hasten.model.batch import Batch
from hasten.model.problem import Problem


def naive_regret(problem: Problem, expensive: list[bool], v: int, label: int) -> float:
    """What settled variables must pay at least for a label, summed over the factors that join them alone to `v`."""
    total = 0.0
    graph, kinds = problem.graph, problem.structure.kinds
    for f, factor in enumerate(problem.structure.factors):
        others = [u for u in factor.scope if u != v]
        if v not in factor.scope or graph.table_at[f] < 0 or any(expensive[u] for u in others):
            continue
        sizes = [len(kinds[u]) for u in factor.scope]
        table = problem.table[graph.table_at[f] : graph.table_at[f] + int(np.prod(sizes))].reshape(sizes)
        total += min(
            table[labels]
            + sum(
                _above(problem, u)[i] for u, i in zip(factor.scope, labels, strict=True) if u != v
            )
            for labels in product(*map(range, sizes))
            if labels[factor.scope.index(v)] == label
        )  # fmt: skip
    return total


def _above(problem: Problem, u: int) -> np.ndarray:
    costs = problem.costs_of(u)
    return np.zeros(len(costs)) if np.isinf(costs).all() else costs - costs.min()


@given(st.integers(0, 2**32 - 1))
def test_a_regret_is_what_the_settled_variables_must_pay_at_least(seed: int) -> None:
    problem = random_problem(np.random.default_rng(seed))
    if not problem.n_variables:
        return
    kinds = problem.structure.kinds
    expensive = [kind is kinds[0] for kind in kinds]
    at = np.flatnonzero(expensive)
    rows = np.empty((at.size, 2 + len(kinds[0])), dtype=np.int64)
    regrets = np.empty((at.size, len(kinds[0])))
    none = np.zeros((at.size, 0), dtype=np.int64)
    problems = np.zeros(at.size, dtype=np.int64)
    examples = Examples(rows, np.zeros((at.size, 0)), regrets)
    describe(problem.batch.arrays, np.array(expensive), problems, at, none, 1.0, 64, examples)
    expected = [[naive_regret(problem, expensive, v, i) for i in range(len(kinds[0]))] for v in at.tolist()]
    assert np.allclose(regrets, expected, equal_nan=True)
    assert ((rows >= 0) & (rows < 64)).all()


def labelled(n: int, seed: int) -> tuple[Batch, np.ndarray, np.ndarray]:
    """Problems of two entities; a hint says, all but surely, whether the forward relation is LiveIn or NoRel."""
    shape, rng = entity_relation(2), np.random.default_rng(seed)
    related = rng.random(n) < 0.5
    costs = rng.normal(size=(n, shape.n_labels)) * 0.1
    names = [kind.labels for kind in shape.kinds]
    first = shape.graph.first
    costs[:, first[0] + names[0].index("person")] -= 5
    costs[:, first[1] + names[1].index("location")] -= 5
    costs[:, first[2] + names[2].index("NoRel")] -= np.where(related, -3, 3)
    costs[:, first[2] + names[2].index("LiveIn")] -= np.where(related, 3, -3)
    costs[:, first[3] + names[3].index("NoRel")] -= 3
    return shape.batch(costs), related, hasten.Certifier()(shape.batch(costs)).labels


def hints(related: np.ndarray) -> Any:
    def cheap(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return np.stack([related[problems] * 10 + variables, np.full(len(problems), -1)], axis=1)

    return cheap


def test_a_gate_learns_what_cheap_features_tell() -> None:
    batch, related, labels = labelled(600, 0)
    gate = Gate({"relation": hints(related)}).fit(batch[:400], labels[: batch.variable_at[400]])
    guesses = gate.guess(batch[400:])
    forward = np.arange(2, 4 * 200, 4)
    kind = batch.structures[0].kinds[2]
    wanted = np.where(related[400:], kind.label("LiveIn"), kind.label("NoRel"))
    assert (guesses.label[forward] == wanted).all()
    assert (guesses.doubt[forward] < 0.1).all()
    assert guesses.expensive.tolist() == [False, False, True, True] * 200
    assert (guesses.label[~guesses.expensive] == -1).all()


def test_without_them_it_doubts_what_only_they_tell() -> None:
    batch, _, labels = labelled(400, 0)
    guesses = Gate({"relation": None}).fit(batch, labels).guess(batch)
    assert (guesses.doubt[2::4] > 0.3).all()  # the forward relation, a toss
    assert (guesses.doubt[3::4] < 0.05).all()  # the backward one, which never is


def test_it_never_guesses_what_tables_rule_out() -> None:
    shape = entity_relation(2)
    costs = np.zeros((50, shape.n_labels))
    labels = hasten.Certifier()(shape.batch(costs)).labels
    related = np.tile([0, 1, shape.kinds[2].label("LiveIn"), 5], 50)  # all LiveIn: person to location
    gate = Gate({"relation": None}).fit(shape.batch(costs), related)
    person, location = shape.kinds[0].label("person"), shape.kinds[1].label("location")
    closed = np.full((1, shape.n_labels), np.inf)
    first = shape.graph.first
    closed[0, first[0] + location], closed[0, first[1] + person] = 0.0, 0.0  # the other way round
    closed[0, first[2] :] = 0.0
    assert shape.kinds[2].labels[gate.guess(shape.batch(closed)).label[2]] != "LiveIn"
    assert len(labels) == 200


def test_values_weigh_features() -> None:
    batch, related, labels = labelled(400, 0)

    def cheap(problems: np.ndarray, variables: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return variables[:, None], np.where(related[problems], 1.0, -1.0)[:, None]

    guesses = Gate({"relation": cheap}).fit(batch, labels).guess(batch)
    assert (guesses.label == labels)[guesses.expensive].all()


@pytest.mark.parametrize("shift", [-(2**62), 2**62])
def test_features_may_be_any_numbers_but_minus_one(shift: int) -> None:
    batch, related, labels = labelled(400, 0)

    def cheap(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return (shift + 10 * related[problems] + variables)[:, None]

    def unsigned(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return cheap(problems, variables).astype(np.uint64)

    for features in (cheap, unsigned):
        guesses = Gate({"relation": features}).fit(batch, labels).guess(batch)
        assert (guesses.label == labels)[guesses.expensive].all()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32, np.uint8, ">i4"])
def test_features_may_be_whole_numbers_of_any_size(dtype: Any) -> None:
    batch, related, labels = labelled(400, 0)

    def cheap(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return (10 * related[problems] + variables)[:, None].astype(dtype)

    guesses = Gate({"relation": cheap}).fit(batch, labels).guess(batch)
    assert (guesses.label == labels)[guesses.expensive].all()


def test_a_pickled_gate_compiles_nothing_where_its_weights_cannot_be_written() -> None:
    batch, _, labels = labelled(100, 0)
    gate = Gate({"relation": None}).fit(batch, labels)
    guesses, n_versions = gate.guess(batch), len(guess_some.overloads)
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(gate, protocol=5, buffer_callback=buffers.append)
    shared = pickle.loads(pickled, buffers=[bytes(each) for each in buffers])
    assert (shared.guess(batch).doubt == guesses.doubt).all()
    assert len(guess_some.overloads) == n_versions


def test_the_ids_of_problems_are_kept_when_costs_are_given() -> None:
    batch, related, labels = labelled(300, 0)
    ids = np.arange(300)[::-1].copy()
    named = Batch.build(batch.structures, batch.structure, batch.cost, ids)
    gate = Gate({"relation": hints(related[::-1])}).fit(named, labels)
    chosen = named.select([5, 17, 200])
    assert chosen.ids is not None
    assert chosen.ids.tolist() == [294, 282, 99]
    assert named[17].id == 282
    assert hasten.Batch.of([named[17], named[5]]).ids.tolist() == [282, 294]
    assert gate.guess(chosen).label.tolist() == gate.guess(named).label[named.places(np.array([5, 17, 200]))].tolist()


@pytest.mark.parametrize(
    ("cheap", "message"),
    [
        (lambda p, v: np.zeros(len(p)), "array of float64 of shape .* a row for each variable"),
        (lambda p, v: np.zeros((len(p) + 1, 2), dtype=int), "a row for each variable"),
        (lambda p, v: (np.zeros((len(p), 2), dtype=int), np.zeros((len(p), 1))), "finite numbers of shape"),
        (lambda p, v: (np.zeros((len(p), 1), dtype=int), np.full((len(p), 1), np.nan)), "finite numbers of shape"),
        (lambda p, v: (np.zeros((len(p), 1), dtype=int), [["a"]] * len(p)), "values of the cheap features"),
    ],
)
def test_cheap_features_that_are_none_are_refused(cheap: Any, message: str) -> None:
    batch, _, labels = labelled(20, 0)
    with pytest.raises(ProblemError, match=message):
        Gate({"relation": cheap}).fit(batch, labels)


def test_what_makes_no_gate_is_refused() -> None:
    batch, _, labels = labelled(20, 0)
    with pytest.raises(ProblemError, match=r"kinds of variables whose costs are expensive.*Got \{\}"):
        Gate({})
    with pytest.raises(ProblemError, match="must be a function or None, got 3"):
        Gate({"relation": 3})  # type: ignore[dict-item]
    with pytest.raises(ProblemError, match="power of two, such as 65536; got 1000"):
        Gate({"relation": None}, n_rows=1000)
    with pytest.raises(SchemaError, match=r"no kind of variable 'relatoin'.*has entity, relation"):
        Gate({"relatoin": None}).fit(batch, labels)
    with pytest.raises(NotFittedError, match="Call fit"):
        Gate({"relation": None}).guess(batch)
    learned = Gate({"relation": None}).fit(batch, labels)
    with pytest.raises(ProblemError, match="another schema"):
        learned.guess(random_problem(np.random.default_rng(0)).batch)


def test_a_batch_of_nothing_is_guessed_in_no_time() -> None:
    batch, _, labels = labelled(20, 0)
    gate = Gate({"relation": None}).fit(batch, labels)
    assert gate.guess(batch[:0]).label.size == 0
