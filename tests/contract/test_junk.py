"""Wrong arguments of every public call are refused by an error of ours that names them, or are good after all.

Each call is listed with good arguments; each argument in turn is replaced by junk. Public methods that are not listed
are found by reflection.
"""

from __future__ import annotations

import inspect
from xml.etree import ElementTree

import numpy as np
import pytest
from junk import CLASSES, JUNK, Call, Of, World, perform

from hasten import (
    Batch,
    BeamSearch,
    Certifier,
    Family,
    Rule,
    Schema,
    Solutions,
)
from hasten.errors import HastenError, ProblemError, SchemaError

LIMITS = {"at_most": 1, "at_least": None, "exactly": None, "price": None, "per_unit": False}
SOFT = {"price": 1.0, "per_unit": False}
TERMS = [(0, "a"), (1, "b")]
PATTERN = {"predicate": None, "left": "a"}
ROWS = np.arange(8.0).reshape(2, 4)

CALLS: list[Call] = [
    (lambda w: Schema(), "variable", {"name": "n", "labels": ["a", "b"]}),
    (lambda w: w.schema, "factor", {"name": "n", "learned": True, "role": Of(lambda w: w.kind)}),
    (lambda w: w.schema, "clause", {"formula": "not left=a", "left": Of(lambda w: w.kind)}),
    (lambda w: w.schema, "rule", {"name": "n", **LIMITS, "kind": "a"}),
    (lambda w: w.schema, "rule", {"name": "n", **LIMITS, "kind": {"a": 2.0}}),
    (lambda w: w.schema, "structure", {"kinds": ["kind", "kind"], "factors": {"pair": [[0, 1]]}}),
    (lambda w: w.schema, "with_tables", {"tables": {"pair": np.zeros((2, 2))}}),
    (lambda w: w.schema, "factor_kind", {"key": "pair"}),
    (lambda w: w.kind, "label", {"name": "a"}),
    (lambda w: w.pair, "allow", PATTERN),
    (lambda w: w.pair, "forbid", PATTERN),
    (lambda w: w.pair, "cost", {"value": 1.0, **PATTERN}),
    (lambda w: w.pair, "imply", {"when": {"left": "a"}, "then": {"right": "b"}, "price": None}),
    (lambda w: w.pair, "set_table", {"table": np.zeros((2, 2))}),
    (lambda w: w.opened(), "add", {"kind": Of(lambda w: w.kind)}),
    (lambda w: w.opened(), "connect", {"kind": Of(lambda w: w.pair), "left": 0, "right": 1}),
    (lambda w: w.opened(), "search_order", {"variables": [1, 0]}),
    (lambda w: w.opened(), "rule", {"name": "n", "terms": TERMS, **LIMITS}),
    (lambda w: w.opened(), "exactly_one", {"name": "n", "terms": TERMS, **SOFT}),
    (lambda w: w.opened(), "at_most_one", {"name": "n", "terms": TERMS, **SOFT}),
    (lambda w: w.opened(), "all_different", {"name": "n", "variables": [0, 1], "but": "a", **SOFT}),
    (lambda w: w.opened(), "implies", {"name": "n", "when": TERMS, "then": (1, "a"), "price": None}),
    (
        lambda w: w.structure(),
        "problem",
        {"costs": np.arange(4.0), "maximize": False, "tables": {"pair": np.zeros((2, 2))}, "rules": (), "id": 0},
    ),
    (lambda w: w.structure(), "batch", {"costs": ROWS, "maximize": False}),
    (lambda w: w.structure(), "with_rules", {"rules": [Rule.of("r", TERMS, at_most=1)]}),
    (lambda w: w.structure(), "under", {"schema": Of(lambda w: w.schema)}),
    (lambda w: Rule, "of", {"name": "n", "terms": TERMS, **LIMITS}),
    (lambda w: Rule, "", {"name": "n", "terms": tuple(TERMS), "low": 0.0, "high": 1.0, **SOFT}),
    (lambda w: Family, "", {"kind": Of(lambda w: w.pair), "broken": lambda labels: np.zeros((0, 2)), "mend": None}),
    (lambda w: w.problem(), "with_tables", {"tables": {0: np.zeros((2, 2))}}),
    (lambda w: w.problem(), "alike", {"costs": ROWS}),
    (lambda w: w.problem(), "costs_of", {"variable": 0}),
    (lambda w: w.problem(), "total", {"labels": [0, 1]}),
    (lambda w: w.problem(), "augmented", {"labels": [0, 1], "weight": 1.0}),
    (lambda w: w.problem(), "check", {"labels": [0, 1]}),
    (lambda w: w.problem(), "labels", {"labels": [0, 1]}),
    (lambda w: w.problem(), "values", {"labels": [0, 1]}),
    (lambda w: w.problem(), "names", {"labels": [0, 1]}),
    (lambda w: w.problem(), "variable_names", {"names": ["x", "y"]}),
    (lambda w: Batch, "of", {"problems": []}),
    (lambda w: Batch, "stack", {"structure": Of(lambda w: w.structure()), "costs": ROWS, "maximize": False}),
    (
        lambda w: Batch,
        "build",
        {"structures": Of(lambda w: [w.structure()]), "structure": [0, 0], "costs": np.arange(8.0), "ids": [1, 2]},
    ),
    (lambda w: w.batch(), "augmented", {"labels": [0, 1, 1, 0], "weight": 1.0}),
    (lambda w: w.batch(), "select", {"problems": [0]}),
    (lambda w: w.batch(), "__getitem__", {"p": 0}),
    (lambda w: w.batch(), "with_tables", {"tables": {"pair": np.zeros((2, 2))}}),
    (lambda w: Solutions, "of", {"batch": Of(lambda w: w.batch()), "answers": Of(lambda w: list(w.solutions()))}),
    (
        lambda w: Solutions,
        "joined",
        {"batch": Of(lambda w: w.batch()), "parts": Of(lambda w: [w.solutions()[:1], w.solutions()[1:]])},
    ),
    (lambda w: Solutions, "scored", {"batch": Of(lambda w: w.batch()), "labels": np.zeros(4, dtype=int)}),
    (lambda w: w.solutions(), "__getitem__", {"p": 0}),
    (lambda w: w.solutions(), "select", {"chosen": [0]}),
    (lambda w: w.solutions(), "replace", {"chosen": [0, 1], "others": Of(lambda w: w.solutions())}),
    (lambda w: w.solutions(), "has", {"status": Of(lambda w: w.solutions()[0].status)}),
    (lambda w: w.solutions(), "by", {"source": Of(lambda w: w.solutions()[0].source)}),
]
INTERNAL = {"of_one", "score", "label_ranges", "places", "only", "members", "checked_scopes"}  # given arrays of our own
CALLBACKS = {("predicate", "class"), ("predicate", "function")}  # their own errors pass
INHERITED = {"index", "count"}  # from Sequence


ARGUMENTS = [
    pytest.param(call, argument, id=f"{n} {call[1] or 'new'}({argument})")
    for n, call in enumerate(CALLS)
    for argument in call[2]
]


@pytest.mark.parametrize("call", [pytest.param(call, id=f"{n} {call[1] or 'new'}") for n, call in enumerate(CALLS)])
def test_the_good_arguments_are_good(call: Call) -> None:
    perform(call, World())


@pytest.mark.parametrize(("call", "argument"), ARGUMENTS)
def test_junk_is_refused_by_an_error_of_ours(call: Call, argument: str) -> None:
    wrong = []
    for name, junk in JUNK.items():
        if (argument, name) in CALLBACKS:
            continue
        try:
            perform(call, World(), **{argument: junk})
        except HastenError as error:
            if not str(error) or any(ord(letter) < 32 and letter != "\n" for letter in str(error)):
                wrong.append(f"{name}: unprintable: {str(error)!r}")
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {error}")
    assert wrong == []


def test_every_public_method_is_in_the_list() -> None:
    listed = {method for _, method, _ in CALLS} | INTERNAL
    for kind in CLASSES:
        for name, method in inspect.getmembers(kind, inspect.isfunction) + inspect.getmembers(kind, inspect.ismethod):
            if not name.startswith("_") and inspect.signature(method).parameters.keys() - {"self"}:
                assert name in listed | INHERITED, f"{kind.__name__}.{name}"


def test_arguments_are_never_silently_repaired() -> None:
    world = World()
    shape = world.structure()
    for numbers in ([0.7, 1.9], ["0"], [True], np.ma.masked_array([0], [1])):
        with pytest.raises(ProblemError):
            Batch.build([shape], numbers, np.zeros(4))
    masked = np.ma.masked_array(np.zeros(4), [0, 1, 0, 0])
    for use in (shape.problem, lambda costs: shape.batch(costs[None]), lambda costs: Batch.build([shape], [0], costs)):
        with pytest.raises(ProblemError):
            use(masked)
        with pytest.raises(ProblemError):
            use(np.array(["1"] * 4, dtype=object))
    with pytest.raises(ProblemError, match="no longer finite"):
        shape.problem(np.full(4, -1e308)).augmented([0, 0], 1e308)
    with pytest.raises(ProblemError, match="no longer finite"):
        shape.batch(np.full((1, 4), -1e308)).augmented(np.array([0, 0]), 1e308)
    with pytest.raises(SchemaError, match="no factor kind 'pear'"):
        world.schema.with_tables({"pear": np.zeros((2, 2))})


def test_numpy_may_raise_instead_of_warning() -> None:
    with np.errstate(all="raise"):
        for call in CALLS:
            perform(call, World())


def test_names_with_control_characters_are_shown_without_them() -> None:
    schema = Schema()
    odd = schema.variable("\x1b[31mkind\x00", ["a\x07", "b\u202e\x85", "\x9b0m"])
    schema.factor("\x08pair", left=odd, right=odd).forbid(left="a\x07", right="a\x07")
    shape = schema.structure([odd, odd], {"\x08pair": [[0, 1]]})
    shape.rule("\x1brule", [(0, "a\x07"), (1, "a\x07")], at_most=1)
    problem = shape.problem(np.zeros(6), rules=[Rule.of("\x1bsoft", [(0, "b\u202e\x85")], at_most=0, price=1.0)])
    found = Certifier()(problem)
    traces = [Certifier().trace(problem), BeamSearch(width=2).trace(problem)]
    texts = [*map(str, traces), *map(repr, (schema, shape, problem, found)), str(problem.check([0, 0]))]
    pages = [each._repr_html_() for each in traces]
    pictures = [each._repr_svg_() for each in traces]
    for page in texts + pages + pictures:
        assert all(letter.isprintable() or letter == "\n" for letter in page), page
    for picture in pictures:
        ElementTree.fromstring(picture)
    with pytest.raises(SchemaError) as error:
        odd.label("\x1b")
    assert str(error.value).isprintable()
