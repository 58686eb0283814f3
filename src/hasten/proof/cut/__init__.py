"""Cut: a step for problems of two labels a variable, joined two by two, which are smallest cuts of a network.

Where all pairs are for agreeing (*submodular*), if need be after relabelling some variables, the cheapest labelling is
a smallest cut. Rules over two variables are tables here; others are checked afterwards. A largest flow is a proof: it
is a way to send messages, whose bound is summed anew from the costs and tables as they were given (`pairs.weigh`). A
forbidden label costs `forbid`, more than any labelling can: where even the bound exceeds that, no labelling is valid.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, keep, kernel, part, split
from hasten.kernels.layout import Arrays, BatchArrays, Graph, costs_of, graph_of, stopped, tables_of, together
from hasten.kernels.score import rows_hold, total_cost
from hasten.kernels.tolerance import EPS
from hasten.model.compiled import Compiled
from hasten.proof import outcome as status
from hasten.proof.cut.flow import Arcs, is_near, maximise
from hasten.proof.cut.network import Network, is_binary, make_network, network_at
from hasten.proof.cut.pairs import Cut, build, find_relabelling, make_cut, read_variables, sizes_for, weigh
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.outcome import Proofs, State, rule_out, take_bound, take_labels
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import FloatArray, IntArray, sizes_of
from hasten.support.clock import CURRENT, STOP_ALL


@kernel
def cut_one(
    graph: Graph, network: Network, table: FloatArray, cut: Cut, size: float, stop_flag: IntArray
) -> tuple[int, float, float]:
    """Cuts one problem that was read; returns the outcome, the cost of `cut.labels` (inf: not valid), and a bound."""
    forbid = 8.0 * size if size > 0.0 else 1.0  # no valid labelling costs more than `size`
    arcs = Arcs(network.arc_first, network.head, network.sister)
    build(graph, network, table, cut, forbid, arcs, False)
    maximise(arcs, cut.flow, stop_flag)
    exists = True
    for v in range(graph.order.size):
        cut.labels[v] = cut.flip[v] if is_near(cut.flow, v) else 1 - cut.flip[v]
        exists &= cut.labels[v] < graph.first[v + 1] - graph.first[v]
    bound, found, spent, _ = weigh(graph, network, table, cut, False)
    if bound > 0.25 * forbid:
        return status.INFEASIBLE, np.inf, np.inf
    if not exists or not found < np.inf or (graph.row_low.size and not rows_hold(graph, cut.labels)):
        return status.OPEN, np.inf, bound
    n_parts = network.part_at.size + network.single.size
    slip = EPS * (4 + graph.order.size + n_parts) * spent  # how far the sum of the cost can be off
    return status.OPEN, found, bound - slip if size > 0.0 else 0.0  # of terms that are all zero every sum is


SPEED = 1e-6  # seconds that a flow takes at most, most of the time, for each arc
FEW = 512  # variables: of so few it is planned whether elimination leaves nothing


class Cutting:
    """The step: cut. It is the first; problems that are no cut are left to the next."""

    def plan(self, plan: ProofPlan) -> RecordPlan | None:
        """Returns the network of a structure, if cutting it can do better than eliminating."""
        graph = plan.shape.graph
        if plan.max_join is not None or not is_binary(graph):
            return None
        n_joined = int((sizes_of(graph.scope_first)[graph.table_at >= 0] == 2).sum())
        if (len(graph.order) <= FEW or n_joined < len(graph.order)) and plan.part(ELIMINATING) is not None:
            return None  # that is then faster: there are few variables, or so few tables that they are a forest
        return plan.shape.made(plan_network)

    def run(self, work: Work, problems: IntArray) -> None:
        """Cuts problems."""
        work.run(cut_some, problems, work.addresses(self, problems), seconds=work.seconds(self, problems))


CUTTING = Cutting()


def plan_network(compiled: Compiled) -> RecordPlan | None:
    """Returns the network of a structure, as a plan."""
    network = make_network(compiled.graph)
    return None if network is None else RecordPlan(network, SPEED * len(network.head))


@driver
def cut_some(arrays: Arrays, problems: IntArray, state: State, networks: IntArray, stop_flag: IntArray) -> None:
    """Cuts some problems; `networks` has, for each, the address of its network. Problems that are no cut stay as is."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    n_floats, n_ints = sizes_for(networks, 1)
    floats, ints = np.empty(together(n_floats)), np.zeros(together(n_ints), dtype=np.int64)
    cut = make_cut(split(floats, n_floats), split(ints, n_ints))
    values, facts, stop = proofs.values, proofs.facts, part(stop_flag, 0, stop_flag.size)
    for x in range(problems.size):
        p = problems[x]
        stop_flag[CURRENT] = x + 1
        if stop_flag[STOP_ALL]:
            continue
        graph, network, table = graph_of(batch, p), network_at(networks[x]), tables_of(batch, p)
        size = read_variables(graph, network, costs_of(batch, p), table, cut)
        if size == np.inf or (size >= 0.0 and not find_relabelling(graph, network, table, cut)):
            continue
        facts[status.STEP, p], values[status.SIZE, p] = status.CUT, max(size, 0.0)
        outcome, found, bound = status.INFEASIBLE, np.inf, np.inf
        if size >= 0.0:
            outcome, found, bound = cut_one(graph, network, table, cut, size, stop)
        if outcome == status.INFEASIBLE:
            rule_out(proofs, p, status.CUT)
            continue
        if found < values[status.BEST, p] < np.inf:  # equal labels must cost the same
            found = total_cost(graph, costs_of(batch, p), table, cut.labels)
        take_labels(batch, proofs, p, cut.labels, found, status.CUT)
        take_bound(proofs, p, bound, size)
        if facts[status.OUTCOME, p] == status.OPEN and stopped(stop):
            facts[status.OUTCOME, p] = status.STOPPED
    stop_flag[CURRENT] = 0
    keep((floats, ints, stop_flag))
