"""Parts that commands share: consoles, options that several commands take, checks of arguments, and messages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from hasten.errors import CorpusError, ModelError, WriteError
from hasten.speedup.parts import TextMode
from hasten.support.files import output_directory, write_whole
from hasten.support.terminal import Progress, printable, show_progress
from hasten.support.words import count
from hasten.tasks.entity_relation.task import BlackBox

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.data.corpus import Sentence
    from hasten.tasks.entity_relation.task import EntityRelationTask
    from hasten.tasks.evaluation.scores import Evaluation
    from hasten.tasks.text.lines import Faults

T = TypeVar("T")

console, errors = Console(), Console(stderr=True)
MILLION = 1_000_000
MIN_SENTENCES = 10  # to train on
MODELS = {
    "hasten.tagger": ("a labeller of entities and relations", "hasten predict, evaluate or explain"),
    "hasten.sequence-tagger": ("a tagger of words", "hasten tag predict or hasten tag evaluate"),
    "hasten.speedup": ("a speedup, which answers problems, not text", "hasten.Speedup.load in Python"),
}


class _PlainHelp:
    """Help without a type beside flags, and without the line breaks of docstrings within paragraphs."""

    help: str | None

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        if self.help:
            self.help = "\n\n".join(" ".join(paragraph.split()) for paragraph in self.help.split("\n\n"))

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters; flags have no type to show."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Command(_PlainHelp, TyperCommand):
    """A command."""


class CommandGroup(_PlainHelp, TyperGroup):
    """A group of commands."""


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.json and report.html.")]
EvaluationOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Directory for evaluation.json and evaluation.html.")
]
Seed = Annotated[int, typer.Option(min=0, help="Random seed.")]
Corpus = Annotated[Path, typer.Argument(help="Labelled corpus, in any format that `hasten convert` reads.")]
Model = Annotated[Path, typer.Argument(help="Model file written by `hasten train`.")]
Unlabeled = Annotated[
    list[Path] | None,
    typer.Option(help="Text with entity spans to learn the speedup from (CoNLL-2003, GMB, JSON lines). Repeatable."),
]
Format = Annotated[
    str,
    typer.Option(
        help="Format of the input: auto, jsonl, conll04, conll2003, gmb, conllu, brat, dygie (SciERC, CrossRE), "
        "records (SpERT, Hugging Face, also Parquet) or spacy."
    ),
]
MaxLine = Annotated[int, typer.Option("--max-line", min=1, help="Longest line to read, in millions of characters.")]
Induce = Annotated[
    bool | None,
    typer.Option(
        help="Take labels, argument types and relations that may hold in both directions from the corpus, or from the "
        "paper. Default: from the corpus if it has a label that the paper lacks.",
        show_default=False,
    ),
]
NoRelation = Annotated[
    str | None, typer.Option("--no-relation", metavar="NAME", help="The corpus's label for pairs without a relation.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Skip entries that cannot be read, and report them.")]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        metavar="PART=FILE",
        help="File with the ids of the sentences in a part (train, dev or test), one a line. PART may be left out if "
        "the file's name contains it. Repeatable.",
    ),
]
Listed = Annotated[
    list[str] | None,
    typer.Option("--split", metavar="PART=FILE", help="Only the sentences whose ids are in a file, as for `train`."),
]
TimeLimit = Annotated[
    float,
    typer.Option(min=0.0, help="Seconds for each sentence; then returns the best answer so far. inf: no limit."),
]
Dev = Annotated[Path | None, typer.Option(help="Labelled file for development, beside the corpus.")]
Test = Annotated[Path | None, typer.Option(help="Labelled file for testing; the whole corpus is then for training.")]
Box = Annotated[
    BlackBox,
    typer.Option(
        "--black-box",
        help="The model and its training. structured, independent: linear, trained with inference in the loop, or on "
        "each label alone. neural, neural-structured, neural-likelihood: a network (pip install hasten\\[neural]), "
        "trained on each label alone, with inference in the loop, or by likelihood.",
    ),
]
Mode = Annotated[TextMode, typer.Option(help="certified: prove every answer. search: beam search alone.")]
Solver = Annotated[str, typer.Option(help="Solver for problems that cannot be proved.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Number of processes; answers do not depend on it.")]
Runs = Annotated[int, typer.Option(min=1, help="Number of times that each row is timed.")]
Seeds = Annotated[int, typer.Option(min=1, help="Number of repetitions, each with its own split and training.")]
IlpSolver = Annotated[str, typer.Option(help="ILP solver to compare with: highs, gurobi, toulbar2 or cpsat.")]


def say(message: object, on: Console = console, style: str = "") -> None:
    """Prints text as it is, without markup, control characters or line breaks of its own."""
    on.print(escape(printable(message)), style=style, highlight=False, soft_wrap=True)


def warn(message: object) -> None:
    """Prints a warning."""
    console.print(f"[yellow]Warning:[/] {escape(printable(message))}", highlight=False, soft_wrap=True)


def wrote(*paths: Path, more: str = "") -> None:
    """Reports the files that were written."""
    shown = " and ".join(f"[bold]{escape(printable(path))}[/]" for path in paths)
    console.print(f"Wrote {shown}{escape(printable(more))}", soft_wrap=True)


def check_apart(target: str | Path, source: str, model: Path | None = None) -> None:
    """Refuses to overwrite the input or the model."""
    for role, each in (("input", source), ("model", model)):
        if each is not None and os.path.exists(target) and os.path.exists(each) and os.path.samefile(each, target):
            raise WriteError(f"{target} is the {role}, which the output would replace. Name another file.")


def check_model(model: Path, format: str, source: str) -> None:
    """Refuses a model of another kind, and a model and an input that were swapped."""
    from hasten.support.forms import format_of

    found = format_of(model)
    if found is None and source != "-" and format_of(source) is not None:
        raise ModelError(f"{model} is no model, but {source} is one. The model comes first, then the text.")
    for kind, (about, command) in MODELS.items():
        if found is not None and found.startswith(kind) and not format.startswith(kind):
            raise ModelError(f"{model} is {about}. Use it with {command}.")


def show_evaluation(found: Evaluation, out: Path | None = None, **about: str) -> None:
    """Prints an evaluation; writes it as JSON and as a page if there is a directory for it."""
    from hasten.tasks.evaluation import scores

    scores.show_evaluation(found, console)
    if out is not None:
        with output_directory(out):
            wrote(*scores.write_evaluation(found.as_dict(**about), out))


def check_enough(n: int, noun: str) -> None:
    """Refuses a corpus that is too small to learn from."""
    if n < MIN_SENTENCES:
        raise CorpusError(f"Got {count(n, noun)} to train on; {MIN_SENTENCES} is the least. Give a larger corpus.")


def name_of(path: str) -> str:
    """Returns the name of a file in a report, without its directory."""
    return "standard input" if path == "-" else Path(path).name


def sentences_of(
    source: str, format: str, max_line: int, faults: Faults | None = None, split: list[str] | None = None
) -> Iterator[Sentence]:
    """Reads a corpus, or the sentences of it that a split lists."""
    from hasten.tasks.entity_relation.data.corpora import Split
    from hasten.tasks.entity_relation.data.formats import read_corpus

    found = read_corpus(source, format, max_line * MILLION, faults=faults)
    return found if split is None else Split.read(split, training=False).only(found)


@contextmanager
def collected_faults(skip: bool) -> Iterator[Faults]:
    """Collects the entries of files that cannot be used, and reports them at the end."""
    from hasten.tasks.text.lines import Faults

    faults = Faults(skip)
    yield faults
    if faults.n:
        say(faults, errors)


def report_task(task: EntityRelationTask, induced: bool | None) -> None:
    """Reports that the corpus has labels of its own, unless the user asked for that."""
    if induced is None and not task.is_papers:
        say(f"The corpus has labels of its own: {task}.")


def warn_unreachable(sentences: Sequence[Sentence], task: EntityRelationTask) -> None:
    """Warns of gold labels that no valid answer has."""
    from hasten.tasks.entity_relation.scoring.gold import Unreachable

    found = Unreachable.of(sentences, task)
    if found.n:
        warn(found)


def run_and_write(
    run: Callable[[Progress], dict[str, Any]],
    show: Callable[[dict[str, Any], Console], None],
    render: Callable[[dict[str, Any]], str],
    out: Path,
) -> None:
    """Runs an experiment and shows its results before writing them, so that they are seen even if writing fails."""
    from hasten.tasks.evaluation.page import write_page

    with show_progress(errors) as progress:
        results = run(progress)
    show(results, console)
    write_whole(out / "results.json", json.dumps(results, indent=1).encode())
    write_page(render(results), out / "report.html")
    wrote(out / "results.json", out / "report.html")


def counted(things: Iterable[T], progress: Progress, stage: str, source: str = "") -> Iterator[T]:
    """Yields things and reports their number as it grows; refuses a `source` that holds none."""
    n = 0
    for n, thing in enumerate(things, start=1):
        if n % 256 == 1:
            progress(stage, None, f"{n - 1:,}")
        yield thing
    if not n and source:
        raise CorpusError(f"{name_of(source)} has no sentence. Check that it is the right file.")
