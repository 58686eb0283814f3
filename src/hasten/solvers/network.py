"""A cost function network, solved by toulbar2: here, or in a process of its own, for which this file is the script.

toulbar2 holds the interpreter's lock while it works, and its limits count processor time; SIGVTALRM, by which it tells
itself that time is up, stops it from outside. It has nothing but pytoulbar2 and the standard library.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Mapping
from typing import Any, NamedTuple

_THREAD = threading.local()
FOREVER = 10**8  # seconds

Function = tuple[list[int], list[float]]  # a scope, and its table


class Found(NamedTuple):
    """The answer of toulbar2: the labels, if there are any, their cost, a bound, and whether it was stopped."""

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


def answer(request: Any) -> Found:
    """Solves a network in a process of its own (`hasten.support.child`)."""
    signal.signal(signal.SIGVTALRM, signal.SIG_IGN)  # a request to stop that came too late
    unary, functions, options = request
    return solve_network(unary, functions, options, FOREVER)
