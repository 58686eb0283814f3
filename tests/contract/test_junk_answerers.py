"""Wrong arguments of everything that answers, learns, reads or adopts are refused by an error of ours, or are good.

As in `test_junk`, which does it to the calls of the model: each argument in turn is replaced by junk.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from junk import CLASSES, JUNK, Call, Of, World, perform

import hasten
from hasten import (
    BeamSearch,
    Certified,
    Certifier,
    Family,
    Gate,
    Learned,
    Learner,
    Limits,
    OnDemand,
    Program,
    Search,
    Speedup,
    Trust,
)
from hasten.cascade import Cascade
from hasten.cascade.student import Student
from hasten.errors import HastenError
from hasten.journal import Journal
from hasten.learning.heuristic import Heuristic
from hasten.support.terminal import no_progress
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.model import Tagging

CASCADE = {"risk": 0.1, "confidence": 0.9, "audit": 0.1, "budget": None, "journal": None, "seed": 0}
LP = "Minimize\n obj: x + 2 y\nSubject To\n c1: x + y >= 1\nBinary\n x y\nEnd\n"
MPS_SOLVED = {"order": None, "solver": "highs", "time_limit": None}


def tagged(text: Tagged) -> Tagged:
    return replace(text, tags=("X",) * len(text.words))


class Answering(World):
    """A world with what answers, learns and reads in it, in the directory that a test runs in."""

    def __init__(self) -> None:
        super().__init__()
        self.linked = self.schema.factor("linked", left=self.kind, right=self.kind, learned=True)

    def structure(self) -> hasten.Structure:
        shape = super().structure()
        shape.connect(self.linked, left=0, right=1)
        return shape

    def many(self) -> hasten.Batch:
        return self.structure().batch(np.random.default_rng(0).normal(size=(12, 4)))

    def answers(self) -> hasten.Solutions:
        return Certifier()(self.many())

    def speedup(self, **settings: Any) -> Speedup:
        return Speedup(self.schema, solver="brute", **settings)

    def searching(self) -> Speedup:
        search = Search(learner=Learner(epochs=1), guided=True)
        return self.speedup(answer=search).fit(self.many())

    def program(self) -> Program:
        Path("good.lp").write_text(LP)
        return hasten.read("good.lp")

    def saved(self, made: Any) -> str:
        made.save("saved")
        return "saved"

    def journal(self) -> Journal:
        return Journal("a.journal")

    def cascade(self) -> Cascade:
        cascade = Cascade(Tagging(), tagged)
        cascade.versions["v1"] = Student(
            "v1", Tagging().train([tagged(Tagged("0", ("a",)))], seed=0, progress=no_progress), 1
        )
        return cascade

    def heuristic(self) -> Heuristic:
        return Heuristic(self.schema, np.zeros(self.schema.n_weights))

    def gate(self) -> Gate:
        return Gate({"kind": None}, n_rows=16)


def used(make: Callable[..., Speedup]) -> Callable[..., Any]:
    """Returns a call that makes a speedup and uses it: some settings are checked then."""
    return lambda **settings: make(**settings).predict(Answering().problem())


PROBLEMS = Of(lambda w: w.batch())
ANSWERS = Of(lambda w: w.answers())
MANY = Of(lambda w: w.many())
PROBLEM = Of(lambda w: w.problem())
SCHEMA = Of(lambda w: w.schema)
CHEAP = {"kind": None}
CERTIFIER = {"max_join": None, "max_sweeps": 9, "max_nodes": 9, "time_limit": 1.0, "call_limit": 1.0}
BEAM = {"width": 2, "enforce": True, "look_ahead": False, "theta": 1.0}
LEARNER = {"width": 2, "step": 0.5, "averaged": True, "enforce": True, "look_ahead": True, "epochs": 2, "shuffle": True}
NO_ARRAYS = {"c": [1.0, 2.0], "integrality": [1, 1], "bounds": (0, 1), "constraints": None}

CALLS: list[Call] = [
    (lambda w: Certifier, "", CERTIFIER),
    (lambda w: Certifier(), "__call__", {"problems": PROBLEMS, "found": Of(lambda w: w.solutions()), "n_jobs": 1}),
    (lambda w: Certifier(), "report", {"problems": PROBLEMS, "found": Of(lambda w: w.solutions())}),
    (lambda w: Certifier(), "best", {"problem": PROBLEM, "k": 2}),
    (lambda w: Certifier(), "min_marginals", {"problem": PROBLEM}),
    (lambda w: Certifier(), "certificate", {"problem": PROBLEM}),
    (lambda w: Certifier(time_limit=0.01), "improving", {"problem": PROBLEM}),
    (lambda w: Certifier(), "trace", {"problem": PROBLEM, "names": ["x", "y"]}),
    (lambda w: BeamSearch, "", {**BEAM, "weights": None}),
    (lambda w: BeamSearch(2), "__call__", {"problems": PROBLEMS, "n_jobs": 1}),
    (lambda w: BeamSearch(2), "trace", {"problem": PROBLEM, "reference": [0, 1], "names": ["x", "y"]}),
    (lambda w: lambda weights: BeamSearch(2, weights)(w.problem()), "", {"weights": None}),
    (lambda w: Search, "", {**BEAM, "reduce": True, "guided": None, "learner": None, "gate": None}),
    (lambda w: Search, "paper", {"width": 2}),
    (lambda w: Cascade, "", {"task": Of(lambda w: Tagging()), "black_box": Of(lambda w: tagged), **CASCADE}),
    (lambda w: Cascade(Tagging(), tagged), "predict", {"inputs": Of(lambda w: [Tagged("0", ("a",))])}),
    (lambda w: Cascade(Tagging(), tagged), "teach", {"answered": Of(lambda w: [tagged(Tagged("0", ("a",)))])}),
    (lambda w: Cascade(Tagging(), tagged), "save", {"path": "saved"}),
    (lambda w: w.cascade(), "take_in", {"journal": Of(lambda w: w.journal())}),
    (lambda w: w.cascade(), "replay", {"stretch": Of(lambda w: range(3)), "journal": Of(lambda w: w.journal())}),
    (lambda w: w.cascade(), "promote", {"name": "v1"}),
    (lambda w: Certified, "", {"past": 0, "search": Search()}),
    (lambda w: Learned, "", {}),
    (lambda w: Limits, "", {"time_limit": 1.0, "call_limit": 1.0, "max_nodes": 9}),
    (
        lambda w: Trust,
        "",
        {"audit": 0.1, "min_agreement": 0.9, "repair": True, "prove": True},
    ),
    (lambda w: Trust, "", {"on_error": "keep"}),
    (lambda w: Learner, "", {**LEARNER, "seed": 0}),
    (lambda w: Learner, "paper", {"width": 2}),
    (lambda w: Learner(epochs=1), "fit", {"problems": MANY, "answers": ANSWERS}),
    (lambda w: Learner(epochs=1), "partial_fit", {"problems": MANY, "answers": ANSWERS}),
    (lambda w: Learner(), "learn_one", {"problem": PROBLEM, "answer": [0, 1]}),
    (
        lambda w: Learner(epochs=1).fit(w.many(), w.answers()),
        "mistake_bound",
        {"margin": 1.0},
    ),
    (lambda w: Heuristic, "", {"schema": SCHEMA, "weights": Of(lambda w: w.heuristic().weights)}),
    (lambda w: w.heuristic(), "strongest", {"n": 2, "factor": "pair"}),
    (lambda w: w.heuristic(), "weights_of", {"factor": "pair"}),
    (lambda w: Gate, "", {"cheap": CHEAP, "settled": True, "n_rows": 16, "seed": 0}),
    (lambda w: w.gate(), "fit", {"problems": MANY, "answers": ANSWERS}),
    (lambda w: w.gate().fit(w.many(), w.answers()), "guess", {"batch": PROBLEMS}),
    (lambda w: w.gate().fit(w.many(), w.answers()), "expensive", {"batch": PROBLEMS}),
    (lambda w: w.gate().fit(w.many(), w.answers()), "seeing", {"cheap": CHEAP}),
    (
        lambda w: used(lambda **settings: Speedup(**({"schema": w.schema} | settings))),
        "",
        {"solver": "brute", "solver_options": None, "answer": "certified", "trust": Trust(), "limits": Limits()},
    ),
    (
        lambda w: used(lambda **settings: Speedup(**({"schema": w.schema} | settings))),
        "",
        {"learn": False, "n_jobs": 1, "seed": 0},
    ),
    (lambda w: used(Speedup), "", {"schema": SCHEMA}),
    (lambda w: Speedup, "paper", {"schema": SCHEMA, "width": 2}),
    (lambda w: Speedup, "load", {"path": Of(lambda w: w.saved(w.speedup())), "schema": SCHEMA, "solver": "brute"}),
    (lambda w: Speedup, "load", {"path": Of(lambda w: w.saved(w.speedup())), "schema": SCHEMA, "cheap": None}),
    (lambda w: w.speedup(), "save", {"path": "out"}),
    (lambda w: w.speedup(), "predict", {"problems": PROBLEMS}),
    (lambda w: w.searching(), "predict", {"problems": PROBLEMS}),
    (lambda w: w.speedup(), "at_once", {"problems": PROBLEMS, "max_nodes": 10}),
    (lambda w: w.speedup(), "ask", {"problems": PROBLEMS}),
    (lambda w: w.speedup(), "fit", {"problems": MANY, "answers": ANSWERS}),
    (lambda w: w.speedup(), "partial_fit", {"problems": MANY, "answers": ANSWERS}),
    (lambda w: w.speedup(), "score", {"problems": PROBLEMS, "answers": None}),
    (
        lambda w: w.searching(),
        "calibrate",
        {"problems": MANY, "risk": 0.3, "confidence": 0.5, "against": None},
    ),
    (
        lambda w: OnDemand,
        "",
        {
            "shape": Of(lambda w: w.structure()),
            "families": Of(lambda w: [Family(w.pair, lambda labels: np.zeros((0, 2)))]),
            "answer": None,
            "time_limit": 1.0,
        },
    ),
    (
        lambda w: OnDemand(w.structure(), [Family(w.pair, lambda labels: np.zeros((0, 2)))]),
        "__call__",
        {"problems": PROBLEM},
    ),
    (lambda w: hasten.Requirements, "", {"labels": ["a", "b"]}),
    (lambda w: hasten.Requirements(["a", "b"]), "clause", {"said": "a -> b"}),
    (lambda w: hasten.Requirements(["a", "b"]), "clause", {"said": ["a", "-b"]}),
    (lambda w: hasten.Requirements(["a", "b"]), "one_of", {"labels": ["a", "b"]}),
    (lambda w: hasten.Requirements(["a", "b"]), "parity", {"labels": ["a", "b"], "odd": True}),
    (lambda w: hasten.Requirements(["a", "b"]), "nearest", {"scores": [[1.0, -2.0]]}),
    (lambda w: hasten.read, "", {"path": Of(lambda w: (w.program(), "good.lp")[1]), "like": None, "max_bytes": 1000}),
    (lambda w: hasten.read_all, "", {"paths": Of(lambda w: (w.program(), ["good.lp"])[1]), "max_bytes": 1000}),
    (lambda w: w.program(), "problem", {"objective": [1.0, 2.0], "order": None}),
    (lambda w: w.program(), "problem", {"objective": {"x": 1.0}}),
    (lambda w: w.program(), "batch", {"objectives": [[1.0, 2.0]], "order": ["y", "x"]}),
    (lambda w: w.program(), "solve", {"model": None, "objective": [1.0, 2.0], **MPS_SOLVED}),
    (lambda w: w.program(), "solve", {"objective": [1.0, 2.0], "gap": 0.0, "start": [0.0, 1.0]}),
    (lambda w: w.program(), "solve_fast", {"time_limit": None, "gap": 0.0, "start": [0.0, 1.0]}),
    (lambda w: w.program(), "solve_all", {"objectives": [[1.0, 2.0]], **MPS_SOLVED, "progress": None}),
    (lambda w: w.program(), "values", {"answers": Of(lambda w: Certifier()(w.program().problem()))}),
    (
        lambda w: w.program(),
        "answer",
        {"solution": Of(lambda w: Certifier()(w.program().problem())), "objective": None},
    ),
    (lambda w: hasten.adopt, "", NO_ARRAYS),
    (lambda w: hasten.adopt_all, "", {"models": []}),
    (lambda w: hasten.make_solver, "", {"solver": "brute"}),
    (lambda w: lambda solver: hasten.make_solver(solver).solve(w.problem()), "", {"solver": "brute"}),
]
INTERNAL = {
    *("after_looking", "settle", "prepared", "beam", "new_learner", "reduced", "with_weights", "pass_over"),
    *(
        "begin",
        "ask",
        "end",
        "learn",
        "of_tensors",
        "learn_from_tensors",
        "for_shard",
        "renew",
        "get_params",
        "set_params",
        "restate",
    ),
}


CALLBACKS = {("progress", "class"), ("solver", "class"), ("solver", "function")}  # their own errors pass


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def numbered(call: Call, n: int) -> str:
    return f"{n} {call[1] or 'new'}"


@pytest.mark.parametrize("call", [pytest.param(call, id=numbered(call, n)) for n, call in enumerate(CALLS)])
def test_the_good_arguments_are_good(call: Call) -> None:
    perform(call, Answering())


@pytest.mark.parametrize(
    ("call", "argument"),
    [pytest.param(call, each, id=f"{numbered(call, n)}({each})") for n, call in enumerate(CALLS) for each in call[2]],
)
@pytest.mark.filterwarnings("ignore")
def test_junk_is_refused_by_an_error_of_ours(call: Call, argument: str) -> None:
    wrong = []
    for name, junk in JUNK.items():
        if (argument, name) in CALLBACKS:
            continue
        try:
            perform(call, Answering(), **{argument: junk})
        except HastenError as error:
            if not str(error) or any(ord(letter) < 32 and letter != "\n" for letter in str(error)):
                wrong.append(f"{name}: unprintable: {str(error)!r}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert wrong == []


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
def test_junk_is_not_adopted(junk: object) -> None:
    with pytest.raises(HastenError):
        hasten.adopt(junk)


def test_everything_public_is_in_one_of_the_lists() -> None:
    listed = {method for _, method, _ in CALLS} | INTERNAL
    for name in hasten.__all__:
        kind = getattr(hasten, name)
        if not inspect.isclass(kind) or kind in CLASSES or issubclass(kind, Exception | str) or kind is hasten.Solver:
            continue
        for method, function in inspect.getmembers(kind, callable):
            is_ours = not method.startswith("_") and not inspect.isclass(function)
            if is_ours and inspect.signature(function).parameters.keys() - {"self"}:
                assert method in listed, f"{name}.{method}"
