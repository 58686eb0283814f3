"""The kinds of file that hasten saves: how one is made, loaded, and put to work."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from hasten.learning.gate import Gate
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.speedup.parts import Search, Trust
from hasten.speedup.predictor import Speedup
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.scoring.black_box import LinearScorer
from hasten.tasks.entity_relation.scoring.features import intern
from hasten.tasks.entity_relation.tagger import Tagger
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.tagging.corpus import Tagged
from hasten.tasks.tagging.tagger import SequenceTagger


@dataclass(frozen=True)
class Kind:
    """A kind of file. `work` uses what was loaded; it may refuse, but must not crash."""

    make: Callable[[int], Any]  # anything that can be saved, another for each number
    load: Callable[[Path], Any]
    work: Callable[[Any], object]


@cache
def shape() -> Structure:
    """A schema with a table, a rule and features, closed by a structure of two entities."""
    schema = Schema()
    entity = schema.variable("entity", ["person", "place", "none"])
    relation = schema.variable("relation", ["LiveIn", "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation="LiveIn", source="person", target="place").allow(relation="NoRel")
    schema.factor("pair", learned=False, left=entity, right=entity).cost(0.5, left="none")
    schema.rule("few places", at_most=1, entity="place")
    made = schema.structure()
    left, right = made.add(entity), made.add(entity)
    made.connect(args, source=left, relation=made.add(relation), target=right)
    made.connect(schema.factors["pair"], left=left, right=right)
    return made


@cache
def batch(seed: int = 0, n: int = 30) -> Batch:
    return shape().batch(np.random.default_rng(seed).normal(size=(n, shape().n_labels)))


@cache
def sentences() -> list[Any]:
    return list(generate(6, 3, labelled=False))


def make_heuristic(n: int) -> Heuristic:
    schema, rng = shape().schema, np.random.default_rng(n)
    return Heuristic(schema, rng.normal(size=schema.n_weights))


def use_heuristic(heuristic: Heuristic) -> None:
    BeamSearch(2, heuristic.weights)(batch())
    Certifier(max_join=0)(batch())
    heuristic.strongest(5)


def make_speedup(n: int) -> Speedup:
    answer = Search(guided=True, theta=2.0, learner=Learner(3, seed=n, enforce=False, look_ahead=False))
    speedup = Speedup(shape().schema, solver="brute", answer=answer, trust=Trust(audit=0.5), learn=True, seed=n)
    speedup.fit(batch(n, 60)).predict(batch(n + 1))
    return speedup


def make_learned(n: int) -> Speedup:
    """One with learned tables, a choice among ways to answer, and a history."""
    speedup = Speedup(shape().schema, solver="brute", answer="learned", trust=Trust(audit=0.5), learn=True, seed=n)
    speedup.fit(batch(n, 60)).predict(batch(n + 1))
    return speedup


def make_gated(n: int) -> Speedup:
    """One with a gate that has learned."""
    gate = Gate({"relation": None}, n_rows=16, seed=n)
    speedup = Speedup(shape().schema, solver="brute", answer=Search(gate=gate), seed=n)
    return speedup.fit(batch(n, 60))


def load_speedup(path: Path) -> Speedup:
    return Speedup.load(path, shape().schema)


def load_gated(path: Path) -> Speedup:
    return Speedup.load(path, shape().schema, cheap={"relation": None})


def use_speedup(speedup: Speedup) -> None:
    speedup.predict(batch(5))
    speedup.predict(batch(6, 1)[0])
    speedup.partial_fit(batch(7))
    speedup.counters, speedup.agreement, speedup.distrust, speedup.heuristic  # noqa: B018


def use_learned(speedup: Speedup) -> None:
    speedup.predict(batch(5))
    speedup.partial_fit(batch(7))
    speedup.counters, speedup.agreement, speedup.choice, speedup.history  # noqa: B018


def use_gated(speedup: Speedup) -> None:
    speedup.predict(batch(5))
    speedup.predict(batch(6, 1)[0])


@cache
def task() -> EntityRelationTask:
    return EntityRelationTask()


def make_black_box(n: int, n_buckets: int = 64) -> LinearScorer:
    rng = np.random.default_rng(n)
    labels = task().entity_labels, task().relation_labels
    tables = (rng.normal(size=(n_buckets, len(names))).astype(np.float32) for names in labels)
    return LinearScorer(*labels, *tables, "structured" if n % 2 else "independent")


def make_tagger(n: int, n_buckets: int = 64) -> Tagger:
    scorer, text = make_black_box(n, n_buckets), intern(sentences())
    trust, search = Trust(audit=0.0, min_agreement=None), Search(theta=3.0)
    speedup = Speedup(task().schema, answer=search, trust=trust, seed=n)
    return Tagger(task(), scorer, speedup.fit(task().batch(text.n_entities, scorer.costs(text)[0])))


def use_tagger(tagger: Tagger) -> None:
    for mode in ("certified", "search"):
        list(tagger.asking(mode=mode, solver="brute").label(sentences()))


def make_sequence_tagger(n: int) -> SequenceTagger:
    words = ["ada", "sleeps", "here", "the", "old", "man", "left"]
    tagged = [Tagged(str(i), tuple(words[i : i + 3 + n]), ("X", "Y", "Z", "X", "Y")[: 3 + n]) for i in range(3)]
    return SequenceTagger.train(tagged, ["at most 2 X", "at least 1 Y"], epochs=2, seed=n)


def use_sequence_tagger(tagger: SequenceTagger) -> None:
    for mode in ("certified", "search"):
        list(replace(tagger, mode=mode, solver="brute").predict([["ada", "left", "here"], ["man"]]))


KINDS = {
    "heuristic": Kind(make_heuristic, lambda path: Heuristic.load(path, shape().schema), use_heuristic),
    "speedup": Kind(make_speedup, load_speedup, use_speedup),
    "learned speedup": Kind(make_learned, load_speedup, use_learned),
    "gated speedup": Kind(make_gated, load_gated, use_gated),
    "tagger": Kind(make_tagger, Tagger.load, use_tagger),
    "sequence tagger": Kind(make_sequence_tagger, SequenceTagger.load, use_sequence_tagger),
}
