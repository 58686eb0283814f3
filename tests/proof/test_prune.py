"""Pruning by gains over defaults, against the least cost over all labellings, in exact arithmetic."""

from fractions import Fraction
from itertools import combinations, permutations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten
from hasten.proof.plan import plan_for
from hasten.proof.prune import PRUNING

N_TYPES, N_RELATIONS = 14, 6  # more than 1,000 entries a table
NONE = N_RELATIONS - 1


def a_schema(triples, defaults=(NONE,), both=None):
    schema = hasten.Schema()
    entity = schema.variable("entity", [f"t{i}" for i in range(N_TYPES)])
    relation = schema.variable("relation", [f"r{i}" for i in range(N_RELATIONS)])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    for source, label, target in triples:
        args.allow(source=f"t{source}", relation=f"r{label}", target=f"t{target}")
    for label in defaults:
        args.allow(relation=f"r{label}")
    if both is not None:  # which relations a pair may have at once, one each way
        pairs = schema.factor("both", there=relation, back=relation)
        for there, back in both:
            pairs.allow(there=f"r{there}", back=f"r{back}")
    return schema


def a_structure(schema, n):
    args, relation, number = schema.factors["args"], schema.variables["relation"], {}
    shape = schema.structure(["entity"] * n)
    for i, j in permutations(range(n), 2):
        number[i, j] = shape.add(relation)
        shape.connect(args, source=i, relation=number[i, j], target=j)
    for i, j in combinations(range(n), 2) if "both" in schema.factors else ():
        shape.connect(schema.factors["both"], there=number[i, j], back=number[j, i])
    return shape


BOTH = st.none() | st.sets(st.tuples(st.integers(0, NONE), st.integers(0, NONE)), max_size=6)


def exact(value):
    return None if value == np.inf else Fraction(float(value))


def least_cost(cost, n, allowed, both):
    """The least cost over all types; the relations of each pair then take their cheapest labels that are allowed."""
    entity = [[exact(value) for value in row] for row in cost[: n * N_TYPES].reshape(n, N_TYPES)]
    relation = [[exact(value) for value in row] for row in cost[n * N_TYPES :].reshape(-1, N_RELATIONS)]
    of_pair = dict(zip(permutations(range(n), 2), relation, strict=True))
    best = None
    for types in product(*([i for i in range(N_TYPES) if row[i] is not None] for row in entity)):
        total = sum((row[i] for row, i in zip(entity, types, strict=True)), Fraction(0))
        for i, j in combinations(range(n), 2):
            there, back = (
                {r: row[r] for r in range(N_RELATIONS) if row[r] is not None and (types[s], r, types[t]) in allowed}
                for row, s, t in ((of_pair[i, j], i, j), (of_pair[j, i], j, i))
            )
            fitting = [there[r] + back[q] for r in there for q in back if both is None or (r, q) in both]
            if not fitting:
                break
            total += min(fitting)
        else:
            best = total if best is None else min(best, total)
    return best


def allowed_by(triples, defaults):
    every = {(i, r, j) for r in defaults for i in range(N_TYPES) for j in range(N_TYPES)}
    return every | set(triples)


COSTS = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(-10, 10, allow_nan=False),
    st.just(np.inf),
    st.floats(-1e12, 1e12, allow_nan=False),
)
TRIPLES = st.lists(
    st.tuples(st.integers(0, N_TYPES - 1), st.integers(0, NONE), st.integers(0, N_TYPES - 1)), max_size=40
)


@settings(max_examples=150, deadline=None)
@given(st.integers(1, 3), TRIPLES, st.sets(st.integers(0, NONE), min_size=1, max_size=2), BOTH, st.data())
def test_pruned_answers_are_optimal(n, triples, defaults, more, data):
    both = None
    if more is not None:
        fitting = {pair for r in defaults for q in range(N_RELATIONS) for pair in ((r, q), (q, r))}
        both = fitting | more
    shape = a_structure(a_schema(triples, defaults, both), n)
    assert n == 1 or takes_pruning(shape)
    few = data.draw(st.lists(COSTS, min_size=12, max_size=12))
    cost = np.array(few)[np.random.default_rng(data.draw(st.integers(0, 99))).integers(0, 12, shape.n_labels)]
    found = hasten.Certifier()(shape.problem(cost))
    truth = least_cost(cost, n, allowed_by(triples, defaults), both)
    assert found.proved or truth is None or abs(cost[np.isfinite(cost)]).max() > 1e6
    if truth is None:
        assert found.values is None
    elif found.proved:
        size = max(1.0, *np.abs(cost[np.isfinite(cost)]))
        assert abs(Fraction(found.cost) - truth) <= Fraction(1e-9) * Fraction(size) * shape.n_variables
        assert found.bound <= float(truth) + 1e-9 * size


def test_a_batch_is_pruned_as_each_problem_is():
    rng = np.random.default_rng(0)
    triples = [tuple(row) for row in rng.integers(0, [N_TYPES, NONE, N_TYPES], (60, 3)).tolist()]
    schema = a_schema(triples, both={(NONE, r) for r in range(NONE)} | {(r, NONE) for r in range(NONE + 1)})
    shapes = [a_structure(schema, n) for n in (1, 2, 4)]
    problems = [shape.problem(rng.normal(size=shape.n_labels) * 3) for _ in range(20) for shape in shapes]
    together = hasten.Certifier()(problems)
    assert together.proved.all()
    for problem, answer in zip(problems, together, strict=True):
        alone = hasten.Certifier()(problem)
        assert (alone.labels == answer.labels).all()
        assert (alone.cost, alone.bound) == (answer.cost, answer.bound)


def test_relations_pull_spans_to_types_that_they_would_not_have_alone():
    rng = np.random.default_rng(1)
    triples = [tuple(row) for row in rng.integers(0, [N_TYPES, NONE, N_TYPES], (60, 3)).tolist()]
    shape = a_structure(a_schema(triples), 6)
    batch = shape.batch(rng.normal(size=(20, shape.n_labels)))
    found = hasten.Certifier()(batch)
    solver = hasten.make_solver("highs")
    assert found.proved.all()
    assert found.cost == pytest.approx([solver.solve(problem).cost for problem in batch])


def takes_pruning(shape):
    return plan_for(shape.compiled).part(PRUNING) is not None


def test_it_is_for_large_tables_with_a_default_alone():
    assert takes_pruning(a_structure(a_schema([(0, 0, 1)]), 2))
    assert not takes_pruning(a_structure(a_schema([(0, 0, 1), (1, NONE, 0)], defaults=()), 2))
    with_rule = a_schema([(0, 0, 1)])
    with_rule.rule("few", at_most=1, entity="t0")
    assert not takes_pruning(a_structure(with_rule, 2))
    soft = a_schema([(0, 0, 1)])
    entity = soft.variables["entity"]
    alike = soft.factor("alike", one=entity, other=entity).cost(1.0, one="t0", other="t0")
    shape = a_structure(soft, 2)
    shape.connect(alike, one=0, other=1)
    assert not takes_pruning(shape)


def test_tables_that_problems_bring_are_not_taken_for_the_schemas():
    schema = a_schema([(0, 0, 1)])
    shape = a_structure(schema, 2)
    table = np.full((N_TYPES, N_RELATIONS, N_TYPES), np.inf)
    table[1, 2, 1] = 5.0
    cost = np.zeros(shape.n_labels)
    found = hasten.Certifier()(shape.problem(cost, tables={"args": table}))
    assert found.proved
    assert found.names == ["t1", "t1", "r2", "r2"]
    assert found.cost == 10.0
