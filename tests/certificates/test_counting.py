"""Counting and eliminating, the steps by which structure follows from rows, against enumeration and by hand."""

from __future__ import annotations

import json
import math
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten import certificate as checker

PROBLEM = [
    ["variable", 0, 1],
    ["variable", 0, 1],
    ["variable", 0, 1],
    ["row", [[0, 1, 1], [1, 1, 1], [2, 1, 1]], 1, 1],
    ["row", [[0, 1, 2], [1, 1, 3]], None, 4],
    ["claim", 1, 1, [1, 0, 0]],
]
GROUP = ["count", [0, 1], [0, 1, 2]]


def shown(*steps: list[Any]) -> float:
    """Returns the bound that steps show, by the lines of a file."""
    lower, *_ = checker.check(map(json.dumps, steps))
    return math.inf if lower == checker.INFINITE else lower / checker.UNIT


def test_columns_of_which_one_is_chosen_become_one_variable() -> None:
    rest = [["eliminate", 0], ["eliminate", 1], ["eliminate", 2], ["sum"]]
    assert shown(*PROBLEM, GROUP, *rest) == 1


@pytest.mark.parametrize(
    ("steps", "reason"),
    [
        ([["count", [0], [0, 0]]], "twice"),
        ([["count", [0, 0], [0]]], "twice"),
        ([["count", [0], [7]]], "no variable 7"),
        ([["count", [7], [0]]], "no row 7"),
        ([["count", [0], [True]]], "no variable"),
        ([["count", 0, [0]]], "line 7"),
        ([["count", [0]]], "line 7"),
        ([["count", [[0]], [0]]], "line 7"),
        ([["count", [0], [0], [0]]], "line 7"),
        ([["count", [-1], []]], "no row"),
        ([["price", 0, 1], ["count", [0], [0]]], "price"),
        ([["eliminate", 0], ["count", [0], [1]]], "gone"),
        ([["count", [0], [0]], ["eliminate", 3], ["count", [0], [1]]], "gone"),
        ([GROUP, ["eliminate", 0], ["split", 0, [[0], [1]]]], "gone"),
        ([["count", [0], []], ["sum"]], "less than is claimed"),  # the row can hold
        ([["eliminate", 0], ["eliminate", 1], ["eliminate", 2], ["sum"]], "less than is claimed"),  # rows are lost
        ([["count", [1], [0, 1]], *[["eliminate", v] for v in range(4)], ["sum"]], "less than is claimed"),
        ([["violated", 0]], "no such step"),
        ([["variable", 0]], "no such step"),
        ([["__init__"]], "no such step"),
        ([["count", ["0"], []]], "no row"),
        ([["eliminate", [0]]], "no variable"),
    ],
)
def test_what_does_not_follow_is_refused(steps: list[list[Any]], reason: str) -> None:
    with pytest.raises(checker.RefusedError, match=reason):
        shown(*PROBLEM, *steps)


def test_a_row_that_cannot_hold_ends_a_part() -> None:
    lines = [["variable", 0, 0], ["row", [[0, 1, 1]], 2, None], ["claim", "inf", "inf", None]]
    assert shown(*lines, ["count", [0], []], ["sum"]) == math.inf


def test_choices_that_are_too_many_are_refused() -> None:
    lines = [*[["variable", 0, 0]] * 40, ["row", [[v, 1, 1] for v in range(40)], None, 20], ["claim", 0, 0, [0] * 40]]
    with pytest.raises(checker.RefusedError, match="too large"):
        shown(*lines, ["count", [0], list(range(40))])
    tables = [["variable", *[0] * 1000] for _ in range(3)]
    tables += [["table", [0, v], [0] * 1_000_000] for v in (1, 2)]
    with pytest.raises(checker.RefusedError, match="too large"):
        shown(*tables, ["claim", 0, 0, [0, 0, 0]], ["eliminate", 0])


@st.composite
def problems(draw: st.DrawFn) -> list[list[Any]]:
    """Draws a few variables, a table, and rows of whole weights."""
    n = draw(st.integers(1, 4))
    sizes = [draw(st.integers(1, 3)) for _ in range(n)]
    number = st.sampled_from([-2, -1, 0, 1, 3, 0.5, "inf"])
    stated = [["variable", *(draw(number) for _ in range(size))] for size in sizes]
    if n > 1 and draw(st.booleans()):
        scope = draw(st.permutations(range(n)))[:2]
        stated.append(["table", scope, [draw(number) for _ in range(sizes[scope[0]] * sizes[scope[1]])]])
    for _ in range(draw(st.integers(1, 3))):
        terms = [[v, i, draw(st.integers(-2, 2))] for v in range(n) for i in range(sizes[v]) if draw(st.booleans())]
        low = draw(st.none() | st.integers(-2, 2))
        stated.append(["row", terms, low, draw(st.none() | st.integers(low or 0, 4))])
    return stated


def optimum(stated: list[list[Any]]) -> float:
    """Returns the least cost by trying everything."""
    costs = [step[1:] for step in stated if step[0] == "variable"]
    best = math.inf
    for labels in product(*(range(len(each)) for each in costs)):
        total = sum(float(costs[v][i]) for v, i in enumerate(labels))
        for name, *words in stated:
            if name == "table":
                total += float(words[1][labels[words[0][0]] * len(costs[words[0][1]]) + labels[words[0][1]]])
            elif name == "row":
                activity = sum(x for v, i, x in words[0] if labels[v] == i)
                holds = (words[1] is None or activity >= words[1]) and (words[2] is None or activity <= words[2])
                total += 0.0 if holds else math.inf
        best = min(best, total)
    return best


@settings(max_examples=300)
@given(problems(), st.data())
def test_steps_in_any_order_never_show_too_much(stated: list[list[Any]], data: st.DataObject) -> None:
    """Whatever is counted, eliminated, priced and split, and then left alone, bounds stay below the optimum."""
    state, best = checker.State(), optimum(stated)
    for name, *words in stated:
        getattr(state, name)(*words)
    low = -(1 << 1000)
    state.claim(low, "inf", None)
    for _ in range(data.draw(st.integers(0, 6))):
        there = [v for v in range(len(state.sizes)) if ~v in state.functions]
        some = data.draw(st.lists(st.sampled_from(there), max_size=3, unique=True)) if there else []
        rows = data.draw(st.lists(st.sampled_from(range(len(state.rows))), max_size=3, unique=True))
        step = data.draw(st.sampled_from(["count", "eliminate", "price"]))
        try:
            if step == "count":
                state.count(rows, some)
            elif step == "eliminate" and some:
                state.eliminate(some[0])
            elif step == "price" and rows:
                state.price(rows[0], data.draw(st.sampled_from([-2, -0.5, 0, 1, 3])))
        except checker.RefusedError:
            assert step != "eliminate"
    bound = state.constant + sum(least for _, _, least in state.functions.values())
    if best < math.inf:
        assert bound <= checker.exact(best)


@settings(max_examples=200)
@given(problems())
def test_counting_all_variables_in_all_rows_and_eliminating_them_is_exact(stated: list[list[Any]]) -> None:
    n = sum(step[0] == "variable" for step in stated)
    n_rows = sum(step[0] == "row" for step in stated)
    steps = [["count", list(range(n_rows)), list(range(n))], *(["eliminate", v] for v in range(n + 1)), ["sum"]]
    best = optimum(stated)
    claim = ["claim", "inf" if best == math.inf else best, "inf", None]
    assert shown(*stated, claim, *steps) == best
