"""The structures of a layout as arrays, and the examples of one padded batch as problems of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hasten.kernels.layout import COST, GRAPH, TABLE, VARIABLE, BatchArrays
from hasten.model.batch import Batch
from hasten.model.structure import Structure
from hasten.padded.kernels import Runs, lay_out
from hasten.support.arrays import FloatArray, IntArray, ints, offsets, ranges, stable_order

NONE = ints(())


class Shapes:
    """The structures of a layout, with slots for the tables of some kinds of factors that its batches bring."""

    def __init__(self, structures: Sequence[Structure], kinds: tuple[str, ...]) -> None:
        self.structures, self.kinds = tuple(structures), kinds
        graphs, soft = [each.graph for each in structures], [each.compiled.indicators for each in structures]
        self.prices = [np.zeros(0) if each is None else each.cost for each in soft]  # of soft rules, behind the costs
        self.n_prices = ints(map(len, self.prices))
        self.soft = bool(self.n_prices.any())
        blocks: dict[bytes, int] = {}  # by their bytes: tables that several structures share
        self._blocks: list[tuple[FloatArray, dict[str, int]]] = []  # and where tables that are brought start
        self._block = np.zeros(len(structures), dtype=np.int64)
        for s, structure in enumerate(structures):
            starts = structure._table_starts
            numbers = {name: structure.schema.factors[name].index for name in kinds}
            brought = {name: starts[k] for name, k in numbers.items() if k in starts}
            key = structure.graph.table.tobytes() + repr(brought).encode()
            self._block[s] = blocks.setdefault(key, len(blocks))
            if len(blocks) > len(self._blocks):
                self._blocks.append((structure.graph.table, brought))
        self._block_at = offsets(len(table) for table, _ in self._blocks)
        self.n_values = ints(graph.order.size for graph in graphs)
        self.about = np.zeros((len(structures), 4), dtype=np.int64)  # as places: of costs and variables, how many
        self.about[:, GRAPH] = [graph.address for graph in graphs]
        self.about[:, COST], self.about[:, VARIABLE] = [graph.first[-1] for graph in graphs], self.n_values
        self.about[:, TABLE] = self._block_at[self._block]
        self._table = np.concatenate([np.zeros(0), *(table for table, _ in self._blocks)])
        self.n_entries = len(self._table)

    def table(self, costs: Mapping[str, FloatArray]) -> FloatArray:
        """Returns all tables, with the given costs added to those of the schema."""
        table = self._table.copy() if costs else self._table
        for start, (_, brought) in zip(self._block_at.tolist(), self._blocks, strict=False):
            for name, at in brought.items():
                kind = self.structures[0].schema.factors[name]
                own = 0.0 if kind.table is None else kind.table.ravel()
                table[start + at : start + at + kind.size] = own + costs[name].ravel()
        return table

    def starts(self, s: int) -> dict[str, int]:
        """Returns where the tables that are brought start among those of a structure, by kind."""
        found: dict[str, int] = self._blocks[self._block[s]][1]
        return found

    def brought(self, table: FloatArray) -> dict[str, FloatArray]:
        """Returns the sums of the entries of all tables that were brought, by kind."""
        kinds = {name: self.structures[0].schema.factors[name] for name in self.kinds}
        found = {name: np.zeros(kind.size) for name, kind in kinds.items()}
        for start, (_, brought) in zip(self._block_at.tolist(), self._blocks, strict=False):
            for name, at in brought.items():
                found[name] += table[start + at : start + at + kinds[name].size]
        return {name: total.reshape(kinds[name].shape) for name, total in found.items()}


class Placed:
    """The examples of one padded batch: their structures, and where their variables are."""

    def __init__(
        self,
        shapes: Shapes,
        number: IntArray,
        room: Sequence[tuple[int, ...]],
        runs: list[Runs],
        flat: bool,
    ) -> None:
        self.shapes, self.number = shapes, number  # of each example's structure
        self.room = room  # the shape of each array of scores
        self.runs = runs  # of each array of scores
        self.flat = flat  # whether one array has all scores of each example in a row
        self._rows: dict[int, tuple[Any, ...]] = {}
        _, _, self.cost_at, self.variable_at, _ = self.rows(1)
        n = shapes.n_prices[number] if shapes.soft else NONE
        self.price = ranges(self.cost_at[1:] - n, n) if shapes.soft else NONE  # the costs that are those of soft rules

    def rows(self, n: int) -> tuple[Any, ...]:
        """Returns the structures, places and order of `n` rows of problems, one for each example, as a batch has them.

        They are kept for the next call.
        """
        if n not in self._rows:
            number, size = np.tile(self.number, n), n * len(self.number) + 1
            place, cost_at, variable_at = (
                np.zeros((size, 4), np.int64),
                np.empty(size, np.int64),
                np.empty(size, np.int64),
            )
            lay_out(self.number, self.shapes.about, place, cost_at, variable_at)
            self._rows[n] = number, place, cost_at, variable_at, stable_order(number, len(self.shapes.structures))
        return self._rows[n]

    def arrays(self, cost: FloatArray, table: FloatArray, n: int = 1) -> BatchArrays:
        """Returns what kernels read of the problems with `n` rows of costs, one after the other."""
        return BatchArrays(self.rows(n)[1], cost, table)

    def batch(self, cost: FloatArray, table: FloatArray, n: int = 1) -> Batch:
        """Returns the problems with `n` rows of costs, one after the other."""
        number, place, cost_at, variable_at, order = self.rows(n)
        batch = Batch(self.shapes.structures, number, cost, cost_at, table, place[:-1, TABLE])
        batch.__dict__.update(
            arrays=self.arrays(cost, table, n),
            variable_at=variable_at,
            n_variables=self.shapes.n_values[number],
            order=order,
        )
        return batch

    @property
    def n_bytes(self) -> int:
        """About how much memory it takes, with a few rows."""
        return 400 * len(self.number) + sum(each.at.nbytes + each.first.nbytes for each in self.runs)
