"""Recording a proof: the certifier's own kernels run interpreted, and a recorder writes their steps down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph
from hasten.kernels.score import total_cost
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof import look, repair
from hasten.proof.branch.dive import FINISHED, dive
from hasten.proof.branch.split import cheapest_untried
from hasten.proof.buckets.kernels import Buckets, carry_out
from hasten.proof.cut.kernels import cut_one
from hasten.proof.cut.persistency import take_sides
from hasten.proof.elimination.kernels import Plan, eliminate
from hasten.proof.elimination.reduction import Reduction
from hasten.proof.outcome import LOOK, copy_labels
from hasten.proof.report import Step
from hasten.proof.sweep import dual
from hasten.proof.sweep.sweeping import prove
from hasten.proof.tally.kernels import count as count_rules
from hasten.proof.terms import OVERFLOW, cheapest, rounding
from hasten.support.arrays import FloatArray
from hasten.support.words import amount, count
from hasten.trace.events import Belief, Message, ProofStep, Trace
from hasten.trace.recorder import Call, Recorder, Watcher

MOST_SIZE = 1_000_000  # of a problem
MOST_WORK = 4_000_000  # labels, tuples and sums to go through, interpreted: some ten seconds
MOST_STEPS = 400  # that are written down
LARGEST_MESSAGES = 8  # of each step
MEANING = {
    Step.LOOK: "look: every variable at its cheapest label",
    Step.REPAIR: "repair: change few labels, where few tables are broken",
    Step.ELIMINATE: "eliminate: minimise variables out, exactly",
    Step.CUT: "cut: two labels a variable, none joined against the others: a smallest cut of a network",
    Step.SWEEP: "sweep: tables send messages to their variables, which raises the bound",
    Step.BRANCH: "branch: try labels, and leave out what the bound shows to be too expensive",
}


class EnoughError(Exception):
    """The rest would take too long to watch."""


class ProofRecorder(Recorder):
    """Watches the kernels of a proof, those that `SEEN` lists and a few more."""

    def __init__(
        self, problem: Problem, names: Sequence[str] | None, reduction: Reduction, work: int, n_nodes: int
    ) -> None:
        graph = problem.graph
        if len(graph.cell_first) + len(graph.scope) > MOST_SIZE:
            raise ProblemError(
                f"A problem of {problem.n_variables:,} variables is too large to trace: the certifier's kernels run "
                "interpreted. Trace a smaller one; Certifier().report tells which step proved it."
            )
        super().__init__(problem, names)
        self.reduction, self.work = reduction, work
        self.expected_nodes = n_nodes  # that the compiled kernels took
        factors = reversed(list(enumerate(problem.structure.factors)))
        self.tables = {each.scope: f"table {each.kind.name}" for f, each in factors if graph.table_at[f] >= 0}
        self.steps: list[ProofStep] = []
        self.n_left_out = self.n_sweeps = 0
        self.best, self.bound = math.inf, -math.inf
        self.total = math.inf  # cost of the labelling that was scored last
        self.beliefs: tuple[Belief, ...] = ()
        self.sweeping: tuple[FloatArray, FloatArray] | None = None  # the costs and tables that sweeps work on

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns the method that is called in place of each kernel."""
        others = {
            cheapest: self.cheapest,
            repair.repair: self.repair,
            prove: self.prove,
            dual.sweep: self.sweep,
            total_cost: self.score,
            copy_labels: self.improve,
        }
        return {kernel: partial(self.see, seen) for kernel, seen in SEEN.items()} | others

    def trace(self, solution: Solution, watched: bool, last: Step, n_sweeps: int, n_nodes: int) -> Trace[ProofStep]:
        """Returns the log as a value."""
        name, known = last.name.lower(), (solution.cost, solution.bound)
        if not watched:
            did = [count(n, name) for n, name in ((n_sweeps, "sweep"), (n_nodes, "node")) if n]
            text = "The compiled kernels did the rest, which would take too long to watch"
            text += f": {' and '.join(did)} in all." if did else "."
            self.steps.append(ProofStep(name, text, *known, n_nodes=n_nodes))
        left_out = f"({count(self.n_left_out, 'step')} of branching not written down.) " if self.n_left_out else ""
        self.steps.append(ProofStep(name, f"{left_out}{verdict(solution)}", *known, n_nodes=n_nodes))
        taken = [MEANING[step] for step in Step if any(each.step == step.name.lower() for each in self.steps)]
        explained = [
            "A labelling is optimal if nothing can cost less. So a proof works from both sides: it looks for cheap "
            "labellings, and it raises a bound below which no valid labelling can be. Where the two meet, the "
            "labelling is proved, and no solver is needed.",
            f"The steps taken here, each only because the one before left something open: {'; '.join(taken)}.",
        ]
        return self.ended("Proof", explained, self.steps, solution, beliefs=self.beliefs, watched=watched)

    def see(self, seen: Seen, call: Call) -> Any:
        """Runs a kernel that makes up a step, and writes the step down."""
        self.work -= seen.work(self, call)
        if self.work < 0:
            raise EnoughError
        if len(self.steps) == MOST_STEPS:
            self.steps.pop()
            self.n_left_out += 1
        written = ProofStep(seen.step.name.lower(), "", self.best, self.bound)
        self.steps.append(written)
        found = call.run()
        written.text = seen.tell(self, call, found) + written.text
        written.bound = self.bound
        if not written.text:
            self.steps = [each for each in self.steps if each is not written]
        return found

    def raise_bound(self, bound: float) -> str:
        """Takes note of a bound; returns it in words."""
        self.bound = max(self.bound, float(bound))
        return amount(bound)

    def improve(self, call: Call) -> Any:
        """The labelling that was scored last is better."""
        which = "first" if self.best == math.inf else "better"
        self.best = min(self.best, self.total)
        self.steps[-1].cost = self.best
        if "labelling was found" not in self.steps[-1].text:
            self.steps[-1].text += f" A {which} labelling was found."
        return call.run()

    def score(self, call: Call) -> Any:
        """A labelling is scored."""
        self.total = float(call.run())
        return self.total

    def cheapest(self, call: Call) -> Any:
        """Each variable gets its cheapest label."""
        least, size = call.run()
        if self.steps and self.steps[-1].step == "look" and size < OVERFLOW:
            self.raise_bound(least - rounding(call.graph, size))
        return least, size

    def repair(self, call: Call) -> Any:
        """The constraints that are broken are repaired, one after the other."""
        found, bound = call.run()
        if found < math.inf:
            self.steps[-1].text += f" Now nothing is broken; this labelling costs {amount(found)}."
            self.raise_bound(bound)
            self.steps[-1].bound = self.bound
            self._believe(call.graph, call.cost, call.scratch.belief)
        else:
            self.steps.append(ProofStep("repair", "That is too much to repair here.", self.best, self.bound))
        return found, bound

    def prove(self, call: Call) -> Any:
        """Sweeps begin, or go on."""
        graph, cost, table = call.instance
        self.sweeping = cost, table
        found = call.run()
        self._believe(graph, cost, call.dual.belief)
        self.sweeping = None
        return found

    def sweep(self, call: Call) -> Any:
        """All messages are updated once; while branching, that is no step of its own."""
        return call.run() if self.sweeping is None else self.see(SWEEP, call)

    def table(self, graph: Graph, f: int) -> str:
        """Returns the name of a table; those that elimination makes have none."""
        scope = tuple(self.variables[v] for v in scope_of(graph, f))
        return "a table" if self.eliminated else self.tables.get(scope, "a table")

    def messages(self, graph: Graph, message: FloatArray, factors: Sequence[int]) -> tuple[Message, ...]:
        """Returns the largest messages of some factors."""
        found = []
        for f in factors:
            for a, v in enumerate(scope_of(graph, f), graph.scope_first[f]):
                sent = message[graph.message_at[a] :][: len(self.labels(v))].tolist()
                found += [(-abs(each), f, v, i, each) for i, each in enumerate(sent) if each]
        return tuple(
            Message(self.table(graph, f), self.name(v), self.labels(v)[i], sent)
            for _, f, v, i, sent in sorted(found)[:LARGEST_MESSAGES]
        )

    def _believe(self, graph: Graph, cost: FloatArray, belief: FloatArray) -> None:
        """Keeps the costs of labels with all messages."""
        self.beliefs = tuple(
            Belief(self.name(v), label, float(cost[graph.first[v] + i]), float(belief[graph.first[v] + i]))
            for v in range(graph.order.size)
            for i, label in enumerate(self.labels(v))
        )


# -- the kernels that make up steps: each told in a sentence, or two, once it has run -----------------------------


def tell_look(log: ProofRecorder, call: Call, found: Any) -> str:
    """Tells of the cheapest labels."""
    last, cost, _, size = found
    if size == math.inf:
        return "The costs are so large that their sums may overflow: nothing can be said by looking."
    if last != LOOK:
        return "Each variable takes its cheapest label. Together they break a few tables."
    valid = "break a constraint" if cost == math.inf else f"are valid, and cost {amount(cost)} with their tables"
    return f"Each variable takes its cheapest label. Together they {valid}."


def tell_update(log: ProofRecorder, call: Call, found: Any) -> str:
    """Tells of a broken table that moves its variables to its cheapest tuple."""
    graph, f, scope = call.graph, call.f, scope_of(call.graph, call.f)
    over = ", ".join(map(log.name, scope))
    if found[0] < 0:
        return f"{log.table(graph, f).capitalize()} over {over} has no tuple left."
    moved = [f"{log.name(v)} = {log.labels(v)[call.labels[v]]}" for n, v in enumerate(scope) if found[0] >> n & 1]
    log.steps[-1].messages = log.messages(graph, call.scratch.message, [f])
    how = f"the cheapest way to keep it changes {', '.join(moved) or 'no label'}."
    return f"{log.table(graph, f).capitalize()} over {over}: {how}"


def tell_elimination(log: ProofRecorder, call: Call, constant: float) -> str:
    """Tells of variables that were minimised out."""
    kept, graph = call.plan.keep.tolist(), log.problem.graph
    log.keep_only(kept)
    n_out = count(len(log.eliminated), "variable")
    if not log.eliminated:
        return ""
    if constant == math.inf:
        return "Minimising variables out showed that no labelling is valid."
    if kept:
        return f"{n_out} minimised out exactly; their least costs are part of the others’ now. Left: {len(kept):,}."
    rules = ", as if there were no rules" if graph.row_label.size else ""
    return f"All {n_out} were minimised out exactly{rules}. The least cost is {log.raise_bound(constant)}."


def tell_large_elimination(log: ProofRecorder, call: Call, found: Any) -> str:
    """Tells of variables that were minimised out by large tables."""
    if len(call.plan.variable) == len(log.problem.graph.order):
        log.raise_bound(found[1])
    text = "All variables that were left were minimised out exactly, by large tables. The least cost of these is"
    return f"{text} {amount(found[1])}."


def tell_counting(log: ProofRecorder, call: Call, least: float) -> str:
    """Tells of variables that were minimised out with the sums of rules carried along."""
    text = (
        f"All variables were minimised out again, with {count(call.tally.holds.size, 'state')} of the rules told apart."
    )
    if least == math.inf:
        return f"{text} No labelling keeps all rules."
    return f"{text} The least cost with all rules kept is {log.raise_bound(least)}."


def tell_cut(log: ProofRecorder, call: Call, found: Any) -> str:
    """Tells of a smallest cut."""
    _, cost, bound = found
    if bound == math.inf:
        return "Even the smallest cut pays for something forbidden: no labelling is valid."
    if bound == -math.inf:
        return ""
    text = f"Two labels a variable, none against the others: a smallest cut costs {log.raise_bound(bound)}."
    if cost < math.inf:
        log.best = log.steps[-1].cost = min(log.best, float(cost))
        text += " It is a labelling."
    return text


def tell_roof(log: ProofRecorder, call: Call, n_fixed: int) -> str:
    """Tells of labels that were fixed."""
    n = len(call.graph.order)
    return f"Two labels a variable, no cut: roof duality fixes {n_fixed:,} of {n:,} variables."


def tell_sweep(log: ProofRecorder, call: Call, possible: bool) -> str:
    """Tells of messages that were all updated once."""
    log.n_sweeps += 1
    if not possible or log.sweeping is None:
        return f"Sweep {log.n_sweeps} left a variable without a label: no labelling is valid."
    graph = call.graph
    log.raise_bound(dual.safe_bound(graph, *log.sweeping, call.dual))
    tables = [f for f in range(graph.table_at.size) if graph.table_at[f] >= 0]
    log.steps[-1].messages = log.messages(graph, call.dual.message, tables)
    return f"Sweep {log.n_sweeps} of messages."


def tell_dive(log: ProofRecorder, call: Call, found: Any) -> str:
    """Tells of a search of all labellings, but for parts that cannot be better."""
    outcome, _, n_nodes = found
    log.work -= int(n_nodes) * log.reduction.size
    log.steps[-1].n_nodes = int(n_nodes)
    end = "until nothing cheaper was left." if outcome == FINISHED else "which did not suffice."
    return f"Dive: {count(int(n_nodes), 'node')}, depth first, cheapest label first, {end}"


def work_of_dive(log: ProofRecorder, call: Call) -> int:
    """Returns how much work a dive takes, where that is too much."""
    work = min(int(call.max_nodes), log.expected_nodes) * log.reduction.size
    return work if work > log.work else 0


def tell_split(log: ProofRecorder, call: Call, i: int) -> str:
    """Tells of a part of a split."""
    return f"Split: {log.name(call.v)} = {log.labels(call.v)[i]}." if i >= 0 else ""


class Seen(NamedTuple):
    """How a kernel is told of, and how much work it takes."""

    step: Step
    tell: Callable[[ProofRecorder, Call, Any], str]  # no words: it is not written down
    work: Callable[[ProofRecorder, Call], int] = lambda log, call: 0


SWEEP = Seen(Step.SWEEP, tell_sweep, lambda log, call: log.reduction.size)
SEEN = {
    look.look: Seen(Step.LOOK, tell_look),
    repair.update: Seen(Step.REPAIR, tell_update),
    eliminate: Seen(Step.ELIMINATE, tell_elimination, lambda log, call: n_sums(call.plan)),
    carry_out: Seen(Step.ELIMINATE, tell_large_elimination, lambda log, call: 8 * n_large_sums(call.plan)),
    count_rules: Seen(Step.ELIMINATE, tell_counting, lambda log, call: 8 * int(call.tally.size[0])),
    cut_one: Seen(Step.CUT, tell_cut, lambda log, call: 20 * len(call.network.head)),
    take_sides: Seen(Step.CUT, tell_roof, lambda log, call: 20 * len(call.graph.scope)),
    dive: Seen(Step.BRANCH, tell_dive, work_of_dive),
    cheapest_untried: Seen(Step.BRANCH, tell_split, lambda log, call: 3 * log.reduction.size),
}


def n_sums(plan: Plan) -> int:
    """Returns how many sums an elimination takes."""
    return int(plan.sum_first[plan.entry_at[plan.form] + np.diff(plan.out_first)].sum())


def n_large_sums(plan: Buckets) -> int:
    """Returns how many sums an elimination by large tables takes."""
    return int((np.diff(plan.out_first) * plan.n_labels).sum())


def verdict(solution: Solution) -> str:
    """Returns how it ended, in a sentence that explains."""
    if solution.proved and solution.values is not None:
        return "The best labelling costs no more than the bound, below which nothing can be: it is proved optimal."
    if solution.proved:
        return "No labelling satisfies all constraints: that is proved."
    if solution.values is None:
        return "Neither a labelling nor a proof that there is none was found with this effort."
    return f"Between the best labelling and the bound a gap of {amount(solution.gap)} is left: a solver must say."


def scope_of(graph: Graph, f: int) -> list[int]:
    """Returns the variables of a factor."""
    found: list[int] = graph.scope[graph.scope_first[f] : graph.scope_first[f + 1]].tolist()
    return found
