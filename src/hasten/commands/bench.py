"""`hasten bench`: hasten and other solvers, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from hasten.commands.common import (
    Induce,
    Lists,
    NoRelation,
    Seed,
    SkipBad,
    Test,
    console,
    passing_over,
    tell_task,
    tell_unreachable,
)
from hasten.support.files import output_directory
from hasten.support.terminal import printable


def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for tables, JSON and a page with plots.")] = Path(
        "results/peers"
    ),
    family: Annotated[list[str] | None, typer.Option(help="Problem family; repeatable.")] = None,
    size: Annotated[list[int] | None, typer.Option(min=1, help="Problem size; repeatable.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Peer to compare with; repeatable.")] = None,
    n: Annotated[int | None, typer.Option("--problems", min=1, help="Problems of each size.")] = None,
    corpus: Annotated[
        Path | None, typer.Option(help="Adds real costs from a labelled corpus, in any format that `convert` reads.")
    ] = None,
    test: Test = None,
    split: Lists = None,
    induce: Induce = None,
    no_relation: NoRelation = None,
    skip_bad: SkipBad = False,
    quick: Annotated[bool, typer.Option("--quick", help="Few problems of one size a family: about a minute.")] = False,
    seed: Seed = 0,
) -> None:
    """Measures hasten and other solvers side by side, on the same problems."""
    from hasten.bench.run import Choice, main

    with output_directory(out):
        source = None
        if corpus is not None:
            from hasten.bench.text import Source
            from hasten.tasks.entity_relation.data.corpora import Corpora, Reading
            from hasten.tasks.entity_relation.data.split import Split

            lists = Split.read(split) if split else None
            with passing_over(skip_bad) as faults:
                corpora = Corpora.read(corpus, test=test, reading=Reading(no_relation, faults), seed=seed)
            source = Source.of(corpora, lists, induce=induce, no_relation=no_relation, seed=seed)
            tell_task(source.task, induce)
            tell_unreachable(source.test, source.task)
        main(
            Choice(family, size, peer, n, quick, seed),
            out,
            source,
            report=lambda line: console.print(escape(printable(line)), highlight=False, soft_wrap=True),
        )
