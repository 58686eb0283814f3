"""The paper's running example (§2), shown in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.solvers import make_solver
from hasten.tasks.entity_relation.task import EntityRelationTask

NAMES = ("Colin", "Ordon Village", "Colin → Ordon Village", "Ordon Village → Colin")


def running_example() -> Problem:
    """Returns "Colin went back home in Ordon Village" as a problem, with costs that mislead a greedy search."""
    return (
        EntityRelationTask()
        .structure(2)
        .problem(
            [
                [0.4, 1.6, 1.2, 2.0],  # Colin: a person
                [0.9, 1.1, 1.5, 2.0],  # Ordon Village: a person by a hair
                [3.0, 0.5, 2.5, 2.0, 3.0, 1.2],  # Colin lives in Ordon Village
                [3.0, 1.4, 3.0, 2.0, 2.8, 1.5],  # and, says the model, the other way round as well
            ]
        )
    )


def show_running_example(console: Console) -> None:
    """Prints what greedy search, the solver and the proof make of the running example."""
    problem = running_example()
    answers = {
        "greedy": greedy()(problem),
        "highs": make_solver("highs").solve(problem),
        "certified": Certifier()(problem),
    }
    table = Table(title="“Colin went back home in Ordon Village.”  (the paper's running example)")
    table.add_column("decision")
    for name in answers:
        table.add_column(name)
    best = answers["certified"].names
    for v, what in enumerate(NAMES):
        row = [answer.names[v] for answer in answers.values()]
        table.add_row(what, *(label if label == best[v] else f"[red]{label}[/]" for label in row))
    table.add_section()
    table.add_row("cost", *(f"{answer.cost:.3f}" for answer in answers.values()))
    table.add_row("lower bound", *(_bound(answer) for answer in answers.values()))
    table.add_row("valid", *("yes" if answer.valid else "[red]no[/]" for answer in answers.values()))
    table.add_row("proved without a solver", *("yes" if a.proved else "no" for a in answers.values()))
    console.print(table)
    console.print("What the greedy answer breaks:")
    for violation in problem.check(answers["greedy"].labels).violations:
        console.print(f"  [red]{violation}[/]", highlight=False)
    console.print(f"The certified answer: {answers['certified'].status}\n", highlight=False)


def _bound(answer: Solution) -> str:
    return f"{answer.bound:.3f}" if answer.bound > float("-inf") else "—"
