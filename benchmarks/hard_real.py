"""Problems that take seconds: placement of operators, sharding, line-ups, mixed precision, cloud plans, e-graphs.

    python benchmarks/hard_real.py placement [--data ../shared/data/placement] [--names B V K] [--limit 60]
    python benchmarks/hard_real.py programs [--kind lineups ...] [--count 3] [--limit 60]
    python benchmarks/hard_real.py paths --count 300; python benchmarks/hard_real.py anew --count 20

`placement` reads instances of a contest on the parallelism of neural networks: choose one strategy for each operator;
pairs of operators have tables; at every moment the memory of what is alive may not exceed a limit. Each moment is a
rule; those that can never bind, or that another implies, are left out. Where there are too many moments, a rule holds
over a window of them: the memory of all that is alive at some time of it may not exceed the limit. Labellings that keep
these rules are valid, but bounds are not: so the bound is that of the same problem without rules, for half of the time.

`programs` draws models after descriptions of what people solve with PuLP, and reads e-graphs. Each is solved once, as a
model that nobody has seen: `hasten.adopt` and `solve` against CBC and HiGHS, by the wall clock, in turns; kernels are
compiled before. Every answer is compared. `x` is how many times as fast hasten is.

`paths` are shortest paths through grids, and `anew` 26 small models, each built anew for every input: against Gurobi.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pulp

import hasten

FORBIDDEN = 1e17  # costs from here on
MOST_TERMS = 10**7  # of rules; more are stated over windows
WINDOW = 80  # moments
BEST_KNOWN = {"B": 532_843.0, "V": 1_617_084.0}


# -- placement ---------------------------------------------------------------------------------------------------------


class Placement:
    """An instance: costs and memory of each node's strategies, tables of pairs, and when nodes are alive."""

    def __init__(self, path: Path) -> None:
        with gzip.open(path) as file:
            given = json.load(file)["problem"]
        nodes, edges = given["nodes"], given["edges"]
        self.costs = [allowed(each) for each in nodes["costs"]]
        self.usages = [np.array(each, dtype=float) for each in nodes["usages"]]
        self.alive = np.array(nodes["intervals"])
        self.limit = float(given["usage_limit"])
        self.edges = [tuple(each) for each in edges["nodes"]]
        shapes = [[len(self.costs[v]) for v in edge] for edge in self.edges]
        self.tables = [allowed(each).reshape(shape) for each, shape in zip(edges["costs"], shapes, strict=True)]

    def structure(self) -> tuple[hasten.Structure, dict[int, np.ndarray]]:
        """Returns the nodes and edges as a structure without rules, and the tables of its factors."""
        schema = hasten.Schema()
        sizes = sorted({len(cost) for cost in self.costs})
        kinds = {n: schema.variable(f"{n} strategies", [str(i) for i in range(n)]) for n in sizes}
        shapes = sorted({table.shape for table in self.tables})
        factors = {(n, m): schema.factor(f"{n} by {m}", learned=False, one=kinds[n], other=kinds[m]) for n, m in shapes}
        shape = schema.structure([kinds[len(cost)] for cost in self.costs])
        connected = zip(self.edges, self.tables, strict=True)
        return shape, {shape.connect(factors[t.shape], one=u, other=v): t for (u, v), t in connected}

    def rules(self) -> tuple[list[tuple[np.ndarray, float]], bool]:
        """Returns rules, the nodes of each and how much they may use above their least; and whether over windows."""
        least, most = (np.array([take(each) for each in self.usages]) for take in (np.min, np.max))
        begin, end = self.alive.T
        lives, varies = end > begin, most > least
        moments = np.unique(begin[lives])
        n_terms = sum(
            int((lives & varies & (begin <= t) & (t < end)).sum()) for t in moments[:: 1 + len(moments) // 64]
        )
        windows = n_terms / 64 * len(moments) * np.mean([len(each) for each in self.usages]) > MOST_TERMS
        spans = [(t, t + 1) for t in moments]
        if windows:
            spans = [(t, t + WINDOW) for t in range(0, int(end.max()), WINDOW)]
        found: list[tuple[np.ndarray, float]] = []
        for start, stop in spans:
            there = lives & (begin < stop) & (end > start)
            if most[there].sum() > self.limit:
                found.append((np.flatnonzero(there & varies), self.limit - float(least[there].sum())))
        return found if windows else maximal(found), windows

    def problem(self) -> tuple[hasten.Problem, hasten.Problem | None]:
        """Returns the problem and, where its rules are over windows, the one without rules, for bounds."""
        shape, tables = self.structure()
        free = shape.problem(np.concatenate(self.costs), tables=tables)
        rules, windows = self.rules()
        stated = []
        for number, (nodes, room) in enumerate(rules):
            terms = [
                (int(v), str(i), float(use))
                for v in nodes
                for i, use in enumerate(self.usages[v] - self.usages[v].min())
                if use > 0.0
            ]
            stated.append(hasten.Rule.of(f"memory {number}", terms, at_most=room))
        ruled = shape.with_rules(stated).problem(np.concatenate(self.costs), tables=tables)
        return ruled, free if windows else None

    def uses(self, labels: np.ndarray) -> float:
        """Returns the most memory that a labelling takes at any moment."""
        change = np.zeros(int(self.alive.max()) + 1)
        for v, (begin, end) in enumerate(self.alive.tolist()):
            if end > begin:
                change[begin] += self.usages[v][labels[v]]
                change[end] -= self.usages[v][labels[v]]
        return float(change.cumsum().max())


def allowed(costs: list[float]) -> np.ndarray:
    """Returns costs, with those that stand for forbidden as inf."""
    found = np.array(costs, dtype=float)
    return np.where(found >= FORBIDDEN, np.inf, found)


def maximal(rules: list[tuple[np.ndarray, float]]) -> list[tuple[np.ndarray, float]]:
    """Leaves out rules that another one implies: it has all their nodes, and no more room."""
    sets = [(set(nodes.tolist()), room) for nodes, room in rules]
    kept = []
    for n, (mine, room) in enumerate(sets):
        others = ((m, *other) for m, other in enumerate(sets) if m != n)
        if not any(mine <= theirs and (left, m) < (room, n) for m, theirs, left in others):
            kept.append(rules[n])
    return kept


def place(names: list[str], folder: Path, limit: float) -> None:
    """Answers placements, and prints each better answer."""
    for name in names:
        instance, began = Placement(folder / f"{name}.json.gz"), time.perf_counter()
        problem, free = instance.problem()
        print(f"{name}: {problem.structure!r}, built in {time.perf_counter() - began:.1f} s", flush=True)
        began, bound = time.perf_counter(), -np.inf
        share = limit / 3 if free is not None else 0.0
        if free is not None:
            bound = hasten.Certifier(time_limit=share)(free).bound
        answer = None
        for answer in hasten.Certifier(time_limit=limit - share).improving(problem):
            least = answer.bound if free is None else bound
            known = f", {answer.cost / BEST_KNOWN[name]:.4f} of the best known" if name in BEST_KNOWN else ""
            seconds = time.perf_counter() - began
            print(
                f"  {seconds:6.2f} s  cost {answer.cost:.0f}  bound {least:.0f}  {answer.status.name}{known}",
                flush=True,
            )
        assert answer is not None
        if answer.values is not None:
            fits = instance.uses(answer.labels) <= instance.limit * (1 + 1e-9)
            print(f"  memory within its limit at every moment: {fits}; gap {1 - least / answer.cost:.2%}")
        print(f"  peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GB", flush=True)


# -- programs ----------------------------------------------------------------------------------------------------------


def binaries(name: str, *sizes: int) -> np.ndarray:
    """Returns an array of binary variables."""
    found = np.empty(sizes, dtype=object)
    for at in np.ndindex(*sizes):
        found[at] = pulp.LpVariable(f"{name}_{'_'.join(map(str, at))}", cat="Binary")
    return found


def sharding(rng: np.random.Generator) -> pulp.LpProblem:
    """A compiler's: one strategy a node of a DAG, a binary for each pair of strategies on an edge, memory."""
    n, k = 36, 4
    model, x = pulp.LpProblem("sharding", pulp.LpMinimize), binaries("x", n, k)
    cost, memory = rng.integers(1, 60, (n, k)), rng.integers(5, 40, (n, k))
    terms = [cost[v, i] * x[v, i] for v in range(n) for i in range(k)]
    for v in range(n):
        model += pulp.lpSum(x[v]) == 1
    for v in range(1, n):
        for u in rng.choice(v, size=min(v, 1 + int(rng.random() < 0.4)), replace=False):
            pair, table = binaries(f"e{u}_{v}", k, k), rng.integers(0, 80, (k, k))
            terms += [table[i, j] * pair[i, j] for i in range(k) for j in range(k)]
            for i in range(k):
                model += pulp.lpSum(pair[i]) == x[u, i]
                model += pulp.lpSum(pair[:, i]) == x[v, i]
    least, most = memory.min(axis=1).sum(), memory.max(axis=1).sum()
    used = [int(memory[v, i]) * x[v, i] for v in range(n) for i in range(k)]
    model += pulp.lpSum(used) <= int(least + 0.35 * (most - least))
    model += pulp.lpSum(terms)
    return model


def products(rng: np.random.Generator) -> pulp.LpProblem:
    """The same, each pair's binary linearised as `z <= x`, `z <= y`, `z >= x + y - 1`, on a chain with chords."""
    n, k = 20, 3
    model, x = pulp.LpProblem("products", pulp.LpMinimize), binaries("x", n, k)
    terms = [int(rng.integers(1, 60)) * each for each in x.ravel()]
    for v in range(n):
        model += pulp.lpSum(x[v]) == 1
    for u, v in [(v - 1, v) for v in range(1, n)] + [(v - 4, v) for v in range(4, n, 3)]:
        z = binaries(f"z{u}_{v}", k, k)
        for i, j in np.ndindex(k, k):
            model += z[i, j] <= x[u, i]
            model += z[i, j] <= x[v, j]
            model += z[i, j] >= x[u, i] + x[v, j] - 1
            terms.append(int(rng.integers(-40, 40)) * z[i, j])
    model += pulp.lpSum(terms)
    return model


def lineups(rng: np.random.Generator) -> pulp.LpProblem:
    """A fantasy league's: nine players of some positions, under a salary cap, at most four of a team."""
    n, need = 120, {"QB": 1, "RB": 2, "WR": 3, "TE": 1, "FLEX": 1, "DST": 1}
    model, x = pulp.LpProblem("lineup", pulp.LpMaximize), binaries("p", n)
    places, teams = rng.choice(list(need), size=n), rng.integers(0, 16, n)
    points = rng.gamma(6.0, 2.0, n)
    salary = (30 + 4 * points + rng.normal(0, 8, n)).clip(25, 110).round() * 100
    for name, count in need.items():
        model += pulp.lpSum(x[places == name]) == count
    model += pulp.lpSum(int(salary[v]) * x[v] for v in range(n)) <= 60_000
    for team in range(16):
        model += pulp.lpSum(x[teams == team]) <= 4
    model += pulp.lpSum(float(points[v].round(2)) * x[v] for v in range(n))
    return model


def precision(rng: np.random.Generator) -> pulp.LpProblem:
    """A quantiser's: bits of each layer, at least error, where size and time are limited."""
    n, bits = 40, np.array([2, 3, 4, 6, 8])
    model, x = pulp.LpProblem("precision", pulp.LpMinimize), binaries("b", n, len(bits))
    weights, error = rng.integers(1, 60, n) * 64, rng.gamma(2.0, 1.0, n)[:, None] / bits**2
    speed = rng.integers(2, 30, n)[:, None] * (bits + rng.integers(0, 3, (n, len(bits))))
    for v in range(n):
        model += pulp.lpSum(x[v]) == 1
    every = [(v, i) for v in range(n) for i in range(len(bits))]
    model += pulp.lpSum(int(weights[v] * bits[i]) * x[v, i] for v, i in every) <= int(4.2 * weights.sum())
    model += pulp.lpSum(int(speed[v, i]) * x[v, i] for v, i in every) <= int(np.median(speed, axis=1).sum())
    model += pulp.lpSum(float((1e3 * error[v, i]).round(3)) * x[v, i] for v, i in every)
    return model


def cloud(rng: np.random.Generator) -> pulp.LpProblem:
    """A cloud planner's: a machine type for each task of a chain, transfers between them, and a limit on the time."""
    n, k = 24, 8
    model, x = pulp.LpProblem("cloud", pulp.LpMinimize), binaries("t", n, k)
    price, seconds = rng.integers(1, 40, (n, k)), rng.integers(1, 50, (n, k))
    terms = [int(price[v, i]) * x[v, i] for v in range(n) for i in range(k)]
    for v in range(n):
        model += pulp.lpSum(x[v]) == 1
        if v:
            moves = binaries(f"m{v}", k, k)
            transfer = rng.integers(0, 12, (k, k)) * (1 - np.eye(k, dtype=int))
            for i in range(k):
                model += pulp.lpSum(moves[i]) == x[v - 1, i]
                model += pulp.lpSum(moves[:, i]) == x[v, i]
            terms += [int(transfer[i, j]) * moves[i, j] for i in range(k) for j in range(k)]
    taken = pulp.lpSum(int(seconds[v, i]) * x[v, i] for v in range(n) for i in range(k))
    model += taken <= int(seconds.min(axis=1).sum() + 0.3 * (seconds.mean() * n))
    model += pulp.lpSum(terms)
    return model


def makespan(rng: np.random.Generator) -> pulp.LpProblem:
    """Tasks on machines, the largest of whose times is least: a continuous maximum of sums, with a budget."""
    n, k = 14, 4
    model, x = pulp.LpProblem("makespan", pulp.LpMinimize), binaries("x", n, k)
    seconds, price, longest = rng.integers(5, 60, (n, k)), rng.integers(1, 20, (n, k)), pulp.LpVariable("longest", 0)
    for v in range(n):
        model += pulp.lpSum(x[v]) == 1
    for m in range(k):
        model += longest >= pulp.lpSum(int(seconds[v, m]) * x[v, m] for v in range(n))
    model += pulp.lpSum(int(price[v, m]) * x[v, m] for v in range(n) for m in range(k)) <= int(8 * n)
    model += longest
    return model


def egraph(rng: np.random.Generator) -> pulp.LpProblem:
    """An e-graph's: one node of each class that is needed, no cycles (classes have levels), each paid once."""
    n, model = 60, pulp.LpProblem("egraph", pulp.LpMinimize)
    needed, terms = binaries("c", n), []
    model += needed[n - 1] == 1
    for c in range(n):
        nodes = binaries(f"n{c}", int(rng.integers(1, 4)))
        model += pulp.lpSum(nodes) == needed[c]
        for node in nodes:
            terms.append(int(rng.integers(1, 20)) * node)
            for child in rng.choice(c, size=min(c, int(rng.integers(0, 4))), replace=False):
                model += node <= needed[child]
    model += pulp.lpSum(terms)
    return model


KINDS: dict[str, Callable[[np.random.Generator], pulp.LpProblem]] = {
    "sharding": sharding,
    "products": products,
    "lineups": lineups,
    "precision": precision,
    "cloud": cloud,
    "makespan": makespan,
    "egraphs": egraph,
}


def compare(kinds: list[str], count: int, limit: float) -> None:
    """Solves models once by each, and prints a line for each kind."""
    for kind in kinds:
        seconds, wrong, finished = np.zeros((3, count)), 0, np.zeros((3, count), dtype=int)
        for n in range(count + 1):  # the first one compiles, and does not count
            values = []
            for peer in range(3):
                model = KINDS[kind](np.random.default_rng([n, len(kind)]))
                began = time.perf_counter()
                if peer == 0:
                    answer = hasten.adopt(model).solve(time_limit=limit)
                    values.append((answer.objective, answer.optimal))
                else:
                    command = pulp.PULP_CBC_CMD if peer == 1 else pulp.HiGHS
                    model.solve(command(msg=False, timeLimit=limit, threads=1, gapRel=0.0))
                    values.append((pulp.value(model.objective), model.sol_status == pulp.LpSolutionOptimal))
                if n:
                    seconds[peer, n - 1], finished[peer, n - 1] = time.perf_counter() - began, values[-1][1]
            right = [value for value, optimal in values if optimal]
            wrong += bool(right) and max(right) - min(right) > 1e-5 * max(1.0, abs(right[0]))
        ours, cbc, highs = seconds.sum(axis=1)
        counts = "/".join(str(each) for each in finished.sum(axis=1))
        print(
            f"{kind:10} hasten {ours:7.2f} s, CBC {cbc:7.2f} s ({cbc / ours:5.2f}x), HiGHS {highs:7.2f} s "
            f"({highs / ours:5.2f}x); optimal {counts} of {count}; {wrong} wrong",
            flush=True,
        )


# -- networks, and models built anew -----------------------------------------------------------------------------------


def gurobi() -> Any:
    """Returns a quiet environment of Gurobi, with one thread and no gap."""
    import gurobipy

    return gurobipy.Env(params={"OutputFlag": 0, "Threads": 1, "MIPGap": 0.0})


def grid_model(side: int, environment: Any) -> Any:
    """A shortest path through a square grid, to the right and down, as binaries with a balance at each node."""
    import gurobipy

    arcs = [(v, v + step) for v in range(side * side) for step in (1, side) if step == side or (v + 1) % side]
    arcs = [(tail, head) for tail, head in arcs if head < side * side]
    model = gurobipy.Model(env=environment)
    flow = model.addVars(arcs, vtype="B", name="flow")
    ends = {0: 1, side * side - 1: -1}
    model.addConstrs(flow.sum(v, "*") - flow.sum("*", v) == ends.get(v, 0) for v in range(side * side))
    model.update()
    return model


def paths(count: int) -> None:
    """Answers shortest paths one by one and all at once, against Gurobi with its model reused, by processor time."""
    for side in (5, 10, 20):
        model = grid_model(side, gurobi())
        program, columns = hasten.adopt(model), model.getVars()
        objectives = np.random.default_rng(side).integers(1, 40, (count, len(columns))) / 4.0
        program.solve(objective=objectives[0]), program.solve_all(objectives)
        began, theirs = time.process_time(), []
        for c in objectives:
            model.setAttr("Obj", columns, c.tolist())
            model.optimize()
            theirs.append(model.ObjVal)
        peer, began = time.process_time() - began, time.process_time()
        single = [program.solve(objective=c) for c in objectives]
        one, began = time.process_time() - began, time.process_time()
        answers = program.solve_all(objectives)
        many = time.process_time() - began
        assert np.allclose(answers.objective, theirs)
        assert np.allclose([each.objective for each in single], theirs)
        proved = int(answers.proved.sum()), sum(each.proved for each in single)
        print(
            f"paths {side:3d}x{side:<3d} Gurobi {1e6 * peer / count:8.1f} us, one by one {1e6 * one / count:7.1f} us "
            f"({peer / one:6.1f}x), at once {1e6 * many / count:7.2f} us ({peer / many:7.1f}x); "
            f"proved {proved} of {count}",
            flush=True,
        )


def small_model(kind: int, rng: np.random.Generator, environment: Any) -> Any:
    """One of 26 small models of a kind that neuro-symbolic code builds for each input, with costs from a network."""
    import gurobipy

    n, k = 2 + kind % 13, 4 + 2 * (kind // 13)
    model = gurobipy.Model(env=environment)
    x = model.addVars(n, k, vtype="B", name="x", obj=rng.normal(size=n * k).round(3).tolist())
    model.addConstrs((x.sum(v, "*") == 1 for v in range(n)), name="one")
    model.addConstrs((x[v, i] + x[v + 1, i] <= 1 for v in range(n - 1) for i in range(k)), name="differ")
    model.addConstr(gurobipy.quicksum(i * x[v, i] for v in range(n) for i in range(k)) <= 2 * n, name="sum")
    model.update()
    return model


def anew(count: int) -> None:
    """Answers models that are built anew each time: `adopt` and `solve` against `optimize`, by processor time."""
    environment, rng, taken = gurobi(), np.random.default_rng(0), np.zeros((3, 26))
    for turn in range(count + 2):  # the first two load or compile
        for kind in range(26):
            began = time.process_time()
            model = small_model(kind, rng, environment)
            built = time.process_time()
            answer = hasten.adopt(model).solve()
            ours = time.process_time()
            model.optimize()
            theirs = time.process_time()
            assert abs(answer.objective - model.ObjVal) < 1e-6
            if turn > 1:
                taken[:, kind] += built - began, ours - built, theirs - ours
    build, ours, theirs = 1e6 * taken.sum(axis=1) / taken.shape[1] / count
    each = taken[2] / taken[1]
    print(
        f"26 models, {count} times: building {build:.0f} us, hasten {ours:.0f} us, Gurobi {theirs:.0f} us: "
        f"{theirs / ours:.2f}x ({each.min():.2f} to {each.max():.2f}x); "
        f"with building {(build + theirs) / (build + ours):.2f}x"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("placement", "programs", "paths", "anew"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data/placement"))
    parser.add_argument("--names", nargs="+", default=["B", "V"])
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--count", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0)
    options = parser.parse_args()
    if options.what == "placement":
        hasten.Certifier(time_limit=0.1)(hasten.Schema().structure().problem([]))  # loads or compiles
        place(options.names, options.data, options.limit)
    elif options.what in ("paths", "anew"):
        {"paths": paths, "anew": anew}[options.what](options.count)
    else:
        compare(options.kind, options.count, options.limit)


if __name__ == "__main__":
    main()
