"""`hasten solve`: programs in files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

import hasten
from hasten.commands.common import console, errors
from hasten.support.progress import show_progress
from hasten.support.terminal import printable


def solve(
    files: Annotated[list[Path], typer.Argument(help="Programs: .mps, .lp, .wcsp, .cfn or .uai, plain or .gz.")],
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds that each may take; then the best found has to do.")
    ] = None,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved; auto asks the fastest.")] = "highs",
    out: Annotated[
        Path | None,
        typer.Option(help="File for the values, a name and a value a line; for several programs, a directory."),
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Say what was recognised.")] = False,
) -> None:
    """Answers programs in files, whatever they state: objective, bound, gap, and how each answer was proved."""
    from hasten.programs.solution_file import solution_paths, write_solution

    hasten.make_solver(solver)  # one that is not there is refused now
    targets = None if out is None else solution_paths(out, files)
    for n, file in enumerate(files):
        with show_progress(errors) as tell:
            tell(f"Reading {printable(file)}", None)
            program = hasten.read(file)
            tell(f"Recognising {printable(file)}", None)
            about = program.describe()
            tell(f"Answering {printable(file)}", None)
            answer = program.solve(solver=solver, time_limit=time_limit)
        place = escape(printable(file))
        if describe:
            for line in about.split("\n"):
                console.print(escape(printable(line)), highlight=False, soft_wrap=True)
        if answer.values_found is None:
            console.print(
                f"[bold]{place}[/]: {escape(str(answer.reason or answer.status))}", highlight=False, soft_wrap=True
            )
        else:
            gap = answer.gap if answer.gap > 1e-9 * max(1.0, abs(answer.objective)) else 0.0  # not what rounding leaves
            line = f"objective {answer.objective:.12g}, bound {answer.bound:.12g}, gap {gap:.3g}"
            console.print(f"[bold]{place}[/]: {line}", highlight=False, soft_wrap=True)
            console.print(escape(answer.how), highlight=False, soft_wrap=True)
            if targets is not None:
                write_solution(targets[n], answer)
                console.print(f"Wrote [bold]{escape(printable(targets[n]))}[/]", soft_wrap=True)
