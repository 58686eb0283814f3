"""Work in a thread of its own: its result, its errors, its end at a deadline."""

from __future__ import annotations

import threading
import time

import pytest

from hasten.support.clock import LeftBehindError, Stop, in_parallel, now, run_waiting


def test_a_result_and_an_error_come_through():
    assert run_waiting(lambda: 3, pytest.fail) == 3
    with pytest.raises(KeyError, match="mine"):
        run_waiting(lambda: {}["mine"], pytest.fail)


def test_at_the_deadline_work_is_asked_to_stop_and_its_answer_taken():
    stop = threading.Event()

    def work() -> str:
        assert stop.wait(10)
        return "best so far"

    assert run_waiting(work, stop.set, now() + 0.05) == "best so far"


def test_what_does_not_stop_is_left_behind():
    stop, over = Stop(), threading.Event()
    with pytest.raises(LeftBehindError):
        run_waiting(lambda: over.wait(10), stop.set, now() + 0.05, patience=0.05)
    assert stop.is_set()
    over.set()


def test_an_error_while_waiting_stops_the_work():
    stop = threading.Event()

    def look() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_waiting(lambda: stop.wait(10), stop.set, look=look)
    assert stop.is_set()


def test_a_stop_tells_whoever_listens_and_remembers_for_those_who_come_later():
    told: list[str] = []
    stop = Stop()
    assert not stop.on_set(lambda: told.append("early"))
    stop.set()
    assert told == ["early"]
    assert stop.on_set(lambda: told.append("late"))


@pytest.mark.parametrize("n_jobs", [1, 2, 3])
def test_every_problem_is_run_once_whatever_the_chunks(n_jobs):
    done: list[int] = []
    in_parallel(lambda start, end: done.extend(range(start, end)), 5000, n_jobs)
    assert sorted(done) == list(range(5000))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_may_take_long_is_run_once_too_and_its_errors_are_raised(n_jobs):
    done: list[int] = []
    in_parallel(lambda start, end: done.extend(range(start, end)), 50, n_jobs, seconds=0.1)
    assert sorted(done) == list(range(50))
    with pytest.raises(ZeroDivisionError):
        in_parallel(lambda start, end: print(1 // (start - start)), 50, n_jobs, seconds=0.1)


def test_after_an_error_what_has_not_begun_is_dropped():
    begun: list[int] = []

    def run(start: int, end: int) -> None:
        begun.append(start)
        time.sleep(0.01)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        in_parallel(run, 100_000, 2)
    assert len(begun) < 90
