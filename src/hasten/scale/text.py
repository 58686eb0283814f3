"""Sentences, answered by a tagger: records as in `docs/corpora.md`, with `proved`, and `failed` if the solver did."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hasten.scale.work import Counts, Record
from hasten.speedup.mode import TextMode
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats.jsonl import from_object, to_json
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.tagger import Labelled, Tagger


@dataclass(eq=False)
class TextWork:
    """Labels sentences; what it remembers from one chunk to the next stays in its process."""

    tagger: Tagger
    _label: Callable[[Sequence[Sentence]], Iterator[Labelled]] | None = field(default=None, init=False, repr=False)

    kind = "text"

    def __getstate__(self) -> dict[str, Any]:
        return {"tagger": self.tagger, "_label": None}

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        return self.tagger.digest

    def warm(self) -> None:
        """Labels some made-up sentences, which takes the kernels that others take."""
        for _ in self.tagger.label(generate(8, seed=0, labelled=False)):
            pass

    def begin(self, shard: int) -> None:
        """Begins a shard; nothing is drawn here."""

    def read(self, record: Record | Sentence, default_id: str) -> Sentence:
        """Returns a sentence."""
        return record if isinstance(record, Sentence) else from_object(record, default_id)

    def answer(self, items: Sequence[Sentence]) -> tuple[list[Record], Counts]:
        """Returns sentences with their labels."""
        if self._label is None:
            self._label = self.tagger.labeller()
        records, counts = [], Counts()
        certified = self.tagger.mode == TextMode.CERTIFIED
        for labelled in self._label(items):
            counts["problems"] += 1
            counts["proved"] += labelled.proved
            counts[f"by_{labelled.source.name.lower()}"] += 1
            counts["failed"] += bool(labelled.reason)
            late = certified and not labelled.optimal and not labelled.reason
            counts["late"] += late
            more = {"optimal": False} if late else {"failed": labelled.reason} if labelled.reason else {}
            records.append(to_json(labelled.sentence) | {"proved": labelled.proved} | more)
        return records, counts
