"""The paper's theory as numbers: Theorem 1's constants (§4) and the dual heuristic (§3.1 and its supplement).

`docs/theory.md` tells what they mean. Nothing here is fast: `separate` enumerates every node of every level,
and `dual_heuristic` solves a linear program. They are for small problems, to check and to teach.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import ProblemError, SolverError
from hasten.kernels.layout import Graph
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import Answers, read_answers
from hasten.solvers import load
from hasten.solvers.formulation import formulate
from hasten.solvers.objective import Layout, objectives
from hasten.support.arrays import FloatArray, IntArray

MAX_NODES = 100_000  # of one level


class Radii(NamedTuple):
    """Theorem 1's R_phi and R_g."""

    phi: float
    g: float


class Separation(NamedTuple):
    """A unit weight vector and its level margin; a margin of 0 if no vector has a positive one."""

    weights: FloatArray
    margin: float

    def mistake_bound(self, radii: Radii, step: float = 1.0) -> float:
        """Returns Theorem 1's bound on the number of updates; inf for data that cannot be separated."""
        if self.margin <= 0:
            return math.inf
        return (radii.phi**2 + 2 * radii.g / step) / self.margin**2


def radii(batch: Batch) -> Radii:
    """Returns radii that hold for every pair of nodes of one level of one problem, without enumerating them.

    Of each factor kind with m factors, two nodes differ by at most m counts down and m counts up, at worst
    each on one tuple: 2 m² in squares. Path costs differ by at most the range of each variable's and each
    table's finite costs. A label of infinite cost makes R_g infinite. What look-ahead adds to path costs is not
    counted.
    """
    batch = batch.resolved()
    far, squares = 0.0, 0
    for structure in batch.structures:
        counts: dict[int, int] = {}
        for factor in structure.factors:
            if factor.kind.learned:
                counts[factor.kind.index] = counts.get(factor.kind.index, 0) + 1
        squares = max(squares, sum(2 * count * count for count in counts.values()))
    for problem in (batch[p] for p in range(len(batch))):
        graph = problem.graph
        blocks = [problem.costs_of(v) for v in range(len(problem.graph.order))]
        if any(np.isinf(block).any() for block in blocks):
            return Radii(math.sqrt(squares), math.inf)
        for f in np.flatnonzero(graph.table_at >= 0):
            size = structure_size(graph, int(f))
            blocks.append(problem.table[graph.table_at[f] : graph.table_at[f] + size])
        # A forbidden tuple adds nothing to a path cost, as if it cost 0.
        far = max(far, sum(float(np.ptp(np.where(np.isfinite(block), block, 0.0))) for block in blocks))
    return Radii(math.sqrt(squares), far)


def structure_size(graph: Graph, f: int) -> int:
    """Returns how many label tuples factor `f` has."""
    scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]]
    return int(np.prod(graph.first[scope + 1] - graph.first[scope]))


def separate(batch: Batch, answers: Answers) -> Separation:
    """Returns the unit vector with the largest level margin for a training set.

    The margin is the least `w·(phi(v) - phi(v'))` over all pairs of a y-good and another node at one level.
    It is computed from the vector that is returned: it is its margin, even where the optimiser was sloppy.
    """
    labels, usable = read_answers(batch, answers)
    seen: set[tuple[int, bytes]] = set()
    rows: list[FloatArray] = []
    for p in usable.tolist():
        y = labels[batch.variable_at[p] : batch.variable_at[p + 1]]
        key = int(batch.structure[p]), y.tobytes()
        if key not in seen:
            seen.add(key)
            rows.extend(level_differences(batch[p], y))
    n_weights = batch.structures[0].schema.n_weights if batch.structures else 0
    if not rows:
        return Separation(np.zeros(n_weights), math.inf)
    differences = np.unique(np.concatenate(rows), axis=0)
    best = Separation(np.zeros(n_weights), 0.0)
    for weights in _separators(differences):
        norm = float(np.linalg.norm(weights))
        margin = float((differences @ weights).min()) / norm if norm > 0 else 0.0
        if margin > max(best.margin, 1e-9):
            best = Separation(weights / norm, margin)
    return best


def level_differences(problem: Problem, y: IntArray) -> list[FloatArray]:
    """Returns phi(v) - phi(v'), level by level, for the y-good node v and every other node v' there."""
    graph, n_weights = problem.graph, problem.structure.schema.n_weights
    nodes = np.zeros((1, len(graph.order)), dtype=np.int64)
    phi, found = np.zeros((1, n_weights)), []
    for t, k in enumerate(graph.order.tolist()):
        n_labels = int(graph.first[k + 1] - graph.first[k])
        if len(nodes) * n_labels > MAX_NODES:
            raise ProblemError(
                f"Level {t + 1} has {len(nodes) * n_labels:,} nodes; at most {MAX_NODES:,} are enumerated. "
                "Use smaller problems."
            )
        nodes, phi = np.repeat(nodes, n_labels, axis=0), np.repeat(phi, n_labels, axis=0)
        nodes[:, k] = np.tile(np.arange(n_labels), len(nodes) // n_labels)
        for f in graph.done[graph.done_first[t] : graph.done_first[t + 1]].tolist():
            if graph.weight_at[f] >= 0:
                slots = slice(graph.scope_first[f], graph.scope_first[f + 1])
                at = graph.weight_at[f] + nodes[:, graph.scope[slots]] @ graph.stride[slots]
                phi[np.arange(len(nodes)), at] += 1
        assigned = graph.order[: t + 1]
        good = (nodes[:, assigned] == y[assigned]).all(axis=1)
        found.append(phi[good] - phi[~good])
    return found


def _separators(differences: FloatArray) -> list[FloatArray]:
    """Returns the vector of largest margin in the maximum norm and, if it separates, in the Euclidean."""
    n_rows, n = differences.shape
    lifted = np.hstack([differences, -np.ones((n_rows, 1))])  # differences @ w - margin >= 0
    first = _minimise(
        np.append(np.zeros(n), -1.0),
        np.append(-np.ones(n), 0.0),
        np.append(np.ones(n), np.inf) if n else np.array([0.0]),
        lifted,
        np.zeros(n_rows),
        np.full(n_rows, np.inf),
    )[0]
    if first[-1] <= 1e-9:
        return []
    box = np.full(n, np.inf)
    second = _minimise(np.zeros(n), -box, box, differences, np.ones(n_rows), np.full(n_rows, np.inf), quadratic=True)[0]
    return [first[:-1], second]


class DualHeuristic(NamedTuple):
    """The paper's optimal heuristic h* for one problem, from the multipliers of its linear program."""

    h: FloatArray  # (labels,) what each label adds to h*
    priority: FloatArray  # (labels,) c + h*: what greedy search ranks by; inf for a label that is forbidden
    bound: float  # the linear program's optimum: no labelling costs less
    first: IntArray  # where each variable's labels start

    @property
    def labels(self) -> IntArray:
        """The labels that greedy search with p = g + h* chooses; a tie goes to the earlier label."""
        return np.array([int(np.argmin(part)) for part in self._parts()], dtype=np.int64)

    def ties(self) -> list[IntArray]:
        """Returns, variable by variable, the labels that are as good as the best."""
        scale = 1e-7 * max(1.0, float(np.abs(self.priority[np.isfinite(self.priority)]).max(initial=0.0)))
        return [np.flatnonzero(part <= part.min() + scale) for part in self._parts()]

    def _parts(self) -> list[FloatArray]:
        return np.split(self.priority, self.first[1:-1]) if len(self.first) > 1 else []


def dual_heuristic(problem: Problem) -> DualHeuristic | None:
    """Returns h* for a problem; None if even its relaxation is infeasible.

    The rows are those of the strong integer program; its columns for label tuples, which soft tables need,
    are relaxed like all else. If the relaxation is as good as the optimum (no duality gap), every optimum
    consists of labels in `ties`: greedy search finds it where they are unique.

    Which optimal multipliers are taken matters. At a vertex, where the simplex method ends, they stand where
    two labels swap places: each constraint that costs something makes a tie. In the middle of all optimal
    ones, where an interior-point method ends, only those labels tie that some optimum of the relaxation has
    (strict complementarity). So the interior ones are taken, and an optimum that is unique has no ties.
    """
    form = formulate(problem.graph)
    objective = next(objectives(Layout(problem.graph), problem, math.inf), None)
    if objective is None:
        return None
    cost = np.concatenate([objective.label, objective.table[form.entry]])
    allowed = np.concatenate([objective.label_allowed, objective.table_allowed[form.entry]]) & ~form.dead
    matrix = np.zeros((form.n_rows, form.n_columns))
    np.add.at(matrix, (np.repeat(np.arange(form.n_rows), np.diff(form.row_first)), form.column), form.weight)
    zeros = np.zeros(form.n_columns)
    upper = np.where(allowed, np.inf, 0.0)  # that labels sum to one keeps them below it
    found = _minimise(cost, zeros, upper, matrix, form.low, form.high, interior=True)
    if found[1] is None:
        return None
    structural = found[1].copy()
    structural[: len(problem.graph.order)] = 0.0  # one label each: the domain, not a constraint
    h = -(structural @ matrix)[: form.n_labels]
    priority = np.where(allowed[: form.n_labels], objective.label + h, np.inf)
    return DualHeuristic(h, priority, objective.original(float(cost @ found[0])), problem.graph.first)


def _minimise(
    cost: FloatArray,
    lower: FloatArray,
    upper: FloatArray,
    matrix: FloatArray,
    low: FloatArray,
    high: FloatArray,
    quadratic: bool = False,
    interior: bool = False,
) -> tuple[FloatArray, FloatArray | None]:
    """Minimises `cost @ x` (and half of `x @ x`); returns x and the rows' multipliers, None if infeasible."""
    load("highs")
    import highspy

    n_rows, n = matrix.shape
    if n == 0:
        return np.zeros(0), np.zeros(n_rows)
    highs: Any = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.setOptionValue("threads", 1)
    if interior:
        highs.setOptionValue("solver", "ipm")
        highs.setOptionValue("run_crossover", "off")
        highs.setOptionValue("presolve", "off")  # it would bring back a vertex
        highs.setOptionValue("ipm_optimality_tolerance", 1e-10)
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = n, n_rows
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, lower, upper
    lp.row_lower_, lp.row_upper_ = low, high
    rows, columns = np.nonzero(matrix)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=n_rows))]).astype(np.int32)
    lp.a_matrix_.index_ = columns.astype(np.int32)
    lp.a_matrix_.value_ = matrix[rows, columns]
    highs.passModel(lp)
    if quadratic:
        hessian = highspy.HighsHessian()
        hessian.dim_ = n
        hessian.format_ = highspy.HessianFormat.kTriangular
        hessian.start_ = np.arange(n + 1, dtype=np.int32)
        hessian.index_ = np.arange(n, dtype=np.int32)
        hessian.value_ = np.ones(n)
        highs.passHessian(hessian)
    highs.run()
    status = highs.getModelStatus()
    if interior and status != highspy.HighsModelStatus.kOptimal:  # it cannot tell infeasible from difficult
        highs.setOptionValue("solver", "simplex")
        highs.clearSolver()
        highs.run()
        status = highs.getModelStatus()
    if status in (highspy.HighsModelStatus.kInfeasible, highspy.HighsModelStatus.kUnboundedOrInfeasible):
        return np.zeros(n), None
    if status != highspy.HighsModelStatus.kOptimal:
        raise SolverError(f"HiGHS stopped early: {highs.modelStatusToString(status)}.")
    solution = highs.getSolution()
    return np.array(solution.col_value), np.array(solution.row_dual)
