"""Cut: a step for problems of two labels a variable, joined two by two, which are smallest cuts of a network.

Where all pairs are for agreeing (*submodular*), if need be after `relabel`ling some variables, the cheapest labelling
is a smallest cut. Rules over two variables are tables here; others are checked afterwards. A largest flow is a proof:
it is a way to send messages, whose bound is summed anew from the costs and tables as they were given (`weigh`). What is
forbidden costs `forbid`, more than any labelling can: where even the bound shows that, no labelling is valid.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, part
from hasten.kernels.layout import Arrays, BatchArrays, Graph, costs_of, graph_of, stopped, tables_of, together
from hasten.kernels.score import rows_hold, total_cost
from hasten.kernels.tolerance import EPS
from hasten.model.compiled import Compiled
from hasten.proof import outcome as status
from hasten.proof.cut import relabel
from hasten.proof.cut.flow import Arcs, is_near, maximise
from hasten.proof.cut.network import Network, is_binary, make_network, network_at
from hasten.proof.cut.relabel import Cut
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.outcome import Proofs, State, rule_out, take_bound, take_labels
from hasten.proof.plan import ProofPlan, RecordPlan, Work
from hasten.support.arrays import FloatArray, IntArray, sizes_of
from hasten.support.clock import ALL, AT


@inlined_kernel
def least_left(cut: Cut, to_u: float, to_v: float, flip_u: int, flip_v: int, error: float) -> float:
    """Returns what the pair that was read costs at least once its messages are taken out, less their rounding."""
    least = np.inf
    for x in range(4):
        from_u, from_v = to_u if x >> 1 != flip_u else 0.0, to_v if x & 1 != flip_v else 0.0
        lower = (cut.entry[x] - from_u - from_v) - error * (cut.size[x] + abs(from_u) + abs(from_v))
        if lower < least:  # never where the entry is inf: then this is not a number
            least = lower
    return least


@inlined_kernel
def least_of_labels(cut: Cut, v: int) -> float:
    """Returns what variable `v` costs at least with its messages, less their rounding."""
    least, error = np.inf, EPS * cut.n_added[v]
    for at in range(2 * v, 2 * v + 2):
        lower = cut.value[at] - error * cut.weight[at]
        if lower < least:
            least = lower
    return least


@inlined_kernel
def put_terms(cut: Cut, place: int, flips: int, forbid: float) -> None:
    """Writes the terms of the pair that was read, given the flips of its variables, 2 * the first's + the second's."""
    entry, at, terms = cut.entry, flips, cut.terms
    terms[4 * place], terms[4 * place + 1], terms[4 * place + 2], terms[4 * place + 3] = relabel.as_arcs(
        entry[at], entry[at ^ 1], entry[at ^ 2], entry[at ^ 3], forbid
    )


@inlined_kernel
def place_of(network: Network, cut: Cut, k: int) -> int:
    """Returns where the terms of pair `k` are, in fours."""
    if network.form[k] >= 0:
        return int(4 * network.form[k] + 2 * cut.flip[network.pair_low[k]] + cut.flip[network.pair_high[k]])
    return int(4 * network.form_at.size + k)


@kernel
def build(graph: Graph, network: Network, table: FloatArray, cut: Cut, forbid: float) -> None:
    """Makes the network of one problem, given its flips."""
    room, excess, flip, terms = cut.flow.room, cut.flow.excess, cut.flip, cut.terms
    for v in range(graph.order.size):
        excess[v] = relabel.preference(cut.value[2 * v + flip[v]], cut.value[2 * v + 1 - flip[v]], forbid)
    for m in range(network.form_at.size):
        relabel.read_form(network, table, m, cut)
        for flips in range(4):
            at = 4 * (4 * m + flips)
            put_terms(cut, 4 * m + flips, flips, forbid)
            cut.still[4 * m + flips] = least_left(cut, terms[at], terms[at + 1], flips >> 1, flips & 1, 5 * EPS)
    for k in range(network.pair_low.size):
        u, v, at = network.pair_low[k], network.pair_high[k], 4 * place_of(network, cut, k)
        if network.form[k] < 0:
            relabel.read_pair(graph, network, table, k, cut)
            put_terms(cut, at // 4, 2 * flip[u] + flip[v], forbid)
        if terms[at] != 0.0:
            excess[u] += terms[at]
        if terms[at + 1] != 0.0:
            excess[v] += terms[at + 1]
        a = network.pair_arc[k]
        back = network.sister[a]
        room[2 * a] = room[2 * back + 1] = terms[at + 2]
        room[2 * back] = room[2 * a + 1] = terms[at + 3]


@inlined_kernel
def add(total: float, lost: float, value: float) -> tuple[float, float]:
    """Returns a sum with one more number in it, and all that rounding took from it."""
    after = total + value
    kept = after - total
    return after, lost + ((total - (after - kept)) + (value - kept))


@kernel
def weigh(graph: Graph, network: Network, table: FloatArray, cut: Cut) -> tuple[float, float, float]:
    """Returns what `cut.labels` cost, how far that sum can be off, and the bound that the messages give.

    A flow is a way to send messages: what an arc carries, its tail no longer pays and its head does. They are taken as
    the numbers they are: any will do. A sum of n numbers is off by less than n * eps times the sum of their magnitudes,
    which is subtracted from each label's and each tuple's sum. The least of these are summed together with what
    rounding takes from that sum, which leaves errors of its square.
    """
    total, lost, size, found, spent = 0.0, 0.0, 0.0, 0.0, 0.0
    n_terms, n_parts = network.pair_low.size + graph.order.size, network.part_at.size + network.single.size
    value, weight, flip, labels, terms = cut.value, cut.weight, cut.flip, cut.labels, cut.terms
    for v in range(graph.order.size):
        found += value[2 * v + labels[v]]
        spent += weight[2 * v + labels[v]]
    for k in range(network.pair_low.size):
        u, v, place = network.pair_low[k], network.pair_high[k], place_of(network, cut, k)
        at, m = 4 * place, network.form[k]
        a, there, back = network.pair_arc[k], terms[at + 2], terms[at + 3]  # the narrower arc tells more exactly
        flow = cut.flow.room[2 * a + 1] - back if there > back else there - cut.flow.room[2 * a]
        to_u, to_v = terms[at] - flow, terms[at + 1] + flow
        if m >= 0:
            entry = table[network.form_at[m] + network.form_low[m] * labels[u] + network.form_high[m] * labels[v]]
            found += entry
            spent += abs(entry)
        if m >= 0 and flow == 0.0:
            least = cut.still[place]
        else:
            if m >= 0:
                relabel.read_form(network, table, m, cut)
            else:
                relabel.read_pair(graph, network, table, k, cut)
                found += cut.entry[2 * labels[u] + labels[v]]
                spent += cut.size[2 * labels[u] + labels[v]]
            error = EPS * (network.part_first[k + 1] - network.part_first[k] + 4)
            least = least_left(cut, to_u, to_v, flip[u], flip[v], error)
        if least == np.inf:
            return np.inf, 0.0, np.inf
        if least != 0.0:
            total, lost = add(total, lost, least)
            size += abs(least)
        if to_u != 0.0:
            value[2 * u + 1 - flip[u]] += to_u
            weight[2 * u + 1 - flip[u]] += abs(to_u)
        if to_v != 0.0:
            value[2 * v + 1 - flip[v]] += to_v
            weight[2 * v + 1 - flip[v]] += abs(to_v)
    for v in range(graph.order.size):
        least = least_of_labels(cut, v)
        total, lost = add(total, lost, least)
        size += abs(least)
    bound = (total + lost) - 2.0 * EPS * abs(total + lost) - 4.0 * (n_terms * EPS) * (n_terms * EPS) * size
    if not abs(bound) < np.inf:
        bound = -np.inf
    return found, EPS * (4 + graph.order.size + n_parts) * spent, bound


@kernel
def cut_one(
    graph: Graph, network: Network, table: FloatArray, cut: Cut, size: float, watch: IntArray
) -> tuple[int, float, float]:
    """Cuts one problem that was read; returns the outcome, the cost of `cut.labels` (inf: not valid), and a bound."""
    forbid = 8.0 * size if size > 0.0 else 1.0  # no valid labelling costs more than `size`
    build(graph, network, table, cut, forbid)
    maximise(Arcs(network.arc_first, network.head, network.sister), cut.flow, watch)
    exists = True
    for v in range(graph.order.size):
        cut.labels[v] = cut.flip[v] if is_near(cut.flow, v) else 1 - cut.flip[v]
        exists &= cut.labels[v] < graph.first[v + 1] - graph.first[v]
    found, slip, bound = weigh(graph, network, table, cut)
    if bound > 0.25 * forbid:
        return status.INFEASIBLE, np.inf, np.inf
    if not exists or not found < np.inf or (graph.row_low.size and not rows_hold(graph, cut.labels)):
        return status.OPEN, np.inf, bound
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
def cut_some(arrays: Arrays, problems: IntArray, state: State, networks: IntArray, watch: IntArray) -> None:
    """Cuts some problems; `networks` has, for each, the address of its network. Problems that are no cut stay as is."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    space = relabel.space_for(networks, 1)
    floats = np.empty(together(relabel.cut_floats(space, 1)))
    ints = np.zeros(together(relabel.cut_ints(space)), dtype=np.int64)
    cut = relabel.make_cut(space, 1, floats, ints)
    values, facts, stop = proofs.values, proofs.facts, part(watch, 0, watch.size)
    for x in range(problems.size):
        p = problems[x]
        watch[AT] = x + 1
        if watch[ALL]:
            continue
        graph, network, table = graph_of(batch, p), network_at(networks[x]), tables_of(batch, p)
        size = relabel.read_variables(graph, network, costs_of(batch, p), table, cut)
        if size == np.inf or (size >= 0.0 and not relabel.find_relabelling(graph, network, table, cut)):
            continue
        facts[status.STEP, p], values[status.SIZE, p] = status.CUT, max(size, 0.0)
        outcome, found, bound = status.INFEASIBLE, np.inf, np.inf
        if size >= 0.0:
            outcome, found, bound = cut_one(graph, network, table, cut, size, stop)
        if outcome == status.INFEASIBLE:
            rule_out(proofs, p, status.CUT)
            continue
        if found < values[status.BEST, p] < np.inf:  # the same labels must cost the same
            found = total_cost(graph, costs_of(batch, p), table, cut.labels)
        take_labels(batch, proofs, p, cut.labels, found, status.CUT)
        take_bound(proofs, p, bound, size)
        if facts[status.OUTCOME, p] == status.OPEN and stopped(stop):
            facts[status.OUTCOME, p] = status.STOPPED
    watch[AT] = 0
    keep((floats, ints, watch))
