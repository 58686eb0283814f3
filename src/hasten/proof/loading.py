"""The drivers that prove, loaded or compiled before a clock starts, and counted."""

from __future__ import annotations

import math
import time

import numpy as np

from hasten.kernels.cells import Rows, lay_rows, with_rows
from hasten.kernels.layout import Graph
from hasten.kernels.scopes import lay_scopes, with_scopes
from hasten.model.batch import Batch
from hasten.proof.outcome import nothing_known
from hasten.proof.plan import NOBODY
from hasten.proof.steps import STEPS

DRIVERS = tuple(driver for step in STEPS for driver in step.drivers())  # each with arguments of its own
LAYING = lay_scopes, lay_rows


def n_loaded() -> int:
    """Returns how many of the drivers that prove were loaded or compiled: where that changed, time tells nothing."""
    return sum(len(getattr(driver, "overloads", ())) for driver in (*LAYING, *(driver for driver, *_ in DRIVERS)))


def load_drivers() -> None:
    """Loads or compiles the drivers that a proof needs, so that this does not count as the first problem's time."""
    if all(getattr(driver, "overloads", True) for driver in (*LAYING, *(driver for driver, *_ in DRIVERS))):
        return
    zero, row, arrays = np.zeros(1, dtype=np.int64), np.zeros(1), Batch.of([]).arrays
    graph = with_scopes(Graph.start(scope_first=zero, table_at=NOBODY), zero, NOBODY, NOBODY)
    with_rows(graph, Rows(np.zeros(2, dtype=np.int64), NOBODY, np.zeros(0), row, row))
    for driver, *own in DRIVERS:
        driver((*arrays,), NOBODY, (*nothing_known(0, 0),), *own)  # plain tuples, as `Work.run` hands them over


def deadline_after(seconds: float | None) -> float:
    """Returns when a call that has so long must be done, of `time.monotonic`; None: never. Loading does not count."""
    if seconds is None:
        return math.inf
    load_drivers()
    return time.monotonic() + seconds
