"""An outline: the steps by which a known optimum is shown to be one, for `hasten.certificates` to write down.

What is eliminated is only named; the rules of trees are counted on the way. Of what elimination leaves, kernels log a
proof (`hasten.proof.outline.search`). All numbers are those of the problem: its variables, tables and rows in their
order; what steps add is counted on.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from hasten.certificates.writing import Draft, Step
from hasten.model.batch import ONLY, arrays_of
from hasten.model.compiled import Compiled
from hasten.model.problem import Problem
from hasten.proof.elimination.kernels import Reduction
from hasten.proof.elimination.plan import plan_reduction
from hasten.proof.outline.search import CHILD, END, LEAF, MOVE, OUT, PRICE, SPLIT, log_proof
from hasten.proof.tally.plan import SPEED, Tally, plan_tally
from hasten.support.clock import Clock

FEW_SUMS, MOST_SUMS = 15_000, 2_000_000  # that eliminating everything may take: at once, or if all else takes longer
SUMS_A_SECOND, EVENTS_A_SECOND = 500_000, 20_000  # that are written and checked, at least
LARGE_JOIN = 50_000  # the most sums of one variable
SWEEPS = 1000, 4  # at the root, and at other nodes
DIVE_NODES = 400
NEAR = 0.05  # share of the optimum that the least of all costs may be below it to try without elimination
FEW_EVENTS, MOST_EVENTS = 20_000, 1 << 22  # of a log: untouched memory costs nothing
MOST_KEPT = 1 << 24  # numbers that levels keep


def outline(
    draft: Draft, problem: Problem, enough: float, target: float, max_join: int | None = None
) -> Iterable[Step]:
    """Takes steps, and returns the last, that show a bound of `enough`, as far as floating point can tell.

    Sweeps aim at `target`. What takes too many steps, or too long, shows less. Nothing is eliminated if `max_join` is
    0: only messages, prices and splits are left.
    """
    least, shape = draft.least(), problem.structure.compiled
    if -math.inf < enough <= least:
        return [("sum",)]
    whole = None if max_join == 0 else shape.made(_whole)
    if whole is not None and whole[1] > SUMS_A_SECOND * draft.left():
        whole = None
    near = enough - least <= NEAR * abs(enough) < math.inf  # few labels are left to decide
    plans = [0] * near + [0 if max_join == 0 else None] * (whole is None or whole[1] > FEW_SUMS)
    for each in plans:
        steps = _logged(draft, problem, (enough, target), FEW_EVENTS, each)
        if steps is not None or draft.left() < 0.0:
            return steps or [("sum",)]
    if whole is not None:
        return _eliminated(draft, whole[0])
    most = max(FEW_EVENTS, int(min(MOST_EVENTS, EVENTS_A_SECOND * draft.left())))
    return _logged(draft, problem, (enough, target), most, 0 if max_join == 0 else None, complete=False) or [("sum",)]


def _reduced(compiled: Compiled, max_join: int | None) -> Reduction:
    """Plans what to eliminate of a structure. Its rows stay as they are."""
    return plan_reduction(compiled.graph, max_join, cliques=False)


def _order(reduction: Reduction) -> list[int]:
    """Returns the variables that a plan eliminates, in order."""
    pairs = zip(reduction.plan.variable.tolist(), reduction.plan.partner.tolist(), strict=True)
    return [v for pair in pairs for v in pair if v >= 0]


def _whole(compiled: Compiled) -> tuple[list[int], float] | None:
    """Returns an order to eliminate all of a structure in, and about how many sums that takes, if it is affordable."""
    if compiled.graph.row_low.size:
        tally = plan_tally(compiled)
        found = None if tally is None else (cast(Tally, tally.record).order.tolist(), tally.seconds / SPEED)
    else:
        reductions = (plan_reduction(compiled.graph, most) for most in (None, LARGE_JOIN))
        complete = next((each for each in reductions if each.complete), None)
        found = None if complete is None else (_order(complete), complete.n_sums)
    return found if found is not None and found[1] <= MOST_SUMS else None


def _eliminated(draft: Draft, order: list[int]) -> Iterable[Step]:
    """Eliminates all variables. With rows these form a forest, each before the one above it; counters go along."""
    state, known, loose = draft.state, set(draft.variables), set[int]()  # counters that no variable is left to go with

    def around(v: int) -> set[int]:
        return {u for key in state.near(v) for u in state.functions[key][0]}

    def count(own: set[int], others: set[int]) -> None:
        """Makes one counter, of each row, of some variables and the counters among others."""
        for r in draft.rows:
            counted = sorted((own | (others - known)) & state.rows[r][0].keys())
            if own.intersection(counted) or len(counted) > 1:
                draft.step("count", [r], counted)
                loose.add(len(state.sizes) - 1)
                others = {*others, len(state.sizes) - 1}
                for u in counted:
                    if u not in known:
                        draft.step("eliminate", u)

    for v in (draft.variables[n] for n in order):
        if draft.left() < 0.0:
            break
        count({v}, around(v))
        near = around(v) - {v}
        draft.step("eliminate", v)
        loose |= near - known
        if draft.rows:
            above = near & known
            for u in above:
                count({u}, around(u))
            if not above:
                count(set(), {u for u in loose if ~u in state.functions and not around(u) & known})
    return [*(("eliminate", v) for v in sorted(loose) if ~v in state.functions), ("sum",)]


def _logged(
    draft: Draft, problem: Problem, goal: tuple[float, float], most: int, max_join: int | None, complete: bool = True
) -> list[Step] | None:
    """Eliminates, and returns the steps that kernels log for what that leaves; None if they do not show all."""
    reduction = problem.structure.compiled.made(_reduced, max_join)
    small, effort, left = reduction.graph, (*goal, *SWEEPS, DIVE_NODES), draft.left()
    n_kept = small.first[-1] + small.row_low.size + small.scope.size * max(np.diff(small.first), default=0)
    n_levels = max(1, min(len(small.order) + 1, MOST_KEPT // max(int(n_kept), 1)))
    said, used = np.empty(4 * most), np.zeros(2, dtype=np.int64)
    arrays, clock = (*arrays_of(problem),), Clock(None, 0.5 * left)
    clock.run(
        lambda: log_proof(arrays, ONLY, reduction.addresses, effort, n_levels, (said, used), clock.stop_flag()), 1e9
    )
    if not 0 < used[0] <= most or (complete and not used[1] and clock.shortest > 0.0):
        return None
    for v in _order(reduction):
        draft.step("eliminate", draft.variables[v])
    return _replayed(said[: 4 * used[0]].reshape(-1, 4).tolist(), draft, reduction)


def _replayed(log: list[list[float]], draft: Draft, reduction: Reduction) -> list[Step]:
    """Returns the steps of a log: numbers of what an elimination leaves become those of the file."""
    small, state = reduction.graph, draft.state
    scope, factor, sizes = small.scope.tolist(), small.factor_of.tolist(), np.diff(small.first).tolist()
    joined = iter(sorted(key for key, (own, _, _) in state.functions.items() if key >= 0 and len(own) > 1))
    arity = np.diff(small.scope_first)
    table = [next(joined) if at >= 0 and n > 1 else -1 for at, n in zip(small.table_at, arity, strict=True)]
    variable = [draft.variables[v] for v in reduction.plan.keep.tolist()]
    left = {n: [i for (i,) in sorted(state.functions[~v][1])] for n, v in enumerate(variable)}  # labels
    some = {n: kept for n, kept in left.items() if 0 < len(kept) < max(2, sizes[n])}
    steps: list[Any] = [
        ("split", variable[n], [kept]) for n, kept in some.items()
    ]  # forbidden labels leave the tables, too
    above = list[Any]()  # of each split: the labels before it, its variable, the parts so far
    last = list[float]()  # the last event

    def closed(reason: int) -> list[Step]:
        """Returns the steps that close a part for a reason."""
        rows = draft.rows if reason == LEAF else draft.rows[reason : reason + 1] if reason >= 0 else []
        return [("count", rows, [])] * bool(rows) + [("sum",)]

    for kind, about, label, x in log:
        event, n, i = int(kind), int(about), int(label)
        if event == SPLIT:
            above.append((left, n, []))
            steps.append(("split", variable[n], above[-1][2]))
        elif event == CHILD:
            before, v, parts = above[-1]
            left = before | {v: [n]}
            parts.append([n])
        elif event == END:
            left, v, parts = above.pop()
            if rest := [i for i in left[v] if [i] not in parts]:
                parts.append(rest)
                steps.append(("sum",))
        elif event == OUT:
            left[n] = [j for j in left[n] if j != i]
            if last[:2] == [OUT, n] and x == last[3] < 0:  # more labels go for the same reason
                parts = steps[-2][2]
                parts[:] = [*parts[0], i], left[n]
            else:
                steps += [("split", variable[n], [[i], left[n]]), *closed(int(x))]
        elif event == MOVE:
            step = "move", table[factor[n]], variable[scope[n]]
            if not steps or steps[-1][:3] != step:
                steps.append((*step, [0] * sizes[scope[n]]))
            steps[-1][3][i] = x
        elif event == PRICE:
            steps.append(("price", draft.rows[n], x))
        else:
            steps += closed(n)
        last = [event, n, i, x]
    return steps
