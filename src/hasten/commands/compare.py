"""`hasten compare`: the whole comparison on a task of one's own, found by its name."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hasten
from hasten.commands.common import IlpSolver, Out, Runs, Seed, Seeds, name_of, run_and_write
from hasten.errors import ProblemError
from hasten.support.files import output_directory

if TYPE_CHECKING:
    from pathlib import Path

    from hasten.tasks.experiment.comparison import Comparison
    from hasten.tasks.task import Task


def compare(
    task: Annotated[str, typer.Argument(metavar="MODULE:TASK", help="A task of your own (docs/new-task.md).")],
    corpus: Annotated[str, typer.Argument(help="Labelled texts that the task reads.")],
    out: Out,
    solver: IlpSolver = "highs",
    runs: Runs = 3,
    seed: Seed = 0,
    seeds: Seeds = 1,
) -> None:
    """Compares greedy search, beams, a speedup, certified answers and an ILP solver on a task of your own."""
    from hasten.tasks.experiment.comparison import Comparison

    hasten.make_solver(solver)  # one that is not there is refused now
    found = find_task(task)
    texts = list(found.read(corpus))
    run_comparison(
        Comparison(found, texts, solver=solver, runs=runs, seed=seed, seeds=seeds, source=name_of(corpus)), out
    )


def run_comparison(comparison: Comparison[Any], out: Path) -> None:
    """Runs a comparison, shows its results, and writes them."""
    from hasten.tasks.report.comparison import write_report
    from hasten.tasks.report.terminal import show_comparison

    with output_directory(out):
        run_and_write(comparison.run, show_comparison, write_report, out)


def find_task(name: str) -> Task[Any]:
    """Returns the task that `module:name` stands for: a `Task`, or a class of one that needs no arguments."""
    from hasten.tasks.task import Task

    module, colon, attribute = name.partition(":")
    if not colon or not module or not attribute:
        raise ProblemError(f"A task is given as module:name, such as my_task:Weather, not {name!r}.")
    if "" not in sys.path:
        sys.path.insert(0, "")  # modules of the directory that one is in
    try:
        found = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name not in (module, module.partition(".")[0]):
            raise
        raise ProblemError(f"There is no module {module!r} here. Give one that Python can import.") from None
    except AttributeError:
        raise ProblemError(f"The module {module!r} has no {attribute!r}. Name the task that it defines.") from None
    task = found() if isinstance(found, type) and issubclass(found, Task) else found
    if not isinstance(task, Task):
        raise ProblemError(f"{name} is not a task: derive it from hasten.tasks.task.Task (docs/new-task.md).")
    return task
