"""`hasten demo` and `reproduce`, the paper's experiment; `compare`, the same for any task; `bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

import hasten
from hasten.commands import common
from hasten.commands.common import MILLION, collected_faults, console, errors, run_and_write
from hasten.errors import ProblemError
from hasten.support.environment import named
from hasten.support.files import output_directory
from hasten.support.terminal import show_progress
from hasten.tasks.entity_relation.task import BlackBox

if TYPE_CHECKING:
    from hasten.paper.experiment import Experiment
    from hasten.tasks.evaluation.comparison import Comparison
    from hasten.tasks.task import Task


def demo(
    out: common.Out = Path("results/demo"),
    n: Annotated[int, typer.Option("--sentences", min=20, help="Number of labelled synthetic sentences.")] = 1000,
    full: Annotated[bool, typer.Option("--full", help="Print all rows instead of four.")] = False,
    lifetime: Annotated[
        bool,
        typer.Option("--lifetime", help="Show a student in front of a slow extractor that drifts instead."),
    ] = False,
    seed: common.Seed = 0,
) -> None:
    """Runs the paper's example and its experiment on a synthetic corpus, in about a minute."""
    if lifetime:
        from hasten.commands.lifetime import live

        with output_directory(out):
            live(out, seed)
        return
    from hasten.paper.demo import show_running_example
    from hasten.paper.experiment import Experiment
    from hasten.tasks.entity_relation.data.corpora import Corpora

    with output_directory(out):
        show_running_example(console)
        _run_and_report(Experiment.on(Corpora.made_up(n, seed), runs=3, seed=seed), out, full=full)


def reproduce(
    corpus: common.Corpus,
    out: common.Out,
    unlabeled: common.Unlabeled = None,
    solver: common.IlpSolver = "highs",
    runs: Annotated[int, typer.Option(min=1, help="Number of times that each row is timed, over all seeds.")] = 5,
    seed: common.Seed = 0,
    seeds: common.Seeds = 1,
    split: common.Lists = None,
    dev: common.Dev = None,
    test: common.Test = None,
    epochs: Annotated[int, typer.Option(min=1, help="Maximum number of passes over the unlabeled text.")] = 5,
    black_box: common.Box = BlackBox.STRUCTURED,
    induce: common.Induce = None,
    no_relation: common.NoRelation = None,
    skip_bad: common.SkipBad = False,
    max_line: common.MaxLine = 64,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Number of threads that label the unlabeled text.")
    ] = 1,
    time_limit: common.TimeLimit = 60.0,
) -> None:
    """Runs the paper's experiment (§5) on a real corpus, and writes its tables as a report.

    Without --split or --test, a random 70% of the labelled sentences are for training and 30% for testing. Without
    --unlabeled, a fifth of the training sentences is used without its labels. On the paper's own corpus (the 1,441
    sentences of CoNLL04 that have a relation) the sentences are used as in the paper, and the report has the paper's
    figures beside ours.
    """
    from hasten.paper.experiment import Experiment
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading, Split

    hasten.make_solver(solver)  # fails now if it is missing
    lists = Split.read(split) if split else None
    with output_directory(out):
        with collected_faults(skip_bad) as faults, show_progress(errors) as progress:
            reading = Reading(no_relation, faults, max_line * MILLION, progress)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, test=test, reading=reading, seed=seed)
        settings: dict[str, Any] = {"solver": solver, "runs": runs, "seed": seed, "seeds": seeds, "epochs": epochs}
        settings |= {"split": lists, "black_box": black_box, "jobs": jobs, "time_limit": time_limit}
        experiment = Experiment.on(corpora, induce=induce, no_relation=no_relation, **settings)
        common.report_task(experiment.task, induce)
        _run_and_report(experiment, out)


def _run_and_report(experiment: Experiment, out: Path, *, full: bool = True) -> None:
    """Runs an experiment, prints all rows or a short summary, and writes a report."""
    from hasten.paper.report import render, show_results, show_story

    def show(results: dict[str, Any], on: Console) -> None:
        (show_results if full else show_story)(results, on)
        if results["about"]["unreachable"]["n"]:
            common.warn(results["about"]["unreachable"]["in_words"])

    run_and_write(experiment.run, show, render, out)


def compare(
    task: Annotated[str, typer.Argument(metavar="MODULE:TASK", help="Your task (docs/new-task.md).")],
    corpus: Annotated[str, typer.Argument(help="Labelled texts, in the format that the task reads.")],
    out: common.Out,
    solver: common.IlpSolver = "highs",
    runs: common.Runs = 3,
    seed: common.Seed = 0,
    seeds: common.Seeds = 1,
    time_limit: common.TimeLimit = 60.0,
) -> None:
    """Compares greedy search, beams, a speedup, certified answers and an ILP solver on your own task."""
    from hasten.tasks.evaluation.comparison import Comparison

    hasten.make_solver(solver)  # fails now if it is missing
    found = find_task(task)
    texts = list(found.read(corpus))
    settings: dict[str, Any] = {"solver": solver, "time_limit": time_limit, "runs": runs, "seed": seed, "seeds": seeds}
    run_comparison(Comparison(found, texts, **settings, source=common.name_of(corpus)), out)


def run_comparison(comparison: Comparison, out: Path) -> None:
    """Runs a comparison, prints its results and writes a report."""
    from hasten.tasks.evaluation.comparison import render, show_comparison

    with output_directory(out):
        run_and_write(comparison.run, show_comparison, render, out)


def find_task(name: str) -> Task[Any]:
    """Returns the `Task` named `module:name`; a class is called without arguments."""
    from hasten.tasks.task import Task

    found = named(name, "my_task:Weather")
    task = found() if isinstance(found, type) and issubclass(found, Task) else found
    if not isinstance(task, Task):
        raise ProblemError(f"{name} is not a task: derive it from hasten.tasks.task.Task (docs/new-task.md).")
    return task


def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for peers.json and peers.html.")] = Path(
        "results/peers"
    ),
    family: Annotated[list[str] | None, typer.Option(help="Family of problems. Repeatable. Default: all.")] = None,
    size: Annotated[
        list[int] | None, typer.Option(min=1, help="Size of problems. Repeatable. Default: each family's own sizes.")
    ] = None,
    peer: Annotated[
        list[str] | None, typer.Option(help="Solver to compare with. Repeatable. Default: all that are installed.")
    ] = None,
    n: Annotated[int | None, typer.Option("--problems", min=1, help="Number of problems of each size.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Labelled corpus, to add problems with the costs of trained models.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure few problems of one size in each family, in about a minute.")
    ] = False,
    seed: common.Seed = 0,
) -> None:
    """Measures hasten and other solvers side by side, on the same problems."""
    from hasten.bench.run import QUICK, Settings, main

    with output_directory(out):
        corpora = None
        if corpus is not None:
            from hasten.tasks.entity_relation.data.corpora import Corpora

            corpora = Corpora.read(corpus, seed=seed)
        chosen = {"families": family, "sizes": size, "peers": peer, "n": n, "seed": seed}
        effort = QUICK if quick else {}
        settings = Settings(**effort | {name: each for name, each in chosen.items() if each})
        main(settings, out, corpora, report=common.say)
