"""Solution files: a comment with the objective, then a name and a value a line, as Gurobi writes and reads them."""

from __future__ import annotations

from pathlib import Path

from hasten.programs.answer import Answer
from hasten.support.files import write_whole


def write_solution(path: Path, answer: Answer) -> None:
    """Writes the values of an answer."""
    lines = [f"# Objective value = {answer.objective:.17g}", *(f"{name} {answer[name]!r}" for name in answer)]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def solution_path(directory: Path, file: Path) -> Path:
    """Returns where the values of one of several programs go.

    >>> solution_path(Path("out"), Path("models/a.mps.gz")).as_posix()
    'out/a.mps.sol'
    """
    return directory / f"{file.name.removesuffix('.gz')}.sol"
