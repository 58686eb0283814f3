"""The compiled arrays say what their definitions say, and are let go once nothing needs them."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from collections.abc import Callable

import naive
import numpy as np
import pytest
from hypothesis import given
from strategies import entity_relation, random_problem, small_problems

from hasten.model import compiled, structure
from hasten.model.batch import Batch
from hasten.model.compiled import Slots
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.elimination import joins
from hasten.proof.elimination.plan import reduce
from hasten.search.beam import BeamSearch
from hasten.support.threads import Cache


def groups(first: np.ndarray, members: np.ndarray) -> list[list[int]]:
    """Returns the members of each group as lists."""
    return [members[first[i] : first[i + 1]].tolist() for i in range(len(first) - 1)]


@given(small_problems())
def test_factors_are_where_the_search_meets_them(problem: Problem) -> None:
    graph, order = problem.graph, naive.order_of(problem)
    scopes = [factor.scope for factor in problem.structure.factors]
    steps = [sorted(order.index(v) for v in scope) for scope in scopes]
    tables = [at >= 0 for at in graph.table_at]
    assert groups(graph.scope_first, graph.scope) == [list(scope) for scope in scopes]
    assert graph.last.tolist() == [order[step[-1]] for step in steps]
    for t in range(len(order)):
        done = [f for f, step in enumerate(steps) if step[-1] == t]
        left = [f for f, step in enumerate(steps) if len(step) > 1 and step[-2] == t and tables[f]]
        assert groups(graph.done_first, graph.done)[t] == done
        assert groups(graph.open_first, graph.open)[t] == left
    slots = [(f, v) for f, scope in enumerate(scopes) for v in scope]
    assert graph.factor_of.tolist() == [f for f, _ in slots]
    for v in range(len(order)):
        assert groups(graph.touch_first, graph.touch)[v] == [a for a, (_, u) in enumerate(slots) if u == v]


@given(small_problems())
def test_tables_stand_in_the_order_of_their_first_use(problem: Problem) -> None:
    graph, shape = problem.graph, problem.structure
    places: dict[object, int] = {}
    blocks: list[np.ndarray] = []
    for f, factor in enumerate(shape.factors):
        own = f in shape._slots.factors
        table = np.zeros(factor.kind.shape) if own else factor.kind.table
        if table is None:
            assert (graph.table_at[f], graph.listing[f]) == (-1, -1)
            continue
        key = f if own else factor.kind
        if key not in places:
            places[key] = len(blocks)
            blocks.append(table.ravel())
        assert graph.listing[f] == places[key]
        assert graph.table_at[f] == sum(map(len, blocks[: places[key]]))
    assert graph.table.tolist() == [cost for block in blocks for cost in block.tolist()]


@given(small_problems())
def test_rows_know_their_limits_and_what_each_variable_can_add(problem: Problem) -> None:
    graph, rows = problem.graph, naive.rows_of(problem)
    links: dict[tuple[int, int], tuple[float, float]] = {}
    for r, row in enumerate(rows):
        weights = row[0]
        assert (graph.row_least[r], graph.row_most[r]) == naive.limits(row)
        assert graph.row_counts[r] == all(weight in (0, 1) for weight in weights.values())
        for v, kind in enumerate(problem.structure.kinds):
            adds = [weights.get((v, i), 0.0) for i in range(len(kind))]
            if any(adds):
                links[v, r] = min(adds), max(adds)
        mine = [link for (_, of), link in links.items() if of == r]
        assert graph.range_low[r] == pytest.approx(sum(low for low, _ in mine))
        assert graph.range_high[r] == pytest.approx(sum(high for _, high in mine))
        whole = all(float(weight).is_integer() for weight in weights.values())
        assert (graph.row_margin[r] == 0.0) == (whole or not mine)
    starts = zip(graph.link_first[:-1], graph.link_first[1:], strict=True)
    found = [(v, int(graph.link_row[x])) for v, (x0, x1) in enumerate(starts) for x in range(x0, x1)]
    assert found == sorted(links)
    assert list(zip(graph.link_low, graph.link_high, strict=True)) == [links[key] for key in found]
    cells = [
        (graph.first[v] + i, r, weight) for r, row in enumerate(rows) for (v, i), weight in row[0].items() if weight
    ]
    by_label = sorted(cells, key=lambda cell: cell[:2])
    assert graph.cell_row.tolist() == [r for _, r, _ in by_label]
    assert graph.cell_weight.tolist() == [weight for _, _, weight in by_label]


def test_a_plan_does_not_depend_on_what_was_planned_before(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(40):
        shapes = [random_problem(np.random.default_rng(seed), max_variables=12).structure for _ in range(2)]
        warm = reduce(shapes[0].compiled, max_join=100)
        for name in ("_JOINS", "_PATTERNS"):
            monkeypatch.setattr(joins, name, Cache(limit=0))
        cold = reduce(shapes[1].compiled, max_join=100)
        monkeypatch.undo()
        for ours, theirs in ((warm.plan, cold.plan), (warm.graph, cold.graph)):
            for name in ours._fields:
                assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


# What is kept


def pair(schema: Schema, order: list[int]) -> Structure:
    """Returns two variables that differ, searched in some order."""
    shape = schema.structure()
    kind, differ = schema.variables["kind"], schema.factors["differ"]
    shape.connect(differ, one=shape.add(kind), other=shape.add(kind))
    shape.search_order(order)
    return shape


@pytest.fixture
def schema(monkeypatch: pytest.MonkeyPatch) -> Schema:
    """Returns a schema of which only the shape last used is kept, unless a structure has it."""
    monkeypatch.setattr(compiled, "_KEPT", Cache(limit=0))
    made = Schema()
    kind = made.variable("kind", ["a", "b"])
    made.factor("differ", one=kind, other=kind).forbid(one="a", other="a").forbid(one="b", other="b")
    return made


def test_a_shape_lives_as_long_as_its_structure(schema: Schema) -> None:
    shape = pair(schema, [0, 1])
    compiled = weakref.ref(shape.compiled)
    assert Certifier()(shape.problem([0.0, 1.0, 0.0, 1.0])).proved
    plan = weakref.ref(reduce(shape.compiled))
    other = pair(schema, [1, 0])
    assert other.compiled is not compiled()  # now that one is used last
    assert pair(schema, [0, 1]).compiled is compiled()
    assert reduce(shape.compiled) is plan()
    del shape
    assert pair(schema, [1, 0]).compiled is other.compiled
    gc.collect()
    assert (compiled(), plan()) == (None, None)


def test_the_shapes_used_last_wait_for_the_next_structure(schema: Schema) -> None:
    compiled = weakref.ref(pair(schema, [0, 1]).compiled)
    assert pair(schema, [0, 1]).compiled is compiled()


def test_rules_of_single_problems_are_let_go(schema: Schema) -> None:
    shape = pair(schema, [0, 1])
    seen = []
    for limit in range(5):
        rule = Rule.of("few", [(0, "a"), (1, "b")], at_most=limit / 2)
        problem = shape.problem([0.0, 1.0, 0.0, 1.0], rules=[rule])
        assert Certifier()(problem).cost == naive.solve(problem).cost
        seen.append(weakref.ref(problem.structure.compiled))
        del problem
    gc.collect()
    assert [each() is None for each in seen] == [True] * 4 + [False]


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda batch: pickle.loads(pickle.dumps(batch))])
def test_a_copy_of_a_batch_needs_nothing_of_the_first_one(copied: Callable[[Batch], Batch], schema: Schema) -> None:
    """Kernels find graphs by address: a copy must not have those of the first one, which may be gone."""
    shapes = [pair(schema, order) for order in ([0, 1], [1, 0])]
    batch = Batch.build(shapes, np.array([0, 1]), np.ones(8))
    single = batch[0]
    for each in (BeamSearch(reduce=True), Certifier()):
        assert each(batch).cost.tolist() == [2.0, 2.0]
        assert each(single).cost == 2.0
    other, alone = copied(batch), copied(single)
    own = {structure.graph.address for structure in other.structures}
    assert own.isdisjoint(structure.graph.address for structure in shapes)
    assert set(other.arrays.place[:-1, 0].tolist()) == own
    assert alone.structure.compiled.place[0, 0] == alone.structure.graph.address != shapes[0].graph.address
    del batch, single, shapes
    gc.collect()
    for each in (BeamSearch(reduce=True), Certifier()):
        assert each(other).cost.tolist() == [2.0, 2.0]
        assert each(alone).cost == 2.0


def test_a_structure_remembers_few_sets_of_own_tables() -> None:
    shape = entity_relation(4)
    table = np.ones(shape.factors[0].kind.shape)
    again = shape._with_slots(Slots(frozenset([0])))
    assert shape._with_slots(Slots(frozenset([0]))) is again
    for f in range(1, 30):
        for g in range(f):
            shape._with_slots(Slots(frozenset([f, g])))
    assert len(shape._variants) == structure.MAX_VARIANTS
    assert shape.problem(np.zeros(shape.n_labels), tables={0: table}).structure.compiled is again.compiled


def test_what_shares_variables_takes_no_more() -> None:
    shape = entity_relation(2)
    for twin in (
        shape._with_slots(Slots(frozenset([0]))),
        shape.with_rules([Rule.of("few", [(0, "person")], at_most=1)]),
    ):
        with pytest.raises(structure.SchemaError, match="in use"):
            twin.add(shape.kinds[0])


@given(small_problems())
def test_a_problem_can_be_sent_to_another_process(problem: Problem) -> None:
    before = Certifier()(problem)
    copy = pickle.loads(pickle.dumps(problem))
    after = Certifier()(copy)
    assert (after.cost, after.status) == (before.cost, before.status)
    assert copy.structure.schema.digest == problem.structure.schema.digest
