"""A trace shows how the compiled certifier proves: the same answer, and bounds and costs that hold at every step."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import entity_relation, small_problems
from strategies import rich_problems as problems

import hasten
from hasten.errors import ProblemError
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.paper.demo import NAMES, running_example
from hasten.proof.certifier import Certifier
from hasten.proof.report import STEPS, Step
from hasten.trace.events import Trace


def assert_same(one: Solution, other: Solution) -> None:
    assert (one.values is None) == (other.values is None)
    assert one.values is None or one.labels.tolist() == other.labels.tolist()
    assert (one.cost, one.bound, one.status, one.source) == (other.cost, other.bound, other.status, other.source)


@settings(max_examples=150)
@given(
    st.one_of(problems(), small_problems(), problems(soft=False, rules=False)),
    st.sampled_from([0, 4, 768, None]),
    st.sampled_from([None, 0, 3]),
    st.sampled_from([1, 100]),
)
def test_a_trace_is_what_the_compiled_certifier_does(
    problem: Problem, max_join: int | None, max_nodes: int | None, max_sweeps: int
) -> None:
    certifier = Certifier(max_join=max_join, max_nodes=max_nodes, max_sweeps=max_sweeps)
    trace, best = certifier.trace(problem), naive.solve(problem)
    assert trace.watched
    assert_same(trace.solution, certifier(problem))
    costs, bounds = [each.cost for each in trace.steps], [each.bound for each in trace.steps]
    slack = 1e-6 * max(1.0, abs(best.cost)) if best.labels is not None else 0.0
    assert all(bound <= best.cost + slack for bound in bounds)
    assert all(cost >= best.cost - slack for cost in costs)
    assert all(later <= earlier + slack for earlier, later in pairwise(costs))
    assert (costs[-1], bounds[-1]) == (trace.cost, trace.bound)
    report = certifier.report(problem)
    assert trace.steps[-1].step == STEPS[report.step[0] - 1].name.lower()
    assert sum("Sweep" in each.text for each in trace.steps) == report.n_sweeps[0]
    assert trace.steps[-1].n_nodes == report.n_nodes[0]
    written = trace.to_dict()
    again = Trace.from_dict(json.loads(json.dumps(written, allow_nan=False)))
    assert again.to_dict() == written
    assert str(again) == str(trace)


def test_every_step_is_seen_and_drawn() -> None:
    rng, shape = np.random.default_rng(3), entity_relation(6)
    easy = []
    for kind in shape.kinds:
        costs = rng.random(len(kind)) * 2
        costs[-1] -= 1.2 if len(kind) == 6 else 0.0
        easy.append(costs)
    noise = np.random.default_rng(0).normal(size=shape.n_labels)
    traces = {
        Step.LOOK: Certifier().trace(shape.problem([np.arange(len(kind), 0.0, -1.0) for kind in shape.kinds])),
        Step.REPAIR: Certifier().trace(shape.problem(easy)),
        Step.ELIMINATE: Certifier().trace(running_example(), names=NAMES),
        Step.SWEEP: Certifier(max_join=0).trace(running_example(), names=NAMES),
        Step.BRANCH: Certifier().trace(shape.problem(noise)),
    }
    for step, trace in traces.items():
        assert trace.solution is not None
        assert trace.solution.proved
        assert trace.steps[-1].step == step.name.lower()
        for picture in (trace._repr_html_(), trace._repr_svg_()):
            assert trace.steps[-1].text[:40] in picture
            assert Trace.from_dict(trace.to_dict())._repr_html_() == trace._repr_html_()
    assert any(message.factor == "table args" for each in traces[Step.REPAIR].steps for message in each.messages)
    assert any(each.messages for each in traces[Step.SWEEP].steps)
    assert len(traces[Step.SWEEP].beliefs) == 20
    assert traces[Step.ELIMINATE].eliminated == NAMES
    assert "What messages did" in traces[Step.SWEEP]._repr_html_()


def test_the_beliefs_of_a_proof_add_up_to_its_bound() -> None:
    trace = Certifier(max_join=0).trace(running_example(), names=NAMES)
    least = {each.variable: math.inf for each in trace.beliefs}
    for each in trace.beliefs:
        least[each.variable] = min(least[each.variable], each.belief)
    assert sum(least.values()) == pytest.approx(trace.bound)


def test_what_takes_too_long_to_watch_is_not_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    shape = entity_relation(7)
    problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
    certifier = Certifier(max_join=0, time_limit=60.0)
    for work in (0, 2000, 60_000):
        monkeypatch.setattr("hasten.proof.recorder.MOST_WORK", work)
        trace = certifier.trace(problem)
        assert not trace.watched
        assert "would take too long to watch" in str(trace)
        assert_same(trace.solution, Certifier(max_join=0)(problem))


def test_a_problem_without_a_labelling_is_told_so() -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["yes", "no"])
    never = schema.factor("never", left=kind, right=kind)
    never.forbid(left="yes").forbid(left="no")
    shape = schema.structure()
    shape.connect(never, left=shape.add(kind), right=shape.add(kind))
    for max_join in (0, 768):
        trace = Certifier(max_join=max_join).trace(shape.problem([[0.0, 1.0], [0.0, 1.0]]))
        assert trace.labels is None
        assert "No labelling satisfies all constraints: that is proved." in str(trace)
        assert "proved" in trace._repr_html_()


def test_what_cannot_be_traced_is_refused_in_words() -> None:
    problem = running_example()
    with pytest.raises(ProblemError, match="Expected one problem, got Batch"):
        Certifier().trace(problem.batch)
    with pytest.raises(ProblemError, match="Got 1 name for 4 variables"):
        Certifier().trace(problem, names=["Colin"])
    for names in (4, "four"):
        with pytest.raises(ProblemError, match="names of variables must be a list"):
            Certifier().trace(problem, names=names)
    assert Certifier().trace(problem, names=4 * ["same"]).names == ("same", "same (2)", "same (3)", "same (4)")


def test_rounding_is_not_drawn_as_a_gap() -> None:
    """A proof whose bound misses the cost by rounding alone shows both at one height, and nothing open."""
    shape = entity_relation(2)
    for seed in range(20):
        problem = shape.problem(np.random.default_rng(seed).normal(size=shape.n_labels) * 100)
        trace = Certifier().trace(problem)
        last = trace.steps[-1]
        if len({step.step for step in trace.steps}) == 1 and 0 < last.cost - last.bound < 1e-9:
            assert trace._repr_svg_().count('class="space"') == 1  # of the legend
            return
    raise AssertionError("no such proof was drawn")
