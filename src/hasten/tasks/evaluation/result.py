"""What came of an evaluation, whatever the task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hasten.support.environment import package_version
from hasten.tasks.evaluation.scores import Kind


class Unreachable(Protocol):
    """Gold labels that no answer can have: as a sentence, and as data."""

    def as_dict(self) -> dict[str, Any]:
        """Returns it for JSON."""
        ...


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of each kind of label, and what is known of the answers."""

    kinds: dict[str, Kind]
    n: int  # sentences
    n_exact: int
    n_valid: int
    n_proved: int
    n_by_solver: int
    n_failed: int
    unreachable: Unreachable

    def as_dict(self, **about: Any) -> dict[str, Any]:
        """Returns it for JSON, with what else is to be said about it."""
        of = max(1, self.n)
        return {
            "about": {"hasten": package_version("hasten"), **about},
            "n": self.n,
            "exact": self.n_exact / of,
            "valid": self.n_valid / of,
            "proved": self.n_proved / of,
            "n_by_solver": self.n_by_solver,
            "n_failed": self.n_failed,
            "unreachable": self.unreachable.as_dict() | {"in_words": str(self.unreachable)},
            "kinds": {name: kind.as_dict() for name, kind in self.kinds.items()},
        }
