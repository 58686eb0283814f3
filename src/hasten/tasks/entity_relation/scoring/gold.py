"""Gold labels as numbers, and what of them a task cannot express.

A label that the task lacks is -1: no answer has it, so it counts as one that is missed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from hasten.errors import CorpusError
from hasten.support.arrays import IntArray
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.task import EntityRelationTask

UNKNOWN = -1


def gold(
    sentence: Sentence, entity_labels: Sequence[str], relation_labels: Sequence[str], *, lost: bool = False
) -> IntArray:
    """Returns a labelled sentence's labels in the order of its variables.

    The last relation label is the one of pairs that the sentence does not relate. A label that is not there is an
    error, or with `lost` a -1.
    """
    n = len(sentence.spans)
    if sentence.types is None or sentence.relations is None:
        raise CorpusError(f"Sentence {sentence.id!r} has no gold labels. Give its types and its relations.")
    labels = np.full(n * n, len(relation_labels) - 1, np.int64)

    def number(name: str, names: Sequence[str]) -> int:
        if name in names:
            return names.index(name)
        if lost:
            return UNKNOWN
        raise CorpusError(
            f"Sentence {sentence.id!r} has the label {name!r}, which the model lacks. The model's labels are "
            f"{tuple(entity_labels)} and {tuple(relation_labels)}. To take the labels from the corpus: --induce on "
            "the command line, induce=True in Python."
        )

    labels[:n] = [number(name, entity_labels) for name in sentence.types]
    for (source, target), name in sentence.joint_labels().items():
        left, right = min(source, target), max(source, target)
        pair = left * n - left * (left + 1) // 2 + right - left - 1
        labels[n + 2 * pair + (source > target)] = number(name, relation_labels[:-1])
    return labels


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Gold labels that no valid answer has, by reason: how many, and which."""

    n_types: int  # gold labels in all
    n_relations: int
    types: Counter[str]  # that the task lacks
    relations: Counter[str]  # likewise
    signatures: Counter[str]  # relations between types that they do not join
    both_ways: Counter[str]  # relations of pairs that are related both ways, which the task does not allow

    @classmethod
    def of(cls, sentences: Iterable[Sentence], task: EntityRelationTask) -> Unreachable:
        """Counts what a task cannot express of annotated sentences; a label counts once, by its first reason."""
        n_types = n_relations = 0
        types, relations, signatures, both = Counter[str](), Counter[str](), Counter[str](), Counter[str]()
        for sentence in sentences:
            if sentence.types is None or sentence.relations is None:
                continue
            labels = sentence.joint_labels()
            n_types, n_relations = n_types + len(sentence.types), n_relations + len(labels)
            types.update(name for name in sentence.types if name not in task.entity_labels)
            for (source, target), name in labels.items():
                joined = sentence.types[source], sentence.types[target]
                back = labels.get((target, source))
                if name not in task.arguments:
                    relations[name] += 1
                elif joined not in task.arguments[name]:
                    signatures[f"{name} from {joined[0]} to {joined[1]}"] += 1
                elif back is not None and (name, back) not in task.both_ways and source > target:
                    both[f"{back} and {name}"] += 1
        return cls(n_types, n_relations, types, relations, signatures, both)

    @property
    def n(self) -> int:
        """How many labels there are."""
        return sum(each.total() for each in (self.types, self.relations, self.signatures, self.both_ways))

    def __add__(self, other: Unreachable) -> Unreachable:
        sums = [getattr(self, name) + getattr(other, name) for name in self.__slots__]
        return Unreachable(*sums)

    def as_dict(self) -> dict[str, object]:
        """Returns it for JSON, and in words."""
        reasons = ("types", "relations", "signatures", "both_ways")
        counted = {reason: dict(getattr(self, reason).most_common()) for reason in reasons}
        return {"n": self.n} | counted | {"in_words": str(self)}

    def __str__(self) -> str:
        if not self.n:
            return "Every gold label can be expressed."
        parts = [
            f"{counts.total():,} {what} ({_most(counts)})"
            for what, counts in (
                ("types that the model lacks", self.types),
                ("relations that it lacks", self.relations),
                ("relations between types that they never joined in training", self.signatures),
                ("relations back over a pair that has one", self.both_ways),
            )
            if counts
        ]
        return f"Gold that no valid answer has, each a point lost: {'; '.join(parts)}."


def _most(counts: Counter[str], n: int = 3) -> str:
    """Returns the most frequent, and how many others there are."""
    shown = ", ".join(f"{name} {times:,}" for name, times in counts.most_common(n))
    return f"{shown} and {len(counts) - n:,} others" if len(counts) > n else shown
