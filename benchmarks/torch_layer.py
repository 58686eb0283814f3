"""What the layer of `hasten.torch` costs: beside flat NumPy batches, in a training step, beside PyEPO and pytorch-crf.

Rows are measured in turns of five calls within one run (--calls 1: of one call, whose caches the others have emptied),
medians of processor time, with one thread. Sections:

    decode      padded CPU tensors beside the flat NumPy batch of the same problems, entities and relations and chains
    step        a training step on sentences as CoNLL04 has them: a BiLSTM over 384 numbers for each word, pairs of
                entity vectors, Adam; how much of it is the loss, forward and backward, glue included
    pyepo       SPO+ and Fenchel-Young steps beside PyEPO with Gurobi on the same problems; gradients are compared
    crf         decoding chains beside pytorch-crf

    python benchmarks/torch_layer.py [decode step pyepo crf] [--repeats 20] [--calls 5]

Needs `pip install pyepo pytorch-crf gurobipy`.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise, permutations
from time import process_time
from typing import Any

import numpy as np
import torch

import hasten
import hasten.torch as ht

ENTITIES = ["Peop", "Loc", "Org", "Other"]
ARGUMENTS = {
    "Kill": ("Peop", "Peop"),
    "Live_In": ("Peop", "Loc"),
    "Work_For": ("Peop", "Org"),
    "Located_In": ("Loc", "Loc"),
    "OrgBased_In": ("Org", "Loc"),
}
# How many of CoNLL04's sentences with relations have 2, 3, … entities; the 48 with 8 or more count as 8.
N_ENTITIES = {2: 380, 3: 402, 4: 318, 5: 152, 6: 94, 7: 47, 8: 48}
CALLS = 5  # of each way in its turn
N_WORDS = 29  # of such a sentence, in the mean; the longest of 32 has 67, so batches padded to 58 are no favour to us


def entity_relation() -> tuple[hasten.Schema, Callable[[int], hasten.Structure]]:
    schema = hasten.Schema()
    entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", [*ARGUMENTS, "none"])
    args = schema.factor("args", source=entity, relation=relation, target=entity).allow(relation="none")
    for name, (source, target) in ARGUMENTS.items():
        args.allow(relation=name, source=source, target=target)

    def shape(n: int) -> hasten.Structure:
        structure = schema.structure(["entity"] * n)
        for i, j in permutations(range(n), 2):
            structure.connect(args, source=i, relation=structure.add(relation), target=j)
        return structure

    return schema, shape


def chain(n_labels: int) -> tuple[hasten.Schema, Callable[[int], hasten.Structure]]:
    schema = hasten.Schema()
    tag = schema.variable("tag", [f"t{i}" for i in range(n_labels)])
    table = np.random.default_rng(0).normal(size=(n_labels, n_labels))
    schema.factor("step", before=tag, after=tag).set_table(table)
    return schema, lambda n: schema.structure(["tag"] * n, {"step": list(pairwise(range(n)))})


def medians(calls: Sequence[Callable[[], object]], repeats: int) -> list[float]:
    """Returns the median seconds of each call, measured in turns of `CALLS`."""
    times: list[list[float]] = [[] for _ in calls]
    for turn in range(repeats + 2):
        for call, mine in zip(calls, times, strict=True):
            for _ in range(CALLS):
                start = process_time()
                call()
                if turn >= 2:
                    mine.append(process_time() - start)
    return [float(np.median(mine)) for mine in times]


def sizes(n: int, rng: np.random.Generator) -> np.ndarray:
    counts = np.array(list(N_ENTITIES.values()))
    return rng.choice(list(N_ENTITIES), size=n, p=counts / counts.sum())


def decode(repeats: int) -> None:
    """Padded tensors beside flat arrays, of the same problems."""
    rng = np.random.default_rng(0)
    for name, (schema, shape), fields, margin in [
        ("entities and relations", entity_relation(), {"entity": "n", "relation": "n n -diagonal"}, 3.0),
        ("chains of up to 32, 17 labels", chain(17), {"tag": "n"}, 0.0),
    ]:
        layer, certify = ht.Layer(schema, shape, fields), hasten.Certifier()
        for n in (256, 1024):
            lengths = sizes(n, rng) if margin else rng.integers(4, 33, size=n)
            room = int(lengths.max())
            scores = {}
            for kind, field in layer.inference.layout.fields.items():
                width = len(field.kind)
                values = rng.normal(size=(n, *[room] * len(field.axes), width)).astype(np.float32)
                values[..., -1] += margin * (kind == "relation")  # as a trained model says: most pairs are not related
                scores[kind] = torch.from_numpy(values)
            shapes = {size: shape(size) for size in np.unique(lengths).tolist()}
            numbers = np.searchsorted(list(shapes), lengths)
            flat = -np.concatenate([row(scores, b, int(size)) for b, size in enumerate(lengths)]).astype(np.float64)
            given = torch.from_numpy(lengths)
            padded = layer.decode(scores, lengths=given)
            assert np.allclose(padded.cost, certify(hasten.Batch.build(list(shapes.values()), numbers, flat)).cost)
            known = list(shapes.values())
            flat_way = partial(flat_answers, certify, known, numbers, flat)
            a, b = medians([flat_way, partial(layer.decode, scores, lengths=given)], repeats * 3)
            print(f"decode, {name}, B = {n}: flat {a * 1e6 / n:.2f} µs a problem, padded {b / a:.2f} times that")


def flat_answers(
    certify: hasten.Certifier, shapes: list[hasten.Structure], numbers: np.ndarray, flat: np.ndarray
) -> Any:
    return certify(hasten.Batch.build(shapes, numbers, flat))


def row(scores: dict[str, torch.Tensor], b: int, n: int) -> np.ndarray:
    """Returns the scores of one example in the order of its structure, the obvious way."""
    if "tag" in scores:
        return scores["tag"][b, :n].reshape(-1).numpy()
    pairs = [scores["relation"][b, i, j] for i, j in permutations(range(n), 2)]
    return torch.cat([scores["entity"][b, :n].reshape(-1), *pairs]).numpy()


class Network(torch.nn.Module):
    """A BiLSTM over frozen word vectors; entities are mean vectors of their words, pairs the two and their product."""

    def __init__(self, hidden: int = 256) -> None:
        super().__init__()
        self.lstm = torch.nn.LSTM(384, hidden, bidirectional=True, batch_first=True)
        self.entity = torch.nn.Linear(2 * hidden, len(ENTITIES))
        self.pair = torch.nn.Sequential(
            torch.nn.Linear(6 * hidden, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, len(ARGUMENTS) + 1)
        )

    def forward(self, words: torch.Tensor, spans: torch.Tensor) -> dict[str, torch.Tensor]:
        states, _ = self.lstm(words)
        x = states.gather(1, spans[..., None].expand(-1, -1, states.shape[-1]))
        left, right = torch.broadcast_tensors(x[:, :, None], x[:, None])
        return {"entity": self.entity(x), "relation": self.pair(torch.cat([left, right, left * right], -1))}


def step(repeats: int) -> None:
    """A training step as on CoNLL04, and what of it is the loss."""
    schema, shape = entity_relation()
    layer = ht.Layer(schema, shape, {"entity": "n", "relation": "n n -diagonal"})
    rng, n = np.random.default_rng(0), 32
    torch.manual_seed(0)
    batches = []
    for _ in range(8):
        lengths = sizes(n, rng)
        room, n_words = int(lengths.max()), 2 * N_WORDS
        words, spans = torch.randn(n, n_words, 384), torch.from_numpy(rng.integers(0, n_words, size=(n, room)))
        batches.append((words, spans, torch.from_numpy(lengths)))
    teacher = Network()
    golds = []
    for words, spans, lengths in batches:
        with torch.no_grad():
            scores = teacher(words, spans)
        scores["relation"] = 20 * scores["relation"]
        scores["relation"][..., -1] += 3
        golds.append(layer.decode(scores, lengths=lengths).labels)

    def cross_entropy(scores: dict, gold: dict, lengths: torch.Tensor) -> torch.Tensor:
        return sum(
            torch.nn.functional.cross_entropy(each.flatten(0, -2), gold[k].flatten()) for k, each in scores.items()
        )

    losses = {"hinge": ht.StructuredHinge(layer), "Fenchel-Young, 8 samples": ht.FenchelYoung(layer, 8, 1.0)}
    for name, loss_fn in {"cross-entropy": cross_entropy, **losses}.items():
        torch.manual_seed(1)
        network = Network()
        optimizer = torch.optim.Adam(network.parameters(), 1e-3)
        whole, inside = [], []
        for turn in range(repeats * 2):
            (words, spans, lengths), gold = batches[turn % 8], golds[turn % 8]
            start = process_time()
            optimizer.zero_grad()
            scores = network(words, spans)
            kept = {k: each.detach().requires_grad_() for k, each in scores.items()}
            begun = process_time()
            loss = loss_fn(kept, gold, lengths=lengths)
            loss.backward()
            ended = process_time()
            torch.autograd.backward(list(scores.values()), [each.grad for each in kept.values()])
            optimizer.step()
            whole.append(process_time() - start)
            inside.append(ended - begun)
        share, all_ms = np.median(np.array(inside[4:]) / np.array(whole[4:])), np.median(whole[4:]) * 1e3
        print(f"step, {name}: {all_ms:.1f} ms, of which the loss is {share:.1%} (loss {loss.item():.2f})")


def pyepo(repeats: int) -> None:
    """SPO+ and Fenchel-Young beside PyEPO with Gurobi, on the same problems: entities and their relations."""
    for n_entities in (4, 7):
        beside_pyepo(n_entities, repeats)


def beside_pyepo(n_entities: int, repeats: int) -> None:
    import gurobipy as gp
    from pyepo.func import SPOPlus, perturbedFenchelYoung
    from pyepo.model.grb import optGrbModel

    _, shape = entity_relation()
    structure = shape(n_entities)
    first, n_labels = structure.graph.first, structure.n_labels

    class Model(optGrbModel):
        def _getModel(self) -> Any:  # noqa: N802
            model = gp.Model(env=gp.Env(params={"OutputFlag": 0, "Threads": 1}))
            x = model.addVars(n_labels, vtype="B", name="x")
            for v in range(structure.n_variables):
                model.addConstr(gp.quicksum(x[i] for i in range(first[v], first[v + 1])) == 1)
            for factor in structure.factors:
                source, relation, target = (int(first[v]) for v in factor.scope)
                for r, (s, t) in enumerate(ARGUMENTS.values()):
                    model.addConstr(x[relation + r] <= x[source + ENTITIES.index(s)])
                    model.addConstr(x[relation + r] <= x[target + ENTITIES.index(t)])
            model.modelSense = gp.GRB.MINIMIZE
            return model, x

    model, layer = Model(), ht.Layer(structure, maximize=False)
    torch.manual_seed(0)
    n = 32
    true, predicted = torch.randn(n, n_labels), torch.randn(n, n_labels)
    for costs in (true, predicted):
        costs[:, first[n_entities:-1][:, None] + np.arange(5)] += 2.0  # most pairs are not related
    optimum = layer.decode(true)
    solution = indicator(structure, optimum.labels)
    objective = optimum.cost.float()[:, None]
    theirs, ours = SPOPlus(model, processes=1), ht.SPOPlus(layer)
    gradients = []
    for call in (
        lambda c: theirs(c, true, solution, objective),
        lambda c: ours(c, true, optimum=optimum.labels),
    ):
        costs = predicted.clone().requires_grad_()
        loss = call(costs)
        loss.backward()
        gradients.append((loss.item(), costs.grad))
    same = torch.allclose(gradients[0][1], gradients[1][1]) and abs(gradients[0][0] - gradients[1][0]) < 1e-3

    def run(call: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[], None]:
        costs = predicted.clone().requires_grad_()
        return lambda: call(costs).backward()

    a, b = medians(
        [run(lambda c: theirs(c, true, solution, objective)), run(lambda c: ours(c, true, optimum=optimum.labels))],
        repeats,
    )
    times = f"PyEPO {a * 1e3:.1f} ms, ours {b * 1e3:.2f} ms, {a / b:.0f} times; gradients the same: {same}"
    print(f"SPO+, B = {n}, {n_entities} entities: {times}")
    theirs = perturbedFenchelYoung(model, n_samples=8, sigma=1.0, processes=1)
    ours = ht.FenchelYoung(layer, 8, 1.0)
    a, b = medians([run(lambda c: theirs(c, solution)), run(lambda c: ours(c, optimum.labels))], max(3, repeats // 4))
    times = f"PyEPO {a * 1e3:.0f} ms, ours {b * 1e3:.2f} ms, {a / b:.0f} times"
    print(f"Fenchel-Young, 8 samples, B = {n}, {n_entities} entities: {times}")


def indicator(structure: hasten.Structure, labels: torch.Tensor) -> torch.Tensor:
    """Returns labellings as vectors of zeros and ones."""
    found = torch.zeros(len(labels), structure.n_labels)
    return found.scatter(1, labels + torch.from_numpy(structure.graph.first[: structure.n_variables].copy()), 1.0)


def crf(repeats: int) -> None:
    """Chains beside pytorch-crf."""
    from torchcrf import CRF

    for n_labels in (17, 45):
        for length in (16, 64):
            schema, shape = chain(n_labels)
            layer, peer = ht.Layer(schema, shape, {"tag": "n"}), CRF(n_labels, batch_first=True)
            with torch.no_grad():
                peer.start_transitions.zero_()
                peer.end_transitions.zero_()
                peer.transitions.copy_(torch.from_numpy(-schema.factors["step"].table))
            scores = torch.randn(64, length, n_labels)
            mask = torch.ones(64, length, dtype=torch.bool)
            labels = layer.decode(scores, mask=mask)
            assert [each[each >= 0].tolist() for each in labels.labels] == peer.decode(scores, mask)
            lengths = mask.sum(1)
            a, b = medians(
                [partial(peer.decode, scores, mask), partial(layer.decode, scores, lengths=lengths)], repeats
            )
            times = f"pytorch-crf {a * 1e3:.1f} ms, ours {b * 1e3:.2f} ms, {a / b:.0f} times"
            print(f"chains, B = 64, n = {length}, K = {n_labels}: {times}")


SECTIONS = {"decode": decode, "step": step, "pyepo": pyepo, "crf": crf}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", metavar="section", default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--calls", type=int, default=5)
    options = parser.parse_args()
    global CALLS
    CALLS = options.calls
    torch.set_num_threads(1)
    for section in options.sections:
        SECTIONS[section](options.repeats)


if __name__ == "__main__":
    main()
