"""Semantic roles: who did what to whom, for one verb and the phrases around it.

No core role is given twice, a reference (R-A0, "who") needs what it refers to, and phrases that overlap are not both
arguments. The answers are checked by scoring every labelling of the phrases; the peer is an integer program.
"""

from itertools import product
from timeit import repeat

import numpy as np

import hasten

ROLES = ["A0", "A1", "A2", "AM", "R-A0", "none"]
SPANS = [(0, 2), (2, 3), (4, 6), (4, 9), (6, 9), (9, 10)]  # from token, to token
OVERLAPS = [(i, j) for i, a in enumerate(SPANS) for j, b in enumerate(SPANS) if i < j and a[1] > b[0]]
N = 500

schema = hasten.Schema()
phrase = schema.variable("phrase", ROLES)
for role in ("A0", "A1", "A2"):
    schema.rule(f"{role} once", at_most=1, phrase=role)
schema.rule("someone to refer to", at_least=0, phrase={"A0": 1, "R-A0": -1})
overlap = schema.factor("overlap", one=phrase, other=phrase).allow(one="none").allow(other="none")

shape = schema.structure()
phrases = [shape.add(phrase) for _ in SPANS]
for i, j in OVERLAPS:
    shape.connect(overlap, one=phrases[i], other=phrases[j])

costs = np.random.default_rng(2).normal(size=(N, len(SPANS), len(ROLES)))
batch, certify = shape.batch(costs.reshape(N, -1)), hasten.Certifier()
answers = certify(batch)
print(batch[0].check(costs[0].argmin(axis=1)))
# overlap: one=A1 needs other=none, got other=A1 for variable 3
# overlap: one=A1 needs other=none, got other=R-A0 for variable 4
# A1 once: needs at most 1, got 3 (A1 for variable 2, A1 for variable 3, A1 for variable 5)
# someone to refer to: needs at least 0, got -1 (R-A0 for variable 4)
print(answers[0].names, answers.proved.all())  # ['AM', 'AM', 'none', 'A1', 'none', 'none'] True

every = np.array(list(product(range(len(ROLES)), repeat=len(SPANS))))
count = np.stack([(every == role).sum(axis=1) for role in range(len(ROLES))], axis=1)
valid = (count[:, :3] <= 1).all(axis=1) & (count[:, 4] <= count[:, 0])
for i, j in OVERLAPS:
    valid &= (every[:, i] == 5) | (every[:, j] == 5)
chosen = np.eye(len(ROLES))[every[valid]].reshape(valid.sum(), -1)  # an indicator for each label
print(len(every), valid.sum())  # 46656 2234
print(np.allclose(answers.cost, (costs.reshape(N, -1) @ chosen.T).min(axis=1)))  # True

highs, some = hasten.make_solver("highs"), list(batch[:20])
theirs = min(repeat(lambda: [highs.solve(each) for each in some], number=1, repeat=3)) / len(some)
ours = min(repeat(lambda: certify(batch), number=1, repeat=3)) / N
print(f"{theirs / ours:.0f} times as fast as HiGHS")  # 94 times as fast as HiGHS
