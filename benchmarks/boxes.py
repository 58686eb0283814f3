"""Black boxes that know more than their schemas, with problems for them: what `opaque.py` measures learned mode on."""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import numpy as np

import hasten
from hasten.model.batch import Batch
from hasten.model.problem import Problem


def log_costs(scores: np.ndarray) -> np.ndarray:
    """Returns minus the logarithm of each label's probability, labels on the last axis."""
    return np.logaddexp.reduce(scores, axis=-1, keepdims=True) - scores


# -- transitivity ------------------------------------------------------------------------------------------

RELATIONS = ["before", "after", "equal"]


def follows(ij: str, jk: str, ik: str) -> bool:
    """Whether three relations between three events can hold at once."""
    if "equal" in (ij, jk):
        return ik == (jk if ij == "equal" else ij)
    return ij != jk or ik == ij


class Transitivity:
    """Relations between events, of any number."""

    def __init__(self, signal: float = 2.0) -> None:
        self.signal = signal
        self.open, self.hidden = self._schema(known=False), self._schema(known=True)
        self.shapes: dict[int, hasten.Structure] = {}

    def _schema(self, known: bool) -> hasten.Schema:
        schema = hasten.Schema()
        relation = schema.variable("relation", RELATIONS)
        triple = schema.factor("triple", ij=relation, jk=relation, ik=relation)
        if known:
            triple.allow(follows)
        return schema

    def shape(self, schema: hasten.Schema, n_events: int) -> hasten.Structure:
        """Returns the structure for some events: a variable for each pair, a factor for each three."""
        shape = schema.structure()
        pair = {each: shape.add(schema.variables["relation"]) for each in combinations(range(n_events), 2)}
        for i, j, k in combinations(range(n_events), 3):
            shape.connect(schema.factors["triple"], ij=pair[i, j], jk=pair[j, k], ik=pair[i, k])
        return shape

    def problems(self, n_events: int, n: int, seed: int) -> Batch:
        """Returns noisy relations of events at random times."""
        rng = np.random.default_rng(seed)
        times = rng.integers(0, 2 * n_events, size=(n, n_events))
        scores = rng.normal(size=(n, n_events * (n_events - 1) // 2, len(RELATIONS)))
        for x, (i, j) in enumerate(combinations(range(n_events), 2)):
            later = np.sign(times[:, i] - times[:, j])
            scores[np.arange(n), x, np.array([2, 1, 0])[later]] += self.signal
        return self.shape(self.open, n_events).batch(log_costs(1.5 * scores).reshape(n, -1))

    def __call__(self, problem: Problem) -> np.ndarray:
        n = problem.n_variables
        if n not in self.shapes:
            self.shapes[n] = self.shape(self.hidden, round((1 + (1 + 8 * n) ** 0.5) / 2))
        return hasten.Certifier(max_nodes=200_000)(self.shapes[n].problem(problem.cost)).labels


# -- tags --------------------------------------------------------------------------------------------------


def read_tags(path: Path) -> list[list[tuple[str, str]]]:
    """Reads words and universal tags of a CoNLL-U file."""
    opener = gzip.open if path.suffix == ".gz" else open
    sentences: list[list[tuple[str, str]]] = [[]]
    with opener(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            columns = line.rstrip("\n").split("\t")
            if len(columns) > 3 and columns[0].isdigit():
                sentences[-1].append((columns[1], columns[3]))
            elif not line.strip() and sentences[-1]:
                sentences.append([])
    return [sentence for sentence in sentences if sentence]


def features(word: str) -> Iterable[tuple[str, Any]]:
    """Yields what the model sees of a word."""
    low = word.lower()
    yield from (("word", low), ("last 3", low[-3:]), ("last 2", low[-2:]))
    yield from (("capital", word[0].isupper()), ("digit", any(letter.isdigit() for letter in word)))


class Tags:
    """Part-of-speech tags of sentences; the black box has transitions, the schema has not."""

    def __init__(self, path: Path, seed: int = 0, weight: float = 0.5) -> None:
        sentences = read_tags(path)
        np.random.default_rng(seed).shuffle(sentences)  # type: ignore[arg-type]
        self.tags = sorted({tag for sentence in sentences for _, tag in sentence})
        number = {tag: t for t, tag in enumerate(self.tags)}
        counts: defaultdict[Any, np.ndarray] = defaultdict(lambda: np.full(len(self.tags), 0.1))
        prior, pairs = np.ones(len(self.tags)), np.full((len(self.tags), len(self.tags)), 0.5)
        for sentence in sentences:  # of all: the model's quality is not what is measured
            for word, tag in sentence:
                prior[number[tag]] += 1
                for each in features(word):
                    counts[each][number[tag]] += 1
            for (_, left), (_, right) in pairwise(sentence):
                pairs[number[left], number[right]] += 1
        share = prior / prior.sum()
        self.table = -weight * (np.log(pairs / pairs.sum(axis=1, keepdims=True)) - np.log(share))
        self.open, self.hidden = (self._schema(known) for known in (False, True))
        self.shapes: dict[tuple[int, int], hasten.Structure] = {}
        scores = [
            np.array([np.log(share) + sum(0.4 * np.log(counts[each] / prior) for each in features(w)) for w, _ in each])
            for each in sentences
        ]
        self.costs = [log_costs(each) for each in scores]

    def _schema(self, known: bool) -> hasten.Schema:
        schema = hasten.Schema()
        tag = schema.variable("tag", self.tags)
        pair = schema.factor("pair", left=tag, right=tag)
        if known:
            pair.set_table(self.table)
        return schema

    def shape(self, schema: hasten.Schema, length: int) -> hasten.Structure:
        """Returns a chain."""
        key = id(schema), length
        if key not in self.shapes:
            shape = self.shapes[key] = schema.structure()
            for v in range(length):
                shape.add(schema.variables["tag"])
                if v:
                    shape.connect(schema.factors["pair"], left=v - 1, right=v)
        return self.shapes[key]

    def problems(self, some: slice) -> Batch:
        """Returns some sentences."""
        return Batch.of([self.shape(self.open, len(each)).problem(each.ravel()) for each in self.costs[some]])

    def __call__(self, problem: Problem) -> np.ndarray:
        shape = self.shape(self.hidden, problem.n_variables)
        return hasten.Certifier()(shape.problem(problem.cost)).labels


# -- roles -------------------------------------------------------------------------------------------------

CORE = ["A0", "A1", "A2", "A3", "A4"]
ROLES = ["none", *CORE, "TMP", "LOC", "MNR", "R-A0", "R-A1", "C-A1"]
OFTEN = dict(zip(ROLES, [0, 0.3, 0.35, 0.15, 0.05, 0.03, 0.15, 0.1, 0.1, 0.15, 0.1, 0.1], strict=True))
BASE = {"R-A0": "A0", "R-A1": "A1", "C-A1": "A1"}
Spans = tuple[tuple[int, int], ...]


class Roles:
    """Arguments of a predicate: candidates are spans, some of which overlap."""

    def __init__(self, signal: float = 1.7, n_spans: tuple[int, int] = (5, 11)) -> None:
        self.signal, self.n_spans = signal, n_spans
        self.open, self.hidden = (self._schema(known) for known in (False, True))
        self.shapes: dict[Any, hasten.Structure] = {}
        self.pairs: dict[int, Any] = {}  # by open structure

    def _schema(self, known: bool) -> hasten.Schema:
        schema = hasten.Schema()
        role = schema.variable("role", ROLES)
        apart = schema.factor("apart", left=role, right=role)
        overlap = schema.factor("overlap", left=role, right=role)
        if known:
            for core in CORE:
                apart.forbid(left=core, right=core)
            overlap.forbid(lambda left, right: "none" not in (left, right))
        return schema

    def shape(self, n: int, overlaps: frozenset[tuple[int, int]], known: bool) -> hasten.Structure:
        """Returns the structure of some candidates; the black box's has more rules."""
        key = n, overlaps, known
        if key in self.shapes:
            return self.shapes[key]
        schema = self.hidden if known else self.open
        shape = self.shapes[key] = schema.structure()
        for _ in range(n):
            shape.add(schema.variables["role"])
        for each in combinations(range(n), 2):
            shape.connect(schema.factors["overlap" if each in overlaps else "apart"], left=each[0], right=each[1])
        if known:
            for v, (role, base) in product(range(n), BASE.items()):
                others = [u for u in range(n) if u != v and (u < v or role[0] == "R")]
                shape.rule(f"{role} of {v}", [(u, base) for u in others] + [(v, role, -1.0)], at_least=0)
        self.pairs[id(shape)] = n, overlaps
        return shape

    def problems(self, n: int, seed: int) -> Batch:
        """Returns noisy roles of spans at random places."""
        rng = np.random.default_rng(seed)
        return Batch.of([self._problem(rng) for _ in range(n)])

    def _problem(self, rng: np.random.Generator) -> Problem:
        begins = rng.integers(0, 24, size=int(rng.integers(*self.n_spans)))
        spans: Spans = tuple(sorted({(int(b), int(b + rng.integers(1, 5))) for b in begins}))
        overlaps = frozenset((i, j) for i, j in combinations(range(len(spans)), 2) if spans[i][1] > spans[j][0])
        chosen: dict[int, str] = {}
        for v in range(len(spans)):
            if rng.random() < 0.4 or any((u, v) in overlaps for u in chosen):
                continue
            there = set(chosen.values())
            may = [r for r in ROLES[1:] if (r not in CORE or r not in there) and BASE.get(r, r) in {*there, r}]
            weights = np.array([OFTEN[role] for role in may])
            chosen[v] = str(rng.choice(may, p=weights / weights.sum()))
        scores = rng.normal(size=(len(spans), len(ROLES)))
        scores[:, 0] += 1.0
        for v in range(len(spans)):
            scores[v, ROLES.index(chosen.get(v, "none"))] += self.signal
        return self.shape(len(spans), overlaps, known=False).problem(log_costs(1.5 * scores).ravel())

    def __call__(self, problem: Problem) -> np.ndarray:
        shape = self.shape(*self.pairs[id(problem.structure)], known=True)
        return hasten.Certifier(max_nodes=200_000)(shape.problem(problem.cost)).labels
