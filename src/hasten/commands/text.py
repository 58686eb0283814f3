"""`hasten train`, `predict`, `evaluate`, `explain` and `convert`: labelling text."""

from __future__ import annotations

import os
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

import hasten
from hasten.commands import common
from hasten.commands.common import MILLION, console, errors, passing_over, say, wrote
from hasten.errors import CorpusError
from hasten.solvers import check_solver
from hasten.speedup.parts import TextMode
from hasten.support.files import output_directory
from hasten.support.terminal import no_progress, show_progress
from hasten.support.words import count
from hasten.tasks.entity_relation.task import BlackBox


def train(
    corpus: common.Corpus,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the trained model.")],
    unlabeled: common.Unlabeled = None,
    black_box: common.Box = BlackBox.STRUCTURED,
    dev: common.Dev = None,
    split: common.Lists = None,
    induce: common.Induce = None,
    no_relation: common.NoRelation = None,
    skip_bad: common.SkipBad = False,
    width: Annotated[int, typer.Option(min=1, help="Width of the beam in search mode.")] = 2,
    risk: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of answers that theta may change.")] = 0.01,
    seed: common.Seed = 0,
    max_line: common.MaxLine = 64,
) -> None:
    """Trains a model for `hasten predict`.

    It learns from all labelled sentences, those without relations too, or from those that --split lists for training.
    Unlabeled text adds to them. Given a --dev file, or a split, it says how well the model does on the dev sentences,
    or on the test sentences if there are none, as `hasten evaluate` does.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading, Split
    from hasten.tasks.entity_relation.tagger import Tagger, check_place
    from hasten.tasks.entity_relation.task import EntityRelationTask

    check_place(out)
    lists = Split.read(split) if split else None
    with output_directory(out.parent):
        with passing_over(skip_bad) as faults, show_progress(errors) as progress:
            reading = Reading(no_relation, faults, max_line * MILLION, progress)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, reading=reading, seed=seed)
        taught, tested, part = corpora.to_train(lists)
        common.check_enough(len(taught), "labelled sentence")
        task = EntityRelationTask.fitting(taught, induce=induce, no_relation=no_relation)
        common.tell_task(task, induce)
        with show_progress(errors) as progress:
            how: dict[str, Any] = {"task": task, "black_box": black_box, "width": width, "risk": risk, "seed": seed}
            tagger = Tagger.train(taught, corpora.unlabeled, progress=progress, **how)
        tagger.save(out)
    n_unlabeled = count(len(corpora.unlabeled), "unlabeled sentence")
    console.print(f"Trained on {count(len(taught), 'labelled sentence')} and {n_unlabeled}.")
    common.tell_unreachable(taught, task)
    if tested:
        from hasten.tasks.entity_relation.evaluating import evaluate as judge

        console.print(f"On the {count(len(tested), 'labelled sentence')} of {part}:", highlight=False)
        common.show_evaluation(judge(tagger, tested, seed=seed))
    if tagger.note:
        say(tagger.note)
    wrote(out, more=f". Label text with: hasten predict {out} INPUT.jsonl OUTPUT.jsonl")


class Engine(StrEnum):
    """The engines that can do the work: this process, or Ray."""

    LOCAL = "local"
    RAY = "ray"


def predict(
    model: common.Model,
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
    mode: common.Mode = TextMode.CERTIFIED,
    solver: common.Solver = "highs",
    time_limit: common.TimeLimit = 10.0,
    format: common.Format = "auto",
    skip_bad: common.SkipBad = False,
    max_line: common.MaxLine = 64,
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", min=1, help="Processes that share the work; answers do not change.")
    ] = 1,
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
    from hasten.tasks.entity_relation.labelling import Labeller
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_solver(solver)
    common.check_apart(target, source, model)
    common.check_model(model, FORMAT, source)
    tagger = Tagger.load(model).asking(mode, solver=solver, limits__time_limit=common.seconds(time_limit))
    if address is not None and engine is not Engine.RAY:
        raise hasten.ProblemError("An address is for --engine ray. Add that, or leave out the address.")
    run = None
    if engine is Engine.RAY or target.endswith("/"):
        from hasten.scale.run import Sharding, here, predict_shards

        if "-" in (source, target):
            raise CorpusError("A stream has no shards: name files, or leave out --engine ray.")
        workers = here(jobs)
        if engine is Engine.RAY:
            from hasten.ray.predicting import on_ray

            workers = on_ray(address=address, cores=None if address else jobs)
        answers = "parquet" if target.endswith(".parquet") else "jsonl"
        how = Sharding(answers, shard_size, max_bad, max_line * MILLION)
        out = target if target.endswith("/") else f"{target}.shards"
        with show_progress(errors) as progress:
            run = predict_shards(Labeller(tagger), source, out, how=how, engine=workers, progress=progress)
            if not target.endswith("/"):
                progress("Putting the shards together", None)
                run.merge(target)
        counts = run.counts
    else:
        from hasten.scale.work import Reading, predict_stream

        if target.endswith(".parquet"):
            raise CorpusError(f"{target} would hold JSON lines. Call it .jsonl, or add --engine ray for a table.")
        with passing_over(skip_bad) as faults, show_progress(errors, quiet=target == "-") as progress:
            reading = Reading(format, max_line * MILLION, faults)
            counts = predict_stream(Labeller(tagger), source, target, reading, jobs=jobs, progress=progress)
    labelled = count(counts["problems"], "sentence")
    say(f"Labelled {labelled}: {counts['proved']:,} proved, {counts['by_solver']:,} by the solver.", errors)
    if counts["late"]:
        say(f"Time was up for {count(counts['late'], 'sentence')}: the best found had to do (--time-limit).", errors)
    if counts["failed"]:
        say(f"The solver failed on {count(counts['failed'], 'sentence')}; their lines say why.", errors)
    if run is not None and run.n_kept:
        say(f"{count(run.n_kept, 'shard')} of {len(run.files):,} had been finished before.", errors)
    if run is not None and run.bad:
        place = os.path.join(run.out, "bad.jsonl")
        say(f"Could not read {count(len(run.bad), 'sentence')}; {place} says which, and why.", errors)


def evaluate(
    model: common.Model,
    source: Annotated[str, typer.Argument(help="Labelled sentences, in any format; - for standard input.")],
    out: common.EvaluationOut = None,
    mode: common.Mode = TextMode.CERTIFIED,
    solver: common.Solver = "highs",
    time_limit: common.TimeLimit = 10.0,
    format: common.Format = "auto",
    split: common.Listed = None,
    no_relation: common.NoRelation = None,
    skip_bad: common.SkipBad = False,
    seed: common.Seed = 0,
    max_line: common.MaxLine = 64,
) -> None:
    """Says how well a model labels: precision, recall and F1 of each label, validity, and gold that it cannot reach."""
    from hasten.tasks.entity_relation.evaluating import evaluate as judge
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_solver(solver)
    common.check_model(model, FORMAT, source)
    tagger = Tagger.load(model).asking(mode, solver=solver, limits__time_limit=common.seconds(time_limit))
    nothing = no_relation or tagger.task.no_relation
    if out is not None:
        with output_directory(out):
            pass
    with passing_over(skip_bad) as faults, show_progress(errors) as progress:
        read = (each.without(nothing) for each in common.sentences_of(source, format, max_line, faults, split))
        found = judge(tagger, common.telling(read, progress, "Evaluating sentences"), seed=seed)
    common.show_evaluation(found, out, model=model.name, source=common.name_of(source), mode=str(mode))


def explain(
    model: common.Model,
    source: Annotated[
        str,
        typer.Argument(
            help="A sentence with its entities in brackets, or as a JSON line; or a file, as for `predict`; - is one."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page with the pictures.")] = Path(
        "explained.html"
    ),
    n: Annotated[int, typer.Option("--sentence", min=1, help="Which sentence of a file.")] = 1,
    width: Annotated[int | None, typer.Option(min=1, help="Width of the beam; the model's own by default.")] = None,
    theta: Annotated[
        float | None, typer.Option(min=0.0, help="Gap above which costs are skipped; the model's own by default.")
    ] = None,
    format: common.Format = "auto",
    max_line: common.MaxLine = 64,
) -> None:
    """Shows how one sentence is labelled: greedy search, the model's own search, and the proof, step by step."""
    from itertools import islice

    from hasten.support.files import write_whole
    from hasten.tasks.entity_relation import explain as explaining
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    common.check_apart(out, source, model)
    common.check_model(model, FORMAT, source)
    tagger = Tagger.load(model)
    if source == "-" or os.path.exists(source):
        sentence = next(islice(common.sentences_of(source, format, max_line), n - 1, None), None)
        if sentence is None:
            some = "no sentence" if n == 1 else f"fewer than {n:,} sentences"
            raise CorpusError(f"{common.name_of(source)} has {some}. Check the file, or choose one with --sentence.")
    elif "[" not in source and "{" not in source:
        raise CorpusError(f"There is no file {source!r}; and as a sentence it has no entities. {explaining.HOW}")
    else:
        sentence = explaining.read_sentence(source)
    with output_directory(out.parent):
        found = explaining.explain(tagger, sentence, width=width, theta=theta)
        write_whole(out, found.to_html().encode("utf-8", "replace"))
    for line in found.summary():
        say(line)
    wrote(out, more=", which shows every step.")


def convert(
    source: Annotated[str, typer.Argument(help="A corpus in any format that we read; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where JSON lines go; .gz compresses; - is standard output.")],
    format: common.Format = "auto",
    unlabeled: Annotated[bool, typer.Option("--unlabeled", help="Leave the labels out.")] = False,
    split: common.Listed = None,
    skip_bad: common.SkipBad = False,
    max_line: common.MaxLine = 64,
) -> None:
    """Turns a corpus into our JSON lines (docs/corpora.md)."""
    from hasten.tasks.entity_relation.data.formats import write_jsonl

    common.check_apart(target, source)
    with passing_over(skip_bad) as faults:
        sentences = common.sentences_of(source, format, max_line, faults, split)
        read = common.telling(sentences, no_progress, "", source)
        n = write_jsonl(target, (each.unlabeled() for each in read) if unlabeled else read)
    errors.print(f"Wrote {count(n, 'sentence')}.")
