"""A cost function network, solved by toulbar2: here, or in a process of its own that can be stopped at any time.

toulbar2 holds the interpreter's lock while it works, and its time limits count processor time. So what must be stopped
by the wall clock runs in another process, which is this file as a script: it reads networks and writes answers, as
lines of JSON. SIGVTALRM, by which toulbar2 tells itself that time is up, stops it from outside as well.

As a script it has nothing but pytoulbar2 and the standard library: it imports nothing of hasten.
"""

from __future__ import annotations

import json
import math
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import IO, Any, NamedTuple, cast

_THREAD = threading.local()
FOREVER = 10**8  # seconds

Function = tuple[list[int], list[float]]  # a scope, and its table


class Found(NamedTuple):
    """What toulbar2 said: the labels, if there are any, their cost, a bound, and whether it was stopped."""

    labels: list[int] | None
    value: float = math.inf
    bound: float = 0.0
    stopped: bool = False


def solve_network(unary: list[list[float]], functions: list[Function], options: Mapping[str, Any], limit: int) -> Found:
    """Minimises functions of one variable, all finite, and of more, in whole seconds of processor time (0: any)."""
    import pytoulbar2

    if not getattr(_THREAD, "ready", False):  # some of its global state is each thread's own
        pytoulbar2.pytb2.init()
        _THREAD.ready = True
    network = pytoulbar2.CFN(resolution=0, verbose=-1)
    for option, value in options.items():
        setattr(pytoulbar2.pytb2.option, option, value)
    try:
        for v, costs in enumerate(unary):
            network.AddVariable(f"v{v}", range(len(costs)))
        for scope, table in functions:
            network.AddFunction(scope, table)
        for v, costs in enumerate(unary):
            network.AddFunction([v], costs)
        found = network.Solve(timeLimit=limit)
    except network.Contradiction:
        return Found(None)
    finally:
        network.CFN.timerStop()
    stopped = bool(network.Option.limited)
    bound = network.GetDDualBound() if stopped or options else 0.0
    labels, value = (None, math.inf) if found is None else found[:2]
    return Found(labels, value, bound, stopped)


def serve() -> None:
    """Answers networks, a line each, until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what toulbar2 prints is not an answer
    for line in sys.stdin:
        signal.signal(signal.SIGVTALRM, signal.SIG_IGN)  # a request to stop that came too late
        unary, functions, options = json.loads(line)
        found = solve_network(unary, functions, options, FOREVER)
        answers.write(json.dumps(found) + "\n")
        answers.flush()


class Helper:
    """A process that solves networks. What it is asked, and what it says, go through pipes."""

    def __init__(self) -> None:
        import subprocess

        self._parent = os.getpid()
        self._process = subprocess.Popen(
            [sys.executable, "-P", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            start_new_session=True,  # so that Ctrl-C is not for it
        )

    def solve(self, unary: list[list[float]], functions: list[Function], options: Mapping[str, Any]) -> Found | None:
        """Solves a network; None if the process ended over it."""
        asked: Any = self._process.stdin
        answers: Any = self._process.stdout
        try:
            asked.write(json.dumps([unary, functions, options]) + "\n")
            asked.flush()
            said = answers.readline()
        except OSError:
            return None
        return Found(*json.loads(said)) if said else None

    def stop(self) -> None:
        """Asks for the best answer so far."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGVTALRM)

    def end(self) -> None:
        """Ends the process, unless it belongs to the parent of a fork."""
        if os.getpid() != self._parent:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError, ValueError):  # what it was never sent, or a thread that still reads
                cast(IO[str], pipe).close()


if __name__ == "__main__":
    serve()
