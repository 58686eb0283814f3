"""Tables that problems bring: answered exactly as if the schema had said so, and without compiling anything anew."""

from __future__ import annotations

import copy
import gc
import math
import pickle
from itertools import pairwise, product
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import rich_problems

import hasten
from hasten.errors import SchemaError
from hasten.learning.tables import LearnedTables
from hasten.model.batch import Batch
from hasten.model.compiled import Slots
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem

TAGS = ["det", "noun", "verb"]


def least(problem: Problem, by_kind: dict[str, np.ndarray], by_factor: dict[int, np.ndarray]) -> float:
    """Returns what the best valid labelling costs if the tables were these, those of factors before those of kinds."""
    tables = []
    for f, factor in enumerate(problem.structure.factors):
        table = by_factor.get(f, by_kind.get(factor.kind.name, factor.kind.table))
        if table is not None:
            tables.append((factor.scope, table))
    rows, best = naive.rows_of(problem), math.inf
    for labels in product(*(range(len(kind)) for kind in problem.structure.kinds)):
        if all(naive.holds(row, labels) for row in rows):
            terms = [problem.costs_of(v)[i] for v, i in enumerate(labels)]
            terms += [table[tuple(labels[v] for v in scope)] for scope, table in tables]
            best = min(best, math.inf if math.inf in terms else math.fsum(terms))
    return best


def drawn(rng: np.random.Generator, kind: FactorKind) -> np.ndarray:
    """Returns a table that forbids what the schema does, or something else, or nothing; often it costs something."""
    table = rng.normal(size=kind.shape) * rng.integers(0, 3)
    how = rng.integers(4)
    if how == 0:
        table[rng.random(kind.shape) < 0.3] = np.inf
    elif how < 3 and kind.table is not None:
        table[np.isposinf(kind.table)] = np.inf
    return table


def drawn_tables(rng: np.random.Generator, problem: Problem) -> tuple[dict[str, np.ndarray], dict[int, np.ndarray]]:
    schema, factors = problem.structure.schema, problem.structure.factors
    by_kind = {name: drawn(rng, kind) for name, kind in schema.factors.items() if rng.random() < 0.7}
    by_factor = {f: drawn(rng, factor.kind) for f, factor in enumerate(factors) if rng.random() < 0.15}
    return by_kind, by_factor


def own_of(problem: Problem) -> dict[int, np.ndarray]:
    """Returns the tables that a problem brings for single factors."""
    kinds, table_at = [factor.kind for factor in problem.structure.factors], problem.graph.table_at
    slots = {f: problem.table[table_at[f] : table_at[f] + kinds[f].size] for f in problem.structure._slots.factors}
    return {f: table.reshape(kinds[f].shape) for f, table in slots.items()}


def check(problem: Problem, optimum: float) -> None:
    answer = hasten.Certifier()(problem)
    assert answer.cost == pytest.approx(optimum, abs=1e-6)
    assert answer.proved or answer.status is hasten.Status.FOUND
    assert hasten.Certifier(max_join=0)(problem).cost == pytest.approx(optimum, abs=1e-6)
    assert hasten.make_solver("brute").solve(problem).cost == pytest.approx(optimum, abs=1e-6)
    assert naive.solve(problem).cost == pytest.approx(optimum, abs=1e-6)


@given(rich_problems(max_variables=4, max_labels=3), st.integers(0, 2**16))
def test_answers_are_those_of_brute_force_with_these_tables(problem: Problem, seed: int) -> None:
    rng = np.random.default_rng(seed)
    by_kind, by_factor = drawn_tables(rng, problem)
    fresh = problem.structure.problem(problem.cost, tables={**by_kind, **by_factor})
    check(fresh, least(fresh, by_kind, by_factor))
    kept = {f: table for f, table in own_of(problem).items() if problem.structure.factors[f].kind.name not in by_kind}
    changed = problem.with_tables({**by_kind, **by_factor})
    check(changed, least(changed, by_kind, kept | by_factor))


@settings(max_examples=60)
@given(rich_problems(max_variables=4, max_labels=3), st.integers(0, 2**16))
def test_solvers_and_searches_see_these_tables(problem: Problem, seed: int) -> None:
    by_kind, by_factor = drawn_tables(np.random.default_rng(seed), problem)
    changed = problem.structure.problem(problem.cost, tables={**by_kind, **by_factor})
    optimum = least(changed, by_kind, by_factor)
    solved = hasten.make_solver("highs").solve(changed)
    assert solved.cost == pytest.approx(optimum, abs=1e-6)
    wide = hasten.BeamSearch(width=min(changed.n_outputs, 65_536))(changed)
    assert wide.cost == pytest.approx(optimum, abs=1e-6)
    if wide.valid:
        assert changed.check(wide.labels).valid
        assert changed.total(wide.labels) == pytest.approx(optimum, abs=1e-6)


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1))
def test_a_batch_changes_the_tables_of_all_its_problems(seed: int) -> None:
    rng = np.random.default_rng(seed)
    schema, problems = tagging(), []
    shapes = [sentence(schema, n) for n in (1, 2, 3, 4)]
    for _ in range(6):
        shape = shapes[rng.integers(len(shapes))]
        tables = {0: rng.normal(size=(3, 3))} if shape.n_variables > 1 and rng.random() < 0.3 else {}
        rules = [hasten.Rule.of("own", [(0, "verb")], at_most=0)] if rng.random() < 0.3 else []
        problems.append(shape.problem(rng.normal(size=shape.n_labels), tables=tables, rules=rules))
    changing = {"start": rng.normal(size=3)}
    if rng.random() < 0.5:
        changing["follow"] = rng.normal(size=(3, 3))
    batch = Batch.of(problems).with_tables(changing)
    again = Batch.of([problem.with_tables(changing) for problem in problems])
    answers = hasten.Certifier()(batch)
    assert answers.proved.all()
    for p, problem in enumerate(problems):
        own = {} if "follow" in changing else own_of(problem)
        assert answers.cost[p] == pytest.approx(least(problem, changing, own), abs=1e-6)
        assert batch[p].total(answers[p].labels) == pytest.approx(answers.cost[p])
    assert hasten.Certifier()(again).cost == pytest.approx(answers.cost)
    assert hasten.Certifier()(batch.with_tables({}).select([0, 2])).cost == pytest.approx(answers.cost[[0, 2]])


def tagging() -> hasten.Schema:
    schema = hasten.Schema()
    tag = schema.variable("tag", TAGS)
    schema.factor("follow", left=tag, right=tag).forbid(left="det", right="verb")
    schema.factor("start", first=tag)
    return schema


def sentence(schema: hasten.Schema, n: int) -> hasten.Structure:
    shape = schema.structure()
    words = [shape.add(schema.variables["tag"]) for _ in range(n)]
    for left, right in pairwise(words):
        shape.connect(schema.factors["follow"], left=left, right=right)
    shape.connect(schema.factors["start"], first=words[0])
    return shape


def test_other_costs_compile_nothing_and_keep_the_plan() -> None:
    schema, rng = tagging(), np.random.default_rng(0)
    shape = sentence(schema, 5)
    first = shape.problem(np.zeros(15), tables={"follow": soft(rng)})
    for _ in range(5):
        problem = shape.problem(np.zeros(15), tables={schema.factors["follow"]: soft(rng)})
        assert problem.structure is first.structure
        changed = first.with_tables({"follow": soft(rng)})
        assert changed.structure is first.structure
    assert first.structure._slots == Slots(kinds=frozenset([0]))
    assert len(first.table) == 9  # one table for all factors
    batch = shape.batch(rng.normal(size=(4, 15))).with_tables({"follow": soft(rng)})
    assert batch.structures[0].compiled is first.structure.compiled


def soft(rng: np.random.Generator) -> np.ndarray:
    table = rng.normal(size=(3, 3))
    table[0, 2] = np.inf
    return table


def test_what_the_schema_forbids_may_be_allowed() -> None:
    shape = sentence(tagging(), 2)
    costs = [[0, 1, 1], [1, 1, 0]]
    assert hasten.Certifier()(shape.problem(costs)).names != ["det", "verb"]
    free = shape.problem(costs, tables={"follow": np.zeros((3, 3))})
    assert hasten.Certifier()(free).names == ["det", "verb"]
    assert free.check(["det", "verb"]).valid
    assert not free.with_tables({"follow": np.full((3, 3), np.inf)}).check(["det", "verb"]).valid


def test_tables_that_do_not_fit_are_refused() -> None:
    shape = sentence(tagging(), 3)
    problem, batch = shape.problem(np.zeros(9)), shape.batch(np.zeros((2, 9)))
    wrong: list[tuple[dict[Any, Any], str]] = [
        ({"fellow": np.zeros((3, 3))}, "no factor kind 'fellow'. This schema has follow, start"),
        ({"follow": np.zeros((3, 2))}, "follow needs a table of shape"),
        ({"follow": np.full((3, 3), np.nan)}, "nan or -inf"),
        ({"follow": np.full((3, 3), -np.inf)}, "nan or -inf"),
        ({"follow": "much"}, "which are numbers"),
        ({tagging().factors["start"]: np.zeros(4)}, "start needs a table of shape"),
    ]
    for tables, message in wrong:
        for change in (
            problem.with_tables,
            batch.with_tables,
            lambda tables: shape.problem(np.zeros(9), tables=tables),
        ):
            with pytest.raises(SchemaError, match=message):
                change(tables)
    for number in (3, -1, 1.5, None, True):
        with pytest.raises(SchemaError, match="There is no factor"):
            problem.with_tables({number: np.zeros((3, 3))})
    with pytest.raises(SchemaError, match=r"use problem.with_tables"):
        batch.with_tables({0: np.zeros((3, 3))})


def test_given_tables_are_copied_and_may_be_of_any_kind_of_array() -> None:
    shape = sentence(tagging(), 3)
    given = np.zeros((6, 3), dtype=np.float32)[::2]
    given.flags.writeable = False
    problem = shape.problem(np.zeros(9), tables={"follow": given.T})
    own = np.zeros((3, 3))
    kept = problem.with_tables({"follow": own})
    own[:] = 7.0
    assert kept.total([0, 0, 0]) == problem.total([0, 0, 0]) == 0.0


def test_problems_with_other_tables_are_copied_and_pickled() -> None:
    shape, rng = sentence(tagging(), 3), np.random.default_rng(3)
    batch = shape.batch(rng.normal(size=(5, 9))).with_tables({"follow": soft(rng)})
    cost = hasten.Certifier()(batch).cost
    for twin in (copy.deepcopy(batch), pickle.loads(pickle.dumps(batch))):  # our own, made here
        assert hasten.Certifier()(twin).cost.tolist() == cost.tolist()


def test_lazy_costs_stay_lazy() -> None:
    shape, asked = sentence(tagging(), 3), []

    def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        asked.append(len(variables))
        return np.zeros(3 * len(variables))

    lazy = shape.problem(scorer).with_tables({"start": np.array([0.0, 0.0, -1.0])})
    assert (lazy.lazy, asked) == (True, [])
    batch = Batch.build([shape], np.zeros(4, dtype=int), scorer).with_tables({"start": np.array([1.0, 1.0, 2.0])})
    assert (batch.lazy, asked) == (True, [])
    assert hasten.Certifier()(lazy).cost == -1.0
    assert hasten.Certifier()(batch).cost.tolist() == [1.0] * 4


def test_a_speedup_answers_and_learns_with_tables_that_change() -> None:
    schema, rng = tagging(), np.random.default_rng(4)
    shape = sentence(schema, 4)
    batch = shape.batch(rng.normal(size=(40, 12))).with_tables({"follow": soft(rng)})
    optimum = [naive.solve(problem).cost for problem in batch]
    assert hasten.Speedup(schema).predict(batch).cost == pytest.approx(optimum)
    live = hasten.Speedup(schema, answer=hasten.Search(width=2), trust=hasten.Trust(audit=0.5), learn=True, seed=1).fit(
        batch
    )
    assert live.predict(batch).valid.all()
    tables = LearnedTables(schema, np.zeros(schema.n_weights, dtype=bool), rng.normal(size=schema.n_weights))
    follow, start = (tables.cost[kind.weight_at :][: kind.size].reshape(kind.shape) for kind in schema.factors.values())
    given = soft(rng)
    learned = tables.added_to(shape.batch(batch.cost.reshape(40, -1)).with_tables({"follow": given}))
    for p, cost in enumerate(hasten.Certifier()(learned).cost):
        assert cost == pytest.approx(least(learned[p], {"follow": given + follow, "start": start}, {}))


@pytest.mark.parametrize("wrong", [[np.zeros((3, 3))], np.zeros((3, 3)), "follow"])
def test_tables_that_do_not_say_whose_they_are_are_refused(wrong: Any) -> None:
    shape = sentence(tagging(), 3)
    problem = shape.problem(np.zeros(9))
    bring = [lambda: shape.problem(np.zeros(9), tables=wrong), lambda: problem.with_tables(wrong)]
    for each in (*bring, lambda: problem.batch.with_tables(wrong)):
        with pytest.raises(SchemaError, match="Tables are given by the number of their factor, or by its kind"):
            each()


def test_tables_that_keep_changing_keep_nothing() -> None:
    shape, rng = sentence(tagging(), 3), np.random.default_rng(5)
    problem = shape.problem(np.zeros(9), tables={"follow": soft(rng)})
    free, hard = np.zeros((3, 3)), soft(rng)
    for x in range(6):
        problem = problem.with_tables({"follow": free if x % 2 else hard})
    gc.collect()
    before = sum(type(each) is hasten.Structure for each in gc.get_objects())
    for x in range(40):
        problem = problem.with_tables({"follow": free if x % 2 else hard})
    gc.collect()
    assert sum(type(each) is hasten.Structure for each in gc.get_objects()) <= before + 1
