"""Two tiers, one answer: interpreted and compiled drivers agree to the last bit, and a few problems compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ANSWER = """
import sys
import numpy as np
import hasten
from hasten.search.reduced import ReducedSearch
from hasten.search.constrained import ConstrainedSearch
from hasten.paper.demo import running_example

shape = running_example().structure
ruled = shape.with_rules([hasten.Rule.of("few", [(0, "person"), (1, "person")], at_most=1)])
for structure in (shape, ruled):
    for seed in range({n}):
        problem = structure.problem(np.random.default_rng(seed).normal(size=structure.n_labels))
        answers = [hasten.Certifier()(problem)]
        if structure is shape:
            searches = (hasten.greedy(), hasten.BeamSearch(3), hasten.BeamSearch(2, look_ahead=True))
            answers += [search(problem) for search in (*searches, ConstrainedSearch(), ReducedSearch())]
        for answer in answers:
            bound = getattr(answer, "bound", None)
            print([*answer.labels], float(answer.cost).hex(), None if bound is None else float(bound).hex())
print("numba" in sys.modules, file=sys.stderr)
"""


def answers(tier: str, n: int) -> tuple[str, str]:
    """Returns the answers of a process of its own, and what it said on the error stream."""
    environment = os.environ | {"HASTEN_TIER": tier}
    command = [sys.executable, "-W", "error", "-c", ANSWER.format(n=n)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_both_tiers_give_the_same_bits_without_warnings() -> None:
    interpreted, said = answers("interpreted", 12)
    assert said == "False\n"
    assert interpreted == answers("compiled", 12)[0]
    assert len(interpreted.splitlines()) == 12 * 7


@pytest.mark.parametrize("tier", ["auto", "interpreted"])
def test_a_few_small_problems_need_no_compiler(tier: str) -> None:
    assert answers(tier, 1)[1] == "False\n"
