"""Assignment: eight workers, eight tasks, each task once; then with one more rule.

The plain assignment problem has its own algorithm, in SciPy, which is faster than any general method. With one more
rule it is an integer program, and the peer is a solver. Answers are checked by SciPy, if it is installed, and by
scoring all 40,320 permutations. To time compiled kernels on the first run, set HASTEN_TIER=compiled.
"""

from itertools import permutations
from timeit import repeat

import numpy as np

import hasten

SIZE, N = 8, 200
TASKS = [f"task {t}" for t in range(SIZE)]
EASY, JUNIORS = TASKS[:3], range(4)

schema = hasten.Schema()
worker = schema.variable("worker", TASKS)
for task in TASKS:
    schema.rule(f"{task} once", exactly=1, worker=task)


def team(*rules):
    shape = schema.structure()
    workers = [shape.add(worker) for _ in range(SIZE)]
    for juniors, least in rules:
        shape.rule("easy tasks for juniors", [(workers[w], t) for w in juniors for t in EASY], at_least=least)
    return shape


plain, fair = team(), team((JUNIORS, 2))
costs = np.random.default_rng(0).normal(size=(N, SIZE * SIZE))
every = np.array(list(permutations(range(SIZE))))
totals = costs @ np.eye(SIZE)[every].reshape(len(every), -1).T  # of each problem and permutation
allowed = (every[:, JUNIORS] < len(EASY)).sum(axis=1) >= 2

certify = hasten.Certifier()
print(np.allclose(certify(plain.batch(costs)).cost, totals.min(axis=1)))  # True
answers = certify(fair.batch(costs))
print(answers.proved.all(), np.allclose(answers.cost, totals[:, allowed].min(axis=1)))  # True True

try:
    from scipy.optimize import linear_sum_assignment
except ImportError:
    print("This example needs SciPy for its first figure: pip install scipy")
    raise SystemExit from None

matrices = costs.reshape(N, SIZE, SIZE)
rows, columns = linear_sum_assignment(matrices[0])
print(np.isclose(matrices[0][rows, columns].sum(), totals[0].min()))  # True
theirs = min(repeat(lambda: [linear_sum_assignment(each) for each in matrices], number=1, repeat=3))
ours = min(repeat(lambda: certify(plain.batch(costs)), number=1, repeat=3))
print(f"{theirs / ours:.1f} times as fast as SciPy without the rule")  # 0.1 times as fast as SciPy without the rule

highs, some = hasten.make_solver("highs"), list(fair.batch(costs[:20]))
theirs = min(repeat(lambda: [highs.solve(each) for each in some], number=1, repeat=3)) / len(some)
ours = min(repeat(lambda: certify(fair.batch(costs)), number=1, repeat=3)) / N
print(f"{theirs / ours:.0f} times as fast as HiGHS with it")  # 240 times as fast as HiGHS with it
