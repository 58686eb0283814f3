"""The cheapest flow through a network, proved by its duals: paths, assignments, transports, intervals.

Successive shortest paths: arcs of negative cost begin full, all others empty; then flow goes from nodes with too much
to nodes with too little, each time along the cheapest path, which Dijkstra's algorithm finds under potentials. In the
end the potentials are optimal duals. The bound is summed anew from costs and potentials, less what rounding may add.
"""

from __future__ import annotations

import numpy as np

from hasten.jit import driver, inlined_kernel
from hasten.kernels.tolerance import EPS, is_proved
from hasten.proof.outcome import INFEASIBLE, OPEN, PROVED
from hasten.support.arrays import FloatArray, IntArray

MOST = 1e8  # units of flow times arcs, beyond which a solver's simplex is asked instead


@inlined_kernel
def sift_up(key: FloatArray, node: IntArray, at: int) -> None:
    """Moves the last of `at + 1` entries of a heap to its place."""
    k, v = key[at], node[at]
    while at and key[(at - 1) >> 1] > k:
        up = (at - 1) >> 1
        key[at], node[at] = key[up], node[up]
        at = up
    key[at], node[at] = k, v


@inlined_kernel
def sift_down(key: FloatArray, node: IntArray, n: int) -> None:
    """Puts entry `n` of a heap in place of the first, and moves it to its place."""
    k, v, at = key[n], node[n], 0
    while True:
        below = 2 * at + 1
        if below + 1 < n and key[below + 1] < key[below]:
            below += 1
        if below >= n or key[below] >= k:
            break
        key[at], node[at] = key[below], node[below]
        at = below
    key[at], node[at] = k, v


@driver
def cheapest_flows(
    network: tuple[IntArray, IntArray, IntArray, IntArray, IntArray],
    limits: tuple[FloatArray, FloatArray, FloatArray],
    costs: FloatArray,
    x: FloatArray,
    seen: FloatArray,
) -> None:
    """Writes the cheapest flow for each row of costs, an outcome, a bound, and the size of the terms.

    `network` has the tail and the head of each arc, and for each node where its arcs start and which they are: 2 a
    where arc a leaves, 2 a + 1 where it enters; and which arcs have no limit of their own. `limits` are the least that
    arcs carry, how much more they can, and what each node must send more than it gets, less its share of the least.
    Where an arc without a limit has a negative cost, or the flow would take long, the outcome is open.
    """
    (tail, head, start, around, unlimited), (low, room, supply) = network, limits
    n_arcs, n_nodes, n_costs = tail.size, supply.size, costs.shape[1]
    flow, excess = np.empty(n_arcs), np.empty(n_nodes)
    price, distance = np.empty(n_nodes), np.empty(n_nodes)
    parent, done = np.empty(n_nodes, dtype=np.int64), np.empty(n_nodes, dtype=np.int64)
    most_waiting = 2 * n_arcs + n_nodes
    key, waiting, cost = np.empty(most_waiting), np.empty(most_waiting, dtype=np.int64), np.zeros(n_arcs)
    for p in range(costs.shape[0]):
        outcome, bound, size, to_send = PROVED, -np.inf, 0.0, 0.0
        for v in range(n_nodes):
            excess[v], price[v] = supply[v], 0.0
        for a in range(n_arcs):
            cost[a] = costs[p, a] if a < n_costs else 0.0
            flow[a] = room[a] if cost[a] < 0.0 else 0.0
            excess[tail[a]] -= flow[a]
            excess[head[a]] += flow[a]
            if flow[a] > 0.0 and unlimited[a]:
                outcome = OPEN
        for v in range(n_nodes):
            to_send += max(0.0, excess[v])
        if to_send * n_arcs > MOST:
            outcome = OPEN
        while to_send > 0.0 and outcome == PROVED:
            n_waiting = 0
            for v in range(n_nodes):
                distance[v], done[v], parent[v] = np.inf, 0, -1
                if excess[v] > 0.0:
                    distance[v] = key[n_waiting] = 0.0
                    waiting[n_waiting] = v
                    n_waiting += 1
            end = -1
            while n_waiting:
                v = waiting[0]
                n_waiting -= 1
                sift_down(key, waiting, n_waiting)
                if done[v]:
                    continue
                done[v] = 1
                if excess[v] < 0.0:
                    end = v
                    break
                for k in range(start[v], start[v + 1]):
                    a = around[k] >> 1
                    back = around[k] & 1
                    left, u = (flow[a], tail[a]) if back else (room[a] - flow[a], head[a])
                    if left <= 0.0 or done[u]:
                        continue
                    reduced = cost[a] + price[tail[a]] - price[head[a]]
                    far = distance[v] + max(0.0, -reduced if back else reduced)
                    if far < distance[u]:
                        distance[u], parent[u] = far, around[k]
                        key[n_waiting], waiting[n_waiting] = far, u
                        sift_up(key, waiting, n_waiting)
                        n_waiting += 1
            if end < 0:
                outcome, bound = INFEASIBLE, np.inf
                break
            most, v = -excess[end], end
            while parent[v] >= 0:
                a = parent[v] >> 1
                most = min(most, flow[a] if parent[v] & 1 else room[a] - flow[a])
                v = head[a] if parent[v] & 1 else tail[a]
            most = min(most, excess[v])
            excess[v] -= most
            excess[end] += most
            to_send -= most
            v = end
            while parent[v] >= 0:
                a = parent[v] >> 1
                flow[a] += -most if parent[v] & 1 else most
                v = head[a] if parent[v] & 1 else tail[a]
            for v in range(n_nodes):
                price[v] += min(distance[v], distance[end])
        value = 0.0
        if outcome == PROVED:
            bound = 0.0
            for v in range(n_nodes):
                bound -= price[v] * supply[v]
                size += abs(price[v] * supply[v])
            for a in range(n_arcs):
                reduced = cost[a] + price[tail[a]] - price[head[a]]
                bound += cost[a] * low[a] + min(0.0, reduced) * room[a]
                value += cost[a] * (low[a] + flow[a])
                size += abs(cost[a] * low[a]) + room[a] * (abs(cost[a]) + abs(price[tail[a]]) + abs(price[head[a]]))
            bound -= EPS * (n_arcs + n_nodes + 8) * size
            if not is_proved(value, bound, size):
                outcome = OPEN
        for a in range(n_costs):
            x[p, a] = low[a] + flow[a] if outcome == PROVED else np.nan
        seen[p, 0], seen[p, 1], seen[p, 2] = outcome, min(bound, value) if outcome == PROVED else bound, size
