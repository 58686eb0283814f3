"""Factors and rules on demand: answer without a family's members, add those that the answer breaks, and answer again.

"Before is transitive" is a factor over every triple of events: a thousand for 20 events, and 10^5 for 90; "what is
alive fits into memory" is a rule at every moment. Few of them matter for one input. A `Family` knows its members
without listing them: it says which a labelling breaks. Without some of them a problem is a relaxation: it costs no
more. So once its optimum breaks no member of a family, it is the optimum under all of them, proved or solved as the
relaxation was. Members that were needed once are kept, for all problems of the shape: those that come later start
with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import overload

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.kernels.tolerance import EPS
from hasten.model.batch import Batch, as_batch
from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.model.rules import Rule, check_rule_name
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Scopes, Structure
from hasten.proof.certifier import Certifier
from hasten.proof.outcome import are_proved
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import brief, check_limit, check_type, check_vector, finite, listed, whole_numbers
from hasten.support.clock import deadline_after, now

Member = tuple[int, ...] | Rule  # a scope, or a rule
OUT_OF_TIME = (Status.TIME_LIMIT, Status.NO_TIME)
Members = dict[Member, None]  # a set in the order in which they were found
SHARE = 0.25  # of the time left that a round may take while members may be broken
FITS = 1e-9  # share of a limit by which a sum over time may be too large before its rule is stated, for rounding


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Factors of one kind, or rules, that only `broken` knows.

    kind
        The kind of factor. Its table forbids, or costs something: no entry is below zero, so that leaving members out
        can only make a labelling cheaper. None for rules (`of_rules`).
    broken
        Returns the scopes of all members that a labelling breaks (or pays for), given the numbers of its labels: an
        array with a row of variables for each, in the order of the kind's roles. None are broken where it has no rows.
        Of rules, it returns a list of those that are broken.
    mend
        Returns a labelling that breaks no member, given one that may. It need not be good: it is what there is if time
        runs out, and proves an optimum where it happens to be one. None, the default, has no such labelling.
    """

    kind: FactorKind | None
    broken: Callable[[IntArray], IntArray | list[Rule]]
    mend: Callable[[IntArray], IntArray] | None = None

    def __post_init__(self) -> None:
        for name, function in ("broken", self.broken), ("mend", len if self.mend is None else self.mend):
            if not callable(function):
                raise SchemaError(f"{name} must be a function of labels, got {brief(function)}.")
        if self.kind is None:
            return
        check_type(self.kind, FactorKind, "The kind of a family", SchemaError)
        table = self.kind.table
        if table is None or not len(table) or float(np.min(table)) < 0.0:
            raise SchemaError(
                f"{self.kind.name} cannot be a family: it needs a table without entries below zero, so that leaving "
                "members out is a relaxation. Set its table, or shift its costs into those of its labels."
            )

    def members(self, structure: Structure, labels: IntArray) -> list[Member]:
        """Returns the members that a labelling breaks: scopes, checked, or rules, checked but for their terms."""
        if self.kind is not None:
            return [tuple(scope) for scope in structure.checked_scopes(self.kind, self.broken(labels))]
        hint = "Make one: Rule.of(name, terms, at_most=...)."
        rules: list[Rule] = list(listed(self.broken(labels), "The rules of a family", SchemaError, Rule, hint))
        for rule in rules:
            if rule.price is not None:
                raise SchemaError(f"Rule {rule.name!r} of a family has a price. State rules with prices outright.")
        return [*rules]

    @classmethod
    def of_rules(
        cls, broken: Callable[[IntArray], list[Rule]], mend: Callable[[IntArray], IntArray] | None = None
    ) -> Family:
        """Returns a family of rules, without prices: `broken` returns those that a labelling breaks, as a list."""
        return cls(None, broken, mend)

    @classmethod
    def over_time(
        cls,
        name: str,
        shape: Structure,
        alive: IntArray,
        uses: Sequence[FloatArray],
        at_most: float,
        mend: Callable[[IntArray], IntArray] | None = None,
    ) -> Family:
        """Returns the rules that at every moment the sum over all variables alive is at most a limit.

        `alive` has a row for each variable: the moment from which on it is alive, and the one at which it is not any
        more. `uses` has an array for each: what it uses with each of its labels. Both are all that is kept of the
        family; of each stretch of time in which a labelling uses too much, the moment of its peak is stated.
        """
        check_rule_name(name)
        check_type(shape, Structure, "The shape")
        limit = finite(at_most, f"at_most of {name!r}", SchemaError)
        span = whole_numbers(alive, f"When variables of {name!r} are alive", SchemaError, n_axes=2)
        if limit < 0.0:
            raise SchemaError(f"at_most of {name!r} must not be below zero, got {brief(at_most)}.")
        if span.shape != (shape.n_variables, 2) or (span[:, 0] > span[:, 1]).any():
            raise SchemaError(
                f"{name!r} needs two whole numbers for each of the {shape.n_variables} variables: when it begins to be "
                "alive, and when it ends."
            )
        what = f"What is used in {name!r}"
        use = [check_vector(what, each) for each in listed(uses, what, SchemaError)]
        sizes = [len(kind.labels) for kind in shape.kinds]
        if [each.size for each in use] != sizes:
            raise SchemaError(f"{name!r} needs finite numbers for each variable: what it uses with each of its labels.")
        flat, first = np.concatenate([*use, np.zeros(0)]), np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        moments, place = np.unique(span, return_inverse=True)
        begin, end = place.reshape(span.shape).T
        whole = (flat == np.rint(flat)).all()
        most, rounding = (limit, 0.0) if whole else (limit + FITS * abs(limit), 4.0 * EPS * len(span))

        def broken(labels: IntArray) -> list[Rule]:
            used, change = flat[first[:-1] + labels], np.zeros(len(moments) + 1)
            np.add.at(change, begin, used)
            np.subtract.at(change, end, used)
            total = change.cumsum()[:-1]  # whose rounding is of the size of what was used before
            for moment in np.flatnonzero(abs(total - most) < rounding * abs(used).sum()).tolist():
                total[moment] = math.fsum(used[(begin <= moment) & (moment < end)])
            over = np.concatenate([[False], total > most, [False]])
            stretches = np.flatnonzero(over[1:] != over[:-1]).reshape(-1, 2)
            return [rule_at(start + int(total[start:stop].argmax())) for start, stop in stretches.tolist()]

        def rule_at(moment: int) -> Rule:
            terms = [
                (v, label, weight)
                for v in np.flatnonzero((begin <= moment) & (moment < end)).tolist()
                for label, weight in zip(shape.kinds[v].labels, use[v].tolist(), strict=True)
                if weight != 0.0
            ]
            return Rule.of(f"{name} at {moments[moment]}", terms, at_most=limit)

        return cls.of_rules(broken, mend)


class OnDemand:
    """Answers problems of one shape under families of factors and rules, of which it states only those that matter.

    shape
        The structure without the families: variables and all other rules and factors. Where a problem has tables of its
        own, its `structure`; then families are of rules.
    families
        One `Family`, or several, or families of rules (`Family.of_rules`, `Family.over_time`).
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
        one = isinstance(families, Family)
        self.families: tuple[Family, ...] = (families,) if one else listed(families, "Families")
        for family in self.families:
            kind = family.kind if isinstance(family, Family) else family
            if kind is not None and (
                not isinstance(kind, FactorKind) or shape.schema.factors.get(kind.name) is not kind
            ):
                raise ProblemError(f"{brief(family)} is not a family of this schema. Make one: Family(kind, broken).")
            if kind is not None and shape._slots:
                raise ProblemError("Factors on demand need a shape whose problems have no tables of their own.")
        self.answer: Certifier | Speedup = Certifier() if answer is None else answer
        self.time_limit = time_limit
        self.n_rounds = 0  # of all calls
        self._shape = self._stated = shape
        self._members: list[Members] = [{} for _ in self.families]

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
        given = self._given(as_batch(problems).resolved())
        found: list[Solution | None] = [None] * len(given)  # the best that breaks nothing
        left, ended = np.arange(len(given)), dict[int, Solution]()
        share = least = 1.0 if deadline == math.inf or isinstance(self.answer, Speedup) else SHARE
        while left.size:
            answers = self._answered(given.select(left), [found[p] for p in left.tolist()], deadline, share)
            self.n_rounds += 1
            wanted: list[Members] = [{} for _ in self.families]
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
        batch = self._stating(given)
        solutions = Solutions.of(batch, [replace(ended[p], problem=batch[p]) for p in range(len(batch))])
        return solutions[0] if isinstance(problems, Problem) else solutions

    def _given(self, batch: Batch) -> Batch:
        """Returns problems of the shape, checked."""
        for structure in batch.structures:
            if structure.compiled is not self._shape.compiled:
                raise ProblemError(
                    "Factors on demand are added to problems of one shape, without tables or rules of their own. Make "
                    "the problems with the structure that OnDemand was given."
                )
        return batch

    def _stating(self, batch: Batch) -> Batch:
        """Returns problems of the shape with the members so far."""
        if any(family.kind is not None for family in self.families):
            costs = batch.cost.reshape(len(batch), int(self._shape.graph.first[-1]))[:, : self._shape.n_labels]
            return self._stated.batch(costs)
        return replace(batch, structures=(self._stated,), structure=np.zeros_like(batch.structure))

    def _answered(self, given: Batch, found: Sequence[Solution | None], deadline: float, share: float) -> Solutions:
        """Answers some problems with the members so far, in a share of the time left."""
        batch = self._stating(given)
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
        found = [family.members(self._shape, answer.labels) for family in self.families]
        both = zip(found, self._members, strict=True)
        return [{member: None for member in each if member not in known} for each, known in both]

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
        before, after, rules = self._shape._scopes, Scopes(), list[Rule]()
        after.kind, after.first = before.kind, before.first
        after.factor_kind, after.scope = before.factor_kind[:], before.scope[:]
        for family, members, more in zip(self.families, self._members, wanted, strict=True):
            members |= more
            rules += [member for member in members if isinstance(member, Rule)]
            for member in sorted(member for member in members if isinstance(member, tuple)):
                after.factor_kind.append(family.kind.index)  # type: ignore[union-attr]
                after.scope.extend(member)
        self._stated = self._shape._variant(_scopes=after).with_rules(rules)
