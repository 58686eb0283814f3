"""A stream of predictions that is audited, loses its trust, and learns to regain it.

The first variable must equal the second, so a narrow search has to know which label is likely. Halfway this changes. A
tenth of the answers is audited: the search soon loses its trust, every answer comes from the black box, and the search
learns from these answers until it agrees again. The optimum of each problem is found in NumPy.
"""

import logging

import numpy as np

import hasten

logging.getLogger("hasten").setLevel(logging.ERROR)  # the loss of trust is a warning otherwise

schema = hasten.Schema()
guess, truth = schema.variable("guess", ["a", "b"]), schema.variable("truth", ["a", "b"])
likely, same = schema.factor("likely", guess=guess), schema.factor("same", guess=guess, truth=truth)
same.allow(guess="a", truth="a").allow(guess="b", truth="b")
shape = schema.structure()
first, second = shape.add(guess), shape.add(truth)
shape.connect(likely, guess=first)
shape.connect(same, guess=first, truth=second)

rng = np.random.default_rng(0)


def draw(n, share_of_a):
    costs = rng.normal(size=(n, 4)) * 0.05
    costs[np.arange(n), np.where(rng.random(n) < share_of_a, 2, 3)] -= 5
    return costs


answer = hasten.Search(width=1, look_ahead=False, guided=True)
trust = hasten.Trust(audit=0.1, min_agreement=0.9)
live = hasten.Speedup(schema, answer=answer, trust=trust, learn=True, seed=1).fit(shape.batch(draw(500, 0.99)))


def serve(n_batches, share_of_a):
    """Returns for each batch whether the search was trusted, and the share of its answers that were optimal."""
    trusted, right = [], []
    for _ in range(n_batches):
        costs = draw(50, share_of_a)
        trusted.append(live.trusted)
        found = live.predict(shape.batch(costs))
        right.append(np.isclose(found.cost, (costs[:, :2] + costs[:, 2:]).min(axis=1)).mean())  # a and a, or b and b
    return np.array(trusted), np.array(right)


trusted, right = serve(40, 0.99)
print(trusted.all(), right.mean() > 0.97)  # True True

trusted, right = serve(60, 0.01)  # the likely label changes
print(trusted[0], trusted[:10].all())  # True False
print((right[~trusted] == 1).all())  # True
print(live.trusted, right[-20:].mean() > 0.97)  # True True
