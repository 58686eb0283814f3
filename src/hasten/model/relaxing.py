"""Without rules: where factors form chains or trees, the optimum without rules is found at once.

Where that keeps the rules, it is the optimum.
"""

from __future__ import annotations

from hasten.kernels.cells import NO_ROWS, with_rows
from hasten.model.compiled import Compiled
from hasten.model.elimination import Reduction, plan_reduction, reduce


def whole_plan(compiled: Compiled, max_join: int | None) -> Reduction | None:
    """Returns the plan that eliminates every variable, as if there were no rules; None if there is none."""
    if compiled.graph.row_label.size:
        return relax(compiled) if max_join is None else None
    reduction = reduce(compiled, max_join)
    return reduction if reduction.complete else None


def relax(compiled: Compiled) -> Reduction | None:
    """Plans the elimination of every variable as if there were no rules, if factors form chains or trees; made once."""
    graph = compiled.graph
    if compiled.relaxed is None and graph.row_label.size and compiled.is_forest:
        reduction = plan_reduction(with_rows(graph, NO_ROWS), None)
        if reduction.complete:
            compiled.relaxed = reduction
            compiled.n_bytes += reduction.plan.buffer.nbytes + reduction.graph.buffer.nbytes
            compiled.keep()
    return compiled.relaxed
