"""How answers are measured: F1 against a reference, validity, exact match; one row for all seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from hasten.model.solution import Solutions
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.experiment.contest import same_answers
from hasten.tasks.experiment.resampling import Resamples, f1_of
from hasten.tasks.experiment.rows import figures_of, merged
from hasten.tasks.experiment.timing import Timing

SCORES = ("entity_f1_gold", "relation_f1_gold", "entity_f1_ilp", "relation_f1_ilp")


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a results table; the keys of `results.json`. Times are of the whole test set."""

    model: Model
    beam: int | None
    theta: float | None
    entity_f1_gold: float
    relation_f1_gold: float
    entity_f1_ilp: float
    relation_f1_ilp: float
    validity: float
    exact_match: float
    proved: float
    solver_calls: float
    costs_computed: float
    time_ms: float
    time_ms_std: float
    features_ms: float | None  # None where features and inference are one
    inference_ms: float | None
    relative_theta: float | None = None  # theta as the paper prints it, where it is the paper's
    building_ms: float | None = None  # of models, or plans of proofs, before inference; no part of the time
    table: str = "ours"  # where the paper has it: "1", "2", or it is ours
    note: str = ""
    answered_by: Mapping[str, float] = field(default_factory=dict)  # sentences by solver, of all seeds
    solving_ms: Mapping[str, float] = field(default_factory=dict)  # and their time
    interval: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of each F1
    std: Mapping[str, float] = field(default_factory=dict)  # over seeds, where there are several

    def as_dict(self) -> dict[str, Any]:
        """Returns the row for JSON."""
        found = asdict(self)
        found["interval"] = {key: list(limits) for key, limits in self.interval.items()}
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """A row of one seed, and what resampling needs: counts of each test sentence for each of `SCORES`."""

    row: Row
    counts: FloatArray  # (n_test, 4, 2): see `f1_of`


def finite(theta: float) -> float | None:
    """Returns theta for JSON, which has no infinity: None stands for computing every cost."""
    return theta if math.isfinite(theta) else None


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """What answers are compared with: gold labels and the black box's own answers."""

    gold: IntArray  # flat
    ilp: Solutions
    is_entity: BoolArray  # (variables,)
    no_entity: int  # the labels that F1 does not count; -1 for none
    no_relation: int

    def f1(self, labels: IntArray, against: IntArray) -> tuple[float, float]:
        """Returns the micro F1 of entities and of relations, the labels for "nothing" not counted."""
        entity, relation = f1_of(self._named(labels, against).sum(axis=0)).tolist()
        return entity, relation

    def _named(self, labels: IntArray, against: IntArray) -> FloatArray:
        """Returns, for each variable, what it adds to the counts of entities and of relations: (variables, 2, 2)."""
        counts = np.zeros((len(labels), 2, 2))
        for kind, nothing in enumerate((self.no_entity, self.no_relation)):
            mine = self.is_entity if kind == 0 else ~self.is_entity
            named = mine & (against != nothing)
            counts[:, kind, 0] = named & (labels == against) & (labels >= 0)  # -1 is gold that no answer can be
            counts[:, kind, 1] = named.astype(int) + (mine & (labels != nothing) & (labels >= 0))
        return counts

    def counts(self, labels: IntArray) -> FloatArray:
        """Returns the counts (n_test, 4, 2) of each sentence, for each of `SCORES`."""
        at = self.ilp.batch.variable_at
        each = np.concatenate([self._named(labels, against) for against in (self.gold, self.ilp.labels)], axis=1)
        totals = np.concatenate([np.zeros((1, *each.shape[1:])), np.cumsum(each, axis=0)])
        found: FloatArray = totals[at[1:]] - totals[at[:-1]]
        return found

    def exact(self, found: Solutions) -> BoolArray:
        """Which answers are the black box's: the same labels, or as good ones."""
        return same_answers(found, self.ilp)

    def measured(
        self, model: Model, found: Solutions, features: Timing | None, inference: Timing, **about: Any
    ) -> Measured:
        """Measures answers; `features` None: inference holds both. `about` are fields of `Row`."""
        counts = self.counts(found.labels)
        values: dict[str, Any] = dict(zip(SCORES, f1_of(counts.sum(axis=0)).tolist(), strict=True)) | {
            "beam": None,
            "theta": None,
        }
        values |= figures_of(found, self.ilp, features, inference)
        return Measured(Row(model, **(values | about)), counts)


def over_seeds(measured: Sequence[Measured], resamples: Resamples) -> Row:
    """Returns one row for the same method with several seeds: means, standard deviations and intervals.

    With one seed, the standard deviation of the time is that of its runs. Theta is the median of those chosen, inf the
    largest, and the lower one of two.
    """
    rows = [each.row for each in measured]
    limits = resamples.intervals([each.counts for each in measured])
    interval = {key: (float(low), float(high)) for key, (low, high) in zip(SCORES, limits, strict=True)}
    if len(rows) == 1:
        return replace(rows[0], interval=interval)
    thetas = sorted(math.inf if row.theta is None else row.theta for row in rows)
    return replace(
        rows[0],
        **merged([row.as_dict() for row in rows], SCORES),
        theta=finite(thetas[(len(thetas) - 1) // 2]),
        interval=interval,
    )
