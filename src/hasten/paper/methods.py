"""The rows of the results: the paper's two tables, with its own algorithm and with ours, and our own methods.

Another row is another entry. All rows are timed in turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from hasten.paper.learning import LearningSet
from hasten.paper.test_set import SentenceTestSet, row_of
from hasten.search.beam import BeamSearch, greedy
from hasten.search.constrained import ConstrainedSearch
from hasten.search.reduced import ReducedSearch
from hasten.search.searcher import Searcher
from hasten.speedup.calibration import problems_needed
from hasten.support.progress import steps
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.evaluation.measuring import Method
from hasten.tasks.evaluation.study import Row, finite

PLAIN = "ours: by costs alone, as what was learned did worse on sentences held out"
PRESET, OURS = "the paper's preset: step 1, last weights", "ours: averaged weights, step from the costs"
PAPER_THETAS = (0.0, 0.25, 0.5)  # of Table 2
PAPER_WIDTHS = (1, 2)


def table_1(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Method]:
    """The paper's Table 1: its searches, Algorithm 1 as listed, and ours."""
    rows = [
        test_set.by_ilp(Model.ILP, **row_of({"table": "1"})),
        test_set.eager(Model.GREEDY, greedy(), table="1", note="greedy, constraints ignored"),
        test_set.eager(Model.CONSTRAINED, ConstrainedSearch(), table="1", note="greedy, arc consistency"),
    ]
    for paper, width in product((True, False), PAPER_WIDTHS):
        search = learning_set.search(width, paper=True) if paper else learning_set.chosen(width)
        note = PRESET if paper else PLAIN if search.weights is None else OURS
        rows.append(test_set.eager(Model.speedup(paper), search, learned=True, beam=width, table="1", note=note))
    return rows


def table_2(test_set: SentenceTestSet, learning_set: LearningSet) -> list[Method]:
    """The paper's Table 2, costs skipped by its thetas: with Algorithm 1 as listed, and with ours."""
    return [
        skipping(test_set, learning_set, paper, width, theta, table="2",
                 note=f"{PRESET if paper else OURS}; the paper's θ times the cost scale")
        for paper, width, theta in product((True, False), PAPER_WIDTHS, PAPER_THETAS)
    ]  # fmt: skip


def skipping(
    test_set: SentenceTestSet, learning_set: LearningSet, paper: bool, width: int, theta: float, **about: Any
) -> Method:
    """Returns the speedup that skips costs by a theta in units of the cost scale."""
    search = replace(learning_set.search(width, paper=paper), theta=theta * test_set.scale)
    return test_set.lazily(Model.speedup(paper), search, relative_theta=theta, **about)


def ours(test_set: SentenceTestSet) -> list[Method]:
    """Our rows: enforced tables, look-ahead, elimination, proof."""
    rows: list[tuple[Model, Searcher, int, str]] = [
        *((Model.ENFORCED, BeamSearch(width), width, "forbidden tuples left out") for width in (1, 2, 4)),
        (Model.LOOK_AHEAD, BeamSearch(2, look_ahead=True), 2, "counts the least still to come"),
        *((Model.REDUCED, ReducedSearch(n, look_ahead=True), n, "over what elimination leaves") for n in (1, 2)),
    ]
    return [
        *(test_set.eager(model, search, beam=width, note=note) for model, search, width, note in rows),
        test_set.certified(Model.CERTIFIED, **row_of({"note": "proved, or solved"})),
    ]


def calibrate(test_set: SentenceTestSet, learning_set: LearningSet) -> list[tuple[BeamSearch, Row]]:
    """Calibrates searches of three widths: with learned weights, where these help, and with enforced tables without.

    Returns them with entries of `calibration` in results.json, which say how theta was chosen.
    """
    found = []
    every = list(product((1, 2, 4), (False, True)))
    for width, enforce in steps(test_set.how.tell, "Calibrating theta", every):
        search = BeamSearch(width) if enforce else learning_set.chosen(width)
        how = learning_set.calibrate(search)
        search = replace(search, theta=how.theta)
        n, needed = len(learning_set.batch) - learning_set.n_learned, problems_needed(how.risk, how.confidence)
        skips, changed_test = finite(how.theta) is not None, test_set.changed(search)
        note = f"θ changed {how.changed:.1%} of unlabeled answers, {changed_test:.1%} here"
        if n < needed:
            note = f"every cost computed: {n:,} sentences to calibrate on are too few, {needed:,} needed"
        elif not skips:
            note = f"every cost computed: no θ kept within {how.risk:.0%} of changed answers"
        entry = {
            "width": how.width,
            "enforce": enforce,
            "theta": finite(how.theta),
            "changed": how.changed if skips else None,
            "changed_test": changed_test if skips else None,
            "limit": how.limit if skips else None,
            "share": how.share,
            "n_held_out": n,
            "too_little": n < needed,
            "note": note,
        }
        found.append((search, entry))
    return found


def compare_with_greedy(calibrations: Sequence[Row], rows: Sequence[Row]) -> None:
    """Adds how many times as fast as greedy search each calibrated search is: by their rows, which took turns."""
    known = [row for row in rows if row["table"] != "2" or row["relative_theta"] is None]
    times = {(row["model"], row["beam"]): row["time_ms"] for row in known}
    for each in calibrations:
        mine = times[Model.calibrated(each["enforce"]), each["width"]]
        each["times_faster_than_greedy"] = times[Model.GREEDY, None] / mine if mine else None


PAPER_ROWS: tuple[Row, ...] = tuple(
    dict(zip(
        ("table", "model", "beam", "relative_theta", "entity_f1_gold", "relation_f1_gold", "entity_f1_ilp",
         "relation_f1_ilp", "time_ms", "time_ms_std", "validity"),
        row, strict=True,
    ))
    for row in (
        ("1", Model.ILP, None, None, 0.827, 0.482, 1.0, 1.0, 239, 11.4, 1.0),
        ("1", Model.GREEDY, None, None, 0.822, 0.334, 0.877, 0.546, 170, 6.5, 0.29),
        ("1", Model.CONSTRAINED, None, None, 0.800, 0.572, 0.880, 0.741, 844, 31.0, 1.0),
        ("1", Model.PAPER_SPEEDUP, 1, None, 0.822, 0.447, 0.877, 0.674, 136, 2.1, 0.96),
        ("1", Model.PAPER_SPEEDUP, 2, None, 0.844, 0.484, 0.930, 0.752, 158, 19.8, 0.95),
        ("2", Model.PAPER_SPEEDUP, 1, 0.0, 0.21, 0.0, 0.173, 0.0, 39, 3.7, 1.0),
        ("2", Model.PAPER_SPEEDUP, 1, 0.25, 0.822, 0.435, 0.877, 0.546, 87, 2.5, 0.99),
        ("2", Model.PAPER_SPEEDUP, 1, 0.5, 0.822, 0.455, 0.877, 0.672, 114, 4.7, 0.98),
        ("2", Model.PAPER_SPEEDUP, 2, 0.0, 0.373, 0.152, 0.377, 0.139, 55, 2.5, 1.0),
        ("2", Model.PAPER_SPEEDUP, 2, 0.25, 0.819, 0.461, 0.893, 0.623, 130, 14.4, 0.99),
        ("2", Model.PAPER_SPEEDUP, 2, 0.5, 0.825, 0.494, 0.907, 0.689, 134, 4.0, 0.98),
    )
)  # fmt: skip
