"""More than one answer: the best labellings in order, and how certain each label is.

Both are compared with a list of all valid labellings and their costs.
"""

from itertools import product

import hasten

ENTITIES, RELATIONS = ["person", "location", "organization", "none"], ["LiveIn", "WorkFor", "NoRel"]
FITS = {"LiveIn": ("person", "location"), "WorkFor": ("person", "organization")}
COSTS = [[0.4, 1.6, 1.2, 2.0], [0.9, 1.1, 1.5, 2.0], [0.5, 2.5, 1.2]]

schema = hasten.Schema()
entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", RELATIONS)
args = schema.factor("args", source=entity, relation=relation, target=entity).allow(relation="NoRel")
for name, (source, target) in FITS.items():
    args.allow(relation=name, source=source, target=target)
shape = schema.structure()
colin, village, there = shape.add(entity), shape.add(entity), shape.add(relation)
shape.connect(args, source=colin, relation=there, target=village)
problem = shape.problem(COSTS)

certifier = hasten.Certifier()
ranked = certifier.best(problem, 3)
for answer in ranked:
    print(answer.names, round(answer.cost, 6))
# ['person', 'location', 'LiveIn'] 2.0
# ['person', 'person', 'NoRel'] 2.5
# ['person', 'location', 'NoRel'] 2.7
print(ranked.proved)  # True

marginals = certifier.min_marginals(problem)
print({label: round(cost, 6) for label, cost in marginals.of(village).items()})
# {'person': 2.5, 'location': 2.0, 'organization': 3.1, 'none': 3.6}
print([round(float(margin), 6) for margin in marginals.margin])  # [1.3, 0.5, 0.5]
print([round(float(share), 2) for share in marginals.confidence(temperature=0.3)])  # [0.98, 0.82, 0.84]

every = []
for i, j, k in product(range(4), range(4), range(3)):
    if FITS.get(RELATIONS[k], (ENTITIES[i], ENTITIES[j])) == (ENTITIES[i], ENTITIES[j]):
        every.append((COSTS[0][i] + COSTS[1][j] + COSTS[2][k], i, j, k))
every.sort()
print(all(abs(cost - answer.cost) < 1e-9 for (cost, *_), answer in zip(every, ranked, strict=False)))  # True
least = [min(cost for cost, _, j, _ in every if j == label) for label in range(4)]
print(all(abs(a - b) < 1e-6 for a, b in zip(least, marginals.of(village).values(), strict=True)))  # True
