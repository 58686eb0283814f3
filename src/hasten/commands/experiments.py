"""`hasten demo` and `hasten reproduce`: the paper's experiment, and its report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hasten
from hasten.commands.common import MILLION, Box, Corpus, MaxLine, Out, Seed, Unlabeled, console, errors, run_and_write
from hasten.support.files import output_directory
from hasten.support.progress import show_progress
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
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=FILE",
            help="Ids of the sentences that train, test or (dev) are set aside, one a line; a file whose name says its "
            "part needs no PART. Without it, 70% train and 30% test, drawn. Repeatable.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the unlabeled text, at most.")] = 5,
    black_box: Box = Training.STRUCTURED,
    induce: Annotated[
        bool, typer.Option(help="Take labels and argument types from the corpus, not from the paper.")
    ] = False,
    max_line: MaxLine = 64,
) -> None:
    """The paper's whole experiment (§5) on a real corpus: its tables, ours, and a report to read.

    Sentences of the corpus without relations, and those of --unlabeled files, are used without their labels. The
    paper's figures stand beside ours on its own corpus alone, the 1,441 sentences of CoNLL04 that have a relation.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora
    from hasten.tasks.entity_relation.data.split import Split
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

    hasten.make_solver(solver)  # one that is not there is refused now
    lists = Split.read(split) if split else None
    with output_directory(out):
        with show_progress(errors) as tell:
            corpora = Corpora.read(corpus, unlabeled or [], max_line=max_line * MILLION, seed=seed, tell=tell)
        settings = {"solver": solver, "runs": runs, "seed": seed, "seeds": seeds, "epochs": epochs, "split": lists}
        run_and_report(Experiment.on(corpora, black_box=black_box, induce=induce, **settings), out)


def run_and_report(experiment: Experiment, out: Path) -> None:
    """Runs an experiment, shows its results, and writes them."""
    from hasten.tasks.entity_relation.report.report import write_report
    from hasten.tasks.entity_relation.report.summary import show_results

    run_and_write(experiment.run, show_results, write_report, out)
