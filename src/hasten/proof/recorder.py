"""Recording a proof: the certifier's own kernels run interpreted, and a recorder writes their steps down."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from hasten.errors import ProblemError
from hasten.kernels.layout import Graph
from hasten.kernels.score import total_cost
from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof import look
from hasten.proof.branch.dive import FINISHED, cheapest_untried, dive
from hasten.proof.buckets import FULL_ELIMINATION, carry_out
from hasten.proof.cut import cut_one
from hasten.proof.cut.persistency import take_sides
from hasten.proof.elimination.kernels import eliminate
from hasten.proof.elimination.plan import reduce
from hasten.proof.outcome import LOOK, OVERFLOW, cheapest, copy_labels, rounding
from hasten.proof.plan import ProofPlan
from hasten.proof.report import STEPS, Report, Step
from hasten.proof.sweep import dual
from hasten.proof.sweep.sweeping import prove
from hasten.proof.tally import count as count_rules
from hasten.support.arrays import FloatArray
from hasten.support.words import amount, count
from hasten.trace.events import Belief, Call, Hook, Message, ProofStep, Recorder, Trace

MOST_SIZE = 1_000_000  # of a problem
MOST_WORK = 4_000_000  # labels, tuples and sums to go through, interpreted, cuts aside: some ten seconds
MOST_STEPS = 400  # that are written down
LARGEST_MESSAGES = 8  # of each step
MEANING = {
    Step.LOOK: "look: every variable at its cheapest label",
    Step.REPAIR: "repair: change few labels, where few tables are broken",
    Step.ELIMINATE: "eliminate: minimise variables out, exactly",
    Step.CUT: "cut: two labels a variable, none joined against the others: a smallest cut of a network",
    Step.SWEEP: "sweep: tables send messages to their variables, which raises the bound",
    Step.BRANCH: "branch: try labels, and leave out those that the bound shows to be too expensive",
}


def traced(
    problem: Problem,
    names: Sequence[str] | None,
    report: Report,
    certify: Callable[[Problem], Solution],
    plan: ProofPlan,
) -> Trace:
    """Returns a log of `certify` on a problem, given its report; a proof that would take too long is not watched."""
    recorder, reduction, full = ProofRecorder(problem, names), reduce(plan.shape, plan.max_join), None
    step, n_sweeps, n_nodes = STEPS[report.step[0] - 1], int(report.n_sweeps[0]), int(report.n_nodes[0])
    if step is Step.ELIMINATE and not reduction.complete:
        full = plan.part(FULL_ELIMINATION)
    work = reduction.n_sums + reduction.size * (n_sweeps + n_nodes) + (0 if full is None else 8 * full.n_sums)
    solution, watched = report.solutions.only(problem), work <= MOST_WORK
    if watched:
        with recorder.hooked():
            solution = certify(problem)
    return recorder.trace(solution, watched, step, n_sweeps, n_nodes)


class ProofRecorder(Recorder):
    """Watches the kernels of a proof: one for each step (`_step`), and a few more."""

    def __init__(self, problem: Problem, names: Sequence[str] | None) -> None:
        graph = problem.graph
        if len(graph.cell_first) + len(graph.scope) > MOST_SIZE:
            raise ProblemError(
                f"A problem of {problem.n_variables:,} variables is too large to trace: the certifier's kernels run "
                "interpreted. Trace a smaller one; Certifier().report tells which step proved it."
            )
        super().__init__(problem, names)
        factors = reversed(list(enumerate(problem.structure.factors)))
        self.tables = {each.scope: f"table {each.kind.name}" for f, each in factors if graph.table_at[f] >= 0}
        self.n_left_out = self.n_sweeps = 0
        self.best, self.bound = math.inf, -math.inf
        self.total = math.inf  # cost of the labelling that was scored last
        self.beliefs: tuple[Belief, ...] = ()
        self.sweeping: tuple[FloatArray, FloatArray] | None = None  # the costs and tables that sweeps work on

    def hooks(self) -> Mapping[Any, Hook]:
        """Returns the functions that are called in place of kernels."""

        sweep = partial(self._step, Step.SWEEP, self._tell_sweep)
        return {
            look.look: partial(self._step, Step.LOOK, tell_look),
            look.update: partial(self._step, Step.REPAIR, self._tell_update),
            eliminate: partial(self._step, Step.ELIMINATE, self._tell_elimination),
            carry_out: partial(self._step, Step.ELIMINATE, self._tell_large),
            count_rules: partial(self._step, Step.ELIMINATE, self._tell_counting),
            cut_one: partial(self._step, Step.CUT, self._tell_cut),
            take_sides: partial(self._step, Step.CUT, tell_roof),
            dive: partial(self._step, Step.BRANCH, self._tell_dive),
            cheapest_untried: partial(self._step, Step.BRANCH, self._tell_split),
            dual.sweep: lambda call: call.run() if self.sweeping is None else sweep(call),  # else a part of branching
            cheapest: self._cheapest,
            look.repair: self._repair,
            prove: self._prove,
            total_cost: self._score,
            copy_labels: self._improve,
        }

    def trace(self, solution: Solution, watched: bool, last: Step, n_sweeps: int, n_nodes: int) -> Trace:
        """Returns the log as a value."""
        name, known = last.name.lower(), (solution.cost, solution.bound)
        if not watched:
            did = [count(n, name) for n, name in ((n_sweeps, "sweep"), (n_nodes, "node")) if n]
            text = "The compiled kernels did this, which would take too long to watch"
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
        return self.ended("Proof", explained, solution, beliefs=self.beliefs, watched=watched)

    def _step(self, step: Step, progress: Progress, call: Call) -> Any:
        """Runs a kernel that makes up a step, and writes the step down, unless there is nothing to tell."""
        if len(self.steps) == MOST_STEPS:
            self.steps.pop()
            self.n_left_out += 1
        written = ProofStep(step.name.lower(), "", self.best, self.bound)
        self.steps.append(written)
        found = call.run()
        written.text = progress(call, found) + written.text
        written.bound = self.bound
        if not written.text:
            self.steps = [each for each in self.steps if each is not written]
        return found

    def _raise_bound(self, bound: float) -> str:
        self.bound = max(self.bound, float(bound))
        return amount(bound)

    def _improve(self, call: Call) -> Any:
        which = "first" if self.best == math.inf else "better"
        self.best = min(self.best, self.total)
        self.steps[-1].cost = self.best
        if "labelling was found" not in self.steps[-1].text:
            self.steps[-1].text += f" A {which} labelling was found."
        return call.run()

    def _score(self, call: Call) -> Any:
        self.total = float(call.run())
        return self.total

    def _cheapest(self, call: Call) -> Any:
        least, size = call.run()
        if self.steps and self.steps[-1].step == "look" and size < OVERFLOW:
            self._raise_bound(least - rounding(call.graph, size))
        return least, size

    def _repair(self, call: Call) -> Any:
        found, bound = call.run()
        if found < math.inf:
            self.steps[-1].text += f" Now nothing is broken; this labelling costs {amount(found)}."
            self._raise_bound(bound)
            self.steps[-1].bound = self.bound
            self._believe(call.graph, call.cost, call.scratch.belief)
        else:
            self.steps.append(ProofStep("repair", "That is too much to repair here.", self.best, self.bound))
        return found, bound

    def _prove(self, call: Call) -> Any:
        graph, cost, table = call.instance
        self.sweeping = cost, table
        found = call.run()
        self._believe(graph, cost, call.dual.belief)
        self.sweeping = None
        return found

    def _believe(self, graph: Graph, cost: FloatArray, belief: FloatArray) -> None:
        """Keeps the costs of labels with all messages."""
        self.beliefs = tuple(
            Belief(self.name(v), label, float(cost[graph.first[v] + i]), float(belief[graph.first[v] + i]))
            for v in range(graph.order.size)
            for i, label in enumerate(self.labels(v))
        )

    def _table(self, graph: Graph, f: int) -> str:
        """Returns the name of a table; a derived one has none."""
        scope = tuple(self.variables[v] for v in scope_of(graph, f))
        return "a table" if self.eliminated else self.tables.get(scope, "a table")

    def _messages(self, graph: Graph, message: FloatArray, factors: Sequence[int]) -> tuple[Message, ...]:
        """Returns the largest messages of some factors."""
        found = []
        for f in factors:
            for a, v in enumerate(scope_of(graph, f), graph.scope_first[f]):
                sent = message[graph.message_at[a] :][: len(self.labels(v))].tolist()
                found += [(-abs(each), f, v, i, each) for i, each in enumerate(sent) if each]
        return tuple(
            Message(self._table(graph, f), self.name(v), self.labels(v)[i], sent)
            for _, f, v, i, sent in sorted(found)[:LARGEST_MESSAGES]
        )

    # -- a sentence or two on each step, once its kernel has run

    def _tell_update(self, call: Call, found: Any) -> str:
        graph, f, scope = call.graph, call.f, scope_of(call.graph, call.f)
        broken = f"{self._table(graph, f).capitalize()} over {', '.join(map(self.name, scope))}"
        if found[0] < 0:
            return f"{broken} has no tuple left."
        moved = [f"{self.name(v)} = {self.labels(v)[call.labels[v]]}" for n, v in enumerate(scope) if found[0] >> n & 1]
        self.steps[-1].messages = self._messages(graph, call.scratch.message, [f])
        return f"{broken}: the cheapest way to keep it changes {', '.join(moved) or 'no label'}."

    def _tell_elimination(self, call: Call, constant: float) -> str:
        kept = call.plan.keep.tolist()
        self.keep_only(kept)
        n_out = count(len(self.eliminated), "variable")
        if not self.eliminated:
            return ""
        if constant == math.inf:
            return "Minimising variables out showed that no labelling is valid."
        if kept:
            return f"{n_out} minimised out exactly; their least costs are part of the others’ now. Left: {len(kept):,}."
        rules = ", as if there were no rules" if self.problem.graph.row_label.size else ""
        return f"All {n_out} were minimised out exactly{rules}. The least cost is {self._raise_bound(constant)}."

    def _tell_large(self, call: Call, found: Any) -> str:
        if len(call.plan.variable) == len(self.problem.graph.order):
            self._raise_bound(found[1])
        text = "All variables that were left were minimised out exactly, by large tables. The least cost of these is"
        return f"{text} {amount(found[1])}."

    def _tell_counting(self, call: Call, least: float) -> str:
        states = count(call.tally.holds.size, "state")
        text = f"All variables were minimised out again, with {states} of the rules told apart."
        if least == math.inf:
            return f"{text} No labelling keeps all rules."
        return f"{text} The least cost with all rules kept is {self._raise_bound(least)}."

    def _tell_cut(self, call: Call, found: Any) -> str:
        _, cost, bound = found
        if bound == math.inf:
            return "Even the smallest cut pays for something forbidden: no labelling is valid."
        if bound == -math.inf:
            return ""
        text = f"Two labels a variable, none against the others: a smallest cut costs {self._raise_bound(bound)}."
        if cost < math.inf:
            self.best = self.steps[-1].cost = min(self.best, float(cost))
            text += " It is a labelling."
        return text

    def _tell_sweep(self, call: Call, possible: bool) -> str:
        self.n_sweeps += 1
        if not possible or self.sweeping is None:
            return f"Sweep {self.n_sweeps} left a variable without a label: no labelling is valid."
        graph = call.graph
        self._raise_bound(dual.safe_bound(graph, *self.sweeping, call.dual))
        tables = [f for f in range(graph.table_at.size) if graph.table_at[f] >= 0]
        self.steps[-1].messages = self._messages(graph, call.dual.message, tables)
        return f"Sweep {self.n_sweeps} of messages."

    def _tell_dive(self, call: Call, found: Any) -> str:
        outcome, _, n_nodes = found
        self.steps[-1].n_nodes = int(n_nodes)
        end = "until nothing cheaper was left." if outcome == FINISHED else "which did not suffice."
        return f"Dive: {count(int(n_nodes), 'node')}, depth first, cheapest label first, {end}"

    def _tell_split(self, call: Call, i: int) -> str:
        return f"Split: {self.name(call.v)} = {self.labels(call.v)[i]}." if i >= 0 else ""


Progress = Callable[[Call, Any], str]  # of a call and its result; no words: the step is not written down


def tell_look(call: Call, found: Any) -> str:
    """Tells of the cheapest labels."""
    last, cost, _, size = found
    if size == math.inf:
        return "The costs are so large that their sums may overflow: nothing can be said by looking."
    if last != LOOK:
        return "Each variable takes its cheapest label. Together they break a few tables."
    valid = "break a constraint" if cost == math.inf else f"are valid, and cost {amount(cost)} with their tables"
    return f"Each variable takes its cheapest label. Together they {valid}."


def tell_roof(call: Call, n_fixed: int) -> str:
    """Tells of labels that were fixed."""
    return f"Two labels a variable, no cut: roof duality fixes {n_fixed:,} of {len(call.graph.order):,} variables."


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
