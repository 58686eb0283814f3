"""What is recognised is what was stated: every rule of recognition against trying everything."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import random_programs

import hasten
from hasten.programs.columns import cliques, exclusive_rows, group_columns, implied_whole, tighten_columns
from hasten.programs.labels import clip_weights, make_labels, rule_out_labels
from hasten.programs.native import NativeHighs
from hasten.programs.program import Program
from hasten.programs.state import Recognised, Space
from hasten.programs.statement import Builder, Statement


def binaries(n: int, name: str = "x[{}]") -> Builder:
    build = Builder()
    for j in range(n):
        build.column(name.format(j), 0, 1, True, float(np.sin(j + 1)))
    return build


def after(statement: Statement, *steps: Callable[[Recognised], None]) -> Recognised:
    """Returns the state after some steps of recognition."""
    found = Recognised(statement, statement.low)
    for step in steps:
        step(found)
    return found


@pytest.mark.parametrize("seed", range(4))
def test_the_optimum_is_that_of_trying_everything(seed: int) -> None:
    rng, feasible = np.random.default_rng(seed), 0
    for _ in range(40):
        statement = random_programs.make(rng)
        answer = Program(statement).solve()
        truth = random_programs.best(statement)
        assert answer.optimal
        assert answer.objective == pytest.approx(truth, abs=1e-6)
        if math.isfinite(truth):
            feasible += 1
            random_programs.check(statement, answer.x)
            assert answer.bound == pytest.approx(truth, abs=1e-5)
    assert 15 < feasible < 40


@pytest.mark.parametrize("kind", random_programs.KINDS)
def test_each_kind_of_row_keeps_its_meaning(kind: str) -> None:
    rng = np.random.default_rng(7)
    for _ in range(12):
        build = binaries(6)
        random_programs.add_row(build, kind, rng)
        random_programs.add_row(build, kind, rng)
        statement = build.statement()
        assert Program(statement).solve().objective == pytest.approx(random_programs.best(statement), abs=1e-6)


def test_exclusive_rows_are_those_that_allow_at_most_one() -> None:
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(300):
        build = binaries(4)
        weights = rng.integers(1, 5, 4).astype(float) * (-1 if rng.random() < 0.5 else 1)
        low, high = sorted(rng.integers(-6, 7, 2).astype(float))
        build.row(range(4), weights, -math.inf if rng.random() < 0.3 else low, math.inf if rng.random() < 0.3 else high)
        statement = build.statement()
        points = np.array(np.meshgrid(*[[0, 1]] * 4, indexing="ij")).reshape(4, -1).T
        held = points[[random_programs.keeps(statement, x) for x in points]]
        groups = exclusive_rows(statement)
        if groups:
            found += 1
            assert held.sum(axis=1).max(initial=0) <= 1
            assert groups[0].none or held.sum(axis=1).min(initial=1) == 1
    assert found > 20


def test_groups_do_not_overlap_and_cover_an_assignment() -> None:
    build = binaries(16)
    for i in range(4):
        build.row([4 * i + j for j in range(4)], [1.0] * 4, 1, 1)
        build.row([4 * j + i for j in range(4)], [1.0] * 4, 1, 1)
    groups = after(build.statement(), group_columns).groups
    assert sorted(np.concatenate([group.columns for group in groups]).tolist()) == list(range(16))
    assert len(groups) == 4


def test_a_part_of_an_overlapping_row_becomes_a_variable_with_none() -> None:
    build = binaries(7)
    build.row([0, 1, 2, 3], [1.0] * 4, 1, 1)
    build.row([3, 4, 5, 6], [1.0] * 4, 1, 1)
    groups = after(build.statement(), group_columns).groups
    assert [(len(group.columns), group.none) for group in groups] == [(4, False), (3, True)]
    statement = build.statement()
    assert Program(statement).solve().objective == pytest.approx(random_programs.best(statement))


def conflicts(rng: np.random.Generator, n: int, share: float) -> Statement:
    """Returns columns of which some pairs exclude each other, and some rows of three or four."""
    build = Builder(maximize=True)
    for j in range(n):
        build.column(f"x{j}", 0, 1, True, float(rng.integers(-2, 6)))
    for i in range(n):
        for j in range(i):
            if rng.random() < share:
                build.row([i, j], [1.0, 1.0], -math.inf, 1.0)
    for _ in range(2):
        chosen = rng.choice(n, int(rng.integers(3, 5)), replace=False).tolist()
        build.row(chosen, [1.0] * len(chosen), -math.inf, 1.0)
    return build.statement()


def test_pairs_that_exclude_each_other_become_one_variable() -> None:
    build = Builder()
    for j in range(5):
        build.column(f"x{j}", 0, 1, True, -1.0 - j)
    for i, j in ((0, 1), (0, 2), (1, 2), (2, 3), (3, 4)):
        build.row([i, j], [1.0, 1.0], -math.inf, 1.0)
    (clique,) = cliques(exclusive_rows(build.statement()))
    assert clique.columns.tolist() == [0, 1, 2]
    program = Program(build.statement())
    assert program.structure.n_variables == 3
    assert program.solve().objective == -3.0 - 5.0


def test_cliques_keep_every_optimum_and_leave_fewer_variables() -> None:
    rng, fewer = np.random.default_rng(8), 0
    for n in range(80):
        statement = conflicts(rng, 9, rng.choice([0.2, 0.5, 0.8]))
        for clique in cliques(exclusive_rows(statement)):
            for i, j in combinations(clique.columns.tolist(), 2):
                both = np.zeros(9)
                both[[i, j]] = 1.0
                assert not random_programs.keeps(statement, both)
        program = Program(statement)
        assert program.solve().objective == random_programs.best(statement), n
        fewer += program.structure.n_variables < 9
    assert fewer > 70


def test_a_continuous_column_between_whole_ones_is_whole() -> None:
    build = binaries(2)
    product = build.column("y", 0, 1, False, -0.4)
    build.conjunction(product, [0, 1], "y = x0 and x1")
    loose = build.column("z", 0, 1, False, -0.4)
    build.row([0, loose], [1.0, 2.0], -math.inf, 2.0)
    assert implied_whole(build.statement()).tolist() == [False, False, True, False]
    build.row([product, loose], [1.0, 1.0], -math.inf, 1.0)  # beside one that is not whole
    assert not implied_whole(build.statement()).any()


def test_shares_of_a_facility_are_whole_where_their_limits_make_a_network() -> None:
    rng = np.random.default_rng(0)
    for n_limits in range(3):
        build = Builder()
        opened = [build.column(f"open[{j}]", 0, 1, True, 1.0) for j in range(3)]
        serve = [
            [build.column(f"serve[{i},{j}]", 0, 1, False, float(rng.random())) for j in range(3)] for i in range(4)
        ]
        for i in range(4):
            build.row(serve[i], [1.0] * 3, 1, 1)
            for j in range(3):
                build.row([serve[i][j], opened[j]], [1.0, -1.0], -math.inf, 0)
        for k in range(n_limits):  # the second one has columns in common with the first
            build.row([row[0] for row in serve[k:]], [1.0] * (4 - k), -math.inf, 2)
        program = Program(build.statement())
        assert implied_whole(program.statement).sum() == (0 if n_limits > 1 else 12)
        mixed = NativeHighs(program.statement).solve(program.statement.objective, math.inf)
        assert program.solve().objective == pytest.approx(program.statement.value(mixed.x))


def test_mixed_programs_have_the_optimum_of_the_solver() -> None:
    rng, recognised = np.random.default_rng(1), 0
    for _ in range(60):
        build = binaries(3)
        shares = [build.column(f"y{j}", 0, float(rng.integers(1, 3)), False, float(rng.normal())) for j in range(3)]
        for _ in range(int(rng.integers(1, 4))):
            some = rng.choice(shares, int(rng.integers(1, 3)), replace=False).tolist()
            weights = rng.choice([-1.0, 1.0, 1.0, 2.0], len(some), p=[0.3, 0.3, 0.35, 0.05]).tolist()
            build.row(
                [*some, int(rng.integers(3))],
                [*weights, float(rng.integers(-2, 3))],
                -math.inf,
                float(rng.integers(0, 3)),
            )
        statement = build.statement()
        program = Program(statement)
        recognised += not program.only_solver
        said = NativeHighs(statement).solve(statement.objective, math.inf)
        assert program.solve().objective == pytest.approx(statement.value(said.x), abs=1e-6)
    assert 10 < recognised < 60


def test_bounds_are_tightened_to_whole_numbers_that_lose_nothing() -> None:
    build = Builder()
    build.column("a", 0, math.inf, True, -1.0)
    build.column("b", -math.inf, 2.7, True, 1.0)
    build.row([0], [2.0], -math.inf, 7.0)
    build.row([0, 1], [1.0, 1.0], -1.2, math.inf)
    tight = after(build.statement(), tighten_columns).statement
    assert (tight.low.tolist(), tight.high.tolist()) == ([0.0, -4.0], [3.0, 2.0])
    answer = Program(build.statement()).solve()
    assert dict(answer) == {"a": 3, "b": -4}


def values_of(space: Space, labels: np.ndarray) -> np.ndarray:
    x = space.fixed.copy()
    for label in space.first[:-1] + labels:
        if space.column[label] >= 0:
            x[space.column[label]] = space.value[label]
    return x


def test_ruling_labels_out_keeps_every_answer() -> None:
    rng = np.random.default_rng(5)
    dropped = 0
    for _ in range(60):
        statement = after(random_programs.make(rng, 6), tighten_columns).statement
        if (statement.low > statement.high).any():
            continue
        found = after(statement, group_columns, make_labels, rule_out_labels)
        n_labels = len(after(statement, group_columns, make_labels).space.column)
        truth = random_programs.best(statement)
        if found.infeasible:
            assert not math.isfinite(truth)
            continue
        space = found.space
        dropped += n_labels - len(space.column)
        ways = [np.array(way, dtype=np.int64) for way in np.ndindex(*np.diff(space.first))]
        values = [values_of(space, labels) for labels in ways]
        held = [statement.value(x) for x in values if random_programs.keeps(statement, x)]
        reach = (max if statement.maximize else min)(held, default=-math.inf if statement.maximize else math.inf)
        assert reach == pytest.approx(truth)
        for x, labels in zip(values, ways, strict=True):
            assert space.labels(x).tolist() == labels.tolist()
    assert dropped > 50


def test_clipping_makes_a_big_m_small_and_changes_no_row() -> None:
    build = binaries(4)
    build.row(range(4), [-1e12, 1.0, 1.0, 1.0], -math.inf, 1.0)
    statement = build.statement()
    assert np.abs(after(statement, make_labels, clip_weights).rules.weight).max() == 2.0
    for x in np.ndindex(2, 2, 2, 2):
        assert (np.dot(x, [-1e12, 1, 1, 1]) <= 1) == (np.dot(x, [-2, 1, 1, 1]) <= 1)


def test_several_rows_of_one_scope_are_one_table() -> None:
    build = binaries(5)
    build.row([0, 1, 2], [1.0] * 3, 1, 1)
    build.row([3, 4], [1.0] * 2, 1, 1)
    build.row([0, 3], [1.0, -1.0], -math.inf, 0)
    build.row([1, 4], [1.0, -1.0], -math.inf, 0)
    build.row([2, 4], [1.0, 1.0], -math.inf, 1)
    program = Program(build.statement())
    assert len(program.recognised.tables.table) == 1
    assert program.recognised.rules.n_rows == 0
    assert "5 binaries" in program.describe()
    assert "3 rows became 1 table" in program.describe()


def test_decimals_are_as_exact_as_whole_numbers() -> None:
    build = binaries(3)
    build.objective[:] = [-1.0, -1.0, -1.0]
    build.row(range(3), [0.1, 0.2, 0.3], -math.inf, 0.3)
    answer = Program(build.statement()).solve()
    assert answer.objective == -2.0  # 0.1 + 0.2 is 0.3, whatever floats say


def test_products_and_tables_cost_what_they_say() -> None:
    build = Builder()
    for name in "ab":
        build.column(name, 0, 2, True)
    build.product(0, 1, -1.0)
    build.product(0, 0, 0.75)
    build.table((0, 1), np.where(np.eye(3) > 0, np.inf, 0.0))
    build.table((1,), np.array([0.0, 0.25, np.inf]))
    answer = Program(build.statement()).solve()
    truth = min(0.75 * a * a - a * b + (0.25 if b == 1 else 0) for a in range(3) for b in range(2) if a != b)
    assert answer.objective == pytest.approx(truth)


def test_tables_count_from_the_bounds_that_were_stated() -> None:
    build = Builder()
    build.column("a", 0, 3, True)
    build.column("b", -1, 2, True)
    build.row([0], [1.0], 2, math.inf)  # tightens
    build.row([1], [1.0], 0, math.inf)
    build.table((0,), np.array([0.0, 0.0, 5.0, 7.0]))
    build.table((0, 1), np.arange(16.0).reshape(4, 4)[::-1, ::-1])
    statement = build.statement()
    answer = Program(statement).solve()
    assert answer.objective == random_programs.best(statement) == 7.0
    assert dict(answer) == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("column", "why", "best"),
    [
        (("y", 0.25, 2.5, False, 1.0), "'y' is continuous", 0.5),
        (("y", 0.0, math.inf, True, 1.0), "'y' has no bounds", 1.0),
        (("y", -1e6, 1e6, True, 1.0), "'y' takes more than 1,024 values", 1.0),
    ],
)
def test_what_has_no_labels_is_for_the_solver_which_answers(column: tuple, why: str, best: float) -> None:
    build = binaries(2)
    build.objective[0] = 2.0
    j = build.column(*column)
    build.row([0, j], [1.0, 1.0], 0.5, math.inf)
    program = Program(build.statement())
    assert why in program.only_solver
    assert program.only_solver in program.describe()
    answer = program.solve()
    assert answer.status is hasten.Status.SOLVED
    assert answer["y"] == pytest.approx(best)
    with pytest.raises(hasten.ProgramError, match="Only the solver"):
        program.problem()


def test_a_program_with_nothing_to_choose_still_has_a_constant() -> None:
    build = Builder(constant=2.5, maximize=True)
    build.column("a", 3, 3, True, 2.0)
    program = Program(build.statement())
    assert program.solve().objective == 8.5
    assert hasten.Certifier()(program.problem()).cost == -8.5


def test_a_program_without_answers_is_proved_to_have_none() -> None:
    build = binaries(3)
    build.row(range(3), [1.0] * 3, 2, math.inf)
    build.row(range(3), [1.0] * 3, -math.inf, 1)
    answer = Program(build.statement()).solve()
    assert (answer.status, answer.proved) == (hasten.Status.INFEASIBLE, True)
    with pytest.raises(hasten.errors.NoAnswerError, match="No labelling"):
        _ = answer.x


@pytest.mark.parametrize(
    ("weight", "low", "high"), [(1.0, 0.5, 0.5), (1.0, 4.0, 3.0), (1.5, 4.0, 3.0), (1.1, 2.0, 2.0 - 1e-8)]
)
def test_a_row_over_many_variables_whose_limits_exclude_each_other_has_no_answer(
    weight: float, low: float, high: float
) -> None:
    build = Builder()
    for j in range(12):
        build.column(f"x[{j}]", -1, 2, True, 1.0)
    build.row(range(12), [weight] * 12, low, high)
    program = Program(build.statement())
    assert program.solve().status is hasten.Status.INFEASIBLE
    assert "No answer is possible" in program.describe()


@pytest.mark.parametrize("huge", [1e20, 1e30, math.inf])
@pytest.mark.parametrize("whole", [True, False])
def test_a_limit_that_solvers_take_for_infinity_has_no_answer_on_the_wrong_side(huge: float, whole: bool) -> None:
    for column, row in (((0, 1), (huge, math.inf)), ((0, 1), (-math.inf, -huge)), ((huge, math.inf), (0, 1))):
        build = Builder()
        build.column("x", *column, whole)
        build.column("y", 0, math.inf, False, 1.0)
        build.row([0, 1], [1.0, 1.0], *row)
        program = Program(build.statement())
        answer = program.solve()
        assert (answer.status, answer.proved) == (hasten.Status.INFEASIBLE, True)
        assert "No answer is possible" in program.describe()


@pytest.mark.parametrize("solver", ["highs", "gurobi"])
def test_bounds_of_whole_variables_need_not_be_whole(solver: str) -> None:
    build = Builder()
    build.column("whole", -0.917, 2.5, True, 1.0)
    build.column("share", 0.25, 1.0, False, 1.0)
    build.row([0], [3.0], high=1.0)
    for signs, x in (((1.0, 1.0), (0.0, 0.25)), ((-1.0, -1.0), (0.0, 1.0))):
        answer = Program(build.statement()).solve(objective=signs, solver=solver)
        assert answer.optimal
        assert answer.x.tolist() == list(x)


def slot_program(n: int, slots: int, seed: int = 0) -> Statement:
    """Courses in slots, some of which exclude each other."""
    rng, build = np.random.default_rng(seed), Builder(name="slots")
    for c in range(n):
        for s in range(slots):
            build.column(f"x[{c},{s}]", 0, 1, True, float(rng.normal()))
        build.row([c * slots + s for s in range(slots)], [1.0] * slots, 1, 1, f"one[{c}]")
    for c in range(n - 1):
        for s in range(slots):
            build.row([c * slots + s, (c + 1) * slots + s], [1.0] * 2, -math.inf, 1, f"apart[{c},{s}]")
    return build.statement()


def test_kinds_do_not_depend_on_the_size_of_a_program() -> None:
    small, large = Program(slot_program(4, 3)), Program(slot_program(9, 3, 1))
    assert len(small.schema.variables) == len(small.schema.factors) == 1
    other = Program(slot_program(9, 3, 1), like=small)
    assert other.schema is small.schema
    assert other.solve().objective == pytest.approx(large.solve().objective)
    speedup = hasten.Speedup(small.schema, answer="search").fit(
        small.batch(np.random.default_rng(0).normal(size=(64, 12)))
    )
    assert speedup.predict([other.problem()]).valid.all()


def test_kinds_that_are_missing_are_told_and_made(caplog: pytest.LogCaptureFixture) -> None:
    small, other = Program(slot_program(4, 3)), slot_program(4, 4)
    program = Program(other, like=small)
    assert program.schema is not small.schema
    assert "lacks some kinds" in caplog.text


def test_where_names_tell_nothing_colours_do() -> None:
    build = Builder()
    for j in range(12):
        build.column(f"x{j}", 0, 1, True)
    for v in range(4):
        build.row([3 * v + i for i in range(3)], [1.0] * 3, 1, 1)
    for i in range(3):
        build.row([i, 3 + i], [1.0, 1.0], -math.inf, 1)  # the first two differ
        build.row([6 + i, 9 + i], [1.0, -1.0], 0, 0)  # the last two are equal
    program = Program(build.statement())
    keys = program.recognised.parts.variables
    assert keys[0][2] == keys[1][2] != keys[2][2] == keys[3][2]
    assert {key[1] for key in keys} == {("x# 0", "x# 1", "x# 2")}
    assert program.solve().optimal
