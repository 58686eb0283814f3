"""Programs in files: `.mps`, `.lp`, `.wcsp`, `.cfn`, `.uai`, `.cnf` and `.wcnf`, plain or gzipped; one format a module.

A reader raises `ProgramError` with the reason alone; `read` puts the file and the line before it.

Imports `hasten.programs` and the rooms below it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path

from hasten.errors import ProgramError
from hasten.programs.program import Program, share_kinds
from hasten.programs.reading.clauses import read_cnf, read_wcnf
from hasten.programs.reading.lp import read_lp
from hasten.programs.reading.mps import read_mps
from hasten.programs.reading.networks import read_cfn, read_uai, read_wcsp
from hasten.programs.reading.text import MAX_BYTES, Text
from hasten.programs.statement import Statement
from hasten.support.checks import check_whole, listed
from hasten.support.forms import short

_READERS: dict[str, Callable[[Text], Statement]] = {
    ".mps": read_mps,
    ".lp": read_lp,
    ".wcsp": read_wcsp,
    ".cfn": read_cfn,
    ".uai": read_uai,
    ".cnf": read_cnf,
    ".wcnf": read_wcnf,
}


def read(path: str | os.PathLike[str], *, like: Program | None = None, max_bytes: int = MAX_BYTES) -> Program:
    """Returns the program in a file: `.mps`, `.lp`, `.wcsp`, `.cfn`, `.uai`, `.cnf` or `.wcnf`, plain or gzipped.

    like
        A program whose kinds to use, if they suffice: then what was learned for it applies to this one.
    max_bytes
        The most that is read, after unpacking.
    """
    return Program(state_file(path, max_bytes), like)


def state_file(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Statement:
    """Returns the statement in a file, in the format that its ending says."""
    check_whole("max_bytes", max_bytes)
    if not isinstance(path, str | os.PathLike):
        raise ProgramError(f"Give the path of a file, got {short(path)}.")
    text = Text(path, max_bytes)
    try:
        read = _READERS.get(Path(text.name.lower().removesuffix(".gz")).suffix)
        if read is None:
            formats = ", ".join(_READERS)
            raise ProgramError(
                f"The format is told by the name's ending: {formats}, with .gz behind it if it is packed."
            )
        return read(text)
    except (ProgramError, RecursionError) as error:
        reason = "It is nested too deep." if isinstance(error, RecursionError) else error
        where = f"{text.path!r}" if "\0" in text.path else text.path
        raise ProgramError(f"{where}, line {text.number}: {reason}" if text.number else f"{where}: {reason}") from None
    finally:
        text.close()


def read_all(paths: Iterable[str | os.PathLike[str]], max_bytes: int = MAX_BYTES) -> list[Program]:
    """Returns the programs in several files, of any sizes, with one schema: what is learned on some applies to all."""
    if isinstance(paths, str | os.PathLike):
        raise ProgramError(f"Give a list of paths, got {short(paths)}. One file is read by hasten.read.")
    each = listed(paths, "The paths of the files", ProgramError)
    return share_kinds([Program(state_file(path, max_bytes)) for path in each])
