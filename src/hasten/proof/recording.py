"""Writing down a proof: its steps while they are being taken, in the words of the problem, and what becomes of them."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph
from hasten.kernels.watching import uncompiled
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof.elimination.reduction import Reduction
from hasten.proof.terms import OVERFLOW, cheapest, rounding
from hasten.proof.trace import Belief, Message, ProofStep, ProofTrace, Step
from hasten.support.arrays import FloatArray
from hasten.support.words import amount, count

MOST_SIZE = 1_000_000  # of a problem
MOST_DRAFTS = 400  # steps that are written down
LARGEST_MESSAGES = 8  # of each step


class EnoughError(Exception):
    """The rest would take too long to watch."""


class Recorder:
    """What was seen of a proof so far, in the words of the problem."""

    def __init__(self, problem: Problem, names: tuple[str, ...], reduction: Reduction, work: int, n_nodes: int) -> None:
        graph = problem.graph
        if len(graph.cell_first) + len(graph.scope) > MOST_SIZE:
            raise ProblemError(
                f"A problem of {problem.n_variables:,} variables is too large to trace: the certifier's kernels run "
                "uncompiled. Trace a smaller one; Certifier().report tells which step proved it."
            )
        self.problem = problem
        self.names = names
        self.variables = list(range(len(problem.graph.order)))  # what the graph at hand calls 0, 1, 2, …
        self.eliminated: tuple[int, ...] = ()
        self.reduction = reduction
        self.tables = {
            factor.scope: factor.kind.name
            for f, factor in reversed(list(enumerate(problem.structure.factors)))
            if graph.table_at[f] >= 0
        }
        self.work = work
        self.expected_nodes = n_nodes  # what the compiled kernels took
        self.drafts: list[ProofStep] = []  # each is completed while it is taken
        self.left_out = 0
        self.best, self.bound = math.inf, -math.inf
        self.total = math.inf  # of the labelling that was scored last
        self.n_sweeps = 0
        self.beliefs: tuple[Belief, ...] = ()
        self.error = 0.0
        self.sweeping: tuple[FloatArray, FloatArray] | None = None  # the costs and tables that sweeps work on

    def trace(self, solution: Solution, watched: bool, last: Step, n_sweeps: int, n_nodes: int) -> ProofTrace:
        """Returns what was written down, and how it ended."""
        steps = list(self.drafts)
        if not watched:
            did = [count(n, name) for n, name in ((n_sweeps, "sweep"), (n_nodes, "node")) if n]
            text = "The compiled kernels did the rest, which would take too long to watch"
            text += f": {' and '.join(did)} in all." if did else "."
            steps.append(ProofStep(last, text, solution.cost, solution.bound, n_nodes=n_nodes))
        text = verdict(solution)
        if self.left_out:
            text = f"({count(self.left_out, 'step')} of branching not written down.) {text}"
        labels = None if solution.values is None else tuple(self.problem.names(solution.values))
        steps.append(ProofStep(last, text, solution.cost, solution.bound, labels, n_nodes=n_nodes))
        eliminated = tuple(self.names[v] for v in self.eliminated)
        return ProofTrace(
            self.names,
            eliminated,
            tuple(steps),
            self.beliefs,
            watched,
            labels,
            solution.cost,
            solution.bound,
            solution.status,
            solution,
        )

    def spend(self, work: int) -> None:
        """Counts work; raises once there was enough."""
        self.work -= work
        if self.work < 0:
            raise EnoughError

    def write(self, step: Step, text: str, messages: tuple[Message, ...] = ()) -> ProofStep:
        """Starts a new step."""
        draft = ProofStep(step, text, self.best, self.bound, None, messages)
        if len(self.drafts) < MOST_DRAFTS:
            self.drafts.append(draft)
        else:
            self.left_out += 1
            self.drafts[-1] = draft
        return draft

    def name(self, v: int) -> str:
        """Returns what people call a variable of the graph at hand."""
        return self.names[self.variables[v]]

    def label(self, v: int, i: int) -> str:
        """Returns the name of a label of a variable of the graph at hand."""
        return self.problem.structure.all_kinds[self.variables[v]].labels[i]

    def factor(self, graph: Graph, f: int) -> str:
        """Returns what people call a factor of the graph at hand; elimination makes tables that have no names."""
        scope = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
        name = self.tables.get(tuple(self.variables[v] for v in scope))
        return "a table" if name is None or self.eliminated else f"table {name}"

    def over(self, graph: Graph, f: int) -> str:
        """Returns what people call the variables of a factor."""
        return ", ".join(self.name(v) for v in graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist())

    def messages(self, graph: Graph, message: FloatArray, factors: Sequence[int]) -> tuple[Message, ...]:
        """Returns the largest messages of some factors."""
        found = []
        for f in factors:
            for a in range(graph.scope_first[f], graph.scope_first[f + 1]):
                v = int(graph.scope[a])
                for i in range(graph.first[v + 1] - graph.first[v]):
                    sent = float(message[graph.message_at[a] + i])
                    if sent:
                        found.append((-abs(sent), f, v, i, sent))
        found.sort()
        return tuple(
            Message(self.factor(graph, f), self.name(v), self.label(v, i), sent)
            for _, f, v, i, sent in found[:LARGEST_MESSAGES]
        )

    def believe(self, graph: Graph, cost: FloatArray, belief: FloatArray) -> None:
        """Keeps what labels cost with all messages."""
        self.beliefs = tuple(
            Belief(self.name(v), self.label(v, i), float(cost[graph.first[v] + i]), float(belief[graph.first[v] + i]))
            for v in range(graph.order.size)
            for i in range(graph.first[v + 1] - graph.first[v])
        )

    def floor(self, graph: Graph, cost: FloatArray, table: FloatArray) -> float:
        """Returns what each label and each table at its cheapest would cost, less rounding."""
        labels = np.zeros(graph.order.size, dtype=np.int64)
        least, size = uncompiled(cheapest, {})(graph, cost, table, labels)
        return float(least - uncompiled(rounding, {})(graph, size)) if size < OVERFLOW else -math.inf


def verdict(solution: Solution) -> str:
    """Returns how it ended, in a sentence that explains."""
    if solution.proved and solution.values is not None:
        return "The best labelling costs no more than the bound, below which nothing can be: it is proved optimal."
    if solution.proved:
        return "No labelling satisfies all constraints: that is proved."
    if solution.values is None:
        return "Neither a labelling nor a proof that there is none was found with this effort."
    return f"Between the best labelling and the bound a gap of {amount(solution.gap)} is left: a solver must say."
