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
from hasten.tasks.entity_relation.experiment.paper import PAPER_THETAS, PAPER_WIDTHS
from hasten.tasks.entity_relation.experiment.traces import N_TRACED, traces_of
from hasten.tasks.entity_relation.experiment.trial import Trial
from hasten.tasks.entity_relation.names import BySize, Labeller, Model
from hasten.tasks.entity_relation.tagger import in_words
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.experiment.timing import timed

JUST_ABOVE_0 = 5e-324  # as a theta: skips where there is any gap, which is how the paper defines 0 (§4.1)
SIZES = (30, 100, 300, 1000, 3000, 10_000, 30_000)  # numbers of sentences, for curves over them


def as_printed(trial: Trial, lessons: Lessons) -> dict[str, Any]:
    """What the paper's preset does with the paper's thetas as they are printed, and what else explains its figures."""
    reference, rows = trial.reference, []
    for width, theta in product(PAPER_WIDTHS, (JUST_ABOVE_0, *PAPER_THETAS[1:])):
        found = trial.search_lazily(replace(lessons.speedup(width, paper=True), theta=theta))
        entity, relation = reference.f1(found.labels, reference.gold)
        rows.append(
            {
                "beam": width,
                "theta": 0.0 if theta == JUST_ABOVE_0 else theta,
                "entity_f1_gold": entity,
                "relation_f1_gold": relation,
                "validity": float(found.valid.mean()),
                "costs_computed": float(found.n_costs.sum() / max(1, trial.batch.variable_at[-1])),
            }
        )
    weights = {width: lessons.learner(width, paper=True).weights for width in PAPER_WIDTHS}
    alike = {}
    for n, name in enumerate(trial.task.entity_labels):
        alike[name] = reference.f1(np.where(reference.is_entity, n, reference.gold), reference.gold)[0]
    return {
        "rows": rows,
        "whole_weights": {str(width): bool((w == np.round(w)).all()) for width, w in weights.items()},
        "entity_f1_if_all_are": alike,
    }


def theta_sweep(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Time and accuracy over theta, for widths 1 and 2, with the weights of the paper's preset and with ours."""
    thetas = [0.0, *np.geomspace(0.01, 4.0, 12).tolist()]
    every = [
        trial.lazily(
            Model.speedup(paper),
            replace(lessons.speedup(width, paper=paper), theta=theta * trial.scale),
            relative_theta=theta,
        )
        for paper, width, theta in product((True, False), PAPER_WIDTHS, thetas)
    ]
    return [found.row.as_dict() for found in trial.measure(every, "Sweeping theta", rounds=5)]


def learning_curve(trial: Trial, lessons: Lessons) -> list[dict[str, Any]]:
    """Accuracy against the ILP over the number of unlabeled sentences learned from: the paper's preset, and ours."""
    sizes = sorted({n for n in SIZES if n < lessons.n_learned} | {lessons.n_learned})
    curve = []
    every = list(product((True, False), PAPER_WIDTHS, sizes))
    for paper, width, size in steps(trial.tell, "Measuring the learning curve", every):
        found = lessons.speedup(width, n=size, paper=paper)(trial.batch)
        curve.append({"model": Model.speedup(paper), "beam": width, "n": size} | _accuracy(trial, found))
    return curve


def baselines(trial: Trial) -> list[dict[str, Any]]:
    """What a learning curve is compared with: searches that learn nothing."""
    searches = ((Model.GREEDY, greedy()), (Model.ENFORCED, BeamSearch(1)), (Model.ENFORCED, BeamSearch(2)))
    return [
        {"model": model, "beam": None if model is Model.GREEDY else search.width}
        | _accuracy(trial, search(trial.batch))
        for model, search in searches
    ]


def _accuracy(trial: Trial, found: Solutions) -> dict[str, float]:
    """Returns how near answers come to the ILP's."""
    entity, relation = trial.reference.f1(found.labels, trial.reference.ilp.labels)
    return {
        "entity_f1_ilp": entity,
        "relation_f1_ilp": relation,
        "validity": float(found.valid.mean()),
        "exact_match": float(trial.reference.exact(found).mean()),
    }


def by_size(trial: Trial) -> list[dict[str, Any]]:
    """Time per sentence over the number of entities; that of the ILP is from the passes that its row is measured by."""
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
        ilp = float(np.mean(trial.passes.by_size[some[0].n_variables]))
        entry: dict[str, Any] = {"entities": size, "sentences": count, BySize.ILP: 1000 * ilp}
        entry["ilp_by"] = trial.ilp.whose(some[0]).name
        for name, search in searches:
            search(copies)
            entry[name] = 1000 * min(timed(lambda: search(copies))[1] for _ in range(trial.runs)) / len(copies)  # noqa: B023
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
    found = [_example(trial, p, candidates) for p in chosen]
    for example, p in zip(found[:N_TRACED], chosen, strict=False):
        reference = trial.reference.ilp[p]
        example["traces"] = traces_of(sentences[p], trial.batch[p], lessons.speedup(2), reference)
    return found


def _example(trial: Trial, p: int, candidates: dict[Labeller, Solutions]) -> dict[str, Any]:
    """Returns one sentence with the labels that each method, and the annotators, gave it."""
    sentence, problem = trial.sentences[p], trial.batch[p]
    labellings = {name: found[p].labels for name, found in candidates.items()}
    gold = {"types": list(sentence.types or ()), "relations": [list(each) for each in sentence.relations or ()]}
    return {
        "tokens": list(sentence.tokens),
        "spans": [list(span) for span in sentence.spans],
        "labels": {name: _words(trial.task, labels, len(sentence.spans)) for name, labels in labellings.items()}
        | {Labeller.GOLD: gold},
        "violations": {
            name: [str(each) for each in problem.check(labels).violations] for name, labels in labellings.items()
        },
    }


def _words(task: EntityRelationTask, labels: IntArray, n_entities: int) -> dict[str, Any]:
    """Returns a labelling in words, as JSON has them."""
    types, relations = in_words(task, labels, n_entities)
    return {"types": list(types), "relations": [list(relation) for relation in relations]}
