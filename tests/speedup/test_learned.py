"""Learned mode: tables from a black box's answers, chosen on answers held out, watched, and learned again."""

from __future__ import annotations

import copy
import json
import logging
import pickle
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import hasten
from hasten.errors import HastenError, ModelError, NotFittedError, ProblemError
from hasten.learning.heuristic import about_schema
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.speedup.choosing import Method
from hasten.speedup.persistence import FORMAT
from hasten.support.forms import load_tensors, save_tensors

LABELS = ["before", "after", "equal"]


def allowed(ij: str, jk: str, ik: str) -> bool:
    """Whether three relations between three events can hold at once."""
    if "equal" in (ij, jk):
        return ik == (jk if ij == "equal" else ij)
    return ij != jk or ik == ij


def times(known: bool, costs: bool = False) -> hasten.Schema:
    schema = hasten.Schema()
    relation = schema.variable("relation", LABELS)
    triple = schema.factor("triple", ij=relation, jk=relation, ik=relation)
    if known:
        triple.allow(allowed)
        if costs:
            triple.cost(0.6, ij="equal").cost(-0.4, ij="before", ik="before")
    return schema


def shape_of(schema: hasten.Schema, n_events: int) -> hasten.Structure:
    shape = schema.structure()
    relation, triple = schema.variables["relation"], schema.factors["triple"]
    pair = {each: shape.add(relation) for each in combinations(range(n_events), 2)}
    for i, j, k in combinations(range(n_events), 3):
        shape.connect(triple, ij=pair[i, j], jk=pair[j, k], ik=pair[i, k])
    return shape


class Box:
    """A black box that knows the rules; it counts what it is asked."""

    def __init__(self, costs: bool = False) -> None:
        self.schema, self.n_calls = times(True, costs), 0
        self.shapes = {n * (n - 1) // 2: shape_of(self.schema, n) for n in range(3, 9)}

    def __call__(self, problem: Problem) -> np.ndarray:
        self.n_calls += 1
        return hasten.Certifier()(self.shapes[problem.n_variables].problem(problem.cost)).labels


OPEN = times(False)


def events(n_events: int, n: int, seed: int, schema: hasten.Schema = OPEN) -> Batch:
    shape = shape_of(schema, n_events)
    return shape.batch(np.random.default_rng(seed).normal(size=(n, shape.n_labels)))


def learned(box: Box, audit: float = 0.02, **settings: object) -> hasten.Speedup:
    trust = hasten.Trust(audit=audit, prove=False)
    return hasten.Speedup(OPEN, solver=box, answer="learned", trust=trust, **settings)  # type: ignore[arg-type]


def right(box: Box, batch: Batch, labels: np.ndarray) -> float:
    truth = np.concatenate([box(batch[p]) for p in range(len(batch))])
    differs = np.add.reduceat(truth != labels, batch.variable_at[:-1])
    return float((differs == 0).mean())


@pytest.fixture(scope="module")
def fitted() -> hasten.Speedup:
    return learned(Box()).fit(events(4, 120, 0))


def test_hidden_rules_are_learned_and_carry_over_to_other_sizes(fitted: hasten.Speedup) -> None:
    assert fitted.choice.method is Method.MINED
    truth = np.isposinf(times(True).factors["triple"].table)
    assert (np.isposinf(fitted.choice.tables.table("triple")) == truth).all()
    for n_events in (4, 6):
        batch = events(n_events, 40, 1)
        assert right(Box(), batch, fitted.predict(batch).labels) == 1.0
        assert fitted.score(batch) == 1.0
    assert "mined tables" in str(fitted.choice)
    assert "0.99" in str(fitted.choice)


def test_an_optimum_for_learned_tables_is_not_called_proved() -> None:
    speedup = learned(Box(), audit=0.0).fit(events(4, 120, 0))
    answers = speedup.predict(events(4, 30, 2))
    assert answers.has(hasten.Status.LEARNED).all()
    assert answers.by(hasten.Source.LEARNED).all()
    assert not answers.proved.any()
    assert not answers.optimal.any()
    assert (answers.bound == -np.inf).all()
    assert speedup.counters.by_learned == 30 == speedup.counters.problems
    assert speedup.counters.proved == 0
    one = speedup.predict(events(4, 1, 2)[0])
    assert one.status is hasten.Status.LEARNED
    assert one.cost == pytest.approx(events(4, 1, 2)[0].total(one.labels))


def test_hidden_costs_are_learned() -> None:
    schema = hasten.Schema()
    tag = schema.variable("tag", ["x", "y", "z"])
    schema.factor("pair", left=tag, right=tag)
    table = np.array([[0.4, -0.7, 0.1], [1.1, 0.0, -0.3], [-0.5, 0.2, 0.9]])
    known = schema.with_tables({"pair": table})

    def chain(schema: hasten.Schema, length: int = 6) -> hasten.Structure:
        shape = schema.structure()
        for v in range(length):
            shape.add(schema.variables["tag"])
            if v:
                shape.connect(schema.factors["pair"], left=v - 1, right=v)
        return shape

    hidden, open_shape = chain(known), chain(schema)
    costs = np.random.default_rng(0).normal(size=(400, open_shape.n_labels))
    truth = hasten.Certifier()(hidden.batch(costs)).labels
    batch = open_shape.batch(costs)
    speedup = hasten.Speedup(
        schema, solver=lambda _: None, answer="learned", trust=hasten.Trust(prove=False, audit=0.0)
    )
    speedup.fit(batch[:300], truth[: 300 * 6])
    assert speedup.choice.method in (Method.SOFT, Method.BOTH)
    assert speedup.choice.size is not None
    found = speedup.predict(batch[300:]).labels
    plain = hasten.Certifier()(batch[300:]).labels
    same = (found.reshape(-1, 6) == truth[1800:].reshape(-1, 6)).all(axis=1).mean()
    assert same > 0.85 > (plain.reshape(-1, 6) == truth[1800:].reshape(-1, 6)).all(axis=1).mean()


def test_nothing_hidden_learns_nothing() -> None:
    batch = events(4, 60, 0)
    speedup = hasten.Speedup(OPEN, answer="learned").fit(batch)
    assert speedup.choice.method is Method.NONE
    assert speedup.choice.agreement[Method.NONE].estimate == 1.0


def test_too_few_answers_teach_nothing() -> None:
    speedup = learned(Box()).fit(events(4, 5, 0))
    assert speedup.choice.method is Method.NONE
    assert "too few" in str(speedup.choice)


def test_a_lifetime_needs_few_calls_and_tells_what_changed(caplog: pytest.LogCaptureFixture) -> None:
    box = Box()
    speedup = learned(box, learn=True)
    batch = events(4, 1500, 3)
    with caplog.at_level(logging.INFO):
        found = np.concatenate([speedup.predict(batch[at : at + 50]).labels for at in range(0, 1500, 50)])
    assert box.n_calls == speedup.counters.solver_calls < 0.3 * 1500
    assert right(Box(), batch, found) > 0.99
    assert any("is trusted now" in note for note in speedup.history.notes)
    assert any("mined tables" in note for note in speedup.history.notes)
    assert "mined tables" in caplog.text
    last = speedup.history.moments[-1]
    assert last.problems <= 1500
    assert last.calls <= box.n_calls
    assert [each.problems for each in speedup.history] == sorted(each.problems for each in speedup.history)


def test_a_large_batch_is_taken_in_parts_while_learning() -> None:
    box = Box()
    speedup = learned(box, learn=True)
    answers = speedup.predict(events(4, 1500, 3))
    assert len(answers) == 1500
    assert box.n_calls < 0.5 * 1500
    assert right(Box(), answers.batch, answers.labels) > 0.99


def test_trust_ends_when_the_black_box_changes_and_comes_back() -> None:
    boxes = [Box(), Box()]
    boxes[1].schema = boxes[1].schema.with_tables({"triple": _other_rules()})
    boxes[1].shapes = {6: shape_of(boxes[1].schema, 4)}
    asked = {"box": 0}
    speedup = hasten.Speedup(
        OPEN,
        solver=lambda problem: boxes[asked["box"]](problem),
        answer="learned",
        trust=hasten.Trust(prove=False, audit=0.2),
        learn=True,
    )
    batch = events(4, 2400, 4)
    for at in range(0, 600, 50):
        speedup.predict(batch[at : at + 50])
    assert speedup.trusted
    asked["box"] = 1
    trust = []
    for at in range(600, 2400, 50):
        speedup.predict(batch[at : at + 50])
        trust.append(speedup.trusted)
    assert False in trust
    assert trust[-1]
    assert any("changed" in note for note in speedup.history.notes)
    table = np.isposinf(speedup.choice.tables.table("triple"))
    assert (table == np.isposinf(_other_rules())).mean() > 0.9


def _other_rules() -> np.ndarray:
    table = np.zeros((3, 3, 3))
    table[0, 0, 0] = table[1, 1, 1] = table[2, 2, :] = np.inf
    return table


def test_partial_fit_goes_on_learning() -> None:
    box = Box()
    speedup = learned(box).partial_fit(events(4, 20, 0)).partial_fit(events(4, 100, 1))
    assert speedup.choice.n_answers == 120
    assert speedup.choice.method is Method.MINED
    assert speedup.counters.labelled == 120


def test_it_survives_files_pickles_and_copies(tmp_path: Path, fitted: hasten.Speedup) -> None:
    box, path, batch = Box(), tmp_path / "learned.safetensors", events(5, 30, 7)
    speedup = learned(box, learn=True)
    for at in range(0, 300, 50):
        speedup.predict(events(4, 300, 3)[at : at + 50])
    speedup.save(path)
    loaded = hasten.Speedup.load(path, OPEN, solver=box)
    assert str(loaded.choice) == str(speedup.choice)
    assert repr(loaded.history.moments) == repr(speedup.history.moments)
    assert (loaded.predict(batch).labels == speedup.predict(batch).labels).all()
    for other in (pickle.loads(pickle.dumps(fitted.choice)), copy.deepcopy(fitted).choice):
        assert str(other) == str(fitted.choice)


def with_later_moment(state: str) -> str:
    known = json.loads(state)
    known["history"].append([10_000, *known["history"][-1][1:]])
    return json.dumps(known)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"tables/forbidden": lambda t: t[:5].copy()}, "shape"),
        ({"tables/forbidden": lambda t: t[:0]}, "shape"),
        ({"tables/forbidden": lambda t: t + 2}, "from 0 to 1"),
        ({"tables/cost": lambda t: t * np.nan}, "finite"),
        ({"state": lambda s: s.replace('"mined tables"', '"other"')}, "method"),
        (
            {"state": lambda s: s.replace('"method": "mined tables"', '"method": "learned costs"')},
            "not tried|must be",
        ),
        ({"state": lambda s: s.replace('"confidence": 0.99', '"confidence": 7')}, "confidence"),
        ({"state": with_later_moment}, "its history tells of 10000 problems, and it counted"),
    ],
)
def test_files_that_no_speedup_wrote_are_refused(
    tmp_path: Path, fitted: hasten.Speedup, change: dict[str, object], why: str
) -> None:
    path = tmp_path / "learned.safetensors"
    fitted.save(path)
    tensors, about = load_tensors(path, FORMAT, "speedup")
    for name, how in change.items():
        if name == "state":
            assert how(about["state"]) != about["state"]  # type: ignore[operator]
            about = about | {"state": how(about["state"])}  # type: ignore[operator]
        else:
            tensors = tensors | {name: how(tensors[name])}  # type: ignore[operator]
    save_tensors(path, FORMAT, tensors, about_schema(OPEN) | {"state": about["state"]})
    with pytest.raises((ModelError, ProblemError), match=why):
        hasten.Speedup.load(path, OPEN, solver=Box())


def test_misuse_is_explained() -> None:
    with pytest.raises(NotFittedError, match="fit"):
        learned(Box()).predict(events(4, 3, 0))
    with pytest.raises(NotFittedError, match="no tables yet"):
        _ = learned(Box()).choice
    with pytest.raises(ProblemError, match="'learned'"):
        hasten.Speedup(OPEN, answer="learnt").fit(events(4, 3, 0))


def test_a_history_is_drawn(fitted: hasten.Speedup, monkeypatch: pytest.MonkeyPatch) -> None:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    speedup = learned(Box(), learn=True)
    speedup.predict(events(4, 200, 3))
    axes = speedup.history.plot()
    assert "share" in axes.get_ylabel()
    assert len(axes.get_lines()) >= 3
    assert speedup.history.plot(axes) is axes
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(HastenError, match=r"hasten\[plot\]"):
        fitted.history.plot()


def test_learned_tables_that_rule_out_everything_ask_the_black_box() -> None:
    schema = hasten.Schema()
    a = schema.variable("a", ["x", "y"])
    schema.factor("same", left=a, right=a)
    shape = schema.structure()
    for _ in range(3):
        shape.add(a)
    for v, w in combinations(range(3), 2):
        shape.connect(schema.factors["same"], left=v, right=w)
    pair = schema.structure()
    pair.connect(schema.factors["same"], left=pair.add(a), right=pair.add(a))
    costs = np.random.default_rng(0).normal(size=(60, 4))
    differ = schema.with_tables({"same": np.array([[np.inf, 0.0], [0.0, np.inf]])})
    hidden = pair.under(differ)
    speedup = hasten.Speedup(
        schema, solver=lambda problem: [0, 0, 1], answer="learned", trust=hasten.Trust(prove=False, audit=0.0)
    )
    speedup.fit(pair.batch(costs), hasten.Certifier()(hidden.batch(costs)).labels)
    assert speedup.choice.tables.n_forbidden == 2
    answers = speedup.predict(shape.batch(np.zeros((1, 6))))  # three that all differ do not exist
    assert answers.labels.tolist() == [0, 0, 1]
    assert answers.by(hasten.Source.SOLVER).all()
    speedup.set_params(trust__repair=False)
    alone = speedup.predict(shape.batch(np.zeros((1, 6))))[0]
    assert alone.status is hasten.Status.RULED_OUT
    assert alone.values is None


def test_a_schema_without_factors_teaches_nothing_and_a_batch_without_problems_is_refused() -> None:
    schema = hasten.Schema()
    a = schema.variable("a", ["x", "y"])
    shape = schema.structure()
    shape.add(a)
    batch = shape.batch(np.random.default_rng(0).normal(size=(30, 2)))
    other = np.random.default_rng(1).integers(0, 2, size=30)
    speedup = hasten.Speedup(schema, answer="learned").fit(batch, other)
    assert speedup.choice.method is Method.NONE
    assert not speedup.choice.tables.n_forbidden
    with pytest.raises(hasten.ProblemError, match="no problems to learn from"):
        hasten.Speedup(OPEN, answer="learned").fit([])
    assert speedup.partial_fit(batch.select([])).choice.method is Method.NONE


def test_problems_with_tables_of_their_own_are_learned_from_and_remembered() -> None:
    box, shape = Box(), shape_of(OPEN, 4)
    rng = np.random.default_rng(0)
    own = rng.normal(size=(3, 3, 3)) / 4
    hidden = shape_of(box.schema, 4)

    def known(problem: Problem) -> np.ndarray:
        both = own + box.schema.factors["triple"].table
        return hasten.Certifier()(hidden.problem(problem.cost, tables={1: both})).labels

    problems = [shape.problem(rng.normal(size=shape.n_labels), tables={1: own}) for _ in range(300)]
    speedup = hasten.Speedup(OPEN, solver=known, answer="learned", trust=hasten.Trust(prove=False), learn=True)
    found = [speedup.predict(problems[at : at + 50]).labels for at in range(0, 300, 50)]
    assert speedup.counters.solver_calls < 300
    truth = np.concatenate([known(problem) for problem in problems])
    assert (np.concatenate(found) == truth).mean() > 0.99
    assert speedup.choice.method is Method.MINED


def test_what_is_learned_is_the_same_every_time() -> None:
    batch = events(4, 150, 0)
    answers = np.concatenate([Box(costs=True)(batch[p]) for p in range(150)])
    one, two = (learned(Box(), seed=3).fit(batch, answers).choice for _ in range(2))
    assert str(one) == str(two)
    assert (one.tables.cost == two.tables.cost).all()
    assert (one.tables.forbidden == two.tables.forbidden).all()
