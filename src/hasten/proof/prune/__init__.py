"""Prune: a step for large label sets, whose tables forbid nearly everything but one label that fits always.

Among 146 types and 7 relations a table has 149,000 entries; but "no relation" is allowed between any two types. A
variable with such a *default* label can give way at a price: the default's cost less that of its cheapest label, its
*gain*. So another variable's label that costs more than its cheapest one by all gains around it is in no better answer:
moving to the cheapest label, and broken factors to their defaults, costs less (dead-end elimination). Labels of giving
variables that no labels left can reach lower the gains, and more labels go.

Few labels are left of a well-trained model. They are searched depth first, each connected part by itself, by the cost
above the cheapest labels. Two giving variables may share a table of their own, as the relations of a pair do, one each
way: they are labelled together.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, part, split
from hasten.kernels.layout import Arrays, BatchArrays, graph_of, instance_of
from hasten.kernels.score import total_cost
from hasten.model.compiled import Compiled
from hasten.proof import outcome as status
from hasten.proof.outcome import OVERFLOW, Proofs, State, cheapest, rounding, take_bound, take_labels
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.proof.prune.kernels import MOST_NODES, Defaults, Left, defaults_at, prune
from hasten.support.arrays import BoolArray, IntArray, sizes_of
from hasten.support.clock import CURRENT, STOP_ALL

LARGE = 1_000  # entries of a table from which on this is for a structure
SPEED = 2e-8  # seconds that a label takes at most, nearly always


class Pruning:
    """The step: leave out labels, search the rest."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the defaults, where tables are large, only forbid, and each has a variable that gives way."""
        graph = plan.shape.graph
        if plan.max_join is not None or plan.max_nodes == 0 or graph.row_low.size or graph.soft_at.size:
            return None
        return plan.shape.made(find_defaults, MOST_NODES if plan.max_nodes is None else plan.max_nodes)

    def run(self, work: Work, problems: IntArray) -> None:
        """Prunes problems, and searches them."""
        work.run(prune_some, problems, work.addresses(self, problems), seconds=work.seconds(self, problems))


PRUNING = Pruning()


def find_defaults(compiled: Compiled, max_nodes: int) -> RecordPlan | None:
    """Returns which variables give way: of each table the one with the fewest labels that can; None if one has none."""
    graph = compiled.graph
    n_labels, scopes = sizes_of(graph.first), np.split(graph.scope, graph.scope_first[1:-1])
    tables = np.flatnonzero(graph.table_at >= 0).tolist()
    if max((int(n_labels[scopes[f]].prod()) for f in tables), default=0) < LARGE:
        return None
    of_variable: list[list[int]] = [[] for _ in n_labels]
    for f in tables:
        for v in scopes[f].tolist():
            of_variable[v].append(f)
    known: dict[tuple[int, ...], BoolArray] = {}

    def fitting(v: int) -> BoolArray:
        """Returns which labels of a variable its tables allow whatever the others are."""
        fits = np.ones(n_labels[v], dtype=bool)
        for f in of_variable[v]:
            at, slot, shape = int(graph.table_at[f]), scopes[f].tolist().index(v), n_labels[scopes[f]]
            key = at, slot, *shape.tolist()
            if key not in known:
                table = np.moveaxis(graph.table[at : at + shape.prod()].reshape(shape), slot, 0)
                known[key] = np.asarray(np.isfinite(table).reshape(n_labels[v], -1).all(axis=1))
            fits &= known[key]
        return fits

    gives = np.full(len(scopes), -1)
    outer, inner, mate = np.full((3, len(n_labels)), -1)
    fits = np.zeros(int(graph.first[-1]), dtype=np.int64)
    pairs = [f for f in tables if len(scopes[f]) == 2 and all(len(of_variable[v]) == 2 for v in scopes[f])]
    for f in tables:
        if f in pairs:
            continue
        for v in sorted(scopes[f].tolist(), key=lambda v: n_labels[v]):
            others = [g for g in of_variable[v] if g != f]
            if len(others) <= 1 and all(g in pairs for g in others) and fitting(v).any():
                gives[f], outer[v] = v, f
                fits[graph.first[v] : graph.first[v + 1]] = fitting(v)
                break
        else:
            return None
    for f in pairs:
        one, other = scopes[f].tolist()
        if outer[one] < 0 or outer[other] < 0 or set(scopes[outer[one]]) - {one} != set(scopes[outer[other]]) - {other}:
            return None
        inner[[one, other]], mate[one], mate[other] = f, other, one
    made = Defaults.pack(gives=gives, fits=fits, outer=outer, inner=inner, mate=mate, max_nodes=[max_nodes])
    return RecordPlan(made, SPEED * int(graph.first[-1]))


@driver
def prune_some(arrays: Arrays, problems: IntArray, state: State, plans: IntArray, stop_flag: IntArray) -> None:
    """Prunes and searches some problems; `plans` has the address of each one's defaults."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    n_factors, n_variables, n_labels = 0, 0, 0
    for x in range(problems.size):
        if x == 0 or plans[x] != plans[x - 1]:
            graph = graph_of(batch, problems[x])
            n_factors = max(n_factors, graph.table_at.size)
            n_variables = max(n_variables, graph.order.size)
            n_labels = max(n_labels, graph.first[graph.order.size])
    floats, ints = np.empty(n_factors + n_variables + 1), np.zeros(n_labels + 6 * n_variables, dtype=np.int64)
    gain, above = split(floats, (n_factors, n_variables + 1))
    label, n, labels, best, order, place, digit = split(
        ints, (n_labels, n_variables, n_variables, n_variables, n_variables, n_variables, n_variables)
    )
    left, stop = Left(gain, above, label, n, labels, best, order, place, digit), part(stop_flag, 0, stop_flag.size)
    for x in range(problems.size):
        p = problems[x]
        stop_flag[CURRENT] = x + 1
        if stop_flag[STOP_ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        instance = instance_of(batch, p)
        graph, cost, table = instance
        least, size = cheapest(graph, cost, table, labels)
        if not size < OVERFLOW or not least < np.inf:
            continue
        nodes = prune(instance, defaults_at(plans[x]), left, stop)
        if nodes < 0:
            continue
        found, step = total_cost(graph, cost, table, labels), status.BRANCH if nodes else status.LOOK
        proofs.values[status.SIZE, p], proofs.facts[status.STEP, p] = size, step
        proofs.facts[status.N_NODES, p] += nodes
        take_labels(batch, proofs, p, labels, found, step)
        take_bound(proofs, p, found - 4.0 * rounding(graph, size), size)
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))
