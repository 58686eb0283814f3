"""Entities and relations from a PyTorch network, decoded and trained under the constraints between them.

Sentences have two to five entities; every ordered pair may be related. Scores are padded tensors, as networks give
them; some relations in training are not labelled (-100). Answers are compared with HiGHS.
"""

from itertools import permutations

import hasten

try:
    import torch

    import hasten.torch as ht
except ImportError:
    print("This example needs PyTorch: pip install hasten[torch]")
    raise SystemExit from None

ENTITIES = ["person", "location", "organization", "none"]
ARGUMENTS = {
    "LiveIn": ("person", "location"),
    "WorkFor": ("person", "organization"),
    "BasedIn": ("organization", "location"),
}
N, ROOM = 200, 5

schema = hasten.Schema()
entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", [*ARGUMENTS, "none"])
args = schema.factor("args", source=entity, relation=relation, target=entity).allow(relation="none")
for name, (source, target) in ARGUMENTS.items():
    args.allow(relation=name, source=source, target=target)


def sentence(n):
    shape = schema.structure(["entity"] * n)
    for source, target in permutations(range(n), 2):
        shape.connect(args, source=source, relation=shape.add(relation), target=target)
    return shape


class Network(torch.nn.Module):
    """Scores entities by their vectors, and pairs by both of theirs."""

    def __init__(self):
        super().__init__()
        self.entity, self.pair = torch.nn.Linear(8, 4), torch.nn.Bilinear(8, 8, 4)

    def forward(self, x):
        """Returns padded scores by field."""
        left, right = x[:, :, None].expand(-1, -1, ROOM, -1), x[:, None].expand(-1, ROOM, -1, -1)
        return {"entity": self.entity(x), "relation": self.pair(left.contiguous(), right.contiguous())}


torch.manual_seed(0)
layer = ht.Layer(schema, sentence, {"entity": "n", "relation": "n n -diagonal"})
x, lengths = torch.randn(N, ROOM, 8), torch.randint(2, ROOM + 1, (N,))
with torch.no_grad():
    teacher = layer.decode(Network()(x), lengths=lengths)
print(teacher.proved.all().item())  # True

exact = hasten.make_solver("highs")
for b in range(3):
    n, scores = int(lengths[b]), Network()(x[[b]])
    cells = [scores["relation"][0, i, j] for i, j in permutations(range(n), 2)]
    problem = sentence(n).problem([each.tolist() for each in (*scores["entity"][0, :n], *cells)], maximize=True)
    print(abs(exact.solve(problem).cost - layer.decode(scores, lengths=lengths[[b]]).cost.item()) < 1e-6)
# True
# True
# True

gold = {"entity": teacher.labels["entity"], "relation": teacher.labels["relation"].clone()}
gold["relation"][torch.rand(gold["relation"].shape) < 0.3] = -100  # not labelled
network, loss_fn = Network(), ht.FenchelYoung(layer, samples=4, sigma=0.5)
optimizer = torch.optim.Adam(network.parameters(), lr=0.05)
for _ in range(80):
    optimizer.zero_grad()
    loss_fn(network(x), gold, lengths=lengths).backward()
    optimizer.step()
with torch.no_grad():
    answer = layer.decode(network(x), lengths=lengths)
counted = teacher.labels["relation"] >= 0
right = (answer.labels["relation"] == teacher.labels["relation"])[counted].float().mean()
print((right > 0.9).item())  # True
