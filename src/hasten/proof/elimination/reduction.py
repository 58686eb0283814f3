"""A reduction: the plan of an elimination, the graph of what it leaves, and what is asked of both."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hasten.kernels.layout import Graph
from hasten.proof.elimination.kernels import Plan
from hasten.support.arrays import IntArray, sizes_of

MANY_RULES = 4  # there are many if there is one for every so many variables


@dataclass(frozen=True, eq=False)
class Reduction:
    """A plan, and the graph of what it leaves."""

    plan: Plan
    graph: Graph

    def __reduce__(self) -> tuple[type[Reduction], tuple[Plan, Graph]]:
        return Reduction, (self.plan, self.graph)  # a copy lies elsewhere

    @cached_property
    def complete(self) -> bool:
        """Whether it leaves nothing."""
        return not self.graph.order.size

    @cached_property
    def leaves_rules(self) -> bool:
        """Whether it leaves rules alone, and many for the variables."""
        graph = self.graph
        n_rules = graph.row_low.size
        return bool(n_rules and not graph.table_at.size and MANY_RULES * n_rules >= graph.order.size)

    @cached_property
    def leaves_triples(self) -> bool:
        """Whether it leaves tables, all of three variables or more."""
        n_variables = sizes_of(self.graph.scope_first)[self.graph.table_at >= 0]
        return bool(n_variables.size and n_variables.min() > 2)

    @cached_property
    def n_labels(self) -> int:
        """How many labels are left."""
        return int(self.graph.first[-1])

    @cached_property
    def addresses(self) -> IntArray:
        """(1, 2) where both lie, for kernels."""
        return np.array([[self.plan.address, self.graph.address]])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return self.plan.buffer.nbytes + self.graph.buffer.nbytes

    @cached_property
    def n_sums(self) -> int:
        """How many sums the plan takes."""
        plan = self.plan
        return int(plan.sum_first[plan.entry_at[plan.form] + np.diff(plan.out_first)].sum())

    @cached_property
    def size(self) -> int:
        """How many labels, listed tuples and cells of rows are left: what a sweep goes through."""
        graph = self.graph
        tuples = sizes_of(graph.list_first)[graph.listing[graph.table_at >= 0]]
        return len(graph.cell_first) + int(tuples.sum()) + len(graph.cell_row)
