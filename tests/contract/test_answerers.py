"""One contract for everything that answers problems; `naive` enumerates, and is the only judge.

An answerer takes a problem and returns a `Solution`, or a batch and returns `Solutions`. To hold another one to the
contract, add a line to `ANSWERERS`.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import naive
import numpy as np
import pytest

import hasten
from hasten import Batch, BeamSearch, Certifier, Gate, Schema, Status
from hasten.errors import ProblemError
from hasten.model.problem import Problem
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions
from hasten.model.structure import Structure
from hasten.search.beam import ConstrainedSearch
from hasten.speedup.skipping import GatedSearch

LETTERS = ["a", "b", "c"]


def schema_of_letters() -> Schema:
    schema = Schema()
    letter, only = schema.variable("letter", LETTERS), schema.variable("only", ["x"])
    schema.factor("pair", left=letter, right=letter).cost(0.5, left="a", right="b").forbid(left="c", right="c")
    schema.factor("mixed", letter=letter, only=only).cost(0.25, letter="b")
    schema.rule("few", at_most=3, letter="a")
    return schema


SCHEMA = schema_of_letters()


def chain(n: int, rule: str = "") -> Structure:
    """A chain of letters, with a variable that has one label, and perhaps a rule that binds, or cannot be kept."""
    shape = SCHEMA.structure()
    letter, only = SCHEMA.variables["letter"], SCHEMA.variables["only"]
    for v in range(n):
        shape.add(letter)
        if v:
            shape.connect(SCHEMA.factors["pair"], left=v - 1, right=v)
    if n:
        shape.connect(SCHEMA.factors["mixed"], letter=0, only=shape.add(only))
    if rule == "binding":
        shape.exactly_one("one b", [(v, "b") for v in range(n)])
    elif rule == "soft":
        shape.rule("cheap", [(v, "a") for v in range(n)], at_least=2, price=0.75, per_unit=True)
    elif rule == "broken":
        shape.rule("never", [(v, label) for v in range(n) for label in LETTERS], at_most=n - 1)
    return shape


SHAPES = [chain(3), chain(4, "binding"), chain(1), chain(0), chain(2, "broken")]


def batch_of(seed: int, n: int = 24, shapes: list[Structure] = SHAPES) -> Batch:
    """Problems of all shapes in turn; some have ties, some labels that are forbidden."""
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, len(shapes), n)
    costs = [rng.normal(size=shapes[s].n_labels) for s in numbers]
    for p in range(0, n, 3):
        costs[p] = np.round(costs[p])
    for p in range(0, n, 4):
        costs[p][rng.random(len(costs[p])) < 0.3] = np.inf
    return Batch.build(shapes, numbers, np.concatenate([np.zeros(0), *costs]))


class ByEnumeration:
    """A black box that enumerates."""

    def solve(self, problem: Problem) -> Solution:
        best = naive.solve(problem)
        labels = None if best.labels is None else np.array(best.labels, dtype=np.int64)
        status, bound = (Status.INFEASIBLE, np.inf) if labels is None else (Status.SOLVED, best.cost)
        return Solution(problem, status, hasten.Source.SOLVER, labels, best.cost, bound, labels is not None, 0)


def speedup(how: str, seconds: float | None = None) -> hasten.Speedup:
    """Returns a speedup that has learned, if it learns, and is trusted without audits."""
    fast = hasten.Speedup(
        SCHEMA,
        solver=ByEnumeration(),
        answer=how,
        trust=hasten.Trust(audit=0.0, min_agreement=None),
        limits=hasten.Limits(time_limit=seconds),
    )
    return fast if how == "certified" else fast.fit(batch_of(100, 60, SHAPES[:3]))


def gated() -> GatedSearch:
    lessons = batch_of(100, 60, SHAPES[:3])
    answers = [naive.solve(lessons[p]).labels for p in range(len(lessons))]
    return GatedSearch(Gate({"letter": None}, n_rows=16).fit(lessons, answers), 0.4)


@dataclass(frozen=True)
class Answerer:
    """A way to answer, and what it promises."""

    make: Callable[[], Any]
    exact: bool = False  # whether it finds an optimum, or says that there is none
    limited: Callable[[float], Any] | None = None  # the same with a limit of time


ANSWERERS = {
    "greedy": Answerer(hasten.greedy),
    "beam": Answerer(lambda: BeamSearch(width=3)),
    "reduced": Answerer(lambda: BeamSearch(width=2, reduce=True)),
    "constrained": Answerer(ConstrainedSearch),
    "gated": Answerer(gated),
    "certifier": Answerer(Certifier, exact=True, limited=lambda seconds: Certifier(time_limit=seconds)),
    "certified": Answerer(
        lambda: speedup("certified").predict, exact=True, limited=lambda seconds: speedup("certified", seconds).predict
    ),
    "learned": Answerer(lambda: speedup("learned").predict),
    "search": Answerer(lambda: speedup("search").predict),
}


@pytest.fixture(scope="module", params=ANSWERERS)
def answerer(request: pytest.FixtureRequest) -> Answerer:
    return ANSWERERS[request.param]


@pytest.fixture(scope="module")
def answer(answerer: Answerer) -> Callable[..., Any]:
    return answerer.make()


@pytest.fixture(scope="module")
def batch() -> Batch:
    return batch_of(0)


@pytest.fixture(scope="module")
def truth(batch: Batch) -> list[naive.Answer]:
    return [naive.solve(batch[p]) for p in range(len(batch))]


def facts(found: Solution) -> tuple[Any, ...]:
    """Everything that a single answer says, to the last bit."""
    labels = None if found.values is None else tuple(found.values.tolist())
    return labels, found.cost.hex(), found.bound.hex(), found.valid, found.status, found.proved


def all_facts(found: Solutions) -> list[tuple[Any, ...]]:
    return [facts(each) for each in found]


def test_answers_come_in_the_shapes_of_their_problems(answer: Callable[..., Any], batch: Batch) -> None:
    found = answer(batch)
    assert isinstance(found, Solutions)
    assert len(found) == len(batch)
    assert (found.labels.dtype, found.labels.shape) == (np.int64, (batch.labels_at[-1],))
    for array, dtype in ((found.cost, np.float64), (found.bound, np.float64), (found.valid, np.bool_)):
        assert (array.dtype, array.shape) == (dtype, (len(batch),))
    assert set(found.status.tolist()) <= set(range(len(STATUSES)))
    assert set(found.source.tolist()) <= set(range(len(SOURCES)))
    alone = answer(SHAPES[0].problem(np.zeros(SHAPES[0].n_labels)))
    assert isinstance(alone, Solution)
    assert alone.labels.shape == (SHAPES[0].n_variables,)


def test_what_an_answer_says_of_itself_is_true(answer, answerer, batch, truth) -> None:
    for p, (found, best) in enumerate(zip(answer(batch), truth, strict=True)):
        problem = batch[p]
        labelled = found.values is not None
        if labelled:
            labels = tuple(found.labels.tolist())
            assert found.valid == naive.valid(problem, labels)
            assert found.cost == pytest.approx(naive.cost(problem, labels))
        assert not found.valid or labelled
        assert found.bound <= best.cost + 1e-9
        assert not found.valid or found.cost >= best.cost - 1e-9
        if found.proved or answerer.exact:
            assert found.status in (Status.PROVED, Status.SOLVED, Status.INFEASIBLE)
            assert (found.status is Status.INFEASIBLE) == (best.labels is None)
            assert found.valid == (best.labels is not None)
            assert found.cost == pytest.approx(best.cost)
        if found.status is Status.INFEASIBLE:
            assert best.labels is None


def test_a_batch_is_answered_as_its_problems_are(answer: Callable[..., Any], batch: Batch) -> None:
    together = all_facts(answer(batch))
    assert together == [facts(answer(batch[p])) for p in range(len(batch))]
    assert together == all_facts(answer([batch[p] for p in range(len(batch))]))


def test_answers_come_in_the_order_of_their_problems(answer: Callable[..., Any], batch: Batch) -> None:
    order = np.random.default_rng(1).permutation(len(batch))
    before = all_facts(answer(batch))
    assert all_facts(answer(batch.select(order))) == [before[p] for p in order.tolist()]


def test_asking_again_changes_nothing(answer: Callable[..., Any], batch: Batch) -> None:
    assert all_facts(answer(batch)) == all_facts(answer(batch))


def test_numpy_may_raise_instead_of_warning(answer: Callable[..., Any], batch: Batch) -> None:
    before = all_facts(answer(batch))
    with np.errstate(all="raise"):
        assert all_facts(answer(batch)) == before
        assert facts(answer(batch[1])) == before[1]


def test_threads_change_nothing(answerer: Answerer, answer: Callable[..., Any], batch: Batch) -> None:
    if hasattr(answer, "__self__"):  # a speedup has threads of its own
        other = answerer.make()
        other.__self__.n_jobs = 2
        assert all_facts(other(batch)) == all_facts(answer(batch))
    else:
        assert all_facts(answer(batch, n_jobs=2)) == all_facts(answer(batch))


def test_arrays_of_the_caller_are_only_read(answer: Callable[..., Any]) -> None:
    costs = np.random.default_rng(2).normal(size=(5, SHAPES[0].n_labels))
    table = np.arange(9.0).reshape(3, 3)
    kept = costs.copy(), table.copy()
    for array in (costs, table):
        array.flags.writeable = False
    plain = answer(SHAPES[0].batch(costs))
    alone = [answer(SHAPES[0].problem(row)) for row in costs]
    assert all_facts(plain) == [facts(each) for each in alone]
    answer(SHAPES[0].problem(costs[0], tables={"pair": table}))
    assert (costs == kept[0]).all()
    assert (table == kept[1]).all()


def test_soft_rules_are_paid_for(answer: Callable[..., Any], answerer: Answerer) -> None:
    problems = batch_of(3, 8, [chain(3, "soft")])
    found = answer(problems)
    assert len(found.labels) == problems.labels_at[-1]
    for p, each in enumerate(found):
        problem, rules = problems[p], chain(3).problem(problems[p].cost[: SHAPES[0].n_labels])
        if not each.valid:
            continue
        missed = max(0, 2 - each.names[:3].count("a"))
        assert each.cost == pytest.approx(naive.cost(rules, tuple(each.labels.tolist())) + 0.75 * missed)
        assert problem.check(each.labels).price == pytest.approx(0.75 * missed)


def test_nothing_is_answered_by_nothing(answer: Callable[..., Any]) -> None:
    empty = Batch.of([])
    assert len(answer(empty)) == len(answer([])) == 0
    assert answer(batch_of(0)[:0]).labels.shape == (0,)


def test_a_problem_without_variables_costs_nothing(answer: Callable[..., Any]) -> None:
    found = answer(chain(0).problem([]))
    assert (found.cost, found.valid, found.labels.tolist()) == (0.0, True, [])


def test_one_label_is_chosen(answer: Callable[..., Any]) -> None:
    shape = SCHEMA.structure(["only", "only"])
    found = answer(shape.problem([[2.0], [-1.0]]))
    assert (found.names, found.cost, found.valid) == (["x", "x"], 1.0, True)


def test_no_answer_is_called_valid_where_there_is_none(answer: Callable[..., Any], answerer: Answerer) -> None:
    broken = chain(2, "broken").problem(np.zeros(7))
    forbidden = chain(1).problem(np.full(4, np.inf))
    for problem in (broken, forbidden):
        found = answer(problem)
        assert not found.valid
        assert found.status is Status.INFEASIBLE or not answerer.exact
        if found.values is None:
            with pytest.raises(hasten.errors.NoAnswerError):
                _ = found.labels


@pytest.mark.parametrize("scale", [1e-300, 1e-12, 1e12, 1e290])
def test_costs_of_any_size_are_answered(answer: Callable[..., Any], scale: float) -> None:
    costs = np.random.default_rng(4).normal(size=SHAPES[0].n_labels) * scale
    problem = SHAPES[0].problem(costs, tables={"pair": np.zeros((3, 3)), "mixed": np.zeros((3, 1))})
    found, best = answer(problem), naive.solve(problem)
    assert found.valid
    assert found.cost >= best.cost * (1 + 1e-9 if best.cost < 0 else 1 - 1e-9)
    assert not found.proved or found.cost == pytest.approx(best.cost, rel=1e-9)


@pytest.mark.parametrize("wrong", [None, 3, "x", np.zeros((2, 3)), SHAPES[0], [None], [[1.0]], {"a": 1}])
def test_what_is_no_problem_is_refused(answer: Callable[..., Any], wrong: Any) -> None:
    with pytest.raises(ProblemError, match="Expected"):
        answer(wrong)


def test_a_limit_of_time_holds(answerer: Answerer, batch: Batch, truth: list[naive.Answer]) -> None:
    if answerer.limited is None:
        return
    for seconds in (0.0, 600.0):
        for found, best in zip(answerer.limited(seconds)(batch), truth, strict=True):
            assert found.bound <= best.cost + 1e-9
            assert seconds == 0.0 or found.status.optimal
            assert not found.proved or found.cost == pytest.approx(best.cost)


def test_a_copy_and_a_saved_one_answer_alike(answerer: Answerer, batch: Batch, tmp_path: Path) -> None:
    answer = answerer.make()
    before = all_facts(answer(batch))
    if not hasattr(answer, "__self__"):
        assert all_facts(pickle.loads(pickle.dumps(answer))(batch)) == before
        return
    path = tmp_path / "saved.safetensors"
    answer.__self__.save(path)
    again = hasten.Speedup.load(path, SCHEMA, solver=ByEnumeration())
    assert all_facts(again.predict(batch)) == before


# -- adopted programs ---------------------------------------------------------------------------------------

PROGRAM = """Minimize
 obj: x0 + x1 + x2 + y0 + y1 + y2
Subject To
 one: x0 + x1 + x2 = 1
 other: y0 + y1 + y2 = 1
 apart: x0 + y0 <= 1
 follows: x1 - y2 <= 0
Binaries
 x0 x1 x2 y0 y1 y2
End
"""


def best_of(columns: tuple[str, ...], objective: np.ndarray) -> float:
    """Enumerates the program above."""
    cost = dict(zip(columns, objective.tolist(), strict=True))
    choices = [(x, y) for x in range(3) for y in range(3) if not (x == 0 == y) and not (x == 1 and y != 2)]
    return min(cost[f"x{x}"] + cost[f"y{y}"] for x, y in choices)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> hasten.Program:
    path = tmp_path_factory.mktemp("programs") / "small.lp"
    path.write_text(PROGRAM)
    return hasten.read(path)


def test_an_adopted_program_keeps_the_contract(program: hasten.Program) -> None:
    objectives = np.random.default_rng(5).normal(size=(20, 6))
    objectives.flags.writeable = False
    answers = program.solve_all(objectives)
    truth = [best_of(program.columns, each) for each in objectives]
    assert len(answers) == 20
    assert np.array([each.objective for each in answers]) == pytest.approx(np.array(truth))
    assert all(each.proved for each in answers)
    alone = [program.solve(objective=each) for each in objectives]
    assert [dict(each) for each in alone] == [dict(each) for each in answers]
    assert [each.objective for each in alone] == [each.objective for each in answers]
    order = np.random.default_rng(6).permutation(20)
    assert [dict(each) for each in program.solve_all(objectives[order])] == [dict(alone[p]) for p in order.tolist()]
    assert len(program.solve_all(objectives[:0])) == 0


@pytest.mark.parametrize("wrong", ["x", np.zeros(5), np.full(6, np.nan), [None] * 6])
def test_an_adopted_program_refuses_other_objectives(program: hasten.Program, wrong: Any) -> None:
    with pytest.raises(hasten.HastenError):
        program.solve(objective=wrong)
