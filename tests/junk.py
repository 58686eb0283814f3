"""Junk, and calls to throw it at: each with good arguments, of which one at a time is replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hasten import Batch, Certifier, Family, Problem, Rule, Schema, Solution, Solutions, Structure
from hasten.model.kinds import FactorKind, VariableKind

CLASSES = [Schema, VariableKind, FactorKind, Structure, Rule, Family, Problem, Batch, Solution, Solutions]

JUNK: dict[str, Any] = {
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "10**30": 10**30,
    "10**5000": 10**5000,
    "1.5": 1.5,
    "nan": float("nan"),
    "-inf": -np.inf,
    "inf": np.inf,
    "1e308": 1e308,
    "complex": 1j,
    "text": "x",
    "no text": "",
    "bytes": b"x",
    "half a character": "\ud800",
    "control": "\x1b[31m\x00",
    "list": [],
    "nested": [[1], [2, 3]],
    "strings": ["0"],
    "fractions": [0.7, 1.9],
    "huge": [10**30],
    "Nones": [None, None],
    "tuple": (1, 2),
    "dict": {"a": 1},
    "keys": {0: np.zeros(3), None: 2},
    "set": {1, 2},
    "object": object(),
    "class": int,
    "function": lambda *args: "junk",
    "failing array": np.array(["a", "b"]),
    "matrix": np.zeros((2, 2)),
    "cube": np.zeros((2, 2, 2)),
    "scalar array": np.array(3),
    "bools": np.ones(2, dtype=bool),
    "complexes": np.ones(4, dtype=complex),
    "objects": np.array([object(), "1"], dtype=object),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "masked": np.ma.masked_array([1.0, 2.0, 3.0, 4.0], [0, 1, 0, 0]),
    "masked whole": np.ma.masked_array([0, 1], [0, 1]),
    "unsigned": np.array([2**64 - 1], dtype=np.uint64),
    "generator": (n for n in range(3)),
    "slice": slice("a", None, 0),
}


class World:
    """A schema, a structure, a problem, a batch and answers; all but the first two closed."""

    def __init__(self) -> None:
        self.schema = Schema()
        self.kind = self.schema.variable("kind", ["a", "b"])
        self.pair = self.schema.factor("pair", left=self.kind, right=self.kind).cost(1.0, left="a", right="b")

    def opened(self) -> Structure:
        shape = self.schema.structure()
        shape.add(self.kind)
        shape.add(self.kind)
        return shape

    def structure(self) -> Structure:
        shape = self.opened()
        shape.connect(self.pair, left=0, right=1)
        shape.rule("rule", [(0, "a"), (1, "a")], at_most=1)
        shape.rule("soft", [(0, "b"), (1, "b")], at_most=1, price=2.0)
        return shape

    def problem(self) -> Problem:
        return self.structure().problem(np.arange(4.0))

    def batch(self) -> Batch:
        return self.structure().batch(np.arange(8.0).reshape(2, 4))

    def solutions(self) -> Solutions:
        return Certifier()(self.batch())


class Of(NamedTuple):
    """An argument that is part of a world."""

    made: Callable[[World], Any]


Call = tuple[Callable[[World], Any], str, dict[str, Any]]  # an object, its method, and good arguments


def perform(call: Call, world: World, **changes: Any) -> Any:
    """Calls a method with good arguments, some of them changed."""
    made, method, good = call
    target = made(world)
    arguments = {name: value.made(world) if isinstance(value, Of) else value for name, value in good.items()} | changes
    positional = [arguments.pop(name) for name in ("value", "predicate") if name in arguments]
    return (getattr(target, method) if method else target)(*positional, **arguments)
