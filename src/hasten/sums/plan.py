"""Plans sums over all labellings: an elimination of every variable, those that count for rules included.

How much that takes depends on the structure alone, and is known before anything is computed.
"""

from __future__ import annotations

import math
from functools import cached_property, partial
from itertools import pairwise

import numpy as np

from hasten.errors import TooWide
from hasten.kernels.cells import NO_ROWS, with_rows
from hasten.model.compiled import Compiled
from hasten.proof.elimination.joins import Pattern
from hasten.proof.elimination.kernels import Plan
from hasten.proof.elimination.plan import NO_STEPS, Elimination
from hasten.sums.counters import rules_of, tree_of
from hasten.sums.kernels import Sums
from hasten.support.arrays import IntArray, ints, offsets, ranges, sizes_of

MAX_JOIN = 2**20  # terms of one step
MOST_ENTRIES = 2**21  # of derived tables: half a gigabyte for eight problems
MANY_SUMS = 64  # of a step with one table over its two variables: it is a product with a matrix


class SumPlan:
    """How sums over all labellings of one structure are taken.

    factors
        Whether there are marginals of each factor; else of each table, added up over the factors that share it.
    rounds
        Whether variables go in rounds: more terms in all, but fewer steps that wait for others.
    """

    def __init__(self, compiled: Compiled, max_join: int, factors: bool = False, rounds: bool = False) -> None:
        graph = with_rows(compiled.graph, NO_ROWS)
        reads = partial(_is_read, factors)
        elimination, rules = Elimination(graph, max_join, None, reads), rules_of(compiled)
        self.feasible = True
        if rules:
            without = Elimination(graph, max_join)
            without.eliminate()
            _check_width(without, max_join)
            tree = tree_of(without.steps)
            for rule in rules:
                self.feasible &= rule.put(elimination, tree, max_join)
        elimination.eliminate_in_rounds() if rounds else elimination.eliminate()
        _check_width(elimination, max_join)
        self.sizes, self.steps, self.first = elimination.sizes, elimination.steps, elimination.first
        self.n_entries, self.n_labels = elimination.n_entries, elimination.first[-1]
        (self.factors,) = np.nonzero(graph.table_at >= 0)
        ends = pairwise(graph.scope_first.tolist())
        size = ints(math.prod(self.sizes[v] for v in graph.scope[a:b]) for a, b in ends)
        self.factor_first = offsets(size[self.factors])
        at = self.factor_first if factors else graph.table_at[self.factors]
        places = ranges(graph.table_at[self.factors], sizes_of(self.factor_first))
        self.source = places if factors else np.arange(len(graph.table))  # of each marginal, the table entry
        fields = elimination.step_fields() if self.steps else NO_STEPS
        nothing = dict.fromkeys(("constant", "keep", "keep_label", "fold_from", "fold_to", "copy_from", "priced"), ())
        self.plan = Plan.pack(**fields, **nothing)
        joins = list(dict.fromkeys(step.join for step in self.steps))
        dense = []
        for join in joins:
            both, is_read = join.shared[0], len(join.order) == len(join.parts)
            large = is_read and both < join.n_static and math.prod(join.shape) > MANY_SUMS
            dense.append(max(both, -1) if large else -1)
        target = [
            int(at[step.tables[i]]) if k < step.join.n_static else -1
            for step in self.steps
            for k, i in enumerate(step.join.order)
        ]
        most = max((int(join.counts.max(initial=0)) for join in joins), default=0)
        sizes = self.n_labels, self.n_entries, len(graph.table), len(self.source), max(1, most)
        self.sums = Sums.pack(dense=ints(dense), target=ints(target), source=self.source, sizes=ints(sizes))

    @cached_property
    def addresses(self) -> IntArray:
        """(2,) where both records lie, for kernels."""
        return np.array([self.plan.address, self.sums.address])

    @property
    def n_bytes(self) -> int:
        """How much memory it takes."""
        return self.plan.buffer.nbytes + self.sums.buffer.nbytes


def plan_sums(compiled: Compiled, max_join: int = MAX_JOIN, factors: bool = False, rounds: bool = False) -> SumPlan:
    """Returns the plan for a shape, made once; a shape that is too wide is refused."""
    return compiled.made(SumPlan, max_join, factors, rounds)


def _is_read(factors: bool, pattern: Pattern) -> bool:
    """Whether a table that only forbids is read all the same: for its factor's marginals, or by a matrix product."""
    return factors or (pattern.allowed.ndim == 2 and pattern.size > MANY_SUMS)


def _check_width(elimination: Elimination, max_join: int) -> None:
    """Refuses an elimination that left something, or takes too much memory."""
    gone = {v for step in elimination.steps for v in step.group}
    left = [v for v in range(len(elimination.sizes)) if v not in gone]
    if left:
        scopes = [{v, *(u for f in elimination.touching[v] for u in elimination.tables[f].scope)} for v in left]
        n_terms, width = min((math.prod(elimination.sizes[u] for u in scope), len(scope)) for scope in scopes)
        what = f"the smallest step that is left joins {width} variables in {n_terms:,} terms"
        limit = f"the limit is {max_join:,} (max_join)"
    elif elimination.n_entries > MOST_ENTRIES:
        what = f"the tables have {elimination.n_entries:,} entries"
        limit = f"the limit is {MOST_ENTRIES:,}"
        n_terms = elimination.n_entries
    else:
        return
    raise TooWide(
        f"The structure is too wide to sum over all its labellings: {what}, {8 * n_terms / 2**20:,.0f} MB a problem; "
        f"{limit}. Train with a perturbed Fenchel-Young loss, which needs the best labelling alone."
    )
