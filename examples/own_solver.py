"""Your own solver as the black box.

Any function from a problem to labels will do. It solves the problems that cannot be proved (branching is turned off
here, so that there are some), and audits some proofs, as it may know more than the schema. All answers are compared
with an enumeration in NumPy.
"""

from itertools import combinations, product

import numpy as np

import hasten

N, SAME = 7, 0.2

schema = hasten.Schema()
team = schema.variable("team", ["red", "green", "blue"])
rivals = schema.factor("rivals", one=team, other=team)
rivals.cost(SAME, lambda one, other: one == other)

shape = schema.structure()
players = [shape.add(team) for _ in range(N)]
for one, other in combinations(players, 2):
    shape.connect(rivals, one=one, other=other)

calls = 0


def try_everything(problem):
    """Returns the cheapest labels, as numbers."""
    global calls
    calls += 1
    return min(product(range(3), repeat=N), key=problem.total)


batch = shape.batch(np.random.default_rng(1).normal(size=(200, shape.n_labels)))
fast = hasten.Speedup(schema, solver=try_everything, limits=hasten.Limits(max_nodes=0))
answers = fast.predict(batch)
print(calls == fast.counters.solver_calls)  # True
print(0 < calls < 50)  # True

every = np.array(list(product(range(3), repeat=N)))  # a row for each labelling
pairs = list(combinations(range(N), 2))
clashes = sum(every[:, i] == every[:, j] for i, j in pairs)
own = batch.cost.reshape(200, N, 3)[:, np.arange(N), every].sum(axis=2)
print(np.allclose(answers.cost, (own + SAME * clashes).min(axis=1)))  # True


def always_red(problem):
    return ["red"] * N


try:
    hasten.Speedup(schema, solver=always_red, limits=hasten.Limits(max_nodes=0)).predict(batch)
except hasten.errors.SolverWrong as error:
    print(str(error).split(",")[0])  # always_red says that nothing is better than 3.16832
