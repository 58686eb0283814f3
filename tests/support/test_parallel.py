"""Work over a range is done once, in the caller's thread where it is short and in several where it is not."""

from __future__ import annotations

import threading
import time
from collections import Counter

import pytest

from hasten.support import clock
from hasten.support.clock import in_parallel


@pytest.mark.parametrize("n_jobs", [1, 2, 3, 8])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 5, 16, 17, 100, 2500])
@pytest.mark.parametrize("soon", [0.0, 1e-4, 60.0])
def test_each_number_is_run_once(n: int, n_jobs: int, soon: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "SOON", soon)
    done: list[int] = []
    in_parallel(lambda start, stop: done.extend(range(start, stop)), n, n_jobs)
    assert sorted(done) == list(range(n))


def test_short_work_stays_in_the_thread_of_the_caller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "SOON", 60.0)
    threads: Counter[int] = Counter()
    in_parallel(lambda start, stop: threads.update([threading.get_ident()]), 1000, 4)
    assert set(threads) == {threading.get_ident()}


def test_long_work_is_shared_from_the_first_moment_that_it_is_long() -> None:
    threads: dict[int, int] = {}

    def run(start: int, stop: int) -> None:
        time.sleep(0.01)
        threads[start] = threading.get_ident()

    in_parallel(run, 40, 4)
    mine = [start for start, thread in threads.items() if thread == threading.get_ident()]
    assert mine == [0]
    assert len(set(threads.values())) > 2
