"""Forms refuse what does not have them, in words that say where it stands."""

import math
from typing import Annotated

import numpy as np
import pytest
from msgspec import Meta, Struct, defstruct

from hasten.support import forms
from hasten.support.forms import Array, Misfit, check_tensors, fitted


class Person(Struct, forbid_unknown_fields=True):
    age: Annotated[int, Meta(ge=0, le=150)]


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (forms.Count, [0, 2**60], [-1, 2**60 + 1, 1.0, True, "1", None, 10**40]),
        (forms.Size, [0, 1.5, math.inf], [-1, math.nan, True, "1", 10**400]),
        (forms.Share, [0, 0.5, 1], [-0.1, 1.1, math.nan]),
        (forms.Names, [["x"]], [[], "x", [1], {"x": 1}]),
        (Person, [{"age": 3}], [{}, {"age": 151}, {"age": 3, "name": "x"}, [], None]),
    ],
)
def test_a_form_takes_what_has_it_and_nothing_else(form, good, bad):
    for value in good:
        fitted(value, form, "it")
    for value in bad:
        with pytest.raises(Misfit, match=r"^it: "):
            fitted(value, form, "it")


def test_a_misfit_says_where_it_stands_however_large_it_is():
    with pytest.raises(Misfit, match=r"it: Expected `int` >= 0 - at `\$.people\[1\].age`"):
        fitted({"people": [{"age": 3}, {"age": -3}]}, defstruct("People", [("people", list[Person])]), "it")
    deep = forms.read_json("[" * 900 + "]" * 900, "it")
    for large in (deep, 10**4000, "x" * 10**6, {"x": deep}):
        with pytest.raises(Misfit) as raised:
            fitted(large, bool, "it")
        assert len(str(raised.value)) < 150


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[" * 100_000, "nested too deep"),
        ("9" * 5000, "is not JSON"),
        ("{", "is not JSON"),
        ("", "is not JSON"),
        (b"\xff", "is not JSON"),
    ],
)
def test_json_that_is_none_is_a_misfit(text, words):
    with pytest.raises(Misfit, match=words):
        forms.read_json(text, "it")


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({}, "lacks the tensor 'a'"),
        ({"a": np.zeros((2, 3)), "b": np.zeros(1)}, "a tensor 'b', which does not belong"),
        ({"a": np.zeros((2, 3), np.float32)}, "of type float64, not float32"),
        ({"a": np.zeros((2, 4))}, r"the shape \(any, 3\), not \(2, 4\)"),
        ({"a": np.zeros(6)}, r"the shape \(any, 3\), not \(6,\)"),
        ({"a": np.full((2, 3), np.nan)}, "finite numbers from 0 to 5"),
        ({"a": np.full((2, 3), np.inf)}, "finite numbers"),
        ({"a": np.full((2, 3), -1.0)}, "finite numbers"),
        ({"a": np.full((2, 3), 6.0)}, "finite numbers"),
    ],
)
def test_tensors_of_another_form_are_misfits(tensors, words):
    expected = {"a": Array("float64", (None, 3), 0, 5)}
    check_tensors({"a": np.full((7, 3), 5.0)}, expected)
    with pytest.raises(Misfit, match=words):
        check_tensors(tensors, expected)
