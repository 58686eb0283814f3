"""Solution files: a comment with the objective, then a name and a value a line, as Gurobi writes and reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hasten.errors import WriteError
from hasten.programs.answer import Answer
from hasten.support.files import output_directory, write_whole


def write_solution(path: Path, answer: Answer) -> None:
    """Writes the values of an answer."""
    lines = [f"# Objective value = {answer.objective:.17g}", *(f"{name} {answer[name]!r}" for name in answer)]
    write_whole(path, ("\n".join(lines) + "\n").encode())


def solution_paths(out: Path, files: Sequence[Path]) -> list[Path]:
    """Returns where the values of each program go: a file or, for several, files in a directory, which can be written.

    Two programs that would go to one file are refused.
    """
    if len(files) == 1:
        with output_directory(out.parent):
            if out.is_dir():
                raise WriteError(f"{out} cannot be written: it is a directory. Name a file.")
        return [out]
    source: dict[Path, Path] = {}
    for file in files:
        path = solution_path(out, file)
        if path in source:
            raise WriteError(
                f"{source[path]} and {file} would both be written to {path}. Rename one, or solve them one by one."
            )
        source[path] = file
    with output_directory(out):
        return list(source)


def solution_path(directory: Path, file: Path) -> Path:
    """Returns where the values of one of several programs go.

    >>> solution_path(Path("out"), Path("models/a.mps.gz")).as_posix()
    'out/a.mps.sol'
    """
    return directory / f"{file.name.removesuffix('.gz')}.sol"
