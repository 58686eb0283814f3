"""Networks for cutting: of structures whose variables have two labels at most, joined two by two.

A factor over two variables joins them, and so does a rule over two: it forbids some of their labels together. Rules
over more are left out: where the cheapest labelling without them keeps them, it is the cheapest.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import Record, viewer
from hasten.kernels.layout import Graph
from hasten.support.arrays import BoolArray, FloatArray, IntArray, offsets, ranges, sizes_of, stable_order


class Network(Record):
    """Variables of two labels at most, joined in P pairs, for one structure.

    The cost of a pair's labels is the sum of its *parts*, each a table of the problem or, where a rule joins the two,
    one of `own`. An arc leads from each variable of a pair to the other; the arcs that leave a variable stand together.
    """

    pair_low: IntArray  # (P,) one variable of each pair
    pair_high: IntArray  # (P,) the other, of a higher number
    pair_arc: IntArray  # (P,) the arc from the first to the second
    plain: IntArray  # (P,) 1 where it has one part, a table of the problem, and both variables have two labels
    part_first: IntArray  # (P + 1,) pair k has the parts part_first[k]:part_first[k + 1]
    part_at: IntArray  # (parts,) where the table starts
    part_low: IntArray  # (parts,) how far apart in it the labels of the first are
    part_high: IntArray  # (parts,) and those of the second
    part_own: IntArray  # (parts,) 1 where it is one of `own`
    single: IntArray  # (singles,) variables with a table over them alone
    single_at: IntArray  # (singles,) where it starts
    single_step: IntArray  # (singles,) how far apart the labels are
    single_own: IntArray  # (singles,)
    own: FloatArray  # tables of rules: 0 or inf
    arc_first: IntArray  # (V + 1,) variable v is left by the arcs arc_first[v]:arc_first[v + 1]
    head: IntArray  # (2 P,) where each arc leads
    sister: IntArray  # (2 P,) the arc that leads back
    arc_pair: IntArray  # (2 P,) whose arc it is
    ruled: IntArray  # (1,) 1 where there are rules over more than two variables, which it leaves out


network_at = viewer(Network)


class _Parts(NamedTuple):
    """Tables over two variables, or over one: each has a row of all of these."""

    variables: IntArray  # (n, 2) or (n, 1)
    at: IntArray  # (n,) where it starts
    steps: IntArray  # as `variables`: how far apart in it the labels of each are
    own: IntArray  # (n,) 1 where it is a rule's


def is_binary(graph: Graph) -> bool:
    """Whether variables have two labels at most, and tables two variables."""
    if sizes_of(graph.first).max(initial=0) > 2:
        return False
    return bool(sizes_of(graph.scope_first)[graph.table_at >= 0].max(initial=0) <= 2)


def make_network(graph: Graph) -> Network | None:
    """Returns the network of a graph, or None if a variable has more than two labels or a table more variables."""
    if not is_binary(graph):
        return None
    links = np.bincount(graph.link_row, minlength=len(graph.row_low))  # how many variables each rule is over
    ones, twos = _of_rules(graph, links, 1, 0), _of_rules(graph, links, 2, 2 * int((links == 1).sum()))
    own = np.concatenate([_allowed(graph, links, arity) for arity in (1, 2)])
    ruled = bool(((links > 2) | (links == 0)).any())
    pairs, singles = (
        _Parts(*map(np.concatenate, zip(_of_factors(graph, arity), rules, strict=True)))
        for arity, rules in ((2, twos), (1, ones))
    )
    return _pack(graph, pairs, singles, own, ruled)


def _of_factors(graph: Graph, arity: int) -> _Parts:
    """Returns the tables of factors over `arity` variables."""
    chosen = np.flatnonzero((sizes_of(graph.scope_first) == arity) & (graph.table_at >= 0))
    slots = graph.scope_first[chosen][:, None] + np.arange(arity)
    return _Parts(
        graph.scope[slots], graph.table_at[chosen], graph.stride[slots], np.zeros(len(chosen), dtype=np.int64)
    )


def _of_rules(graph: Graph, links: IntArray, arity: int, size: int) -> _Parts:
    """Returns rules over `arity` variables as tables, which start at `size`."""
    chosen = np.flatnonzero(links == arity)
    begin, end = graph.row_first[chosen], graph.row_first[chosen + 1] - 1
    variables = graph.row_variable[np.stack([begin, end], axis=1)[:, :arity]]  # the cells of a row are sorted by them
    at = size + np.arange(len(chosen)) * 2**arity
    return _Parts(variables, at, np.tile([2, 1][2 - arity :], (len(chosen), 1)), np.ones(len(chosen), dtype=np.int64))


def _allowed(graph: Graph, links: IntArray, arity: int) -> FloatArray:
    """Returns the tables of rules over `arity` variables: 0 where a rule holds, else inf, as `row_holds` decides."""
    chosen = np.flatnonzero(links == arity)
    weight = np.zeros((len(chosen), 2, 2))  # by rule, variable and label
    sizes = sizes_of(graph.row_first)[chosen]
    cells = ranges(graph.row_first[chosen], sizes)
    row, variable = np.arange(len(chosen)).repeat(sizes), graph.row_variable[cells]
    second = (variable != graph.row_variable[graph.row_first[chosen]][row]).astype(np.int64)
    weight[row, second, graph.row_label[cells] - graph.first[variable]] = graph.row_weight[cells]
    one, other = weight[:, 0, :, None], weight[:, 1, None, : 2 if arity == 2 else 1]
    total = one + other
    kept = total - one
    lost = (one - (total - kept)) + (other - kept)
    least, most = (each[chosen][:, None, None] for each in (graph.row_least, graph.row_most))
    holds = ((total - most) + lost <= 0.0) & ((total - least) + lost >= 0.0)
    return np.where(holds, 0.0, np.inf).ravel()


def _pack(graph: Graph, parts: _Parts, ones: _Parts, own: FloatArray, ruled: bool) -> Network:
    """Returns a network of tables over two variables and over one."""
    n_labels = sizes_of(graph.first)
    n_variables = len(n_labels)
    swap: BoolArray = parts.variables[:, 0] > parts.variables[:, 1]
    low, high = np.sort(parts.variables, axis=1).T
    steps = np.where(swap[:, None], parts.steps[:, ::-1], parts.steps)
    pairs, pair_of = np.unique(low * n_variables + high, return_inverse=True)
    order = np.argsort(pair_of, kind="stable")
    pair_low, pair_high = pairs // n_variables, pairs % n_variables
    n_pairs = len(pairs)
    n_parts = np.bincount(pair_of, minlength=n_pairs)
    plain = (n_parts == 1) & (n_labels[pair_low] == 2) & (n_labels[pair_high] == 2)
    plain[pair_of[parts.own == 1]] = False
    tail = np.concatenate([pair_low, pair_high])
    by_tail = stable_order(tail, n_variables)  # the arcs as they will be numbered
    number = np.empty(2 * n_pairs, dtype=np.int64)
    number[by_tail] = np.arange(2 * n_pairs)
    return Network.pack(
        pair_low=pair_low,
        pair_high=pair_high,
        pair_arc=number[:n_pairs],
        plain=plain,
        part_first=offsets(n_parts),
        part_at=parts.at[order],
        part_low=steps[order, 0],
        part_high=steps[order, 1],
        part_own=parts.own[order],
        single=ones.variables[:, 0],
        single_at=ones.at,
        single_step=ones.steps[:, 0],
        single_own=ones.own,
        own=own,
        arc_first=offsets(np.bincount(tail, minlength=n_variables)),
        head=np.concatenate([pair_high, pair_low])[by_tail],
        sister=np.concatenate([number[n_pairs:], number[:n_pairs]])[by_tail],
        arc_pair=np.tile(np.arange(n_pairs), 2)[by_tail],
        ruled=[int(ruled)],
    )
