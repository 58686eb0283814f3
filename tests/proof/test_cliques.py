"""Pairs that exclude each other become cliques, and which labellings are valid stays as it was."""

from __future__ import annotations

from itertools import combinations, product

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.kernels.score import rows_hold
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.elimination.cliques import with_cliques
from hasten.proof.elimination.plan import reduce


def pairs(n: int, edges: list[tuple[int, int]], form: str = "at most", labels: str = "ab") -> Structure:
    """Returns variables of which no two neighbours may have label b, said in one of several ways."""
    schema = Schema()
    shape = schema.structure([schema.variable("kind", list(labels))] * n)
    for one, other in edges:
        name = f"{one}, {other}"
        if form == "at most":
            shape.rule(name, [(one, "b"), (other, "b")], at_most=1)
        elif form == "at least":
            shape.rule(name, [(one, "a"), (other, "a")], at_least=1)
        else:
            shape.rule(name, [(one, "b", 3.0), (other, "b", 5.0)], at_most=7)
    return shape


@given(st.integers(0, 9999), st.sampled_from(["at most", "at least", "weights"]))
def test_the_same_labellings_are_valid(seed: int, form: str) -> None:
    rng, n = np.random.default_rng(seed), 6
    edges = [pair for pair in combinations(range(n), 2) if rng.random() < 0.6]
    shape = pairs(n, edges, form)
    shape.rule("some", [(v, "a", float(rng.integers(1, 3))) for v in range(n)], at_least=3)
    shape.rule("differ", [(0, "a"), (1, "b")], exactly=1)
    problem, merged = shape.problem(np.zeros(shape.n_labels)), with_cliques(shape.graph)
    for labels in product(range(2), repeat=n):
        assert rows_hold(merged, np.array(labels)) == naive.valid(problem, labels)


@pytest.mark.parametrize("form", ["at most", "at least", "weights"])
def test_a_clique_is_one_row(form: str) -> None:
    shape = pairs(5, [*combinations(range(4), 2), (3, 4)], form)
    merged = reduce(shape.compiled).graph
    assert len(shape.graph.row_low) == 7
    assert len(merged.row_low) == 2
    assert merged.row_label[merged.row_first[1] :].tolist() == [1, 3, 5, 7]  # label b of the first four
    assert (merged.row_low[1], merged.row_high[1]) == (-np.inf, 1.0)


def test_what_says_more_than_that_two_exclude_each_other_stays() -> None:
    schema = Schema()
    shape = schema.structure([schema.variable("kind", ["a", "b", "c"])] * 3)
    for one, other in combinations(range(3), 2):
        shape.rule(f"{one}, {other}", [(one, "a"), (other, "a")], at_least=1)  # b and c of one with b and c of another
        shape.rule(f"exactly {one}, {other}", [(one, "b"), (other, "b")], exactly=1)
    assert with_cliques(shape.graph) is shape.graph


def test_pairs_without_a_third_stay() -> None:
    shape = pairs(4, [(0, 1), (1, 2), (2, 3), (0, 3)])
    assert with_cliques(shape.graph) is shape.graph
