"""The lifetime that the page shows: totals hold while windows are merged, and memory is bounded."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hasten.serve.lifetime import MOST_MARKS, MOST_RECENT, MOST_WINDOWS, Answered, Lifetime, recorded_page


def an_answer(n: int) -> Answered:
    called = n % 3 == 0
    source = "black box" if called else "student"
    return Answered(f"input {n}", "label", source, 1e-3 * (n + 1), called, n % 2 == 0 if called else None, "A check.")


@given(st.lists(st.integers(0, 400), max_size=12), st.integers(1, 5))
def test_windows_span_all_answers_and_sum_up(sizes, per_window):
    life, n = Lifetime({}, per_window=per_window), 0
    for size in sizes:
        life.answered([an_answer(n + each) for each in range(size)])
        n += size
    state = life.state()
    windows, total = state["windows"], state["total"]
    assert len(windows) <= MOST_WINDOWS
    assert [each["first"] for each in windows] == [1, *(each["last"] + 1 for each in windows)][: len(windows)]
    assert state["answers"] == n == (windows[-1]["last"] if windows else 0)
    assert sum(sum(each["by"].values()) for each in windows) == n
    assert total["calls"] == len(range(0, n, 3)) == sum(each["calls"] for each in windows)
    if n:
        audited = range(0, n, 3)
        assert total["agreement"]["n"] == len(audited)
        assert total["agreement"]["estimate"] == sum(each % 2 == 0 for each in audited) / len(audited)
    json.dumps(state)


def test_times_are_known_to_a_fifth():
    life = Lifetime({})
    life.answered([an_answer(n) for n in range(1000)])  # 1 ms to 1 s, evenly
    found = life.state()["total"]["seconds"]
    assert found["median"] == pytest.approx(0.5, rel=0.2)
    assert found["p95"] == pytest.approx(0.95, rel=0.2)


def test_nothing_new_is_sent_twice():
    life = Lifetime({}, lambda: {"trusted": True})
    life.answered([an_answer(0)])
    state = life.state()
    assert set(life.state(state["revision"])) == {"revision", "now", "trust"}
    life.mark("version", "v1", "v1 answers from now on.")
    assert life.state(state["revision"])["marks"][0]["at"] == 1


def test_only_recent_inputs_are_kept():
    life = Lifetime({})
    for n in range(5 * MOST_RECENT):
        each = an_answer(n)
        each.input = {"number": n}
        life.answered([each])
        life.mark("note", "", str(n))
    assert len(life.inputs) == len(life.recent) == MOST_RECENT
    assert len(life.marks) == MOST_MARKS
    assert life.input(5 * MOST_RECENT) == {"number": 5 * MOST_RECENT - 1}
    assert life.input(1) is None
    assert [each["number"] for each in life.state()["recent"]][:2] == [5 * MOST_RECENT, 5 * MOST_RECENT - 1]


def test_an_agreement_borrows_audits_of_earlier_windows_until_it_has_enough():
    life = Lifetime({}, per_window=20)
    for n in range(200):
        life.answered([Answered("", "", "student", 1.0, agreed=n < 100 if n % 2 else None)])
    ns = [each["agreement"]["n"] for each in life.state()["windows"]]
    assert ns == [10, 20, *[30] * 8]
    assert life.state()["windows"][-1]["agreement"]["estimate"] == 0.0


def test_words_of_a_recorded_page_cannot_end_its_data():
    life = Lifetime({"name": "</script><script>alert(1)</script>"})
    page = recorded_page(life.state())
    assert "</script><script>alert" not in page
    assert page.count("</script>") == 2
