"""Answers to a batch: choosing some, putting others in their place, counting them."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import random_problem, small_problems

from hasten.errors import ProblemError
from hasten.model.batch import Batch
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy

FIELDS = ("status", "source", "cost", "bound", "valid", "n_costs")


@lru_cache
def some_problems(n: int = 40) -> Batch:
    rng = np.random.default_rng(0)
    return Batch.of([random_problem(rng) for _ in range(n)])


@lru_cache
def certified() -> Solutions:
    return Certifier()(some_problems())


def same(one: Solution, other: Solution) -> bool:
    fields = all(np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True) for name in FIELDS[2:])
    labels = (one.values is None) == (other.values is None) and np.array_equal(one.values, other.values)
    return one.status is other.status and one.source is other.source and fields and labels


@given(st.data())
def test_selecting_by_number_by_mask_or_by_slice_gives_the_single_answers(data):
    answers = certified()
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(answers), max_size=len(answers))))
    numbers = np.flatnonzero(mask)
    begin, end = sorted(data.draw(st.tuples(*2 * [st.integers(0, len(answers))])))
    step = data.draw(st.sampled_from([1, 2, -1]))
    for chosen, part in (
        (numbers, answers.select(mask)),
        (numbers, answers.select(numbers)),
        (numbers, answers.select(numbers.tolist())),
        (numbers, answers[mask]),
        (numbers, answers[numbers]),
        (range(begin, end)[::step], answers[begin:end][::step]),
    ):
        assert isinstance(part, Solutions)
        assert len(part) == len(part.batch) == len(chosen)
        assert all(same(one, answers[p]) for one, p in zip(part, chosen, strict=True))
        assert all(np.array_equal(part.batch[n].cost, answers.batch[p].cost) for n, p in enumerate(chosen))


@given(st.integers(0, 100))
def test_replacing_changes_what_is_chosen_and_nothing_else(seed):
    batch = some_problems()
    first, second = greedy()(batch), certified()
    mask = np.random.default_rng(seed).random(len(batch)) < 0.3
    mixed = first.replace(mask, second.select(mask))
    for p, answer in enumerate(mixed):
        assert same(answer, second[p] if mask[p] else first[p])
    assert same(first[0], greedy()(batch)[0])  # which is not changed itself


def test_what_does_not_fit_is_refused():
    answers = certified()
    with pytest.raises(ProblemError, match=r"Got 2 answers, .* to replace 1"):
        answers.replace([0], answers[:2])
    sizes = answers.batch.n_variables
    other = int(np.flatnonzero(sizes != sizes[0])[0])
    with pytest.raises(ProblemError, match="to the same problem"):
        answers.replace([0], answers.select([other]))
    with pytest.raises(ProblemError, match="does not fit"):
        answers.select(np.ones(len(answers) + 1, dtype=bool))
    with pytest.raises(IndexError):
        answers.batch.select([len(answers)])


def test_a_mask_selects_problems_as_well():
    batch = some_problems()
    mask = np.arange(len(batch)) % 3 == 0
    assert batch.select(mask).cost.tolist() == batch.select(np.flatnonzero(mask)).cost.tolist()
    assert len(batch.select(mask)) == mask.sum()
    assert len(batch.select([])) == 0


def test_words_and_counts_are_those_of_the_single_answers():
    batch = some_problems(200)
    for answers in (Certifier()(batch), Certifier(max_nodes=0, max_sweeps=1)(batch), BeamSearch(1)(batch)):
        single = list(answers)
        for status in Status:
            assert answers.has(status).tolist() == [answer.status is status for answer in single]
        for source in Source:
            assert answers.by(source).tolist() == [answer.source is source for answer in single]
        assert answers.optimal.tolist() == [answer.status.optimal for answer in single]
        assert answers.proved.tolist() == [answer.proved for answer in single]
        assert answers.counts() == Counter((answer.status, answer.source) for answer in single)
        assert all(answers[p : p + 1].counts() == {(each.status, each.source): 1} for p, each in enumerate(single))
    assert Certifier()(Batch.of([])).counts() == {}


@given(small_problems())
def test_labels_are_scored_as_enumeration_scores_them(problem):
    labels = np.array([0] * problem.n_variables, dtype=np.int64)
    scored = Solutions.scored(problem.batch, labels).only(problem)
    assert scored.valid == problem.check(labels).valid
    if scored.valid:
        assert scored.cost == pytest.approx(problem.total(labels))
        assert scored.cost >= naive.solve(problem).cost - 1e-9
    assert scored.n_costs == problem.n_variables
    assert scored.source is Source.SEARCH


def test_parts_are_joined_in_their_order():
    batch, answers = some_problems(), certified()
    joined = Solutions.joined(batch, [answers[:7], answers[7:7], answers[7:]])
    assert all(same(one, other) for one, other in zip(joined, answers, strict=True))
    nothing = Batch.of([])
    assert len(Solutions.joined(nothing, [])) == 0
