"""Fields: which cells of a padded array are the variables of a kind, and in which order."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import VariableKind
from hasten.model.schema import Schema
from hasten.support.arrays import BoolArray, IntArray
from hasten.support.checks import brief

WITHOUT = ("-diagonal", "-lower")


@dataclass(frozen=True, slots=True)
class Field:
    """The axes of one kind's scores, between the examples and the labels.

    Its cells, row by row, are the variables of the kind in the order in which a structure has them.
    """

    kind: VariableKind
    axes: tuple[str | int, ...]  # the size of each: a name, or a number
    without: tuple[str, ...]  # cells that are no variables

    @classmethod
    def of(cls, schema: Schema, name: str, pattern: str) -> Field:
        """Reads a pattern such as "n n -diagonal": a size for each axis, then which cells are left out."""
        if name not in schema.variables:
            kinds = ", ".join(schema.variables) or "none"
            raise SchemaError(f"There is no variable kind {brief(name)} for a field. This schema has {kinds}.")
        words = pattern.split() if isinstance(pattern, str) else []
        sizes = [word for word in words if not word.startswith("-")]
        without = tuple(word for word in words if word.startswith("-"))
        wrong = [word for word in sizes if not re.fullmatch(r"[A-Za-z_]\w*|\d+", word)]
        wrong += [word for word in without if word not in WITHOUT]
        if wrong or not sizes or (without and len(sizes) != 2):
            raise SchemaError(
                f"The field {name} is {brief(pattern)}. Give the size of each axis, a name or number, and of two axes "
                f"which cells are left out ({', '.join(WITHOUT)}): 'n', 'n m' or 'n n -diagonal'."
            )
        axes = tuple(int(word) if word.isdecimal() else word for word in sizes)
        return cls(schema.variables[name], axes, without)

    def among(self, masks: Sequence[BoolArray]) -> BoolArray:
        """Returns which cells are variables, (examples, *axes), given which entries of each axis count."""
        found = masks[0]
        for mask in masks[1:]:
            found = found[..., None] & mask.reshape(len(mask), *[1] * (found.ndim - 1), -1)
        for word in self.without:
            rank = [np.cumsum(mask, axis=1) for mask in masks]  # of each entry among those that count
            i, j = rank[0][:, :, None], rank[1][:, None, :]
            found = found & ((i != j) if word == "-diagonal" else (i <= j))
        return found

    def cells(self, sizes: Mapping[str, int]) -> IntArray:
        """Returns the cells that are variables, a row of numbers for each, in an example of some sizes."""
        shape = [axis if isinstance(axis, int) else sizes[axis] for axis in self.axes]
        return np.argwhere(self.among([np.ones((1, n), dtype=bool) for n in shape])[0])
