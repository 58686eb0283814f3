"""Any task gets the whole experiment, its report and its command; `docs/new-task.md` is such a task."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

from hasten import cli
from hasten.commands.experiments import find_task
from hasten.errors import CorpusError, ProblemError
from hasten.tasks.evaluation import comparison as report
from hasten.tasks.evaluation.comparison import CERTIFIED, ILP, Comparison, show_comparison
from hasten.tasks.tagging import corpus as made_up
from hasten.tasks.tagging.model import Tagging

PAGE = Path(__file__).parents[2] / "docs" / "new-task.md"
run = CliRunner().invoke


class Balanced(HTMLParser):
    """Reads a page, and fails where a tag is closed that was not opened last."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        if tag not in ("meta", "rect", "path", "circle", "polyline"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "path", "circle", "polyline"):
            assert self.open.pop() == tag


@pytest.fixture(scope="module")
def results():
    sentences = list(made_up.generate(60, 0, "bio"))
    task = Tagging(("at most 2 B-person", "at least 1 B-*"), bio=True, epochs=2)
    return Comparison(task, sentences, runs=1, seeds=2, source="<news>", synthetic=True).run()


def rows_of(results):
    return {row["model"]: row for row in results["rows"]}


def test_certified_is_the_ilp_and_others_need_not_be(results):
    rows = rows_of(results)
    assert list(rows) == [ILP, "greedy search", "beam search", "speedup", "Viterbi", CERTIFIED]
    assert rows[CERTIFIED]["exact_match"] == rows[ILP]["exact_match"] == rows[CERTIFIED]["validity"] == 1.0
    assert rows["Viterbi"]["exact_match"] < 1.0  # the rules are beyond it
    assert rows[CERTIFIED]["entity F1 gold"] == rows[ILP]["entity F1 gold"]
    for row in rows.values():
        for score in ("accuracy gold", "entity F1 gold", "accuracy ilp", "entity F1 ilp"):
            low, high = row["interval"][score]
            assert 0.0 <= low <= row[score] <= high <= 1.0
            assert score in row["std"]


def test_the_page_is_balanced_escaped_and_needs_nothing_else(results):
    page = report.render(json.loads(json.dumps(results)))
    Balanced(page)
    assert "&lt;news&gt;" in page
    assert "<script" not in page
    assert not re.search(r"https?://(?!www\.w3\.org)", page)
    assert "Synthetic data." in page
    assert "exact match of Viterbi" in page


def test_an_exact_peer_is_compared_by_speed():
    found = Comparison(Tagging(epochs=1), list(made_up.generate(20, 0)), runs=1).run()
    assert rows_of(found)["Viterbi"]["exact_match"] == 1.0
    assert "as fast as Viterbi" in report.render(found)


@pytest.mark.parametrize("found", [{}, {"rows": []}, {"rows": [{"model": "certified"}], "scores": ["accuracy"]}])
def test_what_is_missing_leaves_a_page(found):
    Balanced(report.render(found))


def test_the_terminal_has_eighty_columns(results):
    console = Console(record=True, width=80)
    show_comparison(results, console)
    shown = console.export_text()
    assert "certified" in shown
    assert "…" not in shown


def test_texts_to_test_on_may_be_given():
    every = list(made_up.generate(30, 0))
    found = Comparison(Tagging(epochs=1), every[:20], every[20:], runs=1).run()
    assert (found["about"]["n_train"], found["about"]["n_test"]) == (20, 10)


def test_too_little_is_refused():
    for settings in (
        {"texts": []},
        {"texts": [1, 2, 3]},
        {"texts": [1] * 9, "runs": 0},
    ):
        with pytest.raises(CorpusError):
            Comparison(Tagging(), **settings)


def test_the_task_of_the_page_is_short_and_gets_a_command(tmp_path, monkeypatch):
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    assert len(code.splitlines()) < 100
    (tmp_path / "truecasing.py").write_text(code)
    (tmp_path / "news.txt").write_text("\n".join(" ".join(each.words) for each in made_up.generate(30, 1)))
    monkeypatch.chdir(tmp_path)
    done = run(cli.app, ["compare", "truecasing:Truecasing", "news.txt", "--out", "out", "--runs", "1"])
    assert done.exit_code == 0, done.output
    found = json.loads((tmp_path / "out" / "results.json").read_text())
    assert found["title"] == "Truecasing"
    assert rows_of(found)["certified"]["exact_match"] == 1.0
    Balanced((tmp_path / "out" / "report.html").read_text())


def test_a_task_may_have_rules_with_a_price():
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)[0]
    soft = code.replace('at_least=1, case="Capital"', 'at_least=3, case="Capital", price=1.0, per_unit=True')
    assert soft != code
    page: dict[str, object] = {}
    exec(compile(soft, "page", "exec"), page)
    news = [" ".join(each.words) for each in made_up.generate(30, 1)]
    found = Comparison(page["Truecasing"](), news, runs=1).run()
    assert rows_of(found)["certified"]["exact_match"] == 1.0
    assert found["about"]["variables"] == sum(
        len(news[n].split()) for n in np.random.default_rng(0).permutation(30)[21:]
    )
    Balanced(report.render(found))


@pytest.mark.parametrize("name", ["nothing", "json:dumps", "no_such_module:Task", "json:Task"])
def test_what_is_not_a_task_is_refused_in_words(name):
    with pytest.raises(ProblemError):
        find_task(name)


def test_the_tag_commands_from_corpus_to_report(tmp_path):
    corpus, model, out = tmp_path / "a.conll", tmp_path / "m", tmp_path / "out.jsonl"
    lines = [
        "\n".join(f"{w} {t}" for w, t in zip(s.words, s.tags, strict=True)) for s in made_up.generate(60, 0, "bio")
    ]
    corpus.write_text("\n\n".join(lines))
    dev = tmp_path / "dev.conll"
    dev.write_text("\n\n".join(lines[:20]))
    rule = ["--rule", "at most 2 B-person", "--bio"]
    trained = run(cli.app, ["tag", "train", str(corpus), "-o", str(model), "--epochs", "2", "--dev", str(dev), *rule])
    assert trained.exit_code == 0, trained.output
    assert "sentences break the rules." in trained.output
    assert "every entity" in trained.output
    done = run(cli.app, ["tag", "predict", str(model), str(corpus), str(out)])
    assert done.exit_code == 0, done.output
    tagged = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(tagged) == 60
    assert all(line["proved"] and line["tags"].count("B-person") <= 2 for line in tagged)
    free = run(cli.app, ["tag", "evaluate", str(model), str(corpus), "--no-rules", "-o", str(tmp_path / "e")])
    assert free.exit_code == 0, free.output
    Balanced((tmp_path / "e" / "evaluation.html").read_text())
    both = run(cli.app, ["tag", "evaluate", str(model), str(corpus), "--no-rules", "--bio"])
    assert isinstance(both.exception, ProblemError)
    seen = run(cli.app, ["tag", "compare", "--bio", "-o", str(tmp_path / "c"), "--runs", "1", "--epochs", "1"])
    assert seen.exit_code == 0, seen.output
    assert json.loads((tmp_path / "c" / "results.json").read_text())["about"]["synthetic"]
