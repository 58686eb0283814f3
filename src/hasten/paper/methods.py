"""Who wants a row of the results: the paper's two tables, with its own algorithm and with ours, and our own methods.

A row more is an entry more. Rows that are compared are timed in turns, so that all of one list belong together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hasten.paper.learning import LearningSet
from hasten.paper.test_set import Inputs, TestSet, finite
from hasten.search.beam import BeamSearch, greedy
from hasten.search.constrained import ConstrainedSearch
from hasten.search.reduced import ReducedSearch
from hasten.speedup.calibration import Calibration, problems_needed
from hasten.support.progress import steps
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.evaluation.methods import Method

PLAIN = "ours: by costs alone, as what was learned did worse on sentences held out"
PRESET, OURS = "the paper's preset: step 1, last weights", "ours: averaged weights, step from the costs"


def table_1(test_set: TestSet, learning_set: LearningSet) -> list[Method[Inputs]]:
    """The paper's Table 1: its searches, Algorithm 1 as listed, and ours."""
    return [
        test_set.by_ilp(table="1"),
        test_set.eager(Model.GREEDY, greedy(), table="1", note="greedy, constraints ignored"),
        test_set.eager(Model.CONSTRAINED, ConstrainedSearch(), table="1", note="greedy, arc consistency"),
        *(
            test_set.eager(
                Model.PAPER_SPEEDUP, learning_set.speedup(width, paper=True), learned=True, beam=width, table="1",
                note=PRESET,
            )
            for width in PAPER_WIDTHS
        ),
        *(
            test_set.eager(
                Model.SPEEDUP, learning_set.chosen(width), learned=True, beam=width, table="1",
                note=PLAIN if learning_set.chosen(width).weights is None else OURS,
            )
            for width in PAPER_WIDTHS
        ),
    ]  # fmt: skip


def table_2(test_set: TestSet, learning_set: LearningSet) -> list[Method[Inputs]]:
    """The paper's Table 2, costs skipped by its thetas: with Algorithm 1 as listed, and with ours."""
    return [
        test_set.lazily(
            Model.speedup(paper), replace(learning_set.speedup(width, paper=paper), theta=theta * test_set.scale),
            relative_theta=theta, table="2", note=f"{PRESET if paper else OURS}; the paper's θ times the cost scale",
        )
        for paper, width, theta in product((True, False), PAPER_WIDTHS, PAPER_THETAS)
    ]  # fmt: skip


def ours(test_set: TestSet) -> list[Method[Inputs]]:
    """Our rows: enforced tables, look-ahead, elimination, proof."""
    left_out, left = "forbidden tuples left out", "over what elimination leaves"
    return [
        *(test_set.eager(Model.ENFORCED, BeamSearch(width), beam=width, note=left_out) for width in (1, 2, 4)),
        test_set.eager(Model.LOOK_AHEAD, BeamSearch(2, look_ahead=True), beam=2, note="counts the least still to come"),
        *(
            test_set.eager(Model.REDUCED, ReducedSearch(width, look_ahead=True), beam=width, note=left)
            for width in (1, 2)
        ),
        test_set.certified(note="proved, or solved"),
    ]


@dataclass(frozen=True, slots=True)
class Calibrated:
    """A search whose theta was calibrated, and how."""

    search: BeamSearch
    enforce: bool
    how: Calibration
    n_held_out: int
    changed_test: float

    @property
    def too_little(self) -> bool:
        """Whether there was too little text to show of any theta that it is safe."""
        return self.n_held_out < problems_needed(self.how.risk, self.how.confidence)

    @property
    def note(self) -> str:
        """What came of it, in words."""
        if self.too_little:
            needed = problems_needed(self.how.risk, self.how.confidence)
            return f"every cost computed: {self.n_held_out:,} sentences to calibrate on are too few, {needed:,} needed"
        if finite(self.how.theta) is None:
            return f"every cost computed: no θ kept within {self.how.risk:.0%} of changed answers"
        return f"θ changed {self.how.changed:.1%} of unlabeled answers, {self.changed_test:.1%} here"

    def as_dict(self) -> dict[str, Any]:
        """Returns an entry of `calibration` in `results.json`."""
        skips = finite(self.how.theta) is not None
        return {
            "width": self.how.width,
            "enforce": self.enforce,
            "theta": finite(self.how.theta),
            "changed": self.how.changed if skips else None,
            "changed_test": self.changed_test if skips else None,
            "limit": self.how.limit if skips else None,
            "share": self.how.share,
            "n_held_out": self.n_held_out,
            "too_little": self.too_little,
        }


def calibrate_all(test_set: TestSet, learning_set: LearningSet) -> list[Calibrated]:
    """Calibrates searches of three widths, with learned weights (where these help) and with enforced tables.

    Enforced tables already say what learned weights would, so such a search has none.
    """
    found = []
    for width, enforce in steps(test_set.tell, "Calibrating theta", list(product((1, 2, 4), (False, True)))):
        search = BeamSearch(width, enforce=True) if enforce else learning_set.chosen(width)
        how = learning_set.calibrate(search)
        search = replace(search, theta=how.theta)
        n_held_out = len(learning_set.batch) - learning_set.n_learned
        found.append(Calibrated(search, enforce, how, n_held_out, test_set.changed(search)))
    return found


def calibrated(test_set: TestSet, chosen: list[Calibrated]) -> list[Method[Inputs]]:
    """The searches with their calibrated thetas, in Table 2."""
    return [test_set.lazily(Model.calibrated(each.enforce), each.search, table="2", note=each.note) for each in chosen]


PAPER_ROWS: tuple[dict[str, Any], ...] = tuple(
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
PAPER_THETAS = (0.0, 0.25, 0.5)  # of Table 2
PAPER_WIDTHS = (1, 2)
