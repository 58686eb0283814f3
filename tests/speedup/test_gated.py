"""Answers by a gate: what they promise, what they compute, and how much doubt calibration allows."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import entity_relation, random_problem

from hasten import Batch, Certifier, Gate, Schema, Search, Speedup, Trust
from hasten.errors import ModelError, NotFittedError, ProblemError
from hasten.speedup.skipping import DOUBTS, Calibrator, GatedSearch

# -- the promise ----------------------------------------------------------------------------------------------


@given(st.integers(0, 2**32 - 1))
def test_an_answer_is_an_optimum_unless_no_optimum_has_the_labels_guessed(seed: int) -> None:
    rng = np.random.default_rng(seed)
    problem = random_problem(rng, max_variables=4, max_labels=3, infinite_costs=False)
    kinds = problem.structure.kinds
    if not kinds:
        return
    lessons = np.concatenate([rng.integers(len(kind), size=1) for kind in kinds * 4])
    gate = Gate({kinds[0].name: None}, n_rows=16).fit([problem] * 4, lessons)
    search = GatedSearch(gate, float(rng.choice([0.0, 0.3, 0.6, 1.0])))
    found = search(problem)
    best = naive.solve(problem)
    if best.labels is None:
        assert not found.valid
        return
    guesses = gate.guess(problem.batch)
    held = np.flatnonzero(guesses.doubt < search.max_doubt)
    agreeing = [
        labels
        for labels in product(*(range(len(kind)) for kind in kinds))
        if naive.valid(problem, labels) and all(labels[v] == guesses.label[v] for v in held.tolist())
    ]
    least = min((naive.cost(problem, labels) for labels in agreeing), default=best.cost)
    assert found.valid
    assert found.cost == pytest.approx(least)


def lessons(n: int, seed: int, noise: float = 0.0) -> tuple[Batch, np.ndarray]:
    """Problems with two entities, and for each whether its forward relation is likely; `noise` of these mislead."""
    shape, rng = entity_relation(2), np.random.default_rng(seed)
    related = rng.random(n) < 0.3
    costs = rng.normal(size=(n, shape.n_labels))
    first, kinds = shape.graph.first, shape.kinds
    costs[:, first[0] + kinds[0].label("person")] -= 9
    costs[:, first[1] + kinds[1].label("location")] -= 9
    costs[:, first[2] + kinds[2].label("LiveIn")] -= np.where(related, 20, -20)
    costs[:, first[3] + kinds[3].label("NoRel")] -= 20
    return shape.batch(costs), np.where(rng.random(n) < noise, ~related, related)


def hints(related: np.ndarray) -> Any:
    return lambda problems, variables: (2 * variables + related[problems])[:, None]


def learned(n: int = 800, noise: float = 0.0) -> tuple[GatedSearch, Batch, np.ndarray]:
    batch, related = lessons(n, 0, noise)
    return GatedSearch(Gate({"relation": hints(related)}).fit(batch, Certifier()(batch))), batch, related


def lazily(batch: Batch, calls: list[int]) -> Batch:
    def scorer(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        calls.append(len(problems))
        return np.concatenate([batch[int(p)].costs_of(int(v)) for p, v in zip(problems, variables, strict=True)])

    return Batch.build(batch.structures, batch.structure, scorer)


def test_a_lazy_batch_takes_two_calls_and_the_same_answers() -> None:
    search, batch, _ = learned()
    search = GatedSearch(search.gate, 0.2)
    given = search(batch)
    calls: list[int] = []
    found = search(lazily(batch, calls))
    assert found.labels.tolist() == given.labels.tolist()
    assert found.n_costs.tolist() == given.n_costs.tolist()
    assert calls == [2 * len(batch), int(given.n_costs.sum()) - 2 * len(batch)][: len(calls)]
    assert given.n_costs.sum() < 3 * len(batch)
    assert np.isnan(found.cost[found.n_costs < 4]).all()


def test_a_gate_that_sees_no_costs_takes_one_call() -> None:
    batch, related = lessons(800, 0)
    gate = Gate({"relation": hints(related)}, settled=False).fit(batch, Certifier()(batch))
    calls: list[int] = []
    found = GatedSearch(gate, 0.2)(lazily(batch, calls))
    assert calls == [int(found.n_costs.sum())]
    assert calls[0] < 3 * len(batch)
    assert found.labels.tolist() == GatedSearch(gate, 0.2)(batch).labels.tolist()


def test_without_doubt_allowed_every_cost_is_computed_and_every_answer_the_certifiers() -> None:
    search, batch, _ = learned(200)
    found = search(batch)
    assert (found.n_costs == 4).all()
    assert found.cost == pytest.approx(Certifier()(batch).cost)


def test_guesses_that_contradict_each_other_are_dropped() -> None:
    schema = Schema()
    choice = schema.variable("choice", ["this", "that"])
    pair = schema.factor("pair", left=choice, right=choice)
    pair.allow(left="this", right="that").allow(left="that", right="this")
    shape = schema.structure()
    shape.connect(pair, left=shape.add(choice), right=shape.add(choice))
    batch = shape.batch(np.tile([0.0, 1.0, 0.0, 3.0], (20, 1)))
    gate = Gate({"choice": None}).fit(batch, np.tile([0, 0], 20))  # as if both were always "this"
    calls: list[int] = []
    found = GatedSearch(gate, 1.0)(lazily(batch, calls))
    assert found.valid.all()
    assert found[0].names == ["that", "this"]
    assert (found.n_costs == 2).all()
    assert calls == [40]


# -- calibration ----------------------------------------------------------------------------------------------


def coin(n: int, rng: np.random.Generator, rate: float) -> Batch:
    """One variable each, that is "usual" but at this rate."""
    schema = Schema()
    kind = schema.variable("coin", ["usual", "odd"])
    shape = schema.structure()
    shape.add(kind)
    odd = rng.random(n) < rate
    return shape.batch(np.stack([odd * 1.0, ~odd * 1.0], axis=1))


def test_what_is_too_risky_is_chosen_no_more_often_than_the_confidence_allows() -> None:
    rng = np.random.default_rng(0)
    lesson = coin(2000, rng, 0.03)
    gate = Gate({"coin": None}).fit(lesson, Certifier()(lesson))
    n_taken = 0
    for _ in range(100):
        batch = coin(400, rng, 0.03)  # to guess all changes 3%, which is more than 2%
        chosen = Calibrator(risk=0.02, confidence=0.9).max_doubt(GatedSearch(gate), batch, Certifier()(batch))
        assert chosen.met
        n_taken += chosen.share < 1
    assert n_taken <= 18  # 10 are expected at most; 18 have a chance below 1%
    safe = coin(4000, rng, 0.005)
    chosen = Calibrator(risk=0.02).max_doubt(GatedSearch(gate), safe, Certifier()(safe))
    assert chosen.share == 0
    assert chosen.changed <= chosen.limit <= 0.02


def test_the_table_shows_what_was_tested_up_to_the_first_failure() -> None:
    search, batch, _ = learned(noise=0.05)
    chosen = Calibrator(risk=0.02).max_doubt(search, batch, Certifier()(batch))
    assert chosen.met
    assert [row.max_doubt for row in chosen.table] == list(DOUBTS[: len(chosen.table)])
    assert all(row.passed for row in chosen.table[:-1])
    shares = [row.share for row in chosen.table]
    assert shares == sorted(shares, reverse=True)
    assert "with confidence 99%; the risk allowed is 2.00%)" in str(chosen)
    assert ("too risky" in str(chosen)) == (not chosen.table[-1].passed)


def test_too_few_problems_prove_nothing() -> None:
    search, batch, _ = learned(100)
    chosen = Calibrator().max_doubt(search, batch, Certifier()(batch))
    assert not chosen.met
    assert chosen.max_doubt == 0
    assert "which no candidate met" in str(chosen)


def test_calibration_refuses_what_it_cannot_use() -> None:
    search, batch, _ = learned(50)
    answers = Certifier()(batch)
    with pytest.raises(ProblemError, match="risk=2"):
        Calibrator(risk=2).max_doubt(search, batch, answers)
    with pytest.raises(ProblemError, match="got none"):
        Calibrator().max_doubt(search, batch[:0], answers[:0])
    with pytest.raises(ProblemError, match="Got 50 answers for 20 problems"):
        Calibrator().max_doubt(search, batch[:20], answers)
    with pytest.raises(ProblemError, match=r"between 0 and 1, got 1\.5"):
        GatedSearch(search.gate, 1.5)


# -- in a speedup ---------------------------------------------------------------------------------------------


def fitted(audit: float) -> tuple[Speedup, Batch]:
    batch, related = lessons(3000, 0)
    schema = batch.structures[0].schema
    gate = Gate({"relation": hints(related)}, n_rows=1024)
    fast = Speedup(schema, answer=Search(gate=gate), trust=Trust(audit=audit))
    return fast.fit(batch[:1500]), batch


def test_a_speedup_answers_by_its_gate() -> None:
    fast, batch = fitted(audit=0.1)
    fast.predict(batch[1500:1600])
    assert fast.counters.costs == fast.counters.variables  # not calibrated yet
    chosen = fast.calibrate(batch[1500:2500], risk=0.02)
    assert chosen.share < 0.5
    with pytest.raises(ProblemError, match="A gate is compared with the solver"):
        fast.calibrate(batch[1500:2500], against="search")
    calls: list[int] = []
    lazy = lazily(batch, calls)
    before = fast.counters
    answers = fast.predict(lazy[2500:])
    assert answers.valid.all()
    assert fast.counters.costs - before.costs < 0.85 * (fast.counters.variables - before.variables)
    assert fast.counters.audits > 20
    assert fast.agreement.estimate > 0.95
    assert fast.predict(lazy[2600]).names == answers[100].names


def test_a_speedup_with_a_gate_is_saved_and_loaded(tmp_path: Path) -> None:
    fast, batch = fitted(audit=0.0)
    fast.set_params(answer__gate__settled=False).fit(batch[:1500]).calibrate(batch[1500:2500], risk=0.02)
    fast.save(tmp_path / "fast")
    gate = fast.answer.gate  # type: ignore[union-attr]
    cheap = gate.cheap
    again = Speedup.load(tmp_path / "fast", fast.schema, cheap=cheap)
    assert again._state.gated is not None
    assert not again._state.gated.gate.settled
    assert again.predict(batch[2500:]).n_costs.tolist() == fast.predict(batch[2500:]).n_costs.tolist()
    with pytest.raises(ModelError, match=r"saved with a gate for relation\. Give the functions"):
        Speedup.load(tmp_path / "fast", fast.schema)
    Speedup(fast.schema, answer=Search(gate=gate)).save(tmp_path / "new")
    assert Speedup.load(tmp_path / "new", fast.schema, cheap=cheap).answer.gate.n_rows == 1024  # type: ignore[union-attr]


def test_another_gate_is_not_taken_for_the_one_that_has_learned() -> None:
    fast, batch = fitted(audit=0.0)
    fast.calibrate(batch[1500:2500], risk=0.02)
    skipped = fast.predict(batch[2500:]).n_costs
    asked: list[int] = []
    hints_of = fast.answer.gate.cheap["relation"]  # type: ignore[union-attr]

    def noted(problems: np.ndarray, variables: np.ndarray) -> np.ndarray:
        asked.append(len(problems))
        return np.asarray(hints_of(problems, variables))

    fast.set_params(answer__gate__cheap={"relation": noted})
    assert fast.predict(batch[2500:]).n_costs.tolist() == skipped.tolist()
    assert asked  # it is the function that was given last
    fast.set_params(answer__gate__cheap={"entity": None})
    assert (fast.predict(batch[2500:]).n_costs == 4).all()  # which has learned nothing: the beam answers


def test_a_gate_is_checked_like_every_setting() -> None:
    batch, related = lessons(40, 0)
    schema = batch.structures[0].schema
    with pytest.raises(ProblemError, match="gate must be a Gate"):
        Speedup(schema, answer=Search(gate="relation")).predict(batch)  # type: ignore[arg-type]
    fast = Speedup(schema, answer=Search(gate=Gate({"relation": hints(related)})), learn=True)
    with pytest.raises(NotFittedError, match="Call fit before calibrate"):
        fast.calibrate(batch)
    assert fast.predict(batch).valid.all()  # by the beam, until the gate has learned
    assert fast.get_params()["answer__gate__n_rows"] == 65536
