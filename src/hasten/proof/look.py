"""Look: where the cheapest labels break no constraint, they are the answer; where they break few, they are repaired.

A model that was trained well leaves most problems in this state. To *repair*, each broken factor takes the beliefs of
its variables, moves these to its cheapest tuple, and gives back whatever it does not need: a step of block coordinate
ascent on the dual of sweeps, with messages that are zero elsewhere. If no factor is broken in the end, the labelling
costs exactly the bound.

Any messages give a valid bound; rounding is added up on the way. With u half of eps, an update that takes beliefs `b`
and gives back `n` leaves each belief within u * (2 |b| + |n|) of the sum of messages, and the factor's own part above
-(arity + 1) * eps * (sum of the largest |b| + |n|). `repair` subtracts twice the sum of both.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hasten.jit import driver, inlined_kernel, keep, kernel, split
from hasten.kernels.layout import GRAPH, Arrays, BatchArrays, Graph, costs_of, graph_at, graph_of, tables_of
from hasten.kernels.score import entry, rows_hold, total_cost
from hasten.kernels.tolerance import EPS, is_proved
from hasten.proof import outcome as status
from hasten.proof.cut import CUTTING
from hasten.proof.eliminate import ELIMINATING
from hasten.proof.outcome import OVERFLOW, Proofs, State, cheapest, rounding, take_bound, take_labels
from hasten.proof.plan import BRIEF, ProofPlan, Work
from hasten.proof.sweep.dual import n_messages
from hasten.proof.sweep.multipliers import least_of
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.clock import STOP_ALL

SHARE = 4  # variables for each broken factor at least, for repairing to pay
MOST_BROKEN = 32  # factors in all, at most
LARGE = 64  # variables from which on something is always broken
SPEED = 1e-8  # seconds that looking takes at most for each label, entry and slot
TIGHT = 1e-10  # a factor whose own part is larger than this, relatively, is broken
WIDE = 2  # factors of more variables are repaired before others: they tell the costs of labels better


class LookPlan(NamedTuple):
    """How long looking takes; there is nothing else to plan."""

    seconds: float


class Looking:
    """The step: look, and repair. Problems that were cut have been seen."""

    def plan(self, plan: ProofPlan) -> LookPlan | None:
        """Returns a plan unless eliminating takes no longer than looking, and looking is unlikely to prove anything.

        Looking is unlikely to prove anything of large problems, and where tables do more than forbid.
        """
        graph = plan.shape.graph
        unlikely = graph.soft_at.size or (len(graph.order) > LARGE and plan.shape.is_forest)
        if unlikely and plan.part(ELIMINATING) is not None:
            return None
        return LookPlan(SPEED * (int(graph.first[-1]) + len(graph.table) + len(graph.scope)))

    def run(self, work: Work, problems: IntArray) -> None:
        """Looks at problems."""
        if any(plan.part(CUTTING) is not None for plan in work.plans):
            problems = problems[work.proofs.facts[status.STEP].take(problems) == 0]
        if len(problems):
            work.run(look_at_some, problems, seconds=work.seconds(self, problems), anyway=BRIEF)


LOOKING = Looking()


@inlined_kernel
def look(
    graph: Graph, cost: FloatArray, table: FloatArray, scratch: Repair, labels: IntArray
) -> tuple[int, float, float, float]:
    """Labels each variable at its cheapest, and repairs the result if that is needed.

    Returns the last step taken, the cost (inf where the labels break a rule, or too many constraints), a bound, and
    the size of the terms (inf where their sums may overflow).
    """
    least, size = cheapest(graph, cost, table, labels)
    if not size < OVERFLOW:
        return status.LOOK, np.inf, -np.inf, np.inf
    slip = rounding(graph, size)  # subtracted from the bound: the bound and the cost compared with it are both sums
    step, found, bound = status.LOOK, total_cost(graph, cost, table, labels), least - slip
    if graph.soft_at.size == 0 and not is_proved(found, bound, size):
        step = status.REPAIR
        max_broken = min(graph.order.size // SHARE, MOST_BROKEN)
        found, bound = repair(graph, cost, table, size, max_broken, scratch, labels)
        bound -= slip
    if found < np.inf and not rows_hold(graph, labels):
        found = np.inf
    return step, found, bound, size


@driver
def look_at_some(arrays: Arrays, problems: IntArray, state: State, stop_flag: IntArray) -> None:
    """Looks at some problems; a proved labelling replaces the one given, if it is cheaper."""
    batch, proofs = BatchArrays(*arrays), Proofs(*state)
    space, s = Space(0, 0, 0, 0, 0), -1
    for p in problems:
        if batch.place[p, GRAPH] != s:
            s = batch.place[p, GRAPH]
            space = space_for(graph_at(s), space)
    n_floats, n_ints = n_numbers(space)
    floats, ints = np.empty(n_floats), np.zeros(n_ints, dtype=np.int64)
    scratch, labels = make_scratch(space, floats, ints)
    for p in problems:
        if stop_flag[STOP_ALL]:
            proofs.facts[status.OUTCOME, p] = status.STOPPED
            continue
        graph, cost, table = graph_of(batch, p), costs_of(batch, p), tables_of(batch, p)
        step, found, bound, size = look(graph, cost, table, scratch, labels)
        proofs.values[status.BOUND, p], proofs.values[status.SIZE, p], proofs.facts[status.STEP, p] = bound, size, step
        if is_proved(found, bound, size):
            take_labels(batch, proofs, p, labels, found, step)
            take_bound(proofs, p, bound, size)
    keep((floats, ints, stop_flag))


class Repair(NamedTuple):
    """Scratch space; between problems nothing is touched and nothing waits."""

    belief: FloatArray  # (L,) costs with messages; inf for a label that is out
    message: FloatArray  # (messages,) of the factors touched
    value: FloatArray  # (tuples of one factor,) the cost of each tuple
    marginal: FloatArray  # (labels of one variable,)
    touched: IntArray  # (F,) the factors that have messages
    has_messages: IntArray  # (F,) whether
    waiting: IntArray  # (F,) the factors to look at
    waits: IntArray  # (F,) whether


class Space(NamedTuple):
    """How much scratch space the largest graph of a call needs."""

    labels: int
    messages: int
    tuples: int
    factors: int
    variables: int


@kernel
def space_for(graph: Graph, space: Space) -> Space:
    """Returns the space that both a graph and others need."""
    n_tuples = space.tuples
    for t in range(graph.list_first.size - 1):
        n_tuples = max(n_tuples, graph.list_first[t + 1] - graph.list_first[t])
    return Space(
        max(space.labels, graph.first[graph.order.size]),
        max(space.messages, n_messages(graph)),
        n_tuples,
        max(space.factors, graph.table_at.size),
        max(space.variables, graph.order.size),
    )


@inlined_kernel
def make_scratch(n: Space, floats: FloatArray, ints: IntArray) -> tuple[Repair, IntArray]:
    """Returns scratch space, and that for labels, within floats and zeros (`n_numbers` says how many)."""
    belief, message, value, marginal = split(floats, (n.labels, n.messages, n.tuples, n.labels))
    touched, has, waiting, waits, labels = split(ints, (n.factors, n.factors, n.factors, n.factors, n.variables))
    return Repair(belief, message, value, marginal, touched, has, waiting, waits), labels


@inlined_kernel
def n_numbers(n: Space) -> tuple[int, int]:
    """Returns how many floats and integers scratch space takes."""
    return 2 * n.labels + n.messages + n.tuples, 4 * n.factors + n.variables


@kernel
def repair(
    graph: Graph, cost: FloatArray, table: FloatArray, size: float, max_broken: int, scratch: Repair, labels: IntArray
) -> tuple[float, float]:
    """Repairs the labels, each at its cheapest, of a graph whose tables only forbid, not looking at rows.

    `size` is that of the terms (`look`). Returns the cost and a bound; (inf, -inf) where more than
    `max_broken` factors are broken, one has no tuple left, or repairing does not end.
    """
    n_waiting = 0
    for wide in (False, True):
        for f in range(graph.table_at.size):
            if is_one(graph, f, wide) and table[graph.table_at[f] + entry(graph, f, labels)] == np.inf:
                if n_waiting == max_broken:
                    clear(scratch, 0, n_waiting)
                    return np.inf, -np.inf
                n_waiting = wait(scratch, f, n_waiting)
    left = 4 * n_waiting
    for at in range(graph.first[graph.order.size]):
        scratch.belief[at] = cost[at]
    n_touched, error = 0, 0.0
    while n_waiting:
        n_waiting -= 1
        f = scratch.waiting[n_waiting]
        scratch.waits[f] = False
        own = 0.0  # the least of a factor's own part is zero: it is broken if the labels cost more
        if scratch.has_messages[f]:
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                own -= scratch.message[graph.message_at[a] + labels[graph.scope[a]]]
        if not own > TIGHT * size and table[graph.table_at[f] + entry(graph, f, labels)] < np.inf:
            continue
        if not scratch.has_messages[f]:
            scratch.has_messages[f] = True
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                for i in range(graph.first[graph.scope[a] + 1] - graph.first[graph.scope[a]]):
                    scratch.message[graph.message_at[a] + i] = 0.0
            scratch.touched[n_touched] = f
            n_touched += 1
        changed, magnitude = update(graph, table, f, scratch, labels)
        left -= 1
        if left < 0 or changed < 0:
            clear(scratch, n_touched, n_waiting)
            return np.inf, -np.inf
        error += magnitude * (2 * (graph.scope_first[f + 1] - graph.scope_first[f]) + 4)
        a0 = graph.scope_first[f]
        while changed:
            if changed & 1:
                v = graph.scope[a0]
                for wide in (False, True):
                    for x in range(graph.touch_first[v], graph.touch_first[v + 1]):
                        g = graph.factor_of[graph.touch[x]]
                        if is_one(graph, g, wide) and not scratch.waits[g] and g != f:
                            n_waiting = wait(scratch, g, n_waiting)
            changed >>= 1
            a0 += 1
    clear(scratch, n_touched, 0)
    return total_cost(graph, cost, table, labels), lower_bound(graph, scratch, error)


@inlined_kernel
def is_one(graph: Graph, f: int, wide: bool) -> bool:
    """Whether factor `f` has a table, over more than two variables where it should be `wide`, else over two or one."""
    return bool(graph.table_at[f] >= 0 and (graph.scope_first[f + 1] - graph.scope_first[f] > WIDE) == wide)


@inlined_kernel
def wait(scratch: Repair, f: int, n_waiting: int) -> int:
    """Lets factor `f` wait; returns how many do then."""
    scratch.waiting[n_waiting] = f
    scratch.waits[f] = True
    return n_waiting + 1


@kernel
def clear(scratch: Repair, n_touched: int, n_waiting: int) -> None:
    """Leaves nothing touched and nothing waiting."""
    for x in range(n_touched):
        scratch.has_messages[scratch.touched[x]] = False
    for x in range(n_waiting):
        scratch.waits[scratch.waiting[x]] = False


@kernel
def update(graph: Graph, table: FloatArray, f: int, scratch: Repair, labels: IntArray) -> tuple[int, float]:
    """Moves the variables of factor `f` to its cheapest tuple, and raises the bound by the cost of that.

    Returns which slots changed their labels, a bit each (-1: no tuple is left), and the sum of the largest magnitudes.
    """
    a0, a1 = graph.scope_first[f], graph.scope_first[f + 1]
    arity = a1 - a0
    belief, message, value, marginal = scratch.belief, scratch.message, scratch.value, scratch.marginal
    for a in range(a0, a1):
        first, m = graph.first[graph.scope[a]], graph.message_at[a]
        for i in range(graph.first[graph.scope[a] + 1] - first):
            belief[first + i] -= message[m + i]
    listing = graph.listing[f]
    t0, label_at = graph.list_first[listing], graph.list_label_at[listing]
    n = graph.list_first[listing + 1] - t0
    least, chosen = np.inf, -1
    for t in range(n):
        total = table[graph.table_at[f] + graph.list_entry[t0 + t]]
        for s in range(arity):
            total += belief[graph.first[graph.scope[a0 + s]] + graph.list_label[label_at + t * arity + s]]
        value[t] = total
        if total < least:
            least, chosen = total, t
    if chosen < 0:
        return -1, 0.0
    changed, size, given = 0, 0.0, 0
    for _ in range(arity):
        s, most = -1, -1
        for x in range(arity):
            degree = graph.touch_first[graph.scope[a0 + x] + 1] - graph.touch_first[graph.scope[a0 + x]]
            if degree > most and not given >> x & 1:
                s, most = x, degree
        given |= 1 << s
        v = graph.scope[a0 + s]
        first, m = graph.first[v], graph.message_at[a0 + s]
        n_labels = graph.first[v + 1] - first
        for i in range(n_labels):
            marginal[i] = np.inf
        for t in range(n):
            i = graph.list_label[label_at + t * arity + s]
            marginal[i] = min(marginal[i], value[t])
        largest = 0.0
        for i in range(n_labels):
            before, after = belief[first + i], marginal[i]
            belief[first + i] = after
            message[m + i] = 0.0
            if after < np.inf:
                message[m + i] = after - before
                largest = max(largest, abs(before) + abs(after))
        size += largest
        for t in range(n):
            if value[t] < np.inf:
                value[t] -= marginal[graph.list_label[label_at + t * arity + s]]
        label = graph.list_label[label_at + chosen * arity + s]
        if label != labels[v]:
            labels[v] = label
            changed |= 1 << s
    return changed, size


@kernel
def lower_bound(graph: Graph, scratch: Repair, error: float) -> float:
    """Returns the sum of the least beliefs, less all possible rounding, to which updates added `error`.

    It is -inf where the sum overflows, or a variable has no label left: later steps report this.
    """
    total, size = 0.0, 0.0
    for v in range(graph.order.size):
        least = least_of(scratch.belief, graph.first[v], graph.first[v + 1])
        total += least
        size += abs(least)
    bound = total - EPS * (error + (graph.order.size + 4) * size)
    return bound if abs(bound) < np.inf else -np.inf
