"""`hasten train`, `predict`, `evaluate`, `explain` and `convert`: labelling text."""

from __future__ import annotations

import math
import os
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import hasten
from hasten.commands import common
from hasten.commands.common import MILLION, collected_faults, errors, say, wrote
from hasten.errors import CorpusError
from hasten.solvers import check_solver
from hasten.speedup.parts import TextMode
from hasten.support.files import output_directory, write_whole
from hasten.support.terminal import no_progress, show_progress
from hasten.support.words import count
from hasten.tasks.entity_relation.task import BlackBox

if TYPE_CHECKING:
    from hasten.scale.run import ShardedRun
    from hasten.tasks.entity_relation.tagger import Tagger


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
    width: Annotated[int, typer.Option(min=1, help="Beam width in search mode.")] = 2,
    risk: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of answers that theta may change.")] = 0.01,
    seed: common.Seed = 0,
    max_line: common.MaxLine = 64,
) -> None:
    """Trains a labeller of entities and relations.

    It learns from all labelled sentences, also from those without relations, or from the sentences that --split lists
    for training; and from unlabeled text. With a --dev file or a split it also evaluates the model, on the dev
    sentences or, if there are none, on the test sentences.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading, Split
    from hasten.tasks.entity_relation.evaluating import evaluate as score
    from hasten.tasks.entity_relation.tagger import Tagger, check_place
    from hasten.tasks.entity_relation.task import EntityRelationTask

    check_place(out)
    lists = Split.read(split) if split else None
    with output_directory(out.parent):
        with collected_faults(skip_bad) as faults, show_progress(errors) as progress:
            reading = Reading(no_relation, faults, max_line * MILLION, progress)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, reading=reading, seed=seed)
        sentences, held_out, part = corpora.to_train(lists)
        common.check_enough(len(sentences), "labelled sentence")
        task = EntityRelationTask.fitting(sentences, induce=induce, no_relation=no_relation)
        common.report_task(task, induce)
        with show_progress(errors) as progress:
            how: dict[str, Any] = {"task": task, "black_box": black_box, "width": width, "risk": risk, "seed": seed}
            tagger = Tagger.train(sentences, corpora.unlabeled, progress=progress, **how)
        tagger.save(out)
    n_unlabeled = count(len(corpora.unlabeled), "unlabeled sentence")
    say(f"Trained on {count(len(sentences), 'labelled sentence')} and {n_unlabeled}.")
    common.warn_unreachable(sentences, task)
    if held_out:
        say(f"On the {count(len(held_out), 'labelled sentence')} of {part}:")
        common.show_evaluation(score(tagger, held_out, seed=seed))
    if tagger.note:
        say(tagger.note)
    wrote(out, more=f". Label text with: hasten predict {out} INPUT.jsonl OUTPUT.jsonl")


def _load(model: Path, source: str, mode: str, solver: str, time_limit: float) -> Tagger:
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_solver(solver)
    common.check_model(model, FORMAT, source)
    limit = None if math.isinf(time_limit) else time_limit
    return Tagger.load(model).asking(mode, solver=solver, limits__time_limit=limit)


class EngineName(StrEnum):
    """The engines that can do the work: this process, or Ray."""

    LOCAL = "local"
    RAY = "ray"


def predict(
    model: common.Model,
    source: Annotated[
        str,
        typer.Argument(
            help="Sentences with spans, in any format; - is standard input. For shards: JSON lines or Parquet, as a "
            "file, a directory, a pattern or a URL."
        ),
    ],
    target: Annotated[
        str,
        typer.Argument(
            help="File for labelled JSON lines; - is standard output. A target that ends in / is a directory of "
            "shards, and the run can be resumed."
        ),
    ],
    mode: common.Mode = TextMode.CERTIFIED,
    solver: common.Solver = "highs",
    time_limit: common.TimeLimit = 10.0,
    format: common.Format = "auto",
    skip_bad: common.SkipBad = False,
    max_line: common.MaxLine = 64,
    jobs: common.Jobs = 1,
    engine: Annotated[EngineName, typer.Option(help="Run on this machine, or on a Ray cluster.")] = EngineName.LOCAL,
    address: Annotated[
        str | None,
        typer.Option(help="Address of the Ray cluster; without it, Ray starts on this machine and uses --jobs cores."),
    ] = None,
    shard_size: Annotated[int, typer.Option(min=1, help="Sentences in a shard.")] = 20_000,
    max_bad: Annotated[
        int, typer.Option(min=0, help="Bad sentences to set aside in bad.jsonl, with the reason, when writing shards.")
    ] = 1000,
) -> None:
    """Labels the entities and relations of a stream of sentences, in constant memory.

    Each output line has "proved": true or false, for labels that are proved optimal without the solver. "optimal":
    false marks a sentence whose time limit was reached. "failed" says why the solver failed; then the labels are the
    best known without it, or missing.

    With a directory as the target, the work is done shard by shard, and the same command given again does the shards
    that are left. With --engine ray and a file as the target, the shards are kept in TARGET.shards and merged at the
    end.
    """
    from hasten.tasks.entity_relation.labelling import Labeller

    common.check_apart(target, source, model)
    labeller = Labeller(_load(model, source, mode, solver, time_limit))
    if address is not None and engine is not EngineName.RAY:
        raise hasten.ProblemError("An address is for --engine ray. Add that, or leave out the address.")
    run: ShardedRun | None = None
    if engine is EngineName.RAY or target.endswith("/"):
        from hasten.scale.run import Sharding, on_this_machine, predict_shards

        if "-" in (source, target):
            raise CorpusError("A stream has no shards: name files, or leave out --engine ray.")
        workers = on_this_machine(jobs)
        if engine is EngineName.RAY:
            from hasten.ray.predicting import on_ray

            workers = on_ray(address=address, cores=None if address else jobs)
        answers = "parquet" if target.endswith(".parquet") else "jsonl"
        how = Sharding(answers, shard_size, max_bad, max_line * MILLION)
        out = target if target.endswith("/") else f"{target}.shards"
        with show_progress(errors) as progress:
            run = predict_shards(labeller, source, out, how=how, engine=workers, progress=progress)
            if not target.endswith("/"):
                progress("Merging the shards", None)
                run.merge(target)
        counts = run.counts
    else:
        from hasten.scale.work import predict_stream

        if target.endswith(".parquet"):
            raise CorpusError(f"{target} would hold JSON lines. Call it .jsonl, or add --engine ray for a table.")
        with collected_faults(skip_bad) as faults, show_progress(errors, quiet=target == "-") as progress:
            counts = predict_stream(
                labeller, source, target, format=format, max_line=max_line * MILLION, faults=faults, jobs=jobs,
                progress=progress,
            )  # fmt: skip
    labelled = count(counts["problems"], "sentence")
    say(f"Labelled {labelled}: {counts['proved']:,} proved, {counts['by_solver']:,} by the solver.", errors)
    if counts["late"]:
        late = count(counts["late"], "sentence")
        say(f"The time limit was reached on {late}, labelled with the best answer so far (--time-limit).", errors)
    if counts["failed"]:
        say(f"The solver failed on {count(counts['failed'], 'sentence')}; their lines say why.", errors)
    if run is not None and run.n_kept:
        say(f"{count(run.n_kept, 'shard')} of {len(run.files):,} had been finished before.", errors)
    if run is not None and run.bad:
        listed = os.path.join(run.out, "bad.jsonl")
        say(f"Could not read {count(len(run.bad), 'sentence')}; {listed} says which, and why.", errors)


def evaluate(
    model: common.Model,
    source: Annotated[str, typer.Argument(help="Labelled sentences, in any format; - is standard input.")],
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
    """Scores a model against gold labels: precision, recall and F1 of each label, valid answers, unreachable gold."""
    from hasten.tasks.entity_relation.evaluating import evaluate as score

    tagger = _load(model, source, mode, solver, time_limit)
    nothing = no_relation or tagger.task.no_relation
    if out is not None:
        with output_directory(out):
            pass
    with collected_faults(skip_bad) as faults, show_progress(errors) as progress:
        sentences = (each.without(nothing) for each in common.sentences_of(source, format, max_line, faults, split))
        found = score(tagger, common.counted(sentences, progress, "Evaluating sentences"), seed=seed)
    common.show_evaluation(found, out, model=model.name, source=common.name_of(source), mode=str(mode))


def explain(
    model: common.Model,
    source: Annotated[
        str,
        typer.Argument(
            help="A sentence with its entities in brackets, or as a JSON line; or a file, as for `predict` (- is "
            "standard input)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the page with the pictures.")] = Path(
        "explained.html"
    ),
    n: Annotated[int, typer.Option("--sentence", min=1, help="Number of the sentence in a file.")] = 1,
    width: Annotated[int | None, typer.Option(min=1, help="Beam width. Default: the model's own.")] = None,
    theta: Annotated[
        float | None, typer.Option(min=0.0, help="Gap above which costs are skipped. Default: the model's own.")
    ] = None,
    format: common.Format = "auto",
    max_line: common.MaxLine = 64,
) -> None:
    """Shows how a sentence is labelled: greedy search, the model's own search, and the proof, step by step."""
    from hasten.tasks.entity_relation import explain as explaining
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    common.check_apart(out, source, model)
    common.check_model(model, FORMAT, source)
    tagger = Tagger.load(model)
    if source == "-" or os.path.exists(source):
        sentence = next(islice(common.sentences_of(source, format, max_line), n - 1, None), None)
        if sentence is None:
            few = "no sentence" if n == 1 else f"fewer than {n:,} sentences"
            raise CorpusError(f"{common.name_of(source)} has {few}. Check the file, or choose one with --sentence.")
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
    source: Annotated[str, typer.Argument(help="Corpus in any format that hasten reads; - is standard input.")],
    target: Annotated[str, typer.Argument(help="File for JSON lines; .gz compresses, - is standard output.")],
    format: common.Format = "auto",
    unlabeled: Annotated[bool, typer.Option("--unlabeled", help="Leave the labels out.")] = False,
    split: common.Listed = None,
    skip_bad: common.SkipBad = False,
    max_line: common.MaxLine = 64,
) -> None:
    """Converts a corpus to JSON lines (docs/corpora.md)."""
    from hasten.tasks.entity_relation.data.formats import write_jsonl

    common.check_apart(target, source)
    with collected_faults(skip_bad) as faults:
        found = common.sentences_of(source, format, max_line, faults, split)
        sentences = common.counted(found, no_progress, "", source)
        n = write_jsonl(target, (each.unlabeled() for each in sentences) if unlabeled else sentences)
    errors.print(f"Wrote {count(n, 'sentence')}.")
