"""Factors on demand: answer without a family's members, add those that the answer breaks, and answer again.

"Before is transitive" is a factor over every triple of events: a thousand for 20 events, and 10^5 for 90. Few of them
matter for one input. A `Family` knows its members without listing them: it says which a labelling breaks. Without some
of them a problem is a relaxation: it costs no more. So once its optimum breaks no member of a family, it is the optimum
under all of them, proved or solved as the relaxation was. Members that were needed once are kept, for all problems of
the shape: those that come later start with them.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.model.batch import Batch, as_batch
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Scopes, Structure
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import are_proved
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import brief, check_limit, check_type, listed
from hasten.support.clock import deadline_after, now

Members = set[tuple[int, ...]]
OUT_OF_TIME = (Status.TIME_LIMIT, Status.NO_TIME)
SHARE = 0.25  # of the time left that a round may take while members may be broken
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

    def members(self, structure: Structure, labels: IntArray) -> Members:
        """Returns the scopes that a labelling breaks, checked."""
        return {tuple(scope) for scope in structure.checked_scopes(self.kind, self.broken(labels))}


class OnDemand:
    """Answers problems of one shape under families of factors, of which it states only those that matter.

    shape
        The structure without the families: variables, rules and all other factors.
    families
        One `Family`, or several.
    answer
        Who answers the problems with the members so far: a `Certifier`, the default, or a `Speedup` of the schema.
    time_limit
        Seconds that a call may take. What runs out of time is the best labelling known that breaks nothing, if there is
        one, and says so. A round of a `Certifier` takes a quarter of the time left, or all of it once an answer breaks
        nothing. A `Speedup` keeps its own limits within each round. None, the default, is no limit.
    """

    def __init__(
        self,
        shape: Structure,
        families: Family | Sequence[Family],
        answer: Certifier | Speedup | None = None,
        time_limit: float | None = None,
    ) -> None:
        check_limit("time_limit", time_limit)
        check_type(shape, Structure, "The shape")
        self.families = (families,) if isinstance(families, Family) else listed(families, "Families")
        for family in self.families:
            if not isinstance(family, Family) or shape.schema.factors.get(family.kind.name) is not family.kind:
                raise ProblemError(f"{brief(family)} is not a family of this schema. Make one: Family(kind, broken).")
        if shape._slots:
            raise ProblemError("Factors on demand need a shape whose problems have no tables of their own.")
        self.answer: Certifier | Speedup = Certifier() if answer is None else answer
        self.time_limit = time_limit
        self.n_rounds = 0  # of all calls
        self._shape = self._stated = shape
        self._members: list[Members] = [set() for _ in self.families]

    @property
    def n_members(self) -> int:
        """How many members of the families were stated so far."""
        return sum(map(len, self._members))

    @overload
    def __call__(self, problems: Problem) -> Solution: ...
    @overload
    def __call__(self, problems: Batch | Sequence[Problem]) -> Solutions: ...
    def __call__(self, problems: Problem | Batch | Sequence[Problem]) -> Solution | Solutions:
        """Answers a problem or a batch of the shape; answers belong to problems with the members stated so far."""
        deadline = deadline_after(self.time_limit)
        costs = self._costs(as_batch(problems).resolved())
        found: list[Solution | None] = [None] * len(costs)  # the best that breaks nothing
        left, ended = np.arange(len(costs)), dict[int, Solution]()
        share = least = 1.0 if deadline == math.inf or isinstance(self.answer, Speedup) else SHARE
        while left.size:
            answers = self._answered(costs[left], [found[p] for p in left.tolist()], deadline, share)
            self.n_rounds += 1
            wanted: list[Members] = [set() for _ in self.families]
            again, late, whole, share = list[int](), now() >= deadline, share == 1.0, 1.0
            for p, answer in zip(left.tolist(), answers, strict=True):
                broken = self._broken(answer)
                ends = not any(broken) and (late or whole or answer.status not in OUT_OF_TIME)
                best = found[p]
                if ends and (best is None or answer.cost <= best.cost):
                    ended[p] = answer
                    continue
                if answer.values is not None:
                    best = found[p] = self._better(best, answer)
                if best is not None and self._is_proved(best, answer.bound):
                    by_solver = answer.status is Status.SOLVED
                    ended[p] = replace(best, status=Status.SOLVED if by_solver else Status.PROVED)
                elif late and best is None:
                    ended[p] = replace(answer, status=Status.NO_TIME, values=None, cost=math.inf, valid=False)
                elif late and best is not None:
                    ended[p] = replace(best, status=Status.TIME_LIMIT)
                elif ends and best is not None:
                    ended[p] = best
                else:
                    again.append(p)
                    share = least if any(broken) else share
                    for more, some in zip(wanted, broken, strict=False):
                        more |= some
            if again:
                self._state(wanted)
            left = np.array(again, dtype=np.int64)
        batch = self._stated.batch(costs)
        solutions = Solutions.of(batch, [replace(ended[p], problem=batch[p]) for p in range(len(batch))])
        return solutions[0] if isinstance(problems, Problem) else solutions

    def _costs(self, batch: Batch) -> FloatArray:
        """Returns the costs of problems of the shape, a row each."""
        for structure in batch.structures:
            if structure.compiled is not self._shape.compiled:
                raise ProblemError(
                    "Factors on demand are added to problems of one shape, without tables or rules of their own. Make "
                    "the problems with the structure that OnDemand was given."
                )
        return batch.cost.reshape(len(batch), int(self._shape.graph.first[-1]))[:, : self._shape.n_labels]

    def _answered(
        self, costs: FloatArray, found: Sequence[Solution | None], deadline: float, share: float
    ) -> Solutions:
        """Answers some problems with the members so far, in a share of the time left."""
        batch = self._stated.batch(costs)
        if isinstance(self.answer, Speedup):
            return self.answer.predict(batch)
        known = [replace(best, problem=batch[p]) for p, best in enumerate(found) if best is not None]
        start = Solutions.of(batch, known) if len(known) == len(batch) else None
        left, limit = share * (deadline - now()), self.answer.call_limit
        left = max(0.0, left if limit is None else min(left, limit))
        return replace(self.answer, call_limit=left if left < math.inf else None)(batch, start)

    def _broken(self, answer: Solution) -> list[Members]:
        """Returns the members of each family that an answer breaks, but for those that its problem states."""
        if answer.values is None:
            return []
        both = zip(self.families, self._members, strict=True)
        return [family.members(self._shape, answer.labels) - known for family, known in both]

    def _better(self, best: Solution | None, answer: Solution) -> Solution | None:
        """Returns the better of what is known and what mending an answer gives, with the bound of the answer."""
        labels: IntArray = answer.labels
        for family in self.families:
            labels = labels if family.mend is None else np.asarray(family.mend(labels))
        problem = answer.problem
        if problem.check(labels).valid and not any(f.members(self._shape, labels) for f in self.families):
            cost = problem.total(labels)
            if best is None or cost < best.cost:
                values = problem.values(labels)
                best = Solution(problem, Status.OPEN, Source.BOUND, values, cost, answer.bound, True, answer.n_costs)
        return None if best is None else replace(best, bound=min(best.cost, max(best.bound, answer.bound)))

    def _is_proved(self, best: Solution, bound: float) -> bool:
        """Whether a bound proves a labelling; of the size of its terms only labels' costs count."""
        cost, first = best.problem.cost, best.problem.graph.first
        largest = np.where(np.isfinite(cost), np.abs(cost), 0.0)
        size = np.maximum.reduceat(largest, first[:-1]).sum() if len(first) > 1 else 0.0
        return bool(are_proved(np.array([best.cost]), np.array([bound]), np.array([size]))[0])

    def _state(self, wanted: list[Members]) -> None:
        """States more members."""
        before, after = self._shape._scopes, Scopes()
        after.kind, after.places, after.first = before.kind, before.places, before.first
        after.factor_kind, after.scope = before.factor_kind[:], before.scope[:]
        for family, members, more in zip(self.families, self._members, wanted, strict=True):
            members |= more
            after.factor_kind += array("q", [family.kind.index]) * len(members)
            for member in sorted(members):
                after.scope.extend(member)
        self._stated = self._shape._variant(_scopes=after)
