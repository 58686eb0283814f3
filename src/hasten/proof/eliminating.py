"""Problems that elimination solves by itself: chains, trees and thin graphs, their rules set aside at first.

Eight of one structure are eliminated at a time. That takes about as long as looking at their cheapest labels, so
problems that looking is unlikely to prove are not looked at: large ones, and those with tables that do more than
forbid.
"""

from __future__ import annotations

import numpy as np

from hasten.kernels.proof.eliminated import ABREAST, eliminate_alike, eliminate_some
from hasten.kernels.proof.look import look_at_some
from hasten.kernels.proof.outcome import BOUND, OPEN, OUTCOME, Proofs
from hasten.kernels.proof.tallied import count_some
from hasten.model.batch import Batch
from hasten.model.compiled import Compiled
from hasten.model.cuts import cutting
from hasten.model.elimination import reduce
from hasten.model.relaxing import whole_plan
from hasten.model.tallying import tally_of
from hasten.model.thinning import thinning
from hasten.support.arrays import IntArray, all_of
from hasten.support.parallel import in_parallel

LARGE = 64  # variables from which on something is always broken
NOWHERE = np.zeros((1, 2), dtype=np.int64)  # the addresses of no plan


def goes_unseen(compiled: Compiled, max_join: int | None) -> bool:
    """Whether problems of a structure are eliminated without being looked at."""
    if max_join not in compiled.unseen:
        graph = compiled.graph
        unlikely = graph.soft_at.size or (len(graph.order) > LARGE and compiled.is_forest)
        compiled.unseen[max_join] = bool(unlikely) and whole_plan(compiled, max_join) is not None
    return compiled.unseen[max_join]


def begins_with_looking(compiled: Compiled) -> bool:
    """Whether the first step of a proof is to look at the cheapest labels."""
    return cutting(compiled) is None and not goes_unseen(compiled, None)


def bounds_relax(compiled: Compiled) -> bool:
    """Whether a bound, after mending or a cut, is the optimum without rules, which elimination would find once more.

    Where tables do no more than forbid, they have a bound only if they found that optimum.
    """
    return bool(compiled.graph.row_label.size) and not compiled.graph.soft_at.size


def only_branching_follows(compiled: Compiled) -> bool:
    """Whether problems of a structure go through no step but sweeps and branching once they have a bound.

    Where no plan eliminates everything, they need no bound for that.
    """
    relaxed = bounds_relax(compiled) or whole_plan(compiled, None) is None
    return relaxed and tally_of(compiled) is None and thinning(compiled) is None and not reduce(compiled).complete


def look_and_eliminate(batch: Batch, uncut: IntArray, max_join: int | None, proofs: Proofs, n_jobs: int) -> IntArray:
    """Proves what looking, mending and elimination can; returns what is open. Only what is uncut is looked at."""
    unseen = [goes_unseen(structure.compiled, max_join) for structure in batch.structures]
    looked_at = uncut
    if len(uncut) < len(batch):
        others = np.setdiff1d(batch.order, uncut)
        _eliminate(batch, _unrelaxed(batch, _open(others, proofs), proofs), max_join, proofs, n_jobs)
    if any(unseen):
        is_unseen = np.array(unseen)[batch.structure[looked_at]]
        _eliminate(batch, looked_at[is_unseen], max_join, proofs, n_jobs)
        looked_at = looked_at[~is_unseen]

    def look(begin_at: int, end_at: int) -> None:
        look_at_some(batch.arrays, looked_at[begin_at:end_at], proofs)

    in_parallel(look, len(looked_at), n_jobs)
    left = _open(looked_at, proofs)
    if len(looked_at) == len(batch) and _at_most_branching_is_left(batch, left, max_join, proofs):
        return left
    _eliminate(batch, _unrelaxed(batch, left, proofs), max_join, proofs, n_jobs)
    left = _open(batch.order, proofs)
    if max_join is not None or not len(left):
        return left
    _count(batch, left, proofs, n_jobs)
    return _open(left, proofs)


def _at_most_branching_is_left(batch: Batch, problems: IntArray, max_join: int | None, proofs: Proofs) -> bool:
    """Whether open problems need sweeps and branching at most; where there are several structures, nobody knows."""
    if not len(problems):
        return True
    if max_join is not None or len(batch.structures) > 1 or not only_branching_follows(batch.structures[0].compiled):
        return False
    no_plan = whole_plan(batch.structures[0].compiled, None) is None
    return no_plan or all_of(proofs.values[BOUND].take(problems) > -np.inf)


def _unrelaxed(batch: Batch, problems: IntArray, proofs: Proofs) -> IntArray:
    """Returns those of some open problems whose optimum without rules is not known."""
    relax = np.array([bounds_relax(structure.compiled) for structure in batch.structures], dtype=bool)
    known = relax[batch.structure[problems]] & (proofs.values[BOUND, problems] > -np.inf)
    left: IntArray = problems[~known]
    return left


def _open(problems: IntArray, proofs: Proofs) -> IntArray:
    """Returns those of some problems that are open."""
    left: IntArray = problems[proofs.facts[OUTCOME].take(problems) == OPEN]
    return left


def _count(batch: Batch, problems: IntArray, proofs: Proofs, n_jobs: int) -> None:
    """Proves those problems whose rules can be counted on the way through a tree."""
    if not len(problems):
        return
    used, places = structures_of(batch, problems)
    tallies = [tally_of(batch.structures[s].compiled) for s in used]
    tallied = np.array([0 if tally is None else tally.address for tally in tallies])[places]
    problems, tallied = problems[tallied != 0], tallied[tallied != 0]

    def count(begin_at: int, end_at: int) -> None:
        count_some(batch.arrays, tallied[begin_at:end_at], problems[begin_at:end_at], proofs)

    if len(problems):
        in_parallel(count, len(problems), n_jobs)


def structures_of(batch: Batch, problems: IntArray) -> tuple[list[int], IntArray]:
    """Returns the structures of some problems, by number, and the place of each problem's among them."""
    if len(batch.structures) == 1:
        return [0], np.zeros(len(problems), dtype=np.int64)
    used, places = np.unique(batch.structure[problems], return_inverse=True)
    return used.tolist(), places


def _eliminate(batch: Batch, problems: IntArray, max_join: int | None, proofs: Proofs, n_jobs: int) -> None:
    """Proves those problems that have plans for that."""
    if not len(problems):
        return
    used, places = structures_of(batch, problems)
    plans = [whole_plan(batch.structures[s].compiled, max_join) for s in used]
    reduced = np.concatenate([NOWHERE if plan is None else plan.addresses for plan in plans])[places]
    if None in plans:
        has_plan = reduced[:, 0] != 0
        reduced, problems = reduced[has_plan], problems[has_plan]
    run = eliminate_some if len(batch) < ABREAST else eliminate_alike

    def eliminate(begin_at: int, end_at: int) -> None:
        run(batch.arrays, reduced[begin_at:end_at], problems[begin_at:end_at], proofs)

    in_parallel(eliminate, len(problems), n_jobs)
