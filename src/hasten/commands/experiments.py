"""`hasten demo` and `hasten reproduce`, the paper's experiment; `hasten compare`, that of any task."""

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
    CorpusOption,
    Dev,
    IlpSolver,
    Induce,
    Lists,
    MaxLine,
    NoRelation,
    Out,
    Runs,
    Seed,
    Seeds,
    SkipBad,
    Test,
    TimeLimit,
    Unlabeled,
    console,
    errors,
    name_of,
    passing_over,
    run_and_write,
    tell_task,
    the_corpus,
)
from hasten.errors import ProblemError
from hasten.support.files import output_directory
from hasten.support.named import named
from hasten.support.progress import show_progress
from hasten.support.terminal import printable
from hasten.tasks.entity_relation.names import BlackBox

if TYPE_CHECKING:
    from hasten.paper.experiment import Experiment
    from hasten.tasks.evaluation.comparison import Comparison
    from hasten.tasks.task import Task


def demo(
    out: Out = Path("results/demo"),
    n: Annotated[int, typer.Option("--sentences", min=20, help="Labelled synthetic sentences.")] = 1000,
    full: Annotated[
        bool, typer.Option("--full", help="Print every row, not only the four that tell the story.")
    ] = False,
    lifetime: Annotated[
        bool,
        typer.Option("--lifetime", help="Instead, the life of a student in front of a slow extractor that drifts."),
    ] = False,
    seed: Seed = 0,
) -> None:
    """The paper's example and its whole experiment on an embedded synthetic corpus, in about a minute."""
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
        run_and_report(Experiment.on(Corpora.made_up(n, seed), runs=3, seed=seed), out, full=full)


def reproduce(
    out: Out,
    corpus: Corpus = None,
    corpus_option: CorpusOption = None,
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
    black_box: Box = BlackBox.STRUCTURED,
    induce: Induce = None,
    no_relation: NoRelation = None,
    skip_bad: SkipBad = False,
    max_line: MaxLine = 64,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads that label the unlabeled text.")] = 1,
    time_limit: TimeLimit = 60.0,
) -> None:
    """The paper's whole experiment (§5) on a real corpus: its tables, ours, and a report to read.

    Without --split or --test, 70% of the labelled sentences train and 30% test, drawn. Where no text is unlabeled, a
    fifth of the training sentences is used without its labels. The paper's own corpus, the 1,441 sentences of CoNLL04
    that have a relation, is used as the paper did, and its figures stand beside ours there alone.
    """
    from hasten.paper.experiment import Experiment
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading
    from hasten.tasks.entity_relation.data.split import Split

    corpus = the_corpus(corpus, corpus_option)
    hasten.make_solver(solver)  # one that is not there is refused now
    lists = Split.read(split) if split else None
    with output_directory(out):
        with passing_over(skip_bad) as faults, show_progress(errors) as tell:
            reading = Reading(no_relation, faults, max_line * MILLION, tell)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, test=test, reading=reading, seed=seed)
        settings: dict[str, Any] = {"solver": solver, "runs": runs, "seed": seed, "seeds": seeds, "epochs": epochs}
        settings |= {"split": lists, "black_box": black_box, "jobs": jobs, "time_limit": time_limit}
        experiment = Experiment.on(corpora, induce=induce, no_relation=no_relation, **settings)
        tell_task(experiment.task, induce)
        run_and_report(experiment, out)


def run_and_report(experiment: Experiment, out: Path, *, full: bool = True) -> None:
    """Runs an experiment, shows every row or the story in short, and writes a report."""
    from hasten.paper.report import write_report
    from hasten.paper.tables import show_results, show_story

    def show(results: dict[str, Any], on: Console) -> None:
        (show_results if full else show_story)(results, on)
        if results["about"]["unreachable"]["n"]:
            warning = escape(printable(results["about"]["unreachable"]["in_words"]))
            on.print(f"[yellow]Warning:[/] {warning}", highlight=False, soft_wrap=True)

    run_and_write(experiment.run, show, write_report, out)


def compare(
    task: Annotated[str, typer.Argument(metavar="MODULE:TASK", help="A task of your own (docs/new-task.md).")],
    corpus: Annotated[str, typer.Argument(help="Labelled texts that the task reads.")],
    out: Out,
    solver: IlpSolver = "highs",
    runs: Runs = 3,
    seed: Seed = 0,
    seeds: Seeds = 1,
    time_limit: TimeLimit = 60.0,
) -> None:
    """Compares greedy search, beams, a speedup, certified answers and an ILP solver on a task of your own."""
    from hasten.tasks.evaluation.comparison import Comparison

    hasten.make_solver(solver)  # one that is not there is refused now
    found = find_task(task)
    texts = list(found.read(corpus))
    settings: dict[str, Any] = {"solver": solver, "time_limit": time_limit, "runs": runs, "seed": seed, "seeds": seeds}
    run_comparison(Comparison(found, texts, **settings, source=name_of(corpus)), out)


def run_comparison(comparison: Comparison[Any], out: Path) -> None:
    """Runs a comparison, shows its results, and writes them."""
    from hasten.tasks.evaluation.comparison_page import show_comparison, write_report

    with output_directory(out):
        run_and_write(comparison.run, show_comparison, write_report, out)


def find_task(name: str) -> Task[Any]:
    """Returns the task that `module:name` stands for: a `Task`, or a class of one that needs no arguments."""
    from hasten.tasks.task import Task

    found = named(name, "my_task:Weather")
    task = found() if isinstance(found, type) and issubclass(found, Task) else found
    if not isinstance(task, Task):
        raise ProblemError(f"{name} is not a task: derive it from hasten.tasks.task.Task (docs/new-task.md).")
    return task
