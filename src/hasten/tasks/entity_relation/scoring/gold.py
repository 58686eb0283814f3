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
REASONS = {
    "types": "types that the model lacks",
    "relations": "relations that it lacks",
    "signatures": "relations between types that they never joined in training",
    "both_ways": "relations back over a pair that has one",
}
MOST = 3  # labels that are named for each reason


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
    """Gold labels that no valid answer has, by reason (`REASONS`): how many, and which."""

    n_types: int  # gold labels in all
    reasons: dict[str, Counter[str]]

    @classmethod
    def of(cls, sentences: Iterable[Sentence], task: EntityRelationTask) -> Unreachable:
        """Counts what a task cannot express of annotated sentences; a label counts once, by its first reason."""
        n_types, reasons = 0, {reason: Counter[str]() for reason in REASONS}
        for sentence in sentences:
            if sentence.types is None or sentence.relations is None:
                continue
            labels = sentence.joint_labels()
            n_types += len(sentence.types)
            reasons["types"].update(name for name in sentence.types if name not in task.entity_labels)
            for (source, target), name in labels.items():
                joined = sentence.types[source], sentence.types[target]
                back = labels.get((target, source))
                if name not in task.arguments:
                    reasons["relations"][name] += 1
                elif joined not in task.arguments[name]:
                    reasons["signatures"][f"{name} from {joined[0]} to {joined[1]}"] += 1
                elif back is not None and (name, back) not in task.both_ways and source > target:
                    reasons["both_ways"][f"{back} and {name}"] += 1
        return cls(n_types, reasons)

    @property
    def n(self) -> int:
        """How many labels there are."""
        return sum(counts.total() for counts in self.reasons.values())

    def __add__(self, other: Unreachable) -> Unreachable:
        reasons = {reason: counts + other.reasons[reason] for reason, counts in self.reasons.items()}
        return Unreachable(self.n_types + other.n_types, reasons)

    def as_dict(self) -> dict[str, object]:
        """Returns it for JSON, and in words."""
        counted = {reason: dict(counts.most_common()) for reason, counts in self.reasons.items()}
        return {"n": self.n} | counted | {"in_words": str(self)}

    def __str__(self) -> str:
        if not self.n:
            return "Every gold label can be expressed."
        parts = []
        for reason, counts in self.reasons.items():
            shown = ", ".join(f"{name} {times:,}" for name, times in counts.most_common(MOST))
            more = f" and {len(counts) - MOST:,} others" if len(counts) > MOST else ""
            parts += [f"{counts.total():,} {REASONS[reason]} ({shown}{more})"] if counts else []
        return f"Gold that no valid answer has, each a point lost: {'; '.join(parts)}."
