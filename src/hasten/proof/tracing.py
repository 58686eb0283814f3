"""Watching a proof: the certifier's own kernels, uncompiled, and a recorder that writes down what they do."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from hasten.kernels.layout import Graph, Instance
from hasten.kernels.score import total_cost
from hasten.kernels.watching import Watcher, uncompiled
from hasten.proof import look as k
from hasten.proof import repair as m
from hasten.proof.branch import certify as c
from hasten.proof.branch.dive import FINISHED, dive
from hasten.proof.branch.split import cheapest_untried
from hasten.proof.buckets.kernels import Buckets, carry_out
from hasten.proof.cut.kernels import cut_one
from hasten.proof.cut.network import Network
from hasten.proof.cut.persistency import take_sides
from hasten.proof.elimination.kernels import Plan, eliminate
from hasten.proof.outcome import INFEASIBLE, copy_labels
from hasten.proof.recording import EnoughError, Recorder
from hasten.proof.sweep import dual as d
from hasten.proof.sweep.sweeping import prove
from hasten.proof.tally.kernels import Tally
from hasten.proof.tally.kernels import count as tally_rules
from hasten.proof.trace import Step
from hasten.support.arrays import FloatArray, IntArray
from hasten.support.words import amount, count

MOST_WORK = 4_000_000  # labels, tuples and sums to go through, uncompiled: some ten seconds
CUT_WORK = 20  # that a flow takes for each arc, roughly


class ProofRecorder(Recorder):
    """Watches the kernels of a proof, and writes down what they do."""

    def watchers(self) -> Mapping[Any, Watcher]:
        """Returns who watches which kernel."""
        return {
            k.look: self.look,
            m.repair: self.mend,
            m.update: self.update,
            eliminate: self.eliminate,
            carry_out: self.eliminate_large,
            tally_rules: self.count,
            c.put_back: self.put_back,
            cut_one: self.cut,
            take_sides: self.fix,
            prove: self.prove,
            d.sweep: self.sweep,
            copy_labels: self.copy_labels,
            total_cost: self.total_cost,
            dive: self.dive,
            cheapest_untried: self.split,
        }

    # -- looking and mending ------------------------------------------------------------------------------------

    def look(self, call: Watcher, graph: Graph, cost: FloatArray, table: FloatArray, *rest: Any) -> Any:
        """Each variable gets its cheapest label; what that breaks may be mended."""
        self.bound = self.floor(graph, cost, table)
        self.write(Step.LOOK, "Each variable takes its cheapest label.")
        step, found, bound, size = call(graph, cost, table, *rest)
        draft = self.drafts[-1]
        if draft.step is Step.LOOK:
            if size == math.inf:
                draft.text = "The costs are so large that their sums may overflow: nothing can be said by looking."
            elif found < math.inf:
                draft.text += f" Together they are valid, and cost {amount(found)} with their tables."
            else:
                draft.text += " Together they break a constraint."
        return step, found, bound, size

    def mend(self, call: Watcher, graph: Graph, cost: FloatArray, table: FloatArray, *rest: Any) -> Any:
        """The constraints that are broken are mended, one after the other."""
        labels = rest[-1]
        at = [
            graph.table_at[f] + _entry(graph, f, labels) for f in range(graph.table_at.size) if graph.table_at[f] >= 0
        ]
        n = sum(table[x] == math.inf for x in at)
        self.drafts[-1].text += f" Together they break {count(n, 'table')}."
        self.error = 0.0
        found, bound = call(graph, cost, table, *rest)
        if found == math.inf:
            self.write(Step.REPAIR, "That is too much to mend here: the next step starts anew.")
        else:
            self.bound = max(self.bound, float(bound))
            scratch = rest[2]
            self.believe(graph, cost, scratch.belief)
            self.drafts[-1].bound = self.bound
            self.drafts[-1].text += f" Now nothing is broken; this labelling costs {amount(found)}."
        return found, bound

    def update(self, call: Watcher, graph: Graph, table: FloatArray, f: int, scratch: Any, labels: IntArray) -> Any:
        """One broken table moves its variables to its cheapest tuple."""
        before = labels.copy()
        changed, size = call(graph, table, f, scratch, labels)
        if changed < 0:
            return changed, size
        slots = range(graph.scope_first[f], graph.scope_first[f + 1])
        self.error += size * (2 * len(slots) + 4)
        self.bound = max(self.bound, float(uncompiled(m.lower_bound, {})(graph, scratch, self.error)))
        moved = [int(graph.scope[a]) for a in slots if labels[graph.scope[a]] != before[graph.scope[a]]]
        now = ", ".join(f"{self.name(v)} = {self.label(v, int(labels[v]))}" for v in moved)
        text = f"{self.factor(graph, f).capitalize()} over {self.over(graph, f)}: the cheapest way to keep it "
        text += f"changes {now}." if moved else "changes no label."
        self.write(Step.REPAIR, text, self.messages(graph, scratch.message, [f]))
        return changed, size

    # -- eliminating --------------------------------------------------------------------------------------------

    def eliminate(self, call: Watcher, plan: Plan, *rest: Any) -> Any:
        """Variables are minimised out."""
        if n_sums(plan) > self.work:
            raise EnoughError
        constant = call(plan, *rest)
        kept = plan.keep.tolist()
        out = len(self.problem.graph.order) - len(kept)
        self.eliminated = tuple(v for v in range(len(self.problem.graph.order)) if v not in set(kept))
        self.variables = kept
        if not out:
            return constant
        if constant == math.inf:
            self.write(Step.ELIMINATE, "Minimising variables out showed that no labelling is valid.")
        elif not kept:
            self.bound = max(self.bound, float(constant))
            rules = ", as if there were no rules" if self.problem.graph.row_label.size else ""
            text = f"All {count(out, 'variable')} were minimised out exactly{rules}, one after the other. What is left"
            self.write(Step.ELIMINATE, f"{text} is the least cost, {amount(constant)}.")
        else:
            text = (
                f"{count(out, 'variable')} minimised out exactly; their least costs are part of the others’ now. Left: "
            )
            self.write(Step.ELIMINATE, f"{text}{count(len(kept), 'variable')}.")
        return constant

    def eliminate_large(self, call: Watcher, thin: Buckets, *rest: Any) -> Any:
        """All variables are minimised out, by tables as large as that takes."""
        if int((np.diff(thin.out_first) * thin.n_labels).sum()) > self.work // 8:  # each sum goes through some tables
            raise EnoughError
        finished, constant = call(thin, *rest)
        if len(thin.variable) == len(self.problem.graph.order):
            self.bound = max(self.bound, float(constant))
        text = "All variables that were left were minimised out exactly, by large tables. The least cost of these is "
        self.write(Step.ELIMINATE, f"{text}{amount(constant)}.")
        return finished, constant

    def count(self, call: Watcher, tally: Tally, *rest: Any) -> Any:
        """Variables are minimised out, and what rules count is carried along."""
        if tally.size[0] > self.work // 8:  # each number is looked at for some labels
            raise EnoughError
        least = call(tally, *rest)
        n, n_states = count(tally.order.size, "variable"), count(tally.holds.size, "state")
        text = f"All {n} were minimised out again, with what the rules count told apart: {n_states}. "
        if least == math.inf:
            self.write(Step.ELIMINATE, f"{text}No labelling keeps all rules.")
        else:
            self.bound = max(self.bound, float(least))
            self.write(Step.ELIMINATE, f"{text}The least cost with all rules kept is {amount(least)}.")
        return least

    def put_back(self, call: Watcher, *args: Any) -> Any:
        """The eliminated variables get their labels."""
        given = float(args[-1])
        self.variables = list(range(len(self.problem.graph.order)))
        found = call(*args)
        if found < given and self.eliminated:
            text = f"{count(len(self.eliminated), 'eliminated variable')} put back, each with its best label."
            self.write(self.drafts[-1].step, text)
        return found

    # -- cutting ------------------------------------------------------------------------------------------------

    def cut(self, call: Watcher, graph: Graph, network: Network, *rest: Any) -> Any:
        """The cheapest labelling is looked for as a smallest cut."""
        self.spend(CUT_WORK * len(network.head))
        outcome, found, bound = call(graph, network, *rest)
        if outcome == INFEASIBLE:
            self.write(Step.CUT, "Even the smallest cut pays for something forbidden: no labelling is valid.")
        elif bound > -math.inf:
            self.bound, self.total = max(self.bound, float(bound)), float(found)
            rules = " and keeps the rules that were left out" if network.ruled[0] else ""
            text = f"Two labels a variable, none against the others: a smallest cut costs {amount(bound)}."
            self.write(Step.CUT, text if found == math.inf else f"{text} It is a labelling{rules}.")
            if found < math.inf:
                self.copy_labels(_no_call, rest[1].labels, rest[1].labels)
        return outcome, found, bound

    def fix(self, call: Watcher, graph: Graph, *rest: Any) -> Any:
        """Roof duality fixes labels."""
        self.spend(CUT_WORK * len(graph.scope))
        n_fixed, n = call(graph, *rest), len(graph.order)
        text = f"Two labels a variable, no cut: roof duality fixes {n_fixed:,} of {n:,} variables."
        self.write(Step.CUT, text)
        return n_fixed

    # -- sweeping -----------------------------------------------------------------------------------------------

    def prove(self, call: Watcher, instance: Instance, max_sweeps: int, dual: d.Dual, *rest: Any) -> Any:
        """Sweeps begin, or go on."""
        self.sweeping = instance.cost, instance.table
        found = call(instance, max_sweeps, dual, *rest)
        self.believe(instance.graph, instance.cost, dual.belief)
        self.sweeping = None
        return found

    def sweep(self, call: Watcher, graph: Graph, table: FloatArray, forward: bool, dual: d.Dual) -> Any:
        """All messages are updated once."""
        possible = call(graph, table, forward, dual)
        if self.sweeping is None:  # while branching
            return possible
        self.spend(self.reduction.size)
        self.n_sweeps += 1
        if not possible:
            self.write(Step.SWEEP, f"Sweep {self.n_sweeps} left a variable without a label: no labelling is valid.")
            return possible
        self.bound = max(self.bound, float(uncompiled(d.safe_bound, {})(graph, *self.sweeping, dual)))
        text = f"Sweep {self.n_sweeps} of messages."
        tables = [f for f in range(graph.table_at.size) if graph.table_at[f] >= 0]
        self.write(Step.SWEEP, text, self.messages(graph, dual.message, tables))
        return possible

    def copy_labels(self, call: Watcher, source: IntArray, target: IntArray) -> Any:
        """A better labelling was found."""
        which = "first" if self.best == math.inf else "better"
        self.best = min(self.best, self.total)
        draft = self.drafts[-1]
        draft.cost = self.best
        kinds = self.problem.structure.all_kinds
        whole = target.size == len(kinds)  # after variables were put back
        variables = range(len(kinds)) if whole else self.variables
        draft.labels = tuple(kinds[v].labels[int(source[x])] for x, v in enumerate(variables))
        if "labelling was found" not in draft.text:
            draft.text += f" A {which} labelling was found."
        return call(source, target)

    def total_cost(self, call: Watcher, *args: Any) -> Any:
        """A labelling is scored."""
        self.total = float(call(*args))
        return self.total

    # -- branching ----------------------------------------------------------------------------------------------

    def dive(self, call: Watcher, *args: Any) -> Any:
        """All labellings are searched depth first, those that cannot be better left out."""
        draft = self.write(Step.BRANCH, "Dive:")
        _, _, _, max_nodes, *_ = args
        self.spend(0)
        if min(int(max_nodes), self.expected_nodes) * self.reduction.size > self.work:
            draft.text = "Dive: too long to watch."
            raise EnoughError
        outcome, best, n_nodes = call(*args)
        self.spend(int(n_nodes) * self.reduction.size)
        draft.n_nodes = int(n_nodes)
        rest = draft.text.removeprefix("Dive:")
        draft.text = f"Dive: {count(draft.n_nodes, 'node')}, depth first, cheapest label first, "
        draft.text += "until nothing cheaper was left." if outcome == FINISHED else "which did not suffice."
        draft.text += rest
        return outcome, best, n_nodes

    def split(self, call: Watcher, graph: Graph, tree: Any, level: int, v: int) -> Any:
        """A part of a split is chosen."""
        i = call(graph, tree, level, v)
        if i >= 0:
            self.spend(3 * self.reduction.size)
            self.write(Step.BRANCH, f"Split: {self.name(int(v))} = {self.label(int(v), int(i))}.")
        return i


def n_sums(plan: Plan) -> int:
    """Returns how many sums an elimination takes."""
    return int(plan.sum_first[plan.entry_at[plan.form] + np.diff(plan.out_first)].sum())


def _no_call(*args: Any) -> None:
    """Stands for a kernel that is not to be called."""


def _entry(graph: Graph, f: int, labels: IntArray) -> int:
    slots = range(graph.scope_first[f], graph.scope_first[f + 1])
    return int(sum(graph.stride[a] * labels[graph.scope[a]] for a in slots))
