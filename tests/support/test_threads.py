"""Threads that are kept for the next call."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import pytest

from hasten.support.threads import MAX_IDLE, Work


def done(call):
    work = Work(call)
    work.begin()
    assert work.ended.wait(10)
    return work.result


def test_a_call_is_made_beside_the_caller_and_the_next_one_by_the_same_thread():
    first = done(threading.get_ident)
    assert first != threading.get_ident()
    assert done(threading.get_ident) == first


def test_what_a_call_raises_is_raised_where_its_result_is_asked_for_and_the_thread_goes_on():
    with pytest.raises(KeyError, match="mine"):
        done(lambda: {}["mine"])
    with pytest.raises(SystemExit):
        done(sys.exit)
    assert done(lambda: 3) == 3


def test_calls_at_the_same_time_have_threads_of_their_own_and_few_are_kept():
    n = MAX_IDLE + 3
    together = threading.Barrier(n)
    works = [Work(lambda: together.wait(10)) for _ in range(n)]
    for work in works:
        work.begin()
    assert sorted(work.ended.wait(10) and work.result for work in works) == list(range(n))
    for thread in threading.enumerate():
        if thread.name == "hasten":
            thread.join(0.2)
    assert sum(thread.name == "hasten" for thread in threading.enumerate()) <= MAX_IDLE


def test_an_idle_thread_holds_on_to_nothing():
    class Large:
        pass

    large = Large()
    gone = weakref.ref(large)
    assert done(lambda large=large: type(large).__name__) == "Large"
    del large
    done(lambda: None)  # by the same thread, which has let the first one go before
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_has_threads_of_its_own():
    done(lambda: None)
    child = os.fork()
    if not child:
        work = Work(lambda: 7)
        work.begin()
        os._exit(work.result if work.ended.wait(10) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7


def test_a_process_sees_out_what_it_left_behind():
    script = """
import time
from hasten.support.clock import LeftBehindError, now, run_waiting

def slow():
    time.sleep(0.3)
    print("ended")

try:
    run_waiting(slow, print, now(), patience=0.01)
except LeftBehindError:
    print("left behind")
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["", "left behind", "ended", ""]
