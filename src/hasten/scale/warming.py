"""Compiling what a work needs once per node, not once per worker: the first compiles, the others wait and load."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import hasten.kernels
from hasten.scale.work import Work

try:
    import fcntl
except ImportError:  # without locks each compiles for itself
    fcntl = None  # type: ignore[assignment]


def warm_once_per_node(work: Work) -> None:
    """Lets a work compile, or load, what it needs: the first of this node alone, then the others all at once."""
    with _first_alone(os.path.dirname(hasten.kernels.__file__)):
        work.warm()


@contextmanager
def _first_alone(name: str) -> Iterator[None]:
    """Holds a lock of all processes of a user on this node: the first for itself, the others together after it."""
    if fcntl is None:
        yield
        return
    user = os.getuid()
    short = hashlib.sha256(f"{user} {name}".encode()).hexdigest()[:16]
    file = os.open(Path(tempfile.gettempdir()) / f"hasten-{short}.lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            fcntl.flock(file, fcntl.LOCK_SH)
        yield
    finally:
        os.close(file)
