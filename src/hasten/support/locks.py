"""Locks that a forked child can take, whatever another thread of its parent was doing.

A fork copies every lock as it is, but only the thread that forks: a lock that another one held would never be free
again. So whoever owns a lock is told, in the child, to make a new one.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class LockOwner(Protocol):
    """Has locks."""

    def _renew_locks(self) -> None:
        """Makes new ones, in a forked child; no other thread is there."""
        ...


_OWNERS: WeakSet[LockOwner] = WeakSet()


def renew_after_fork(owner: LockOwner) -> None:
    """Sees that an owner makes new locks in forked children, as long as it lives."""
    _OWNERS.add(owner)


def _renew() -> None:
    for owner in list(_OWNERS):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew)
