"""Heuristics for the paper's search, linear and neural, learned in its way and in those of its relatives (paper §6).

    python benchmarks/heuristics.py --corpus CONLL04 [--box structured] [--epochs 6] [--seeds 2]

A black box labels unlabeled sentences by proof; a beam search, constraints ignored as in the paper, learns to find
these answers. h(v) is a sum over the decisions so far: of a weight for each (source type, relation, target type), or of
a small network that also sees the decision's costs. Searches run for all problems of a size, and all nodes of their
beams, at once. The ways to learn, each on the states that the search itself visits:

Algorithm 1     at the first mistake, prefer the good node to the mean of the beam; on to the next problem
margin (LaSO)   the same where the good node wins by less than a margin; search goes on from the good node
DAgger          at every state visited, cross-entropy of the answer's label among all labels
LOLS            at every state visited, the best label is the one from which the search goes on to fewest mistakes

The last rows do without a heuristic: *pruning* drops labels that cost too much more than a variable's best, as
calibrated at a risk of 1%, and solves the rest exactly; *distillation* is a linear classifier of single labels that
was trained on the answers as if they were gold. "as the optimum": valid, and no dearer than the optimum.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn

from hasten import Batch, Certifier, Solutions
from hasten.learning.learner import typical_gap
from hasten.search.beam import greedy
from hasten.speedup.audit import upper_limit
from hasten.speedup.skipping import disagreeing
from hasten.support.arrays import ranges
from hasten.support.terminal import no_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import split
from hasten.tasks.entity_relation.labelling import all_in_words
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, ordered_pairs

TASK = EntityRelationTask(features="triples")
T, R = len(TASK.entity_labels), len(TASK.relation_labels)
MOST_ENTITIES = 6
RISK = 0.01
WAYS = "Algorithm 1", "margin (LaSO)", "DAgger", "LOLS"


class Sized:
    """Problems of one size: costs padded to the larger label set, answers, and what decides with what."""

    def __init__(self, n: int, cost: np.ndarray, answers: np.ndarray) -> None:
        self.n, self.n_steps = n, n * n
        types = cost[:, : n * T].reshape(-1, n, T)
        width = max(T, R)
        padded = np.full((len(cost), n * n, width), 1e6)
        padded[:, :n, :T], padded[:, n:, :R] = types, cost[:, n * T :].reshape(len(cost), -1, R)
        self.cost, self.answers = torch.tensor(padded, dtype=torch.float32), torch.tensor(answers)
        self.pairs = ordered_pairs(n)

    def select(self, some: Tensor) -> Sized:
        other = object.__new__(Sized)
        other.__dict__.update(self.__dict__, cost=self.cost[some], answers=self.answers[some])
        return other


class Linear(nn.Module):
    """A weight for each triple: the paper's heuristic, its pairs folded into triples."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(T, R, T))
        self.rate = 0.1

    def forward(self, source: Tensor, target: Tensor, cost: Tensor) -> Tensor:
        return self.weight.permute(0, 2, 1)[source, target]


class Neural(nn.Module):
    """A network over the types that a relation would join, and the costs of its labels."""

    def __init__(self) -> None:
        super().__init__()
        self.types = nn.Embedding(T * T, 16)
        self.net = nn.Sequential(nn.Linear(16 + R, 32), nn.GELU(), nn.Linear(32, R))
        nn.init.zeros_(self.net[2].weight)
        nn.init.zeros_(self.net[2].bias)
        self.rate = 0.01

    def forward(self, source: Tensor, target: Tensor, cost: Tensor) -> Tensor:
        relative = torch.tanh((cost - cost.amin(dim=-1, keepdim=True)) / 5)
        return self.net(torch.cat([self.types(source * T + target), relative], dim=-1))


def gains(model: nn.Module, problems: Sized, labels: Tensor, step: int) -> Tensor:
    """Returns what each label of a step adds to h, for nodes (problems, beam, labels so far); types add nothing."""
    if step < problems.n:
        return torch.zeros(*labels.shape[:2], problems.cost.shape[-1])
    i, j = problems.pairs[step - problems.n]
    cost = problems.cost[:, None, step, :R].expand(-1, labels.shape[1], -1)
    found = model(labels[..., i], labels[..., j], cost)
    return nn.functional.pad(found, (0, problems.cost.shape[-1] - R))


def search(model: nn.Module | None, problems: Sized, width: int) -> Tensor:
    """Returns the best labelling that a beam finds for each problem."""
    n = len(problems.cost)
    labels, priority = torch.zeros(n, 1, 0, dtype=torch.int64), torch.zeros(n, 1)
    for step in range(problems.n_steps):
        labels, priority = expand(model, problems, labels, priority, step, width)
    return labels[:, 0]


def expand(
    model: nn.Module | None, problems: Sized, labels: Tensor, priority: Tensor, step: int, width: int
) -> tuple[Tensor, Tensor]:
    """Takes one step: the cheapest `width` of all candidates, by g - h."""
    each = priority[..., None] + problems.cost[:, None, step]
    if model is not None:
        each = each - gains(model, problems, labels, step)
    best, at = each.flatten(1).topk(min(width, each.shape[1] * each.shape[2]), dim=1, largest=False)
    node, label = at // each.shape[2], at % each.shape[2]
    kept = torch.gather(labels, 1, node[..., None].expand(-1, -1, labels.shape[2]))
    return torch.cat([kept, label[..., None]], dim=2), best


def losses(model: nn.Module, problems: Sized, width: int, way: str) -> Tensor:
    """Returns what a way to learn minimises on some problems, search and all."""
    n, answers = len(problems.cost), problems.answers
    labels, priority = torch.zeros(n, 1, 0, dtype=torch.int64), torch.zeros(n, 1)
    good, open_, total = torch.zeros(n), torch.ones(n, dtype=torch.bool), torch.zeros(())
    for step in range(problems.n_steps):
        right = answers[:, step]
        if way in ("DAgger", "LOLS"):
            first = labels[:, :1]
            scores = gains(model, problems, first, step)[:, 0] - problems.cost[:, step]
            target = right if way == "DAgger" else best_by_rollout(model, problems, first, step)
            if step >= problems.n:
                total = total + nn.functional.cross_entropy(scores[:, :R], target, reduction="sum")
            with torch.no_grad():
                labels, priority = expand(model, problems, labels, priority, step, 1)
            continue
        before = answers[:, None, :step]
        own = gains(model, problems, before, step)[:, 0]
        good = good + problems.cost[torch.arange(n), step, right] - own[torch.arange(n), right]
        labels, priority = expand(model, problems, labels, priority, step, width)
        is_good = (labels == answers[:, None, : step + 1]).all(dim=2)
        last = step == problems.n_steps - 1
        if way == "Algorithm 1":
            lost = open_ & ~is_good.any(dim=1)
            total = total + (good - priority.mean(dim=1))[lost].sum()
            if last:
                wrong = open_ & is_good.any(dim=1) & ~is_good[:, 0]
                total = total + (good - priority[:, 0])[wrong].sum()
            open_ = open_ & ~lost
        else:
            rivals = torch.where(is_good, torch.inf, priority).amin(dim=1)
            total = total + torch.relu(good - rivals + 1.0)[torch.isfinite(rivals)].sum()
            lost = ~is_good.any(dim=1)
            labels = torch.where(lost[:, None, None], answers[:, None, : step + 1], labels)
            priority = torch.where(lost[:, None], good[:, None], priority)
    return total / n


@torch.no_grad()
def best_by_rollout(model: nn.Module, problems: Sized, labels: Tensor, step: int) -> Tensor:
    """Returns the label from which the search goes on to the fewest wrong labels; a tie goes to the answer's."""
    if step < problems.n:
        return problems.answers[:, step]
    wrong = []
    for label in range(R):
        node = torch.cat([labels, torch.full((len(labels), 1, 1), label)], dim=2)
        priority = torch.zeros(len(labels), 1)
        for later in range(step + 1, problems.n_steps):
            node, priority = expand(model, problems, node, priority, later, 1)
        wrong.append((node[:, 0] != problems.answers).sum(dim=1) - 0.5 * (problems.answers[:, step] == label))
    return torch.stack(wrong, dim=1).argmin(dim=1)


def learn(model: nn.Module, sizes: list[Sized], width: int, way: str, epochs: int, seed: int) -> nn.Module:
    """Trains a heuristic by averaged steps; the costs' scale does not change."""
    random = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), model.rate)
    average = torch.optim.swa_utils.AveragedModel(model)
    for _ in range(epochs):
        batches = [(one, some) for one in sizes for some in torch.randperm(len(one.cost), generator=random).split(64)]
        for at in torch.randperm(len(batches), generator=random).tolist():
            one, some = batches[at]
            loss = losses(model, one.select(some), width, way)
            if loss.requires_grad:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            average.update_parameters(model)
    return average.module


def by_size(batch: Batch, answers: Solutions, numbers: np.ndarray) -> list[tuple[Sized, np.ndarray]]:
    """Returns some problems in groups of one size, with their numbers; costs in units of a typical gap."""
    scale = typical_gap(batch, np.ones(int(batch.variable_at[-1]), dtype=bool))
    groups = defaultdict(list)
    for p in numbers.tolist():
        groups[int(batch.n_variables[p] ** 0.5)].append(p)
    found = []
    for n, mine in sorted(groups.items()):
        if 2 <= n <= MOST_ENTITIES:
            cost = np.stack([batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]] for p in mine])
            labels = np.stack([answers.values[batch.variable_at[p] : batch.variable_at[p + 1]] for p in mine])
            found.append((Sized(n, cost / scale, labels), np.array(mine)))
    return found


def scored(batch: Batch, answers: Solutions, numbers: np.ndarray, values: np.ndarray) -> tuple[float, float]:
    """Returns how many of some answers cost what the optimum costs, and how many are valid."""
    found = Solutions.scored(batch, values, np.ones(len(batch), dtype=bool), batch.n_variables, None).select(numbers)
    return 1 - float(disagreeing(found, answers.select(numbers)).mean()), float(found.valid.mean())


def pruned(batch: Batch, slack: float) -> tuple[Batch, float]:
    """Returns problems without the labels that cost more than `slack` above the best, and the share of labels left."""
    problems = np.repeat(np.arange(len(batch)), batch.n_variables)
    starts, sizes = batch.label_ranges(problems, np.arange(len(problems)) - batch.variable_at[problems])
    starts = starts + batch.cost_at[problems]
    best = np.minimum.reduceat(batch.cost, starts)
    drop = batch.cost > np.repeat(best + slack, sizes)
    assert (ranges(starts, sizes) == np.arange(len(drop))).all()
    return Batch.build(batch.structures, batch.structure, np.where(drop, np.inf, batch.cost)), 1 - float(drop.mean())


def prune(batch: Batch, answers: Solutions, tune: np.ndarray, test: np.ndarray) -> tuple[float, float, float]:
    """Calibrates from the safest slack down; returns agreement and validity on other problems, and the share left."""
    mine, theirs, chosen = batch.select(tune), answers.select(tune), np.inf
    spread = float(batch.cost.max() - batch.cost.min())
    for slack in spread * 0.8 ** np.arange(40):
        found = Certifier()(pruned(mine, slack)[0])
        changed = ~found.valid | (np.abs(found.cost - theirs.cost) > 1e-6 * np.maximum(1, np.abs(theirs.cost)))
        if upper_limit(int(changed.sum()), len(changed), 0.95) > RISK:
            break
        chosen = slack
    some, share = pruned(batch.select(test), chosen)
    found, right = Certifier()(some), answers.select(test)
    same = found.valid & (np.abs(found.cost - right.cost) <= 1e-6 * np.maximum(1, np.abs(right.cost)))
    return float(same.mean()), float(found.valid.mean()), share


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--box", default="structured")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--widths", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    corpora = Corpora.read(args.corpus)
    train, _ = split(corpora.labelled, 0.7, 0)
    scorer = train_black_box(args.box, train, TASK, seed=0, progress=no_progress)
    sentences = [each for each in corpora.unlabeled if len(each.spans) <= MOST_ENTITIES]
    text = intern(sentences)
    batch = TASK.batch(text.n_entities, scorer.costs(text)[0])
    answers = Certifier()(batch)
    rows: dict[tuple[str, str], list[tuple[float, float, float]]] = defaultdict(list)
    for seed in range(args.seeds):
        order = np.random.default_rng(seed).permutation(len(batch))
        first, tune, test = np.split(order, [len(order) // 2, 3 * len(order) // 4])
        taught = [one for one, _ in by_size(batch, answers, first)]
        measured = by_size(batch, answers, test)
        torch.manual_seed(seed)
        for width in args.widths:
            for name, way, kind in [
                ("none", "", None),
                *((f"{kind.__name__.lower()}", way, kind) for way in WAYS for kind in (Linear, Neural)),
            ]:
                model = None if kind is None else learn(kind(), taught, width, way, args.epochs, seed)
                values, begin = np.zeros(int(batch.variable_at[-1]), dtype=np.int64), time.process_time()
                with torch.inference_mode():
                    for one, numbers in measured:
                        for p, found in zip(numbers.tolist(), search(model, one, width).numpy(), strict=True):
                            values[batch.variable_at[p] : batch.variable_at[p + 1]] = found
                took = 1e6 * (time.process_time() - begin) / len(test)
                rows[f"heuristic: {name}", f"{way}, beam {width}".lstrip(", ")].append(
                    (*scored(batch, answers, test, values), took)
                )
        same, valid, share = prune(batch, answers, tune, test)
        rows["pruning", f"{share:.0%} of the labels kept"].append((same, valid, np.nan))
        named = all_in_words(TASK, answers.select(first).values, text.n_entities[first])
        labelled = [
            type(each)(each.id, each.tokens, each.spans, each.pos, *labels)
            for each, labels in zip([sentences[p] for p in first], named, strict=True)
        ]
        student = train_black_box("independent", labelled, TASK, seed=seed)
        alone = greedy()(TASK.batch(text.n_entities, student.costs(text)[0]))
        rows["distillation", "each label alone"].append((*scored(batch, answers, test, alone.values), np.nan))
    table = Table("what", "how", "as the optimum", "valid", "µs each")
    for (what, how), each in rows.items():
        same, valid, took = np.mean(each, axis=0)
        table.add_row(what, how, f"{same:.1%}", f"{valid:.1%}", "" if np.isnan(took) else f"{took:.0f}")
    Console(width=110).print(f"{len(batch):,} sentences, {args.seeds} seeds", table)


if __name__ == "__main__":
    main()
