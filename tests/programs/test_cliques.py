"""Pairs that exclude each other become one rule that says the same, where that saves something."""

from __future__ import annotations

import math

import numpy as np
import pytest
import random_programs

from hasten.programs.program import Program
from hasten.programs.statement import Builder, Statement
from hasten.proof.elimination.cliques import Exclusions

INF = math.inf


def candidates(n: int, pairs: list[tuple[int, int]], seed: int = 0, labels: int = 3, rooms: bool = True) -> Statement:
    """Returns variables with a last label "none", of which pairs must not both be something else; labels are scarce."""
    build, rng = Builder(), np.random.default_rng(seed)
    for j in range(n * labels):
        build.column(f"x[{j // labels},{j % labels}]", 0, 1, True, float(rng.normal() - (j % labels < labels - 1)))
    for i in range(n):
        build.row(range(i * labels, (i + 1) * labels), [1.0] * labels, 1, 1)
    for i, j in pairs:
        build.row([i * labels + labels - 1, j * labels + labels - 1], [1.0, 1.0], 1, INF)
    if rooms:
        build.row([i * labels for i in range(n)], [1.0 + i % 2 for i in range(n)], -INF, 3, "scarce")
    return build.statement()


def every_pair(*nodes: int) -> list[tuple[int, int]]:
    return [(i, j) for i in nodes for j in nodes if i < j]


def test_overlapping_candidates_become_one_rule() -> None:
    program = Program(candidates(7, [*every_pair(0, 1, 2, 3), (4, 5)]))
    found = program.recognised
    assert (found.n_merged, found.n_cliques, len(found.tables.table)) == (6, 1, 1)
    assert "6 rows over pairs became 1 rule; 2 rules are left in all." in program.describe()
    assert found.rules.least.tolist() == [-INF, 3.0]  # three of the four are "none"
    counted = found.space.column[found.rules.label[found.rules.row == 1]]
    assert [program.columns[j] for j in counted] == ["x[0,2]", "x[1,2]", "x[2,2]", "x[3,2]"]


@pytest.mark.parametrize("seed", range(8))
def test_merged_pairs_mean_what_they_meant(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = [pair for pair in every_pair(*range(5)) if rng.random() < 0.7]
    statement = candidates(5, pairs, seed)
    answer = Program(statement).solve()
    assert answer.objective == pytest.approx(random_programs.best(statement))
    random_programs.check(statement, answer.x)


def test_variables_without_other_rules_keep_their_tables() -> None:
    found = Program(candidates(7, every_pair(0, 1, 2, 3), rooms=False)).recognised
    assert (found.n_merged, found.rules.n_rows, len(found.tables.table)) == (0, 0, 6)


def test_tables_that_say_more_are_not_split_up() -> None:
    """Of six courses three must not share a slot, of four: four cliques would take the place of three tables."""
    build = Builder()
    for j in range(24):
        build.column(f"x[{j // 4},{j % 4}]", 0, 1, True, float(j))
    for i in range(6):
        build.row(range(4 * i, 4 * i + 4), [1.0] * 4, 1, 1)
    for i, j in every_pair(0, 1, 2):
        for s in range(4):
            build.row([4 * i + s, 4 * j + s], [1.0, 1.0], -INF, 1)
    build.row(range(24), [1.0, 5.0, 2.0, 7.0] * 6, -INF, 19)
    found = Program(build.statement()).recognised
    assert (found.n_cliques, found.rules.n_rows, len(found.tables.table)) == (0, 1, 3)


def test_a_clique_grows_until_nothing_fits() -> None:
    pairs, rng = Exclusions(), np.random.default_rng(0)
    said = [pair for pair in every_pair(*range(12)) if rng.random() < 0.6]
    for row, (i, j) in enumerate(said):
        pairs.add((i,), (j,), row)
    for i, j in said:
        clique = [list(pairs.nodes)[node][0] for node in pairs.largest_around(pairs.nodes[i,], pairs.nodes[j,])]
        assert {i, j} <= set(clique)
        assert set(every_pair(*clique)) <= set(said)
        assert not any(
            all((min(k, node), max(k, node)) in said for node in clique) for k in range(12) if k not in clique
        )
