"""Who wants a row of the results: the paper's two tables, with its own algorithm and with ours, and our own methods.

A row more is an entry more. Rows that are compared are timed in turns, so that all of one list belong together.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from hasten.search.beam import BeamSearch, greedy
from hasten.search.constrained import ConstrainedSearch
from hasten.search.reduced import ReducedSearch
from hasten.speedup.calibration import Calibration, problems_needed
from hasten.support.progress import steps
from hasten.tasks.entity_relation.experiment.lessons import Lessons
from hasten.tasks.entity_relation.experiment.measure import finite
from hasten.tasks.entity_relation.experiment.paper import PAPER_THETAS, PAPER_WIDTHS
from hasten.tasks.entity_relation.experiment.trial import Deal, Trial
from hasten.tasks.entity_relation.names import Model
from hasten.tasks.experiment.contest import Contender

PLAIN = "ours: by costs alone, as what was learned did worse on sentences held out"
PRESET, OURS = "the paper's preset: step 1, last weights", "ours: averaged weights, step from the costs"


def table_1(trial: Trial, lessons: Lessons) -> list[Contender[Deal]]:
    """The paper's Table 1: its searches, Algorithm 1 as listed, and ours."""
    return [
        trial.by_ilp(table="1"),
        trial.eager(Model.GREEDY, greedy(), table="1", note="greedy, constraints ignored"),
        trial.eager(Model.CONSTRAINED, ConstrainedSearch(), table="1", note="greedy, arc consistency"),
        *(
            trial.eager(
                Model.PAPER_SPEEDUP, lessons.speedup(width, paper=True), learned=True, beam=width, table="1",
                note=PRESET,
            )
            for width in PAPER_WIDTHS
        ),
        *(
            trial.eager(
                Model.SPEEDUP, lessons.chosen(width), learned=True, beam=width, table="1",
                note=PLAIN if lessons.chosen(width).weights is None else OURS,
            )
            for width in PAPER_WIDTHS
        ),
    ]  # fmt: skip


def table_2(trial: Trial, lessons: Lessons) -> list[Contender[Deal]]:
    """The paper's Table 2, costs skipped by its thetas: with Algorithm 1 as listed, and with ours."""
    return [
        trial.lazily(
            Model.speedup(paper), replace(lessons.speedup(width, paper=paper), theta=theta * trial.scale),
            relative_theta=theta, table="2", note=f"{PRESET if paper else OURS}; the paper's θ times the cost scale",
        )
        for paper, width, theta in product((True, False), PAPER_WIDTHS, PAPER_THETAS)
    ]  # fmt: skip


def ours(trial: Trial) -> list[Contender[Deal]]:
    """Our rows: enforced tables, look-ahead, elimination, proof."""
    left_out, left = "forbidden tuples left out", "over what elimination leaves"
    return [
        *(trial.eager(Model.ENFORCED, BeamSearch(width), beam=width, note=left_out) for width in (1, 2, 4)),
        trial.eager(Model.LOOK_AHEAD, BeamSearch(2, look_ahead=True), beam=2, note="counts the least still to come"),
        *(trial.eager(Model.REDUCED, ReducedSearch(width), beam=width, note=left) for width in (1, 2)),
        trial.certified(note="proved, or solved"),
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


def calibrate_all(trial: Trial, lessons: Lessons) -> list[Calibrated]:
    """Calibrates searches of three widths, with learned weights (where these help) and with enforced tables.

    Enforced tables already say what learned weights would, so such a search has none.
    """
    found = []
    for width, enforce in steps(trial.tell, "Calibrating theta", list(product((1, 2, 4), (False, True)))):
        search = BeamSearch(width, enforce=True) if enforce else lessons.chosen(width)
        how = lessons.calibrate(search)
        search = replace(search, theta=how.theta)
        n_held_out = len(lessons.batch) - lessons.n_learned
        found.append(Calibrated(search, enforce, how, n_held_out, trial.changed(search)))
    return found


def calibrated(trial: Trial, chosen: list[Calibrated]) -> list[Contender[Deal]]:
    """The searches with their calibrated thetas, in Table 2."""
    return [trial.lazily(Model.calibrated(each.enforce), each.search, table="2", note=each.note) for each in chosen]
