"""Forms refuse what does not have them, in words that say where it stands."""

import math

import numpy as np
import pytest

from hasten.support import forms
from hasten.support.forms import Array, Misfit, check_tensors


@pytest.mark.parametrize(
    ("form", "good", "bad", "words"),
    [
        (forms.whole(1, 9), [1, 9], [0, 10, 1.0, True, "1", None, 10**40], "a whole number from 1 to 9"),
        (forms.number(0), [0, 1.5, math.inf], [-1, math.nan, True, "1", 10**400], "a number from 0 to inf"),
        (forms.switch, [True, False], [0, 1, None, "true"], "true or false"),
        (forms.text, ["", "x"], [1, None, ["x"]], "a string"),
        (forms.scalar, [None, 1, "x", True], [[], {}], "a single value"),
        (forms.one_of("a", "b"), ["a"], ["c", 1, ["a"]], "'a' or 'b'"),
        (forms.or_none(forms.switch), [None, True], [1], "true or false"),
        (forms.many(forms.text, least=1), [["x"]], [[], "x", [1], {"x": 1}], ""),
        (forms.row(forms.text, forms.whole()), [["x", 1]], [["x"], ["x", 1, 1], [1, "x"], "x1"], ""),
        (forms.table_of(forms.text), [{}, {"a": "b"}], [[], {"a": 1}], ""),
        (forms.record({"a": forms.text}), [{"a": "x"}], [{}, {"a": 1}, {"a": "x", "b": 1}, [], None], ""),
    ],
)
def test_a_form_takes_what_has_it_and_nothing_else(form, good, bad, words):
    for value in good:
        form(value, "it")
    for value in bad:
        with pytest.raises(Misfit, match=rf"^it.*{words}"):
            form(value, "it")


def test_a_misfit_says_where_it_stands_however_large_it_is():
    form = forms.record({"people": forms.many(forms.record({"age": forms.whole(0, 150)}))})
    with pytest.raises(Misfit, match=r"it: 'people': number 1: 'age' must be a whole number from 0 to 150, not -3"):
        form({"people": [{"age": 3}, {"age": -3}]}, "it")
    deep = forms.read_json("[" * 900 + "]" * 900, "it")
    for large in (deep, 10**4000, "x" * 10**6, {"x": deep}):
        with pytest.raises(Misfit) as raised:
            forms.switch(large, "it")
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
