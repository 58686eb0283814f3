"""Parts that commands share: where they print, and the options that several of them take."""

from __future__ import annotations

import json
import math
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
FEWEST = 10  # labelled sentences to train on
MODELS = {
    "hasten.tagger": ("a labeller of entities and relations", "hasten predict, evaluate or explain"),
    "hasten.sequence-tagger": ("a tagger of words", "hasten tag predict or hasten tag evaluate"),
    "hasten.speedup": ("a speedup, which answers problems, not text", "hasten.Speedup.load in Python"),
}


class _Plain:
    """A command, or a group of them, whose help names no type beside a flag: there is none to give."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Returns the parameters."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in params:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return params


class Command(_Plain, TyperCommand):
    """A command."""


class Group(_Plain, TyperGroup):
    """A group of commands."""


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.json and report.html.")]
EvaluationOut = Annotated[
    Path | None, typer.Option("--out", "-o", help="Directory for evaluation.json and evaluation.html.")
]
Seed = Annotated[int, typer.Option(min=0, help="Fixes all that is drawn, such as splits and the order of training.")]
Corpus = Annotated[Path, typer.Argument(help="Labelled corpus, in any format that `convert` reads.")]
Model = Annotated[Path, typer.Argument(help="What `hasten train` wrote.")]
Unlabeled = Annotated[
    list[Path] | None,
    typer.Option(help="Text with spans to learn the speedup from (CoNLL-2003, GMB, JSON lines). Repeatable."),
]
Format = Annotated[
    str,
    typer.Option(
        help="Of the corpus: auto, or one of jsonl, conll04, conll2003, gmb, conllu, brat, dygie (SciERC, CrossRE), "
        "records (SpERT, Hugging Face; Parquet too) and spacy."
    ),
]
MaxLine = Annotated[
    int, typer.Option("--max-line", min=1, help="Longest line that is read, in millions of characters.")
]
Induce = Annotated[
    bool | None,
    typer.Option(
        help="Take labels, argument types and what may hold both ways from the corpus, or from the paper. By default, "
        "from the corpus where the paper lacks one of its labels.",
        show_default=False,
    ),
]
NoRelation = Annotated[
    str | None,
    typer.Option("--no-relation", metavar="NAME", help="The corpus's own word for pairs without a relation."),
]
SkipBad = Annotated[
    bool, typer.Option("--skip-bad", help="Pass over entries of files that cannot be used; say how many, and why.")
]
Lists = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        metavar="PART=FILE",
        help="Ids of the sentences that train, test or (dev) are set aside, one a line; a file whose name says its "
        "part needs no PART. Repeatable.",
    ),
]
Listed = Annotated[
    list[str] | None,
    typer.Option("--split", metavar="PART=FILE", help="Only the sentences whose ids a file lists, as for `train`."),
]
TimeLimit = Annotated[
    float, typer.Option(min=0.0, help="Seconds that a sentence may take; then the best found has to do. inf: no limit.")
]
Dev = Annotated[Path | None, typer.Option(help="A labelled file to develop on, beside the corpus.")]
Test = Annotated[Path | None, typer.Option(help="A labelled file to test on; the corpus then trains, all of it.")]
Box = Annotated[
    BlackBox,
    typer.Option(
        "--black-box",
        help="Linear, trained with inference in the loop or not; or neural (pip install hasten\\[neural]): trained on "
        "each label alone, with inference in the loop, or by likelihood.",
    ),
]
Mode = Annotated[TextMode, typer.Option(help="Prove every answer, or trust the search.")]
Solver = Annotated[str, typer.Option(help="Who is asked where nothing is proved.")]
Runs = Annotated[int, typer.Option(min=1, help="How often each time is measured.")]
Seeds = Annotated[int, typer.Option(min=1, help="Do all of it so often, with other splits and training.")]
IlpSolver = Annotated[str, typer.Option(help="The ILP solver: highs, gurobi, toulbar2 or cpsat.")]


def say(words: object, on: Console = console, style: str = "") -> None:
    """Prints text as it is: nothing in it is markup, and nothing tells the terminal what to do."""
    on.print(escape(printable(words)), style=style, highlight=False, soft_wrap=True)


def wrote(*paths: Path, more: str = "") -> None:
    """Says which files were written."""
    shown = " and ".join(f"[bold]{escape(printable(path))}[/]" for path in paths)
    console.print(f"Wrote {shown}{escape(printable(more))}", soft_wrap=True)


def check_apart(target: str | Path, source: str, model: Path | None = None) -> None:
    """Refuses to write over the input, or over the model."""
    for what, each in (("input", source), ("model", model)):
        if each is not None and os.path.exists(target) and os.path.exists(each) and os.path.samefile(each, target):
            raise WriteError(f"{target} is the {what}, which the output would replace. Name another file.")


def check_model(model: Path, format: str, source: str) -> None:
    """Refuses a file that is another kind of model, or no model at all because arguments were swapped."""
    from hasten.support.forms import format_of

    found = format_of(model)
    if found is None and source != "-" and format_of(source) is not None:
        raise ModelError(f"{model} is no model, but {source} is one. The model comes first, then the text.")
    for kind, (what, command) in MODELS.items():
        if found is not None and found.startswith(kind) and not format.startswith(kind):
            raise ModelError(f"{model} is {what}. Use it with {command}.")


def show_evaluation(found: Evaluation, out: Path | None = None, **about: str) -> None:
    """Prints an evaluation; writes it as JSON and as a page, if it should go anywhere."""
    from hasten.tasks.evaluation import scores

    scores.show_evaluation(found, console)
    if out is not None:
        with output_directory(out):
            wrote(*scores.write_evaluation(found.as_dict(**about), out))


def check_enough(n: int, what: str) -> None:
    """Refuses a corpus that is too small to learn anything from."""
    if n < FEWEST:
        raise CorpusError(f"Got {count(n, what)} to train on; {FEWEST} is the least. Give a larger corpus.")


def name_of(path: str) -> str:
    """Returns what a file is called in a report, wherever it is."""
    return "standard input" if path == "-" else Path(path).name


def sentences_of(
    source: str, format: str, max_line: int, faults: Faults | None = None, split: list[str] | None = None
) -> Iterator[Sentence]:
    """Reads a corpus, or what a split lists of it; what cannot be told about it is asked for as an option."""
    from hasten.tasks.entity_relation.data.corpora import Split
    from hasten.tasks.entity_relation.data.formats import read_corpus

    found = read_corpus(source, format, max_line * MILLION, faults=faults)
    return found if split is None else Split.read(split, training=False).only(found)


@contextmanager
def passing_over(skip: bool) -> Iterator[Faults]:
    """Gives what collects the entries of files that are refused; says in the end what was passed over."""
    from hasten.tasks.text.lines import Faults

    faults = Faults(skip)
    yield faults
    if faults.n:
        say(faults, errors)


def tell_task(task: EntityRelationTask, induced: bool | None) -> None:
    """Says that the labels are the corpus's own, where nobody asked for that."""
    if induced is None and not task.is_papers:
        say(f"The corpus has labels of its own: {task}.")


def tell_unreachable(sentences: Sequence[Sentence], task: EntityRelationTask) -> None:
    """Warns of gold labels that no valid answer has."""
    from hasten.tasks.entity_relation.scoring.gold import Unreachable

    found = Unreachable.of(sentences, task)
    if found.n:
        warn(found)


def warn(words: object) -> None:
    """Prints a warning."""
    console.print(f"[yellow]Warning:[/] {escape(printable(words))}", highlight=False, soft_wrap=True)


def run_and_write(
    run: Callable[[Progress], dict[str, Any]],
    show: Callable[[dict[str, Any], Console], None],
    render: Callable[[dict[str, Any]], str],
    out: Path,
) -> None:
    """Runs an experiment, shows its results, then writes them, so that they are not lost if that fails."""
    from hasten.tasks.evaluation.page import write_page

    with show_progress(errors) as progress:
        results = run(progress)
    show(results, console)
    write_whole(out / "results.json", json.dumps(results, indent=1).encode())
    write_page(render(results), out / "report.html")
    wrote(out / "results.json", out / "report.html")


def seconds(limit: float) -> float | None:
    """Returns a limit, or None for none."""
    return None if math.isinf(limit) else limit


def telling(things: Iterable[T], progress: Progress, stage: str, source: str = "") -> Iterator[T]:
    """Yields things, and tells now and then how many there were; refuses a `source` that holds none."""
    n = 0
    for n, thing in enumerate(things, start=1):
        if n % 256 == 1:
            progress(stage, None, f"{n - 1:,}")
        yield thing
    if not n and source:
        raise CorpusError(f"{name_of(source)} has no sentence. Check that it is the right file.")
