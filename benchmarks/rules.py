"""`solver="auto"` against Gurobi, on problems of rules alone: packing, covering and stable sets.

    python benchmarks/rules.py

Problems are answered one by one in turns, in processor time. Every answer is compared. Gurobi is our back-end, or
gurobipy by hand, its model reused.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import combinations, product

import numpy as np

import hasten


def rows(kind: str, n: int) -> hasten.Structure:
    """Returns items with rules: at most two of six (packing), one of five (cover), no two neighbours (stable set)."""
    schema, rng = hasten.Schema(), np.random.default_rng(0)
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(item)
    if kind == "stable set":
        for a, b in combinations(range(n), 2):
            if rng.random() < 0.15:
                shape.rule(f"{a}, {b}", [(a, "in"), (b, "in")], at_most=1)
        return shape
    for r in range(n // 2 if kind == "packing" else n):
        some = rng.choice(n, 6 if kind == "packing" else 5, replace=False).tolist()
        limit = {"at_most": 2} if kind == "packing" else {"at_least": 1}
        shape.rule(f"rule {r}", [(v, "in") for v in some], **limit)
    return shape


def by_hand(shape: hasten.Structure) -> Callable[[np.ndarray], float]:
    """Returns what a user of gurobipy writes: a binary column for each item, and only the objective changes."""
    import gurobipy

    graph = shape.graph
    environment = gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "MIPGap": 0})
    model = gurobipy.Model(env=environment)
    columns = list(model.addVars(shape.n_variables, vtype="B").values())
    for r in range(len(graph.row_low)):
        some = [columns[v] for v in graph.row_variable[graph.row_first[r] : graph.row_first[r + 1]].tolist()]
        least, most = float(graph.row_low[r]), float(graph.row_high[r])
        model.addLConstr(gurobipy.LinExpr([1.0] * len(some), some), *("<", most) if most < np.inf else (">", least))
    model.update()

    def solve(costs: np.ndarray) -> float:
        model.setAttr("Obj", columns, costs[:, 1].tolist())
        model.optimize()
        model.getAttr("X", columns)
        return float(model.ObjVal)

    return solve


def main() -> None:
    """Problems of rules alone, one by one in turns, first calls included."""
    first = rows("packing", 30)  # loads kernels and solvers
    hasten.Speedup(first.schema, solver="auto").predict(first.problem(np.random.default_rng(0).normal(size=60)))
    hasten.Certifier(max_nodes=30_000).report(first.problem(np.random.default_rng(0).normal(size=60)))
    by_hand(first)(np.ones((30, 2)))
    for (kind, n, count), seed in product(
        (("packing", 80, 60), ("cover", 60, 60), ("stable set", 60, 30)), range(1, 4)
    ):
        shape, costs = rows(kind, n), np.zeros((count, n, 2))
        costs[:, :, 1] = np.random.default_rng(seed).integers(1, 100, size=(count, n)) * (1 if kind == "cover" else -1)
        shape.problem(costs[0].ravel())
        fast, seconds, found = hasten.Speedup(shape.schema, solver="auto"), np.zeros(3), np.zeros((count, 3))
        solver = hasten.make_solver("gurobi")
        began = time.process_time()
        hand = by_hand(shape)
        seconds[2] += time.process_time() - began
        ways = (
            lambda each, fast=fast, shape=shape: fast.predict(shape.problem(each.ravel())).cost,
            lambda each, solver=solver, shape=shape: solver.solve(shape.problem(each.ravel())).cost,
            hand,
        )
        for p, each in enumerate(costs):
            for w, way in enumerate(ways):
                began = time.process_time()
                found[p, w] = way(each)
                seconds[w] += time.process_time() - began
        assert np.allclose(found, found[:, :1])
        ours, back_end, theirs = (1e3 * seconds / count).tolist()
        print(
            f"{kind} {n}, seed {seed}: auto {ours:.2f} ms; our Gurobi {back_end:.2f} ms ({back_end / ours:.2f}x),",
            end=" ",
        )
        print(f"gurobipy by hand {theirs:.2f} ms ({theirs / ours:.2f}x); {fast.counters}", flush=True)


if __name__ == "__main__":
    main()
