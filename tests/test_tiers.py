"""Two tiers, one answer: interpreted and compiled drivers agree to the last bit, and a few problems compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from hasten.jit import driver, kernel, tiers
from hasten.jit.tiers import DRIVERS
from hasten.support.clock import DEADLINE, STOP_ALL, Clock

ANSWER = """
import sys
import numpy as np
import hasten
from hasten.search.beam import BeamSearch
from hasten.search.beam import BeamSearch, ConstrainedSearch
from hasten.paper.demo import running_example

np.seterr(all="raise")
shape = running_example().structure
ruled = shape.with_rules([hasten.Rule.of("few", [(0, "person"), (1, "person")], at_most=1)])
for structure in (shape, ruled):
    for seed in range({n}):
        problem = structure.problem(np.random.default_rng(seed).normal(size=structure.n_labels))
        answers = [hasten.Certifier()(problem)]
        if structure is shape:
            searches = (hasten.greedy(), hasten.BeamSearch(3), hasten.BeamSearch(2, look_ahead=True))
            answers += [search(problem) for search in (*searches, ConstrainedSearch(), BeamSearch(reduce=True))]
        for answer in answers:
            bound = getattr(answer, "bound", None)
            print([*answer.labels], float(answer.cost).hex(), None if bound is None else float(bound).hex())
schema = hasten.Schema()
word = schema.variable("word", ["noun", "verb", "none"])
schema.rule("one verb", at_most=1, word="verb")
line = schema.structure()
for _ in range(4):
    line.add(word)
line.rule("a verb needs a noun", [(0, "verb"), (1, "noun", -1.0)], at_most=0)
for seed in range({n}):
    answer = hasten.Speedup(schema).predict(line.problem(np.random.default_rng(seed).normal(size=12)))
    assert answer.proved
    print([*answer.labels], float(answer.cost).hex())
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
    assert len(interpreted.splitlines()) == 12 * 8


@pytest.mark.parametrize("tier", ["auto", "interpreted"])
def test_three_small_problems_of_each_kind_need_no_compiler(tier: str) -> None:
    assert answers(tier, 3)[1] == "False\n"


def test_without_a_numba_that_can_be_used_answers_are_interpreted_with_one_warning() -> None:
    """As after an upgrade that took away something private: `import hasten` and all answers go on."""
    script = """
import sys
sys.modules["hasten.jit.lowering"] = None
from hasten.jit import tiers
tiers.FREE, tiers.seconds_to_compile = 0.0, lambda function: 0.0
"""
    command = [sys.executable, "-c", script + ANSWER.format(n=20)]
    environment = os.environ | {"HASTEN_TIER": "auto", "NUMBA_CACHE_DIR": os.devnull}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: hasten cannot compile") == 1
    assert done.stdout == answers("interpreted", 20)[0]


@kernel
def count(n: int) -> int:
    """Returns as many as there are."""
    return n


@driver
def fill(rows: Any, first: int, last: int, value: float, rounds: int) -> None:
    """Writes a number to rows, many times over: what the arrays are does not tell how long that takes."""
    for _ in range(count(rounds)):
        for row in range(first, last):
            rows[count(row)] = value


@driver
def wait(rows: Any, stop_flag: Any) -> None:
    """Counts until it is stopped."""
    while stop_flag[STOP_ALL] == 0:
        rows[0] += count(1)


@driver
def go_on(rows: Any, stop_flag: Any) -> None:
    """Looks whether to stop before it begins, and never again."""
    rows[0] = -1.0
    if stop_flag[STOP_ALL] == 0:
        for _ in range(10_000_000):
            rows[0] += count(1)


@pytest.fixture(autouse=True)
def both_tiers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Interprets first, in a process that has compiled before; forgets what a test compiled."""
    monkeypatch.setattr(tiers, "TIER", tiers.AUTO)
    monkeypatch.setattr(tiers.Driver, "_is_kept", False)
    monkeypatch.setattr(tiers, "seconds_to_compile", lambda function: 0.2)
    for each in (fill, wait, go_on):
        each.seconds = each.rate = 0.0
        each.point_to(each._choose)
        each.dispatcher = None
    yield
    for each in (fill, wait, go_on):
        if each in DRIVERS:
            DRIVERS.remove(each)


def test_a_small_call_is_interpreted_and_a_long_one_given_up_and_compiled() -> None:
    rows = np.zeros(4)
    fill(rows, 1, 2, 3.0, 5)
    assert fill.dispatcher is None
    assert rows.tolist() == [0.0, 3.0, 0.0, 0.0]
    began = time.monotonic()
    fill(rows, 0, 4, -0.0, 10**8)
    assert fill.overloads
    assert time.monotonic() - began < 30  # interpreted, it would take minutes
    assert np.signbit(rows).all()
    assert sys.gettrace() is None


def test_what_other_threads_write_stays_when_a_call_is_given_up() -> None:
    """They share arrays, and write to rows of their own."""
    rows, begun = np.zeros(2), threading.Event()
    threads = [threading.Thread(target=lambda: (begun.set(), fill(rows, 0, 1, 1.0, 10**7)))]
    threads[0].start()
    assert begun.wait(5)
    time.sleep(0.05)  # it is being interpreted
    rows[1] = 7.0
    threads[0].join()
    assert rows.tolist() == [1.0, 7.0]


def test_arrays_that_share_memory_are_not_copied_apart() -> None:
    rows = np.arange(4.0)
    assert not tiers._overlap([rows[:2], rows[2:]])
    assert tiers._overlap([rows[:3], rows[2:]])


def test_a_stop_is_heard_by_a_call_that_is_interpreted_and_by_the_one_that_is_compiled_for_it() -> None:
    clock, rows = Clock(together=0.1), np.zeros(1)
    clock.run(lambda: wait(rows, clock.stop_flag()), np.inf)  # too short to compile
    assert wait.dispatcher is None
    assert rows[0] > 0
    slow = Clock(together=1.0)
    slow.run(lambda: wait(rows, slow.stop_flag()), np.inf)
    assert wait.overloads
    assert slow.stopped


def test_a_call_that_is_interpreted_and_takes_no_notice_of_a_stop_is_given_up() -> None:
    clock, rows = Clock(together=0.1), np.zeros(1)
    clock.run(lambda: go_on(rows, clock.stop_flag()), np.inf)
    assert go_on.dispatcher is None
    assert rows[0] == -1.0  # it was begun anew, and stopped at once


def test_a_limit_of_another_thread_does_not_keep_a_call_from_being_compiled() -> None:
    stop_flag, rows = Clock().stop_flag(), np.zeros(1)
    assert stop_flag[DEADLINE] > 10**18
    other = Clock(together=5.0)
    threading.Thread(target=lambda: other.run(lambda: time.sleep(2.0), np.inf), daemon=True).start()
    threading.Timer(2.0, lambda: stop_flag.__setitem__(STOP_ALL, 1)).start()
    wait(rows, stop_flag)
    assert wait.overloads


@pytest.mark.parametrize("tier", ["auto", "interpreted"])
def test_an_interrupt_gets_through(tier: str) -> None:
    code = """
import _thread, threading
import numpy as np
from hasten.jit import driver, kernel
@kernel
def one(x):
    return x
@driver
def forever(rows):
    while one(1):
        rows[0] += 1.0
threading.Timer(0.15, _thread.interrupt_main).start()
try:
    forever(np.zeros(1))
except KeyboardInterrupt:
    print("interrupted")
"""
    environment = os.environ | {"HASTEN_TIER": tier}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "interrupted\n", done.stderr
