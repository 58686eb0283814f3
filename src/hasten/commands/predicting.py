"""`hasten predict`: a stream, in one process or several; or files, shard by shard, on a Ray cluster."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

import hasten
from hasten.commands.common import (
    MILLION,
    Format,
    Jobs,
    MaxLine,
    Model,
    SkipBad,
    TimeLimit,
    check_apart,
    check_model,
    errors,
    passing_over,
    seconds,
)
from hasten.solvers import check_solver
from hasten.speedup.mode import TextMode
from hasten.support.progress import show_progress
from hasten.support.terminal import printable
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.scale.run import Engine as Workers
    from hasten.scale.run import Run, Sharding
    from hasten.scale.work import Counts
    from hasten.tasks.entity_relation.tagger import Tagger


class Engine(StrEnum):
    """Who does the work."""

    LOCAL = "local"
    RAY = "ray"


def predict(
    model: Model,
    source: Annotated[
        str,
        typer.Argument(
            help="Sentences with spans, in any format; - for standard input. For shards: JSON lines or Parquet, a "
            "file, a directory, a pattern or a URL."
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            help="Where labelled JSON lines go; - for standard output. With a / at its end, a directory of shards, "
            "which can be resumed."
        ),
    ],
    mode: Annotated[TextMode, typer.Option(help="Prove every answer, or trust the search.")] = TextMode.CERTIFIED,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved.")] = "highs",
    time_limit: TimeLimit = 10.0,
    format: Format = "auto",
    skip_bad: SkipBad = False,
    max_line: MaxLine = 64,
    jobs: Jobs = 1,
    engine: Annotated[Engine, typer.Option(help="This machine, or a Ray cluster.")] = Engine.LOCAL,
    address: Annotated[
        str | None, typer.Option(help="Of the Ray cluster; without it, Ray starts on this machine, with --jobs cores.")
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Sentences of a shard.")] = 20_000,
    max_bad: Annotated[
        int, typer.Option(min=0, help="Sentences of shards that may be set aside, with the reason, in bad.jsonl.")
    ] = 1000,
) -> None:
    """Labels the entities and relations of a stream of sentences, of any length, in constant memory.

    Each line says whether its labels were proved optimal without the solver: "proved": true or false. Where time was
    up, "optimal" is false. Where the solver failed, "failed" says why, and the labels are the best known without it, or
    left out.

    Into a directory, the work is done shard by shard: the same command, given again, does what is left. With --engine
    ray and a file as the target, the shards are kept beside it, in TARGET.shards, and put together at the end.
    """
    from hasten.scale.stream import Reading, predict_stream
    from hasten.tasks.entity_relation.labelling import Labeller
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_solver(solver)
    check_apart(source, target)
    check_model(model, FORMAT, source)
    tagger = Tagger.load(model).asking(mode, solver=solver, limits__time_limit=seconds(time_limit))
    if address is not None and engine is not Engine.RAY:
        raise hasten.ProblemError("An address is for --engine ray. Add that, or leave out the address.")
    if engine is Engine.RAY or target.endswith("/"):
        from hasten.scale.run import Here, Sharding

        worker: Workers = Here(jobs)
        if engine is Engine.RAY:
            from hasten.ray.predicting import OnRay

            worker = OnRay(address=address, cores=None if address else jobs)
        format = "parquet" if target.endswith(".parquet") else "jsonl"
        how = Sharding(format, shard_size, max_bad, max_line * MILLION)
        _tell_of(_predict_shards(tagger, source, target, how, worker))
        return
    with passing_over(skip_bad) as faults, show_progress(errors, quiet=target == "-") as tell:
        reading = Reading(format, max_line * MILLION, faults)
        counts = predict_stream(Labeller(tagger), source, target, reading, jobs=jobs, tell=tell)
    _say(counts)


def _predict_shards(tagger: Tagger, source: str, target: str, how: Sharding, engine: Workers) -> Run:
    """Labels files shard by shard, and puts the shards together if the target is a file."""
    from hasten.scale.run import predict_shards
    from hasten.tasks.entity_relation.labelling import Labeller

    if "-" in (source, target):
        raise hasten.errors.CorpusError("A stream has no shards: name files, or leave out --engine ray.")
    out = target if target.endswith("/") else f"{target}.shards"
    with show_progress(errors) as tell, ThreadPoolExecutor(1) as beside:
        run = predict_shards(Labeller(tagger), source, out, how=how, engine=engine, tell=tell)
        ended = beside.submit(engine.end)
        if not target.endswith("/"):
            tell("Putting the shards together", None)
            run.merge(target)
        ended.result()
    return run


def _tell_of(run: Run) -> None:
    _say(run.counts)
    if run.n_kept:
        errors.print(f"{count(run.n_kept, 'shard')} of {len(run.files):,} had been finished before.", highlight=False)
    if run.bad:
        place = escape(printable(os.path.join(run.out, "bad.jsonl")))
        n = count(len(run.bad), "sentence")
        errors.print(f"Could not read {n}; [bold]{place}[/] says which, and why.", highlight=False, soft_wrap=True)


def _say(counts: Counts) -> None:
    n = counts["problems"]
    errors.print(
        f"Labelled {count(n, 'sentence')}: {counts['proved']:,} proved, {counts['by_solver']:,} by the solver."
    )
    if counts["late"]:
        errors.print(f"Time was up for {count(counts['late'], 'sentence')}: the best found had to do (--time-limit).")
    if counts["failed"]:
        errors.print(f"The solver failed on {count(counts['failed'], 'sentence')}; their lines say why.")
