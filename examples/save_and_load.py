"""Saving a speedup and continuing elsewhere.

A file holds the settings, the learned weights, the counters and the random states: the loaded speedup answers, audits
and learns exactly as the saved one would have. Audited answers are compared with the optimum, found in NumPy.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import hasten


def build():
    """Returns the schema and its one structure: a word, its successor, and whether they are one name."""
    schema = hasten.Schema()
    word, link = schema.variable("word", ["name", "other"]), schema.variable("link", ["one name", "apart"])
    joins = schema.factor("joins", left=word, link=link, right=word)
    joins.allow(link="one name", left="name", right="name").allow(link="apart")
    shape = schema.structure()
    left, right, between = shape.add(word), shape.add(word), shape.add(link)
    shape.connect(joins, left=left, link=between, right=right)
    return schema, shape


def draw(shape, n, seed):
    return shape.batch(np.random.default_rng(seed).normal(size=(n, shape.n_labels)))


schema, shape = build()
fast = hasten.Speedup(
    schema, answer=hasten.Search(width=1, guided=True), trust=hasten.Trust(audit=0.25, min_agreement=None), learn=True
).fit(draw(shape, 500, seed=0))
fast.predict(draw(shape, 200, seed=1))

with TemporaryDirectory() as folder:
    path = Path(folder) / "fast.safetensors"
    fast.save(path)
    again = hasten.Speedup.load(path, build()[0])  # another process would build the same schema

print(again.counters == fast.counters, again.trust.audit)  # True 0.25

batch = draw(shape, 300, seed=2)
ours, theirs = fast.predict(batch), again.predict(batch)
print((ours.labels == theirs.labels).all(), (ours.proved == theirs.proved).all())  # True True
print(again.counters == fast.counters)  # True

left, right, link = batch.cost.reshape(300, 3, 2).transpose(1, 0, 2)
joined = left[:, 0] + right[:, 0] + link[:, 0]
apart = left.min(axis=1) + right.min(axis=1) + link[:, 1]
optimum = np.minimum(joined, apart)
print(0 < ours.proved.sum() < 300)  # True
print(np.allclose(ours.cost[ours.proved], optimum[ours.proved]), (ours.cost >= optimum - 1e-9).all())  # True True
