"""How often an unproved search agrees with the black box: estimated, limited, and acted upon.

Audits are independent draws: agreed or not. Their share over a sliding window, with exact binomial limits
(Clopper and Pearson), is the estimate. Whether the search may be trusted is decided on several stretches at
once, the last 16 audits, the last 32, and so on up to the window: a sudden drift is seen after a few audits,
a slow one in the long run. Each stretch has its share of the doubt, so that together they err no more often
than one would. The rule has a hysteresis: trust ends when some stretch says that agreement is surely below
the level, and returns when some stretch since then says that it is surely not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import lru_cache
from operator import add, attrgetter

import numpy as np

from hasten.errors import ProblemError
from hasten.model.solution import Solutions, Source, Status
from hasten.support.arrays import BoolArray, FloatArray
from hasten.support.words import count

SHORTEST = 16  # audits of the shortest stretch
LONGEST = 512  # at least, of the longest: the window
SURE = 0.99  # confidence of a change of trust


@dataclass(frozen=True, slots=True)
class Agreement:
    """An estimate of a share, with its limits, from `n` audits; without any it is nan between 0 and 1."""

    estimate: float
    low: float
    high: float
    n: int

    @classmethod
    def of(cls, n_agreed: int, n: int, confidence: float = 0.95) -> Agreement:
        """Returns the estimate and both exact limits."""
        side = 1 - (1 - confidence) / 2
        low, high = lower_limit(n_agreed, n, side), upper_limit(n_agreed, n, side)
        return cls(n_agreed / n if n else math.nan, low, high, n)

    def __str__(self) -> str:
        if not self.n:
            return "not audited yet"
        return f"{self.estimate:.4f} (between {self.low:.4f} and {self.high:.4f}, {self.n} audits)"


class Audit:
    """The last audits, and whether they leave the search trusted; `level` None trusts it for ever.

    `distrust` is the agreement that ended the trust, until trust returns.
    """

    def __init__(self, level: float | None = 0.95) -> None:
        if level is not None and not (isinstance(level, int | float | np.number) and 0 < level < 1):
            raise ProblemError(f"The least agreement must be between 0 and 1, or None; got {level!r}.")
        self.level = level
        self.trusted = True
        self.distrust: Agreement | None = None
        self.recent: BoolArray = np.zeros(0, dtype=bool)

    @property
    def window(self) -> int:
        """How many audits are kept: enough to regain trust when a quarter of them do."""
        stretch = LONGEST
        while self.level is not None and stretch * -math.log(self.level) < 4 * -math.log((1 - SURE) / 16):
            stretch *= 2
        return stretch

    @property
    def agreement(self) -> Agreement:
        """The estimate over the window. When trust ends that begins anew; until new audits come, what ended it."""
        if self.distrust is not None and not len(self.recent):
            return self.distrust
        return Agreement.of(int(np.count_nonzero(self.recent)), len(self.recent))

    def observe(self, agreed: BoolArray) -> bool:
        """Takes in audits, oldest first; returns whether they changed the trust."""
        self.recent = np.concatenate([self.recent, np.asarray(agreed, dtype=bool)])[-self.window :]
        if self.level is None or not len(agreed):
            return False
        stretches = [SHORTEST]
        while stretches[-1] < self.window:
            stretches.append(2 * stretches[-1])
        sure = 1 - (1 - SURE) / len(stretches)
        for n in stretches:
            if n > len(self.recent):
                break
            n_agreed = int(self.recent[-n:].sum())
            if self.trusted and upper_limit(n_agreed, n, sure) < self.level:
                self.trusted, self.distrust = False, Agreement.of(n_agreed, n)
                self.recent = self.recent[:0]  # what was before says nothing of what comes
                return True
            if not self.trusted and lower_limit(n_agreed, n, sure) >= self.level:
                self.trusted, self.distrust = True, None
                self.recent = self.recent[-n:]
                return True
        return False


@dataclass(frozen=True, slots=True)
class Counters:
    """What a speedup did so far."""

    problems: int = 0  # answered: the sum of the next five
    by_search: int = 0
    by_bound: int = 0
    by_branch: int = 0
    by_solver: int = 0
    by_learned: int = 0
    proved: int = 0  # without the solver, optimal or infeasible
    infeasible: int = 0
    solver_calls: int = 0  # for answers, audits and learning
    costs: int = 0  # variables whose costs were computed for the answers
    variables: int = 0  # of all problems answered
    audits: int = 0
    disagreements: int = 0
    labelled: int = 0  # problems learned from
    updates: int = 0  # mistakes that changed the weights
    to_highs: int = 0  # how often `solver="auto"` asked it; it may ask several about one problem
    to_gurobi: int = 0
    to_toulbar2: int = 0
    to_cpsat: int = 0

    @classmethod
    def of(cls, answers: Solutions, solver_calls: int = 0) -> Counters:
        """Returns what there is to count about some answers."""
        costs, variables = int(answers.n_costs.sum()), int(answers.batch.variable_at[-1])
        counted = {"solver_calls": solver_calls, "costs": costs, "variables": variables}
        for (status, source), n in answers.counts().items():
            for name, more in _told(status, source, n).items():
                counted[name] = counted.get(name, 0) + more
        return cls(**counted)

    @classmethod
    def of_some(cls, status: Status, source: Source, n: int, n_variables: int) -> Counters:
        """Returns what there is to count about `n` answers that came about alike, all costs computed."""
        return cls(**_told(status, source, n), costs=n_variables, variables=n_variables)

    def __add__(self, other: Counters) -> Counters:
        return Counters(*map(add, self.values, other.values))

    @property
    def values(self) -> tuple[int, ...]:
        """The counts, in the order of their names."""
        values: tuple[int, ...] = _read_counters(self)
        return values

    def __str__(self) -> str:
        share = self.costs / self.variables if self.variables else 1.0
        learned = f"{self.by_learned} by learned tables, " if self.by_learned else ""
        return (
            f"{count(self.problems, 'problem')}: {learned}{self.by_search} by search, {self.by_bound} by bound, "
            f"{self.by_branch} by branching, {self.by_solver} by the solver; {share:.1%} of the costs "
            f"computed; {self.disagreements} of {count(self.audits, 'audit')} disagreed; "
            f"{count(self.updates, 'update')}{self._asked}"
        )

    @property
    def _asked(self) -> str:
        """Whom `solver="auto"` asked, if it asked anybody."""
        calls = zip(("HiGHS", "Gurobi", "toulbar2", "CP-SAT"), self.values[-4:], strict=True)
        asked = [f"{name} {count(n, 'time')}" for name, n in calls if n]
        return f"; asked {', '.join(asked)}" if asked else ""


_BY = {
    Source.SEARCH: "by_search",
    Source.BOUND: "by_bound",
    Source.BRANCH: "by_branch",
    Source.SOLVER: "by_solver",
    Source.LEARNED: "by_learned",
}


def _told(status: Status, source: Source, n: int) -> dict[str, int]:
    """Returns what `n` answers count as, by name, given how they came about."""
    infeasible = status is Status.INFEASIBLE
    proved = status is Status.PROVED or (infeasible and source is not Source.SOLVER)
    return {"problems": n, _BY[source]: n, "proved": n * proved, "infeasible": n * infeasible}


_read_counters = attrgetter(*(field.name for field in fields(Counters)))


@lru_cache(maxsize=65536)
def upper_limit(k: int, n: int, confidence: float) -> float:
    """Returns the upper limit of a share: that for which at most `k` of `n` has the chance 1 - confidence."""
    if k >= n:
        return 1.0
    terms = _log_choose(k, n)
    aim = math.log1p(-confidence)
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _log_at_most(terms, n, middle) > aim:
            low = middle
        else:
            high = middle
    return high


def lower_limit(k: int, n: int, confidence: float) -> float:
    """Returns the exact lower limit of a share, of which `k` of `n` were seen."""
    return 1.0 - upper_limit(n - k, n, confidence)


def _log_choose(k: int, n: int) -> FloatArray:
    """Returns the logarithms of n over 0, 1, …, k."""
    i = np.arange(1, k + 1)
    return np.concatenate([[0.0], np.cumsum(np.log(n - i + 1) - np.log(i))])


def _log_at_most(terms: FloatArray, n: int, share: float) -> float:
    """Returns the logarithm of the chance of at most k successes."""
    if share >= 1.0:
        return -math.inf
    i = np.arange(len(terms))
    logs = terms + i * math.log(share) + (n - i) * math.log1p(-share) if share > 0 else terms[:1]
    top = float(logs.max())
    with np.errstate(under="ignore"):  # chances that are too small to count
        return top + math.log(float(np.exp(logs - top).sum()))
