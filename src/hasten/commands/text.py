"""`hasten train`, `evaluate`, `explain` and `convert`: labelling text."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

import hasten
from hasten.commands.common import (
    MILLION,
    Box,
    Corpus,
    CorpusOption,
    Dev,
    Format,
    Induce,
    Listed,
    Lists,
    MaxLine,
    Model,
    NoRelation,
    Seed,
    SkipBad,
    TimeLimit,
    Unlabeled,
    at_least_one,
    check_apart,
    check_enough,
    check_model,
    console,
    errors,
    passing_over,
    seconds,
    sentences_of,
    show_evaluation,
    tell_task,
    tell_unreachable,
    telling,
    the_corpus,
    write_evaluation,
)
from hasten.solvers import check_solver
from hasten.speedup.mode import TextMode
from hasten.support.files import output_directory
from hasten.support.progress import show_progress
from hasten.support.terminal import printable
from hasten.support.words import count
from hasten.tasks.entity_relation.names import BlackBox


def train(
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the trained model.")],
    corpus: Corpus = None,
    corpus_option: CorpusOption = None,
    unlabeled: Unlabeled = None,
    black_box: Box = BlackBox.STRUCTURED,
    dev: Dev = None,
    split: Lists = None,
    induce: Induce = None,
    no_relation: NoRelation = None,
    skip_bad: SkipBad = False,
    width: Annotated[int, typer.Option(min=1, help="Width of the beam in search mode.")] = 2,
    risk: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of answers that theta may change.")] = 0.01,
    seed: Seed = 0,
    max_line: MaxLine = 64,
) -> None:
    """Trains a model for `hasten predict`.

    It learns from all labelled sentences, those without relations too, or from those that --split lists for training.
    Unlabeled text adds to them. Given a --dev file, or a split, it says how well the model does on the dev sentences,
    or on the test sentences if there are none, as `hasten evaluate` does.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora, Reading
    from hasten.tasks.entity_relation.data.split import Split
    from hasten.tasks.entity_relation.tagger import Tagger, TrainingSettings, check_place
    from hasten.tasks.entity_relation.task import EntityRelationTask

    check_place(out)
    corpus = the_corpus(corpus, corpus_option)
    lists = Split.read(split) if split else None
    with output_directory(out.parent):
        with passing_over(skip_bad) as faults, show_progress(errors) as tell:
            reading = Reading(no_relation, faults, max_line * MILLION, tell)
            corpora = Corpora.read(corpus, unlabeled or [], dev=dev, reading=reading, seed=seed)
        taught, tested, part = corpora.to_train(lists)
        check_enough(len(taught), "labelled sentence")
        task = EntityRelationTask.fitting(taught, induce=induce, no_relation=no_relation)
        tell_task(task, induce)
        with show_progress(errors) as tell:
            settings = TrainingSettings(black_box, width, risk, seed)
            tagger = Tagger.train(taught, corpora.unlabeled, task=task, settings=settings, tell=tell)
        tagger.save(out)
    n_labelled, n_unlabeled = len(taught), len(corpora.unlabeled)
    console.print(
        f"Trained on {count(n_labelled, 'labelled sentence')} and {count(n_unlabeled, 'unlabeled sentence')}."
    )
    tell_unreachable(taught, task)
    if tested:
        from hasten.tasks.entity_relation.evaluating import evaluate as judge

        console.print(f"On the {count(len(tested), 'labelled sentence')} of {part}:", highlight=False)
        show_evaluation(judge(tagger, tested, seed=seed))
    if tagger.note:
        console.print(escape(tagger.note), highlight=False, soft_wrap=True)
    place = escape(printable(out))
    console.print(
        f"Wrote [bold]{place}[/]. Label text with: hasten predict {place} INPUT.jsonl OUTPUT.jsonl", soft_wrap=True
    )


def evaluate(
    model: Model,
    source: Annotated[str, typer.Argument(help="Labelled sentences, in any format; - for standard input.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Directory for evaluation.json and evaluation.html.")
    ] = None,
    mode: Annotated[TextMode, typer.Option(help="Prove every answer, or trust the search.")] = TextMode.CERTIFIED,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved.")] = "highs",
    time_limit: TimeLimit = 10.0,
    format: Format = "auto",
    split: Listed = None,
    no_relation: NoRelation = None,
    skip_bad: SkipBad = False,
    seed: Seed = 0,
    max_line: MaxLine = 64,
) -> None:
    """Says how well a model labels: precision, recall and F1 of each label, validity, and gold that it cannot reach."""
    from hasten.tasks.entity_relation.evaluating import evaluate as judge
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_solver(solver)
    check_model(model, FORMAT, source)
    tagger = Tagger.load(model).asking(mode, solver=solver, limits__time_limit=seconds(time_limit))
    nothing = no_relation or tagger.task.no_relation
    if out is not None:
        with output_directory(out):
            pass
    with passing_over(skip_bad) as faults, show_progress(errors) as tell:
        read = (sentence.without(nothing) for sentence in sentences_of(source, format, max_line, faults, split))
        found = judge(tagger, telling(read, tell, "Evaluating sentences"), seed=seed)
    show_evaluation(found)
    if out is not None:
        about = {"model": model.name, "source": Path(source).name, "mode": str(mode)}
        write_evaluation(found.as_dict(**about), out)


def explain(
    model: Model,
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
    format: Format = "auto",
    max_line: MaxLine = 64,
) -> None:
    """Shows how one sentence is labelled: greedy search, the model's own search, and the proof, step by step."""
    from itertools import islice

    from hasten.support.files import write_whole
    from hasten.tasks.entity_relation import explain as explaining
    from hasten.tasks.entity_relation.tagger import FORMAT, Tagger

    check_model(model, FORMAT, source)
    tagger = Tagger.load(model)
    if source == "-" or os.path.exists(source):
        sentence = next(islice(sentences_of(source, format, max_line), n - 1, None), None)
        if sentence is None:
            raise hasten.errors.CorpusError(
                f"{source} has fewer than {count(n, 'sentence')}. Choose one with --sentence."
            )
    else:
        sentence = explaining.read_sentence(source)
    with output_directory(out.parent):
        found = explaining.explain(tagger, sentence, width=width, theta=theta)
        write_whole(out, found.to_html().encode("utf-8", "replace"))
    for line in found.summary():
        console.print(escape(printable(line)), highlight=False, soft_wrap=True)
    console.print(f"Wrote [bold]{escape(printable(out))}[/], which shows every step.", soft_wrap=True)


def convert(
    source: Annotated[str, typer.Argument(help="A corpus in any format that we read; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where JSON lines go; .gz compresses; - is standard output.")],
    format: Format = "auto",
    unlabeled: Annotated[bool, typer.Option("--unlabeled", help="Leave the labels out.")] = False,
    split: Listed = None,
    skip_bad: SkipBad = False,
    max_line: MaxLine = 64,
) -> None:
    """Turns a corpus into our JSON lines (docs/corpora.md)."""
    from hasten.tasks.entity_relation.data.formats import write_jsonl

    check_apart(source, target)
    with passing_over(skip_bad) as faults:
        sentences = at_least_one(sentences_of(source, format, max_line, faults, split), source)
        n = write_jsonl(target, (s.unlabeled() for s in sentences) if unlabeled else sentences)
    errors.print(f"Wrote {count(n, 'sentence')}.")
