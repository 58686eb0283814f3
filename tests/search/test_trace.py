"""A trace shows what the compiled search does: the same answer, the same steps, to the last bit."""

from __future__ import annotations

import json
from collections import Counter
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from searching import INF, assert_same, labels_of, switches, weighted_problems
from strategies import entity_relation, small_problems
from strategies import rich_problems as problems

import hasten
from hasten.errors import ProblemError, SchemaError
from hasten.kernels.search.nodes import FORCED
from hasten.model.problem import Problem
from hasten.paper.demo import NAMES, running_example
from hasten.search.beam import BeamSearch, greedy
from hasten.trace.events import Trace


def lazily(problem: Problem) -> Problem:
    """Returns the same problem with costs that are computed on demand."""

    def costs(_: np.ndarray, variables: np.ndarray) -> np.ndarray:
        return np.concatenate([np.zeros(0), *(problem.costs_of(v) for v in variables)])

    lazy = problem.structure.problem(costs)
    lazy.table = problem.table
    return lazy


def check_steps(trace: Trace, reference: tuple[int, ...]) -> None:
    """What holds of every trace."""
    lost = False
    for t, step in enumerate(trace.steps):
        ranked = [each for each in step.candidates if each.rank is not None]
        assert [each.rank for each in ranked] == list(range(1, len(ranked) + 1))
        assert [each.priority for each in ranked] == sorted(each.priority for each in ranked)
        assert list(step.kept) == ranked[: len(step.kept)]  # a beam keeps the best
        assert len(step.kept) <= trace.width
        assert all(bool(each.ruled_out) == (each.rank is None) for each in step.candidates)
        assert {each.node for each in step.candidates} == set(range(step.n_nodes)) or not step.candidates
        assert step.n_nodes == (len(trace.steps[t - 1].kept) if t else 1)
        variables = [each.variable for each in trace.steps[: t + 1]]
        wanted = tuple(trace.solution.problem.names(np.array(reference))[v] for v in variables)
        for each in step.candidates:
            assert each.good == (trace.path(t, each) == wanted)
        lost = lost or not any(each.good for each in step.kept)
    assert (trace.lost is not None and trace.lost.step is not None) == lost
    found = labels_of(trace.solution)
    assert (trace.lost is None) == (found == reference)
    if found is not None and trace.steps and trace.choice is None:
        path = trace.path(len(trace.steps) - 1, trace.steps[-1].kept[0])
        assert path == tuple(trace.solution.names[step.variable] for step in trace.steps)
    written = trace.to_dict()
    again = Trace.from_dict(json.loads(json.dumps(written, allow_nan=False)))
    assert again.to_dict() == written
    assert str(again) == str(trace)


@given(weighted_problems(), switches(), st.integers(0, 99), st.booleans())
def test_a_trace_is_what_the_compiled_beam_search_does(
    drawn: tuple[Problem, np.ndarray | None], how: dict[str, Any], seed: int, lazy: bool
) -> None:
    problem, weights = drawn
    search = BeamSearch(weights=weights, **how)
    rng = np.random.default_rng(seed)
    reference = tuple(int(rng.integers(len(kind))) for kind in problem.structure.kinds)
    best = naive.solve(problem).labels
    reference = best if best is not None and seed % 2 else reference
    given = lazily(problem) if lazy else problem
    trace = search.trace(given, list(reference))
    assert_same(trace.solution, search(lazily(problem) if lazy else problem))
    check_steps(trace, reference)
    if how["theta"] < INF:
        computed = [name for step in (*trace.steps, *filter(None, [trace.choice])) for name in step.computed]
        assert len(computed) == len(set(computed)) == trace.solution.n_costs


@settings(max_examples=100)
@given(problems(ties=True), switches(), st.integers(0, 99))
def test_the_steps_of_a_trace_are_those_of_the_definitions(problem: Problem, how: dict[str, Any], seed: int) -> None:
    weights = np.random.default_rng(seed).integers(-3, 4, problem.structure.schema.n_weights).astype(float)
    numbers = np.concatenate([problem.cost, problem.table])
    assume((numbers == np.round(numbers)).all())  # sums of others may be off in the last bit
    trace, found = BeamSearch(weights=weights, **how).trace(problem), naive.beam_search(problem, weights=weights, **how)
    assert len(trace.steps) == len(found.steps)
    for step, wanted in zip(trace.steps, found.steps, strict=True):
        assert (step.variable, step.gap, step.skipped) == (wanted.variable, wanted.gap, wanted.skipped)
        assert len([each for each in step.candidates if each.rank]) == len(wanted.candidates)
        assert [each.heuristic for each in step.kept] == [node.h for node in wanted.beam]
        kind = problem.structure.kinds[step.variable]
        assert [each.label for each in step.kept] == [kind.labels[node.labels[step.variable]] for node in wanted.beam]
        if how["theta"] == INF:
            assert [each.path_cost for each in step.kept] == [node.g for node in wanted.beam]


@settings(max_examples=100)
@given(st.one_of(problems(), small_problems()), st.integers(1, 4), st.booleans())
def test_a_trace_is_what_the_compiled_reduced_search_does(problem: Problem, width: int, look_ahead: bool) -> None:
    search = BeamSearch(width, look_ahead=look_ahead, reduce=True)
    best = naive.solve(problem).labels
    trace = search.trace(problem, best)
    assert_same(trace.solution, search(problem))
    if best is not None:
        check_steps(trace, best)
    if trace.solution.values is not None:
        assert sorted([*trace.eliminated, *(step.name for step in trace.steps)]) == sorted(trace.names)


def test_the_papers_example_tells_where_greedy_search_loses_the_answer() -> None:
    problem = running_example()
    best = hasten.Certifier()(problem)
    trace = greedy().trace(problem, best, names=NAMES)
    assert trace.lost is not None
    assert trace.lost.step == 1
    assert trace.lost.why == "Ordon Village = location came 2nd by priority; the beam keeps 1."
    assert "kept   person" in str(trace)
    assert "location      path cost 1.5  <- reference" in str(trace)
    assert "The reference was lost at step 2." in str(trace)
    wider = BeamSearch(2).trace(problem, best.names)
    assert wider.lost is None
    assert "The reference was found." in str(wider)
    assert wider.steps[2].candidates[-1].ruled_out == "the table args forbids it"


def test_theta_tells_which_costs_were_skipped() -> None:
    problem = running_example()
    trace = BeamSearch(1, theta=FORCED).trace(problem, names=NAMES)
    assert trace.theta == FORCED
    assert [step.skipped for step in trace.steps] == [False, False, False, False]
    problem = problem.structure.problem([[9.0, 0.0, 9, 9], [0.0, 9, 9, 9], *2 * [[0.0, 0, 0, 0, 0, 9]]])
    trace = BeamSearch(1, theta=FORCED).trace(problem, names=NAMES)  # no relation leads from a location to a person
    assert trace.skipped == NAMES[2:3]
    assert trace.steps[2].gap == INF
    assert "Costs never computed, the gap being above theta = forced: 1 of 4 variables." in str(trace)
    assert trace.to_dict()["skipped"] == [NAMES[2]]


@pytest.mark.parametrize("search", [greedy(), BeamSearch(3, theta=0.5), BeamSearch(reduce=True)], ids=repr)
def test_what_cannot_be_traced_is_refused_in_words(search: BeamSearch) -> None:
    problem = running_example()
    with pytest.raises(ProblemError, match=r"Expected one problem, got Batch\. Of a batch, give one: batch\[0\]"):
        search.trace(problem.batch)
    with pytest.raises(ProblemError, match="Got 1 name for 4 variables"):
        search.trace(problem, names=["Colin"])
    with pytest.raises(ProblemError, match="Got 2 labels for 4 variables"):
        search.trace(problem, [0, 1])
    with pytest.raises(SchemaError, match=r"relation has no label .Nonsense."):
        search.trace(problem, ["person", "person", "LiveIn", "Nonsense"])


def test_a_beam_too_wide_to_watch_is_refused_in_words() -> None:
    shape = entity_relation(6)
    with pytest.raises(ProblemError, match=r"too large to trace.*narrower beam"):
        BeamSearch(65_536).trace(shape.problem(np.zeros(shape.n_labels)))


def test_large_searches_are_shown_in_part_with_what_matters() -> None:
    shape = entity_relation(8)
    problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
    trace = BeamSearch(16).trace(problem, hasten.Certifier()(problem))
    assert trace.lost is not None
    shown = trace.shown(10)
    assert len(shown) == 10
    assert {0, len(trace.steps) - 1, trace.lost.step} <= set(shown)
    step = trace.steps[trace.lost.step]
    some = step.shown(6)
    assert len(some) == 6
    assert any(each.good for each in some)
    assert any(each.kept for each in some)
    assert len(str(trace).splitlines()) < 250
    assert "not printed" in str(trace)


class Reader(HTMLParser):
    """Reads a page, and notes its tags and text; a tag that is closed wrongly is an error."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: Counter[str] = Counter()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1
        if tag not in ("br", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        self.tags[tag] += 1

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("search", [greedy(), BeamSearch(2, theta=0.0), BeamSearch(reduce=True)], ids=repr)
def test_pictures_show_every_step_and_escape_what_they_are_given(search: BeamSearch) -> None:
    schema = hasten.Schema()
    evil = schema.variable("<b>kind</b>", ["<script>alert(1)</script>", "a & b", '"quoted"'])
    pair = schema.factor("<i>pair</i>", left=evil, right=evil)
    pair.forbid(left="a & b", right="a & b")
    shape = schema.structure()
    first, second = shape.add(evil), shape.add(evil)
    shape.connect(pair, left=first, right=second)
    trace = search.trace(shape.problem([[2.0, 1.0, 3.0], [2.0, 1.0, 3.0]]), [0, 1], names=["<b>&", "</svg>"])
    page = Reader()
    page.feed(trace._repr_html_())
    assert not page.open
    assert page.tags["script"] == page.tags["b"] == page.tags["i"] == 0
    assert page.tags["figure"] == len(trace.steps)
    assert trace.title in page.text
    for sentence in trace.summary():
        assert sentence in page.text
    picture = ElementTree.fromstring(trace._repr_svg_())  # well formed: our own SVG, nothing from outside
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    again = Trace.from_dict(trace.to_dict())
    assert again._repr_html_() == trace._repr_html_()


def test_a_picture_of_a_large_search_says_what_it_leaves_out() -> None:
    shape = entity_relation(8)
    problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
    trace = BeamSearch(64).trace(problem, hasten.Certifier()(problem))
    page = trace._repr_html_()
    assert page.count("<figure>") == 16
    assert "not drawn one by one" in page
    assert "not drawn one by one" in trace._repr_svg_()
    assert len(page) < 1_000_000


def test_control_characters_reach_neither_terminal_nor_picture() -> None:
    schema = hasten.Schema()
    kind = schema.variable("kind", ["a\x1b[2J", "b\x00\n"])
    shape = schema.structure()
    shape.add(kind)
    trace = greedy().trace(shape.problem([[2.0, 1.0]]), [0], names=["x\x07"])
    assert str(trace).replace("\n", "").isprintable()
    for picture in (trace._repr_svg_(), trace._repr_html_()):
        assert not any(c in picture for c in "\x00\x07\x1b")
    ElementTree.fromstring(trace._repr_svg_())


def test_control_characters_reach_no_terminal_by_an_error() -> None:
    with pytest.raises(SchemaError, match="names a label twice") as caught:
        hasten.Schema().variable("kind", ["a\x1b[2J", "a\x1b[2J"])
    assert str(caught.value).isprintable()
    assert r"a\x1b[2J" in str(caught.value)
