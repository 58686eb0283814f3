"""`hasten solve`: programs in files. `hasten compile` and `hasten solvers`: this installation."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hasten
from hasten.commands.common import errors, say
from hasten.errors import ProgramError, WriteError
from hasten.support.files import output_directory, write_whole
from hasten.support.terminal import printable, show_progress
from hasten.support.words import count

INFEASIBLE = 3  # the exit code

if TYPE_CHECKING:
    from hasten.certificates import Certificate
    from hasten.programs.answer import Answer


def solve(
    files: Annotated[
        list[Path], typer.Argument(help="Program files: .mps, .lp, .wcsp, .cfn, .uai, .cnf or .wcnf, plain or .gz.")
    ],
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds for each program; then returns the best answer so far.")
    ] = None,
    solver: Annotated[
        str, typer.Option(help="Solver for problems that cannot be proved; auto takes the fastest.")
    ] = "highs",
    out: Annotated[
        Path | None,
        typer.Option(help="File for the values, one name and value a line; for several programs, a directory."),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(
            help="File for a proof of the answer, to check with `python -m hasten.certificate`; for several programs, "
            "a directory."
        ),
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Print the structure that was recognised.")] = False,
) -> None:
    """Solves program files, and prints the objective, the bound, the gap and the proof of each.

    For several files it prints a table with the seconds that each took. The exit code is 3 if a program is infeasible,
    and 1 if one has no answer within its time limit, the solver fails, or no certificate can be written.
    """
    hasten.make_solver(solver)  # fails now if it is missing
    targets = None if out is None else _paths(out, files)
    proofs = None if certificate is None else _paths(certificate, files, "proof")
    width, code = max(len(printable(file)) for file in files), 0
    if len(files) > 1:
        say(f"{'file':{width}}  {'objective':>16}  {'bound':>16}  {'gap':>9}  {'seconds':>8}  answer", style="bold")
    for n, file in enumerate(files):
        with show_progress(errors) as progress:
            began = time.perf_counter()
            progress(f"Reading {printable(file)}", None)
            program = hasten.read(file)
            progress(f"Recognising {printable(file)}", None)
            about = program.describe()
            progress(f"Answering {printable(file)}", None)
            answer = program.solve(solver=solver, time_limit=time_limit, on_better=_logger(began))
            seconds = time.perf_counter() - began
        found = answer.values_found is not None
        if not found:
            code = 1 if code == 1 or not answer.optimal else INFEASIBLE
        gap = answer.gap if answer.gap > 1e-9 * max(1.0, abs(answer.objective)) else 0.0  # without rounding errors
        if describe:
            for line in about.split("\n"):
                say(line)
        if len(files) > 1:
            numbers = (f"{answer.objective:16.10g}", f"{answer.bound:16.10g}", f"{gap:9.3g}") if found else ("",) * 3
            values = "  ".join(f"{number:>{size}}" for number, size in zip(numbers, (16, 16, 9), strict=True))
            say(f"{printable(file):{width}}  {values}  {seconds:8.2f}  {_how(answer)}")
        elif found:
            say(f"{printable(file)}: objective {answer.objective:.12g}, bound {answer.bound:.12g}, gap {gap:.3g}")
            say(answer.how)
        else:
            say(f"{printable(file)}: {_how(answer)}")
        if found and targets is not None:
            lines = [f"# Objective value = {answer.objective:.17g}", *(f"{name} {answer[name]!r}" for name in answer)]
            write_whole(targets[n], "".join(f"{line}\n" for line in lines).encode())  # as Gurobi writes it
            if len(files) == 1:
                say(f"Wrote {printable(targets[n])}")
        if proofs is not None and (found or answer.optimal):
            try:
                proof = program.certificate(answer=answer, solver=solver, time_limit=time_limit)
            except ProgramError as error:  # the other programs may still have one
                say(str(error))
                code = 1
                continue
            proof.save(proofs[n])
            say(f"Wrote {printable(proofs[n])}: {_statement(proof, program.statement.maximize)}")
    if targets is not None and len(files) > 1:
        say(f"Wrote the values to {printable(out or '')}")
    if code:
        raise typer.Exit(code)


def _logger(began: float) -> Callable[[float, float], None]:
    """Returns a function that writes a line for each better answer to standard error, as solvers do."""

    def log(objective: float, bound: float) -> None:
        gap = abs(objective - bound) / max(1e-9, abs(objective))
        seconds, share = time.perf_counter() - began, f"{gap:.2%}" if gap < math.inf else "-"
        errors.print(
            f"{seconds:8.1f} s  objective {objective:<16.10g}  bound {bound:<16.10g}  gap {share}", highlight=False
        )

    return log


def _how(answer: Answer) -> str:
    """Returns how an answer was found, or why there is none."""
    if answer.values_found is not None:
        return answer.how
    return f"{'Infeasible. ' if answer.optimal else ''}{answer.status} {answer.reason}".rstrip()


def _statement(proof: Certificate, maximize: bool) -> str:
    """Returns the statement that a certificate proves, in the program's own sense."""
    if proof.lower == math.inf:
        return "no answer is possible."
    bounds = f"{proof.lower!r} ≤ optimum ≤ {proof.upper!r}"
    is_open = " The proof stays open." if str(proof).endswith("open.") else ""
    if not maximize:
        return f"{bounds}.{is_open}"
    negated = f"{0.0 - proof.upper!r} ≤ optimum ≤ {0.0 - proof.lower!r}"
    return f"{negated}.{is_open} The certificate minimises the negated objective: its checker prints {bounds}."


def _paths(out: Path, files: Sequence[Path], ending: str = "sol") -> list[Path]:
    """Returns an output file for each program, in a directory if there are several; refuses two of the same name."""
    if len(files) == 1:
        with output_directory(out.parent):
            if out.is_dir():
                raise WriteError(f"{out} cannot be written: it is a directory. Name a file.")
        return [out]
    source: dict[Path, Path] = {}
    for file in files:
        path = out / f"{file.name.removesuffix('.gz')}.{ending}"
        if path in source:
            raise WriteError(
                f"{source[path]} and {file} would both be written to {path}. Rename one, or solve them one by one."
            )
        source[path] = file
    with output_directory(out):
        return list(source)


def compile_all() -> None:
    """Compiles all kernels in advance, for images, clusters and continuous integration.

    Kernels are cached beside the package or, if that cannot be written, in the user's cache directory.
    NUMBA_CACHE_DIR names another directory. Kernels of other versions are removed.
    """
    from hasten.jit.cache import remove_old_files
    from hasten.jit.tiers import DRIVERS
    from hasten.warm import compile_kernels

    n_new = sum(not driver.is_compiled for driver in DRIVERS)
    with show_progress(errors) as progress:
        compile_kernels(progress)
    say(f"{count(len(DRIVERS), 'driver')} compiled, {n_new} of them now.")
    if n_removed := remove_old_files():
        say(f"Removed {count(n_removed, 'file')} of other versions.")


def solvers() -> None:
    """Lists the solvers, and how to install the missing ones."""
    from hasten.solvers import package_of

    for name, installed in hasten.available_solvers().items():
        say(f"{name:10s} " + ("installed" if installed else f"not installed: pip install {package_of(name)}"))
