"""`hasten demo` and `hasten reproduce`: the paper's experiment, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import hasten
from hasten.commands.common import (
    MILLION,
    Box,
    Corpus,
    Dev,
    Induce,
    Lists,
    MaxLine,
    NoRelation,
    Out,
    Seed,
    SkipBad,
    Test,
    Unlabeled,
    console,
    errors,
    passing_over,
    run_and_write,
    tell_task,
)
from hasten.support.files import output_directory
from hasten.support.progress import show_progress
from hasten.support.terminal import printable
from hasten.tasks.entity_relation.names import Training

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.experiment.experiment import Experiment


def demo(
    out: Out = Path("results/demo"),
    n: Annotated[int, typer.Option("--sentences", min=20, help="Labelled synthetic sentences.")] = 1000,
    seed: Seed = 0,
) -> None:
    """The paper's example and its whole experiment on an embedded synthetic corpus, in about a minute."""
    from hasten.demo import show_running_example
    from hasten.tasks.entity_relation.data.corpora import Corpora
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

    with output_directory(out):
        console.print(
            "The first run compiles the kernels, which takes a minute or so; later runs load them.", style="dim"
        )
        show_running_example(console)
        run_and_report(Experiment.on(Corpora.made_up(n, seed), runs=3, seed=seed), out)


def reproduce(
    corpus: Corpus,
    out: Out,
    unlabeled: Unlabeled = None,
    solver: Annotated[str, typer.Option(help="The ILP solver: highs, gurobi, toulbar2 or cpsat.")] = "highs",
    runs: Annotated[int, typer.Option(min=1, help="How often each time is measured; the seeds share them.")] = 5,
    seed: Seed = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Do all of it so often, with splits and learners of their own: mean ± deviation.")
    ] = 1,
    split: Lists = None,
    dev: Dev = None,
    test: Test = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the unlabeled text, at most.")] = 5,
    black_box: Box = Training.STRUCTURED,
    induce: Induce = None,
    no_relation: NoRelation = None,
    skip_bad: SkipBad = False,
    max_line: MaxLine = 64,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads that label the unlabeled text.")] = 1,
) -> None:
    """The paper's whole experiment (§5) on a real corpus: its tables, ours, and a report to read.

    Without --split or --test, 70% of the labelled sentences train and 30% test, drawn. Where no text is unlabeled, a
    fifth of the training sentences is used without its labels. The paper's own corpus, the 1,441 sentences of CoNLL04
    that have a relation, is used as the paper did, and its figures stand beside ours there alone.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading
    from hasten.tasks.entity_relation.data.split import Split
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

    hasten.make_solver(solver)  # one that is not there is refused now
    lists = Split.read(split) if split else None
    with output_directory(out):
        with passing_over(skip_bad) as faults, show_progress(errors) as tell:
            reading = Reading(no_relation, faults, max_line * MILLION, tell)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, test=test, reading=reading, seed=seed)
        settings: dict[str, Any] = {"solver": solver, "runs": runs, "seed": seed, "seeds": seeds, "epochs": epochs}
        settings |= {"split": lists, "black_box": black_box, "jobs": jobs}
        experiment = Experiment.on(corpora, induce=induce, no_relation=no_relation, **settings)
        tell_task(experiment.task, induce)
        run_and_report(experiment, out)


def run_and_report(experiment: Experiment, out: Path) -> None:
    """Runs an experiment, shows its results, and writes them."""
    from hasten.tasks.entity_relation.report.report import write_report
    from hasten.tasks.entity_relation.report.summary import show_results

    def show(results: dict[str, Any], on: Console) -> None:
        show_results(results, on)
        if results["about"]["unreachable"]["n"]:
            warning = escape(printable(results["about"]["unreachable"]["in_words"]))
            on.print(f"[yellow]Warning:[/] {warning}", highlight=False, soft_wrap=True)

    run_and_write(experiment.run, show, write_report, out)
