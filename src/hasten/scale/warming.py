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
    """Lets a work compile, or load, what it needs, while no other process of this node does."""
    with _alone(os.path.dirname(hasten.kernels.__file__)):
        work.warm()


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Holds a lock that all processes of a user on this node share."""
    if fcntl is None:
        yield
        return
    user = os.getuid()
    short = hashlib.sha256(f"{user} {name}".encode()).hexdigest()[:16]
    file = os.open(Path(tempfile.gettempdir()) / f"hasten-{short}.lock", os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)
