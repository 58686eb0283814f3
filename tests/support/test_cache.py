"""A cache keeps what was used last, up to its limit."""

from __future__ import annotations

import pickle
from concurrent.futures import ThreadPoolExecutor

from hypothesis import given
from hypothesis import strategies as st

from hasten.support.threads import Cache


def test_what_was_used_least_recently_goes_first() -> None:
    cache = Cache[str, int](limit=2)
    assert cache.put("a", 1) == cache.put("b", 2) == []
    assert cache.get("a") == 1
    assert cache.put("c", 3) == [2]
    assert ("a" in cache, "b" in cache, "c" in cache) == (True, False, True)


def test_a_value_heavier_than_the_limit_stays_alone() -> None:
    cache = Cache[str, int](limit=10)
    cache.put("light", 1, weight=4)
    assert cache.put("heavy", 2, weight=99) == [1]
    assert cache.get("heavy") == 2
    assert cache.put("light", 1, weight=4) == [2]
    assert cache.weight == 4


def test_what_is_taken_out_weighs_nothing() -> None:
    cache = Cache[str, int](limit=10)
    cache.put("a", 1, weight=6)
    assert (cache.pop("a"), cache.pop("a"), cache.get("a")) == (1, None, None)
    assert cache.put("b", 2, weight=10) == []


def test_a_copy_starts_empty() -> None:
    cache = Cache[str, int](limit=3)
    cache.put("a", 1)
    copy = pickle.loads(pickle.dumps(cache))
    assert (len(copy), copy.limit) == (0, 3)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.booleans())), st.integers(0, 9))
def test_it_holds_the_last_used_that_fit(calls: list[tuple[int, int, bool]], limit: int) -> None:
    cache = Cache[int, int](limit)
    used: list[tuple[int, int]] = []  # keys and weights, the last used last
    for key, weight, get in calls:
        known = [item for item in used if item[0] == key]
        used = [item for item in used if item[0] != key]
        if get:
            assert cache.get(key) == (key if known else None)
            used += known
            continue
        cache.put(key, key, weight)
        used.append((key, weight))
        while sum(each for _, each in used) > limit and len(used) > 1:
            del used[0]
    assert {key for key in range(6) if key in cache} == {key for key, _ in used}
    assert cache.weight == sum(weight for _, weight in used)


def test_threads_may_share_it() -> None:
    cache = Cache[int, int](limit=5)

    def use(start: int) -> bool:
        for i in range(start, start + 2000):
            cache.put(i % 11, i % 11)
            if cache.get(i % 7) not in (None, i % 7):
                return False
        return True

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(use, range(4)))
    assert cache.weight == len(cache) == 5
