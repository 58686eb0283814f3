"""A chain with a counting rule: which days to work, given the forecast.

Neighbouring days prefer the same label (a soft table), and at most three days are worked (a rule). The answer is
compared with a dynamic program over days, labels and days worked so far.
"""

import math
from itertools import pairwise

import numpy as np

import hasten

N_DAYS, AT_MOST, CHANGE = 10, 3, 0.4

schema = hasten.Schema()
day = schema.variable("day", ["rest", "work"])
change = schema.factor("change", today=day, tomorrow=day)
change.cost(CHANGE, lambda today, tomorrow: today != tomorrow)
schema.rule("few working days", at_most=AT_MOST, day="work")

shape = schema.structure()
days = [shape.add(day) for _ in range(N_DAYS)]
for today, tomorrow in pairwise(days):
    shape.connect(change, today=today, tomorrow=tomorrow)

costs = np.random.default_rng(3).normal(size=(N_DAYS, 2))
problem = shape.problem(costs.ravel())

answer = hasten.Certifier()(problem)
print("".join(name[0] for name in answer.names))  # wwrrrrrrrw
print(answer.proved)  # True

free = costs.argmin(axis=1)  # each day by itself
print(problem.check(free).valid, free.sum())  # False 6

best = {(label, label): costs[0, label] for label in (0, 1)}  # (label, days worked) -> the least cost so far
for today in costs[1:]:
    step: dict[tuple[int, int], float] = {}
    for (before, worked), cost in best.items():
        for label in (0, 1):
            key = label, worked + label
            step[key] = min(step.get(key, math.inf), cost + today[label] + CHANGE * (label != before))
    best = step
optimum = min(cost for (_, worked), cost in best.items() if worked <= AT_MOST)
print(math.isclose(answer.cost, optimum))  # True
