"""A cut is never called cheaper than it is, and where no pair is against the others it is the optimum.

Costs and tables are of every magnitude, with ties and infinities; optima are enumerated in exact arithmetic.
"""

from __future__ import annotations

import exact
import numpy as np
import pytest
from binary import NUMBERS, draw_problem
from hypothesis import given
from hypothesis import strategies as st
from proofs import assert_sound

from hasten.model.batch import ONLY, arrays_of
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.cut import CUTTING, cut_some
from hasten.proof.cut.network import make_network
from hasten.proof.look import look_at_some
from hasten.proof.outcome import STEP, nothing_known
from hasten.proof.plan import plan_for
from hasten.proof.report import Step, solutions_of
from hasten.solvers import make_solver
from hasten.support.clock import NEVER_STOP

INF = float("inf")
USUAL = ("whole", "normal", "same", "zero", "tenths", "near", "denormal", "tiny")


def cut_alone(problem: Problem) -> tuple[Solution, bool]:
    """Cuts a problem, or looks at it if it is no cut, nothing else; returns what came out, and whether it was a cut."""
    network = make_network(problem.graph)
    assert network is not None
    proofs, arrays = nothing_known(1, problem.n_variables), (*arrays_of(problem),)
    cut_some(arrays, ONLY, (*proofs,), np.array([network.address]), NEVER_STOP)
    was_cut = bool(proofs.facts[STEP, 0])
    if not was_cut:
        look_at_some(arrays, ONLY, (*proofs,), NEVER_STOP)
    return solutions_of(problem.batch, proofs)[0], was_cut


@given(st.integers(0, 2**32 - 1), st.sampled_from(list(NUMBERS)), st.booleans())
def test_a_cut_claims_nothing_false(seed: int, numbers: str, agreeing: bool) -> None:
    problem = draw_problem(seed, numbers, agreeing)
    found, _ = cut_alone(problem)
    assert_sound(found, exact.optimum(problem))


@pytest.mark.parametrize("numbers", USUAL)
def test_what_agrees_after_flips_is_always_proved(numbers: str) -> None:
    cuts = 0
    for seed in range(200):
        problem = draw_problem(seed, numbers, agreeing=True)
        found, was_cut = cut_alone(problem)
        if was_cut:
            assert found.proved
            assert_sound(found, exact.optimum(problem))
            cuts += 1
    assert cuts > 150  # infinities that forbid agreement here and difference there are no cut


def potts(n: int, *, cost: float = 1.0) -> Structure:
    """Returns a grid whose neighbours should agree."""
    schema = Schema()
    pixel = schema.variable("pixel", ["off", "on"])
    same = schema.factor("same", one=pixel, other=pixel).set_table([[0.0, cost], [cost, 0.0]])
    shape = schema.structure()
    for _ in range(n * n):
        shape.add(pixel)
    for v in range(n * n):
        if v % n < n - 1:
            shape.connect(same, one=v, other=v + 1)
        if v < n * (n - 1):
            shape.connect(same, one=v, other=v + n)
    return shape


@pytest.mark.parametrize("cost", [1.0, -1.0])
def test_grids_of_pixels_are_proved_by_cutting(cost: float) -> None:
    shape = potts(12, cost=cost)  # neighbours that should differ are flipped, as on a chessboard
    batch = shape.batch(np.random.default_rng(0).normal(size=(6, shape.n_labels)))
    report = Certifier().report(batch)
    assert report.proved_by[Step.CUT] == 6
    solver = make_solver("highs")
    for answer in report.solutions:
        assert answer.cost == pytest.approx(solver.solve(answer.problem).cost)
        assert Certifier()(answer.problem).cost == answer.cost
    together = Certifier()(batch, n_jobs=2)
    assert (together.labels == report.solutions.labels).all()


def hierarchy(n: int, how: str) -> Structure:
    """Returns classes of which each implies two others, or one: as tables, or as rules."""
    schema = Schema()
    label = schema.variable("class", ["no", "yes"])
    implies = schema.factor("implies", child=label, parent=label).imply(when={"child": "yes"}, then={"parent": "yes"})
    shape, rng = schema.structure(), np.random.default_rng(0)
    for v in range(n):
        shape.add(label)
        for parent in set(rng.integers(0, v, 2).tolist()) if v else ():
            if how == "rules":
                shape.implies(f"{v} implies {parent}", (v, "yes"), (parent, "yes"))
            else:
                shape.connect(implies, child=v, parent=parent)
    return shape


def test_a_hierarchy_of_classes_is_a_cut_as_tables_and_as_rules() -> None:
    shapes = [hierarchy(150, how) for how in ("tables", "rules")]
    rows = np.random.default_rng(1).normal(size=(5, shapes[0].n_labels))
    tables, rules = (Certifier().report(shape.batch(rows)) for shape in shapes)
    assert tables.proved_by[Step.CUT] == 5
    assert rules.solutions.proved.all()
    assert tables.solutions.cost == pytest.approx(rules.solutions.cost)
    assert tables.solutions[0].cost == pytest.approx(make_solver("highs").solve(shapes[0].problem(rows[0])).cost)


def test_rules_that_do_not_bind_cost_nothing_and_others_are_kept() -> None:
    free = potts(9)
    rows = np.random.default_rng(0).normal(size=(8, free.n_labels))
    unruled = Certifier()(free.batch(rows))
    many = [sum(answer.labels) for answer in unruled]
    ruled = potts(9)
    ruled.rule("not many", [(v, "on") for v in range(81)], at_most=float(np.median(many)))
    answers = Certifier(max_nodes=0)(ruled.batch(rows))
    assert answers.proved.any()
    for answer, before, n in zip(answers, unruled, many, strict=True):
        assert answer.bound <= answer.cost
        if n <= np.median(many):
            assert answer.proved
            assert answer.cost == before.cost
        else:
            assert answer.bound >= before.bound - 1e-9  # the cut's bound is kept


def test_elimination_keeps_what_it_is_faster_on() -> None:
    shape = hierarchy(2, "tables")
    shape.problem(np.zeros(4))
    assert plan_for(shape.compiled).part(CUTTING) is None
    assert plan_for(potts(12).compiled).part(CUTTING) is not None


def test_a_cut_without_time_is_stopped_and_says_so() -> None:
    shape = potts(40)
    answer = Certifier(time_limit=1e-9)(shape.problem(np.random.default_rng(0).normal(size=shape.n_labels)))
    assert answer.proved or "time" in answer.status


def test_a_trace_tells_of_the_cut() -> None:
    shape = potts(9)
    trace = Certifier().trace(shape.problem(np.random.default_rng(0).normal(size=shape.n_labels)))
    assert trace.steps[-1].step == Step.CUT.name.lower()
    assert "smallest cut" in str(trace)
    assert trace.watched
