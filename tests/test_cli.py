"""The command line as a user meets it."""

import json
import shlex
import signal
import subprocess
import sys
import time

import pytest
from rich.console import Console
from typer.testing import CliRunner

from hasten import Status, __version__, cli
from hasten.paper.demo import running_example, show_running_example
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate

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


def test_a_flag_has_no_type_in_the_help():
    for command in (["--help"], ["convert", "--help"], ["tag", "train", "--help"]):
        assert "bool" not in run(cli.app, command).output


PROGRAM = "Minimize\n obj: x + y\nSubject To\n c1: x + y >= {}\nBinary\n x y\nEnd\n"


def test_a_program_that_is_infeasible_says_so_and_fails(tmp_path):
    fine, wrong = tmp_path / "fine.lp", tmp_path / "wrong.lp"
    fine.write_text(PROGRAM.format(1))
    wrong.write_text(PROGRAM.format(3))
    for files in ([wrong], [fine, wrong]):
        said = run(cli.app, ["solve", *map(str, files)])
        assert said.exit_code == 3
        assert "Infeasible. No labelling satisfies the constraints." in said.output
    assert run(cli.app, ["solve", str(fine)]).exit_code == 0


def test_every_command_makes_the_directory_it_writes_to(tmp_path):
    program, text = tmp_path / "fine.lp", tmp_path / "text.jsonl"
    program.write_text(PROGRAM.format(1))
    write_jsonl(text, generate(3, 1, labelled=False))
    assert run(cli.app, ["solve", str(program), "--out", str(tmp_path / "one" / "x")]).exit_code == 0
    assert run(cli.app, ["convert", str(text), str(tmp_path / "two" / "y.jsonl")]).exit_code == 0
    assert (tmp_path / "one" / "x").exists()
    assert (tmp_path / "two" / "y.jsonl").exists()
    broken = run(cli.app, ["convert", str(tmp_path / "none.jsonl"), str(tmp_path / "three" / "y.jsonl")])
    assert broken.exit_code
    assert not (tmp_path / "three").exists()


def test_train_then_predict_then_convert(tmp_path):
    corpus, text = tmp_path / "gold.jsonl", tmp_path / "text.jsonl.gz"
    write_jsonl(corpus, generate(250, 0))
    write_jsonl(text, generate(300, 1, labelled=False))
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    trained = run(cli.app, ["train", str(corpus), "--unlabeled", str(text), "--out", str(model), "--induce"])
    assert trained.exit_code == 0, trained.output
    assert "theta" not in trained.output.lower()  # there was not enough text to calibrate it, and nobody asked
    for mode in ("certified", "search"):
        predicted = run(cli.app, ["predict", str(model), str(text), str(out), "--mode", mode])
        assert predicted.exit_code == 0, predicted.output
        labelled = list(read_corpus(out, "jsonl"))
        assert len(labelled) == 300
        assert all(sentence.types is not None for sentence in labelled)
        assert all(json.loads(line)["proved"] == (mode == "certified") for line in out.read_text().splitlines())
    plain = tmp_path / "plain.jsonl"
    assert run(cli.app, ["convert", str(out), str(plain), "--unlabeled"]).exit_code == 0
    assert [s.tokens for s in read_corpus(plain, "jsonl")] == [s.tokens for s in read_corpus(text, "jsonl")]
    assert json.loads(plain.read_text().splitlines()[0]).keys() <= {"id", "tokens", "pos", "spans"}


def test_demo_leaves_results_and_a_report(tmp_path):
    done = run(cli.app, ["demo", "--sentences", "60", "--out", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert "synthetic" in done.output
    assert [line for line in done.output.split("Wrote")[0].splitlines() if len(line) > 80] == []
    results = json.loads((tmp_path / "demo" / "results.json").read_text())
    assert results["about"]["synthetic"]
    assert "<html" in (tmp_path / "demo" / "report.html").read_text()
    told = done.stderr.splitlines()
    assert told[0] == "Training the black box"
    assert "Measuring all rows in turns" in told
    assert len(told) == len(set(told)) > 8  # a line for each stage, where there is no terminal


def test_reproduce_reads_a_corpus(tmp_path):
    corpus, text = tmp_path / "gold.jsonl", tmp_path / "text.jsonl"
    write_jsonl(corpus, generate(80, 0))
    write_jsonl(text, generate(80, 1, labelled=False))
    ids = [sentence.id for sentence in read_corpus(corpus, "jsonl")]
    (tmp_path / "test.ids").write_text("\n".join(ids[:30]))
    arguments = [str(corpus), "--unlabeled", str(text), "--runs", "1", "--black-box", "independent"]
    arguments += ["--split", str(tmp_path / "test.ids"), "--epochs", "2", "--seeds", "2"]
    done = run(cli.app, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert [line for line in done.output.split("Wrote")[0].splitlines() if len(line) > 80] == []
    about = json.loads((tmp_path / "out" / "results.json").read_text())["about"]
    assert not about["synthetic"]
    assert (about["n_test"], about["n_train"]) == (30, len(ids) - 30)
    assert (about["epochs"], about["seeds"], about["split"]) == (2, 2, ["test: test.ids"])
    assert "in the paper" not in done.output
    (tmp_path / "test.ids").write_text("nobody")
    done = run(cli.app, ["reproduce", *arguments, "--out", str(tmp_path / "out")])
    assert "test.ids, line 1: No labelled sentence of the corpus has the id 'nobody'" in str(done.exception)


ERRORS = [
    (["predict", "nowhere", "-", "-"], "There is no file nowhere."),
    (["predict", "nowhere", "-", "-", "--solver", "glpk"], "no solver 'glpk'"),
    (["reproduce", "nowhere.jsonl", "--out", "out"], "nowhere.jsonl"),
    (["reproduce", "nowhere.jsonl", "--out", "out", "--solver", "glpk"], "no solver 'glpk'"),
    (["reproduce", "nowhere.jsonl", "--out", f"{__file__}/out"], "test_cli.py is not a directory"),
    (["demo", "--out", f"{__file__}/out"], "test_cli.py is not a directory"),
    (["bench", "--out", f"{__file__}/out"], "test_cli.py is not a directory"),
    (["train", "nowhere.jsonl", "--out", f"{__file__}/out"], "test_cli.py cannot be written: "),
    (["predict", __file__, "-", "-"], "test_cli.py is not a labeller of entities and relations, or is damaged"),
    (
        ["train", "nowhere.jsonl", "--out", __file__],
        "test_cli.py is there already, and is not a labeller of entities and relations",
    ),
    (["train", "nowhere.jsonl", "--out", "new/model"], "nowhere.jsonl"),
    (["convert", "nowhere.jsonl", "out.jsonl", "--format", "xml"], "no corpus format 'xml'"),
    (["convert", ".", "out.jsonl"], ". is a directory. Name a file in it."),
    (["convert", "", "out.jsonl"], "The name of a file is empty. Name one, or - for standard input."),
    (["convert", __file__, "-"], "Name it: --format, as of hasten convert, or format= in Python, one of jsonl"),
    (["train", __file__, "--out", "model"], "Name it: --format, as of hasten convert"),
]


@pytest.mark.parametrize(("arguments", "words"), ERRORS)
def test_what_goes_wrong_is_one_line_on_the_error_stream(arguments, words, tmp_path):
    command = [sys.executable, "-m", "hasten.cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert words in done.stderr
    *stages, said = done.stderr.splitlines()
    assert said.startswith("Error: ")
    assert all(stage.startswith("Reading ") for stage in stages)
    assert not list(tmp_path.iterdir())


def test_a_file_that_a_task_of_ones_own_cannot_open_is_named(tmp_path):
    lines = [
        "from pathlib import Path",
        "from hasten.tasks.task import Task",
        "class Mine(Task):",
        "    title = 'Mine'",
        "    def read(self, path):",
        "        return Path(path).read_text().splitlines()",
        "    def train(self, texts, *, seed, progress):",
        "        raise NotImplementedError",
    ]
    (tmp_path / "mine.py").write_text("\n".join(lines))
    command = [sys.executable, "-m", "hasten.cli", "compare", "mine:Mine", "nowhere.txt", "--out", "out"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "Error: nowhere.txt: No such file or directory. Check the path."
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["demo", "--seed", "-1"], ["demo", "--sentences", "0"], ["bench", "--problems", "0"], ["bench", "--size", "0"]],
)
def test_numbers_out_of_range_are_refused_at_once(arguments):
    done = run(cli.app, arguments)
    assert done.exit_code == 2
    assert arguments[1] in done.output


def test_ctrl_c_leaves_no_incomplete_file(tmp_path):
    command = [sys.executable, "-m", "hasten.cli", "convert", "-", "out.jsonl"]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        preexec_fn=lambda: signal.signal(
            signal.SIGINT, signal.default_int_handler
        ),  # where tests run in the background
    )
    process.stdin.write('{"tokens": [], "spans": []}\n')
    process.stdin.flush()
    ends = time.monotonic() + 60
    while not list(tmp_path.iterdir()) and process.poll() is None and time.monotonic() < ends:
        time.sleep(0.05)
    assert [path.suffix for path in tmp_path.iterdir()] == [".part"]
    process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert said == "Interrupted. No incomplete file was left behind.\n"
    assert process.returncode == 130
    assert not list(tmp_path.iterdir())


def test_a_pipe_is_recognised_and_counted_in_words(tmp_path):
    command = [sys.executable, "-m", "hasten.cli", "convert", "-", "-"]
    text = "Ada NNP I-NP I-PER\n"
    done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path, check=True)
    assert json.loads(done.stdout)["tokens"] == ["Ada"]
    assert done.stderr == "Wrote 1 sentence.\n"


def test_solvers_that_are_missing_say_what_to_install(monkeypatch):
    monkeypatch.setattr("hasten.available_solvers", lambda: {"highs": True, "gurobi": False})
    lines = run(cli.app, ["solvers"]).output.splitlines()
    assert [line.split() for line in lines] == [
        ["highs", "installed"],
        ["gurobi", "not", "installed:", "pip", "install", "gurobipy"],
    ]


def hasten(arguments, cwd, **streams):
    """Runs a command in a shell, so that its streams can be what only a shell makes of them."""
    command = f"{shlex.quote(sys.executable)} -m hasten.cli {arguments}"
    return subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=cwd, check=False, **streams)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("convert x.jsonl - > /dev/full", "Standard output cannot be written: no space left on device."),
        ("convert x.jsonl /dev/full", "/dev/full cannot be written: no space left on device."),
        ("solvers > /dev/full", "Standard output cannot be written: no space left on device."),
        ("convert x.jsonl - >&-", "Standard output is closed."),
        ("convert - y.jsonl <&-", "Standard input is closed."),
        ("convert /dev/zero - --format jsonl --max-line 1", "/dev/zero, line 1: The line has more than 1,000,000"),
        ("predict /dev/zero - -", "/dev/zero cannot be read: it is not a file."),
    ],
)
def test_streams_that_are_full_closed_or_endless_are_told_in_one_line(tmp_path, arguments, words):
    write_jsonl(tmp_path / "x.jsonl", generate(2000, 0))
    done = hasten(arguments, tmp_path)
    assert done.returncode == 1
    assert words in done.stderr
    assert done.stderr.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["x.jsonl"]


def test_output_that_nobody_reads_ends_quietly(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", generate(2000, 0))
    for arguments in ("convert x.jsonl -", "solvers"):
        done = hasten(f"{arguments} | head -1", tmp_path)
        assert done.stdout.count("\n") == 1
        assert "Error" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_closed_output_that_is_not_needed_is_no_matter(tmp_path):
    write_jsonl(tmp_path / "x.jsonl", generate(10, 0))
    for closed in (">&-", "2>&-", ">&- 2>&-"):
        assert hasten(f"convert x.jsonl y.jsonl {closed}", tmp_path).returncode == 0
    assert len(list(read_corpus(tmp_path / "y.jsonl", "jsonl"))) == 10


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    name = "a\x1b[31m[bold]\n.jsonl"
    (tmp_path / name).write_text("nothing\n")
    (tmp_path / "x.corp").write_text("1\tO\t0\tO\tNN\tword\tO\tO\tO\n\n\x1b]0;x\x07\t0\tKill\n")
    for file, shown in ((name, r"a\x1b[31m[bold]\n.jsonl, line 1"), ("x.corp", r"Row \x1b]0;x\x07 of sentence 1")):
        done = hasten(f"convert {shlex.quote(file)} -", tmp_path)
        assert shown in done.stderr
        assert done.stderr.rstrip("\n").isprintable()
