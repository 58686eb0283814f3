"""The drivers that prove, loaded or compiled before a clock starts, and counted."""

from __future__ import annotations

import math
import time

import numpy as np

from hasten.kernels.cells import Rows, lay_rows, with_rows
from hasten.kernels.layout import Graph
from hasten.kernels.proof.certify import Effort, certify_ruled, certify_some
from hasten.kernels.proof.cut import cut_some
from hasten.kernels.proof.eliminated import eliminate_alike, eliminate_some
from hasten.kernels.proof.look import look_at_some
from hasten.kernels.proof.outcome import Proofs
from hasten.kernels.proof.roof import fix_some
from hasten.kernels.proof.tallied import count_some
from hasten.kernels.proof.thinned import eliminate_thin
from hasten.kernels.scopes import lay_scopes, with_scopes
from hasten.model.batch import Batch
from hasten.proof.thinning import NOTHING_FIXED
from hasten.support.clock import UNWATCHED

DRIVERS = (
    *(lay_scopes, lay_rows, cut_some, look_at_some, eliminate_some, eliminate_alike, count_some),
    *(certify_some, certify_ruled, fix_some, eliminate_thin),
)


def n_loaded() -> int:
    """Returns how many of the drivers that prove were loaded or compiled: where that changed, time tells nothing."""
    return sum(len(getattr(driver, "overloads", ())) for driver in DRIVERS)


def load_drivers() -> None:
    """Loads or compiles what a proof needs, so that this does not count as the first problem's time."""
    if not all(getattr(driver, "overloads", True) for driver in DRIVERS):
        batch, none = Batch.of([]), np.zeros(0, dtype=np.int64)
        proofs = Proofs(none, np.empty((3, 0)), np.empty((5, 0), dtype=np.int64))
        zero, row = np.zeros(1, dtype=np.int64), np.zeros(1)
        graph = with_scopes(Graph.start(scope_first=zero, table_at=none), zero, none, none)
        with_rows(graph, Rows(np.zeros(2, dtype=np.int64), none, np.zeros(0), row, row))
        cut_some(batch.arrays, none, none, proofs, UNWATCHED)
        look_at_some(batch.arrays, none, proofs)
        messages, reduced = (np.zeros(0), np.zeros(0), none), np.zeros((0, 2), dtype=np.int64)
        eliminate_some(batch.arrays, reduced, none, proofs)
        eliminate_alike(batch.arrays, reduced, none, proofs)
        count_some(batch.arrays, none, none, proofs)
        for certify in (certify_some, certify_ruled):
            effort = len(Effort._fields) * (0,)
            certify((*batch.arrays,), reduced, messages, effort, none, (*proofs,), UNWATCHED)
        fix_some(batch.arrays, none, none, proofs, NOTHING_FIXED, UNWATCHED)
        eliminate_thin(batch.arrays, none, NOTHING_FIXED, none, proofs, UNWATCHED)


def deadline_after(seconds: float | None) -> float:
    """Returns when a call that has so long must be done, of `time.monotonic`; None: never. Loading does not count."""
    if seconds is None:
        return math.inf
    load_drivers()
    return time.monotonic() + seconds
