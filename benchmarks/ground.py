"""On the field's own ground: chains against Viterbi's algorithm in NumPy, rules that do not bind, knapsacks.

    python benchmarks/ground.py [--solver gurobi] [--rounds 7]

Everything is timed in turns, by the clock, and the least of some rounds counts. The peers are checked: every cost must
be ours. Costs and tables are noise.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
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


def viterbi(costs: np.ndarray, table: np.ndarray) -> float:
    """Returns the least cost of one chain, and finds its labels on the way."""
    best, back = costs[0], []
    columns = np.arange(len(table))
    for cost in costs[1:]:
        sums = best[:, None] + table
        chosen = sums.argmin(axis=0)
        best = sums[chosen, columns] + cost
        back.append(chosen)
    labels = [int(best.argmin())]
    for chosen in reversed(back):
        labels.append(int(chosen[labels[-1]]))
    return float(best.min())


def viterbi_together(costs: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Does the same for many chains of one length at once."""
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


def in_turns(rounds: int, *runs: Callable[[], object]) -> list[float]:
    """Returns the least seconds of each, over some rounds."""
    least = [float("inf")] * len(runs)
    for _ in range(rounds):
        for i, run in enumerate(runs):
            started = time.perf_counter()
            run()
            least[i] = min(least[i], time.perf_counter() - started)
    return least


def chains(n: int, n_labels: int, rounds: int) -> None:
    """Chains, batched and one by one, against NumPy."""
    shape, table = chain(n, n_labels)
    costs = np.random.default_rng(1).normal(size=(N, n, n_labels))
    batch, certify = shape.batch(costs.reshape(N, -1)), hasten.Certifier()
    problems = [batch[p] for p in range(100)]
    assert np.allclose(certify(batch).cost, viterbi_together(costs, table))
    assert np.isclose(certify(problems[0]).cost, viterbi(costs[0], table))
    ours, numpy, one, numpy_one = in_turns(
        rounds,
        lambda: certify(batch),
        lambda: viterbi_together(costs, table),
        lambda: [certify(problem) for problem in problems],
        lambda: [viterbi(each, table) for each in costs[:100]],
    )
    print(f"chain of {n}, {n_labels} labels, microseconds, ours and NumPy's:", end=" ")
    print(f"batched {1e6 * ours / N:.1f}, {1e6 * numpy / N:.1f} ({numpy / ours:.1f}x);", end=" ")
    print(f"single {1e4 * one:.1f}, {1e4 * numpy_one:.1f} ({numpy_one / one:.1f}x)")


def rules(rounds: int) -> None:
    """A chain with two rules, on the problems that keep them unasked."""
    (plain, _), (ruled, _) = chain(20, 17), chain(20, 17, rules=True)
    costs = np.random.default_rng(1).normal(size=(N, plain.n_labels))
    certify = hasten.Certifier()
    free, strict = certify(plain.batch(costs)), certify(ruled.batch(costs))
    keeps = strict.cost <= free.cost + 1e-9
    one, other = plain.batch(costs).select(keeps), ruled.batch(costs).select(keeps)
    without, with_rules = in_turns(rounds, lambda: certify(one), lambda: certify(other))
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
    for n, n_labels in ((20, 17), (20, 45), (60, 2)):
        chains(n, n_labels, given.rounds)
    rules(given.rounds)
    for n, n_rules in ((20, 3), (30, 5), (40, 5)):
        knapsacks(n, n_rules, max(1, given.rounds // 3), given.solver)


if __name__ == "__main__":
    main()
