"""Temporal order: each pair of events is before, after or at the same time, and the order is transitive.

A model scores each pair alone, and may contradict itself. A table over each triple of pairs forbids contradictions. The
answers are checked by enumerating all orders of the events, with ties; the peer is an integer program.
"""

from itertools import combinations, product
from timeit import repeat

import numpy as np

import hasten

N_EVENTS, N = 6, 200
SIGN = {"before": -1, "same": 0, "after": 1}


def consistent(first, second, both):
    """Whether a to b, b to c and a to c fit on one line."""
    a, b = SIGN[first], SIGN[second]
    return a * b == -1 or SIGN[both] == (a or b)


schema = hasten.Schema()
pair = schema.variable("pair", list(SIGN))
order = schema.factor("order", first=pair, second=pair, both=pair).allow(consistent)

shape = schema.structure()
pairs = {ends: shape.add(pair) for ends in combinations(range(N_EVENTS), 2)}
for a, b, c in combinations(range(N_EVENTS), 3):
    shape.connect(order, first=pairs[a, b], second=pairs[b, c], both=pairs[a, c])

costs = np.random.default_rng(0).normal(size=(N, len(pairs), 3))
batch, certify = shape.batch(costs.reshape(N, -1)), hasten.Certifier()
alone = costs.argmin(axis=2)
print(sum(problem.check(labels).valid for problem, labels in zip(batch, alone, strict=True)))  # 0

answers = certify(batch)
print(answers.proved.all(), answers.valid.all())  # True True

times = np.array(list(product(range(N_EVENTS), repeat=N_EVENTS)))  # when each event happens
labels = np.unique(np.stack([np.sign(times[:, a] - times[:, b]) + 1 for a, b in pairs], axis=1), axis=0)
print(len(labels))  # 4683
chosen = np.eye(3)[labels].reshape(len(labels), -1)  # an indicator for each label
print(np.allclose(answers.cost, (batch.cost.reshape(N, -1) @ chosen.T).min(axis=1)))  # True

highs, some = hasten.make_solver("highs"), list(batch[:10])
theirs = min(repeat(lambda: [highs.solve(each) for each in some], number=1, repeat=2)) / len(some)
ours = min(repeat(lambda: certify(batch), number=1, repeat=3)) / N
print(f"{theirs / ours:.0f} times as fast as HiGHS")  # 34 times as fast as HiGHS
