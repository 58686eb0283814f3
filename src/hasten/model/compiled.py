"""The compiled form of a shape, shared by all structures of the shape, and what later rooms made of it.

It lives as long as one of these structures does and, up to `MAX_KEPT` bytes of all shapes together, until others have
been used since.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from hasten.kernels.layout import Graph
from hasten.model.soft import Indicators
from hasten.support.arrays import IntArray, offsets, sizes_of
from hasten.support.cache import Cache

MAX_KEPT = 64 * 2**20  # bytes of compiled shapes, used last, that are kept although no structure has them
Made = TypeVar("Made")


class Compiled:
    """The arrays that all structures of one shape share."""

    def __init__(self, graph: Graph, row_names: tuple[str, ...], indicators: Indicators | None = None) -> None:
        self.graph = graph
        self.row_names = row_names
        self.indicators = indicators  # of soft rules
        self.plans: dict[Hashable, Any] = {}  # what later rooms made of it: see `made`
        self.n_bytes = graph.buffer.nbytes

    def __reduce__(self) -> tuple[type[Compiled], tuple[Graph, tuple[str, ...], Indicators | None]]:
        return Compiled, (self.graph, self.row_names, self.indicators)  # plans hold addresses: they are made anew

    def keep(self) -> None:
        """Counts as using it: it is kept until enough others have been used since."""
        _KEPT.put(self, self, self.n_bytes)

    def made(self, make: Callable[..., Made], *settings: Hashable) -> Made:
        """Returns what a function makes of this shape with some settings; it is made once, and its `n_bytes` count."""
        key = (make, *settings)
        made: Made | None = self.plans.get(key)
        if made is None and key not in self.plans:
            made = self.plans.setdefault(key, make(self, *settings))
            self.n_bytes += getattr(made, "n_bytes", 0)
            self.keep()
        return made  # type: ignore[return-value]

    @cached_property
    def is_forest(self) -> bool:
        """Whether its tables join variables without ever going round in a circle."""
        graph = self.graph
        if not graph.table_at.size or int((sizes_of(graph.scope_first) - 1).sum()) >= len(graph.order):
            return False
        above = list(range(len(graph.order)))  # of each variable, one of its tree; itself at the top
        scopes, firsts = graph.scope.tolist(), graph.scope_first.tolist()
        for f, at in enumerate(graph.table_at.tolist()):
            tops = []
            for v in scopes[firsts[f] : firsts[f + 1]] if at >= 0 else ():
                while above[v] != v:
                    above[v] = v = above[above[v]]
                tops.append(v)
            if len(set(tops)) < len(tops):
                return False
            for v in tops:
                above[v] = tops[0]
        return True

    @cached_property
    def is_free(self) -> bool:
        """Whether no rule forbids anything: none counts a label, and none that counts nothing is broken by that."""
        least, most = self.graph.row_least, self.graph.row_most
        return not self.graph.row_label.size and bool((least <= 0.0).all() and (most >= 0.0).all())

    @cached_property
    def may_be_valid(self) -> bool:
        """Whether no rule that counts nothing, whatever the labels, is broken by that."""
        first, least, most = self.graph.row_first, self.graph.row_least, self.graph.row_most
        empty = first[1:] == first[:-1]
        return bool((least[empty] <= 0.0).all() and (most[empty] >= 0.0).all())

    @cached_property
    def place(self) -> IntArray:
        """(2, 4) where a single problem of this shape has what kernels read (`hasten.kernels.layout.BatchArrays`)."""
        graph = self.graph
        return np.array([graph.address, 0, 0, 0, 0, int(graph.first[-1]), 0, len(graph.order)]).reshape(2, 4)

    @cached_property
    def n_variables(self) -> IntArray:
        """(1,) how many variables a problem has."""
        return np.array([len(self.graph.order)])

    @cached_property
    def variable_at(self) -> IntArray:
        """(2,) where the variables of one problem start and end in a labelling."""
        return offsets(self.n_variables)

    @cached_property
    def cost_at(self) -> IntArray:
        """(2,) where the costs of one problem start and end."""
        return offsets(self.graph.first[-1:])


_KEPT = Cache[Compiled, Compiled](MAX_KEPT)
