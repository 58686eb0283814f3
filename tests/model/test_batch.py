"""A batch is chosen from as an array is: by number, slice or mask; and its problems are those it was made of."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.errors import ProblemError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.proof.certifier import Certifier

N = 6


def mixed() -> Batch:
    """Six problems of two shapes, each with a table of its own, told apart by their costs and tables."""
    schema = Schema()
    pet = schema.variable("pet", ["cat", "dog"])
    pair = schema.factor("pair", left=pet, right=pet).forbid(left="cat", right="dog")
    problems = []
    for size in (2, 3):
        shape = schema.structure()
        pets = [shape.add(pet) for _ in range(size)]
        shape.connect(pair, left=pets[0], right=pets[1])
        for number in range(N // 2):
            costs = np.arange(2.0 * size) + 10 * len(problems)
            problems.append(shape.problem(costs, tables={0: np.full((2, 2), float(number))}))
    return Batch.of(problems)


def same(some: Batch, problems: list[Problem]) -> bool:
    pairs = zip([some[p] for p in range(len(some))], problems, strict=True)
    return all(
        mine.structure is other.structure and (mine.cost == other.cost).all() and (mine.table == other.table).all()
        for mine, other in pairs
    )


@given(st.data())
def test_a_batch_is_chosen_from_as_a_list_is(data):
    batch, numbers = mixed(), np.arange(N)
    problems = [batch[p] for p in range(N)]
    listed = data.draw(st.lists(st.integers(-N, N - 1), max_size=9))
    mask = data.draw(st.lists(st.booleans(), min_size=N, max_size=N))
    cut = data.draw(st.slices(N))
    for chosen, expected in (
        (listed, [problems[p] for p in listed]),
        (np.array(listed, dtype=np.int32), [problems[p] for p in listed]),
        (mask, [problems[p] for p in numbers[mask]]),
        (np.array(mask), [problems[p] for p in numbers[mask]]),
        (cut, problems[cut]),
    ):
        assert same(batch.select(chosen), expected)
        assert same(batch[chosen], expected)
        assert same(batch[chosen, ...], expected)
        assert (Certifier()(batch[chosen]).cost == Certifier()(expected).cost).all()


def test_a_number_gives_the_problem_itself():
    batch = mixed()
    for number in (4, np.int32(4), np.array(4), -2):
        assert isinstance(batch[number], Problem)
        assert batch[number].cost[0] == 40
    assert batch.shape == (N,)
    assert len(list(batch)) == N


@pytest.mark.parametrize("mask", [[True], [True] * (N + 1), np.ones((N, 1), dtype=bool), np.zeros(0, dtype=bool)])
def test_a_mask_of_another_length_is_refused(mask):
    for choose in (mixed().select, mixed().__getitem__):
        with pytest.raises(ProblemError, match=rf"A mask of shape .* does not fit {N} problems"):
            choose(mask)


@pytest.mark.parametrize("wrong", [1.5, [1.5], "ab", None, [[1, 2]], {}, [None], (slice(2), slice(2))])
def test_what_chooses_nothing_is_refused(wrong):
    for choose in (mixed().select, mixed().__getitem__):
        with pytest.raises(ProblemError, match="Choose problems by a slice, a mask or their numbers"):
            choose(wrong)


@pytest.mark.parametrize("number", [N, -N - 1])
def test_a_number_that_is_not_there_is_named(number):
    for choose in (lambda: mixed()[number], lambda: mixed()[[0, number]], lambda: mixed().select([number])):
        with pytest.raises(IndexError, match=f"There is no problem {number}; the batch has {N}"):
            choose()
