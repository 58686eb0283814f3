"""Cuts against max-flow libraries, and orders against Gurobi with lazy constraints.

    python benchmarks/graphs.py [cuts] [orders] [demand] [--rounds 5]

Everything is timed in turns, in processor time, and the least of some rounds counts; a peer's time begins with the
costs and ends with the labels. Every answer is compared. The peers are those of PyMaxflow, SciPy, igraph (up to 1,600
variables: it is slow) and gurobipy that are installed; none of them is needed otherwise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from importlib.util import find_spec
from itertools import combinations, product

import numpy as np

import hasten

SMALL = 1600  # variables
SCALE = 10**6  # of whole numbers: SciPy's flows are of 32 bits
Edges = np.ndarray  # (n, 2): the first is the one that may not be 1 where the second is 0


def in_turns(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Returns the least seconds of each, over some rounds."""
    least = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            started = time.process_time()
            run()
            least[i] = min(least[i], time.process_time() - started)
    return least


# -- cuts -------------------------------------------------------------------------------------------------------


def grid(n: int) -> tuple[hasten.Structure, Edges, np.ndarray]:
    """Returns pixels whose neighbours should agree: both ways of each edge, and what they cost."""
    schema = hasten.Schema()
    pixel = schema.variable("pixel", ["off", "on"])
    same = schema.factor("same", one=pixel, other=pixel).set_table(1.0 - np.eye(2))
    shape = schema.structure()
    for _ in range(n * n):
        shape.add(pixel)
    number = np.arange(n * n).reshape(n, n)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    edges = np.concatenate([np.stack([one.ravel(), other.ravel()], axis=1) for one, other in (across, down)])
    for one, other in edges.tolist():
        shape.connect(same, one=one, other=other)
    return shape, edges, np.ones((len(edges), 2))


def hierarchy(n: int) -> tuple[hasten.Structure, Edges, np.ndarray]:
    """Returns classes that imply one to three others, as the Gene Ontology; the second of each edge is implied."""
    schema, rng = hasten.Schema(), np.random.default_rng(0)
    term = schema.variable("term", ["no", "yes"])
    implies = schema.factor("is a", child=term, parent=term).imply(when={"child": "yes"}, then={"parent": "yes"})
    shape, edges = schema.structure(), []
    for v in range(n):
        shape.add(term)
        lowest = int(0.2 * v**0.85)
        highest, n_parents = min(v, lowest + int(0.3 * v) + 1), rng.choice([1, 1, 2, 2, 3]) if v else 0
        edges += [(v, parent) for parent in set(rng.integers(lowest, max(1, highest), n_parents).tolist())]
    for child, parent in edges:
        shape.connect(implies, child=child, parent=parent)
    return shape, np.array(edges), np.array([[1e6, 0.0]]).repeat(len(edges), axis=0)


def by_pymaxflow(cost: np.ndarray, edges: Edges, weight: np.ndarray) -> float:
    """Returns the least cost: an edge costs its weights where its ends are (1, 0) and (0, 1)."""
    import maxflow

    n = len(cost) // 2
    graph = maxflow.GraphFloat(n, len(edges))
    nodes = graph.add_nodes(n)
    graph.add_edges(edges[:, 1], edges[:, 0], weight[:, 0], weight[:, 1])
    graph.add_grid_tedges(nodes, cost[1::2], cost[0::2])
    flow = graph.maxflow()
    graph.get_grid_segments(nodes)
    return float(flow)


def by_pymaxflow_grid(cost: np.ndarray, edges: Edges, weight: np.ndarray) -> float:
    """Does the same by what the library has for grids."""
    import maxflow

    n = int((len(cost) // 2) ** 0.5)
    graph = maxflow.GraphFloat(n * n, 2 * n * n)
    nodes = graph.add_grid_nodes((n, n))
    graph.add_grid_edges(nodes, 1.0)
    graph.add_grid_tedges(nodes, cost[1::2].reshape(n, n), cost[0::2].reshape(n, n))
    flow = graph.maxflow()
    graph.get_grid_segments(nodes)
    return float(flow)


def arcs(cost: np.ndarray, edges: Edges, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Returns tails, heads and capacities, from the source n to the sink n + 1, and what is paid in any case."""
    n = len(cost) // 2
    gain = cost[1::2] - cost[0::2]
    dear, cheap, back = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0), weight[:, 1] > 0
    tail = np.concatenate([np.full(len(dear), n), cheap, edges[:, 1], edges[back, 0]])
    head = np.concatenate([dear, np.full(len(cheap), n + 1), edges[:, 0], edges[back, 1]])
    room = np.concatenate([gain[dear], -gain[cheap], weight[:, 0], weight[back, 1]])
    return tail, head, room, float(cost[0::2].sum() + gain[cheap].sum())


def by_scipy(cost: np.ndarray, edges: Edges, weight: np.ndarray) -> float:
    """Returns the least cost, rounded to whole numbers."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import maximum_flow

    tail, head, room, constant = arcs(cost, edges, np.minimum(weight, 1000.0))
    n = len(cost) // 2 + 2
    whole = np.rint(room * SCALE).astype(np.int32)
    return constant + maximum_flow(csr_matrix((whole, (tail, head)), shape=(n, n)), n - 2, n - 1).flow_value / SCALE


def by_igraph(cost: np.ndarray, edges: Edges, weight: np.ndarray) -> float:
    """Returns the least cost."""
    import igraph

    tail, head, room, constant = arcs(cost, edges, weight)
    n = len(cost) // 2 + 2
    graph = igraph.Graph(n, np.stack([tail, head], axis=1), directed=True)
    return constant + float(graph.maxflow(n - 2, n - 1, capacity=room.tolist()).value)


def cut(name: str, made: tuple[hasten.Structure, Edges, np.ndarray], costs: np.ndarray, rounds: int) -> None:
    """Certifies problems one by one, against every library."""
    shape, edges, weight = made
    problems, certify = [shape.problem(each) for each in costs], hasten.Certifier()
    answers = [certify(problem) for problem in problems]
    peers = {"PyMaxflow": by_pymaxflow, "SciPy": by_scipy, "igraph": by_igraph}
    needs = {"PyMaxflow": "maxflow", "SciPy": "scipy", "igraph": "igraph"}
    peers = {peer: run for peer, run in peers.items() if find_spec(needs[peer])}
    if costs.shape[1] > 2 * SMALL:
        peers.pop("igraph", None)
    if "grid" in name and "PyMaxflow" in peers:
        peers["PyMaxflow"] = by_pymaxflow_grid
    for run in peers.values():
        for answer in answers:
            assert abs(run(answer.problem.cost, edges, weight) - answer.cost) < 1e-2 + 1e-6 * abs(answer.cost)
    ours, *theirs = in_turns(
        rounds,
        lambda: [certify(problem) for problem in problems],
        *(lambda run=run: [run(each, edges, weight) for each in costs] for run in peers.values()),
    )
    n, proved = len(problems), np.mean([answer.proved for answer in answers])
    told = [f"{peer} {1e3 * took / n:.2f} ({took / ours:.2f}x)" for peer, took in zip(peers, theirs, strict=True)]
    print(f"{name}: {proved:.0%} proved, {1e3 * ours / n:.3f} ms; {', '.join(told)}", flush=True)


def cuts(rounds: int) -> None:
    """Potts grids, and a hierarchy of classes."""
    for n in (10, 20, 40, 80):
        rng = np.random.default_rng(n)
        cut(f"Potts grid {n} x {n}", grid(n), 1.5 * rng.normal(size=(5, 2 * n * n)), rounds)
    made = hierarchy(4125)
    for noise, gap in ((1.0, 0.0), (1.0, 1.0), (0.5, 0.8)):
        costs = np.zeros((6, 4125, 2))
        costs[:, :, 1] = gap + noise * np.random.default_rng(1).normal(size=(6, 4125))
        name = f"hierarchy of 4125, {len(made[1])} implications, noise {noise}, gap {gap}"
        cut(name, made, costs.reshape(6, -1), rounds)


# -- orders -----------------------------------------------------------------------------------------------------

FIRST = 50  # problems that are not timed


def transitivity() -> hasten.Schema:
    """Returns the schema of orders: what is before what is before a third is before that as well."""
    schema = hasten.Schema()
    relation = schema.variable("relation", ["before", "after"])
    table = np.zeros((2, 2, 2))
    table[0, 0, 1] = table[1, 1, 0] = np.inf
    schema.factor("transitive", ab=relation, bc=relation, ac=relation).set_table(table)
    return schema


def order(n: int) -> tuple[hasten.Structure, np.ndarray]:
    """Returns the relations of all pairs of events, transitive over all triples, and which relations a triple has."""
    schema = transitivity()
    relation, transitive = schema.variables["relation"], schema.factors["transitive"]
    shape = schema.structure()
    number = {pair: shape.add(relation) for pair in combinations(range(n), 2)}
    triples = [(number[a, b], number[b, c], number[a, c]) for a, b, c in combinations(range(n), 3)]
    for ab, bc, ac in triples:
        shape.connect(transitive, ab=ab, bc=bc, ac=ac)
    return shape, np.array(triples)


def draw_orders(n: int, noise: float, n_problems: int) -> np.ndarray:
    """Draws the costs of relations: a hidden order, and noise."""
    rng, costs = np.random.default_rng([n, int(10 * noise)]), []
    for _ in range(n_problems):
        place = rng.permutation(n)
        truth = [int(place[a] > place[b]) for a, b in combinations(range(n), 2)]
        cost = noise * rng.normal(size=(len(truth), 2))
        cost[np.arange(len(truth)), truth] -= 1.0
        costs.append(cost.ravel())
    return np.array(costs)


def by_gurobi(cost: np.ndarray, triples: np.ndarray, environment: object) -> float:
    """Returns the least cost, with transitivity as lazy constraints."""
    import gurobipy
    from gurobipy import GRB

    n = len(cost) // 2
    model = gurobipy.Model(env=environment)
    after = list(model.addVars(n, vtype="B", obj=(cost[1::2] - cost[0::2]).tolist()).values())
    model.ObjCon = float(cost[0::2].sum())

    def check(running: gurobipy.Model, where: int) -> None:
        if where == GRB.Callback.MIPSOL:
            labels = np.array(running.cbGetSolution(after)) > 0.5
            ab, bc, ac = labels[triples].T
            for x in np.flatnonzero((ab == bc) & (bc != ac)).tolist():
                one, two, three = triples[x].tolist()
                forward = after[one] + after[two] - after[three]
                running.cbLazy(forward <= 1) if ab[x] else running.cbLazy(forward >= 0)

    model.optimize(check)
    found = float(model.ObjVal)
    model.dispose()
    return found


def orders(rounds: int) -> None:
    """Temporal orders of 8, 12 and 20 events, at two levels of noise; what we cannot prove, HiGHS answers.

    Each problem is answered once, by both in turns, after `FIRST` others in which we load the solver and find out what
    pays.
    """
    import gurobipy

    environment = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "LazyConstraints": 1, "MIPGap": 0})
    for n, noise in product((8, 12, 20), (0.7, 1.2)):
        shape, triples = order(n)
        fast, costs = hasten.Speedup(shape.schema), draw_orders(n, noise, FIRST + 20 * rounds)
        for each in costs[:FIRST]:
            fast.predict(shape.problem(each))
        seconds, n_proved = np.zeros((2, len(costs) - FIRST)), 0
        for p, each in enumerate(costs[FIRST:]):
            problem, started = shape.problem(each), time.process_time()
            answer = fast.predict(problem)
            ended = time.process_time()
            theirs = by_gurobi(each, triples, environment)
            seconds[:, p], n_proved = (ended - started, time.process_time() - ended), n_proved + answer.proved
            assert np.isclose(answer.cost, theirs)
        (ours, peer), (typical, peers) = seconds.mean(axis=1), np.median(seconds, axis=1)
        print(f"order of {n}, noise {noise}: {n_proved / (20 * rounds):.0%} of {20 * rounds} proved,", end=" ")
        print(f"{1e3 * ours:.2f} ms (median {1e3 * typical:.2f}), Gurobi with lazy constraints", end=" ")
        print(f"{1e3 * peer:.2f} ms (median {1e3 * peers:.2f}): {peer / ours:.1f}x", flush=True)


# -- on demand --------------------------------------------------------------------------------------------------


def unstated(n: int) -> tuple[hasten.Structure, hasten.Family]:
    """Returns the relations of all pairs of events, and transitivity as a family: no triple is listed."""
    schema = transitivity()
    relation, transitive = schema.variables["relation"], schema.factors["transitive"]
    shape, (one, other) = schema.structure([relation] * (n * (n - 1) // 2)), np.triu_indices(n, 1)
    number = np.zeros((n, n), dtype=np.int64)
    number[one, other] = np.arange(len(one))

    def broken(labels: np.ndarray) -> np.ndarray:
        found, after = [], labels[number]
        for a in range(n - 2):
            later = slice(a + 1, n)
            ab, ac, bc = after[a, later, None], after[a, None, later], after[later, later]
            b, c = np.nonzero(np.triu((ab == bc) & (bc != ac), 1))
            found.append(np.stack([number[a, a + 1 + b], number[a + 1 + b, a + 1 + c], number[a, a + 1 + c]], axis=1))
        return np.concatenate(found)

    def mend(labels: np.ndarray) -> np.ndarray:
        place = np.bincount(np.where(labels == 1, one, other), minlength=n).argsort(kind="stable").argsort()
        return (place[one] > place[other]).astype(np.int64)

    return shape, hasten.Family(transitive, broken, mend)


def demand(rounds: int) -> None:
    """Orders of many events, of whose triples few are stated; what is not proved, HiGHS answers."""
    import gurobipy

    environment = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "LazyConstraints": 1, "MIPGap": 0})
    for n, noise in ((20, 0.5), (40, 0.5), (60, 0.5)):
        shape, family = unstated(n)
        costs, answer = draw_orders(n, noise, 3), hasten.OnDemand(shape, family, hasten.Speedup(shape.schema))
        problems = [shape.problem(each) for each in costs]
        answer(problems[0])  # loads kernels
        answer = hasten.OnDemand(shape, family, hasten.Speedup(shape.schema))
        began = time.process_time()
        found = [answer(problem) for problem in problems]
        ours = time.process_time() - began
        all_of_them, triples = order(n)
        began = time.process_time()
        whole = [hasten.Certifier()(all_of_them.problem(each)) for each in costs]
        stated = time.process_time() - began
        began = time.process_time()
        theirs = [by_gurobi(each, triples, environment) for each in costs]
        peer = time.process_time() - began
        assert np.allclose([each.cost for each in found], theirs)
        proved, sizes = np.mean([each.proved for each in found]), (found[-1].problem.structure, all_of_them)
        megabytes = [f"{each.compiled.n_bytes / 1e6:.1f} MB" for each in sizes]
        print(f"order of {n}, noise {noise}: {answer.n_members} of {len(triples)} triples stated,", end=" ")
        print(f"{proved:.0%} proved, {1e3 * ours / 3:.0f} ms, {megabytes[0]}; all stated", end=" ")
        print(f"{np.mean([each.proved for each in whole]):.0%}, {1e3 * stated / 3:.0f} ms, {megabytes[1]};", end=" ")
        print(f"Gurobi with lazy constraints {1e3 * peer / 3:.0f} ms ({peer / ours:.1f}x)", flush=True)


def main() -> None:
    parts = {"cuts": cuts, "orders": orders, "demand": demand}
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("parts", nargs="*", choices=[[], *parts], default=[])
    options.add_argument("--rounds", type=int, default=5)
    given = options.parse_args()
    for name in given.parts or parts:
        parts[name](given.rounds)


if __name__ == "__main__":
    main()
