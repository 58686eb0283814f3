"""Amortized inference: past answers that are proved to be a new problem's, by theorems alone.

A problem of the same structure, with the same tables, whose costs have moved only in favour of a past answer, has that
answer too (Srikumar, Kundu and Roth 2012, Theorem 1). So has one whose costs have moved against it by less than its
*margin*, what every other labelling costs more at least (Kundu, Srikumar and Roth 2013). Several past problems with one
answer span a *cone*: what holds for each of them holds for their sums (Srikumar et al., Theorems 2 and 3); finding the
sum is a small linear program. `hasten.proof.past` has the one inequality that covers all of this.

An answer is proved by the same test as any other: its cost meets a lower bound, whatever rounding may have done.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.tolerance import EPS
from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.solution import Solutions, Source, Status, numbered
from hasten.proof.certifier import Certifier
from hasten.proof.past import Answered, best_of_some, recall_some
from hasten.search.searcher import Searcher
from hasten.solvers import load
from hasten.speedup.on_demand import size_of_costs
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.checks import check_switch, check_whole

MAX_TABLES = 16  # sets of tables of one structure: those learned from last are kept
MOST_IN_CONE = 32  # past problems with one answer that a linear program combines
MOST = 1e290  # a margin: where every other labelling is forbidden, it is finite all the same
CHUNK = 1024  # problems whose margins are computed together


@dataclass(eq=False)
class Shelf:
    """The past problems of one structure and one set of tables, the least recently used first to go."""

    answered: Answered
    proved: Any  # (m,) whether the answer needed no solver
    used: IntArray  # (m,) when it was last used

    @classmethod
    def empty(cls, n_labels: int, n_variables: int) -> Shelf:
        """Returns one without problems."""
        none = np.zeros(0)
        answered = Answered(np.zeros((0, n_labels)), np.zeros((0, n_variables), dtype=np.int64), none, none)
        return cls(answered, np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.used)

    def add(self, more: Answered, proved: Any, now: int, limit: int) -> None:
        """Adds problems, and drops those used least recently beyond the limit."""
        joined = [np.concatenate(pair) for pair in zip(self.answered, more, strict=True)]
        proved = np.concatenate([self.proved, proved])
        used = np.concatenate([self.used, np.full(len(more.margin), now)])
        kept = np.sort(np.argsort(used, kind="stable")[max(0, len(used) - limit) :])
        self.answered = Answered(*(np.ascontiguousarray(each[kept]) for each in joined))
        self.proved, self.used = proved[kept], used[kept]


@dataclass(eq=False)
class Amortizer(Searcher):
    """Answers problems by past answers, where a theorem proves that they are optimal; leaves the others open.

    margins
        Whether to compute the margin of each answer that is learned: as many proofs as it has variables. Off by
        default: without, answers hold where costs moved only in their favour.
    cones
        Whether to combine past problems with the same answer, by a linear program for each problem that is open
        otherwise. Off by default: it takes HiGHS, and about a millisecond.
    max_problems
        How many past problems to keep of each structure and set of tables, of which there are 16 at most. 1,024 by
        default. What is kept of a structure is let go with it.

    Called with problems it returns their answers: `Status.PROVED`, or `Status.SOLVED` if the past answer was a
    solver's; `Status.OPEN` where no theorem applies. Threads must not share one.
    """

    margins: bool = False
    cones: bool = False
    max_problems: int = 1024
    _shelves: WeakKeyDictionary[Compiled, dict[bytes, Shelf]] = field(default_factory=WeakKeyDictionary, repr=False)
    _now: int = field(default=0, repr=False)

    def __post_init__(self) -> None:
        check_switch("margins", self.margins)
        check_switch("cones", self.cones)
        check_whole("max_problems", self.max_problems, least=1)

    def __len__(self) -> int:
        return sum(len(shelf) for shelves in self._shelves.values() for shelf in shelves.values())

    def learn(self, answers: Solutions) -> None:
        """Remembers optimal answers, as long as there is room; others are left out."""
        if not isinstance(answers, Solutions):
            raise ProblemError(f"An amortizer learns from Solutions, such as Certifier()(batch); got {answers!r}.")
        self._now += 1
        batch = answers.batch.resolved()
        usable = np.flatnonzero(answers.valid & answers.optimal & np.isfinite(answers.cost))
        margin = self._margins(batch, answers, usable)
        for compiled, tables, problems in _groups(batch, usable):
            shelves = self._shelves.setdefault(compiled, {})
            first = compiled.graph.first
            shelf = shelves.pop(tables, None) or Shelf.empty(int(first[-1]), len(first) - 1)
            shelves[tables] = shelf  # behind all others
            while len(shelves) > MAX_TABLES:
                del shelves[next(iter(shelves))]
            cost = _rows(batch.cost, batch.cost_at[problems], int(first[-1]))
            labels = _rows(answers.values, batch.variable_at[problems], len(first) - 1)
            more = Answered(cost, labels, margin[problems], size_of_costs(cost, first))
            shelf.add(more, answers.proved[problems], self._now, self.max_problems)

    def _margins(self, batch: Batch, answers: Solutions, usable: IntArray) -> FloatArray:
        """Returns how much more than its answer every other labelling of a problem costs, at least."""
        margin = np.full(len(batch), -np.inf)
        margin[usable] = np.minimum(0.0, answers.bound[usable] - answers.cost[usable])
        if not self.margins:
            return margin
        for start in range(0, usable.size, CHUNK):
            some = usable[start : start + CHUNK]
            copies = np.repeat(some, batch.n_variables[some])  # one for each variable, without its label in the answer:
            others = batch.select(copies)  # every other labelling is valid for one of them
            at = batch.places(some)
            starts, _ = batch.label_ranges(copies, at - batch.variable_at[copies])
            others.cost[others.cost_at[:-1] + starts + answers.values[at]] = np.inf
            second = np.full(len(batch), MOST)
            np.minimum.at(second, copies, Certifier()(others).bound)
            margin[some] = np.maximum(margin[some], second[some] - answers.cost[some] - _slips(batch, some))
        return margin

    def _search(self, batch: Batch, n_jobs: int) -> Solutions:
        batch = batch.resolved()
        n = len(batch)
        self._now += 1
        labels = np.full(batch.variable_at[-1], -1, dtype=np.int64)
        which, values, by_solver = np.full(n, -1, dtype=np.int64), np.full((2, n), np.inf), np.zeros(n, dtype=bool)
        values[1] = -np.inf
        for compiled, tables, problems in _groups(batch, np.arange(n)):
            shelf = self._shelves.get(compiled, {}).get(tables)
            if shelf is None or not len(shelf):
                continue
            recall_some(batch.arrays, shelf.answered, problems, which, labels, values)
            found = problems[which[problems] >= 0]
            shelf.used[which[found]] = self._now
            by_solver[found] = ~shelf.proved[which[found]]
            if self.cones:
                for p in problems[which[problems] < 0].tolist():
                    by_solver[p] = self._recall_cone(batch, shelf, compiled, p, which, labels, values)
        done = which >= 0
        status = np.where(done, np.where(by_solver, *numbered(Status.SOLVED, Status.PROVED)), numbered(Status.OPEN)[0])
        source = np.full(n, numbered(Source.SEARCH)[0])
        return Solutions(batch, labels, values[0], values[1], done, status, source, batch.n_variables.copy())

    def _recall_cone(
        self,
        batch: Batch,
        shelf: Shelf,
        compiled: Compiled,
        p: int,
        which: IntArray,
        labels: IntArray,
        values: FloatArray,
    ) -> bool:
        """Tries the cheapest past answer with a sum of the problems that had it; says if it was a solver's."""
        past, only = shelf.answered, np.array([p])
        cheapest = np.full(len(batch), -1, dtype=np.int64)
        best_of_some(batch.arrays, past.labels, only, cheapest, labels.copy(), np.empty(len(batch)))
        if cheapest[p] < 0:
            return False
        same = np.flatnonzero((past.labels == past.labels[cheapest[p]]).all(axis=1))[-MOST_IN_CONE:]
        cost = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]]
        same = same[~(np.isinf(past.cost[same]) & np.isfinite(cost)).any(axis=1)]  # a label that was forbidden then
        if not same.size:
            return False
        soft = compiled.graph.soft_at.size > 0
        shares = combine(past, same, cost, compiled.graph.first, soft)
        if shares is None:
            return False
        with np.errstate(invalid="ignore"):  # 0 times inf: of labels that are forbidden now as well
            mixed = np.nan_to_num(shares @ past.cost[same], nan=np.inf, posinf=np.inf)
        size = (same.size + 2) * float(shares @ past.size[same])
        one = Answered(mixed[None], past.labels[same[:1]], np.array([shares @ past.margin[same]]), np.array([size]))
        recall_some(batch.arrays, one, only, which, labels, values)
        if which[p] < 0:
            return False
        shelf.used[same] = self._now
        return bool((~shelf.proved[same[shares > 0]]).any())

    def __getstate__(self) -> dict[str, Any]:
        return {"margins": self.margins, "cones": self.cones, "max_problems": self.max_problems}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]  # what it knew lies at addresses of another process


def combine(past: Answered, same: IntArray, cost: FloatArray, first: IntArray, soft: bool) -> FloatArray | None:
    """Returns how much of each of some past problems, with one answer, to add up so that it is likeliest a proof.

    A linear program: the least excess, less the margins. Where tables cost something the shares must add up to 1, for
    the tables are in every past problem. Any shares are correct: what they prove is computed anew.
    """
    load("highs")
    import highspy

    n, chosen = same.size, first[:-1] + past.labels[same[0]]
    variable = np.repeat(np.arange(len(first) - 1), np.diff(first))
    rows = np.flatnonzero(np.isfinite(cost) & ~np.isin(np.arange(cost.size), chosen))
    now = cost[rows] - cost[chosen][variable[rows]]
    then = past.cost[same][:, rows] - past.cost[same][:, chosen][:, variable[rows]]
    scale = max(float(np.abs(now).max(initial=0.0)), 1e-300)
    sizes = np.maximum(np.abs(then).max(axis=1, initial=0.0), 1e-300) if not soft else np.full(n, scale)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    lp = highspy.HighsLp()
    n_variables = len(first) - 1
    lp.num_col_, lp.num_row_ = n + n_variables, rows.size + soft
    lp.col_cost_ = np.concatenate([-np.minimum(past.margin[same], MOST) / sizes, np.ones(n_variables)])
    lp.col_lower_ = np.zeros(n + n_variables)
    lp.col_upper_ = np.concatenate([np.full(n, 1.0 if soft else 1e3), np.full(n_variables, math.inf)])
    weights = np.column_stack([-(then / sizes[:, None]).T, np.ones(rows.size)])
    columns = np.column_stack([np.tile(np.arange(n), (rows.size, 1)), n + variable[rows]])
    lp.row_lower_ = np.concatenate([-now / scale, [1.0] * soft])
    lp.row_upper_ = np.concatenate([np.full(rows.size, math.inf), [1.0] * soft])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([np.arange(0, weights.size + 1, n + 1), [weights.size + n] * soft]).astype(
        np.int32
    )
    lp.a_matrix_.index_ = np.concatenate([columns.ravel(), *([np.arange(n)] if soft else [])]).astype(np.int32)
    lp.a_matrix_.value_ = np.concatenate([weights.ravel(), *([np.ones(n)] if soft else [])])
    if highs.passModel(lp) == highspy.HighsStatus.kError:
        return None
    highs.run()
    if highs.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    shares = np.maximum(0.0, np.array(highs.getSolution().col_value[:n]))
    found: FloatArray = shares / max(float(shares.sum()), 1e-9) if soft else shares * (scale / sizes)
    return found if np.isfinite(found).all() else None


def _groups(batch: Batch, problems: IntArray) -> Iterator[tuple[Compiled, bytes, IntArray]]:
    """Yields some problems by structure and tables."""
    keys: dict[tuple[int, int], list[int]] = {}
    for p in problems.tolist():
        keys.setdefault((int(batch.structure[p]), int(batch.table_at[p])), []).append(p)
    for (s, at), members in keys.items():
        compiled = batch.structures[s].compiled
        table = batch.table[at : at + len(compiled.graph.table)]
        yield compiled, table.tobytes(), np.array(members)


def _rows(flat: Any, starts: IntArray, width: int) -> Any:
    """Returns parts of a flat array, as many from each start on, as the rows of a matrix."""
    return flat[starts[:, None] + np.arange(width)]


def _slips(batch: Batch, problems: IntArray) -> FloatArray:
    """Returns what rounding can do to a difference of two costs, for each of some problems."""
    slips = np.empty(problems.size)
    for n, p in enumerate(problems.tolist()):
        structure = batch.structures[batch.structure[p]]
        cost = batch.cost[batch.cost_at[p] : batch.cost_at[p + 1]]
        table = batch.table[batch.table_at[p] : batch.table_at[p] + len(structure.graph.table)]
        largest = np.abs(table[np.isfinite(table)]).max(initial=0.0) * len(structure.factors)
        size = float(size_of_costs(cost[None], structure.graph.first)[0]) + float(largest)
        slips[n] = 8 * (4 + structure.n_variables + len(structure.factors)) * EPS * size
    return slips
