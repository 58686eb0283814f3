"""A forked child can go on, whatever another thread of its parent was doing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hard
import pytest

from hasten.solvers import available_solvers

SCRIPT = """
import os, threading, time
import numpy as np
from hasten import Schema, Speedup, Trust
from hasten.solvers import make_solver
from hasten.solvers.toulbar2 import Toulbar2Solver
from hasten.support.threads import Cache

schema = Schema()
kind = schema.variable("kind", ["a", "b"])
schema.rule("few", at_most=1, kind="a")
shape = schema.structure()
shape.add(kind), shape.add(kind)
problem = shape.problem([[0.0, 1.0], [0.0, 2.0]])
solver, speedup, cache = make_solver("highs"), Speedup(schema), Cache(8)
slow = make_solver("brute")
asked = Speedup(schema, solver=slow, trust=Trust(prove=False))
locks = [each.lock for each in (speedup._state, asked._state)]
locks += [each._lock for each in (speedup._oracle, asked._oracle, solver, slow, cache)]
toulbar2, another = Toulbar2Solver(interruptible=False), Toulbar2Solver(interruptible=False)
locks.append(toulbar2._lock)
for each in (solver.solve, speedup.predict, asked.predict):
    each(problem)
held = threading.Event()

def hold():
    for lock in locks:
        lock.__enter__()
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
    os._exit(0 if costs == [1.0, 1.0, 1.0] and solver.n_built == 2 and another._lock is toulbar2._lock else 1)
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


HELPED = """
import os, sys
from hard import spin_glass
from hasten.solvers import make_solver

solver, problem = make_solver("toulbar2"), spin_glass(3)
best, mine = solver.solve(problem).cost, solver._child
child = os.fork()
if not child:
    same = solver.solve(problem).cost == best
    sys.exit(0 if same and solver._child is not mine else 1)  # ends its own process, not its parent's
_, status = os.waitpid(child, 0)
same = solver.solve(problem).cost == best
sys.exit(os.waitstatus_to_exitcode(status) if same and solver._child is mine else 3)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.skipif(not available_solvers()["toulbar2"], reason="toulbar2 is not installed")
def test_a_child_leaves_its_parent_the_process_in_which_toulbar2_works():
    tests = str(Path(hard.__file__).parent)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([tests, *sys.path])}
    done = subprocess.run([sys.executable, "-c", HELPED], capture_output=True, text=True, timeout=300, env=environment)
    assert done.returncode == 0, done.stderr
