"""Flat problems, answered by a speedup: a record has the name of a structure and a cost for each label.

Each shard is answered by a copy of the speedup as it was given, which draws its audits by its seed and the number of
the shard: so answers, counters and audits depend neither on who answers which shard, nor on how many do.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import CorpusError, ProblemError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.structure import Structure
from hasten.scale.work import FAULTS, Counts, Items, Piece, Record
from hasten.speedup.predictor import Speedup
from hasten.tasks.text.lines import parse_object


class Named(NamedTuple):
    """A problem with its id, and the name of its structure."""

    id: str
    structure: str
    problem: Problem


@dataclass(eq=False)
class FlatWork:
    """Answers problems of the structures given by name."""

    speedup: Speedup
    structures: Mapping[str, Structure]
    _mine: Speedup | None = field(default=None, init=False, repr=False)  # for the shard at hand

    kind = "flat"

    def __post_init__(self) -> None:
        if self.speedup.learn:
            raise ProblemError("A speedup that learns as it works cannot be copied to shards. Set learn=False.")
        if not self.structures:
            raise ProblemError("Flat problems need structures: name at least one.")
        self.warm()  # a speedup that cannot answer is refused now

    def __getstate__(self) -> dict[str, Any]:
        return {"speedup": self.speedup, "structures": dict(self.structures), "_mine": None}

    @property
    def digest(self) -> str:
        """Changes with whatever can change an answer."""
        digest = hashlib.sha256(self.speedup.digest.encode())
        for name in sorted(self.structures):
            digest.update(f"{name} {self.structures[name].schema.digest}".encode())
            digest.update(self.structures[name].graph.buffer.tobytes())
        return digest.hexdigest()

    def warm(self) -> None:
        """Answers a problem of each structure, which takes the kernels that others take."""
        mine, rng = self.speedup.for_shard(0), np.random.default_rng(0)
        for shape in self.structures.values():
            mine.predict(shape.batch(rng.normal(size=(2, shape.n_labels))))

    def begin(self, shard: int) -> None:
        """Begins a shard: what is drawn from now on depends on its number alone."""
        self._mine = self.speedup.for_shard(shard)

    def read(self, piece: Piece) -> Items:
        """Reads problems."""
        problems, numbers, refused = list[Named](), list[int](), list[tuple[int, CorpusError]]()
        for number, entry in piece.entries():
            try:
                record = parse_object(entry) if isinstance(entry, str | bytes) else entry
                problems.append(self._read(record, str(number)))
                numbers.append(number)
            except FAULTS as error:
                refused.append((number, CorpusError(str(error))))
        return Items(problems, numbers, refused)

    def _read(self, record: Record, default_id: str) -> Named:
        name = record.get("structure")
        if name is None and len(self.structures) == 1:
            name = next(iter(self.structures))
        if not isinstance(name, str) or name not in self.structures:
            names = ", ".join(sorted(self.structures))
            raise CorpusError(f"There is no structure {str(name)[:60]!r}. There are {names}.")
        costs = record.get("costs")
        if not isinstance(costs, list):
            raise CorpusError("'costs' should be a list of numbers, one for each label.")
        if not isinstance(record.get("id", ""), str):
            raise CorpusError("'id' should be a string. Put it in quotes.")
        return Named(record.get("id", default_id), name, self.structures[name].problem(costs))

    def answer(self, items: Items) -> tuple[list[Record], Counts]:
        """Returns answers, and the counters of the speedup."""
        if not items.values:
            return [], Counts()
        if self._mine is None:
            self.begin(0)
        assert self._mine is not None
        before = Counts(self._mine.counters.as_dict())
        answers = self._mine.predict(Batch.of([each.problem for each in items.values]))
        counts = Counts(self._mine.counters.as_dict())
        counts.subtract(before)
        records = []
        for (id, structure, _), found in zip(items.values, answers, strict=True):
            record: Record = {"id": id, "structure": structure}
            if found.values is not None:
                record |= {"labels": found.names, "cost": float(found.cost) if math.isfinite(found.cost) else None}
            record |= {"proved": bool(found.proved), "source": found.source.value, "status": found.status.value}
            records.append(record | ({"failed": found.reason} if found.reason else {}))
        counts["failed"] = sum("failed" in record for record in records)
        return records, counts

    def encode(self, records: Sequence[Record]) -> bytes:
        """Returns answers as lines of JSON."""
        return "".join(json.dumps(record) + "\n" for record in records).encode()
