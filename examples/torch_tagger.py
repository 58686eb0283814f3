"""A tagger in PyTorch, trained with its constraints in the loop: chunks begin with B, and each has a head.

Words are noisy, so that tags chosen alone contradict one another. The same small network is trained by cross-entropy,
and by the structured hinge together with its transition scores; both are decoded under the constraints.
"""

from itertools import pairwise

import hasten

try:
    import torch

    import hasten.torch as ht
except ImportError:
    print("This example needs PyTorch: pip install hasten[torch]")
    raise SystemExit from None

TAGS = ["B", "I", "H", "O"]  # begin, inside, head: a chunk is B I* H
N, LENGTH, NOISE, STEPS = 256, 12, 1.6, 60

schema = hasten.Schema()
tag = schema.variable("tag", TAGS)
step = schema.factor("step", before=tag, after=tag)
for before, after in ["BI", "BH", "II", "IH", "HB", "HO", "OB", "OO"]:
    step.allow(before=before, after=after)
start = schema.factor("start", first=tag).forbid(first=["I", "H"])
end = schema.factor("end", last=tag).forbid(last=["B", "I"])


def sentence(n):
    shape = schema.structure(["tag"] * n, {"step": list(pairwise(range(n)))})
    shape.connect(start, first=0)
    shape.connect(end, last=n - 1)
    return shape


def draw(n):
    """Returns noisy words and their tags: valid ones, in which chunks are long and seldom follow one another."""
    habit = torch.tensor([[0.0, 2.0, -1.0, 0.0], [0.0, 1.0, 1.0, 0.0], [-3.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    gold = layer.decode(torch.randn(n, LENGTH, 4), tables={"step": habit}).labels
    return torch.nn.functional.one_hot(gold, 4) + NOISE * torch.randn(n, LENGTH, 4), gold


def train(loss_fn, *parts):
    torch.manual_seed(1)
    network = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4))
    optimizer = torch.optim.Adam([*network.parameters(), *(p for part in parts for p in part.parameters())], lr=0.03)
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss_fn(network(words)).backward()
        optimizer.step()
    return network


torch.manual_seed(0)
layer = ht.Layer(schema, sentence, {"tag": "n"}, tables=["step"])
words, gold = draw(N)
new_words, new_gold = draw(1000)
hinge = ht.StructuredHinge(layer)

alone = train(lambda logits: torch.nn.functional.cross_entropy(logits.flatten(0, 1), gold.flatten()))
with torch.no_grad():
    greedy = alone(new_words).argmax(-1)
    constrained = layer.decode(alone(new_words))
valid = torch.tensor([sentence(LENGTH).problem([[0.0] * 4] * LENGTH).check(each).valid for each in greedy.tolist()])
print(f"{valid.float().mean():.1f} of the sentences are valid where each tag is chosen alone")
# 0.0 of the sentences are valid where each tag is chosen alone
print(constrained.proved.all().item())  # True

together = train(lambda logits: hinge(logits, gold), layer)
with torch.no_grad():
    answer = layer.decode(together(new_words))
print(answer.proved.all().item())  # True
right = [(each == new_gold).float().mean() for each in (greedy, constrained.labels, answer.labels)]
# Constraints help, and more so in the loop.
print((right[1] > right[0] + 0.05).item(), (right[2] > right[1] + 0.05).item())  # True True
