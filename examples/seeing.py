"""Seeing a search lose the answer, and a proof find it: the paper's example, step by step.

The trace of a search is compared with the beam search written out below, in a few lines.
"""

import json

import hasten

ENTITIES, RELATIONS = ["person", "location", "organization", "none"], ["LiveIn", "WorkFor", "NoRel"]
NAMES = ["Colin", "Ordon Village", "Colin → Ordon Village"]
COSTS = [[0.4, 1.6, 1.2, 2.0], [0.9, 1.1, 1.5, 2.0], [0.5, 2.5, 1.2]]
FITS = {"LiveIn": ("person", "location"), "WorkFor": ("person", "organization")}

schema = hasten.Schema()
entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", RELATIONS)
args = schema.factor("args", source=entity, relation=relation, target=entity)
args.allow(relation="NoRel")
for name, (source, target) in FITS.items():
    args.allow(relation=name, source=source, target=target)

shape = schema.structure()
colin, village, there = shape.add(entity), shape.add(entity), shape.add(relation)
shape.connect(args, source=colin, relation=there, target=village)
problem = shape.problem(COSTS)

proof = hasten.Certifier().trace(problem, names=NAMES)
print(list(proof.labels), round(proof.cost, 6))  # ['person', 'location', 'LiveIn'] 2.0

greedy = hasten.greedy().trace(problem, proof.labels, names=NAMES)
print(greedy.lost.step, greedy.lost.why)  # 1 Ordon Village = location came 2nd by priority; the beam keeps 1.

trace = hasten.BeamSearch(width=2).trace(problem, proof.labels, names=NAMES)
print(trace.lost)  # None

beam = [((), 0.0)]
for step, labels in zip(trace.steps, (ENTITIES, ENTITIES, RELATIONS), strict=True):
    candidates = []
    for before, cost in beam:
        for label, more in zip(labels, COSTS[len(before)], strict=True):
            if FITS.get(label, before) == before:  # a relation joins entities of its own kinds
                candidates.append(((*before, label), cost + more))
    beam = sorted(candidates, key=lambda node: node[1])[:2]
    same = [node[0][-1] for node in beam] == [each.label for each in step.kept]
    print(step.name, [each.label for each in step.kept], same)
# Colin ['person', 'organization'] True
# Ordon Village ['person', 'location'] True
# Colin → Ordon Village ['LiveIn', 'NoRel'] True

print(len(json.dumps(trace.to_dict())) > 1000, trace._repr_svg_()[:4])  # True <svg
