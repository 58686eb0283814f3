"""On the field's own ground: chains and trees against dynamic programs in NumPy, rules that count, knapsacks.

    python benchmarks/ground.py [--solver gurobi] [--rounds 7]

Everything is timed in turns, by the clock, and the least of some rounds counts. The peers are checked: every cost must
be ours. Costs and tables are noise. Of the ways to write a dynamic program in NumPy the fastest counts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

import hasten

N = 400  # problems


def chain(n: int, n_labels: int, rules: bool = False) -> tuple[hasten.Structure, np.ndarray]:
    """Returns a chain and its table; with rules, two that count labels."""
    schema = hasten.Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    table = np.random.default_rng(0).normal(size=(n_labels, n_labels))
    follow = schema.factor("follow", before=tag, after=tag).set_table(table)
    shape = schema.structure()
    words = [shape.add(tag) for _ in range(n)]
    for before, after in pairwise(words):
        shape.connect(follow, before=before, after=after)
    if rules:
        shape.rule("at least one", [(word, "tag3") for word in words], at_least=1)
        shape.rule("at most three", [(word, "tag5") for word in words], at_most=3)
    return shape, table


def knapsack(n: int, n_rules: int) -> hasten.Structure:
    """Returns items of which half may be taken, by each of some weights."""
    schema = hasten.Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    items = [shape.add(item) for _ in range(n)]
    for r, weights in enumerate(np.random.default_rng(0).integers(1, 100, size=(n_rules, n)).tolist()):
        terms = [(v, "in", weight) for v, weight in zip(items, weights, strict=True)]
        shape.rule(f"weight {r}", terms, at_most=sum(weights) // 2)
    return shape


def hierarchy(n: int, most: int | None = None) -> tuple[hasten.Structure, np.ndarray]:
    """Returns a tree of yes/no labels, each of which needs the one above it, and who that is; `most` may be chosen."""
    rng = np.random.default_rng(0)
    above = np.sort([-1, *(int(rng.integers((v - 1) // 6, max(1, (v + 3) // 4))) for v in range(1, n))])
    schema = hasten.Schema()
    node = schema.variable("node", ["no", "yes"])
    under = schema.factor("under", above=node, below=node).allow(above="yes").allow(above="no", below="no")
    shape = schema.structure()
    nodes = [shape.add(node) for _ in range(n)]
    for v in range(1, n):
        shape.connect(under, above=nodes[above[v]], below=nodes[v])
    if most is not None:
        shape.rule("few", [(v, "yes") for v in nodes], at_most=most)
    return shape, above


def viterbi(costs: np.ndarray, table: np.ndarray) -> float:
    """Returns the least cost of one chain, and finds its labels."""
    best = costs.copy()
    for t in range(1, len(costs)):
        best[t] += (best[t - 1][:, None] + table).min(axis=0)
    labels = [int(best[-1].argmin())]
    for t in range(len(costs) - 2, -1, -1):
        labels.append(int((best[t] + table[:, labels[-1]]).argmin()))
    return float(best[-1].min())


def viterbi_by_label(costs: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Returns the least costs of many chains of one length, problems in the innermost axis, label after label."""
    best = np.ascontiguousarray(costs.transpose(1, 2, 0))
    least, sums = np.empty(best.shape[1:]), np.empty(best.shape[1:])
    for t in range(1, len(best)):
        np.add(best[t - 1, 0], table[0][:, None], out=least)
        for i in range(1, len(table)):
            np.add(best[t - 1, i], table[i][:, None], out=sums)
            np.minimum(least, sums, out=least)
        best[t] += least
    return _traced(best, table)


def viterbi_at_once(costs: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Does the same, all pairs of labels at once."""
    best = np.ascontiguousarray(costs.transpose(1, 2, 0))
    sums = np.empty((len(table), *best.shape[1:]))
    for t in range(1, len(best)):
        np.add(best[t - 1][:, None], table[:, :, None], out=sums)
        best[t] += sums.min(axis=0)
    return _traced(best, table)


def viterbi_with_choices(costs: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Does the same as it is mostly written: problems in the outermost axis, choices kept."""
    best, back = costs[:, 0], []
    for t in range(1, costs.shape[1]):
        sums = best[:, :, None] + table
        chosen = sums.argmin(axis=1)
        best = np.take_along_axis(sums, chosen[:, None], axis=1)[:, 0] + costs[:, t]
        back.append(chosen)
    labels = [best.argmin(axis=1)]
    for chosen in reversed(back):
        labels.append(chosen[np.arange(len(chosen)), labels[-1]])
    return best.min(axis=1)


def _traced(best: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Finds the labels along the answers alone; returns the least costs."""
    labels = [best[-1].argmin(axis=0)]
    for each in best[-2::-1]:
        labels.append((each + table[:, labels[-1]]).argmin(axis=0))
    return best[-1].min(axis=0)


def levels_of(above: np.ndarray) -> list[tuple[slice, np.ndarray, np.ndarray]]:
    """Returns the levels of a tree below its root, with who is above, and where the children of each of these start."""
    depth = np.zeros(len(above), dtype=int)
    for v in range(1, len(above)):
        depth[v] = depth[above[v]] + 1
    levels = []
    for level in range(1, depth.max() + 1):
        (nodes,) = np.nonzero(depth == level)  # one after the other: parents are sorted
        ups = above[nodes]
        levels.append((slice(nodes[0], nodes[-1] + 1), ups, np.flatnonzero(np.diff(ups, prepend=-1))))
    return levels


def tree_by_level(costs: np.ndarray, levels: list, table: np.ndarray) -> np.ndarray:
    """Returns the least costs of many trees of two labels, level by level: with any table."""
    best = np.ascontiguousarray(costs.transpose(1, 2, 0))
    for nodes, ups, starts in reversed(levels):
        low = np.minimum(best[nodes, 0, None] + table[:, 0, None], best[nodes, 1, None] + table[:, 1, None])
        best[ups[starts]] += np.add.reduceat(low, starts, axis=0)
    labels = np.empty((len(best), len(costs)), dtype=np.int64)
    labels[0] = best[0].argmin(axis=0)
    for nodes, ups, _ in levels:
        labels[nodes] = best[nodes, 1] + table[labels[ups], 1] < best[nodes, 0] + table[labels[ups], 0]
    return best[0].min(axis=0)


def hierarchy_by_level(costs: np.ndarray, levels: list) -> np.ndarray:
    """Does the same for the one table of a hierarchy: what "yes" gains is all that counts."""
    gain = np.ascontiguousarray((costs[:, :, 1] - costs[:, :, 0]).T)
    for nodes, ups, starts in reversed(levels):
        gain[ups[starts]] += np.add.reduceat(np.minimum(gain[nodes], 0), starts, axis=0)
    labels = gain < 0
    for nodes, ups, _ in levels:
        labels[nodes] &= labels[ups]
    return costs[:, :, 0].sum(axis=1) + np.minimum(gain[0], 0)


def in_turns(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Returns the least seconds of each, over some rounds."""
    least = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            started = time.perf_counter()
            run()
            least[i] = min(least[i], time.perf_counter() - started)
    return least


def chains(n: int, n_labels: int, count: int, rounds: int) -> None:
    """Chains, batched and one by one, against NumPy."""
    shape, table = chain(n, n_labels)
    costs = np.random.default_rng(1).normal(size=(count, n, n_labels))
    batch, certify = shape.batch(costs.reshape(count, -1)), hasten.Certifier()
    problems = [batch[p] for p in range(100)]
    ways = viterbi_by_label, viterbi_at_once, viterbi_with_choices
    found = certify(batch)
    assert found.proved.all()
    assert all(np.allclose(found.cost, way(costs, table)) for way in ways)
    assert np.isclose(certify(problems[0]).cost, viterbi(costs[0], table))
    ours, one, numpy_one, *numpys = in_turns(
        rounds,
        lambda: certify(batch),
        lambda: [certify(problem) for problem in problems],
        lambda: [viterbi(each, table) for each in costs[:100]],
        *(partial(way, costs, table) for way in ways),
    )
    numpy = min(numpys)
    print(f"{count} chains of {n}, {n_labels} labels, microseconds, ours and NumPy's:", end=" ")
    print(f"batched {1e6 * ours / count:.1f}, {1e6 * numpy / count:.1f} ({numpy / ours:.1f}x);", end=" ")
    print(f"single {1e4 * one:.1f}, {1e4 * numpy_one:.1f} ({numpy_one / one:.1f}x)")


def trees(n: int, rounds: int) -> None:
    """Hierarchies of yes/no labels, batched, against NumPy."""
    shape, above = hierarchy(n)
    levels, table = levels_of(above), np.array([[0, np.inf], [0, 0]])
    costs = np.random.default_rng(1).normal(size=(N, n, 2))
    costs[:, :, 1] += 0.3
    batch, certify = shape.batch(costs.reshape(N, -1)), hasten.Certifier()
    found = certify(batch)
    assert found.proved.all()
    assert np.allclose(found.cost, tree_by_level(costs, levels, table))
    assert np.allclose(found.cost, hierarchy_by_level(costs, levels))
    blocks = np.array_split(costs, 8)  # these stay in the cache
    ours, whole, small, lean, lean_small = in_turns(
        rounds,
        lambda: certify(batch),
        lambda: tree_by_level(costs, levels, table),
        lambda: [tree_by_level(each, levels, table) for each in blocks],
        lambda: hierarchy_by_level(costs, levels),
        lambda: [hierarchy_by_level(each, levels) for each in blocks],
    )
    general, special = min(whole, small), min(lean, lean_small)
    print(f"tree of {n}, microseconds: {1e6 * ours / N:.1f};", end=" ")
    print(f"NumPy with any table {1e6 * general / N:.1f} ({general / ours:.1f}x),", end=" ")
    print(f"with this one table only {1e6 * special / N:.1f} ({special / ours:.1f}x)")


def counted(rounds: int, name: str) -> None:
    """A tree of 499 with at most 40 labels, and a chain whose rules bind, against a solver."""
    ruled, (shape, _) = chain(20, 17, rules=True)[0], hierarchy(499, most=40)
    costs = np.random.default_rng(1).normal(size=(100, 499, 2))
    costs[:, :, 1] += 0.3
    words = ruled.batch(np.random.default_rng(1).normal(size=(N, ruled.n_labels)))
    certify = hasten.Certifier()
    binds = certify(words).cost > certify(chain(20, 17)[0].batch(words.cost.reshape(N, -1))).cost + 1e-9
    for what, batch, peer in (
        ("tree of 499, at most 40", shape.batch(costs.reshape(100, -1)), name),
        ("chain of 20, two rules that bind", words.select(binds), "highs"),
    ):
        found, solver = certify(batch), hasten.make_solver(peer)
        problems = [batch[p] for p in range(10)]
        assert np.allclose([solver.solve(problem).cost for problem in problems], found.cost[:10])
        ours, one, theirs = in_turns(
            rounds,
            lambda batch=batch: certify(batch),
            lambda problems=problems: [certify(problem) for problem in problems],
            lambda problems=problems, solver=solver: [solver.solve(problem) for problem in problems],
        )
        print(f"{what}: {found.proved.mean():.1%} proved, batched {1e6 * ours / len(batch):.0f} microseconds,", end=" ")
        print(f"single {1e5 * one:.0f}, {peer} {1e5 * theirs:.0f} ({theirs / one:.0f}x)")


def rules(rounds: int) -> None:
    """A chain with two rules, on the problems that keep them unasked."""
    (plain, _), (ruled, _) = chain(20, 17), chain(20, 17, rules=True)
    costs = np.random.default_rng(1).normal(size=(4 * N, plain.n_labels))
    certify = hasten.Certifier()
    free, strict = certify(plain.batch(costs)), certify(ruled.batch(costs))
    keeps = strict.cost <= free.cost + 1e-9
    one, other = plain.batch(costs).select(keeps), ruled.batch(costs).select(keeps)
    without, with_rules = in_turns(3 * rounds, lambda: certify(one), lambda: certify(other))
    print(f"rules that do not bind ({keeps.mean():.0%} of problems): {with_rules / without:.2f} times the time without")
    print(f"  {strict.proved.mean():.1%} of all are proved without a solver")


def knapsacks(n: int, n_rules: int, rounds: int, name: str) -> None:
    """Knapsacks, one by one, against a solver that reuses its model; what we cannot prove, it answers."""
    shape = knapsack(n, n_rules)
    costs = np.zeros((40, n, 2))
    costs[:, :, 1] = -np.random.default_rng(1).integers(1, 100, size=(40, n))
    problems = [shape.problem(each.ravel()) for each in costs]
    solver, fast = hasten.make_solver(name), hasten.Speedup(shape.schema, solver=name)
    theirs = [solver.solve(problem).cost for problem in problems]
    assert np.allclose([fast.predict(problem).cost for problem in problems], theirs)
    ours, peer = in_turns(
        rounds,
        lambda: [fast.predict(problem) for problem in problems],
        lambda: [solver.solve(problem) for problem in problems],
    )
    print(f"knapsack {n} x {n_rules}: {25 * ours:.2f} ms, {name} {25 * peer:.2f} ms ({peer / ours:.1f}x),", end=" ")
    print(f"{fast.counters.solver_calls} calls of it")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--solver", default="highs")
    options.add_argument("--rounds", type=int, default=7)
    given = options.parse_args()
    for n, n_labels, count in ((20, 17, N), (20, 17, 5 * N), (20, 45, N), (60, 2, N)):
        chains(n, n_labels, count, given.rounds)
    trees(499, given.rounds)
    rules(given.rounds)
    counted(max(1, given.rounds // 3), given.solver)
    for n, n_rules in ((20, 3), (30, 5), (40, 5)):
        knapsacks(n, n_rules, max(1, given.rounds // 3), given.solver)


if __name__ == "__main__":
    main()
