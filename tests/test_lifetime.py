"""`hasten journal` lists, exports and replays; `hasten demo --lifetime` tells a life and records it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from hasten import cli
from hasten.cascade import Cascade, load
from hasten.commands import lifetime
from hasten.journal import Journal
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import Extraction

run = CliRunner().invoke


@pytest.fixture(scope="module")
def journal(tmp_path_factory):
    path = tmp_path_factory.mktemp("lifetime") / "a.journal"
    news = [replace(each, id=str(n)) for n, each in enumerate(generate(1700, seed=0))]
    with Journal(path, given=True) as journal:
        cascade = Cascade(Extraction(), lambda text: news[int(text.id)], risk=0.2, journal=journal)
        cascade.teach(news[:1500])
        cascade.predict([each.unlabeled() for each in news[1500:]])
        assert cascade.counters.by_student > 20
    return path


def test_a_journal_is_listed_and_exported(journal, tmp_path):
    said = run(cli.app, ["journal", "list", str(journal), "--last", "3"])
    assert said.exit_code == 0, said.output
    assert "1 promotion" in said.output
    with Journal(journal, read_only=True) as rows:
        counts = rows.counts()
        last = [row.number for row in rows.rows(last=3)]
    assert f"{counts.total():,} rows" in said.output
    assert all(f"{n} " in said.output for n in last)
    assert "→ {" in said.output  # the answer beside the input, however long that is
    out = tmp_path / "a.jsonl"
    assert run(cli.app, ["journal", "export", str(journal), str(out), "--kind", "given"]).exit_code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(lines) == counts["given"] > 20
    assert {"at", "input", "answer", "version"} <= set(lines[0]["data"])
    missing = run(cli.app, ["journal", "list", str(tmp_path / "none")])
    assert "There is no journal" in str(missing.exception)


def test_a_journal_teaches_again(journal, tmp_path):
    out = tmp_path / "a.cascade"
    said = run(cli.app, ["journal", "replay", str(journal), "--out", str(out), "--risk", "0.2"])
    assert said.exit_code == 0, said.output
    assert "answers" in said.output
    assert load(out, Extraction(), lambda text: text).trusted


def test_a_journal_without_answers_teaches_nothing(tmp_path):
    path, out = tmp_path / "b.journal", tmp_path / "b.cascade"
    with Journal(path) as journal:
        journal.write([("feedback", {"right": True})])
    said = run(cli.app, ["journal", "replay", str(path), "--out", str(out)])
    assert "no answers of a black box" in str(said.exception)
    assert not out.exists()


def test_a_journal_of_another_task_is_refused(journal, tmp_path):
    said = run(cli.app, ["journal", "replay", str(journal), "-o", str(tmp_path / "a.cascade"), "--task", "tags"])
    assert "row 1 is not of a cascade for Sequence labelling" in str(said.exception)


def test_a_stretch_is_asked_again(journal, tmp_path):
    out = tmp_path / "a.jsonl"
    code = "import json, sys; n = len(json.load(sys.stdin)['spans']);"
    code += "print(json.dumps({'types': ['x'] * n, 'relations': []}))"
    box = f'{sys.executable} -c "{code}"'
    said = run(cli.app, ["journal", "replay", str(journal), "-o", str(out), "--stretch", "1:200", "--black-box", box])
    assert said.exit_code == 0, said.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines
    assert all(1 <= line["number"] <= 200 and set(line["answer"]["types"]) == {"x"} for line in lines)
    assert f"{len(lines)} answers asked again; {len(lines)} were other" in " ".join(said.output.split())
    for stretch, message in (("1-30", "is two numbers"), ("1:30", "who is asked again")):
        more = [] if "who" in message else ["--black-box", "true"]
        wrong = run(cli.app, ["journal", "replay", str(journal), "-o", str(out), "--stretch", stretch, *more])
        assert message in str(wrong.exception)


def test_the_demo_tells_a_life_and_records_it(tmp_path, monkeypatch):
    monkeypatch.setattr(lifetime, "N_INPUTS", 700)
    monkeypatch.setattr(lifetime, "DRIFT", 500)
    said = run(cli.app, ["demo", "--lifetime", "--out", str(tmp_path)])
    assert said.exit_code == 0, said.output
    assert "v1, taught by" in said.output
    assert "of 700 answers were the student's" in " ".join(said.output.split())
    state = json.loads((tmp_path / "lifetime.json").read_text())
    assert state["answers"] == 700
    assert [each["last"] for each in state["windows"]] == list(range(100, 701, 100))
    assert any(mark["kind"] == "version" for mark in state["marks"])
    assert "<script" in (tmp_path / "lifetime.html").read_text()
