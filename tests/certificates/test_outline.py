"""Outlines of proofs: which steps they take for which problems, and that these show the optimum."""

from __future__ import annotations

import json
import math
from collections import Counter
from functools import partial
from itertools import pairwise

import naive
import numpy as np
import pytest
from hypothesis import given
from strategies import small_problems

from hasten import Certifier, Problem, Schema
from hasten import certificate as checker
from hasten.bench.families import FAMILIES
from hasten.certificates import Certificate
from hasten.proof import outline as outlines
from hasten.proof.outline import outline


def steps_of(found: Certificate) -> Counter[str]:
    """Returns how often each step that proves is taken."""
    names = [json.loads(line)[0] for line in found.lines]
    return Counter(names[names.index("claim") + 1 :])


def certified(problem: Problem) -> Certificate:
    """Returns the certificate of a proved answer, checked."""
    answer, found = Certifier()(problem), Certifier().certificate(problem)
    assert answer.proved
    checker.check(found.lines)
    assert found.lower <= answer.cost + 1e-9 * max(1.0, abs(answer.cost))
    assert found.upper - found.lower <= 1e-8 * max(1.0, abs(answer.cost))
    return found


def drawn(family: str, size: int) -> Problem:
    return FAMILIES[family].problems(size, 1, 3)[0]


def test_costs_that_fit_take_a_single_step() -> None:
    schema = Schema()
    slot = schema.variable("slot", ["monday", "friday"])
    apart = schema.factor("apart", one=slot, other=slot).forbid(one="monday", other="monday")
    shape = schema.structure()
    shape.connect(apart, one=shape.add(slot), other=shape.add(slot))
    assert steps_of(certified(shape.problem([[0.0, 1.0], [1.0, 0.0]]))) == {"sum": 1}


def test_chains_and_small_orders_are_eliminated() -> None:
    for problem in (drawn("chain5", 30), drawn("order", 6)):
        assert steps_of(certified(problem)).keys() == {"eliminate", "sum"}


def test_the_rules_of_chains_and_trees_are_counted() -> None:
    for problem in (drawn("ruled", 30), drawn("tree", 50)):
        taken = steps_of(certified(problem))
        assert taken.keys() == {"count", "eliminate", "sum"}
        assert taken["sum"] == 1


def test_rules_that_cannot_hold_are_counted_to_the_end() -> None:
    """No sum of a counter fits: it has no label, and neither has any that counts on."""
    schema = Schema()
    tag = schema.variable("tag", ["a", "b"])
    step = schema.factor("step", before=tag, after=tag).forbid(before="a", after="a")
    shape = schema.structure()
    tags = [shape.add(tag) for _ in range(6)]
    for before, after in pairwise(tags):
        shape.connect(step, before=before, after=after)
    shape.rule("odd", [(v, "a", 2.0) for v in tags], exactly=3)
    found = Certifier().certificate(shape.problem(np.zeros(12)))
    assert found.lower == found.upper == math.inf
    assert "count" in steps_of(found)


@pytest.mark.parametrize(
    ("family", "size"),
    [
        *(("random", 14), ("peaked", 15), ("grid3", 9), ("potts", 15), ("spin", 12), ("order", 16), ("tree", 200)),
        *(("dag", 200), ("matching", 16), ("assignment", 12), ("knapsack", 20)),
    ],
)
def test_what_is_too_large_to_enumerate_is_shown_by_messages_prices_and_splits(family: str, size: int) -> None:
    taken = steps_of(certified(drawn(family, size)))
    assert taken.keys() <= {"eliminate", "move", "price", "split", "count", "sum"}
    assert taken["move"] or taken["price"]


@given(small_problems())
def test_proofs_without_elimination_show_the_optimum(problem: Problem) -> None:
    """Kernels log all of it: labels that go, messages, multipliers, dives and splits."""
    found, truth = Certificate.of(Certifier()(problem), partial(outline, max_join=0)), naive.solve(problem)
    assert "eliminate" not in steps_of(found)
    if truth.labels is None:
        assert found.lower == math.inf
    else:
        slip = 1e-6 * max(1.0, abs(truth.cost))
        assert truth.cost - slip <= found.lower <= truth.cost + 1e-9 * max(1.0, abs(truth.cost))


@given(small_problems())
def test_nodes_that_may_not_dive_are_split(problem: Problem) -> None:
    """With no nodes for dives but those that end what is decided, splits and sweeps show the optimum."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(outlines, "DIVE_NODES", 0)
        patch.setattr(outlines, "SWEEPS", (1, 1))
        patch.setattr(outlines, "FEW_SUMS", 0)
        found, truth = Certifier().certificate(problem), naive.solve(problem)
    least = math.inf if truth.labels is None else truth.cost
    assert found.lower == pytest.approx(least, rel=1e-6, abs=1e-6)


def test_a_proof_of_too_many_steps_has_the_bound_that_messages_show(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = drawn("knapsack", 30)
    full = certified(problem)
    monkeypatch.setattr(outlines, "FEW_EVENTS", 400)
    monkeypatch.setattr(outlines, "MOST_EVENTS", 400)
    found = Certifier().certificate(problem)
    checker.check(found.lines)
    assert len(found.lines) < 200 < len(full.lines)
    assert full.lower - 0.1 * abs(full.lower) < found.lower < full.lower
    assert found.upper == full.upper


def test_a_fixed_label_takes_its_variable_out_of_tables() -> None:
    problem = ['["variable",0,5]', '["variable",4,0]', '["table",[0,1],[0,3,3,0]]', '["claim",3,3,[0,1]]']
    shown, *_ = checker.check([*problem, '["split",0,[[0],[1]]]', '["sum"]', '["sum"]'])
    assert shown == checker.exact(3)  # the table and the costs of variable 1 are one function: min(0 + 4, 3 + 0)
    with pytest.raises(checker.RefusedError, match="not in table"):
        checker.check([*problem, '["split",0,[[0],[1]]]', '["move",0,1,[0,0]]'])


def test_whole_costs_that_are_in_tables_alone_are_shown_exactly() -> None:
    """A bound of a whole unit below the optimum is not enough, however small the costs of labels."""
    schema = Schema()
    kind = schema.variable("kind", ["a", "b"])
    pair = schema.factor("pair", one=kind, other=kind).set_table([[-1.0, 0.0], [-1.0, 0.0]])
    shape = schema.structure()
    shape.connect(pair, one=shape.add(kind), other=shape.add(kind))
    found = certified(shape.problem([[0.0, 0.0], [math.inf, 0.0]]))
    assert found.lower == found.upper == 0.0


@pytest.mark.parametrize("order", ["uupt", "ptuu", "tpuu"])
def test_labels_that_tables_over_one_variable_forbid_are_none(order: str) -> None:
    """For the checker such a table is part of the variable's costs."""
    schema = Schema()
    kind = schema.variable("kind", ["a", "b", "c"])
    only = schema.factor("only", one=kind).set_table([np.inf, 0.0, np.inf])
    pair = schema.factor("pair", one=kind, other=kind)
    pair.forbid(one="b", other="b").forbid(one="b", other="c")
    third = schema.factor("third", one=kind, other=kind).set_table([[0, 1, 2], [2, 0, 1], [3, 3, np.inf]])
    shape = schema.structure([kind] * 3)
    for n, name in enumerate(order):
        if name == "u":
            shape.connect(only, one=n % 2)
        elif name == "p":
            shape.connect(pair, one=0, other=1)
        else:
            shape.connect(third, one=1, other=2)
            shape.connect(third, one=0, other=2)
    found = Certifier(max_join=0).certificate(shape.problem(np.zeros(9)))
    assert checker.check(found.lines)[1] == "inf"
