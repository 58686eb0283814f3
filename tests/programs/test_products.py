"""Columns that stand for products are recognised where the rows say so, and nowhere else; the optimum stays."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_programs
from hypothesis import given, settings
from hypothesis import strategies as st

from hasten.programs.columns import exclusive_rows
from hasten.programs.native import NativeHighs
from hasten.programs.networks import connected, row_signs
from hasten.programs.products import product_groups
from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement

FAULTS = ("", "a row less", "at least", "at most", "a weight of 2", "not binary", "limit", "a row more", "a group open")


def pairs(rng: np.random.Generator, form: str, fault: str, whole: bool = True) -> tuple[Statement, list[int]]:
    """Draws a program with one column for each pair of members of two groups, in some form, with a fault or without."""
    build, sizes = Builder(maximize=bool(rng.random() < 0.5)), rng.integers(2, 4, 2).tolist()
    one, other = (
        [build.column(f"{g}[{i}]", 0, 1, True, float(rng.integers(-5, 6))) for i in range(n)]
        for g, n in zip("xy", sizes, strict=True)
    )
    for group in (one, other):
        least = -math.inf if fault == "a group open" and group is one else 1.0
        build.row(group, [1.0] * len(group), least, 1.0)
    high = 2.0 if fault == "not binary" else 1.0
    z = [[build.column(f"z[{i},{j}]", 0, high, whole, float(rng.integers(-9, 10))) for j in other] for i in one]
    rows: list[tuple[list[int], list[float], float, float]] = []
    if form == "sums":
        for x, parts in [*zip(one, z, strict=True), *zip(other, map(list, zip(*z, strict=True)), strict=True)]:
            rows.append(([*parts, x], [*[1.0] * len(parts), -1.0], 0.0, 0.0))
    else:
        for i, x in enumerate(one):
            for j, y in enumerate(other):
                rows += [([z[i][j], k], [1.0, -1.0], -math.inf, 0.0) for k in (x, y)]
                rows.append(([z[i][j], x, y], [1.0, -1.0, -1.0], -1.0, math.inf))
    at = int(rng.integers(len(rows)))
    columns, weights, low, high = rows[at]
    if fault == "a row less":
        del rows[at]
    elif fault == "at least":
        rows[at] = columns, weights, low if low > -math.inf else high, math.inf
    elif fault == "at most":
        rows[at] = columns, weights, -math.inf, high if high < math.inf else low
    elif fault == "a weight of 2":
        rows[at] = columns, [2.0, *weights[1:]], low, high
    elif fault == "limit":
        rows[at] = columns, weights, low + 1.0, high + 1.0
    elif fault == "a row more":
        some = rng.choice(len(build.columns), 3, replace=False).tolist()
        rows.append((some, rng.integers(-2, 3, 3).astype(float).tolist(), -math.inf, float(rng.integers(0, 3))))
    for n in rng.permutation(len(rows)).tolist():
        columns, weights, low, high = rows[n]
        if rng.random() < 0.3:
            weights, low, high = [-w for w in weights], -high, -low
        build.row(columns, weights, low, high)
    return build.statement(), [column for each in z for column in each]


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["sums", "pairs"]), st.sampled_from(FAULTS), st.booleans())
def test_a_program_with_products_has_the_optimum_of_highs(seed: int, form: str, fault: str, whole: bool) -> None:
    statement, _ = pairs(np.random.default_rng(seed), form, fault, whole)
    wanted = NativeHighs(statement).solve(statement.sign * statement.objective, math.inf)
    answer = Program(statement).solve()
    if wanted.x is None:
        assert answer.values_found is None
        return
    assert answer.optimal
    assert answer.objective == pytest.approx(statement.value(wanted.x), abs=1e-6)
    assert statement.sign * answer.bound <= statement.sign * answer.objective + 1e-6


@pytest.mark.parametrize("form", ["sums", "pairs"])
@pytest.mark.parametrize("fault", FAULTS)
def test_products_are_recognised_only_where_rows_say_so(form: str, fault: str) -> None:
    """At most one of a group is 1, and exactly one where there is no `none`, in everything that keeps the rows."""
    rng, exact = np.random.default_rng(3), 0
    for _ in range(12):
        statement, z = pairs(rng, form, fault)
        found = product_groups(statement, exclusive_rows(statement))
        if not fault:
            ((group, rows),) = found
            assert group.columns.tolist() == z
            assert not group.none
            assert len(rows) == (0 if form == "sums" else len(z))
        for group, rows in found:
            ones = np.zeros(statement.n_columns)
            ones[group.columns] = 1.0
            solver = NativeHighs(statement)
            most, least = solver.solve(-ones, math.inf), solver.solve(ones, math.inf)
            if most.x is None or least.x is None:
                continue
            assert ones @ most.x <= 1.0 + 1e-6
            exact += not group.none
            assert group.none or ones @ least.x >= 1.0 - 1e-6
            assert not rows or not group.none
    if fault in ("a weight of 2", "not binary", "a group open") and form == "pairs":
        assert exact == 0


def test_two_blocks_for_the_same_pair_are_two_groups() -> None:
    build = Builder()
    x, y = ([build.column(f"{g}[{i}]", 0, 1, True) for i in range(2)] for g in "xy")
    build.row(x, [1.0, 1.0], 1, 1)
    build.row(y, [1.0, 1.0], 1, 1)
    for block in range(2):
        z = [
            [build.column(f"z{block}[{i},{j}]", 0, 1, True, float(i != j) - block) for j in range(2)] for i in range(2)
        ]
        for i in range(2):
            build.row([*z[i], x[i]], [1.0, 1.0, -1.0], 0, 0)
            build.row([z[0][i], z[1][i], y[i]], [1.0, 1.0, -1.0], 0, 0)
    statement = build.statement()
    found = [group.columns.tolist() for group, _ in product_groups(statement, exclusive_rows(statement))]
    assert found == [[4, 5, 6, 7], [8, 9, 10, 11]]
    assert Program(statement).solve().objective == random_programs.best(statement)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=12))
def test_connected_nodes_share_their_lowest_number(edges: list[tuple[int, int]]) -> None:
    left, right = np.array(edges, dtype=np.int64).reshape(-1, 2).T
    label = connected(10, left, right)
    known = {v: {v} for v in range(10)}
    for a, b in edges:
        joined = known[a] | known[b]
        for v in joined:
            known[v] = joined
    assert label.tolist() == [min(known[v]) for v in range(10)]


@settings(max_examples=200)
@given(st.integers(0, 10**6))
def test_signs_of_rows_make_a_network_or_there_are_none(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    pair = np.array([rng.choice(m, 2, replace=False) for _ in range(n)])
    up = rng.random((n, 2)) < 0.5
    signs = row_signs(m, n, pair.ravel(), np.arange(n).repeat(2), up.ravel())
    tried = np.array(np.meshgrid(*[[-1, 1]] * m)).reshape(m, -1).T
    value = np.where(up, 1, -1)
    fits = [each for each in tried if ((each[pair] * value).sum(axis=1) == 0).all()]
    assert (len(fits) > 0) == bool((signs != 0).all())
    assert not fits or ((signs[pair] * value).sum(axis=1) == 0).all()
