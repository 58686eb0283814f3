"""The README's tour: two entities and a relation between them.

Every decision has its own costs, and a table joins the three. The answer is compared with the cheapest of all valid
labellings, found by enumeration.
"""

from itertools import product

import hasten

ENTITIES, RELATIONS = ["person", "location", "organization", "none"], ["LiveIn", "WorkFor", "NoRel"]

schema = hasten.Schema()
entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", RELATIONS)
args = schema.factor("args", source=entity, relation=relation, target=entity)
args.allow(relation="LiveIn", source="person", target="location")
args.allow(relation="WorkFor", source="person", target="organization")
args.allow(relation="NoRel")

shape = schema.structure()
colin, village, there = shape.add(entity), shape.add(entity), shape.add(relation)
shape.connect(args, source=colin, relation=there, target=village)

costs = [[0.4, 1.6, 1.2, 2.0], [0.9, 1.1, 1.5, 2.0], [0.5, 2.5, 1.2]]
problem = shape.problem(costs)

greedy = hasten.greedy()(problem)
print(greedy.names)  # ['person', 'person', 'LiveIn']
print(problem.check(greedy.labels))  # args: LiveIn needs target=location, got target=person for variable 1

answer = hasten.Certifier()(problem)
print(answer.names)  # ['person', 'location', 'LiveIn']
print(answer.status)  # Proved optimal without the solver.

FITS = {"LiveIn": ("person", "location"), "WorkFor": ("person", "organization")}
valid = {}
for i, j, k in product(range(4), range(4), range(3)):
    source, target, name = ENTITIES[i], ENTITIES[j], RELATIONS[k]
    if name == "NoRel" or FITS[name] == (source, target):
        valid[source, target, name] = costs[0][i] + costs[1][j] + costs[2][k]
cheapest = min(valid, key=valid.get)
print(list(cheapest), abs(valid[cheapest] - answer.cost) < 1e-9)  # ['person', 'location', 'LiveIn'] True
