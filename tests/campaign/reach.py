"""Says how often the problems of each family reach each step of a proof, with the settings of their trials.

    python tests/campaign/reach.py --count 500 --seed 0 [--family cuts]

A step reaches a problem if its driver is run on it, and settles it if it is open before and not after. `demand` is
how many need a member of a family to be stated.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from constants import lowered
from demand import n_stated
from proofs import FAMILIES, SIZE, Certifier, build_all, draw_trial

from hasten.kernels.layout import VARIABLE
from hasten.proof.outcome import OPEN, OUTCOME, UNFIXED
from hasten.proof.plan import Work

NAMES = {  # of drivers, in the words of this campaign
    "cut_some": "cut",
    "look_at_some": "look",
    "eliminate_some": "eliminate",
    "eliminate_alike": "lanes",
    "count_some": "count",
    "fix_some": "persistency",
    "certify_some": "sweep",
    "certify_ruled": "rules",
    "eliminate_buckets": "buckets",
}


@contextmanager
def watched(counts: Counter[str]) -> Iterator[None]:
    """Counts what steps do to the problems of batches while it lasts: `cut` and `cut settled`."""
    plain = Work.run

    def run(work: Work, driver: Any, problems: Any, *given: Any, **options: Any) -> None:
        plain(work, driver, problems, *given, **options)
        name = NAMES[driver.__name__]
        counts[name] += len(problems)
        counts[f"{name} settled"] += int(np.sum(work.proofs.facts[OUTCOME, problems] != OPEN))
        if name == "persistency":
            place, labels = work.arrays.place[:, VARIABLE], work.fixing.labels
            fixed = (bool((labels[place[p] : place[p + 1]] != UNFIXED).any()) for p in problems)
            counts["persistency fixed"] += sum(fixed)

    with patch.object(Work, "run", run):
        yield


def reach(family: str, seed: int, n_trials: int) -> Counter[str]:
    """Returns how many of some trials' problems reach each step, and which it settles."""
    counts = Counter[str]()
    for number in range(n_trials):
        trial = draw_trial(family, seed, number)
        settings = trial["settings"]
        with lowered(settings["constants"]):
            with watched(counts):
                effort = settings["max_join"], settings["max_sweeps"], settings["max_nodes"]
                Certifier(*effort)(build_all(trial["problems"]))
            demanding = [each for each in trial["problems"] if each.get("demanded") is not None]
            counts["demand"] += sum(n_stated(each) > 0 for each in demanding)
        counts["problems"] += len(trial["problems"])
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=500, help="problems of each family")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    print(f"seed {options.seed}")
    for family in options.family or FAMILIES:
        counts = reach(family, options.seed, -(-options.count // SIZE))
        n = counts.pop("problems")
        print(f"{family}: " + ", ".join(f"{what} {100 * m / n:.1f}%" for what, m in counts.items() if m), flush=True)


if __name__ == "__main__":
    main()
