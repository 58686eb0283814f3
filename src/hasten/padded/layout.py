"""Layouts: which structure each example of a padded batch has, and where its variables are in the padded arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.kernels.layout import BatchArrays
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.model.templates import Slots
from hasten.padded.fields import Field, check_shape
from hasten.padded.kernels import Cells, locate
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, ranges
from hasten.support.checks import brief
from hasten.support.words import count

Shape = Callable[..., Structure]
ALL = "scores"  # what one matrix with all scores of a structure is called


class CellPlan(NamedTuple):
    """What structures say of the cells of one field; structure `s` has `size[s]` from `first[s]` on."""

    first: IntArray
    size: IntArray
    coordinate: IntArray  # (cells, axes)
    label: IntArray  # where the labels of its variable start
    width: IntArray  # how many it has
    variable: IntArray


@dataclass(frozen=True, eq=False)
class Shapes:
    """The structures of a layout, with slots for the tables that its batches bring, as arrays by their number."""

    structures: tuple[Structure, ...]
    kinds: tuple[str, ...]  # of the factors whose tables are brought
    n_costs: IntArray = field(init=False)
    n_values: IntArray = field(init=False)
    address: IntArray = field(init=False)  # of their graphs
    prices: list[FloatArray] = field(init=False)  # of soft rules, behind the costs
    n_prices: IntArray = field(init=False)
    block: IntArray = field(init=False)  # which block of tables each has
    blocks: list[tuple[FloatArray, dict[str, int]]] = field(init=False)  # tables, and where the brought ones start
    block_at: IntArray = field(init=False)

    def __post_init__(self) -> None:
        graphs, soft = [each.graph for each in self.structures], [each.compiled.indicators for each in self.structures]
        prices = [np.zeros(0) if each is None else each.cost for each in soft]
        known: dict[bytes, int] = {}
        blocks: list[tuple[FloatArray, dict[str, int]]] = []
        numbers = []
        for structure in self.structures:
            factors, starts = structure.schema.factors, structure._table_starts
            brought = {name: starts[factors[name].index] for name in self.kinds if factors[name].index in starts}
            key = structure.graph.table.tobytes() + repr(brought).encode()
            if key not in known:
                known[key] = len(blocks)
                blocks.append((structure.graph.table, brought))
            numbers.append(known[key])
        found: dict[str, Any] = {
            "n_costs": ints(graph.first[-1] for graph in graphs),
            "n_values": ints(graph.order.size for graph in graphs),
            "address": ints(graph.address for graph in graphs),
            "prices": prices,
            "n_prices": ints(map(len, prices)),
            "block": ints(numbers),
            "blocks": blocks,
            "block_at": offsets(len(table) for table, _ in blocks),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)

    def table(self, tables: Mapping[str, FloatArray]) -> FloatArray:
        """Returns all tables, with the given costs added to those of the schema."""
        parts = []
        for block, brought in self.blocks:
            part = block.copy() if brought else block
            for name, at in brought.items():
                kind = self.structures[0].schema.factors[name]
                own = 0.0 if kind.table is None else kind.table.ravel()
                part[at : at + kind.size] = own + tables[name].ravel()
            parts.append(part)
        return parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0), *parts])

    def brought(self, table: FloatArray) -> dict[str, FloatArray]:
        """Returns the sums of the entries of all tables that were brought, by kind."""
        found = {}
        for name in self.kinds:
            kind = self.structures[0].schema.factors[name]
            total = found[name] = np.zeros(kind.shape)
            for (_, brought), at in zip(self.blocks, self.block_at.tolist(), strict=False):
                if name in brought:
                    start = at + brought[name]
                    total += table[start : start + kind.size].reshape(kind.shape)
        return found


class Placed(NamedTuple):
    """The examples of one padded batch: their structures, and where their variables are."""

    shapes: Shapes
    number: IntArray  # (examples,) of each one's structure
    cells: list[Cells]  # of each field
    cost_at: IntArray  # (examples + 1,)
    variable_at: IntArray  # (examples + 1,)
    price: IntArray  # where the prices of soft rules stand in the costs
    flat: bool  # whether there is one array, with all scores of each example in a row

    @property
    def label_cells(self) -> list[Cells]:
        """The cells of arrays that hold a label where the scores of a variable are."""
        return [each._replace(row=np.arange(len(each.row))) for each in self.cells] if self.flat else self.cells

    def batch(self, cost: FloatArray, table: FloatArray, n: int = 1) -> Batch:
        """Returns the problems with `n` rows of costs, one after the other."""
        shapes, number, cost_at, variable_at = self.shapes, self.number, self.cost_at, self.variable_at
        if n != 1:
            number = np.tile(number, n)
            cost_at, variable_at = offsets(shapes.n_costs[number]), offsets(shapes.n_values[number])
        table_at = shapes.block_at[shapes.block[number]]
        batch = Batch(shapes.structures, number, cost, cost_at, table, table_at)
        place = np.empty((len(number) + 1, 4), dtype=np.int64)
        place[:-1, 0], place[:-1, 2] = shapes.address[number], table_at
        place[:, 1], place[:, 3], place[-1, [0, 2]] = cost_at, variable_at, 0
        batch.__dict__.update(
            arrays=BatchArrays(place, cost, table), n_variables=shapes.n_values[number], variable_at=variable_at
        )
        return batch


class Layout:
    """The fields of a schema, and the structures of examples, cached by their sizes; or the one structure of all.

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
        if isinstance(given, Structure):
            schema, one = given.schema, given
            if shape is not None:
                raise SchemaError("One structure has one shape. Give the schema where examples differ in theirs.")
            shape = lambda *_: one  # noqa: E731
            counts = {kind.name: one.kinds.count(kind) for kind in schema.variables.values()}
            fields = {name: str(n) for name, n in counts.items() if n} if fields is None else fields
        elif not isinstance(given, Schema):
            raise SchemaError(f"Expected a schema or a structure, got {brief(given)}.")
        else:
            schema = given
        if not isinstance(fields, Mapping) or not fields:
            raise SchemaError("Say which axes the scores of each kind have, such as fields={'tag': 'n'}.")
        self.schema, self.shape = schema, shape
        self.fields = {name: Field.of(schema, name, pattern) for name, pattern in fields.items()}
        axes = (axis for each in self.fields.values() for axis in each.axes)
        self.sizes = tuple(dict.fromkeys(axis for axis in axes if isinstance(axis, str)))
        if isinstance(given, Structure) and self.sizes:
            raise SchemaError(
                f"One structure has no sizes ({', '.join(self.sizes)}): write numbers, or give its schema."
            )
        self._structures: list[Structure] = []
        self._coordinates: list[list[IntArray]] = []  # of each structure and field; none where a mask says
        self._by_size: dict[tuple[int, ...], int] = {}
        self._by_shape: dict[int, int] = {}
        self._shapes: dict[tuple[str, ...], Shapes] = {}
        self._cells: list[CellPlan] = []
        if isinstance(given, Structure):
            self._of_sizes(())

    @property
    def flat(self) -> bool:
        """Whether a matrix with all scores of each example has one meaning: there is one structure."""
        return not self.sizes and self.shape is not None

    @property
    def n_variables(self) -> int:
        """How many variables the one structure of all examples has."""
        return self._structures[0].n_variables

    @property
    def n_labels(self) -> int:
        """How many labels the one structure of all examples has."""
        return self._structures[0].n_labels

    @property
    def first(self) -> IntArray:
        """Where the labels of each variable of the one structure start."""
        return self._structures[0].graph.first[: self.n_variables]

    def numbers(self, structures: Iterable[Structure]) -> IntArray:
        """Returns the numbers of given structures, which the layout keeps: give those of one shape once."""
        found = []
        for structure in structures:
            if not isinstance(structure, Structure) or structure.schema is not self.schema:
                raise ProblemError(f"Expected structures of the layer's schema, got {brief(structure)}.")
            number = self._by_shape.get(id(structure.compiled))
            found.append(self._add(structure, None) if number is None else number)
        return ints(found)

    def shapes(self, kinds: tuple[str, ...]) -> Shapes:
        """Returns the structures with slots for the tables of some kinds of factors."""
        found = self._shapes.get(kinds)
        if found is None or len(found.structures) < len(self._structures):
            slots = Slots(kinds=frozenset(self.schema.factor_kind(name).index for name in kinds))
            structures = tuple(each._with_slots(slots) for each in self._structures)
            found = self._shapes[kinds] = Shapes(structures, kinds)
        return found

    def place(
        self,
        shapes: Sequence[Sequence[int]],
        sizes: Mapping[str, Any],
        masks: Mapping[str, Any],
        number: IntArray | None,
        kinds: tuple[str, ...] = (),
        flat: bool = False,
    ) -> Placed:
        """Returns where variables are in arrays of scores of some shapes, one for each field, or one of all (`flat`).

        Sizes are given by name, as lengths or as masks of entries that count; masks of single cells by field. `number`
        says which structure each example has, unless its sizes do.
        """
        n = int(shapes[0][0]) if len(shapes[0]) else 0
        if flat:
            return self._placed(np.zeros(n, dtype=np.int64), [self._all_cells(shapes[0])], kinds, flat)
        dims: dict[str, int] = {}
        for each, shape in zip(self.fields.values(), shapes, strict=True):
            check_shape(each, "scores", shape, n, len(each.kind))
            for axis, dim in zip(each.axes, shape[1:], strict=False):
                if isinstance(axis, str):
                    dims[axis] = min(dims.get(axis, dim), dim)
        by_structure = number is not None
        lengths = {name: self._lengths(name, sizes.get(name), dims[name], n, by_structure) for name in self.sizes}
        if number is None:
            number = self._number_of(lengths, n)
        elif number.shape != (n,):
            raise ProblemError(f"Got {count(len(number), 'structure')} for {count(n, 'example')}. Give one for each.")
        plans = self._cell_plans()
        for each, plan in zip(self.fields.values(), plans, strict=True):
            if by_structure and len(each.axes) == 1 and each.axes[0] in lengths and lengths[each.axes[0]] is None:
                lengths[str(each.axes[0])] = plan.size[number]
        cells = []
        for (name, each), plan, shape in zip(self.fields.items(), plans, shapes, strict=True):
            axes = [(axis, sizes.get(axis) if isinstance(axis, str) else None) for axis in each.axes]
            masked = any(given is not None and np.ndim(given) == 2 for _, given in axes)
            if name in masks:
                rows = _rows(each, np.asarray(masks[name], dtype=bool), shape)
            elif masked or by_structure:
                parts = [
                    _axis_mask(name, axis, given, lengths, n, dim)
                    for (axis, given), dim in zip(axes, shape[1:], strict=False)
                ]
                rows = _rows(each, each.among(parts), shape)
            else:
                rows = None
            cells.append(self._cells_of(name, plan, number, shape, rows))
        return self._placed(number, cells, kinds)

    def _placed(self, number: IntArray, cells: list[Cells], kinds: tuple[str, ...], flat: bool = False) -> Placed:
        known = self.shapes(kinds)
        cost_at, variable_at = offsets(known.n_costs[number]), offsets(known.n_values[number])
        n_prices = known.n_prices[number]
        price = ranges(cost_at[1:] - n_prices, n_prices) if n_prices.any() else ints(())
        return Placed(known, number, cells, cost_at, variable_at, price, flat)

    def _lengths(self, name: str, given: Any, dim: int, n: int, by_structure: bool) -> IntArray | None:
        """Returns how large a size is in each example; None if the structures say it."""
        if given is None:
            return None if by_structure else np.full(n, dim)
        array = np.asarray(given)
        if array.ndim == 2 and array.shape == (n, dim):
            return np.asarray(array.astype(bool).sum(axis=1))
        if array.shape != (n,) or array.dtype.kind not in "iu":
            raise ProblemError(
                f"The lengths {name} have shape {array.shape} and type {array.dtype}. Give a whole number for each of "
                f"{count(n, 'example')}, or a mask of shape ({n}, {dim})."
            )
        wrong = np.flatnonzero((array < 0) | (array > dim))
        if wrong.size:
            raise ProblemError(
                f"Example {wrong[0]}: length {name} is {array[wrong[0]]}; the scores have room for {dim}."
            )
        return np.asarray(array, dtype=np.int64)

    def _number_of(self, lengths: Mapping[str, IntArray | None], n: int) -> IntArray:
        """Returns the number of the structure of each example, given its sizes."""
        if not lengths:
            return np.zeros(n, dtype=np.int64)
        rows = np.stack([each for each in lengths.values() if each is not None], axis=1)
        top = rows.max(axis=0, initial=0) + 1
        keys = np.ravel_multi_index(tuple(rows.T), tuple(top))
        unique, inverse = np.unique(keys, return_inverse=True)
        sizes = zip(*np.unravel_index(unique, tuple(top)), strict=True)
        return ints(self._of_sizes(tuple(int(size) for size in each)) for each in sizes)[inverse]

    def _of_sizes(self, sizes: tuple[int, ...]) -> int:
        """Returns the number of the structure of examples of some sizes; it is built once."""
        number = self._by_size.get(sizes)
        if number is None:
            if self.shape is None:
                raise ProblemError("Give shape=..., a function from sizes to structures, or a structure per example.")
            structure = self.shape(*sizes)
            if not isinstance(structure, Structure) or structure.schema is not self.schema:
                raise SchemaError(f"shape{sizes} returned {brief(structure)}, not a structure of the layer's schema.")
            number = self._by_size[sizes] = self._add(structure, dict(zip(self.sizes, sizes, strict=True)))
        return number

    def _add(self, structure: Structure, sizes: Mapping[str, int] | None) -> int:
        """Keeps a structure, whose variables are the cells of fields of some sizes, and returns its number."""
        kinds = [kind.name for kind in structure.kinds]
        for name in dict.fromkeys(kinds):
            if name not in self.fields:
                raise SchemaError(f"A structure has variables of kind {name}, but there is no field {name}.")
        coordinates = []
        for name, each in self.fields.items():
            n = kinds.count(name)
            found = np.zeros((n, len(each.axes)), dtype=np.int64) if sizes is None else each.cells(sizes)
            if len(found) != n:
                said = ", ".join(f"{size}={value}" for size, value in (sizes or {}).items())
                raise SchemaError(
                    f"The structure for {said or 'all'} has {count(n, 'variable')} of kind {name}, but the field has "
                    f"{count(len(found), 'cell')}. Add one variable for each cell, row by row."
                )
            coordinates.append(found)
        number = len(self._structures)
        self._structures.append(structure)
        self._coordinates.append(coordinates)
        self._cells = []
        if sizes is None:
            self._by_shape[id(structure.compiled)] = number
        return number

    def _cell_plans(self) -> list[CellPlan]:
        """Returns what the structures say of the cells of each field."""
        if not self._cells:
            for f, name in enumerate(self.fields):
                variables = [
                    ints(v for v, kind in enumerate(each.kinds) if kind.name == name) for each in self._structures
                ]
                coordinates = [each[f] for each in self._coordinates]
                first = [each.graph.first for each in self._structures]
                sizes = ints(map(len, variables))
                variable = np.concatenate([ints(()), *variables])
                label = np.concatenate([ints(()), *(at[v] for at, v in zip(first, variables, strict=True))])
                width = np.full(len(variable), len(self.fields[name].kind))
                axes = len(self.fields[name].axes)
                coordinate = np.concatenate([np.zeros((0, axes), dtype=np.int64), *coordinates])
                self._cells.append(CellPlan(offsets(sizes)[:-1], sizes, coordinate, label, width, variable))
        return self._cells

    def _cells_of(
        self, name: str, plan: CellPlan, number: IntArray, shape: Sequence[int], rows: tuple[IntArray, IntArray] | None
    ) -> Cells:
        """Returns the cells of a field in all examples, where its structures have them or where a mask does."""
        wanted = plan.size[number]
        row_at = offsets(wanted)
        about = plan.first[number], plan.label, plan.width, plan.variable
        if rows is None:
            cells = Cells(row_at, np.empty(row_at[-1], dtype=np.int64), *about)
            block = int(np.prod(shape[1:-1]))
            stride = ints(int(np.prod(shape[a + 1 : -1])) for a in range(1, len(shape) - 1))
            locate(cells, plan.coordinate, stride, block)
            return cells
        row, counts = rows
        wrong = np.flatnonzero(counts != wanted)
        if wrong.size:
            b = int(wrong[0])
            raise ProblemError(
                f"Example {b}: {count(int(counts[b]), 'cell')} of {name} count, but its structure has "
                f"{count(int(wanted[b]), 'variable')} of that kind. Give a mask with a cell for each."
            )
        return Cells(row_at, row, *about)

    def _all_cells(self, shape: Sequence[int]) -> Cells:
        """Returns the cells of one matrix with all scores of each example, in the structure's order."""
        structure = self._structures[0]
        if not self.flat or len(shape) != 2 or shape[1] != structure.n_labels:
            raise ProblemError(
                f"Got scores of shape {tuple(shape)}. One tensor of scores needs (examples, {structure.n_labels}), all "
                "labels of the structure in order; or give a dict of fields."
            )
        n, first = structure.n_variables, structure.graph.first[: structure.n_variables + 1]
        row_at = np.arange(shape[0] + 1) * n
        row = (np.arange(shape[0])[:, None] * shape[1] + first[:-1]).ravel()
        return Cells(row_at, row, np.zeros(shape[0], dtype=np.int64), first[:-1].copy(), np.diff(first), np.arange(n))


def _rows(each: Field, mask: Any, shape: Sequence[int]) -> tuple[IntArray, IntArray]:
    """Returns where the cells of a mask are, and how many each example has."""
    check_shape(each, "masks", mask.shape, int(shape[0]), None)
    if mask.shape != tuple(shape[:-1]):
        raise ProblemError(f"The mask of {each.kind.name} has shape {mask.shape}, its scores {tuple(shape)}.")
    flat = mask.reshape(len(mask), -1)
    return np.flatnonzero(flat), flat.sum(axis=1)


def _axis_mask(name: str, axis: str | int, given: Any, lengths: Mapping[str, IntArray | None], n: int, dim: int) -> Any:
    """Returns which entries of an axis count in each example."""
    if isinstance(axis, int):
        return np.ones((n, dim), dtype=bool)
    if given is not None and np.ndim(given) == 2:
        return np.asarray(given, dtype=bool)
    known = lengths[axis]
    if known is None:
        raise ProblemError(f"Structures alone do not say which cells of {name} count. Give lengths, or a mask of it.")
    return np.arange(dim) < known[:, None]
