"""A forked child can go on, whatever another thread of its parent was doing."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, threading, time
import numpy as np
from hasten import Schema, Speedup
from hasten.solvers import make_solver
from hasten.solvers.toulbar2 import Toulbar2Solver
from hasten.support.cache import Cache

schema = Schema()
kind = schema.variable("kind", ["a", "b"])
schema.rule("few", at_most=1, kind="a")
shape = schema.structure()
shape.add(kind), shape.add(kind)
problem = shape.problem([[0.0, 1.0], [0.0, 2.0]])
solver, speedup, cache = make_solver("highs"), Speedup(schema), Cache(8)
slow = make_solver("brute")
asked = Speedup(schema, solver=slow, prove=False)
locks = [speedup._lock, asked._lock, solver._lock, slow._lock, cache._lock, Toulbar2Solver()._lock]
toulbar2 = Toulbar2Solver()
for each in (solver.solve, speedup.predict, asked.predict):
    each(problem)
held = threading.Event()

def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    time.sleep(600)

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if not child:
    cache.put("one", 1)
    costs = [solver.solve(problem).cost, speedup.predict(problem).cost, asked.predict(problem).cost]
    with toulbar2._lock:
        pass
    os._exit(0 if costs == [1.0, 1.0, 1.0] and solver.n_built == 2 and Toulbar2Solver()._lock is toulbar2._lock else 1)
for _ in range(600):
    done, status = os.waitpid(child, os.WNOHANG)
    if done:
        os._exit(os.waitstatus_to_exitcode(status))
    time.sleep(0.1)
os.kill(child, 9)
os._exit(2)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_child_takes_locks_that_another_thread_held():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, "it hangs" if done.returncode == 2 else done.stderr
