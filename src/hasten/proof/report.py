"""From solutions to the state that kernels start from, and from the state that they leave to solutions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.tolerance import EPS
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.soft import complete, complete_answers
from hasten.model.solution import Solution, Solutions, Source, Status, numbered
from hasten.proof.outcome import (
    BEST,
    BOUND,
    LABELS_BY,
    LOOK,
    N_NODES,
    N_SWEEPS,
    OUTCOME,
    STEP,
    STOPPED,
    Proofs,
    nothing_known,
    prove_met,
)
from hasten.support.arrays import FloatArray, IntArray, sizes_of
from hasten.support.words import count


class Step(StrEnum):
    """The steps of a proof, in the order in which they are tried."""

    LOOK = "by looking"
    REPAIR = "by repairing"
    ELIMINATE = "by eliminating"
    CUT = "by cutting"
    SWEEP = "by sweeping"
    BRANCH = "by branching"


AT_ONCE = 64  # problems
STEPS = tuple(Step)  # a kernel's number for a step is one more than its place


@dataclass(frozen=True, slots=True, eq=False)
class Report:
    """Certified answers, with the last step, the sweeps and the nodes of each. `str` counts the steps in a line."""

    solutions: Solutions
    step: IntArray  # (n,) the last step taken, numbered from 1
    n_sweeps: IntArray  # (n,)
    n_nodes: IntArray  # (n,)

    @property
    def proved_by(self) -> dict[Step, int]:
        """How many problems each step proved."""
        counts = np.bincount(self.step[self.solutions.proved], minlength=len(STEPS) + 1)
        return dict(zip(STEPS, counts[1:].tolist(), strict=True))

    @classmethod
    def of(cls, batch: Batch, proofs: Proofs) -> Report:
        """Reads the state that kernels left."""
        facts = proofs.facts
        return cls(solutions_of(batch, proofs), facts[STEP], facts[N_SWEEPS], facts[N_NODES])

    def __str__(self) -> str:
        proved = [f"{n} {step}" for step, n in self.proved_by.items() if n]
        left = len(self.solutions) - sum(self.proved_by.values())
        return f"{count(len(self.solutions), 'problem')}: " + ", ".join([*proved, f"{left} left open"])


def start_from(batch: Batch, found: Solutions | None) -> Proofs:
    """Returns the state of problems before the first step, with the labels that were found, if any, scored anew."""
    n, proofs = len(batch), nothing_known(len(batch), int(batch.variable_at[-1]))
    if found is None:
        return proofs
    if not isinstance(found, Solutions):
        raise ProblemError(
            f"What was found must be a Solution, or Solutions for a batch, not {type(found).__name__}. Of labels, make "
            "some: Solutions.scored(batch, labels)."
        )
    if len(found) != n:
        raise ProblemError(f"Got {count(len(found), 'answer')} for {count(n, 'problem')}. Give one for each.")
    if len(found.values) != batch.variable_at[-1]:
        raise ProblemError(
            f"Got {len(found.values)} labels for {batch.variable_at[-1]} variables. Give the answers to these problems."
        )
    scored = Solutions.scored(batch, found.values.copy())
    proofs.values[BEST] = np.where(scored.valid, scored.cost, np.inf)
    return proofs._replace(labels=scored.values)


# By outcome (proved, open, infeasible, stopped), and by whether there is an answer.
STATUS_AFTER = (
    (Status.OPEN, Status.PROVED),
    (Status.OPEN, Status.FOUND),
    (Status.INFEASIBLE, Status.INFEASIBLE),
    (Status.NO_TIME, Status.TIME_LIMIT),
)
SOURCES_BY = (Source.SEARCH, *5 * [Source.BOUND], Source.BRANCH)  # by the step that found the labels; 0: given
STATUS, SOURCE = np.array([numbered(*words) for words in STATUS_AFTER]), numbered(*SOURCES_BY)  # the same in numbers


def least_of(numbers: FloatArray, begins: IntArray, ends: IntArray) -> FloatArray:
    """Returns the least number of each range; the ranges are in order."""
    if not len(begins):
        return np.zeros(0)
    edges = np.stack([begins, ends], axis=1).reshape(-1)
    return np.minimum.reduceat(numbers, edges[: -1 if ends[-1] == len(numbers) else None])[::2]


def cost_at_once(problem: Problem, labels: IntArray) -> float:
    """Returns what a labelling costs, summed as kernels do; inf if it may break something. No kernel is waited for."""
    graph, chosen = problem.graph, problem.graph.first[:-1] + labels
    tables = np.flatnonzero(graph.table_at >= 0)
    at = np.bincount(graph.factor_of, graph.stride * labels[graph.scope], len(graph.table_at)).astype(np.int64)
    entries = problem.table[graph.table_at[tables] + at[tables]]
    counts = chosen[graph.row_variable] == graph.row_label
    row = np.arange(len(graph.row_low)).repeat(sizes_of(graph.row_first))
    total = np.bincount(row[counts], graph.row_weight[counts], len(graph.row_low))
    margin = graph.row_margin
    if (total > graph.row_most - margin).any() or (total < graph.row_least + margin).any():
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        return float(np.cumsum(np.concatenate([[0.0], problem.cost[chosen], entries]))[-1])


def answer_at_once(batch: Batch, proofs: Proofs) -> None:
    """Labels each variable at its cheapest where time ran out before much was known, if that breaks nothing.

    That is: no labelling, or no bound. The bound is the sum of all least costs and entries. Its terms are rounded once,
    and so is their exact sum: together that is less than what is subtracted. Of a large batch only the first problems
    are labelled: no time is left.
    """
    unknown = (proofs.values[BEST] == np.inf) | (proofs.values[BOUND] == -np.inf)
    for p in np.flatnonzero((proofs.facts[OUTCOME] == STOPPED) & unknown)[:AT_ONCE].tolist():
        problem = batch[p]
        graph, cost, at = problem.graph, problem.cost, slice(batch.variable_at[p], batch.variable_at[p + 1])
        least, ends = least_of(cost, graph.first[:-1], graph.first[1:]), graph.soft_at + graph.soft_size
        cheapest = np.flatnonzero(cost == least.repeat(sizes_of(graph.first)))
        labels = cheapest[np.searchsorted(cheapest, graph.first[:-1])] - graph.first[:-1]
        with np.errstate(over="ignore", invalid="ignore"):
            entries = graph.soft_count * least_of(problem.table, graph.soft_at, ends)
            terms = np.concatenate([least, entries])
            size = float(np.abs(terms).sum())
        labels = complete(problem.batch, labels)
        found = cost_at_once(problem, labels)
        if math.isfinite(2.0 * size):
            proofs.values[BOUND, p] = max(proofs.values[BOUND, p], math.fsum(terms.tolist()) - 2.0 * EPS * size)
        if math.isfinite(found) and found < proofs.values[BEST, p]:
            proofs.labels[at], proofs.values[BEST, p], proofs.facts[LABELS_BY, p] = labels, found, LOOK


def solutions_of(batch: Batch, proofs: Proofs) -> Solutions:
    """Returns the answers that kernels wrote."""
    labels, (cost, bound, _), facts = proofs
    answered = np.isfinite(cost)
    if batch.soft or not answered.all():
        answer_at_once(batch, proofs)
        if batch.soft:
            prove_met(proofs, complete_answers(batch, labels, cost, bound))
        answered = np.isfinite(cost)
        labels[np.repeat(~answered, batch.n_variables)] = -1
    status, source = STATUS[facts[OUTCOME], answered.view(np.int8)], SOURCE[facts[LABELS_BY]]
    return Solutions(batch, labels, cost, bound, answered, status, source, batch.n_variables.copy())


def solution_of(problem: Problem, proofs: Proofs) -> Solution:
    """Returns the answer that kernels wrote to the only problem there is."""
    if problem.structure.compiled.indicators is not None:
        prove_met(proofs, complete_answers(problem.batch, proofs.labels, *proofs.values[:2]))
    if proofs.facts.item(OUTCOME) == STOPPED:
        answer_at_once(problem.batch, proofs)
    (cost,), (bound,), _ = proofs.values.tolist()
    (outcome,), _, (labels_by,), _, _ = proofs.facts.tolist()
    labels, answered = proofs.labels, cost < math.inf
    status, source = STATUS_AFTER[outcome][answered], SOURCES_BY[labels_by]
    return Solution(problem, status, source, labels if answered else None, cost, bound, answered, len(labels))
