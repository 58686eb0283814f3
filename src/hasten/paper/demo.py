"""The paper's running example (§2), shown in the terminal."""

from __future__ import annotations

from rich.console import Console

from hasten.model.problem import Problem
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.support.words import count
from hasten.tasks.entity_relation.task import EntityRelationTask
from hasten.tasks.evaluation.page import Line, column, terminal_table

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
    """Prints what greedy search makes of the running example, and the proved answer."""
    problem = running_example()
    wrong, best = greedy()(problem), Certifier()(problem)
    broken = problem.check(wrong.labels).violations
    named = {"greedy search": wrong, "certified": best}
    rows: list[Line] = [({"": who, **dict(zip(NAMES, found.names, strict=True))}, "") for who, found in named.items()]
    console.print("[bold]“Colin went back home in Ordon Village.”[/] (the paper's example)", highlight=False)
    console.print(terminal_table([column(name, name) for name in ("", *NAMES)], rows))
    console.print(f"Greedy search breaks {count(len(broken), 'rule')}, the first:", highlight=False)
    console.print(f"  {broken[0]}", highlight=False)
    console.print(f"certified: {best.status}\n", highlight=False)
