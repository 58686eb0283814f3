"""The paper's running example (§2), built with the public API and shown in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution
from hasten.proof.certifier import Certifier
from hasten.search.beam import greedy
from hasten.solvers import make_solver

NAMES = ("Colin", "Ordon Village", "Colin → Ordon Village", "Ordon Village → Colin")


def running_example() -> Problem:
    """Returns "Colin went back home in Ordon Village" as a problem, with costs that mislead a greedy search."""
    schema = Schema()
    entity = schema.variable("entity", ["person", "location", "organization", "none"])
    relation = schema.variable("relation", ["Kill", "LiveIn", "WorkFor", "LocatedAt", "OrgBasedIn", "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation="Kill", source="person", target="person")
    args.allow(relation="LiveIn", source="person", target="location")
    args.allow(relation="WorkFor", source="person", target="organization")
    args.allow(relation="LocatedAt", source="location", target="location")
    args.allow(relation="OrgBasedIn", source="organization", target="location")
    args.allow(relation="NoRel")
    both = schema.factor("both", forward=relation, backward=relation)
    both.allow(forward="NoRel")
    both.allow(backward="NoRel")

    shape = schema.structure()
    colin, village = shape.add(entity), shape.add(entity)
    there, back = shape.add(relation), shape.add(relation)
    shape.connect(args, source=colin, relation=there, target=village)
    shape.connect(args, source=village, relation=back, target=colin)
    shape.connect(both, forward=there, backward=back)
    return shape.problem(
        [
            [0.4, 1.6, 1.2, 2.0],  # Colin: a person
            [0.9, 1.1, 1.5, 2.0],  # Ordon Village: a person by a hair
            [3.0, 0.5, 2.5, 2.0, 3.0, 1.2],  # Colin lives in Ordon Village
            [3.0, 1.4, 3.0, 2.0, 2.8, 1.5],  # and, says the model, the other way round as well
        ]
    )


def show_running_example(console: Console, solver: str = "highs") -> None:
    """Prints what greedy search, the solver and the proof make of the running example."""
    problem = running_example()
    answers = {
        "greedy": greedy()(problem),
        solver: make_solver(solver).solve(problem),
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
