"""The command line as a user meets it."""

import json
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hasten import Status, __version__, cli
from hasten.bound import Certifier
from hasten.demo import running_example, show_running_example
from hasten.search import greedy
from hasten.tasks.entity_relation.formats import read_jsonl, write_jsonl
from hasten.tasks.entity_relation.synthetic import generate

run = CliRunner().invoke


def test_the_running_example_is_proved_and_greedy_fails():
    problem = running_example()
    answer = Certifier()(problem)
    assert answer.names == ["person", "location", "LiveIn", "NoRel"]
    assert answer.status is Status.PROVED
    assert not greedy()(problem).valid
    console = Console(record=True, width=100)
    show_running_example(console)
    shown = console.export_text()
    assert "args: LiveIn needs target=location, got target=person for variable 1" in shown
    assert "Proved optimal without the solver." in shown


def test_help_and_version():
    for command in ("demo", "reproduce", "train", "predict", "convert", "bench", "solvers"):
        assert command in run(cli.app, ["--help"]).output
        assert run(cli.app, [command, "--help"]).exit_code == 0
    assert run(cli.app, ["--version"]).output.strip() == __version__
    assert "brute" in run(cli.app, ["solvers"]).output


def test_train_then_predict_then_convert(tmp_path):
    corpus, text = tmp_path / "gold.jsonl", tmp_path / "text.jsonl.gz"
    write_jsonl(corpus, generate(250, 0))
    write_jsonl(text, generate(300, 1, labelled=False))
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    trained = run(
        cli.app, ["train", "--corpus", str(corpus), "--unlabeled", str(text), "--out", str(model), "--induce"]
    )
    assert trained.exit_code == 0, trained.output
    for mode in ("certified", "search"):
        predicted = run(cli.app, ["predict", str(model), str(text), str(out), "--mode", mode])
        assert predicted.exit_code == 0, predicted.output
        labelled = list(read_jsonl(out))
        assert len(labelled) == 300
        assert all(sentence.types is not None for sentence in labelled)
    plain = tmp_path / "plain.jsonl"
    assert run(cli.app, ["convert", str(out), str(plain), "--unlabelled"]).exit_code == 0
    assert [s.tokens for s in read_jsonl(plain)] == [s.tokens for s in read_jsonl(text)]
    assert json.loads(plain.read_text().splitlines()[0]).keys() <= {"id", "tokens", "pos", "spans"}


def test_demo_leaves_results_and_a_report(tmp_path):
    done = run(cli.app, ["demo", "--sentences", "60", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert "synthetic" in done.output
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    assert results["about"]["synthetic"]
    assert "<html" in (tmp_path / "demo" / "report.html").read_text()


def test_reproduce_reads_a_corpus(tmp_path):
    corpus, text = tmp_path / "gold.jsonl", tmp_path / "text.jsonl"
    write_jsonl(corpus, generate(80, 0))
    write_jsonl(text, generate(80, 1, labelled=False))
    arguments = ["--corpus", str(corpus), "--unlabeled", str(text), "--runs", "1", "--black-box", "independent"]
    done = run(cli.app, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert not json.loads((tmp_path / "out" / "results.json").read_text())["about"]["synthetic"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["predict", "nowhere", "-", "-"], "no tagger, or a damaged one"),
        (["reproduce", "--corpus", "nowhere.jsonl", "--out", "out"], "nowhere.jsonl"),
        (["convert", "nowhere.jsonl", "out.jsonl", "--format", "xml"], "no corpus format 'xml'"),
    ],
)
def test_what_goes_wrong_is_one_line_on_the_error_stream(arguments, words, tmp_path):
    command = [sys.executable, "-m", "hasten.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert words in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
