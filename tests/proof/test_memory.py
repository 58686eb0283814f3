"""What a proof takes in memory grows with the problem, and not faster."""

from __future__ import annotations

import subprocess
import sys

import pytest

MOST = 300  # MB, for the problem and its proof
PROGRAM = """
import resource
from itertools import pairwise, product
import numpy as np
from hasten import Certifier, Schema

def used():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def chain(n):
    return [(v, w) for v, w in pairwise(range(n))], n

def grid(n):
    across = [(n * r + c, n * r + c + 1) for r, c in product(range(n), range(n - 1))]
    return across + [(n * r + c, n * r + c + n) for r, c in product(range(n - 1), range(n))], n * n

def problem(edges, n, labels, ruled):
    rng = np.random.default_rng(0)
    schema = Schema()
    kind = schema.variable("kind", list(labels))
    pair = schema.factor("pair", one=kind, other=kind)
    shape = schema.structure()
    for _ in range(n):
        shape.add(kind)
    tables = {shape.connect(pair, one=v, other=w): rng.normal(size=pair.shape) for v, w in edges}
    if ruled:
        shape.rule("few", [(v, "a") for v in range(n)], at_most=n // 5)
    return shape.problem(rng.normal(size=shape.n_labels), tables=tables)

certifier = Certifier(max_sweeps=10, max_nodes=200)
certifier(problem(*grid(4), "abc", True))  # what is compiled does not count
before = used()
report = certifier.report(problem(*{shape}))
assert report.n_nodes[0] > 0, "it never branched"
assert report.solutions.valid[0]
print(used() - before)
"""


@pytest.mark.parametrize("shape", ["chain(20_000), 'abc', True", "grid(80), 'abc', False"], ids=["chain", "grid"])
def test_a_proof_of_thousands_of_variables_takes_little_memory(shape: str) -> None:
    pytest.importorskip("resource")
    command = [sys.executable, "-c", PROGRAM.replace("{shape}", shape)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < MOST
