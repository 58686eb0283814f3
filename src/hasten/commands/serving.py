"""`hasten serve`: a saved model behind HTTP."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from hasten.errors import MissingExtra, ProblemError


def serve(
    model: Annotated[
        Path,
        typer.Argument(
            help="A saved Speedup or cascade, what `hasten train` or `hasten tag train` wrote, or a program (.mps, …)."
        ),
    ],
    structures: Annotated[
        str | None,
        typer.Option(metavar="MODULE:NAME", help="The structures of a speedup's problems: one, or a dict of them."),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; one that others can reach takes a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one; the log says which.")] = 8080,
    task: Annotated[
        str | None, typer.Option(metavar="NAME", help="Of a cascade: entities, tags, or module:name of a task.")
    ] = None,
    black_box: Annotated[
        str | None,
        typer.Option(help="Of a cascade: an address (http://…), a command, or module:name of a function."),
    ] = None,
    risk: Annotated[float, typer.Option(help="Share of wrong answers that a new cascade may give.")] = 0.02,
    per_hour: Annotated[
        int | None, typer.Option("--calls-per-hour", min=0, help="Of a cascade's black box, at most.")
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(help="File with the token that clients must show; or set the variable HASTEN_TOKEN."),
    ] = None,
    journal: Annotated[
        Path | None, typer.Option(help="SQLite file for what was answered, so that nothing acknowledged is lost.")
    ] = None,
    journal_size: Annotated[int, typer.Option(min=1, help="Megabytes of the journal; its oldest rows go.")] = 1024,
    solver: Annotated[
        str | None, typer.Option(help="Who is asked where nothing is proved.", show_default="the model's own")
    ] = None,
    processes: Annotated[int, typer.Option(min=1, help="That ask black boxes and explain, beside the server.")] = 1,
    seconds: Annotated[float, typer.Option("--time-limit", min=0.1, help="Seconds that a request may take.")] = 30.0,
    waiting: Annotated[
        int, typer.Option("--queue", min=1, help="Requests that may wait; others are told to come again.")
    ] = 4096,
    body: Annotated[int, typer.Option("--max-body", min=1, help="Megabytes of a request, at most.")] = 16,
    name: Annotated[
        str | None, typer.Option(help="What the model is called in addresses; by default, as its file.")
    ] = None,
) -> None:
    """Serves a model: POST /predict, the Open Inference Protocol at /v2, metrics at /metrics, a live page at /.

    What can be proved is answered at once; what takes the black box waits in processes of its own. SIGTERM ends it once
    everything that was accepted is answered. Logs are lines of JSON on standard error. See docs/serving.md.
    """
    try:
        from hasten.journal import Journal
        from hasten.serve.app import App
        from hasten.serve.connection import Limits
        from hasten.serve.loading import Source
        from hasten.serve.running import check_address, log_as_json, run, taken
    except ImportError as error:
        raise MissingExtra(f"{error.name} is not installed: pip install 'hasten[serve]'") from None

    token = os.environ.pop("HASTEN_TOKEN", None)
    if token_file is not None:
        try:
            token = token_file.read_text().strip()
        except (OSError, UnicodeError) as error:
            raise ProblemError(f"The token cannot be read: {error}") from None
    if token is not None and (len(token) < 16 or not token.isascii() or not token.isprintable()):
        raise ProblemError("A token has at least 16 characters, all of them printable ASCII.")
    check_address(host, token)
    with taken(host, port) as address:
        log_as_json()
        kept = None if journal is None else Journal(journal, max_bytes=journal_size * 2**20, given=True)
        load = Source(str(model), structures, solver, name, task, black_box, risk, per_hour, kept, seconds)
        limits = Limits(body=body * 2**20, seconds=seconds, waiting=waiting)
        served = load()
        app = App(served, replace(load, journal=None), limits=limits, token=token, journal=kept, processes=processes)
        run(app, address)
