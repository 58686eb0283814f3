"""Things for worker processes to do; here, where these can import them."""

from __future__ import annotations

import os
import signal
import time

from hasten.errors import CorpusError


def double(n: int) -> int:
    return 2 * n


def slow_when_even(n: int) -> tuple[int, int]:
    time.sleep(0.05 * (n % 2 == 0))
    return n, os.getpid()


def die_at_three(n: int) -> int:
    if n == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return n


def refuse_three(n: int) -> int:
    if n == 3:
        raise CorpusError("three is refused")
    return n


def sleep_long(n: int) -> int:
    time.sleep(600.0 * (n > 0))
    return n
