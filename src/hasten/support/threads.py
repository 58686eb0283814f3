"""Calls in threads beside the caller's, which are kept for the next call; locks that outlive a fork; caches.

Starting a thread takes some hundred microseconds, more where a solver's library has something to set up in each; an
idle one is asked in a few dozen.

A fork copies every lock as it is, but only the thread that forks: a lock that another one held would never be free
again. So the owner of a lock is told, in the child, to make a new one.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from contextvars import copy_context
from queue import SimpleQueue
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakSet

Result = TypeVar("Result")
MAX_IDLE = 4  # threads that are kept
AT_EXIT = 5.0  # seconds that work nobody waits for has to end with the process


class Work(Generic[Result]):
    """A call that another thread makes, an idle one or a new one; `ended` is set when it has returned or raised.

    Then `then` is called with the work.
    """

    def __init__(self, call: Callable[[], Result], then: Callable[[Work[Result]], object] = bool) -> None:
        self._call, self._context, self.then = call, copy_context(), then
        self.begun, self.ended = False, threading.Event()
        self._returned: Result | None = None
        self._raised: BaseException | None = None

    def begin(self) -> None:
        """Gives it to a thread that is idle, or else to a new one."""
        try:
            hand = _IDLE.pop()
        except IndexError:
            hand = _Hand()
        _BUSY.add(self)
        hand.given.put(self)
        self.begun = True

    @property
    def result(self) -> Result:
        """The value that the call returned; an error that it raised is raised again."""
        if self._raised is not None:
            raise self._raised
        return self._returned  # type: ignore[return-value]


class _Hand(threading.Thread):
    """A thread that does one work after the other; it is idle again just before it says that one has ended."""

    def __init__(self) -> None:
        super().__init__(name="hasten", daemon=True)
        self.given: SimpleQueue[Work[Any]] = SimpleQueue()
        self.start()

    def run(self) -> None:
        kept = True
        while kept:
            work = self.given.get()
            try:
                work._returned = work._context.run(work._call)
            except BaseException as error:  # raised again where it is waited for
                work._raised = error
            kept = len(_IDLE) < MAX_IDLE
            if kept:
                _IDLE.append(self)
            _BUSY.discard(work)
            work.ended.set()
            work.then(work)
            del work  # and what it returned


_IDLE: list[_Hand] = []  # the last one to end its work is the first to be asked
_BUSY: set[Work[Any]] = set()  # begun, and not ended


@atexit.register
def _see_out() -> None:
    # A solver that calls back when the interpreter is gone ends in a crash.
    until = time.monotonic() + AT_EXIT
    for work in list(_BUSY):
        work.ended.wait(max(0.0, until - time.monotonic()))


class LockOwner(Protocol):
    """Has locks, and makes new ones in a forked child, where no other thread is."""

    def _renew_locks(self) -> None: ...


_OWNERS: WeakSet[LockOwner] = WeakSet()


def renew_after_fork(owner: LockOwner) -> None:
    """Sees that an owner makes new locks in forked children, as long as it lives."""
    _OWNERS.add(owner)


class Lock:
    """A lock for one thread at a time, which may take it again; it is new in a forked child, and in a copy."""

    def __init__(self) -> None:
        self._renew_locks()
        renew_after_fork(self)

    def _renew_locks(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: object) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()


def _begin_anew() -> None:
    _IDLE.clear()  # a forked child has none of its parent's threads
    _BUSY.clear()
    for owner in list(_OWNERS):
        owner._renew_locks()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Cache(Generic[Key, Value]):
    """Values by key; the least recently used are dropped once all together weigh more than `limit`.

    A weight is a number of bytes, or 1 to limit how many there are. The last value put stays, whatever it weighs.
    Threads may share a cache; two that miss the same key at once both make its value, and the later one is kept.

    >>> cache = Cache[str, int](limit=2)
    >>> for key in "abc":
    ...     _ = cache.put(key, ord(key))
    >>> cache.get("a"), cache.get("b")
    (None, 98)
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.weight = 0  # of all that it holds
        self._items: OrderedDict[Key, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """Returns the value of a key, which counts as using it; None if there is none."""
        with self._lock:
            item = self._items.get(key)
            if item is not None:
                self._items.move_to_end(key)
            return item and item[0]

    def put(self, key: Key, value: Value, weight: int = 1) -> list[Value]:
        """Keeps a value, in place of an earlier one of its key; returns the values that had to go for it."""
        dropped = []  # they die outside the lock, where their own clean-up can do no harm
        with self._lock:
            old = self._items.pop(key, None)
            self._items[key] = value, weight
            self.weight += weight - (old[1] if old is not None else 0)
            while self.weight > self.limit and len(self._items) > 1:
                _, (gone, light) = self._items.popitem(last=False)
                self.weight -= light
                dropped.append(gone)
        return dropped

    def pop(self, key: Key) -> Value | None:
        """Drops the value of a key and returns it; None if there is none."""
        with self._lock:
            item = self._items.pop(key, None)
            self.weight -= item[1] if item is not None else 0
            return item and item[0]

    def __reduce__(self) -> tuple[type[Cache[Key, Value]], tuple[int]]:
        return type(self), (self.limit,)  # a copy, or one in another process, starts empty

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: object) -> bool:
        return key in self._items
