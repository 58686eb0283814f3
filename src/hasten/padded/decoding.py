"""Decoding for those without PyTorch: the probabilities or scores of classifiers, in the shapes that people have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hasten.errors import ProblemError
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.padded.search import answerer
from hasten.support.arrays import FloatArray, floats
from hasten.support.checks import check_type


def decode(structure: Structure, probabilities: Any = None, *, scores: Any = None, solver: Any = None) -> Solutions:
    """Returns the best valid labelling of each input, given what classifiers say of each of its variables alone.

    probabilities
        Of labels: those of a labelling are multiplied, and the most likely valid one is the answer. 0 forbids. Shapes:
        (n, K, L) for n inputs of K variables with L labels; (n, K) for variables with two labels, of which it is the
        second one's; (n, all labels), in the order of the variables; or, as scikit-learn's `predict_proba` of several
        outputs, a list with an array (n, labels) for each variable.
    scores
        In place of probabilities: numbers that are added and maximised, such as log-probabilities, in the same shapes;
        (n, K) are those of the second label, while the first has 0. -inf forbids.
    solver
        What answers: a `Certifier` (the default), a `Speedup`, or a solver or its name.
    """
    check_type(structure, Structure, "What is decoded")
    if (probabilities is None) == (scores is None):
        raise ProblemError("Give either probabilities or scores.")
    likely = scores is None
    given = _rows(structure, probabilities if likely else scores, likely)
    if likely:
        wrong = ~((given >= 0.0) & (given <= 1.0))
        if wrong.any():
            p, at = (int(each[0]) for each in np.nonzero(wrong))
            raise ProblemError(
                f"Input {p}: {given[p, at]} is not a probability. Give numbers from 0 to 1, or scores=..."
            )
        with np.errstate(divide="ignore"):
            given = np.log(given)
    return answerer(structure.schema, solver)(structure.batch(given, maximize=True))


def _rows(structure: Structure, given: Any, likely: bool) -> FloatArray:
    """Returns what was given as a matrix with all labels of an input in a row."""
    widths, n_labels = [len(kind) for kind in structure.kinds], structure.n_labels
    try:
        if isinstance(given, Sequence) and not isinstance(given, str):
            parts = [floats(each) for each in given]
            if [each.shape[1:] for each in parts] != [(width,) for width in widths]:
                parts = [floats(given)]
        else:
            parts = [floats(given)]
        found = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
    except (TypeError, ValueError) as error:
        raise ProblemError(f"Probabilities and scores are arrays of numbers ({error}).") from None
    if found.ndim == 3 and found.shape[1:] == (len(widths), widths[0] if widths else 0) and len({*widths}) == 1:
        return found.reshape(len(found), n_labels)
    if found.ndim == 2 and found.shape[1] == n_labels:
        return found
    if found.ndim == 2 and found.shape[1] == len(widths) and {*widths} == {2}:
        return np.stack([1.0 - found if likely else np.zeros_like(found), found], axis=2).reshape(len(found), n_labels)
    raise ProblemError(
        f"Got an array of shape {found.shape} for a structure of {len(widths)} variables with {n_labels} labels. "
        "Give (inputs, variables, labels), (inputs, all labels), an array (inputs, labels) for each variable or, for "
        "variables with two labels, (inputs, variables)."
    )
