"""Recording a search: its own kernels run interpreted, and a recorder logs their calls, step by step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels.search import loop, nodes
from hasten.kernels.search.nodes import BITS, KNOWN, MASK, theta_in_words
from hasten.model.problem import Labels, Problem
from hasten.model.solution import Solution
from hasten.support.arrays import IntArray
from hasten.support.words import count
from hasten.trace.events import Call, Candidate, Choice, Hook, Recorder, SearchStep, Trace

MOST_WORK = 100_000_000  # numbers that a search handles, 5 in a microsecond: some twenty seconds

HOW_REDUCED = (
    "Minimised out first, exactly: {}. Their least costs are part of the path costs of the others, and at the end "
    "each gets its best label."
)
HOW_GREEDY = (
    "Greedy search labels one variable after the other and never looks back. Each label is a candidate; its priority "
    "is its path cost (the costs of all labels so far) plus what the learned heuristic adds. The one with the "
    "smallest priority is kept, the others are pruned."
)
HOW_BEAM = (
    "Beam search labels one variable after the other. A node is a labelling so far; a beam has the best {width:,}. At "
    "each step every node is continued with every label of the next variable: these are the candidates. They are "
    "ranked by priority, the smaller the better: path cost (the costs of all labels so far) plus heuristic (what was "
    "learned). The best {width:,} are the next beam; the others are pruned, for good."
)
HOW_REFERENCE = (
    "Rings follow the reference, the answer that the search should find. Once its candidate falls below the "
    "beam’s edge, no later step can bring it back: the gold node is lost."
)
HOW_THETA = (
    "Costs take time to compute. The gap tells how much worse the heuristic finds the first candidate outside the "
    "beam than the last one inside. Where it is above theta, here {}, the heuristic decides alone, and the costs of "
    "that variable are skipped."
)


class BeamRecorder(Recorder):
    """Watches the loop of a beam search; `how` is the search in words. What runs too long to be watched is refused."""

    def __init__(
        self,
        problem: Problem,
        names: Sequence[str] | None,
        reference: Labels | Solution | None,
        how: str,
        width: int,
        theta: float,
    ) -> None:
        super().__init__(problem, names)
        self.how, self.width, self.theta = how, width, theta
        self.reference: tuple[str, ...] | None = None
        if reference is not None:
            labels = problem.values(reference.labels if isinstance(reference, Solution) else reference)
            self.reference = tuple(problem.names(labels))
        self.choice: Choice | None = None
        self.late: tuple[str, ...] = ()  # the variables whose costs were computed for the last choice
        n_nodes, work, n = 1, 0, problem.n_variables
        for v in problem.graph.order.tolist():
            size = len(problem.structure.all_kinds[v])
            work += n_nodes * (size * (4 + min(width, n_nodes * size) // 2) + 2 * n)
            n_nodes = min(n_nodes * size, width)
        if work > MOST_WORK:
            raise ProblemError(
                f"A search with a beam of {width:,} over {n:,} variables is too large to trace: its kernels run "
                "interpreted. Trace it with a narrower beam, or a smaller problem."
            )

    def trace(self, solution: Solution) -> Trace:
        """Returns the log as a value."""
        beam: tuple[Candidate, ...] = ()
        for step in self.steps:
            allowed = [each for each in step.candidates if each.kept or not each.ruled_out]
            allowed.sort(key=lambda each: each.priority)
            for rank, each in enumerate(allowed, 1):
                each.rank, each.ruled_out = rank, ""  # it was kept by its heuristic, before its cost was seen
            step.candidates = (*allowed, *(each for each in step.candidates if each.rank is None))
            if self.reference is not None:
                for each in step.candidates:
                    before = beam[each.node].good if beam else True
                    each.good = before and each.label == self.reference[step.variable]
            beam = step.kept
        more = {"width": self.width, "theta": self.theta, "reference": self.reference, "choice": self.choice}
        return self.ended(self.how, self._explained(), solution, **more)

    def _explained(self) -> list[str]:
        """Returns how such a search works, for someone who never heard of it."""
        if self.eliminated and not self.steps:
            return ["All variables were minimised out exactly: nothing was left to search, and the answer is optimal."]
        said = [HOW_REDUCED.format(count(len(self.eliminated), "variable"))] if self.eliminated else []
        said += [HOW_GREEDY if self.width == 1 else HOW_BEAM.format(width=self.width)]
        said += [] if self.reference is None else [HOW_REFERENCE]
        return said + ([HOW_THETA.format(theta_in_words(self.theta))] if self.theta < math.inf else [])

    def hooks(self) -> Mapping[Any, Hook]:
        """Returns the method that is called in place of each kernel."""
        return {
            loop.advance: self._advance,
            nodes.open_candidates: self._open_candidates,
            nodes.complete: self._complete,
            nodes.remove_by_rows: lambda call: self._removing(call, call.out, "a rule can no longer hold"),
            nodes.look_ahead: lambda call: self._removing(
                call, call.beam.scratch.out, "it leaves a later variable without a label"
            ),
            nodes.add_costs: self._add_costs,
            nodes.rank_by_heuristic: self._rank_by_heuristic,
            nodes.rank_by_priority: self._rank_by_priority,
            loop.add_pending: self._add_pending,
            loop.keep_best: self._keep_best,
            loop.choose: self._choose,
        }

    def _advance(self, call: Call) -> Any:
        gap = np.empty(call.instance.graph.order.size)  # to have gaps reported, a beam of one takes the general steps
        return call.run(beam=call.beam._replace(track=call.beam.track._replace(gap=gap)))

    def _open_candidates(self, call: Call) -> None:
        k, step = int(call.graph.order[call.t]), self.steps[-1] if self.steps else None
        again = step is not None and step.variable == self.variables[k]  # after it was blocked
        computed = self.steps.pop().computed if again else ()
        found = tuple(Candidate(node, label) for node in range(call.n_nodes) for label in self.labels(k))
        self.steps.append(SearchStep(self.variables[k], self.name(k), int(call.n_nodes), found, computed=computed))
        call.run()

    def _complete(self, call: Call) -> None:
        name = "a table"  # elimination makes tables that have no names
        if not self.eliminated:
            name = f"the table {self.problem.structure.factors[call.f].kind.name}"
        self._removing(call, call.beam.scratch.out, f"{name} forbids it")

    def _removing(self, call: Call, out: IntArray, why: str) -> None:
        call.run()
        for c, each in enumerate(self.steps[-1].candidates):
            if out[c] and not each.ruled_out:
                each.ruled_out = why

    def _add_costs(self, call: Call) -> None:
        scratch, step = call.beam.scratch, self.steps[-1]
        self._removing(call, scratch.out, "its cost is infinite")
        for c, each in enumerate(step.candidates):
            each.path_cost, each.heuristic = float(scratch.g[c]), float(scratch.h[c])
            each.look_ahead, each.priority = float(scratch.rest[c]), each.heuristic
        if self.theta == math.inf:  # all are computed beforehand
            step.computed = (step.name,)

    def _rank_by_heuristic(self, call: Call) -> Any:
        n_best, gap = call.run()
        self.steps[-1].gap = float(gap)
        return n_best, gap

    def _rank_by_priority(self, call: Call) -> Any:
        self.steps[-1].skipped = False
        for each in self.steps[-1].candidates:
            each.priority = each.path_cost + each.heuristic + each.look_ahead
        return call.run()

    def _add_pending(self, call: Call) -> Any:
        known = call.beam.known
        before, ready = known.copy(), call.run()
        computed = tuple(self.name(v) for v in range(known.size) if known[v] == KNOWN != before[v])
        if call.t < call.instance.graph.order.size:
            self.steps[-1].computed += computed
        else:
            self.late += computed
        return ready

    def _keep_best(self, call: Call) -> None:
        step = self.steps[-1]
        n_labels = len(step.candidates) // step.n_nodes
        for name in call.beam.scratch.best[: call.n_best].tolist():
            step.candidates[(name >> BITS) * n_labels + (name & MASK)].kept = True
        call.run()

    def _choose(self, call: Call) -> Any:
        nodes, n, theta = call.beam.nodes, call.n_nodes, call.options.theta
        before, (least, second, *_) = nodes.labels[:n].copy(), sorted(nodes.h[:n].tolist())
        outcome = call.run()
        if outcome == loop.DONE:
            node, gap = next(b for b in range(n) if (before[b] == nodes.labels[0]).all()), second - least
            self.choice = Choice(node, gap, theta == 0.0 or gap > theta, self.late)
        elif outcome == loop.DEAD_END:  # after the last costs came
            self.steps[-1].computed += self.late
        return outcome
