"""Joint entity and relation labelling as a structured problem (the paper's task, §5).

Given the spans of a sentence, every span gets an entity type and every ordered pair of spans a relation.
Relations demand the types of their arguments, and no pair is related both ways. The variables of a sentence
with E spans are its entities from left to right and then, for each pair i < j, the relations i → j and j → i.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations

import numpy as np

from hasten.errors import SchemaError
from hasten.model.batch import Batch
from hasten.model.problem import Scorer
from hasten.model.schema import Schema
from hasten.model.structure import Structure
from hasten.support.arrays import FloatArray, IntArray
from hasten.tasks.entity_relation.data.corpus import Sentence, induce_arguments

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
FEATURES = ("triples", "paper", "both", "more")


def entity_relation_schema(
    entity_labels: Sequence[str] = PAPER_ENTITIES,
    arguments: Arguments = PAPER_ARGUMENTS,
    *,
    no_relation: str = NO_RELATION,
    features: str = "paper",
) -> Schema:
    """Returns the schema of the task, by default the paper's; `EntityRelationTask` says what the arguments are.

    The table `args` says which entities a relation joins, `both` that no pair is related both ways. The other factors
    are features alone.
    """
    if features not in FEATURES:
        raise SchemaError(f"There are no features {features!r}. There are {', '.join(FEATURES)}.")
    if no_relation in arguments:
        raise SchemaError(f"{no_relation!r} stands for no relation; it cannot have arguments.")
    schema = Schema()
    entity = schema.variable("entity", entity_labels)
    relation = schema.variable("relation", (*arguments, no_relation))
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation=no_relation)
    for name, pairs in arguments.items():
        for source, target in pairs:
            args.allow(relation=name, source=source, target=target)
    both = schema.factor("both", learned=features in ("both", "more"), forward=relation, backward=relation)
    both.allow(forward=no_relation).allow(backward=no_relation)
    if features != "triples":
        schema.factor("source_relation", source=entity, relation=relation)
        schema.factor("relation_target", relation=relation, target=entity)
    if features == "more":
        schema.factor("types", left=entity, right=entity)
        schema.factor("neighbours", left=entity, right=entity)
    return schema


def ordered_pairs(n_entities: int) -> list[tuple[int, int]]:
    """Returns (source, target) of each relation of a sentence, in the order of its variables."""
    return [way for left, right in combinations(range(n_entities), 2) for way in ((left, right), (right, left))]


class EntityRelationTask:
    """The schema of the task, and the structures of its sentences by their number of entities.

    `arguments` says, for each relation, which (source, target) types it may join. `features` are those of the
    speedup classifier: "paper" counts (source, relation) and (relation, target) pairs and triples; "both" adds the
    two relations of a pair; "more" adds to these the types of all pairs, and of neighbours in the text; "triples" has
    triples alone (pairs can be folded into them: see `folded`).
    """

    def __init__(
        self,
        entity_labels: Sequence[str] = PAPER_ENTITIES,
        arguments: Arguments = PAPER_ARGUMENTS,
        *,
        no_relation: str = NO_RELATION,
        features: str = "paper",
    ) -> None:
        self.entity_labels = tuple(entity_labels)
        self.relation_labels = (*arguments, no_relation)
        self.arguments = {name: frozenset(pairs) for name, pairs in arguments.items()}
        self.no_relation = no_relation
        self.features = features
        self.schema = entity_relation_schema(entity_labels, arguments, no_relation=no_relation, features=features)
        self._structures: dict[int, Structure] = {}

    @classmethod
    def induced(cls, sentences: Iterable[Sentence], *, features: str = "paper") -> EntityRelationTask:
        """Returns the task that an annotated corpus shows: its types, its relations, and what they join."""
        sentences = list(sentences)
        types = sorted({name for sentence in sentences for name in sentence.types or ()})
        if not types:
            raise SchemaError("No sentence has entity types. Induce a task from an annotated corpus.")
        return cls(types, dict(sorted(induce_arguments(sentences).items())), features=features)

    def structure(self, n_entities: int) -> Structure:
        """Returns the structure of sentences with so many entities; built once."""
        if n_entities not in self._structures:
            self._structures[n_entities] = self._build(n_entities)
        return self._structures[n_entities]

    def batch(self, n_entities: IntArray, costs: FloatArray | Scorer) -> Batch:
        """Returns sentences with so many entities each as a batch: with all costs in a row, or a lazy scorer."""
        sizes = np.flatnonzero(np.bincount(n_entities))
        number = np.zeros(sizes[-1] + 1 if sizes.size else 0, dtype=np.int64)
        number[sizes] = np.arange(sizes.size)
        return Batch.build([self.structure(n) for n in sizes.tolist()], number[n_entities], costs)

    @cached_property
    def lean(self) -> EntityRelationTask:
        """This task with triples as its only features: a search over it has less to add up."""
        return EntityRelationTask(self.entity_labels, self.arguments, no_relation=self.no_relation, features="triples")

    def folded(self, weights: FloatArray) -> FloatArray:
        """Returns weights for the lean task that give every node of a search the same heuristic.

        A relation is assigned after its entities, so its pairs and its triple are completed together.
        """
        if self.features not in ("triples", "paper"):
            raise SchemaError(f"The features {self.features!r} do not fold into triples. Search with the task itself.")
        triples = self._block(weights, "args")
        if self.features == "paper":
            triples = triples + self._block(weights, "source_relation")[:, :, None]
            triples = triples + self._block(weights, "relation_target")[None, :, :]
        return np.ascontiguousarray(triples.ravel())

    def _block(self, weights: FloatArray, name: str) -> FloatArray:
        kind = self.schema.factors[name]
        return weights[kind.weight_at : kind.weight_at + kind.size].reshape(kind.shape)

    def _build(self, n_entities: int) -> Structure:
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
            if self.features == "more":
                shape.connect(factors["types"], left=left, right=right)
                if right == left + 1:
                    shape.connect(factors["neighbours"], left=left, right=right)
        return shape
