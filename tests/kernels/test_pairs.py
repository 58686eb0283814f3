"""What a factor over two variables is found to cost is what going through its table says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from opened import OpenedModule

from hasten.model.schema import Schema
from hasten.proof.sweep import dual as pairs

p = OpenedModule(pairs)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(0, 999))
def test_both_ways_through_a_pair_see_every_allowed_tuple(n_one: int, n_other: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    own = np.where(rng.random((n_one, n_other)) < 0.3, np.inf, rng.normal(size=(n_one, n_other)))
    schema = Schema()
    one = schema.variable("one", [str(i) for i in range(n_one)])
    other = schema.variable("other", [str(i) for i in range(n_other)])
    pair = schema.factor("pair", a=one, b=other).set_table(own)
    shape = schema.structure()
    shape.connect(pair, a=shape.add(one), b=shape.add(other))
    n = n_one + n_other
    belief, message = np.where(rng.random(n) < 0.2, np.inf, rng.normal(size=n)), rng.normal(size=n)

    marginal = np.full(n, np.inf)
    p.pair_marginals(shape.graph, shape.graph.table, 0, belief, marginal)
    cells = own + belief[:n_one, None] + belief[n_one:]
    assert marginal.tolist() == [*cells.min(axis=1).tolist(), *cells.min(axis=0).tolist()]

    possible = cells < np.inf
    values = (own - message[:n_one, None]) - message[n_one:]
    sizes = np.abs(own) + np.abs(message[:n_one, None]) + np.abs(message[n_one:])
    least, largest = p.pair_minimum(shape.graph, shape.graph.table, 0, belief, message)
    assert least == values[possible].min(initial=np.inf)
    assert largest == sizes[possible].max(initial=0.0)
