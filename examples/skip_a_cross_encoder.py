"""Skip most calls of an expensive module: a gate learns where a cross-encoder's scores cannot change the answer.

The cross-encoder here is small and random; yours reads the text of a pair.
"""

import sys

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    print("This example needs PyTorch: pip install hasten[torch]")
    sys.exit()

import hasten
import hasten.torch as ht

schema = hasten.Schema()
entity = schema.variable("entity", ["person", "location", "none"])
relation = schema.variable("relation", ["LiveIn", "NoRel"])
args = schema.factor("args", source=entity, relation=relation, target=entity)
args.allow(relation="LiveIn", source="person", target="location").allow(relation="NoRel")


def build(n: int) -> hasten.Structure:
    shape = schema.structure()
    entities = [shape.add(entity) for _ in range(n)]
    for i, source in enumerate(entities):
        for j, target in enumerate(entities):
            if i != j:
                shape.connect(args, source=source, relation=shape.add(relation), target=target)
    return shape


class CrossEncoder(nn.Module):
    """Reads the vectors of two spans together; far spans are seldom related."""

    def __init__(self) -> None:
        super().__init__()
        self.n_read = 0
        self.layers = nn.Sequential(nn.Linear(17, 256), nn.GELU(), nn.Linear(256, 256), nn.GELU(), nn.Linear(256, 2))

    def forward(self, inputs: dict[str, Tensor], index: Tensor) -> Tensor:
        """Returns the scores of pairs; `index` has the example, the source and the target of each."""
        example, source, target = index.T
        self.n_read += len(index)
        spans, at = inputs["spans"], inputs["at"]
        distance = (at[example, target] - at[example, source]).abs()[:, None]
        scores = self.layers(torch.cat([spans[example, source], spans[example, target], distance / 10], dim=1))
        return scores + torch.cat([3 - distance, torch.zeros_like(distance)], dim=1)


def features(inputs: dict[str, Tensor], index: Tensor) -> Tensor:
    """What is known of a pair before it is read: how far apart its spans are."""
    example, source, target = index.T
    return (inputs["at"][example, target] - inputs["at"][example, source]).abs().long()[:, None]


def made_up(n: int, seed: int) -> list[tuple[dict[str, Tensor], dict[str, Tensor], Tensor]]:
    """Returns batches of inputs, the scores of entities, and how many spans each example has."""
    random = torch.Generator().manual_seed(seed)
    batches = []
    for _ in range(n):
        spans, at = torch.randn(64, 5, 8, generator=random), torch.rand(64, 5, generator=random) * 30
        scores = 3 * spans[:, :, :3]  # a cheap head over the same vectors
        lengths = torch.randint(2, 6, (64,), generator=random)
        batches.append(({"spans": spans, "at": at}, {"entity": scores}, lengths))
    return batches


torch.manual_seed(0)
cross_encoder = CrossEncoder().eval()
layer = ht.Layer(schema, build, {"entity": "n", "relation": "n n -diagonal"})
gate = ht.Gate(layer, expensive={"relation": cross_encoder}, cheap={"relation": features})

gate.fit(made_up(16, seed=1))  # unlabeled inputs: every score is computed here,
chosen = gate.calibrate(made_up(16, seed=2), risk=0.02)  # and here, to state how many answers change
print(chosen.met)  # True

cross_encoder.n_read = n_pairs = 0
for inputs, scores, lengths in made_up(8, seed=3):
    answer = gate(inputs, scores, lengths)
    n_pairs += int((lengths * (lengths - 1)).sum())
print(answer.labels["relation"].shape, bool(answer.valid.all()))  # torch.Size([64, 5, 5]) True
print(int(answer.computed.sum()) <= n_pairs)  # True
print(gate.max_doubt > 0)  # True
