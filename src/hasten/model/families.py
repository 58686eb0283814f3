"""Families of factors that are not stated one by one: which of them a labelling breaks, and structures with some.

"Before is transitive" is a factor over every triple of events: a thousand for 20 events, and 10^5 for 90. Few of them
matter for one input. A `Family` knows its members without listing them: it says which a labelling breaks.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hasten.errors import SchemaError
from hasten.model.kinds import FactorKind
from hasten.model.structure import Scopes, Structure
from hasten.support.arrays import IntArray
from hasten.support.checks import brief, check_type

Broken = Callable[[IntArray], IntArray]  # from the labels of all variables to the scopes of members, a row each
Mend = Callable[[IntArray], IntArray]  # from labels that may break members to labels that break none


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Factors of one kind, over scopes that only `broken` knows.

    kind
        The kind of factor. Its table forbids, or costs something: no entry is below zero, so that leaving members out
        can only make a labelling cheaper.
    broken
        Returns the scopes of all members that a labelling breaks (or pays for), given the numbers of its labels: an
        array with a row of variables for each, in the order of the kind's roles. None are broken where it has no rows.
    mend
        Returns a labelling that breaks no member, given one that may. It need not be good: it is what there is if time
        runs out, and proves an optimum where it happens to be one. None, the default, has no such labelling.
    """

    kind: FactorKind
    broken: Broken
    mend: Mend | None = None

    def __post_init__(self) -> None:
        check_type(self.kind, FactorKind, "The kind of a family", SchemaError)
        for name, function in ("broken", self.broken), ("mend", len if self.mend is None else self.mend):
            if not callable(function):
                raise SchemaError(f"{name} must be a function of labels, got {brief(function)}.")
        table = self.kind.table
        if table is None or not len(table) or float(np.min(table)) < 0.0:
            raise SchemaError(
                f"{self.kind.name} cannot be a family: it needs a table without entries below zero, so that leaving "
                "members out is a relaxation. Set its table, or shift its costs into those of its labels."
            )

    def scopes(self, structure: Structure, labels: IntArray) -> IntArray:
        """Returns the scopes that a labelling breaks, checked."""
        found = structure.checked_scopes(self.kind, self.broken(labels))
        return np.array(found, dtype=np.int64).reshape(-1, len(self.kind.roles))


def extended(structure: Structure, kind: FactorKind, scopes: IntArray) -> Structure:
    """Returns a structure with more factors of a kind; it is closed."""
    before, after = structure._scopes, Scopes()
    after.kind, after.places, after.first = before.kind, before.places, before.first
    after.factor_kind = before.factor_kind + array("q", [kind.index]) * len(scopes)
    after.scope = before.scope + array("q", np.ascontiguousarray(scopes).ravel().tolist())
    return structure._variant(_scopes=after)
