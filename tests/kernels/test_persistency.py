"""Labels that roof duality fixes are in some cheapest labelling, but for a loss that is told; its bound is a bound."""

from __future__ import annotations

from fractions import Fraction

import exact
import numpy as np
import pytest
from binary import NUMBERS, draw_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten.model.batch import ONLY, arrays_of
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.proof.certifier import Certifier
from hasten.proof.cut import persistency
from hasten.proof.cut.network import make_network
from hasten.proof.cut.persistency import PERSISTENCY, fix_some, only_fixed
from hasten.proof.outcome import BEST, BOUND, INFEASIBLE, OPEN, OUTCOME, PROVED, UNFIXED, Fixing, Proofs
from hasten.proof.plan import plan_for
from hasten.support.clock import NEVER_STOP

INF = float("inf")


def fixed(problem: Problem) -> tuple[Proofs, Fixing]:
    """Fixes what can be fixed of a problem, whatever other steps could do."""
    network = make_network(problem.graph)
    assert network is not None
    n = problem.n_variables
    proofs = Proofs(np.full(n, -1), np.array([[INF], [-INF], [0.0]]), np.full((5, 1), OPEN))
    fixing = Fixing(np.full(n, UNFIXED), np.zeros(1))
    fix_some((*arrays_of(problem),), ONLY, (*proofs,), np.array([network.address]), (*fixing,), NEVER_STOP)
    return proofs, fixing


def check(problem: Problem) -> int:
    """Asserts all that fixing claims, in exact arithmetic; returns how many labels were fixed."""
    (proofs, fixing), optimum = fixed(problem), exact.optimum(problem)
    assert exact.at_most(proofs.values[BOUND, 0], optimum)
    if proofs.facts[OUTCOME, 0] == INFEASIBLE:
        assert optimum == INF
    if proofs.facts[OUTCOME, 0] == PROVED:
        assert proofs.values[BEST, 0] == problem.total(proofs.labels)
    arrays = only_fixed(arrays_of(problem), [problem.graph], ONLY, fixing)
    with_them = exact.optimum(problem.alike(arrays.cost[None])[0])
    if optimum == INF:
        assert with_them == INF
    else:
        assert with_them < INF
        assert with_them - optimum <= Fraction(float(fixing.loss[0]))
    return int((fixing.labels != UNFIXED).sum())


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(NUMBERS)), st.booleans())
@settings(max_examples=300)
def test_fixing_claims_nothing_false(seed: int, numbers: str, agreeing: bool) -> None:
    check(draw_problem(seed, numbers, agreeing, rules=False))


@pytest.mark.parametrize("numbers", ["whole", "normal", "tenths", "tiny", "large"])
def test_something_is_fixed_of_problems_that_are_no_cut(numbers: str) -> None:
    assert sum(check(draw_problem(seed, numbers, agreeing=False, rules=False)) for seed in range(60)) > 30


def clique(n: int, field: float, seed: int, *, forbid: bool = False) -> Problem:
    """Returns spins of which all pairs want to be alike, or to differ, as it happens."""
    rng, schema = np.random.default_rng(seed), Schema()
    spin = schema.variable("spin", ["down", "up"])
    pair = schema.factor("pair", one=spin, other=spin)
    shape, tables = schema.structure(), {}
    for v in range(n):
        shape.add(spin)
        for u in range(v):
            table = rng.normal() * np.array([[-1.0, 1.0], [1.0, -1.0]])
            if forbid and rng.random() < 0.1:
                table[rng.integers(2), rng.integers(2)] = INF
            tables[shape.connect(pair, one=u, other=v)] = table
    return shape.problem(field * rng.normal(size=2 * n), tables=tables)


def by_enumeration(problem: Problem) -> float:
    """Returns the least cost of all labellings, in floats."""
    n = problem.n_variables
    labels = np.arange(2**n)[:, None] >> np.arange(n) & 1
    total = sum(problem.cost[2 * v : 2 * v + 2][labels[:, v]] for v in range(n))
    for factor, at in zip(problem.structure.factors, problem.graph.table_at.tolist(), strict=True):
        u, v = factor.scope
        total = total + problem.table[at : at + 4].reshape(2, 2)[labels[:, u], labels[:, v]]
    return float(np.min(total))


@pytest.mark.parametrize("most_unfixed", [0, 600])
@pytest.mark.parametrize("forbid", [False, True])
def test_the_rest_is_proved_by_elimination_or_by_branching(
    monkeypatch: pytest.MonkeyPatch, most_unfixed: int, forbid: bool
) -> None:
    monkeypatch.setattr(persistency, "MOST_UNFIXED", most_unfixed)
    problems = [clique(14, field, seed, forbid=forbid) for seed, field in enumerate((0.0, 2.0, 8.0, 12.0, 30.0))]
    assert plan_for(problems[0].structure.compiled).part(PERSISTENCY) is not None
    together = Certifier()(problems)
    for problem, among in zip(problems, together, strict=True):
        found = Certifier()(problem)
        assert found.proved
        assert (found.cost, found.bound, found.status) == (among.cost, among.bound, among.status)
        least = by_enumeration(problem)
        assert found.cost == pytest.approx(least) if least < INF else found.values is None


def test_strong_fields_fix_all_and_none_fix_nothing() -> None:
    proofs, fixing = fixed(clique(10, 100.0, 0))
    assert proofs.facts[OUTCOME, 0] == PROVED
    assert (fixing.labels != UNFIXED).all()
    _, fixing = fixed(clique(10, 0.0, 0))
    assert (fixing.labels == UNFIXED).all()


def test_a_trace_tells_what_was_fixed() -> None:
    assert "roof duality fixes 12 of 12 variables" in str(Certifier().trace(clique(12, 100.0, 0)))
