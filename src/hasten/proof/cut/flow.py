"""Maximum flow between two terminals, by Boykov and Kolmogorov's algorithm (2004).

Two trees grow, one from the source along arcs with room, one from the sink against them. Where they meet, the path is
filled. Nodes that this cuts off, the *orphans*, look for another parent in their tree or become free. In the end the
source's tree is one side of a smallest cut. The arc that limits a path is left with no room at all; whatever rounding
does to others, a bound is only made of the flow, and never trusts it.
"""

from __future__ import annotations

from typing import NamedTuple

from hasten.jit import inlined_kernel, kernel
from hasten.kernels.layout import stopped
from hasten.support.arrays import FloatArray, IntArray

TERMINAL, ORPHAN, FREE = -1, -2, -3  # in place of an arc to a parent
NEVER = 1 << 60  # farther than any node is from its terminal
PATHS = 100  # filled at most, for each arc: far more than were ever needed
LOOK = 256  # paths between two looks at the stop flag


class Arcs(NamedTuple):
    """Where the arcs of a network lead."""

    first: IntArray  # (N + 1,) node v is left by the arcs first[v]:first[v + 1]
    head: IntArray  # (A,) where each leads
    sister: IntArray  # (A,) the arc that leads back


class Flow(NamedTuple):
    """The state of a flow: N nodes, A arcs."""

    room: FloatArray  # (2 A,) the flow that an arc can still carry, and that its sister can
    excess: FloatArray  # (N,) the flow that the source (or, if negative, the sink) can still exchange with the node
    node: IntArray  # (4 N,) of each node:
    #   PARENT, the arc to its parent; SINK, whether its tree is the sink's;
    #   TIME, when its distance was last known to be right; FAR, that distance from its terminal
    active: IntArray  # (N,) a ring: nodes that may grow
    waits: IntArray  # (N,) whether it is in that ring
    orphans: IntArray  # (N,) a ring
    ends: IntArray  # (5,) where these rings begin and end, how many are in each, and the time


PARENT, SINK, TIME, FAR = 0, 1, 2, 3
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
    flow.node[4 * v + PARENT] = ORPHAN
    at = flow.ends[FIRST_ORPHAN] + flow.ends[N_ORPHANS]
    flow.orphans[at - n if at >= n else at] = v
    flow.ends[N_ORPHANS] += 1


@inlined_kernel
def hang(flow: Flow, v: int, parent: int, now: int, far: int) -> None:
    """Gives a node a parent, by the arc that leads there."""
    flow.node[4 * v + PARENT], flow.node[4 * v + TIME], flow.node[4 * v + FAR] = parent, now, far


@kernel
def grow(arcs: Arcs, flow: Flow, v: int) -> int:
    """Lets a node reach for its neighbours; returns an arc from the source's tree to the sink's, or -1."""
    n, node = arcs.first.size - 1, flow.node
    sink = node[4 * v + SINK]
    for a in range(arcs.first[v], arcs.first[v + 1]):
        if flow.room[2 * a + sink] <= 0.0:  # a node of the sink's tree is reached by the sisters
            continue
        w = 4 * arcs.head[a]
        if node[w + PARENT] == FREE:
            node[w + SINK] = sink
            hang(flow, arcs.head[a], arcs.sister[a], node[4 * v + TIME], node[4 * v + FAR] + 1)
            wake(flow, n, arcs.head[a])
        elif node[w + SINK] != sink:
            return int(arcs.sister[a]) if sink else a
        elif node[w + TIME] <= node[4 * v + TIME] and node[w + FAR] > node[4 * v + FAR]:  # closer to the terminal
            hang(flow, arcs.head[a], arcs.sister[a], node[4 * v + TIME], node[4 * v + FAR] + 1)
    return -1


@inlined_kernel
def carry(arcs: Arcs, flow: Flow, a: int, amount: float) -> None:
    """Lets an arc carry more."""
    back = arcs.sister[a]
    flow.room[2 * a] -= amount
    flow.room[2 * a + 1] += amount
    flow.room[2 * back] += amount
    flow.room[2 * back + 1] -= amount


@kernel
def fill(arcs: Arcs, flow: Flow, middle: int) -> None:
    """Fills the path through an arc between the trees."""
    n, node = arcs.first.size - 1, flow.node
    tail, head = arcs.head[arcs.sister[middle]], arcs.head[middle]
    least, v = flow.room[2 * middle], tail
    while node[4 * v + PARENT] != TERMINAL:
        least = min(least, flow.room[2 * node[4 * v + PARENT] + 1])
        v = arcs.head[node[4 * v + PARENT]]
    least, v = min(least, flow.excess[v]), head
    while node[4 * v + PARENT] != TERMINAL:
        least = min(least, flow.room[2 * node[4 * v + PARENT]])
        v = arcs.head[node[4 * v + PARENT]]
    least = min(least, -flow.excess[v])
    carry(arcs, flow, middle, least)
    v = tail
    while node[4 * v + PARENT] != TERMINAL:
        a = node[4 * v + PARENT]
        carry(arcs, flow, a, -least)
        if flow.room[2 * a + 1] <= 0.0:
            orphan(flow, n, v)
        v = arcs.head[a]
    flow.excess[v] -= least
    if flow.excess[v] <= 0.0:
        orphan(flow, n, v)
    v = head
    while node[4 * v + PARENT] != TERMINAL:
        a = node[4 * v + PARENT]
        carry(arcs, flow, a, least)
        if flow.room[2 * a] <= 0.0:
            orphan(flow, n, v)
        v = arcs.head[a]
    flow.excess[v] += least
    if flow.excess[v] >= 0.0:
        orphan(flow, n, v)


@kernel
def origin(arcs: Arcs, flow: Flow, v: int) -> int:
    """Returns how far a node is from its terminal, `NEVER` if it hangs on an orphan; notes that along the way."""
    far, w, node, now = 0, v, flow.node, flow.ends[NOW]
    while node[4 * w + TIME] != now:
        if node[4 * w + PARENT] == ORPHAN:
            return NEVER
        if node[4 * w + PARENT] == TERMINAL:
            node[4 * w + TIME], node[4 * w + FAR] = now, 1
            break
        far += 1
        w = arcs.head[node[4 * w + PARENT]]
    far += int(node[4 * w + FAR])
    left, w = far, v
    while node[4 * w + TIME] != now:
        node[4 * w + TIME], node[4 * w + FAR] = now, left
        left -= 1
        w = arcs.head[node[4 * w + PARENT]]
    return far


@kernel
def adopt(arcs: Arcs, flow: Flow, v: int) -> None:
    """Finds an orphan the parent closest to its terminal, or sets it free."""
    n, node = arcs.first.size - 1, flow.node
    sink = node[4 * v + SINK]
    nearest, chosen = NEVER, FREE
    for a in range(arcs.first[v], arcs.first[v + 1]):
        if flow.room[2 * a + 1 - sink] > 0.0:
            w = arcs.head[a]
            if node[4 * w + SINK] == sink and node[4 * w + PARENT] != FREE:
                far = origin(arcs, flow, w)
                if far < nearest:
                    nearest, chosen = far, a
    node[4 * v + PARENT] = chosen
    if chosen != FREE:
        hang(flow, v, chosen, flow.ends[NOW], nearest + 1)
        return
    for a in range(arcs.first[v], arcs.first[v + 1]):
        w = arcs.head[a]
        if node[4 * w + SINK] == sink and node[4 * w + PARENT] != FREE:
            if flow.room[2 * a + 1 - sink] > 0.0:
                wake(flow, n, w)
            if node[4 * w + PARENT] >= 0 and arcs.head[node[4 * w + PARENT]] == v:
                orphan(flow, n, w)


@kernel
def maximise(arcs: Arcs, flow: Flow, stop_flag: IntArray) -> bool:
    """Finds a largest flow; false if it was stopped before."""
    n, ends = arcs.first.size - 1, flow.ends
    for x in range(5):
        ends[x] = 0
    for v in range(n):  # both trees begin with the nodes that their terminals can carry something to
        flow.waits[v] = 0
        flow.node[4 * v + SINK] = 1 if flow.excess[v] < 0.0 else 0
        hang(flow, v, FREE if flow.excess[v] == 0.0 else TERMINAL, 0, 1)
        if flow.excess[v] != 0.0:
            wake(flow, n, v)
    most, n_paths = PATHS * (n + arcs.head.size), 0
    while ends[N_ACTIVE]:
        v = flow.active[ends[BEGIN]]
        middle = grow(arcs, flow, v) if flow.node[4 * v + PARENT] != FREE else -1
        if middle < 0:  # it has grown
            flow.waits[v] = 0
            ends[BEGIN] = ends[BEGIN] + 1 if ends[BEGIN] + 1 < n else 0
            ends[N_ACTIVE] -= 1
            continue
        ends[NOW] += 1
        fill(arcs, flow, middle)
        while ends[N_ORPHANS]:
            w = flow.orphans[ends[FIRST_ORPHAN]]
            ends[FIRST_ORPHAN] = ends[FIRST_ORPHAN] + 1 if ends[FIRST_ORPHAN] + 1 < n else 0
            ends[N_ORPHANS] -= 1
            adopt(arcs, flow, w)
        n_paths += 1
        if n_paths > most or (n_paths % LOOK == 0 and stopped(stop_flag)):
            return False
    return True


@inlined_kernel
def is_near(flow: Flow, v: int) -> bool:
    """Whether a node is on the source's side of the cut."""
    return bool(flow.node[4 * v + PARENT] != FREE and not flow.node[4 * v + SINK])
