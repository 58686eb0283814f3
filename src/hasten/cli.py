"""The command line: `hasten demo`, `reproduce`, `train`, `predict`, `evaluate`, `explain`, `convert`, `solve`, …"""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

import hasten
from hasten.commands import experiments, lifetime, programs, serving, tagging, text
from hasten.commands.common import Command, Group, console, errors
from hasten.errors import HastenError
from hasten.support.terminal import all_printed, printable

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Makes a trained structured predictor faster over its lifetime without losing its answers.",
    pretty_exceptions_enable=False,
)
for command in (
    experiments.demo,
    experiments.reproduce,
    text.train,
    text.predict,
    text.evaluate,
    text.explain,
    text.convert,
    experiments.compare,
    programs.solve,
    serving.serve,
    experiments.bench,
):
    app.command(cls=Command)(command)
app.add_typer(tagging.app, name="tag")
app.add_typer(lifetime.app, name="journal")
app.command("compile", cls=Command)(programs.compile_all)
app.command(cls=Command)(programs.solvers)


def _version(value: bool) -> None:
    if value:
        console.print(hasten.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Makes a trained structured predictor faster over its lifetime without losing its answers."""


class Interrupted(BaseException):
    """Ctrl-C. It is not a KeyboardInterrupt, because Typer catches those and ends without a word."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def main() -> None:
    """Runs the command line; what goes wrong on purpose is told in one line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # unless somebody wants it ignored
        signal.signal(signal.SIGINT, _interrupt)
    try:
        with all_printed():
            app()
    except BrokenPipeError:  # nobody reads any more, as behind `| head`
        sys.exit(1)
    except (HastenError, OSError) as error:
        said = str(error)
        if not isinstance(error, HastenError):  # of a file that a task of one's own opens
            if error.filename is None:
                raise
            said = f"{error.filename}: {error.strerror}. Check the path."
        errors.print(f"[red]Error:[/] {escape(printable(said))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except Interrupted:
        errors.print("Interrupted. Nothing half-done was left behind.")
        sys.exit(130)


if __name__ == "__main__":
    main()
