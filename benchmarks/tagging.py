"""Tagging on a corpus: certified answers against Viterbi's algorithm in NumPy where there are no rules, against HiGHS
where there are.

A tagger is trained on 70% of the sentences, and every sentence of the corpus is answered. Without rules, costs are
compared with Viterbi's, and times with the fastest of some ways to write it: over sentences of all lengths at once, in
blocks of several sizes, and one by one. With rules, every sentence is compared with HiGHS, cost by cost. Times are CPU
time, the least of some rounds, in turns, costs given.

    python benchmarks/tagging.py --corpus en_ewt-ud-dev.conllu.gz
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import hasten
from hasten.tasks.tagging.corpus import generate, read_all
from hasten.tasks.tagging.model import TagModel
from hasten.tasks.tagging.training import viterbi

BLOCKS = (64, 256, 1024, 1 << 30)  # sentences that Viterbi takes at once


def in_blocks(costs: np.ndarray, first: np.ndarray, follow: np.ndarray, size: int) -> None:
    """Viterbi over blocks of sentences."""
    for start in range(0, len(first) - 1, size):
        some = first[start : start + size + 1]
        viterbi(costs[some[0] : some[-1]], some - some[0], follow)


def one_by_min(costs: np.ndarray, follow: np.ndarray) -> list[int]:
    """Viterbi for one sentence, by minima alone; labels are found on the way back."""
    best = [costs[0]]
    for cost in costs[1:]:
        best.append((best[-1][:, None] + follow).min(axis=0) + cost)
    labels = [int(best[-1].argmin())]
    for before in reversed(best[:-1]):
        labels.append(int((before + follow[:, labels[-1]]).argmin()))
    return labels[::-1]


def in_turns(rounds: int, ways: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Returns the least CPU seconds of each way."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.process_time()
            way()
            least[name] = min(least[name], time.process_time() - started)
    return least


def without_rules(model: TagModel, sentences: Sequence, rounds: int) -> None:
    """Equal to Viterbi, and how fast."""
    batch, certify = model.batch(sentences), hasten.Certifier()
    ours, theirs = certify(batch), model.viterbi(batch)
    same = np.isclose(ours.cost, theirs.cost, rtol=1e-9)
    print(f"no rules: {len(batch):,} sentences, {ours.proved.sum():,} proved, {same.sum():,} equal to Viterbi in cost")
    if not (ours.proved.all() and same.all()):
        raise SystemExit("A sentence was not proved, or not equal to Viterbi's.")
    costs, first = model.costs(sentences), batch.variable_at
    ways: dict[str, Callable[[], object]] = {"ours": lambda: certify(batch)}
    for size in BLOCKS:
        ways[f"Viterbi, {min(size, len(batch)):,} at once"] = lambda size=size: in_blocks(
            costs, first, model.follow, size
        )
    report("batched", in_turns(rounds, ways), len(batch))
    some = [p for p in range(len(batch)) if first[p + 1] > first[p]][:: max(1, len(batch) // 300)]
    problems, each = [batch[p] for p in some], [costs[first[p] : first[p + 1]] for p in some]
    singles: dict[str, Callable[[], object]] = {
        "ours": lambda: [certify(problem) for problem in problems],
        "Viterbi, labels kept": lambda: [viterbi(cost, np.array([0, len(cost)]), model.follow) for cost in each],
        "Viterbi, minima alone": lambda: [one_by_min(cost, model.follow) for cost in each],
    }
    report("one by one", in_turns(rounds, singles), len(some))


def report(what: str, took: dict[str, float], n: int) -> None:
    """Prints microseconds a sentence, and how many times faster than the best peer ours is."""
    peers = {name: seconds for name, seconds in took.items() if name != "ours"}
    best = min(peers, key=peers.__getitem__)
    shown = ", ".join(f"{name} {1e6 * seconds / n:.1f}" for name, seconds in took.items())
    print(f"  {what}, µs a sentence: {shown}. Ours: {peers[best] / took['ours']:.2f} times as fast as the best.")


def with_rules(model: TagModel, rules: Sequence[str], sentences: Sequence) -> None:
    """Equal to HiGHS on every sentence."""
    ruled = model.with_rules(rules, bio=model.rules.bio)
    batch, solver = ruled.batch(sentences), hasten.make_solver("highs")
    certify = hasten.Certifier()
    certify(batch)
    started = time.process_time()
    ours = certify(batch)
    mine = time.process_time() - started
    started = time.process_time()
    theirs = [solver.solve(batch[p]) for p in range(len(batch))]
    highs = time.process_time() - started
    costs = np.array([answer.cost for answer in theirs])  # inf where nothing keeps the rules
    both = np.isclose(ours.cost, costs, rtol=1e-6, atol=1e-6)
    binding = int((~ruled.viterbi(batch).valid).sum())
    print(f"rules {', '.join(rules)}: {len(batch):,} sentences; in {binding:,} of them they change the answer")
    print(f"  {ours.proved.sum():,} proved, {both.sum():,} equal to HiGHS; {highs / mine:.0f} times as fast, inference")
    if not both.all():
        raise SystemExit("An answer is not the solver's.")


def main() -> None:
    """Runs all of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", help="Tagged sentences; made-up news without it.")
    parser.add_argument("--column")
    parser.add_argument("--rule", action="append", help="At least one VERB, at most three ADJ by default.")
    parser.add_argument("--bio", action="store_true")
    parser.add_argument("--rounds", type=int, default=40)
    given = parser.parse_args()
    sentences = read_all(given.corpus, column=given.column) if given.corpus else list(generate(600, 0))
    order = np.random.default_rng(0).permutation(len(sentences))
    train = [sentences[n] for n in order[: len(order) * 7 // 10]]
    test = [sentences[n] for n in order[len(order) * 7 // 10 :]]
    model = TagModel.train(train, bio=given.bio)
    gold = [tag for sentence in test for tag in sentence.tags]
    found = hasten.Certifier()(model.batch(test)).labels
    right = np.mean([model.tags[label] == tag for label, tag in zip(found, gold, strict=True)])
    print(
        f"{len(train):,} sentences train, {len(test):,} test: {right:.4f} of the tags are right, {len(model.tags)} tags"
    )
    without_rules(model, sentences, given.rounds)
    default = ["at least 1 VERB", "at most 3 ADJ"] if given.corpus else ["at least 1 VBD", "at most 2 NNP"]
    with_rules(model, given.rule or default, sentences)


if __name__ == "__main__":
    main()
