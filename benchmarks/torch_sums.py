"""Chains: log-likelihood with its gradient, and decoding, beside pytorch-crf and torch-struct, in turns.

    python benchmarks/torch_sums.py [--device cuda] [--batch 64 4096] [--labels 17 45] [--length 64] [--rounds 7]

A step is the loss of a batch of float32 scores and gold tags and its gradient, with respect to scores and transitions.
All compute the same: the largest difference of losses and gradients is printed. Times are medians, in turns of five: on
the CPU processor time of one thread, since machines are shared; on CUDA time that passes.
torch-struct gets its potentials as people build them; where it runs out of memory it goes through the batch in pieces.
On the CPU decoding is compared too. Needs `pip install pytorch-crf` and `pip install --no-deps torch-struct`.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

import hasten
import hasten.torch as ht

warnings.filterwarnings("ignore")


def chain(n_labels: int) -> ht.Layer:
    """Returns the layer of a tagger: transitions are trained."""
    schema = hasten.Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    follow = schema.factor("follow", one=tag, next=tag)

    def shape(n: int) -> hasten.Structure:
        structure = schema.structure([tag] * n)
        for i in range(n - 1):
            structure.connect(follow, one=i, next=i + 1)
        return structure

    return ht.Layer(schema, shape, {"tag": "n"}, tables=["follow"])


class Ours:
    """hasten's layer and likelihood."""

    def __init__(self, transitions: Tensor) -> None:
        self.layer = chain(len(transitions)).to(transitions.device)
        self.layer.tables["follow"].parts[0].data = transitions.clone()
        self.loss = ht.NegativeLogLikelihood(self.layer, reduction="sum")

    def step(self, scores: Tensor, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the loss and the gradients of scores and transitions."""
        transitions = self.layer.tables["follow"].parts[0]
        loss = self.loss(scores, gold)
        return (loss.detach(), *torch.autograd.grad(loss, [scores, transitions]))

    def decode(self, scores: Tensor) -> Any:
        """Returns the best tags."""
        return self.layer.decode(scores).labels


class Crf:
    """pytorch-crf."""

    def __init__(self, transitions: Tensor) -> None:
        from torchcrf import CRF

        self.crf = CRF(len(transitions), batch_first=True).to(transitions.device)
        self.crf.transitions.data = transitions.clone()
        self.crf.start_transitions.data.zero_()
        self.crf.end_transitions.data.zero_()

    def step(self, scores: Tensor, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the loss and the gradients of scores and transitions."""
        loss = -self.crf(scores, gold)
        return (loss.detach(), *torch.autograd.grad(loss, [scores, self.crf.transitions]))

    def decode(self, scores: Tensor) -> Any:
        """Returns the best tags."""
        with torch.no_grad():
            return torch.tensor(self.crf.decode(scores), device=scores.device)


class Struct:
    """torch-struct."""

    def __init__(self, transitions: Tensor) -> None:
        import torch_struct

        self.chain, self.n_pieces = torch_struct.LinearChainCRF, 1
        self.transitions = transitions.clone().requires_grad_()

    def potentials(self, scores: Tensor) -> Tensor:
        """Returns log-potentials (examples, steps, next, one)."""
        pairs = scores[:, 1:, :, None] + self.transitions.T
        return torch.cat([pairs[:, :1] + scores[:, :1, None, :], pairs[:, 1:]], 1)

    def step(self, scores: Tensor, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the loss and the gradients of scores and transitions."""
        while True:
            try:
                return self._in_pieces(scores, gold)
            except torch.OutOfMemoryError:
                torch.cuda.empty_cache()
                self.n_pieces *= 2

    def _in_pieces(self, scores: Tensor, gold: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        total, of_scores, of_table = scores.new_zeros(()), [], torch.zeros_like(self.transitions)
        for some, known in zip(scores.chunk(self.n_pieces), gold.chunk(self.n_pieces), strict=True):
            mine = some.detach().requires_grad_()
            potentials = self.potentials(mine)
            chosen = potentials.gather(2, known[:, 1:, None, None].expand(-1, -1, 1, potentials.shape[3]))
            chosen = chosen[:, :, 0].gather(2, known[:, :-1, None])
            loss = self.chain(potentials).partition.sum() - chosen.sum()
            first, second = torch.autograd.grad(loss, [mine, self.transitions])
            total, of_table = total + loss.detach(), of_table + second
            of_scores.append(first)
        return total, torch.cat(of_scores), of_table

    def decode(self, scores: Tensor) -> Any:
        """Returns the best tags."""
        found = self.chain(self.potentials(scores)).argmax
        tags = found.sum(2).argmax(-1)
        return torch.cat([tags, found[:, -1].sum(-1).argmax(-1)[:, None]], 1)


def medians(ways: dict[str, Callable[[], Any]], rounds: int, device: str) -> dict[str, float]:
    """Returns the median milliseconds of each way, in turns."""
    times: dict[str, list[float]] = {name: [] for name in ways}
    clock = time.perf_counter if device == "cuda" else time.process_time
    for turn in range(rounds + 1):
        for name, way in ways.items():
            for _ in range(5):
                if device == "cuda":
                    torch.cuda.synchronize()
                start = clock()
                way()
                if device == "cuda":
                    torch.cuda.synchronize()
                seconds = clock() - start
                if turn:  # before that, things are compiled and captured
                    times[name].append(1e3 * seconds)
                if seconds > 0.1:
                    break
    return {name: statistics.median(each) for name, each in times.items()}


def compare(args: argparse.Namespace, n_labels: int, batch: int) -> None:
    """Prints a comparison for one size."""
    generator = torch.Generator().manual_seed(n_labels)
    device = args.device
    transitions = torch.randn(n_labels, n_labels, generator=generator).to(device)
    scores = torch.randn(batch, args.length, n_labels, generator=generator).to(device).requires_grad_()
    gold = torch.randint(0, n_labels, (batch, args.length), generator=generator).to(device)
    ways = {"hasten": Ours(transitions), "pytorch-crf": Crf(transitions), "torch-struct": Struct(transitions)}
    ours = ways["hasten"].step(scores, gold)
    print(f"{device}, {batch} chains of {args.length}, {n_labels} labels")
    for name, way in list(ways.items())[1:]:
        theirs = way.step(scores, gold)
        off = [float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, theirs, strict=True)]
        print(f"  {name} differs by {max(off):.1e} at most, relatively")
    steps = {name: (lambda way=way: way.step(scores, gold)) for name, way in ways.items()}
    told("likelihood and gradient", medians(steps, args.rounds, device))
    if device == "cpu":
        best = ways["hasten"].decode(scores)
        print(f"  decoded alike: {bool((best == ways['pytorch-crf'].decode(scores)).all())}")
        told(
            "decode",
            medians(
                {n: (lambda way=way: way.decode(scores.detach())) for n, way in ways.items() if n != "torch-struct"},
                args.rounds,
                device,
            ),
        )


def told(what: str, found: dict[str, float]) -> None:
    """Prints times, and how many times ours they are."""
    each = ", ".join(f"{name} {ms:.2f} ms ({ms / found['hasten']:.1f}x)" for name, ms in found.items())
    print(f"  {what}: {each}", flush=True)


def main() -> None:
    """Compares all sizes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--batch", type=int, nargs="+")
    parser.add_argument("--labels", type=int, nargs="+", default=[17, 45])
    parser.add_argument("--length", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=7)
    args = parser.parse_args()
    torch.set_num_threads(1)
    print(f"torch {torch.__version__}")
    for batch in args.batch or ([64, 4096] if args.device == "cuda" else [64]):
        for n_labels in args.labels:
            compare(args, n_labels, batch)


if __name__ == "__main__":
    main()
