"""A journal keeps what it acknowledged, whatever happens to its process, and stays within its bounds."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hasten.journal
from hasten.errors import ModelError, ProblemError, WriteError
from hasten.journal import KINDS, Journal

DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=40)
@given(writes=st.lists(st.lists(st.tuples(st.sampled_from(KINDS[:3]), DATA), max_size=8), max_size=5))
def test_what_is_written_is_read_again(writes, tmp_path_factory):
    path = tmp_path_factory.mktemp("journal") / "a.journal"
    written = []
    with Journal(path) as journal:
        for rows in writes:
            written += rows
            assert journal.write(rows) == len(written)
        found = list(journal.rows())
    assert [(row.kind, row.data) for row in found] == written
    assert [row.number for row in found] == list(range(1, len(written) + 1))
    with Journal(path, read_only=True) as journal:
        assert list(journal.rows()) == found
        for kind in KINDS:
            assert list(journal.rows(kind)) == [row for row in found if row.kind == kind]
        for n in range(5):
            assert list(journal.rows(since=n)) == found[n:]
            assert list(journal.rows(last=n)) == found[max(0, len(found) - n) :]
            assert list(journal.rows(KINDS[0], last=n)) == [row for row in found if row.kind == KINDS[0]][-n or 99 :]
        assert sum(journal.counts().values()) == len(found)


def test_a_write_is_all_or_nothing(tmp_path):
    with Journal(tmp_path / "a.journal") as journal:
        with pytest.raises(ProblemError, match="no rows of kind 'secret'"):
            journal.write([("asked", 1), ("secret", 2)])
        with pytest.raises(TypeError):
            journal.write([("asked", 1), ("asked", object())])
        assert list(journal.rows()) == []
        assert journal.write([]) == 0


def test_old_rows_are_dropped_where_the_file_would_grow_too_large(tmp_path):
    path, text = tmp_path / "a.journal", "x" * 1000
    with Journal(path, max_bytes=2**18) as journal:
        last = max(journal.write([("asked", [n, text]) for _ in range(10)]) for n in range(200))
        found = list(journal.rows())
        assert last == 2000
        assert found[-1].number == last
        assert [row.number for row in found] == list(range(found[0].number, last + 1))
        assert 150 < len(found) < 262
        assert journal.write([("given", text * 500)]) == 2001  # alone it is larger than the bound
        assert [row.number for row in journal.rows()] == [2001]
        journal.write([("given", "short")])
        assert [row.number for row in journal.rows()] == [2002]
    assert path.stat().st_size <= 2**18


def test_old_rows_are_dropped_by_age(tmp_path, monkeypatch):
    now = 1e9
    monkeypatch.setattr(time, "time", lambda: now)
    with Journal(tmp_path / "a.journal", max_age=100) as journal:
        for _ in range(50):
            journal.write([("note", now)])
            now += 10
        assert 10 <= len(list(journal.rows())) <= 13
        assert next(journal.rows()).data >= now - 100 / 0.9 - 20
        now += 1e6
        journal.write([("note", now)])
        assert [row.data for row in journal.rows()] == [now]


def test_others_read_while_one_writes(tmp_path):
    path = tmp_path / "a.journal"
    with Journal(path) as journal:
        journal.write([("asked", n) for n in range(3000)])
        with Journal(path, read_only=True) as other:
            rows = other.rows()
            assert next(rows).data == 0
            writer = threading.Thread(target=lambda: [journal.write([("asked", n)]) for n in range(3000, 3050)])
            writer.start()
            writer.join()
            assert [row.data for row in rows] == list(range(1, 3050))
            with pytest.raises(ProblemError, match="opened to read"):
                other.write([("asked", 1)])
    with pytest.raises(ProblemError, match="or is closed"):
        journal.write([("asked", 1)])


KILLED = """
import sys
from hasten.journal import Journal
journal, n = Journal(sys.argv[1], max_bytes=2**17), int(sys.argv[2])
while True:
    print(journal.write([("asked", [n, k, "x" * 200]) for k in range(3)]), n, flush=True)
    n += 1
"""


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path):
    path, n = tmp_path / "a.journal", 0
    for run in range(5):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(path), str(n)], stdout=subprocess.PIPE, text=True)
        lines = [process.stdout.readline() for _ in range(1 + 40 * run)]
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().rpartition("\n")[0].splitlines()
        process.stdout.close()
        process.wait()
        number, n = map(int, [*lines, *rest][-1].split())
        with Journal(path) as journal:
            found = list(journal.rows())
        assert found[-1].number >= number
        assert [row.number for row in found] == list(range(found[0].number, found[-1].number + 1))
        assert len(found) % 3 == found[-1].number % 3 or found[0].number > 1
        acknowledged = {row.number: row.data for row in found}
        assert acknowledged[number][:2] == [n, 2]
        n = found[-1].data[0] + 1


def test_an_older_file_is_migrated_and_a_newer_one_refused(tmp_path, monkeypatch):
    path = tmp_path / "a.journal"
    with Journal(path) as journal:
        journal.write([("note", "old")])
    monkeypatch.setattr(
        hasten.journal, "MIGRATIONS", (*hasten.journal.MIGRATIONS, "ALTER TABLE row ADD COLUMN more TEXT DEFAULT 'm'")
    )
    with pytest.raises(ModelError, match=r"of an older hasten\. Open it once to write"):
        Journal(path, read_only=True)
    with Journal(path) as journal:
        journal.write([("note", "new")])
        assert [row.data for row in journal.rows()] == ["old", "new"]
    with sqlite3.connect(path) as direct:
        assert direct.execute("SELECT more FROM row").fetchall() == [("m",), ("m",)]
    direct.close()
    monkeypatch.undo()
    for read_only in (True, False):
        with pytest.raises(ModelError, match=r"newer hasten \(format 3\)\. Update hasten"):
            Journal(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [True, False])
def test_a_file_that_is_no_journal_is_refused_and_left_alone(tmp_path, read_only):
    text, foreign = tmp_path / "text", tmp_path / "foreign.db"
    text.write_bytes(b"not a database, but long enough to be one" * 100)
    with sqlite3.connect(foreign) as direct:
        direct.execute("CREATE TABLE mine (x)")
    direct.close()
    for path, message in ((text, "is no journal, or is damaged"), (foreign, "no journal of hasten")):
        before = path.read_bytes()
        with pytest.raises(ModelError, match=message):
            Journal(path, read_only=read_only)
        assert path.read_bytes() == before
    with pytest.raises(WriteError if not read_only else ModelError, match="no_such_directory"):
        Journal(tmp_path / "no_such_directory" / "a.journal", read_only=read_only)


def test_a_damaged_journal_says_so(tmp_path):
    path = tmp_path / "a.journal"
    with Journal(path) as journal:
        journal.write([("asked", "x" * 500) for _ in range(500)])
    data = bytearray(path.read_bytes())
    data[20000:200000] = os.urandom(180000)
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"damaged: .*start anew"):
        list(Journal(path, read_only=True).rows())


@pytest.mark.parametrize("settings", [{"max_bytes": 10}, {"max_bytes": "much"}, {"max_age": -1}, {"max_age": "old"}])
def test_bounds_are_checked(tmp_path, settings):
    with pytest.raises(ProblemError, match=next(iter(settings))):
        Journal(tmp_path / "a.journal", **settings)
    assert not list(tmp_path.iterdir())


def test_rows_are_exported(tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    with Journal(tmp_path / "a.journal") as journal:
        journal.write([("asked", {"input": n, "answer": b"\0"}) for n in range(1500)] + [("note", "ä")])
        assert journal.export(tmp_path / "a.jsonl") == 1501
        assert journal.export(tmp_path / "a.parquet", kind="asked", since=500) == 1000
        rows = list(journal.rows())
    lines = [json.loads(line) for line in Path(tmp_path / "a.jsonl").read_text().splitlines()]
    assert lines[-1] == {"number": 1501, "time": rows[-1].time, "kind": "note", "data": "ä"}
    assert lines[3]["data"] == {"input": 3, "answer": "AA=="}
    table = parquet.read_table(tmp_path / "a.parquet").to_pylist()
    assert [row["number"] for row in table] == list(range(501, 1501))
    assert json.loads(table[0]["data"]) == {"input": 500, "answer": "AA=="}
    assert table[0]["time"].timestamp() == pytest.approx(rows[500].time, abs=1e-5)
