"""Layouts: which structure each example of a padded batch has, and where its variables are in the padded arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.model.compiled import Slots
from hasten.model.kinds import VariableKind
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.padded.kernels import Runs, runs_of
from hasten.padded.shapes import Placed, Shapes
from hasten.support.arrays import BoolArray, IntArray, ints, offsets, ranges, sizes_of, strides
from hasten.support.checks import brief
from hasten.support.threads import Cache, Lock
from hasten.support.words import count

Shape = Callable[..., Structure]
Given = Mapping[str, Any]  # arrays by name
Room = tuple[tuple[int, ...], ...]  # the shapes of padded arrays
WITHOUT = ("-diagonal", "-lower")
NONE = ints(())
MAX_BYTES = 2**24  # of places that are remembered, by the shapes and lengths of batches


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


class Layout:
    """The fields of a schema, and the structures of examples, kept by their sizes; or the one structure of all.

    given
        A schema, with `shape` and `fields`; or one structure, which all examples have. Its fields are by default the
        variables of each kind in a row.
    shape
        A function that returns the structure of an example, given its sizes, in the order in which fields name them.
    fields
        For each kind of variable, the axes of its scores (`Field.of`).
    """

    def __init__(
        self, given: Schema | Structure, shape: Shape | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        self.flat = isinstance(given, Structure)  # whether one row with all scores of an example has a meaning
        if isinstance(given, Structure):
            if shape is not None:
                raise SchemaError("One structure has one shape. Give the schema where examples differ in theirs.")
            counts = {name: given.kinds.count(kind) for name, kind in given.schema.variables.items()}
            fields = {name: str(n) for name, n in counts.items() if n} if fields is None else fields
        elif not isinstance(given, Schema):
            raise SchemaError(f"Expected a schema or a structure, got {brief(given)}.")
        if not isinstance(fields, Mapping) or not fields:
            raise SchemaError("Say which axes the scores of each kind have, such as fields={'tag': 'n'}.")
        self.schema, self.shape = given.schema if isinstance(given, Structure) else given, shape
        self.fields = {name: Field.of(self.schema, name, pattern) for name, pattern in fields.items()}
        axes = (axis for each in self.fields.values() for axis in each.axes)
        self.sizes = tuple(dict.fromkeys(axis for axis in axes if isinstance(axis, str)))
        if self.flat and self.sizes:
            raise SchemaError(
                f"One structure has no sizes ({', '.join(self.sizes)}): write numbers, or give its schema."
            )
        self._structures: list[Structure] = []
        self._cells: list[list[IntArray]] = []  # of each structure and field: variable, first label, coordinates
        self._numbers: dict[Any, int] = {}  # of structures, by their sizes or, if given, their shape
        self._shapes: dict[tuple[str, ...], Shapes] = {}
        self._runs: dict[Room, list[Runs]] = {}  # of all structures, for padded arrays of some shape
        self._placed = Cache[Any, Placed](MAX_BYTES)
        self._lock = Lock()  # of all of these
        if isinstance(given, Structure):
            self._numbers[()] = self._add(given, {})
        elif not self.sizes and shape is not None:
            self._of_sizes(())

    def __getstate__(self) -> dict[str, Any]:
        """Leaves out what knows where structures lie in this process."""
        return self.__dict__ | {"_shapes": {}, "_placed": Cache(MAX_BYTES)}

    @property
    def structure(self) -> Structure:
        """The one structure of all examples."""
        return self._structures[0]

    def in_order(self, given: Any) -> list[Any]:
        """Returns arrays that are given by field, in the order of the fields."""
        if not isinstance(given, Mapping) or {*given} != {*self.fields}:
            got = (", ".join(map(str, given)) or "nothing") if isinstance(given, Mapping) else brief(given)
            raise ProblemError(f"Give a dict with an array for each field: {', '.join(self.fields)}; got {got}.")
        return [given[name] for name in self.fields]

    def by_size(self, lengths: Any = None, mask: Any = None) -> dict[str, Any]:
        """Returns lengths and masks by size, or masks by field, given so, or those of the only size."""
        sizes = ", ".join(self.sizes) or "none"
        found: dict[str, Any] = {}  # as compilers read it
        for what, given in (("lengths", lengths), ("mask", mask)):
            if given is not None and not isinstance(given, Mapping):
                if len(self.sizes) != 1:
                    raise ProblemError(f"Give {what} by name: this layer has the sizes {sizes}.")
                given = {self.sizes[0]: given}
            for name, each in (given or {}).items():
                if name not in self.sizes and (what == "lengths" or name not in self.fields):
                    raise ProblemError(f"Got {what} of {name!r}; this layer has the sizes {sizes}.")
                if name in found:
                    raise ProblemError(f"Got lengths and a mask of {name}. Give one of them.")
                found[name] = each
        return found

    def numbers(self, structures: Iterable[Structure]) -> IntArray:
        """Returns the numbers of given structures, which the layout keeps: one of each shape."""
        found = []
        for structure in structures:
            if not isinstance(structure, Structure) or structure.schema is not self.schema:
                raise ProblemError(f"Expected structures of the layer's schema, got {brief(structure)}.")
            with self._lock:
                if structure.compiled not in self._numbers:
                    self._numbers[structure.compiled] = self._add(structure, None)
                found.append(self._numbers[structure.compiled])
        return ints(found)

    def shapes(self, kinds: tuple[str, ...]) -> Shapes:
        """Returns the structures with slots for the tables of some kinds of factors."""
        found = self._shapes.get(kinds)
        if found is None or len(found.structures) < len(self._structures):
            slots = Slots(kinds=frozenset(self.schema.factor_kind(name).index for name in kinds))
            found = self._shapes[kinds] = Shapes([each._with_slots(slots) for each in self._structures], kinds)
        return found

    def place(
        self,
        shapes: Sequence[Sequence[int]],
        given: Given,
        number: IntArray | None = None,
        kinds: tuple[str, ...] = (),
        flat: bool = False,
    ) -> Placed:
        """Returns where variables are in arrays of scores of some shapes, one for each field, or one of all (`flat`).

        `given` has, by size, lengths or masks of entries that count, and masks of single cells by field. `number` says
        which structure each example has, unless its sizes do.
        """
        room = tuple(map(tuple, shapes))
        told = [(name, each.dtype.char, each.shape, each.tobytes()) for name, each in given.items()]
        key = room, tuple(told), None if number is None else number.tobytes(), kinds, flat
        placed = self._placed.get(key)
        if placed is None:
            with self._lock:
                placed = self._place(room, given, number, kinds, flat)
            self._placed.put(key, placed, placed.n_bytes + sum(len(each[-1]) for each in told))
        return placed

    def _place(self, room: Room, given: Given, number: IntArray | None, kinds: tuple[str, ...], flat: bool) -> Placed:
        n = int(room[0][0])
        if flat:
            number = np.zeros(n, dtype=np.int64)
            return Placed(self.shapes(kinds), number, room, [self._flat_runs(number, room[0])], flat)
        dims = self._dims(room)
        lengths = {name: _lengths(name, given[name], n, dims[name]) for name in self.sizes if name in given}
        by_structure = number is not None
        if number is None:
            number = self._number_of(lengths, dims, n)
        elif number.shape != (n,) or (n and not 0 <= number.min() <= number.max() < len(self._structures)):
            raise ProblemError(f"Give the structure of each of {count(n, 'example')}; got {brief(number)}.")
        if by_structure or any(each.ndim > 1 for each in given.values()):
            runs = self._masked(number, room, given, lengths)
        else:
            runs = [each._replace(number=number) for each in self._of_all(room)]
        return Placed(self.shapes(kinds), number, room, runs, flat)

    def _dims(self, room: Room) -> dict[str, int]:
        """Returns how much room padded arrays have for each size; refuses shapes that do not fit."""
        dims = dict[str, int]()
        for field, shape in zip(self.fields.values(), room, strict=True):
            axes = room[0][0], *field.axes, len(field.kind)
            if len(shape) != len(axes) or any(
                a != dim for a, dim in zip(axes, shape, strict=True) if not isinstance(a, str)
            ):
                raise ProblemError(
                    f"The scores of {field.kind.name} have shape {shape}; they need ({', '.join(map(str, axes))}): "
                    "examples, the axes of the field, and labels."
                )
            for axis, dim in zip(field.axes, shape[1:], strict=False):
                if isinstance(axis, str):
                    dims[axis] = min(dim, dims.get(axis, dim))
        return dims

    def _number_of(self, lengths: Mapping[str, IntArray], dims: Mapping[str, int], n: int) -> IntArray:
        """Returns the number of the structure of each example, given the sizes that differ, and those of all."""
        sizes = np.array([np.broadcast_to(lengths.get(name, dims[name]), n) for name in self.sizes])
        if not n or not lengths:
            return np.full(n, self._of_sizes(tuple(sizes[:, 0].tolist()) if len(sizes) else ()) if n else 0)
        unique, inverse = np.unique(strides([dims[name] + 1 for name in self.sizes]) @ sizes, return_inverse=True)
        first = np.empty(len(unique), dtype=np.int64)
        first[inverse] = np.arange(n)  # an example of each
        return ints(self._of_sizes(tuple(each)) for each in sizes[:, first].T.tolist())[inverse]

    def _of_sizes(self, sizes: tuple[int, ...]) -> int:
        """Returns the number of the structure of examples of some sizes; it is built once."""
        number = self._numbers.get(sizes)
        if number is None:
            if self.shape is None:
                raise ProblemError("Give shape=..., a function from sizes to structures, or a structure per example.")
            structure = self.shape(*sizes)
            if not isinstance(structure, Structure) or structure.schema is not self.schema:
                raise SchemaError(f"shape{sizes} returned {brief(structure)}, not a structure of the layer's schema.")
            number = self._numbers[sizes] = self._add(structure, dict(zip(self.sizes, sizes, strict=True)))
        return number

    def _add(self, structure: Structure, sizes: Mapping[str, int] | None) -> int:
        """Keeps a structure, whose variables are the cells of fields of some sizes, and returns its number."""
        kinds = [kind.name for kind in structure.kinds]
        for name in dict.fromkeys(kinds):
            if name not in self.fields:
                raise SchemaError(f"A structure has variables of kind {name}, but there is no field {name}.")
        cells = []
        for name, field in self.fields.items():
            mine = ints(v for v, kind in enumerate(kinds) if kind == name)
            n = len(mine)
            found = np.zeros((n, len(field.axes)), dtype=np.int64) if sizes is None else field.cells(sizes)
            if len(found) != n:
                said = ", ".join(f"{size}={value}" for size, value in (sizes or {}).items()) or "all examples"
                raise SchemaError(
                    f"The structure for {said} has {count(n, 'variable')} of kind {name}, but the field has "
                    f"{count(len(found), 'cell')}. Add one variable for each cell, row by row."
                )
            cells.append(np.column_stack([mine, structure.graph.first[mine], found]))
        self._structures.append(structure)
        self._cells.append(cells)
        self._runs.clear()
        return len(self._structures) - 1

    def _of_all(self, room: Room) -> list[Runs]:
        """Returns the runs of each field, as structures say it, in arrays of some shape."""
        key, every = tuple(shape[1:-1] for shape in room), np.arange(len(self._structures))
        if key not in self._runs:
            cells = (np.concatenate([NONE, *(each[f][:, 2:] @ strides(axes) for each in self._cells)])
                     for f, axes in enumerate(key))  # fmt: skip
            self._runs[key] = [self._runs_of(f, every, each) for f, each in enumerate(cells)]
        return self._runs[key]

    def _runs_of(self, f: int, number: IntArray, cells: IntArray) -> Runs:
        """Returns the runs of one field in examples of some structures, given the cells of all of them."""
        sizes = ints(len(each[f]) for each in self._cells)
        variable, label = np.concatenate([NONE.reshape(0, 2), *(each[f][:, :2] for each in self._cells)]).T
        mine, owner = ranges(offsets(sizes)[number], sizes[number]), np.repeat(np.arange(len(number)), sizes[number])
        width = np.full(len(mine), len(list(self.fields.values())[f].kind))
        columns = np.stack([width * cells, cells, label[mine], variable[mine], width], axis=1)
        return runs_of(np.arange(len(number)), owner, len(number), columns)

    def _flat_runs(self, number: IntArray, shape: Sequence[int]) -> Runs:
        """Returns the runs of one matrix with all scores of each example."""
        n, first = self.structure.n_variables, self.structure.graph.first[: self.structure.n_variables + 1]
        if len(shape) != 2 or shape[1] != first[-1]:
            raise ProblemError(
                f"Got scores of shape {tuple(shape)}. One array of scores needs (examples, {first[-1]}), all labels of "
                "the structure in order; or give them by field."
            )
        v, starts = np.arange(n), first[:-1]
        return runs_of(number, np.zeros_like(v), 1, np.stack([starts, v, starts, v, sizes_of(first)], axis=1))

    def _masked(self, number: IntArray, room: Room, given: Given, lengths: Given) -> list[Runs]:
        """Returns the runs of each field where masks, or the lengths of given structures, say that they are."""
        found, known = [], dict(lengths)
        n_cells = [ints(len(each[f]) for each in self._cells)[number] for f in range(len(self.fields))]
        for wants, field in zip(n_cells, self.fields.values(), strict=True):
            if len(field.axes) == 1 and isinstance(field.axes[0], str):
                known.setdefault(field.axes[0], wants)
        for f, ((name, field), shape) in enumerate(zip(self.fields.items(), room, strict=True)):
            if name in given and name not in self.sizes:
                mask = np.asarray(given[name], dtype=bool)
            else:
                axes = zip(field.axes, shape[1:], strict=False)
                mask = field.among([_counting(name, axis, dim, len(number), given, known) for axis, dim in axes])
            if mask.shape != shape[:-1]:
                raise ProblemError(f"The mask of {name} has shape {mask.shape}, its scores {shape}.")
            mask = mask.reshape(len(mask), -1)
            has, wants = mask.sum(axis=1), n_cells[f]
            for b in np.flatnonzero(has != wants)[:1].tolist():
                raise ProblemError(
                    f"Example {b}: {count(int(has[b]), 'cell')} of {name} count, but its structure has "
                    f"{count(int(wants[b]), 'variable')} of that kind. Give a mask with a cell for each."
                )
            found.append(self._runs_of(f, number, mask.nonzero()[1]))
        return found


def _lengths(name: str, given: Any, n: int, dim: int) -> IntArray:
    """Returns how large a size is in each example, given lengths or a mask; refuses others."""
    if given.shape == (n, dim):
        return np.asarray(given.astype(bool).sum(axis=1))
    if given.shape != (n,) or given.dtype.kind not in "iu":
        raise ProblemError(
            f"The lengths or mask of {name} have shape {given.shape} and type {given.dtype}. Give a whole number for "
            f"each of {count(n, 'example')}, or a mask of shape ({n}, {dim})."
        )
    if n and not 0 <= given.min() <= given.max() <= dim:
        b = int(np.flatnonzero((given < 0) | (given > dim))[0])
        raise ProblemError(f"Example {b}: length {name} is {given[b]}; the scores have room for {dim}.")
    return np.asarray(given, dtype=np.int64)


def _counting(name: str, axis: str | int, dim: int, n: int, given: Given, lengths: Given) -> BoolArray:
    """Returns which entries of an axis count in each example."""
    if isinstance(axis, str) and axis in given and given[axis].ndim == 2:
        return np.asarray(given[axis], dtype=bool)
    if isinstance(axis, str) and axis not in lengths:
        raise ProblemError(f"Structures alone do not say which cells of {name} count. Give lengths, or a mask of it.")
    return np.asarray(np.arange(dim) < (lengths[axis][:, None] if isinstance(axis, str) else np.full((n, 1), dim)))
