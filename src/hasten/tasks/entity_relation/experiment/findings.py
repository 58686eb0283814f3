"""What the report shows beyond its tables: curves, sizes, outputs, weights and example sentences.

Each function returns one section of `results.json`; `docs/results.md` says what it holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from hasten.model.batch import Batch
from hasten.model.solution import Solutions
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.support.arrays import IntArray
from hasten.support.progress import steps
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.measure import solve_in_turn, timed
from hasten.tasks.entity_relation.experiment.trial import Trial
from hasten.tasks.entity_relation.names import BySize, Labeller, Model
from hasten.tasks.entity_relation.tagger import in_words
from hasten.tasks.entity_relation.task import EntityRelationTask

SIZES = (30, 100, 300, 1000, 3000, 10_000, 30_000)  # numbers of sentences, for curves over them


def theta_sweep(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Time and accuracy over theta, for widths 1 and 2."""
    sweep = []
    thetas = [0.0, *np.geomspace(0.01, 4.0, 12).tolist()]
    for width, theta in steps(trial.tell, "Sweeping theta", list(product((1, 2), thetas))):
        search = replace(lessons.speedup(width), theta=theta * trial.scale)
        row = trial.measure_lazily(Model.SPEEDUP, search)
        sweep.append(row.as_dict() | {"relative_theta": theta})
    return sweep


def learning_curve(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Accuracy against the ILP over the number of unlabeled sentences learned from."""
    curve = []
    reference = trial.reference
    sizes = sorted({n for n in SIZES if n < lessons.n_learned} | {lessons.n_learned})
    for width, size in steps(trial.tell, "Measuring the learning curve", list(product((1, 2), sizes))):
        found = lessons.speedup(width, n=size)(trial.batch)
        entity, relation = reference.f1(found.labels, reference.ilp.labels)
        curve.append(
            {
                "beam": width,
                "n": size,
                "entity_f1_ilp": entity,
                "relation_f1_ilp": relation,
                "validity": float(found.valid.mean()),
                "exact_match": float(reference.exact(found).mean()),
            }
        )
    return curve


def by_size(trial: Trial) -> list[dict[str, Any]]:
    """Time per sentence over the number of entities."""
    n_entities = trial.text.n_entities
    sizes, counts = np.unique(n_entities, return_counts=True)
    searches: tuple[tuple[BySize, Callable[[Batch], Solutions]], ...] = (
        (BySize.GREEDY, greedy()),
        (BySize.BEAM, BeamSearch(2)),
        (BySize.CERTIFIED, Certifier()),
    )
    found = []
    each_size = list(zip(sizes.tolist(), counts.tolist(), strict=True))
    for size, count in steps(trial.tell, "Measuring by size", each_size):
        some = trial.batch.select(np.flatnonzero(n_entities == size))
        copies = some.select(np.tile(np.arange(count), max(1, 2000 // (count * size * size))))
        ilp = min(solve_in_turn(trial.solver, trial.large, some)[1] for _ in range(3))
        entry: dict[str, Any] = {"entities": size, "sentences": count, BySize.ILP: 1000 * ilp / count}
        for name, search in searches:
            _, timing = timed(lambda search=search, copies=copies: search(copies), 3)  # type: ignore[misc]
            entry[name] = 1000 * min(timing.runs) / len(copies)
        found.append(entry)
    return found


def proofs(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Which step of the certifier proved how many sentences (the keys of `Step`), and how many it left open."""
    found = []
    batches = [("test", trial.batch), ("unlabeled", lessons.batch)]
    for name, batch in steps(trial.tell, "Counting the proofs of each step", batches):
        proved_by = Certifier().report(batch).proved_by
        counts = {str(step): n for step, n in proved_by.items()}
        found.append({"sentences": name, **counts, "left open": len(batch) - sum(counts.values())})
    return found


def structures(lessons: Lessons) -> dict[str, Any]:
    """How few distinct outputs occur among the black box's answers."""
    at, labels = lessons.batch.variable_at, lessons.answers.labels.astype(np.int8)
    seen: dict[bytes, int] = {}
    curve = []
    for p in range(len(lessons.batch)):
        key = labels[at[p] : at[p + 1]].tobytes()
        seen[key] = seen.get(key, 0) + 1
        if p + 1 in SIZES or p + 1 == len(lessons.batch):
            curve.append({"n": p + 1, "distinct": len(seen)})
    counts = np.sort(np.array(list(seen.values())))[::-1]
    covered = np.cumsum(counts) / counts.sum()
    return {
        "curve": curve,
        "distinct": len(seen),
        "for_half": int(np.searchsorted(covered, 0.5) + 1),
        "for_ninety": int(np.searchsorted(covered, 0.9) + 1),
    }


def weights(lessons: Lessons) -> list[dict[str, Any]]:
    """The strongest learned weights, at beam width 2."""
    return [
        {"factor": row.factor, "labels": row.labels, "weight": row.weight}
        for row in lessons.learner(2).heuristic.strongest(24)
    ]


def examples(trial: Trial, lessons: Lessons, n: int = 8) -> list[dict[str, Any]]:
    """Some test sentences on which greedy search, the speedup and the ILP differ."""
    trial.tell("Choosing example sentences", None)
    sentences = trial.sentences
    candidates = {
        Labeller.GREEDY: greedy()(trial.batch),
        Labeller.SPEEDUP: lessons.speedup(2)(trial.batch),
        Labeller.ILP: trial.reference.ilp,
    }
    wrong = {name: ~trial.reference.exact(found) for name, found in candidates.items()}
    long_enough = [len(sentence.tokens) >= 8 for sentence in sentences]
    good = np.flatnonzero(wrong[Labeller.GREEDY] & (trial.text.n_entities <= 5) & long_enough).tolist()
    chosen: list[int] = []
    seen: set[tuple[object, ...]] = set()
    for hard in (True, False):  # first what the speedup gets wrong too, then what it mends
        for p in sorted(good, key=lambda p: len(sentences[p].tokens)):
            kind = (hard, tuple(sorted(set(sentences[p].relations or ()))), len(sentences[p].spans))
            names = (hard, *sorted({name for _, _, name in sentences[p].relations or ()}))
            if wrong[Labeller.SPEEDUP][p] == hard and kind not in seen and names not in seen:
                seen |= {kind, names}
                chosen.append(p)
            if len(chosen) == (n // 2 if hard else n):
                break
    return [_example(trial, p, candidates) for p in chosen]


def _example(trial: Trial, p: int, candidates: dict[Labeller, Solutions]) -> dict[str, Any]:
    """Returns one sentence with the labels that each method, and the annotators, gave it."""
    sentence, problem, at = trial.sentences[p], trial.batch[p], trial.batch.variable_at
    labellings = {name: found[p].labels for name, found in candidates.items()}
    labellings[Labeller.GOLD] = trial.reference.gold[at[p] : at[p + 1]]
    return {
        "tokens": list(sentence.tokens),
        "spans": [list(span) for span in sentence.spans],
        "labels": {name: _words(trial.task, labels, len(sentence.spans)) for name, labels in labellings.items()},
        "violations": {
            name: [str(each) for each in problem.check(labels).violations]
            for name, labels in labellings.items()
            if name is not Labeller.GOLD
        },
    }


def _words(task: EntityRelationTask, labels: IntArray, n_entities: int) -> dict[str, Any]:
    """Returns a labelling in words, as JSON has them."""
    types, relations = in_words(task, labels, n_entities)
    return {"types": list(types), "relations": [list(relation) for relation in relations]}
