"""Repair space for single kernels, as plain arrays: drivers cut theirs out of two buffers."""

from __future__ import annotations

import numpy as np

from hasten.kernels.layout import Graph
from hasten.proof.branch.dive import Tree
from hasten.proof.look import Repair
from hasten.proof.sweep.dual import Dual
from hasten.proof.sweep.multipliers import NOTED, SPACE
from hasten.support.clock import NEVER_STOP


def zeros(*shape: int) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


def n_messages(graph: Graph) -> int:
    return int(np.diff(graph.first)[graph.scope].sum())


def most_labels(graph: Graph) -> int:
    return int(np.diff(graph.first).max(initial=0))


def dual_for(graph: Graph) -> Dual:
    n_labels, n_rows = int(graph.first[-1]), len(graph.row_low)
    sizes = (n_messages(graph), n_rows, n_labels, n_messages(graph), n_rows, n_rows, SPACE + NOTED * len(graph.order))
    return Dual(*map(np.zeros, sizes), NEVER_STOP)


def tree_for(graph: Graph, levels: int | None = None) -> Tree:
    """Returns scratch space to branch as deep as a graph has variables, or down to so many levels."""
    levels = len(graph.order) + 1 if levels is None else levels
    n, n_labels, n_rows, sent, n_links = (
        len(graph.order), int(graph.first[-1]), len(graph.row_low), n_messages(graph), len(graph.link_row)
    )  # fmt: skip
    return Tree(
        vector=np.zeros(n_labels),
        row_low=np.zeros(n_rows),
        row_high=np.zeros(n_rows),
        base=np.zeros(n + 1),
        rest=np.zeros(n + 1),
        chosen=zeros(n),
        label=zeros(n),
        limit=np.zeros(n),
        free=zeros(n),
        least=np.zeros(len(graph.table_at)),
        labels=zeros(n),
        marks=zeros(n + 1, 2),
        place=zeros(sent),
        before=np.zeros(sent),
        row=zeros(n_links),
        low_before=np.zeros(n_links),
        high_before=np.zeros(n_links),
        message=np.zeros((levels, sent)),
        belief=np.zeros((levels, n_labels)),
        multiplier=np.zeros((levels, n_rows)),
        split=zeros(levels),
        tried=zeros(levels, most_labels(graph)),
    )


def scratch_for(graph: Graph) -> Repair:
    n_labels, n_factors = int(graph.first[-1]), max(1, len(graph.table_at))
    n_tuples = int(np.diff(graph.list_first).max(initial=0))
    floats = (np.zeros(n_labels), np.zeros(n_messages(graph)), np.zeros(n_tuples), np.zeros(n_labels))
    return Repair(*floats, *(zeros(n_factors) for _ in range(4)))
