"""Rows over pairs as one rule: where every two of some variables exclude each other, at most one may be chosen.

Pairs are weak. Each variable may be half of what it must not be, and no pair objects; a rule over all of them does, so
that a proof has little left to do. Candidates for semantic roles whose spans overlap are an example. Rules keep
variables from being eliminated, so only those that have other rules are looked at.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hasten.programs.labels import Cells, Space, keep_rows, scopes
from hasten.programs.tables import tabulated
from hasten.proof.elimination.cliques import MAX_PAIRS, Exclusions, Node
from hasten.proof.sweep.multipliers import MAX_COUNT
from hasten.support.arrays import BoolArray, FloatArray, ints, sizes_of


@dataclass(frozen=True, slots=True, eq=False)
class Clique:
    """Labels of different variables: at most one variable has one of its own."""

    nodes: list[Node]
    rows: list[int]  # that say so of pairs


def merge_pairs(space: Space, cells: Cells, tabled: BoolArray) -> tuple[Cells, Cells, int]:
    """Returns the other rows, those of the cliques that say what the rest said of pairs, and how many those replace.

    `tabled` are the rows that otherwise become tables.
    """
    found = find_cliques(space, cells, tabled)
    kept = np.ones(cells.n_rows, dtype=bool)
    kept[[row for clique in found for row in clique.rows]] = False
    return keep_rows(cells, kept), _clique_cells(space, cells, found), int((~kept).sum())


def find_cliques(space: Space, cells: Cells, tabled: BoolArray) -> list[Clique]:
    """Returns cliques that save more tables than they add rules; a row of several that make a table counts in part."""
    first, variable = scopes(space, cells)
    ruled = np.zeros(space.n_variables, dtype=bool)
    ruled[variable[~tabled.repeat(sizes_of(first))]] = True
    pairs = tabled & (sizes_of(first) == 2)
    left, right = variable[first[:-1][pairs]], variable[first[:-1][pairs] + 1]
    some = ruled[left] & ruled[right]
    pairs[pairs] = some
    if not 3 <= pairs.sum() <= MAX_PAIRS:
        return []
    scope = left[some] * space.n_variables + right[some]
    _, scope_of, count = np.unique(scope, return_inverse=True, return_counts=True)
    share = np.zeros(cells.n_rows)
    share[pairs] = 1.0 / count[scope_of.ravel()]
    return _worthwhile(_exclusions(space, cells, pairs), share)


def _exclusions(space: Space, cells: Cells, pairs: BoolArray) -> Exclusions:
    """Returns what rows over two variables forbid, where that is: labels of one with labels of the other."""
    found = Exclusions()
    for rows, scope, allowed in tabulated(space, cells, pairs):
        forbidden = ~allowed
        left, right = np.asarray(forbidden.any(axis=2)), np.asarray(forbidden.any(axis=1))
        alike = (forbidden == left[:, :, None] & right[:, None, :]).all(axis=(1, 2)) & left.any(axis=1)
        for n in np.flatnonzero(alike).tolist():
            v, u = space.first[scope[n]].tolist()
            found.add(_node(v, left[n]), _node(u, right[n]), int(rows[n]))
    return found


def _node(first: int, chosen: BoolArray) -> Node:
    """Returns the chosen labels of a variable, given its first one."""
    return tuple((first + np.flatnonzero(chosen)).tolist())


def _worthwhile(pairs: Exclusions, share: FloatArray) -> list[Clique]:
    """Returns cliques of three or more, each pair in the first that was found with it."""
    found: list[Clique] = []
    covered: set[tuple[int, int]] = set()
    names = list(pairs.nodes)
    for a, b in pairs.rows:
        if (a, b) in covered:
            continue
        clique = pairs.largest_around(a, b)
        new = [(c, d) for c in clique for d in clique if c < d and (c, d) not in covered]
        rows = [row for pair in new for row in pairs.rows[pair]]
        if len(clique) >= 3 and share[rows].sum() > 1.0:
            covered.update(new)
            found.append(Clique([names[node] for node in clique], rows))
    return found


def _clique_cells(space: Space, cells: Cells, cliques: list[Clique]) -> Cells:
    """Returns a row for each clique: it counts the variables that have one of their labels, or those that have not."""
    label: list[int] = []
    least, most, sizes = [], [], []
    for clique in cliques:
        chosen, k = sorted(at for node in clique.nodes for at in node), len(clique.nodes)
        variables = [int(space.variable[node[0]]) for node in clique.nodes]
        others = sorted({at for v in variables for at in range(space.first[v], space.first[v + 1])}.difference(chosen))
        inverted = len(others) < len(chosen) and k <= MAX_COUNT
        label += others if inverted else chosen
        sizes.append(len(others) if inverted else len(chosen))
        least.append(k - 1.0 if inverted else -np.inf)
        most.append(np.inf if inverted else 1.0)
    n = len(cliques)
    source = cells.source[[clique.rows[0] for clique in cliques]]
    row, whole = np.arange(n).repeat(ints(sizes)), np.ones(n, dtype=bool)
    return Cells(row, ints(label), np.ones(len(label)), np.array(least), np.array(most), whole, source)
