"""The command line, `hasten`."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer
from rich.markup import escape

import hasten
from hasten.commands import experiments, lifetime, programs, serving, tagging, text
from hasten.commands.common import Command, CommandGroup, console, errors
from hasten.errors import HastenError
from hasten.support.terminal import all_printed, printable

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Makes a trained structured predictor faster over its lifetime without losing its answers.",
    pretty_exceptions_enable=False,
)
COMMANDS = {  # by the heading of the help that lists them
    "Programs": (programs.solve, programs.solvers),
    "Text": (text.train, text.predict, text.evaluate, text.explain, text.convert),
    "Experiments": (experiments.demo, experiments.reproduce, experiments.compare, experiments.bench),
    "Deployment": (serving.serve,),
}
for heading, commands in COMMANDS.items():
    for command in commands:
        app.command(cls=Command, rich_help_panel=heading)(command)
app.command("compile", cls=Command, rich_help_panel="Deployment")(programs.compile_all)
app.add_typer(lifetime.app, name="journal", rich_help_panel="Deployment")
app.add_typer(tagging.app, name="tag", rich_help_panel="Text")


def _version(value: bool) -> None:
    if value:
        console.print(hasten.__version__)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Makes a trained structured predictor faster over its lifetime without losing its answers."""


class Interrupted(BaseException):
    """Ctrl-C. Not a KeyboardInterrupt, because Typer catches those and exits without a message."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def main() -> None:
    """Runs the command line; an error of ours, or of a file, is printed in one line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored, as under nohup
        signal.signal(signal.SIGINT, _interrupt)
    try:
        with all_printed():
            app()
    except BrokenPipeError:  # the reader has gone, as in `| head`
        sys.exit(1)
    except (HastenError, OSError) as error:
        message = str(error)
        if not isinstance(error, HastenError):  # of a file that the user's own task opens
            if error.filename is None:
                raise
            message = f"{error.filename}: {error.strerror}. Check the path."
        errors.print(f"[red]Error:[/] {escape(printable(message))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except Interrupted:
        errors.print("Interrupted. No incomplete file was left behind.")
        sys.exit(130)


if __name__ == "__main__":
    main()
