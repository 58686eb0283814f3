"""The analyses of the experiment beyond its tables: curves, sizes, outputs, weights and example sentences.

Each function returns one section of `results.json`; `docs/results.md` says what it holds.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from hasten.kernels.tolerance import TOLERANCE
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions
from hasten.paper.methods import PAPER_WIDTHS, LearningSet, SentenceTestSet, skipping
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.terminal import steps
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.labelling import in_words
from hasten.tasks.entity_relation.names import Labeller, Model
from hasten.tasks.entity_relation.task import variable_names
from hasten.tasks.evaluation.comparison import proved_by
from hasten.tasks.evaluation.measuring import Search, same_answers, timed
from hasten.tasks.evaluation.study import Row

SIZES = (30, 100, 300, 1000, 3000, 10_000, 30_000)  # numbers of sentences, for curves over them
N_TRACED = 2  # examples that are told step by step
TURNS = 5
MOST_PAST = 1024  # past problems that are remembered of each size


def theta_sweep(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Time and accuracy over theta, for widths 1 and 2, with the weights of the paper's preset and with ours."""
    thetas = [0.0, *np.geomspace(0.01, 4.0, 12).tolist()]
    every = [skipping(test_set, learning_set, *each) for each in product((True, False), PAPER_WIDTHS, thetas)]
    return [found.row for found in test_set.measure(every, "Sweeping theta", rounds=5)]


def learning_curve(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Accuracy against the ILP over the number of unlabeled sentences learned from: the paper's preset, and ours."""
    sizes = sorted({n for n in SIZES if n < learning_set.n_learned} | {learning_set.n_learned})
    curve = []
    every = list(product((True, False), PAPER_WIDTHS, sizes))
    for paper, width, size in steps(test_set.how.tell, "Measuring the learning curve", every):
        found = learning_set.search(width, n=size, paper=paper)(test_set.batch)
        curve.append({"model": Model.speedup(paper), "beam": width, "n": size} | _accuracy(test_set, found))
    return curve


def baselines(test_set: SentenceTestSet) -> list[Row]:
    """The searches that a learning curve is compared with: they learn nothing."""
    searches = ((Model.GREEDY, greedy()), (Model.ENFORCED, BeamSearch(1)), (Model.ENFORCED, BeamSearch(2)))
    return [
        {"model": model, "beam": None if model is Model.GREEDY else search.width}
        | _accuracy(test_set, search(test_set.batch))
        for model, search in searches
    ]


def _accuracy(test_set: SentenceTestSet, found: Solutions) -> dict[str, float]:
    """Returns how near answers come to the ILP's."""
    entity, relation = test_set.reference.f1(found.labels, test_set.answers.labels)
    return {
        "entity_f1_ilp": entity,
        "relation_f1_ilp": relation,
        "validity": float(found.valid.mean()),
        "exact_match": float(same_answers(found, test_set.answers).mean()),
    }


def by_size(test_set: SentenceTestSet) -> list[Row]:
    """Time per sentence over the number of entities."""
    searches: dict[str, Search] = {"search": greedy(), "beam 2": BeamSearch(2), "certified": Certifier()}
    return test_set.by_size(searches, test_set.text.n_entities, "entities")


def proofs(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """How many sentences each step of the certifier proved (the keys of `Step`), and how many it left open."""
    batches = [("test", test_set.batch), ("unlabeled", learning_set.batch)]
    each = steps(test_set.how.tell, "Counting the proofs of each step", batches)
    return [{"sentences": name, **proved_by(batch)} for name, batch in each]


def structures(learning_set: LearningSet) -> Row:
    """How few distinct outputs occur among the black box's answers."""
    at, labels = learning_set.batch.variable_at, learning_set.answers.labels.astype(np.int8)
    seen: dict[bytes, int] = {}
    curve = []
    for p in range(len(learning_set.batch)):
        key = labels[at[p] : at[p + 1]].tobytes()
        seen[key] = seen.get(key, 0) + 1
        if p + 1 in SIZES or p + 1 == len(learning_set.batch):
            curve.append({"n": p + 1, "distinct": len(seen)})
    counts = np.sort(np.array(list(seen.values())))[::-1]
    covered = np.cumsum(counts) / counts.sum()
    return {
        "curve": curve,
        "distinct": len(seen),
        "for_half": int(np.searchsorted(covered, 0.5) + 1),
        "for_ninety": int(np.searchsorted(covered, 0.9) + 1),
    }


def weights(learning_set: LearningSet) -> list[Row]:
    """The strongest learned weights, at beam width 2."""
    return [
        {"factor": row.factor, "labels": row.labels, "weight": row.weight}
        for row in learning_set.learned(2).heuristic.strongest(24)
    ]


def examples(test_set: SentenceTestSet, learning_set: LearningSet, n: int = 8) -> list[Row]:
    """Some test sentences on which greedy search, the speedup and the ILP differ."""
    test_set.how.tell("Choosing example sentences", None)
    sentences = test_set.sentences
    candidates = {
        Labeller.GREEDY: greedy()(test_set.batch),
        Labeller.SPEEDUP: learning_set.search(2)(test_set.batch),
        Labeller.ILP: test_set.answers,
    }
    wrong = {name: ~same_answers(found, test_set.answers) for name, found in candidates.items()}
    long_enough = [len(sentence.tokens) >= 8 for sentence in sentences]
    good = np.flatnonzero(wrong[Labeller.GREEDY] & (test_set.text.n_entities <= 5) & long_enough).tolist()
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
    examples: list[Row] = []
    for p in chosen:
        sentence, problem = sentences[p], test_set.batch[p]
        labellings = {name: found[p].labels for name, found in candidates.items()}
        words = {name: in_words(test_set.task, labels, len(sentence.spans)) for name, labels in labellings.items()}
        words[Labeller.GOLD] = sentence.types or (), sentence.relations or ()
        example: Row = {
            "tokens": list(sentence.tokens),
            "spans": [list(span) for span in sentence.spans],
            "labels": {
                name: {"types": list(types), "relations": [list(relation) for relation in relations]}
                for name, (types, relations) in words.items()
            },
            "violations": {
                name: [str(each) for each in problem.check(labels).violations] for name, labels in labellings.items()
            },
        }
        if len(examples) < N_TRACED:
            example["traces"] = traces_of(sentence, problem, learning_set.search(2), test_set.answers[p])
        examples.append(example)
    return examples


def traces_of(sentence: Sentence, problem: Problem, speedup: BeamSearch, reference: Solution) -> Row:
    """Returns the traces of greedy search, of the speedup and of the proof, as plain data."""
    names = variable_names([" ".join(sentence.tokens[first:last]) for first, last in sentence.spans])
    known = reference if reference.values is not None else None
    return {
        "searches": [search.trace(problem, known, names=names).to_dict() for search in (greedy(), speedup)],
        "proof": Certifier().trace(problem, names=names).to_dict(),
    }


class Past(NamedTuple):
    """Past problems of one structure and their proved answers: theorems that prove these for new problems need no more.

    Let every other labelling cost more than the answer by `margin` at least. Where costs have moved against the answer
    by less than that, all variables together, it is the new problem's, too (Srikumar, Kundu and Roth 2012, Theorem 1,
    for a margin of zero; Kundu, Srikumar and Roth 2013).
    """

    first: IntArray  # where each variable's labels begin
    chosen: IntArray  # (problems, variables): the place of each chosen label
    above: FloatArray  # (problems, labels): by how much a label costs more than the chosen one of its variable
    margin: FloatArray  # (problems,)

    @classmethod
    def of(cls, answers: Solutions, some: IntArray, margins: bool) -> Past:
        """Remembers answers to problems of one structure; computing margins takes a proof for each variable."""
        batch = answers.batch
        first, n = batch.structures[batch.structure[some[0]]].graph.first, int(batch.n_variables[some[0]])
        chosen = first[:-1] + answers.labels[batch.variable_at[some, None] + np.arange(n)]
        cost, margin = batch.cost[batch.cost_at[some, None] + np.arange(first[-1])], np.zeros(some.size)
        if margins:  # every other labelling lacks the answer's label of some variable
            others = batch.select(np.repeat(some, n))
            others.cost[others.cost_at[:-1] + chosen.ravel()] = np.inf
            margin = Certifier()(others).bound.reshape(-1, n).min(axis=1) - answers.cost[some]
        return cls(first, chosen, _above(cost, chosen, first), margin)

    def __call__(self, cost: FloatArray) -> IntArray | None:
        """Returns the labels of the first past answer that is proved to be a problem's."""
        nearer = self.above - _above(cost, self.chosen, self.first)
        excess = np.maximum.reduceat(nearer, self.first[:-1], axis=1).sum(axis=1)  # the chosen ones are not nearer
        proved = np.flatnonzero(excess <= self.margin)
        return self.chosen[proved[0]] - self.first[:-1] if proved.size else None


def _above(cost: FloatArray, chosen: IntArray, first: IntArray) -> FloatArray:
    """Returns costs of labels above those of the chosen ones, a row for each past problem."""
    rows = np.broadcast_to(cost, (len(chosen), first[-1]))
    return rows - np.repeat(np.take_along_axis(rows, chosen, axis=1), np.diff(first), axis=1)


def amortized(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Row]:
    """Share answered, answers that are not the black box's, and CPU time of lookups, beside that of proofs."""
    found, batch = list[Row](), test_set.batch
    learned = learning_set.answers.select(np.arange(learning_set.n_learned))
    usable = np.flatnonzero(learned.valid & learned.proved & (learned.batch.n_variables > 0))
    sizes = learned.batch.n_variables[usable]
    problems = {n: usable[sizes == n][-MOST_PAST:] for n in np.unique(sizes).tolist()}
    for name in steps(test_set.how.tell, "Measuring amortized inference", ("exact", "margins")):
        past = {n: Past.of(learned, some, name == "margins") for n, some in problems.items()}

        def look_up(past: dict[int, Past] = past) -> list[IntArray | None]:
            each = ((past.get(n), batch[p]) for p, n in enumerate(batch.n_variables.tolist()))
            return [None if known is None else known(problem.cost) for known, problem in each]

        recalled, cost = look_up(), test_set.answers.cost
        answers = [(labels, batch[p].total, cost[p]) for p, labels in enumerate(recalled) if labels is not None]
        dearer = [total(labels) > best + TOLERANCE * max(1.0, abs(best)) for labels, total, best in answers]
        row: Row = {
            "theorem": name,
            "learned_from": learning_set.n_learned,
            "remembered": sum(map(len, problems.values())),
            "answered": len(dearer) / len(batch),
            "wrong": sum(map(int, dearer)),
        }
        for key, answer in (("lookup_ms", look_up), ("proof_ms", partial(Certifier(), batch))):
            row[key] = float(np.median([timed(answer)[1] for _ in range(TURNS)]))
        found.append(row)
    return found
