"""Whatever NumPy is told to do about rounding, overflow and underflow, everything that answers answers the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from strategies import entity_relation

import hasten
from hasten.model.batch import Batch
from hasten.search.beam import BeamSearch, ConstrainedSearch
from hasten.solvers import available_solvers, make_solver
from hasten.speedup.audit import upper_limit

ANSWERING: dict[str, Callable[[Batch], Any]] = {
    "greedy": hasten.greedy(),
    "beam": hasten.BeamSearch(width=3, look_ahead=True),
    "theta": hasten.BeamSearch(width=2, theta=0.5),
    "reduced": BeamSearch(width=2, look_ahead=True, reduce=True),
    "constrained": ConstrainedSearch(),
    "certifier": hasten.Certifier(),
    "branching": hasten.Certifier(max_join=0),
    "certified": lambda batch: hasten.Speedup(batch.structures[0].schema).predict(batch),
    "searching": lambda batch: hasten.Speedup(batch.structures[0].schema, answer="search").fit(batch).predict(batch),
    "learned": lambda batch: hasten.Speedup(batch.structures[0].schema, answer="learned").fit(batch).predict(batch),
    "trace of a search": lambda batch: hasten.BeamSearch(width=2, theta=0.5).trace(batch[0]).solution,
    "trace of a proof": lambda batch: hasten.Certifier().trace(batch[0]).solution,
    **{
        name: lambda batch, name=name: [make_solver(name).solve(problem) for problem in batch]
        for name in ("highs", "gurobi", "toulbar2")
        if available_solvers()[name]
    },
}


@pytest.mark.parametrize("scale", [1e-310, 1.0, 1e300], ids=["tiny", "plain", "huge"])
@pytest.mark.parametrize("name", ANSWERING)
def test_answers_do_not_depend_on_numpys_settings(name: str, scale: float) -> None:
    shape = entity_relation(2)
    costs = np.random.default_rng(0).normal(size=(6, shape.n_labels)) * scale
    costs[:, 0] = math.inf

    def answers() -> Any:
        found = ANSWERING[name](shape.batch(costs))
        each = found if isinstance(found, list) else [found]
        return [(np.asarray(one.cost).tolist(), np.asarray(one.valid).tolist()) for one in each]

    try:
        wanted = answers()
    except hasten.HastenError as error:
        wanted = str(error)
    with np.errstate(all="raise"):
        try:
            found = answers()
        except hasten.HastenError as error:
            found = str(error)
    assert found == wanted


def test_limits_of_rare_events_do_not_depend_on_numpys_settings() -> None:
    upper_limit.cache_clear()
    with np.errstate(all="raise"):
        assert 5e-4 < upper_limit(100, 100_000, 0.95) < 2e-3
