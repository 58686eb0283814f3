"""Says how often the problems of each family reach each step of a proof, with the settings of their trials.

    python tests/campaign/reach.py --count 500 --seed 0 [--family cuts]

A step reaches a problem if its driver is run on it, and settles it if it is open before and not after. `demand` is
how many need a member of a family to be stated.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
from constants import lowered
from demand import n_stated
from proofs import FAMILIES, SIZE, Certifier, build_all, draw_trial

from hasten.kernels.layout import VARIABLE
from hasten.kernels.proof.outcome import OPEN, OUTCOME, UNTRIED, Proofs
from hasten.kernels.thin import LOOSE
from hasten.proof import branching, cutting, eliminating, roofing, thinning

# Where each driver is called from, and the place of the problems among what it is given.
DRIVERS = {
    "cut": (cutting, "cut_some", 2),
    "look": (eliminating, "look_at_some", 1),
    "eliminate": (eliminating, "eliminate_some", 2),
    "abreast": (eliminating, "eliminate_alike", 2),
    "count": (eliminating, "count_some", 2),
    "roof": (roofing, "fix_some", 2),
    "sweep": (branching, "certify_some", 4),
    "rules": (branching, "certify_ruled", 4),
    "thin": (thinning, "eliminate_thin", 3),
}


@contextmanager
def watched(counts: Counter[str]) -> Iterator[None]:
    """Counts what steps do to the problems of batches while it lasts: `cut` and `cut settled`."""

    def watch(name: str, run: Callable[..., None], place: int, *given: Any) -> None:
        problems, proofs = given[place], Proofs(*given[place + 1])  # as a plain tuple or a named one
        run(*given)
        counts[name] += len(problems)
        counts[f"{name} settled"] += int(np.sum(~np.isin(proofs.facts[OUTCOME, problems], (OPEN, UNTRIED))))
        if name == "roof":
            place, labels = given[0].place[:, VARIABLE], given[4].labels
            counts["roof fixed"] += sum(bool((labels[place[p] : place[p + 1]] != LOOSE).any()) for p in problems)

    with ExitStack() as stack:
        for name, (module, driver, place) in DRIVERS.items():
            stack.enter_context(patch.object(module, driver, partial(watch, name, getattr(module, driver), place)))
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
