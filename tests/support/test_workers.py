"""Processes that share a stream of work."""

import os
import signal
import subprocess
import sys
import time
from itertools import chain, repeat
from pathlib import Path
from types import SimpleNamespace

import duties
import pytest

from hasten.errors import CorpusError, ProblemError, WorkerError
from hasten.support import workers
from hasten.support.workers import AHEAD, in_processes


def test_one_piece_of_work_starts_no_process():
    for jobs in (1, 2):
        assert list(in_processes(duties.double, range(0), jobs)) == []
        assert list(in_processes(duties.slow_when_even, [1], jobs)) == [(1, os.getpid())]


def test_results_are_in_order_the_first_from_here_and_few_pieces_are_under_way():
    taken, seen = 0, []

    def count():
        nonlocal taken
        while True:
            taken += 1
            yield taken

    results = in_processes(duties.slow_when_even, count(), 2)
    for n_seen in range(1, 20):
        seen.append(next(results))
        assert taken <= n_seen + 2 * AHEAD + 1
    results.close()
    assert [n for n, _ in seen] == list(range(1, 20))
    assert seen[0][1] == os.getpid()
    assert os.getpid() not in {pid for _, pid in seen[1:]}


def broken_after(n):
    yield from range(n)
    raise CorpusError("the stream ends")


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    ("n", "error", "before"), [(3, "the stream ends", [0, 1, 2]), (5, "three is refused", [0, 1, 2])]
)
def test_the_first_error_of_work_or_stream_is_raised_after_all_results_before_it(jobs, n, error, before):
    seen = []
    with pytest.raises(CorpusError, match=error):  # noqa: PT012
        for each in in_processes(duties.refuse_three, broken_after(n), jobs):
            seen.append(each)  # noqa: PERF402
    assert seen == before


def test_how_a_worker_ended_is_waited_for():
    """Of two threads that ask, one is told; the other learns it a moment later."""

    class Ended:
        def __init__(self, codes):
            self.codes = iter(codes)

        @property
        def exitcode(self):
            return next(self.codes)

        def join(self, timeout):
            pass

    context = SimpleNamespace(processes=[Ended(chain([None, None], repeat(-signal.SIGKILL)))])
    assert "was killed (SIGKILL)" in workers._obituary(context)


def test_a_worker_that_dies_is_an_error_that_says_so():
    with pytest.raises(WorkerError, match=r"was killed \(SIGKILL\) before its work was done"):
        list(in_processes(duties.die_at_three, range(10), 2))


def test_at_least_one_job():
    with pytest.raises(ProblemError, match="jobs must be at least 1, got 0"):
        list(in_processes(duties.double, range(3), 0))


SCRIPT = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where tests run in the background
sys.path.insert(0, {str(Path(duties.__file__).parent)!r})
import duties
from hasten.support.workers import in_processes
if __name__ == "__main__":
    for n in in_processes(duties.sleep_long, range(9), 2):
        print("begun", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_no_worker_outlives_the_process_that_started_it(tmp_path, number):
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    parent = subprocess.Popen(
        [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
    )
    assert parent.stdout is not None
    assert parent.stdout.readline() == b"begun\n"
    limit = time.monotonic() + 30
    while len(family(parent.pid)) < 3:
        assert time.monotonic() < limit
        time.sleep(0.05)
    if number == signal.SIGINT:
        os.killpg(parent.pid, number)  # as a terminal does: everybody hears of it
    else:
        parent.send_signal(number)
    parent.wait(30)
    while family(parent.pid):
        assert time.monotonic() < limit + 10
        time.sleep(0.05)
    parent.stdout.close()


def family(session: int) -> list[int]:
    """Returns the living processes of a session, but not what only counts shared things for them."""
    found = []
    for each in Path("/proc").glob("[0-9]*"):
        try:
            fields = (each / "stat").read_text().rsplit(")", 1)[1].split()
            if (
                int(fields[3]) == session
                and fields[0] != "Z"
                and b"resource_tracker" not in (each / "cmdline").read_bytes()
            ):
                found.append(int(each.name))
        except OSError:  # it has just ended
            continue
    return found
