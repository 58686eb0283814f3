"""Joint entity and relation labelling as a structured problem (the paper's task, §5), and what its things are called.

Given the spans of a sentence, every span gets an entity type and every ordered pair of spans a relation.
Relations demand the types of their arguments, and no pair is related both ways, unless the task says which relations
may be. The variables of a sentence with E spans are its entities from left to right and then, for each pair i < j,
the relations i → j and j → i. Names that `results.json`, reports and the command line share are written once, here.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain, combinations, count
from typing import Any

import msgspec
import numpy as np

from hasten.errors import CorpusError, SchemaError
from hasten.model.batch import Batch
from hasten.model.costs import Scorer
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support import forms
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import Choices
from hasten.support.threads import Cache
from hasten.support.words import first_few
from hasten.tasks.entity_relation.data.corpus import JOINT, Sentence, induce_arguments, induce_both


class Training(Choices):
    """How a linear black box is trained: with inference in the loop, or each variable alone."""

    STRUCTURED = "structured"
    INDEPENDENT = "independent"


class BlackBox(Choices):
    """The black boxes there are: linear ones by their `Training`, and neural ones by theirs."""

    STRUCTURED = "structured"
    INDEPENDENT = "independent"
    NEURAL = "neural"  # each variable alone
    NEURAL_STRUCTURED = "neural-structured"
    NEURAL_LIKELIHOOD = "neural-likelihood"


class Model(StrEnum):
    """The rows of the results: what answered the test sentences."""

    ILP = "ILP"
    GREEDY = "search"  # as the paper calls it
    CONSTRAINED = "constrained search"
    PAPER_SPEEDUP = "speedup, Algorithm 1"  # the paper's preset: step 1, last weights
    SPEEDUP = "speedup, averaged"  # ours: averaged weights, a step that fits the costs
    ENFORCED = "enforced beam"
    LOOK_AHEAD = "look-ahead beam"
    REDUCED = "reduced beam"
    CERTIFIED = "certified"
    CALIBRATED = "calibrated"
    CALIBRATED_ENFORCED = "calibrated, enforced"

    @classmethod
    def calibrated(cls, enforce: bool) -> Model:
        """Returns the search with a calibrated theta, its constraints enforced or not."""
        return cls.CALIBRATED_ENFORCED if enforce else cls.CALIBRATED

    @classmethod
    def speedup(cls, paper: bool) -> Model:
        """Returns the speedup search with the weights of Algorithm 1 as listed, or with ours."""
        return cls.PAPER_SPEEDUP if paper else cls.SPEEDUP


Arguments = Mapping[str, Collection[tuple[str, str]]]

PAPER_ENTITIES = ("person", "location", "organization", "none")
PAPER_ARGUMENTS: dict[str, set[tuple[str, str]]] = {
    "Kill": {("person", "person")},
    "LiveIn": {("person", "location")},
    "WorkFor": {("person", "organization")},
    "LocatedAt": {("location", "location")},
    "OrgBasedIn": {("organization", "location")},
}
NO_RELATION = "NoRel"
MAX_VARIABLES = 50_000  # of all structures that a task keeps: about 2 kB each
FEW = 8  # names that are printed
FEATURES = ("triples", "paper", "both")


def ordered_pairs(n_entities: int) -> list[tuple[int, int]]:
    """Returns (source, target) of each relation of a sentence, in the order of its variables."""
    return [way for left, right in combinations(range(n_entities), 2) for way in ((left, right), (right, left))]


def variable_names(phrases: Sequence[str]) -> list[str]:
    """Returns what people call the variables of a sentence: its entities, then its ordered pairs."""
    return [*phrases, *(f"{phrases[source]} → {phrases[target]}" for source, target in ordered_pairs(len(phrases)))]


class EntityRelationTask:
    """The schema of the task, and the structures of its sentences by their number of entities.

    `arguments` says, for each relation, which (source, target) types it may join; `both_ways`, which two relations a
    pair may have at once, one each way: (forward, backward) and (backward, forward). `features` are those of the
    speedup classifier: "paper" counts (source, relation) and (relation, target) pairs and triples; "both" adds the
    two relations of a pair; "triples" has triples alone (pairs can be folded into them: see `folded`).

    The table `args` of its schema says which entities a relation joins, `both` which pairs may be related both ways, if
    any. The other factors are features alone.
    """

    def __init__(
        self,
        entity_labels: Sequence[str] = PAPER_ENTITIES,
        arguments: Arguments = PAPER_ARGUMENTS,
        *,
        no_relation: str = NO_RELATION,
        features: str = "paper",
        both_ways: Collection[tuple[str, str]] = (),
    ) -> None:
        if features not in FEATURES:
            raise SchemaError(f"There are no features {features!r}. There are {', '.join(FEATURES)}.")
        if no_relation in arguments:
            raise SchemaError(f"{no_relation!r} stands for no relation; it cannot have arguments.")
        self.entity_labels = tuple(entity_labels)
        self.relation_labels = (*arguments, no_relation)
        self.arguments = {name: frozenset(pairs) for name, pairs in arguments.items()}
        self.no_relation = no_relation
        self.features = features
        self.both_ways = frozenset(both_ways)
        self.schema = schema = Schema()
        entity, relation = schema.variable("entity", entity_labels), schema.variable("relation", self.relation_labels)
        args = schema.factor("args", source=entity, relation=relation, target=entity)
        args.allow(relation=no_relation)
        for name, pairs in arguments.items():
            for source, target in pairs:
                args.allow(relation=name, source=source, target=target)
        both = schema.factor("both", learned=features == "both", forward=relation, backward=relation)
        both.allow(forward=no_relation).allow(backward=no_relation)
        for there, back in sorted(both_ways):
            both.allow(forward=there, backward=back)
        if features != "triples":
            schema.factor("source_relation", source=entity, relation=relation)
            schema.factor("relation_target", relation=relation, target=entity)
        self._structures: Cache[int, Structure] = Cache(MAX_VARIABLES)

    @classmethod
    def induced(cls, sentences: Iterable[Sentence], *, no_relation: str | None = None) -> EntityRelationTask:
        """Returns the task that an annotated corpus shows: its types, its relations, and what they join, which ways.

        `no_relation` is what unrelated pairs are called; by default NoRel, or another name if a relation has that one.
        """
        sentences = list(sentences)
        types = sorted({name for sentence in sentences for name in sentence.types or ()})
        if not types:
            raise SchemaError("No sentence has entity types. Induce a task from an annotated corpus.")
        arguments = dict(sorted(induce_arguments(sentences).items()))
        taken = {part for name in arguments for part in name.split(JOINT)}
        names = chain([NO_RELATION], (f"{NO_RELATION} {n}" for n in count(2)))
        nothing = no_relation or next(name for name in names if name not in taken)
        return cls(types, arguments, no_relation=nothing, both_ways=induce_both(sentences))

    @classmethod
    def fitting(
        cls, sentences: Sequence[Sentence], *, induce: bool | None = None, no_relation: str | None = None
    ) -> EntityRelationTask:
        """Returns the paper's task where the corpus has its labels, and else the one that the corpus shows.

        `induce` says which of them to take; labels that the paper's task lacks are then an error.
        """
        unknown = PAPERS.lacks(sentences, "the paper's task")
        if induce or (induce is None and (unknown or no_relation)):
            return cls.induced(sentences, no_relation=no_relation)
        if unknown:
            raise CorpusError(unknown)
        return cls() if no_relation is None else cls(no_relation=no_relation)

    def settings(self) -> dict[str, object]:
        """Returns what a file says of it."""
        return {
            "entity_labels": list(self.entity_labels),
            "arguments": {name: sorted(map(list, pairs)) for name, pairs in self.arguments.items()},
            "no_relation": self.no_relation,
            "features": self.features,
            "both_ways": sorted(map(list, self.both_ways)),
        }

    @classmethod
    def of_settings(cls, settings: Any) -> EntityRelationTask:
        """Makes a task of what `settings` returned; what cannot be one is a `Misfit`."""
        forms.fitted(settings, _Settings, "its task")
        return cls(
            settings["entity_labels"],
            {name: set(map(tuple, pairs)) for name, pairs in settings["arguments"].items()},
            no_relation=settings["no_relation"],
            features=settings["features"],
            both_ways=set(map(tuple, settings["both_ways"])),
        )

    @property
    def is_papers(self) -> bool:
        """Whether its labels, and what they join, are the paper's."""
        mine = self.entity_labels, self.arguments, self.both_ways
        return mine == (PAPERS.entity_labels, PAPERS.arguments, PAPERS.both_ways)

    def lacks(self, sentences: Iterable[Sentence], name: str = "the task") -> str:
        """Says which sentence is the first with a label that is not one of the task's; "" if none is."""
        for sentence in sentences:
            unknown = [name for name in sentence.types or () if name not in self.entity_labels]
            unknown += [name for name in sentence.joint_labels().values() if name not in self.arguments]
            if unknown:
                return (
                    f"Sentence {sentence.id!r} has the label {unknown[0]!r}, which {name} lacks: its types are "
                    f"{', '.join(self.entity_labels)}, its relations {', '.join(self.arguments)}. To take the labels "
                    "from the corpus: --induce on the command line, induce=True in Python."
                )
        return ""

    def __str__(self) -> str:
        both = f", {len(self.both_ways)} pairs of them both ways" if self.both_ways else ""
        return (
            f"{len(self.entity_labels)} types ({first_few(self.entity_labels, FEW)}) and "
            f"{len(self.arguments)} relations ({first_few(tuple(self.arguments), FEW)}){both}"
        )

    def structure(self, n_entities: int) -> Structure:
        """Returns the structure of sentences with so many entities; built once, and kept while it is used."""
        if (known := self._structures.get(n_entities)) is not None:
            return known
        shape, factors = self.schema.structure(), self.schema.factors
        entity, relation = self.schema.variables["entity"], self.schema.variables["relation"]
        entities = [shape.add(entity) for _ in range(n_entities)]
        between = {pair: (shape.add(relation), shape.add(relation)) for pair in combinations(entities, 2)}
        for (left, right), (forward, backward) in between.items():
            for source, there, target in ((left, forward, right), (right, backward, left)):
                shape.connect(factors["args"], source=source, relation=there, target=target)
                if self.features != "triples":
                    shape.connect(factors["source_relation"], source=source, relation=there)
                    shape.connect(factors["relation_target"], relation=there, target=target)
            shape.connect(factors["both"], forward=forward, backward=backward)
        self._structures.put(n_entities, shape, n_entities * n_entities)
        return shape

    def batch(self, n_entities: IntArray, costs: FloatArray | Scorer) -> Batch:
        """Returns sentences with so many entities each as a batch: with all costs in a row, or a lazy scorer."""
        sizes = np.flatnonzero(np.bincount(n_entities))
        number = np.zeros(sizes[-1] + 1 if sizes.size else 0, dtype=np.int64)
        number[sizes] = np.arange(sizes.size)
        return Batch.build([self.structure(n) for n in sizes.tolist()], number[n_entities], costs)

    @cached_property
    def lean(self) -> EntityRelationTask:
        """The task with triples as its only features: a search over it has less to add up."""
        names, both_ways = self.no_relation, self.both_ways
        return EntityRelationTask(
            self.entity_labels, self.arguments, no_relation=names, features="triples", both_ways=both_ways
        )

    def folded(self, weights: FloatArray) -> FloatArray:
        """Returns weights for the lean task that give every node of a search the same heuristic.

        A relation is assigned after its entities, so its pairs and its triple are completed together.
        """
        if self.features not in ("triples", "paper"):
            raise SchemaError(f"The features {self.features!r} do not fold into triples. Search with the task itself.")
        blocks = {
            name: weights[kind.weight_at : kind.weight_at + kind.size].reshape(kind.shape)
            for name, kind in self.schema.factors.items()
            if kind.learned
        }
        triples = blocks["args"]
        if self.features == "paper":
            triples = triples + blocks["source_relation"][:, :, None]
            triples = triples + blocks["relation_target"][None, :, :]
        return np.ascontiguousarray(triples.ravel())


class _Settings(msgspec.Struct, forbid_unknown_fields=True):
    entity_labels: list[str]
    arguments: dict[str, list[tuple[str, str]]]
    no_relation: str
    features: str
    both_ways: list[tuple[str, str]]


PAPERS = EntityRelationTask()
"""The paper's own task."""
