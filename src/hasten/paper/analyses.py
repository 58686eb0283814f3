"""The analyses of the experiment beyond its tables: curves, times by size, proofs, weights and example sentences.

Each function returns one section of `results.json`; `docs/results.md` says what it holds.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.paper.methods import PAPER_WIDTHS, LearningSet, SentenceTestSet, skipping
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.support.terminal import steps
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.task import Model, variable_names
from hasten.tasks.evaluation.comparison import proved_by
from hasten.tasks.evaluation.examples import GOLD, REFERENCE, choose
from hasten.tasks.evaluation.measuring import Search, same_answers
from hasten.tasks.evaluation.study import Row

SIZES = (30, 100, 300, 1000, 3000, 10_000, 30_000)  # numbers of sentences, for the learning curve
N_TRACED = 2  # examples that are told step by step
NOT_AN_ENTITY = "none"


def theta_sweep(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Time and accuracy over theta, for widths 1 and 2, with the weights of the paper's preset and with ours."""
    thetas = [0.0, *np.geomspace(0.01, 4.0, 12).tolist()]
    every = [skipping(test_set, learning_set, *each) for each in product((True, False), PAPER_WIDTHS, thetas)]
    return [found.row for found in test_set.measure(every, "Sweeping theta", rounds=5)]


def learning_curve(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Agreement with the ILP over the number of unlabeled sentences learned from: the paper's preset, and ours."""
    sizes = sorted({n for n in SIZES if n < learning_set.n_learned} | {learning_set.n_learned})
    curve = []
    every = list(product((True, False), PAPER_WIDTHS, sizes))
    for paper, width, size in steps(test_set.how.progress, "Measuring the learning curve", every):
        found = learning_set.search(width, n=size, paper=paper)(test_set.batch)
        exact = float(same_answers(found, test_set.answers).mean())
        curve.append({"model": Model.speedup(paper), "beam": width, "n": size, "exact_match": exact})
    return curve


def by_size(test_set: SentenceTestSet) -> list[Row]:
    """Time per sentence over the number of entities."""
    searches: dict[str, Search] = {"greedy search": greedy(), "beam 2": BeamSearch(2), "certified": Certifier()}
    return test_set.by_size(searches, test_set.text.n_entities, "entities")


def proofs(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """How many sentences each step of the certifier proved (the keys of `Step`), and how many it left open."""
    batches = [("test", test_set.batch), ("unlabeled", learning_set.batch)]
    each = steps(test_set.how.progress, "Counting the proofs of each step", batches)
    return [{"sentences": name, **proved_by(batch)} for name, batch in each]


def weights(learning_set: LearningSet) -> list[Row]:
    """The strongest learned weights, at beam width 2."""
    return [
        {"factor": row.factor, "labels": row.labels, "weight": row.weight}
        for row in learning_set.learned(2).heuristic.strongest(24)
    ]


def examples(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Some test sentences on which greedy search, the speedup and the ILP differ."""
    test_set.how.progress("Choosing example sentences", None)
    task, speedup = test_set.task, learning_set.search(2)
    labelled = {
        "greedy search": greedy()(test_set.batch),
        "learned search": speedup(test_set.batch),
        REFERENCE: test_set.answers,
    }

    def about(p: int) -> Row:
        known = zip(test_set.batch[p].structure.kinds, test_set.gold[p], strict=True)
        return {
            "names": _names(test_set.sentences[p]),
            "words": _words(test_set.sentences[p]),
            "null_labels": [NOT_AN_ENTITY, task.no_relation],
            GOLD: [None if label < 0 else kind.labels[label] for kind, label in known],
        }

    found = choose("greedy search", labelled, about)
    for example in found[:N_TRACED]:
        p = example["input"]
        example["traces"] = traces_of(test_set.sentences[p], test_set.batch[p], speedup, test_set.answers[p])
    return found


def _names(sentence: Sentence) -> list[str]:
    """Returns what the variables of a sentence are called."""
    return variable_names([" ".join(sentence.tokens[first:last]) for first, last in sentence.spans])


def _words(sentence: Sentence) -> list[list[Any]]:
    """Returns the words of a sentence in order, those of a span together, with its number."""
    words, at = list[list[Any]](), 0
    for number, (first, last) in enumerate(sentence.spans):
        words += [[token, None] for token in sentence.tokens[at:first]]
        words.append([" ".join(sentence.tokens[first:last]), number])
        at = max(at, last)
    return [*words, *([token, None] for token in sentence.tokens[at:])]


def traces_of(sentence: Sentence, problem: Problem, speedup: BeamSearch, reference: Solution) -> Row:
    """Returns the traces of greedy search, of the speedup and of the proof, as plain data."""
    names = _names(sentence)
    known = reference if reference.values is not None else None
    return {
        "searches": [search.trace(problem, known, names=names).to_dict() for search in (greedy(), speedup)],
        "proof": Certifier().trace(problem, names=names).to_dict(),
    }
