"""A cache that stays small: what was used last is kept, up to a weight in all."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

from hasten.support.threads import Lock

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
