"""Tables that change with every sentence: a structured perceptron for part-of-speech tags, decoded by us and by NumPy.

The perceptron has a weight for each word and tag, and for each pair of neighbouring tags. It changes both after every
mistake, so each sentence is decoded with another table of transitions. Both see the same weights, in turns, and
their optima are compared. Building a problem counts as decoding it. NumPy has one matrix of sums for each word. Times
are by the clock.

    python benchmarks/training.py                             # sentences that it makes up
    python benchmarks/training.py en_ewt-ud-dev.conllu.gz     # tagged sentences, CoNLL-U, plain or gzipped
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import numpy as np

import hasten

Sentence = tuple[list[str], list[str]]  # words and tags
TAGS = 17  # of made-up sentences


def read(path: Path) -> Iterator[Sentence]:
    """Yields the sentences of a CoNLL-U file."""
    text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    for block in text.decode().split("\n\n"):
        rows = [line.split("\t") for line in block.splitlines() if line[:1].isdigit()]
        rows = [row for row in rows if row[0].isdigit()]  # neither ranges nor empty nodes
        if rows:
            yield [row[1].lower() for row in rows], [row[3] for row in rows]


def made_up(n: int, seed: int) -> Iterator[Sentence]:
    """Yields sentences of a hidden Markov model: each tag has its words, and tags it likes to be followed by."""
    rng = np.random.default_rng(seed)
    follow = rng.dirichlet(np.full(TAGS, 0.3), size=TAGS)
    for _ in range(n):
        tags = [int(rng.integers(TAGS))]
        for _ in range(int(rng.integers(1, 25))):
            tags.append(int(rng.choice(TAGS, p=follow[tags[-1]])))
        yield [f"w{(tag * 40 + int(rng.zipf(1.5))) % 600}" for tag in tags], [f"T{tag}" for tag in tags]


def viterbi(costs: np.ndarray, onto: np.ndarray) -> tuple[list[int], float]:
    """Returns the best tags and their cost, given what each tag costs after each other one: `onto[tag, before]`."""
    best, rows, back = costs[0], np.arange(len(onto)), []
    for here in costs[1:]:
        sums = onto + best
        before = sums.argmin(axis=1)
        best = sums[rows, before] + here
        back.append(before)
    tags = [int(best.argmin())]
    for before in reversed(back):
        tags.append(int(before[tags[-1]]))
    return tags[::-1], float(best.min())


class Decoder:
    """Ours: a shape for each number of words, and a table of transitions with each problem."""

    def __init__(self, tags: list[str]) -> None:
        self.schema = hasten.Schema()
        self.tag = self.schema.variable("tag", tags)
        self.follow = self.schema.factor("follow", left=self.tag, right=self.tag)
        self.shapes: dict[int, hasten.Structure] = {}
        self.certify = hasten.Certifier()

    def shape(self, n: int) -> hasten.Structure:
        """Returns the shape of sentences with so many words."""
        if n not in self.shapes:
            shape = self.shapes[n] = self.schema.structure()
            for left, right in pairwise([shape.add(self.tag) for _ in range(n)]):
                shape.connect(self.follow, left=left, right=right)
        return self.shapes[n]

    def __call__(self, costs: np.ndarray, follow: np.ndarray) -> tuple[list[int], float]:
        """Returns the best tags and their cost."""
        problem = self.shape(len(costs)).problem(costs.ravel(), tables={"follow": follow})
        answer = self.certify(problem)
        if not answer.proved:
            raise SystemExit("A chain was not proved, which cannot be.")
        return answer.labels.tolist(), answer.cost


def run(sentences: list[Sentence], epochs: int) -> None:
    """Trains, decodes every sentence by both, and prints what each took."""
    words = {word: i for i, word in enumerate(sorted({word for words, _ in sentences for word in words}))}
    tags = {tag: i for i, tag in enumerate(sorted({tag for _, tags in sentences for tag in tags}))}
    data = [(np.array([words[w] for w in said]), np.array([tags[t] for t in meant])) for said, meant in sentences]
    emit, follow = np.zeros((len(words), len(tags))), np.zeros((len(tags), len(tags)))  # costs
    ours = Decoder(list(tags))
    started = perf_counter()
    for n in {len(said) for said, _ in data}:
        ours(np.zeros((n, len(tags))), np.eye(len(tags)))
    print(f"{len(ours.shapes)} shapes built and planned in {perf_counter() - started:.2f} s, kernels loaded")
    n_words = sum(len(said) for said, _ in data)
    for epoch in range(epochs):
        spent, right, different = np.zeros(2), 0, 0
        for number in np.random.default_rng(epoch).permutation(len(data)).tolist():
            said, gold = data[number]
            costs, found = emit[said], {}
            for who in (0, 1) if number % 2 else (1, 0):
                started = perf_counter()
                found[who] = ours(costs, follow) if who == 0 else viterbi(costs, np.ascontiguousarray(follow.T))
                spent[who] += perf_counter() - started
            different += not np.isclose(found[0][1], found[1][1])
            guess = np.array(found[0][0])
            right += int((guess == gold).sum())
            if (guess != gold).any():
                for labels, step in ((gold, -1.0), (guess, 1.0)):
                    np.add.at(emit, (said, labels), step)
                    np.add.at(follow, (labels[:-1], labels[1:]), step)
        mine, theirs = 1e6 * spent / len(data)
        print(
            f"epoch {epoch + 1}: {right / n_words:.3f} of the tags right, {different} optima differ; a sentence takes "
            f"hasten {mine:.0f} µs, NumPy {theirs:.0f} µs: {theirs / mine:.2f} times as fast"
        )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path, nargs="?", help="a CoNLL-U file; without one, sentences are made up")
    parser.add_argument("--sentences", type=int, default=2000)
    parser.add_argument("--epochs", type=int, default=3)
    asked = parser.parse_args()
    found = list(read(asked.corpus) if asked.corpus else made_up(asked.sentences, seed=0))[: asked.sentences]
    print(f"{len(found)} sentences, {sum(len(words) for words, _ in found) / len(found):.1f} words each")
    run(found, asked.epochs)


if __name__ == "__main__":
    main()
