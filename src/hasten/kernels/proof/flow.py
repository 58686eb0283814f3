"""Maximum flow between two terminals, by Boykov and Kolmogorov's algorithm (2004).

Two trees grow towards each other, one from the source along arcs with room, one from the sink against them. Where they
meet there is a path with room, which is filled. Nodes that this cuts off, the *orphans*, look for another parent in
their tree or become free. Once the trees can neither grow nor meet, the flow is a largest one, and the source's tree is
one side of a smallest cut.

Room is in floats: the arc that limits a path is left with exactly none. Whatever rounding does to the others, the flow
is only what a bound is made of (`hasten.kernels.proof.cut`); it is never trusted.
"""

from __future__ import annotations

from typing import NamedTuple

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.network import Network
from hasten.kernels.proof.watch import stopped
from hasten.support.arrays import FloatArray, IntArray

TERMINAL, ORPHAN, FREE = -1, -2, -3  # in place of an arc to a parent
FAR = 1 << 60  # farther than any node is from its terminal
PATHS = 100  # that are filled at most, for each arc: far more than it ever takes
LOOK = 256  # paths between two looks at the watch


class Flow(NamedTuple):
    """The state of a flow: N nodes, A arcs."""

    room: FloatArray  # (A,) what an arc can still carry
    excess: FloatArray  # (N,) what the source (or, if negative, the sink) can still carry to the node
    parent: IntArray  # (N,) the arc to its parent
    in_sink: IntArray  # (N,) whether its tree is the sink's
    time: IntArray  # (N,) when its distance was last known to be right
    distance: IntArray  # (N,) from its terminal
    active: IntArray  # (N,) a ring: nodes that may grow
    waits: IntArray  # (N,) whether it is in that ring
    orphans: IntArray  # (N,) a ring
    ends: IntArray  # (5,) where these rings begin and end, how many are in each, and the time


BEGIN, N_ACTIVE, FIRST_ORPHAN, N_ORPHANS, NOW = 0, 1, 2, 3, 4


@inlined_kernel
def wake(flow: Flow, n: int, v: int) -> None:
    """Lets a node grow, if it is not waiting to already."""
    if not flow.waits[v]:
        flow.waits[v] = 1
        at = flow.ends[BEGIN] + flow.ends[N_ACTIVE]
        flow.active[at - n if at >= n else at] = v
        flow.ends[N_ACTIVE] += 1


@inlined_kernel
def orphan(flow: Flow, n: int, v: int) -> None:
    """Takes a node's parent away."""
    flow.parent[v] = ORPHAN
    at = flow.ends[FIRST_ORPHAN] + flow.ends[N_ORPHANS]
    flow.orphans[at - n if at >= n else at] = v
    flow.ends[N_ORPHANS] += 1


@kernel
def plant(network: Network, flow: Flow) -> None:
    """Lets both trees begin with the nodes that their terminals can carry something to."""
    for x in range(5):
        flow.ends[x] = 0
    n = network.arc_first.size - 1
    for v in range(n):
        flow.time[v], flow.distance[v], flow.waits[v] = 0, 1, 0
        flow.in_sink[v] = 1 if flow.excess[v] < 0.0 else 0
        flow.parent[v] = FREE if flow.excess[v] == 0.0 else TERMINAL
        if flow.excess[v] != 0.0:
            wake(flow, n, v)


@kernel
def grow(network: Network, flow: Flow, v: int) -> int:
    """Lets a node reach for its neighbours; returns an arc from the source's tree to the sink's, or -1."""
    n, sink = network.arc_first.size - 1, flow.in_sink[v]
    for a in range(network.arc_first[v], network.arc_first[v + 1]):
        back = network.sister[a]
        if flow.room[back if sink else a] <= 0.0:
            continue
        w = network.head[a]
        if flow.parent[w] == FREE:
            flow.in_sink[w], flow.parent[w] = sink, back
            flow.time[w], flow.distance[w] = flow.time[v], flow.distance[v] + 1
            wake(flow, n, w)
        elif flow.in_sink[w] != sink:
            return back if sink else a
        elif flow.time[w] <= flow.time[v] and flow.distance[w] > flow.distance[v]:
            flow.parent[w] = back  # closer to the terminal
            flow.time[w], flow.distance[w] = flow.time[v], flow.distance[v] + 1
    return -1


@kernel
def fill(network: Network, flow: Flow, middle: int) -> None:
    """Fills the path through an arc between the trees."""
    n = network.arc_first.size - 1
    tail, head = network.head[network.sister[middle]], network.head[middle]
    least, v = flow.room[middle], tail
    while flow.parent[v] != TERMINAL:
        a = flow.parent[v]
        least = min(least, flow.room[network.sister[a]])
        v = network.head[a]
    least, v = min(least, flow.excess[v]), head
    while flow.parent[v] != TERMINAL:
        least = min(least, flow.room[flow.parent[v]])
        v = network.head[flow.parent[v]]
    least = min(least, -flow.excess[v])
    flow.room[middle] -= least
    flow.room[network.sister[middle]] += least
    v = tail
    while flow.parent[v] != TERMINAL:
        a = flow.parent[v]
        flow.room[a] += least
        flow.room[network.sister[a]] -= least
        if flow.room[network.sister[a]] <= 0.0:
            orphan(flow, n, v)
        v = network.head[a]
    flow.excess[v] -= least
    if flow.excess[v] <= 0.0:
        orphan(flow, n, v)
    v = head
    while flow.parent[v] != TERMINAL:
        a = flow.parent[v]
        flow.room[network.sister[a]] += least
        flow.room[a] -= least
        if flow.room[a] <= 0.0:
            orphan(flow, n, v)
        v = network.head[a]
    flow.excess[v] += least
    if flow.excess[v] >= 0.0:
        orphan(flow, n, v)


@kernel
def origin(network: Network, flow: Flow, v: int) -> int:
    """Returns how far a node is from its terminal, `FAR` if it hangs on an orphan; notes that along the way."""
    far, w = 0, v
    while flow.time[w] != flow.ends[NOW]:
        if flow.parent[w] == ORPHAN:
            return FAR
        if flow.parent[w] == TERMINAL:
            flow.time[w], flow.distance[w] = flow.ends[NOW], 1
            break
        far += 1
        w = network.head[flow.parent[w]]
    far += int(flow.distance[w])
    left, w = far, v
    while flow.time[w] != flow.ends[NOW]:
        flow.time[w], flow.distance[w] = flow.ends[NOW], left
        left -= 1
        w = network.head[flow.parent[w]]
    return far


@kernel
def adopt(network: Network, flow: Flow, v: int) -> None:
    """Finds an orphan the parent closest to its terminal, or sets it free."""
    n, sink = network.arc_first.size - 1, flow.in_sink[v]
    nearest, chosen = FAR, FREE
    for a in range(network.arc_first[v], network.arc_first[v + 1]):
        if flow.room[a if sink else network.sister[a]] > 0.0:
            w = network.head[a]
            if flow.in_sink[w] == sink and flow.parent[w] != FREE:
                far = origin(network, flow, w)
                if far < nearest:
                    nearest, chosen = far, a
    flow.parent[v] = chosen
    if chosen != FREE:
        flow.time[v], flow.distance[v] = flow.ends[NOW], nearest + 1
        return
    for a in range(network.arc_first[v], network.arc_first[v + 1]):
        w = network.head[a]
        if flow.in_sink[w] == sink and flow.parent[w] != FREE:
            if flow.room[a if sink else network.sister[a]] > 0.0:
                wake(flow, n, w)
            if flow.parent[w] >= 0 and network.head[flow.parent[w]] == v:
                orphan(flow, n, w)


@kernel
def maximise(network: Network, flow: Flow, watch: IntArray) -> bool:
    """Finds a largest flow; false if it was stopped before."""
    plant(network, flow)
    n, ends = network.arc_first.size - 1, flow.ends
    most, n_paths = PATHS * (n + network.head.size), 0
    while ends[N_ACTIVE]:
        v = flow.active[ends[BEGIN]]
        middle = grow(network, flow, v) if flow.parent[v] != FREE else -1
        if middle < 0:  # it has grown
            flow.waits[v] = 0
            ends[BEGIN] = ends[BEGIN] + 1 if ends[BEGIN] + 1 < n else 0
            ends[N_ACTIVE] -= 1
            continue
        ends[NOW] += 1
        fill(network, flow, middle)
        while ends[N_ORPHANS]:
            w = flow.orphans[ends[FIRST_ORPHAN]]
            ends[FIRST_ORPHAN] = ends[FIRST_ORPHAN] + 1 if ends[FIRST_ORPHAN] + 1 < n else 0
            ends[N_ORPHANS] -= 1
            adopt(network, flow, w)
        n_paths += 1
        if n_paths > most or (n_paths % LOOK == 0 and stopped(watch)):
            return False
    return True
