"""Learning what label tuples cost: Algorithm 1 with an exact search in place of the beam.

For each problem, with the black box's answer y, let ŷ be the cheapest labelling if each tuple, and each label by
itself, costs minus its weight, and if each label of y costs `margin` more than it does. Where ŷ is not y:
`w += step * (phi(y) - phi(ŷ))`, or less, if less puts y level with ŷ. Without a margin that is Algorithm 1 with an
unbounded beam; with one, y must win clearly, which carries over better to other problems. The certifier finds ŷ; where
its effort does not suffice, the best labelling so far serves.

Labels have weights of their own, by kind of variable, because some rules need them: "a reference only where there is
what it refers to" is a cost of the reference that the pair of both takes back.

Problems are taken some at a time, so that the certifier proves them together; their updates come one by one. The
result is the average of the weights after each example. It begins anew after 1, 2, 4, … passes: the first weights are
poor.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from hasten.jit import driver, keep, split
from hasten.kernels.layout import VARIABLE, BatchArrays, costs_of, graph_of, labels_of, tables_of
from hasten.kernels.score import entry, total_cost
from hasten.learning.algorithm_1 import Weights
from hasten.learning.tables import Changing, LearnedTables, n_labels
from hasten.model.batch import Batch
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.proof.elimination.plan import reduce
from hasten.support.arrays import IntArray
from hasten.support.forms import Positive

CORRECT, WRONG, BLIND = 0, 1, 2
TOGETHER = 32  # problems that are proved with the same weights
MOST_PASSES = 40
SWEEPS = 30  # at most, to look for ŷ
NODES, FEW_NODES = 1000, 50  # the same, for small problems and for large ones
LARGE = 2e6  # labels and tuples, times nodes
ELIMINATING, SWEEPING = 2e-8, 8e-8  # seconds to find ŷ for each label and tuple: of all; of what elimination leaves
OVERHEAD = 3e-5  # seconds for each problem of a pass, beside that


class StepSize(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """How weights change: what a mistake adds to them at most, and by how much answers must win; both in costs."""

    step: Positive
    margin: Annotated[float, Meta(ge=0, le=1e300)]


class Perceptron:
    """Weights of label tuples on their way, for some problems and their flat answers.

    Several may share their problems under tables that change (`Changing`): those forbid what no labelling may have.
    """

    def __init__(self, changing: Changing, batch: Batch, labels: IntArray, size: StepSize, n_jobs: int = 1) -> None:
        schema = batch.structures[0].schema
        n = schema.n_weights + n_labels(schema)
        self.changing, self.labels, self.size = changing, labels, size
        self.batch = _dearer(batch, labels, size.margin)
        self.found, self.label_at = labels.copy(), schema.n_weights + changing.labels.first
        self.certifier, self.n_jobs = Certifier(max_sweeps=SWEEPS, max_nodes=nodes_for(batch)), n_jobs
        self.learned = Weights.of(np.zeros(n))

    def learn(self, problems: IntArray, passes: int, rng: np.random.Generator) -> LearnedTables:
        """Runs over some problems, each time in another order, until a pass makes no mistake."""
        for n in range(passes):
            if n & (n - 1) == 0:
                self._begin_average()
            if not self.run(rng.permutation(problems)):
                break
        return self.tables

    def run(self, problems: IntArray) -> int:
        """Runs once over some problems, in their order; returns how many mistakes that made."""
        mistakes = 0
        for at in range(0, len(problems), TOGETHER):
            some = problems[at : at + TOGETHER]
            problem = self.changing.some(some, self.learned.w, self.batch.cost)
            found = self.certifier(problem, n_jobs=self.n_jobs)
            self.found[self.batch.places(some)] = found.values
            some = some[found.valid]
            outcome = np.zeros(len(some), dtype=np.int64)
            learn_from_found(
                self.batch.arrays, self.label_at, self.labels, self.found, self.size.step, some, self.learned, outcome
            )
            mistakes += int((outcome == WRONG).sum())
        return mistakes

    @property
    def tables(self) -> LearnedTables:
        """The tables learned so far."""
        forbidden, n, average = self.changing.forbidden, self.changing.n_tuples, self.learned.average
        cost, schema = np.where(forbidden, 0.0, -average[:n]), self.batch.structures[0].schema
        return LearnedTables(schema, forbidden, cost, -average[n:])

    def _begin_average(self) -> None:
        self.learned.drift[:] = 0.0
        self.learned.n_examples[0] = 0


def seconds(batch: Batch, problems: IntArray) -> float:
    """Returns about how long one pass over some problems takes, given as they are under tables that change.

    Counted by their sizes, not measured, so that what is learned does not depend on what else the machine does.
    """
    used, times = np.unique(batch.structure[problems], return_counts=True)
    structures = [batch.structures[s] for s in used.tolist()]
    each = [ELIMINATING * size_of(one) + SWEEPING * reduce(one.compiled).size + OVERHEAD for one in structures]
    return float((np.array(each) * times).sum())


def nodes_for(batch: Batch, large: float = LARGE, most: int = NODES) -> int:
    """Returns how far to branch on the largest of some problems, so that it takes about as long as others."""
    largest = max((size_of(batch.structures[s]) for s in np.unique(batch.structure).tolist()), default=1)
    return int(min(max(large / largest, FEW_NODES), most))


def size_of(structure: Structure) -> int:
    """Returns how many labels and tuples a sweep goes through, if every declared factor has a table."""
    graph = structure.graph
    slots = graph.scope_first[:-1]
    return structure.n_labels + int((graph.stride[slots] * np.diff(graph.first)[graph.scope[slots]]).sum())


def _dearer(batch: Batch, labels: IntArray, margin: float) -> Batch:
    """Returns problems in which each label of an answer costs `margin` more."""
    if not margin:
        return batch
    owner = np.repeat(np.arange(len(batch)), batch.n_variables)
    first, _ = batch.label_ranges(owner, np.arange(len(labels)) - batch.variable_at[owner])
    there, cost = labels >= 0, batch.cost.copy()
    cost[(batch.cost_at[owner] + first + labels)[there]] += margin
    return Batch(batch.structures, batch.structure, cost, batch.cost_at, batch.table, batch.table_at)


@driver
def learn_from_found(
    batch: BatchArrays,
    label_at: IntArray,
    answers: IntArray,
    found: IntArray,
    step: float,
    problems: IntArray,
    learned: Weights,
    outcome: IntArray,
) -> None:
    """Learns from answers and from what was found with the weights as they were, one problem after the other.

    `label_at` says where the weights of each variable's labels start. `found` may have been found with somewhat older
    weights: an update is made where it still costs less than the answer. `outcome` says how each problem went.
    """
    n_weights, n_terms = learned.w.size, 0
    for p in problems:
        n_terms = max(n_terms, graph_of(batch, p).weight_at.size + graph_of(batch, p).order.size)
    counts = np.zeros(n_weights + 4 * n_terms, dtype=np.int64)
    one, touched, count = split(counts, (n_weights, 2 * n_terms, 2 * n_terms))
    for x in range(problems.size):
        p = problems[x]
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        right, here = labels_of(batch, answers, p), labels_of(batch, found, p)
        n_touched, excess = 0, total_cost(graph, cost, table, right) - total_cost(graph, cost, table, here)
        for v in range(graph.order.size):
            if right[v] != here[v]:
                at = label_at[batch.place[p, VARIABLE] + v]
                excess += learned.w[at + here[v]] - learned.w[at + right[v]]
                one[at + right[v]] += 1
                one[at + here[v]] -= 1
                touched[n_touched], touched[n_touched + 1] = at + right[v], at + here[v]
                n_touched += 2
        for f in range(graph.weight_at.size):
            at = graph.weight_at[f]
            if at >= 0:
                good, bad = at + entry(graph, f, right), at + entry(graph, f, here)
                if good != bad:
                    excess += learned.w[bad] - learned.w[good]
                    one[good] += 1
                    one[bad] -= 1
                    touched[n_touched], touched[n_touched + 1] = good, bad
                    n_touched += 2
        n_changed, length = 0, 0
        for y in range(n_touched):
            i = touched[y]
            if one[i] != 0:  # once, though it may stand in the list more often
                touched[n_changed], count[n_changed] = i, one[i]
                length += one[i] * one[i]
                n_changed += 1
                one[i] = 0
        outcome[x] = CORRECT
        if excess > 0.0:
            outcome[x] = WRONG if length else BLIND
            size = min(step, excess / max(length, 1))
            for y in range(n_changed):
                learned.w[touched[y]] += size * count[y]
                learned.drift[touched[y]] += size * count[y] * learned.n_examples[0]
        learned.n_examples[0] += 1
    keep(counts)
