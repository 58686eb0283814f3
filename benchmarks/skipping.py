"""How many expensive costs a gate leaves uncomputed at a risk of 1%, and whether it keeps within that risk.

    python benchmarks/skipping.py                                        # synthetic news
    python benchmarks/skipping.py --corpus CONLL04 --unlabeled MORE...   # and real news, two black boxes
    python benchmarks/skipping.py --tagged CONLL2003_OR_CONLLU...        # and parts of speech

In each of 20 random splits a gate learns from half of the problems, is calibrated on a quarter, and is measured on the
last quarter: the share of expensive costs that it computes, and of the answers that are not the black box's, which is
to be within the limit that calibration stated. Expensive are the costs of relations, given those of entities; and, in
tagging, those of all words that a gate does not know by the words themselves. "constraints" is what they alone would
compute.

Then problems come one by one, to a scorer that takes its time: its calls for each problem are counted, and time is
shown as a share of what computing everything takes, in one call. In "one call" the gate guesses before any cost is
computed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from zlib import crc32

import numpy as np
from cheap import relation_features
from rich.console import Console
from rich.table import Table

from hasten import Batch, BeamSearch, Certifier, Gate, Schema, Solutions
from hasten.learning.features import Examples, guess_some, learn_some
from hasten.learning.gate import Cheap
from hasten.speedup.skipping import Calibrator, GatedSearch, disagreeing
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import no_progress, show_progress
from hasten.tasks.entity_relation.data.corpora import Corpora
from hasten.tasks.entity_relation.data.corpus import split
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.scoring.training import train_black_box
from hasten.tasks.entity_relation.task import EntityRelationTask, Training

TASK = EntityRelationTask(features="triples")


@dataclass(frozen=True)
class Case:
    """Problems with all costs, the black box's answers, and what a gate may see of them."""

    name: str
    batch: Batch
    answers: Solutions
    cheap: dict[str, Cheap]
    settled: bool = True  # whether the gate sees the costs of settled variables


@dataclass(frozen=True)
class Split:
    """What one split showed."""

    share: float
    changed: float
    limit: float

    @property
    def within(self) -> bool:
        return self.changed <= self.limit


# -- entities and relations ---------------------------------------------------------------------------------


def news(corpora: Corpora, training: str) -> Case:
    """Sentences without labels, as a black box that was trained on 70% of the labelled ones answers them."""
    train, _ = split(corpora.labelled, 0.7, 0)
    scorer = train_black_box(training, train, TASK, seed=0, progress=no_progress)
    text = intern(corpora.unlabeled)
    batch = TASK.batch(text.n_entities, scorer.costs(text)[0])
    name = "synthetic news" if corpora.synthetic else "news"
    return Case(f"{name}, {training}", batch, Certifier()(batch), {"relation": relation_features(text)})


# -- parts of speech ----------------------------------------------------------------------------------------


def read_tagged(path: Path) -> Iterator[list[tuple[str, str]]]:
    """Reads words with tags: CoNLL-U, or columns with the tag in the second."""
    sentence: list[tuple[str, str]] = []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t" if "\t" in line else " ")
            if not line.strip():
                if sentence:
                    yield sentence
                sentence = []
            elif len(columns) > 4 and columns[0].isdigit():
                sentence.append((columns[1], columns[3]))
            elif len(columns) == 4 and columns[0] != "-DOCSTART-":
                sentence.append((columns[0], columns[1][:2]))  # NNS as NN, VBZ as VB: coarse tags
    if sentence:
        yield sentence


def hashed(template: str, *values: object) -> int:
    return crc32(repr((template, values)).encode())


def word_features(words: Sequence[str], i: int) -> list[int]:
    """What the black box looks at; the first three are what a gate may see."""
    padded = ["<", "<", *words, ">", ">"]
    before2, before, word, after, after2 = (each.lower() for each in padded[i : i + 5])
    own = words[i]
    return [
        hashed("word", word), hashed("before", before), hashed("after", after),
        hashed("shape", own[:1].isupper(), own.isdigit(), "-" in own), hashed("suffix2", word[-2:]),
        hashed("suffix3", word[-3:]), hashed("suffix4", word[-4:]), hashed("prefix2", word[:2]),
        hashed("prefix3", word[:3]), hashed("pair", before, word), hashed("next", word, after),
        hashed("around", before, after), hashed("before2", before2, before), hashed("after2", after, after2),
        hashed("end", before[-3:], word[-3:]), hashed("first", i == 0, own[:1].isupper()),
    ]  # fmt: skip


def tagging(paths: Sequence[Path]) -> Case:
    """A black box of costs for each word, and of tags that follow each other, trained on a tenth of the sentences."""
    sentences = [sentence for path in paths for sentence in read_tagged(path) if 1 < len(sentence) <= 40]
    np.random.default_rng(0).shuffle(sentences)  # type: ignore[arg-type]
    tags = sorted({tag for sentence in sentences for _, tag in sentence})
    n_train = len(sentences) // 10
    rows = [word_features([word for word, _ in sentence], i) for sentence in sentences for i in range(len(sentence))]
    ids = np.array(rows, dtype=np.int64)
    gold = np.array([tags.index(tag) for sentence in sentences for _, tag in sentence])
    cut = sum(map(len, sentences[:n_train]))
    costs = train_tagger(ids % 2**17, gold, cut, len(tags))
    follows = np.full((len(tags), len(tags)), 0.5)
    for (left, right), n in Counter(
        (tags.index(a[1]), tags.index(b[1])) for s in sentences[:n_train] for a, b in pairwise(s)
    ).items():
        follows[left, right] += n
    schema = Schema()
    tag = schema.variable("tag", tags)
    pair = schema.factor("follows", left=tag, right=tag)
    pair.set_table(-np.log(follows / follows.sum(axis=1, keepdims=True)))
    lengths = [len(sentence) for sentence in sentences[n_train:]]
    shapes = []
    for size in sorted(set(lengths)):
        shape = schema.structure()
        variables = [shape.add(tag) for _ in range(size)]
        for left, right in pairwise(variables):
            shape.connect(pair, left=left, right=right)
        shapes.append(shape)
    number = np.searchsorted(sorted(set(lengths)), lengths)
    batch = Batch.build(shapes, number, costs[cut:].ravel())
    first = cut + np.concatenate([[0], np.cumsum(lengths)])

    def cheap(problems: IntArray, variables: IntArray) -> IntArray:
        return ids[first[problems] + variables, :3]

    return Case("parts of speech", batch, Certifier()(batch), {"tag": cheap})


def train_tagger(rows: IntArray, gold: IntArray, cut: int, n_tags: int) -> FloatArray:
    """Returns minus the logarithms of each tag's probability, for all words, learned from the first `cut`."""
    weights, lag = np.zeros((2, 2**17, n_tags))
    squares = np.full(weights.shape, 0.01)
    examples = Examples(rows, np.ones(rows.shape), np.zeros((len(rows), n_tags)))
    rng = np.random.default_rng(0)
    for epoch in range(5):
        learn_some(examples, gold, rng.permutation(cut), 0.1, epoch * cut, weights, squares, lag)
    weights -= lag / (5 * cut)
    label, doubt = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    guess_some(examples, weights, label, doubt)
    scores = np.stack([weights[rows, tag].sum(axis=1) for tag in range(n_tags)], axis=1)
    scores -= scores.max(axis=1, keepdims=True)
    right = (label[cut:] == gold[cut:]).mean()
    Console().print(f"The tagger has {right:.1%} of the other words right, each alone.", highlight=False)
    return np.log(np.exp(scores).sum(axis=1, keepdims=True)) - scores


# -- measuring ----------------------------------------------------------------------------------------------


def measure(case: Case, seed: int, risk: float) -> Split:
    """Learns, calibrates and measures on one split."""
    n = len(case.batch)
    learn, tune, test = np.split(np.random.default_rng(seed).permutation(n), [n // 2, 3 * n // 4])
    gate = Gate(case.cheap, case.settled, seed=seed).fit(case.batch.select(learn), case.answers.select(learn))
    chosen = Calibrator(risk).max_doubt(GatedSearch(gate), case.batch.select(tune), case.answers.select(tune))
    some = case.batch.select(test)
    found = GatedSearch(gate, chosen.max_doubt)(some)
    n_skipped = int((some.n_variables - found.n_costs).sum())
    changed = float(disagreeing(found, case.answers.select(test)).mean())
    return Split(1 - n_skipped / int(gate.expensive(some).sum()), changed, chosen.limit)


def constraints_alone(case: Case) -> float:
    """The share of expensive variables that, given the cheapest labels of the others, constraints leave a choice."""
    gate = Gate(case.cheap).fit(case.batch[:10], case.answers[:10])
    expensive = gate.expensive(case.batch)
    cost = case.batch.cost.copy()
    owner = np.repeat(np.arange(len(case.batch)), case.batch.n_variables)
    starts, sizes = case.batch.label_ranges(owner, np.arange(owner.size) - case.batch.variable_at[owner])
    starts = starts + case.batch.cost_at[owner]
    for v in np.flatnonzero(~expensive).tolist():
        mine = cost[starts[v] : starts[v] + sizes[v]]
        mine[np.arange(sizes[v]) != mine.argmin()] = np.inf
    kind = next(iter(case.cheap))
    held = Batch.build(case.batch.structures, case.batch.structure, cost)
    of_kind = held.structures[0].schema.variables[kind]
    regrets = gate._describe(held, expensive, of_kind, np.flatnonzero(expensive), 1.0).regrets
    return float((np.isfinite(regrets).sum(axis=1) > 1).mean())


def online(case: Case, risk: float, n: int = 60) -> dict[str, tuple[float, float]]:
    """Returns, for problems that come one by one, calls of the scorer and milliseconds of processor time for each.

    The scorer stands for a network: each variable is a sequence of 8 vectors that goes through four dense layers.
    """
    half = len(case.batch) // 2
    layers = np.random.default_rng(0).normal(size=(4, 768, 768)).astype(np.float32) / 28
    calls = [0]

    def scorer(problems: IntArray, variables: IntArray) -> FloatArray:
        calls[0] += 1
        signal = np.ones((768, 8 * len(problems)), dtype=np.float32)
        for layer in layers:
            signal = np.maximum(layer @ signal, 0)
        ways = zip(problems.tolist(), variables.tolist(), strict=True)
        return np.concatenate([case.batch[p].costs_of(v) for p, v in ways])

    lazy = Batch.build(case.batch.structures, case.batch.structure, scorer)
    theta = Calibrator().theta(BeamSearch(2), case.batch[half : half + 2000]).theta
    gate = Gate(case.cheap, case.settled).fit(case.batch[:half], case.answers[:half])
    tune = slice(half, half + 2000)
    doubt = Calibrator(risk).max_doubt(GatedSearch(gate), case.batch[tune], case.answers[tune]).max_doubt
    ways = {"everything": Certifier(), "theta": BeamSearch(2, theta=theta), "gate": GatedSearch(gate, doubt)}
    found = {}
    for name, answer in ways.items():
        answer(lazy[0])
        calls[0], begin = 0, time.process_time()
        for p in range(len(lazy) - n, len(lazy)):
            answer(lazy[p])
        found[name] = calls[0] / n, 1000 * (time.process_time() - begin) / n
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--unlabeled", type=Path, nargs="*", default=[])
    parser.add_argument("--tagged", type=Path, nargs="*", default=[])
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--risk", type=float, default=0.01)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    cases = [news(Corpora.made_up(1000), Training.STRUCTURED)]
    if args.corpus:
        corpora = Corpora.read(args.corpus, args.unlabeled)
        cases += [news(corpora, training) for training in Training]
    cases += [replace(case, name=f"{case.name}, one call", settled=False) for case in cases]
    if args.tagged:
        cases.append(tagging(args.tagged))
    table = Table("task", "problems", "constraints", "computed", "changed", "limit", "within", "online: theta", "gate")
    results = []
    with show_progress(Console(stderr=True)) as progress:
        for case in cases:
            splits = []
            for seed in range(args.splits):
                progress(f"Splitting {case.name}", seed / args.splits)
                splits.append(measure(case, seed, args.risk))
            shares, changed, limits = np.array([(each.share, each.changed, each.limit) for each in splits]).T
            n_within = sum(each.within for each in splits)
            alone = constraints_alone(case)
            ways = online(case, args.risk) if "relation" in case.cheap else {}
            whole = ways.get("everything", (1, math.nan))[1]
            shown = {way: f"{calls:.1f} calls, {ms / whole:.2f}" for way, (calls, ms) in ways.items()}
            table.add_row(
                case.name,
                f"{len(case.batch):,}",
                f"{alone:.1%}",
                f"{shares.mean():.1%} ({shares.min():.1%} to {shares.max():.1%})",
                f"{changed.mean():.2%} (at most {changed.max():.2%})",
                f"{limits.mean():.2%}",
                f"{n_within} of {len(splits)}",
                shown.get("theta", ""),
                shown.get("gate", ""),
            )
            each_split = [asdict(each) for each in splits]
            results.append({"task": case.name, "constraints": alone, "online": ways, "splits": each_split})
    Console(width=160).print(table)
    if args.out:
        args.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
