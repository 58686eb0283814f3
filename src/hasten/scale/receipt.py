"""What became of a shard, and the form that its file must have to be believed."""

from __future__ import annotations

import hashlib
import json
from typing import Any, NamedTuple

from hasten.support import forms


class Receipt(NamedTuple):
    """What became of a shard."""

    shard: int
    job: str  # digest of what was done
    input: str  # digest of what it was done with
    digest: str  # of the answers
    counts: dict[str, int]
    bad: list[list[Any]]  # a `Bad` each
    peak_mb: float  # memory of the process that did it, at most so far
    seconds: float  # of the processor
    kept: bool = False  # whether it was done before, and is only verified now

    def dumped(self) -> bytes:
        """Returns what its file holds, with a digest of all else."""
        said = self._asdict()
        return json.dumps(said | {"sha256": _digest(said)}).encode()

    @staticmethod
    def parsed(said: bytes) -> Receipt | None:
        """Returns the receipt in a file; None if that is damaged, so that its shard is answered again."""
        try:
            found = forms.read_json(said, "the receipt")
            _FORM(found, "the receipt")
        except forms.Misfit:
            return None
        digest = found.pop("sha256")
        return Receipt(**found) if digest == _digest(found) else None


def _digest(said: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


_FORM = forms.record(
    {
        "shard": forms.whole(),
        "job": forms.text,
        "input": forms.text,
        "digest": forms.text,
        "counts": forms.table_of(forms.whole()),
        "bad": forms.many(forms.row(forms.text, forms.whole(1), forms.text)),
        "peak_mb": forms.number(0.0),
        "seconds": forms.number(0.0),
        "kept": forms.switch,
        "sha256": forms.text,
    }
)
