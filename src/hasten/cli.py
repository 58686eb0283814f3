"""The command line: `hasten demo`, `reproduce`, `train`, `predict`, `convert`, `bench`, `solvers`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

import hasten
from hasten.errors import CorpusError, HastenError

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.corpus import Sentence
    from hasten.tasks.entity_relation.experiment import Experiment

app = typer.Typer(
    no_args_is_help=True,
    help="Makes a trained structured predictor faster over its lifetime without losing its answers.",
    pretty_exceptions_enable=False,
)
console = Console()
errors = Console(stderr=True)


class BlackBox(StrEnum):
    """How the black box is trained."""

    structured = "structured"
    independent = "independent"


class Mode(StrEnum):
    """How sentences are labelled."""

    certified = "certified"
    search = "search"


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.json and report.html.")]
Seed = Annotated[int, typer.Option(help="Fixes the split, the training and everything else that is drawn.")]
Corpus = Annotated[Path, typer.Option(help="Labelled corpus: conll04.corp or our JSON lines, plain, .gz or .zip.")]
Unlabeled = Annotated[
    list[Path] | None,
    typer.Option(help="Text with spans to learn the speedup from (CoNLL-2003, GMB, JSON lines). Repeatable."),
]
Box = Annotated[BlackBox, typer.Option("--black-box", help="Trained with inference in the loop, or not.")]


@app.command()
def demo(
    out: Out = Path("results/demo"),
    n: Annotated[int, typer.Option("--sentences", help="Labelled synthetic sentences.")] = 1000,
    seed: Seed = 0,
) -> None:
    """The paper's example and its whole experiment on an embedded synthetic corpus, in about a minute."""
    from hasten.demo import show_running_example
    from hasten.tasks.entity_relation.experiment import Experiment
    from hasten.tasks.entity_relation.synthetic import generate

    console.print("The first run compiles the kernels, which takes a minute or so; later runs load them.", style="dim")
    show_running_example(console)
    experiment = Experiment(
        [sentence for sentence in generate(2 * n, seed) if sentence.relations][:n],
        list(generate(10 * n, seed + 1, labelled=False)),
        runs=3,
        seed=seed,
        source="synthetic news, made for hasten",
        synthetic=True,
    )
    _run_and_report(experiment, out)


@app.command()
def reproduce(
    corpus: Corpus,
    out: Out,
    unlabeled: Unlabeled = None,
    solver: Annotated[str, typer.Option(help="The ILP solver: highs, gurobi, toulbar2 or cpsat.")] = "highs",
    runs: Annotated[int, typer.Option(min=1, help="How often each time is measured.")] = 5,
    seed: Seed = 0,
    black_box: Box = BlackBox.structured,
) -> None:
    """The paper's whole experiment (§5) on a real corpus: its tables, ours, and a report to read.

    Sentences of the corpus without relations, and those of --unlabeled files, are used without their labels.
    """
    from hasten.tasks.entity_relation.experiment import Experiment

    with _progress() as tell:
        labelled, unlabelled = _read(corpus, unlabeled or [], seed, tell)
    experiment = Experiment(
        labelled,
        unlabelled,
        black_box=black_box.value,
        solver=solver,
        runs=runs,
        seed=seed,
        source=", ".join(path.name for path in [corpus, *(unlabeled or [])]),
    )
    _run_and_report(experiment, out)


@app.command()
def train(
    corpus: Corpus,
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for the trained model.")],
    unlabeled: Unlabeled = None,
    black_box: Box = BlackBox.structured,
    induce: Annotated[
        bool, typer.Option(help="Take labels and argument types from the corpus, not from the paper.")
    ] = False,
    width: Annotated[int, typer.Option(min=1, help="Width of the beam in search mode.")] = 2,
    risk: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of answers that theta may change.")] = 0.01,
    seed: Seed = 0,
) -> None:
    """Trains a model for `hasten predict`."""
    from hasten.tasks.entity_relation.tagger import Tagger
    from hasten.tasks.entity_relation.task import EntityRelationTask

    with _progress() as tell:
        labelled, unlabelled = _read(corpus, unlabeled or [], seed, tell)
        task = EntityRelationTask.induced(labelled) if induce else EntityRelationTask()
        tagger = Tagger.train(
            labelled,
            unlabelled,
            task=task,
            black_box=black_box.value,
            width=width,
            risk=risk,
            seed=seed,
            tell=tell,
        )
        tagger.save(out)
    console.print(f"Trained on {len(labelled)} labelled and {len(unlabelled)} unlabeled sentences.")
    console.print(f"Wrote [bold]{out}[/]. Label text with: hasten predict {out} INPUT.jsonl OUTPUT.jsonl")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="What `hasten train` wrote.")],
    source: Annotated[str, typer.Argument(help="Sentences with spans, as JSON lines; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where labelled JSON lines go; - for standard output.")],
    mode: Annotated[Mode, typer.Option(help="Prove every answer, or trust the search.")] = Mode.certified,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved.")] = "highs",
) -> None:
    """Labels the entities and relations of a stream of sentences, of any length, in constant memory."""
    from dataclasses import replace

    from hasten.tasks.entity_relation.formats import read_corpus, write_jsonl
    from hasten.tasks.entity_relation.tagger import Tagger

    tagger = replace(Tagger.load(model), mode=mode.value, solver=solver)
    counts = {"sentences": 0, "proved": 0, "solver": 0}

    def labelled() -> Iterator[Sentence]:
        with _progress(quiet=target == "-") as tell:
            for answer in tagger.label(read_corpus(source)):
                counts["sentences"] += 1
                counts["proved"] += answer.proved
                counts["solver"] += answer.source == "solver"
                if counts["sentences"] % 256 == 0:
                    tell(f"Labelled {counts['sentences']:,} sentences", 0.0)
                yield answer.sentence

    write_jsonl(target, labelled())
    errors.print(
        f"Labelled {counts['sentences']:,} sentences: {counts['proved']:,} proved, {counts['solver']:,} by the solver."
    )


@app.command()
def convert(
    source: Annotated[str, typer.Argument(help="A corpus in any format that we read; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where JSON lines go; .gz compresses; - is standard output.")],
    format: Annotated[str, typer.Option(help="auto, conll04, conll2003, gmb or jsonl.")] = "auto",
    unlabelled: Annotated[bool, typer.Option("--unlabelled", help="Leave the labels out.")] = False,
) -> None:
    """Turns a corpus into our JSON lines (docs/corpora.md)."""
    from hasten.tasks.entity_relation.formats import read_corpus, write_jsonl

    sentences = read_corpus(source, format)
    n = write_jsonl(target, (s.unlabelled() for s in sentences) if unlabelled else sentences)
    errors.print(f"Wrote {n:,} sentences.")


@app.command()
def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for JSON and plots.")] = Path("results/peers"),
    family: Annotated[list[str] | None, typer.Option(help="Problem family; repeatable.")] = None,
    size: Annotated[list[int] | None, typer.Option(help="Problem size; repeatable.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Peer to compare with; repeatable.")] = None,
    n: Annotated[int | None, typer.Option("--problems", help="Problems of each size.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Adds real costs from a labelled corpus.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute.")] = False,
    seed: Seed = 0,
) -> None:
    """Measures hasten and other solvers side by side, on the same problems."""
    from hasten.bench.run import main

    main(family, size, peer, n, out, corpus, quick=quick, seed=seed, report=console.print)


@app.command()
def solvers() -> None:
    """Lists the solvers, and how to install those that are missing."""
    for name, installed in hasten.available_solvers().items():
        console.print(f"{name:10s} " + ("installed" if installed else f'pip install "hasten\\[{name}]"'))


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


def main() -> None:
    """Runs the command line; what goes wrong on purpose is told in one line."""
    try:
        app()
    except HastenError as error:
        errors.print(f"[red]Error:[/] {error}", highlight=False)
        sys.exit(1)
    except KeyboardInterrupt:
        errors.print("Interrupted. Nothing half-done was left behind.")
        sys.exit(130)


@contextmanager
def _progress(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """Shows what is being done, and how far it is."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=errors, transient=True, disable=quiet) as progress:
        bar = progress.add_task("Starting", total=1.0)

        def tell(what: str, share: float) -> None:
            progress.update(bar, description=what, completed=share)

        yield tell


def _read(
    corpus: Path, unlabeled: Sequence[Path], seed: int, tell: Callable[[str, float], None]
) -> tuple[list[Sentence], list[Sentence]]:
    """Reads the labelled sentences with relations, and all others with two spans or more, without labels."""
    import random

    from hasten.tasks.entity_relation.formats import read_corpus

    tell(f"Reading {corpus.name}", 0.0)
    sentences = list(read_corpus(corpus))
    labelled = [sentence for sentence in sentences if sentence.relations]
    rest = [sentence.unlabelled() for sentence in sentences if not sentence.relations]
    if not labelled:
        raise CorpusError(f"{corpus} has no sentence with a relation. Give an annotated corpus.")
    for n, path in enumerate(unlabeled):
        tell(f"Reading {path.name}", n / len(unlabeled))
        rest += [sentence.unlabelled() for sentence in read_corpus(path)]
    rest = [sentence for sentence in rest if len(sentence.spans) > 1]
    random.Random(seed).shuffle(rest)
    return labelled, rest


def _run_and_report(experiment: Experiment, out: Path) -> None:
    from hasten.files import write_whole
    from hasten.tasks.entity_relation.report import write_report

    with _progress() as tell:
        results = experiment.run(tell)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / "results.json", json.dumps(results, indent=1).encode())
    write_report(results, out / "report.html")
    _show(results)
    console.print(f"Wrote [bold]{out / 'results.json'}[/] and [bold]{out / 'report.html'}[/]")


def _show(results: dict[str, Any]) -> None:
    """Prints the rows of an experiment, narrow enough for eighty columns."""
    about = results["about"]
    what = "synthetic sentences" if about["synthetic"] else "sentences"
    table = Table(
        title=f"{about['n_test']} test {what}, {about['black_box']} black box, ILP by {about['solver']}",
        caption="F1 against gold and against the ILP; share of costs computed; CPU ms of the whole test set\n"
        "in one thread, features included, and how many times faster than the ILP",
        box=None,
        padding=(0, 1, 0, 0),
        header_style="bold underline",
    )
    table.add_column("model", no_wrap=True)
    for name in ("ent", "rel", "relILP", "valid", "exact", "costs", "ms", "times"):
        table.add_column(name, justify="right", no_wrap=True)
    ilp = results["rows"][0]["time_ms"]
    for row in results["rows"]:
        table.add_row(
            _name(row),
            *(f"{row[key]:.3f}" for key in ("entity_f1_gold", "relation_f1_gold", "relation_f1_ilp")),
            f"{row['validity']:.2f}",
            f"{row['exact_match']:.3f}",
            f"{row['costs_computed']:.0%}",
            f"{row['time_ms']:.1f}",
            f"{ilp / row['time_ms']:.1f}" if row["time_ms"] else "",
            style="bold" if row["model"] == "certified" else None,
        )
    console.print(table)
    for each in results["calibration"]:
        if each["enforce"]:
            console.print(
                f"Side by side, calibrated and enforced, b={each['width']}: {each['times_faster_than_greedy']:.2f} "
                f"times as fast as greedy search, end to end."
            )


def _name(row: dict[str, Any]) -> str:
    """Returns what a row is called: its model, the width of its beam, its theta."""
    beam = "" if row["beam"] is None else f" b={row['beam']}"
    theta = "" if row["theta"] is None else " θ=max" if row["theta"] > 1e300 else f" θ={row['theta']:.3g}"
    return f"{row['model']}{beam}{theta}"


if __name__ == "__main__":
    main()
