"""The command line: `hasten demo`, `reproduce`, `train`, `predict`, `explain`, `convert`, `solve`, `bench`, …"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

import hasten
from hasten.errors import HastenError
from hasten.speedup.mode import TextMode
from hasten.support.files import output_directory
from hasten.support.progress import show_progress
from hasten.support.terminal import all_printed, printable
from hasten.tasks.entity_relation.names import Training

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.data.corpus import Sentence
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

app = typer.Typer(
    no_args_is_help=True,
    help="Makes a trained structured predictor faster over its lifetime without losing its answers.",
    pretty_exceptions_enable=False,
)
console = Console()
MILLION = 1_000_000
errors = Console(stderr=True)


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.json and report.html.")]
Seed = Annotated[int, typer.Option(min=0, help="Fixes the split, the training and everything else that is drawn.")]
Corpus = Annotated[Path, typer.Option(help="Labelled corpus: conll04.corp or our JSON lines, plain, .gz or .zip.")]
Unlabeled = Annotated[
    list[Path] | None,
    typer.Option(help="Text with spans to learn the speedup from (CoNLL-2003, GMB, JSON lines). Repeatable."),
]
Format = Annotated[str, typer.Option(help="Of the corpus: auto, conll04, conll2003, gmb or jsonl.")]
MaxLine = Annotated[
    int, typer.Option("--max-line", min=1, help="Longest line that is read, in millions of characters.")
]
Box = Annotated[Training, typer.Option("--black-box", help="Trained with inference in the loop, or not.")]


@app.command()
def demo(
    out: Out = Path("results/demo"),
    n: Annotated[int, typer.Option("--sentences", min=20, help="Labelled synthetic sentences.")] = 1000,
    seed: Seed = 0,
) -> None:
    """The paper's example and its whole experiment on an embedded synthetic corpus, in about a minute."""
    from hasten.demo import show_running_example
    from hasten.tasks.entity_relation.data.corpora import Corpora
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

    with output_directory(out):
        console.print(
            "The first run compiles the kernels, which takes a minute or so; later runs load them.", style="dim"
        )
        show_running_example(console)
        _run_and_report(Experiment.on(Corpora.made_up(n, seed), runs=3, seed=seed), out)


@app.command()
def reproduce(
    corpus: Corpus,
    out: Out,
    unlabeled: Unlabeled = None,
    solver: Annotated[str, typer.Option(help="The ILP solver: highs, gurobi, toulbar2 or cpsat.")] = "highs",
    runs: Annotated[int, typer.Option(min=1, help="How often each time is measured; the seeds share them.")] = 5,
    seed: Seed = 0,
    seeds: Annotated[
        int, typer.Option(min=1, help="Do all of it so often, with splits and learners of their own: mean ± deviation.")
    ] = 1,
    split: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PART=FILE",
            help="Ids of the sentences that train, test or (dev) are set aside, one a line; a file whose name says its "
            "part needs no PART. Without it, 70% train and 30% test, drawn. Repeatable.",
        ),
    ] = None,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the unlabeled text, at most.")] = 5,
    black_box: Box = Training.STRUCTURED,
    induce: Annotated[
        bool, typer.Option(help="Take labels and argument types from the corpus, not from the paper.")
    ] = False,
    max_line: MaxLine = 64,
) -> None:
    """The paper's whole experiment (§5) on a real corpus: its tables, ours, and a report to read.

    Sentences of the corpus without relations, and those of --unlabeled files, are used without their labels. The
    paper's figures stand beside ours on its own corpus alone, the 1,441 sentences of CoNLL04 that have a relation.
    """
    from hasten.tasks.entity_relation.data.corpora import Corpora
    from hasten.tasks.entity_relation.data.split import Split
    from hasten.tasks.entity_relation.experiment.experiment import Experiment

    hasten.make_solver(solver)  # one that is not there is refused now
    lists = Split.read(split) if split else None
    with output_directory(out):
        with show_progress(errors) as tell:
            corpora = Corpora.read(corpus, unlabeled or [], max_line=max_line * MILLION, seed=seed, tell=tell)
        settings = {"solver": solver, "runs": runs, "seed": seed, "seeds": seeds, "epochs": epochs, "split": lists}
        _run_and_report(Experiment.on(corpora, black_box=black_box, induce=induce, **settings), out)


@app.command()
def train(
    corpus: Corpus,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the trained model.")],
    unlabeled: Unlabeled = None,
    black_box: Box = Training.STRUCTURED,
    induce: Annotated[
        bool, typer.Option(help="Take labels and argument types from the corpus, not from the paper.")
    ] = False,
    width: Annotated[int, typer.Option(min=1, help="Width of the beam in search mode.")] = 2,
    risk: Annotated[float, typer.Option(min=0.0001, max=0.5, help="Share of answers that theta may change.")] = 0.01,
    seed: Seed = 0,
    max_line: MaxLine = 64,
) -> None:
    """Trains a model for `hasten predict`."""
    from hasten.tasks.entity_relation.data.corpora import Corpora
    from hasten.tasks.entity_relation.tagger import Tagger, check_place

    check_place(out)
    with output_directory(out.parent):
        with show_progress(errors) as tell:
            corpora = Corpora.read(corpus, unlabeled or [], max_line=max_line * MILLION, seed=seed, tell=tell)
            tagger = Tagger.train(
                corpora.labelled,
                corpora.unlabeled,
                induce=induce,
                black_box=black_box,
                width=width,
                risk=risk,
                seed=seed,
                tell=tell,
            )
        tagger.save(out)
    n_labelled, n_unlabeled = len(corpora.labelled), len(corpora.unlabeled)
    console.print(
        f"Trained on {_count(n_labelled, 'labelled sentence')} and {_count(n_unlabeled, 'unlabeled sentence')}."
    )
    console.print(tagger.about_theta, highlight=False)
    if tagger.about_gate:
        console.print(tagger.about_gate, highlight=False)
    place = escape(printable(out))
    console.print(
        f"Wrote [bold]{place}[/]. Label text with: hasten predict {place} INPUT.jsonl OUTPUT.jsonl", soft_wrap=True
    )


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="What `hasten train` wrote.")],
    source: Annotated[str, typer.Argument(help="Sentences with spans, in any format; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where labelled JSON lines go; - for standard output.")],
    mode: Annotated[TextMode, typer.Option(help="Prove every answer, or trust the search.")] = TextMode.CERTIFIED,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved.")] = "highs",
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds that a sentence may take; then the best found has to do.")
    ] = None,
    format: Format = "auto",
    max_line: MaxLine = 64,
) -> None:
    """Labels the entities and relations of a stream of sentences, of any length, in constant memory.

    Each line says whether its labels were proved optimal without the solver: "proved": true or false. Where the solver
    failed, "failed" says why, and the labels are the best known without it, or left out.
    """
    from dataclasses import replace

    from hasten.tasks.entity_relation.data.formats.jsonl import to_json, write_objects
    from hasten.tasks.entity_relation.tagger import Tagger

    hasten.make_solver(solver)  # one that is not there is refused now
    tagger = replace(Tagger.load(model), mode=mode, solver=solver, time_limit=time_limit)
    sentences = _sentences(source, format, max_line)
    counts = {"proved": 0, "solver": 0, "failed": 0}

    def labelled() -> Iterator[dict[str, object]]:
        with show_progress(errors, quiet=target == "-") as tell:
            for n, answer in enumerate(tagger.label(sentences)):
                if n % 256 == 0:
                    tell("Labelling sentences", None, f"{n:,}")
                counts["proved"] += answer.proved
                counts["solver"] += answer.source is hasten.Source.SOLVER
                counts["failed"] += bool(answer.reason)
                failed = {"failed": answer.reason} if answer.reason else {}
                yield to_json(answer.sentence) | {"proved": answer.proved} | failed

    n = write_objects(target, labelled())
    errors.print(f"Labelled {_count(n, 'sentence')}: {counts['proved']:,} proved, {counts['solver']:,} by the solver.")
    if counts["failed"]:
        errors.print(f"The solver failed on {_count(counts['failed'], 'sentence')}; their lines say why.")


@app.command()
def explain(
    model: Annotated[Path, typer.Argument(help="What `hasten train` wrote.")],
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
    from hasten.tasks.entity_relation.tagger import Tagger

    tagger = Tagger.load(model)
    if source == "-" or os.path.exists(source):
        sentence = next(islice(_sentences(source, format, max_line), n - 1, None), None)
        if sentence is None:
            raise hasten.CorpusError(f"{source} has fewer than {_count(n, 'sentence')}. Choose one with --sentence.")
    else:
        sentence = explaining.read_sentence(source)
    with output_directory(out.parent):
        found = explaining.explain(tagger, sentence, width=width, theta=theta)
        write_whole(out, found.to_html().encode("utf-8", "replace"))
    for line in str(found).splitlines():
        console.print(escape(printable(line)), highlight=False, soft_wrap=True)
    console.print(f"\nWrote [bold]{escape(printable(out))}[/], which shows the same in pictures.", soft_wrap=True)


@app.command()
def convert(
    source: Annotated[str, typer.Argument(help="A corpus in any format that we read; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where JSON lines go; .gz compresses; - is standard output.")],
    format: Format = "auto",
    unlabeled: Annotated[bool, typer.Option("--unlabeled", help="Leave the labels out.")] = False,
    max_line: MaxLine = 64,
) -> None:
    """Turns a corpus into our JSON lines (docs/corpora.md)."""
    from hasten.tasks.entity_relation.data.formats import write_jsonl

    sentences = _sentences(source, format, max_line)
    n = write_jsonl(target, (s.unlabeled() for s in sentences) if unlabeled else sentences)
    errors.print(f"Wrote {_count(n, 'sentence')}.")


@app.command()
def solve(
    files: Annotated[list[Path], typer.Argument(help="Programs: .mps, .lp, .wcsp, .cfn or .uai, plain or .gz.")],
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds that each may take; then the best found has to do.")
    ] = None,
    solver: Annotated[str, typer.Option(help="Who is asked where nothing is proved.")] = "highs",
    out: Annotated[
        Path | None,
        typer.Option(help="File for the values, a name and a value a line; for several programs, a directory."),
    ] = None,
    describe: Annotated[bool, typer.Option("--describe", help="Say what was recognised.")] = False,
) -> None:
    """Answers programs in files, whatever they state: objective, bound, gap, and how each answer was proved."""
    from hasten.programs.solution_file import solution_path, write_solution

    hasten.make_solver(solver)  # one that is not there is refused now
    if out is not None:
        with output_directory(out if len(files) > 1 else out.parent):
            pass
    for file in files:
        with show_progress(errors) as tell:
            tell(f"Reading {printable(file)}", None)
            program = hasten.read(file)
            tell(f"Recognising {printable(file)}", None)
            about = program.describe()
            tell(f"Answering {printable(file)}", None)
            answer = program.solve(solver=solver, time_limit=time_limit)
        place = escape(printable(file))
        if describe:
            console.print(escape(printable(about)), highlight=False, soft_wrap=True)
        if answer.values_found is None:
            console.print(
                f"[bold]{place}[/]: {escape(str(answer.reason or answer.status))}", highlight=False, soft_wrap=True
            )
        else:
            gap = answer.gap if answer.gap > 1e-9 * max(1.0, abs(answer.objective)) else 0.0  # not what rounding leaves
            line = f"objective {answer.objective:.12g}, bound {answer.bound:.12g}, gap {gap:.3g}"
            console.print(f"[bold]{place}[/]: {line}", highlight=False, soft_wrap=True)
            console.print(escape(answer.how), highlight=False, soft_wrap=True)
            if out is not None:
                target = solution_path(out, file) if len(files) > 1 else out
                write_solution(target, answer)
                console.print(f"Wrote [bold]{escape(printable(target))}[/]", soft_wrap=True)


@app.command()
def bench(
    out: Annotated[Path, typer.Option("--out", "-o", help="Directory for JSON and plots.")] = Path("results/peers"),
    family: Annotated[list[str] | None, typer.Option(help="Problem family; repeatable.")] = None,
    size: Annotated[list[int] | None, typer.Option(min=1, help="Problem size; repeatable.")] = None,
    peer: Annotated[list[str] | None, typer.Option(help="Peer to compare with; repeatable.")] = None,
    n: Annotated[int | None, typer.Option("--problems", min=1, help="Problems of each size.")] = None,
    corpus: Annotated[Path | None, typer.Option(help="Adds real costs from a labelled corpus.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Under a minute.")] = False,
    seed: Seed = 0,
) -> None:
    """Measures hasten and other solvers side by side, on the same problems."""
    from hasten.bench.run import main

    with output_directory(out):
        main(
            family,
            size,
            peer,
            n,
            out,
            corpus,
            quick=quick,
            seed=seed,
            report=lambda line: console.print(escape(printable(line))),
        )


@app.command("compile")
def compile_all() -> None:
    """Compiles every kernel now, so that nothing waits for it later: for images, clusters and continuous integration.

    Kernels are kept beside the package; where that cannot be written, in the user's cache directory. NUMBA_CACHE_DIR
    names another place. What other versions left there is removed.
    """
    from hasten.warm import compile_and_tidy

    with show_progress(errors) as tell:
        done = compile_and_tidy(tell)
    console.print(f"{_count(done.n_drivers, 'driver')} compiled, {done.n_new} of them now.", highlight=False)
    if done.n_removed:
        console.print(f"Removed {_count(done.n_removed, 'file')} that other versions left.", highlight=False)


@app.command()
def solvers() -> None:
    """Lists the solvers, and how to install those that are missing."""
    from hasten.solvers import package_of

    for name, installed in hasten.available_solvers().items():
        console.print(f"{name:10s} " + ("installed" if installed else f"not installed: pip install {package_of(name)}"))


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
    """Ctrl-C. No KeyboardInterrupt: that one Typer takes, and ends without a word."""


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise Interrupted


def main() -> None:
    """Runs the command line; what goes wrong on purpose is told in one line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # unless somebody wants it ignored
        signal.signal(signal.SIGINT, _interrupt)
    try:
        with all_printed():
            app()
    except HastenError as error:
        errors.print(f"[red]Error:[/] {escape(printable(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)
    except BrokenPipeError:  # nobody reads any more, as behind `| head`
        sys.exit(1)
    except Interrupted:
        errors.print("Interrupted. Nothing half-done was left behind.")
        sys.exit(130)


def _count(n: int, name: str) -> str:
    return f"{n:,} {name}{'' if n == 1 else 's'}"


def _sentences(source: str, format: str, max_line: int) -> Iterator[Sentence]:
    """Reads a corpus; what cannot be told about it is asked for in words of the command line."""
    from hasten.tasks.entity_relation.data.formats import read_corpus

    return read_corpus(source, format, max_line * MILLION, remedy="Name it: --format, one of")


def _run_and_report(experiment: Experiment, out: Path) -> None:
    """Runs an experiment, shows its results, then writes them, so that they are not lost if that fails."""
    from hasten.support.files import write_whole
    from hasten.tasks.entity_relation.report.report import write_report
    from hasten.tasks.entity_relation.report.summary import show_results

    with show_progress(errors) as tell:
        results = experiment.run(tell)
    show_results(results, console)
    write_whole(out / "results.json", json.dumps(results, indent=1).encode())
    write_report(results, out / "report.html")
    written = " and ".join(f"[bold]{escape(printable(out / name))}[/]" for name in ("results.json", "report.html"))
    console.print(f"Wrote {written}", soft_wrap=True)


if __name__ == "__main__":
    main()
