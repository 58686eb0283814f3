"""What commands share: where they print, and the options that several of them take."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.markup import escape

from hasten.support.files import write_whole
from hasten.support.progress import Tell, show_progress
from hasten.support.terminal import printable
from hasten.tasks.entity_relation.names import Training

if TYPE_CHECKING:
    from hasten.tasks.entity_relation.data.corpus import Sentence
    from hasten.tasks.entity_relation.task import EntityRelationTask
    from hasten.tasks.evaluation.scores import Evaluation
    from hasten.tasks.text.lines import Faults

T = TypeVar("T")

console = Console()
MILLION = 1_000_000
errors = Console(stderr=True)


Out = Annotated[Path, typer.Option("--out", "-o", help="Directory for results.json and report.html.")]
Seed = Annotated[int, typer.Option(min=0, help="Fixes all that is drawn, such as splits and the order of training.")]
Corpus = Annotated[Path, typer.Option(help="Labelled corpus, in any format that `convert` reads.")]
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
TimeLimit = Annotated[
    float, typer.Option(min=0.0, help="Seconds that a sentence may take; then the best found has to do. inf: no limit.")
]
Dev = Annotated[Path | None, typer.Option(help="A labelled file to develop on, beside the corpus.")]
Test = Annotated[Path | None, typer.Option(help="A labelled file to test on; the corpus then trains, all of it.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Processes that share the work; answers do not change.")]
Box = Annotated[Training, typer.Option("--black-box", help="Trained with inference in the loop, or not.")]


Runs = Annotated[int, typer.Option(min=1, help="How often each time is measured.")]
Seeds = Annotated[int, typer.Option(min=1, help="Do all of it so often, with other splits and training.")]
IlpSolver = Annotated[str, typer.Option(help="The ILP solver: highs, gurobi, toulbar2 or cpsat.")]


def name_of(path: str) -> str:
    """Returns what a file is called in a report, wherever it is."""
    return "standard input" if path == "-" else Path(path).name


def sentences_of(source: str, format: str, max_line: int, faults: Faults | None = None) -> Iterator[Sentence]:
    """Reads a corpus; what cannot be told about it is asked for in words of the command line."""
    from hasten.tasks.entity_relation.data.formats import read_corpus

    return read_corpus(source, format, max_line * MILLION, remedy="Name it: --format, one of", faults=faults)


@contextmanager
def passing_over(skip: bool) -> Iterator[Faults]:
    """Gives what collects the entries of files that are refused; says in the end what was passed over."""
    from hasten.tasks.text.lines import Faults

    faults = Faults(skip)
    yield faults
    if faults.n:
        errors.print(escape(printable(faults)), highlight=False, soft_wrap=True)


def tell_task(task: EntityRelationTask, induced: bool | None) -> None:
    """Says that the labels are the corpus's own, where nobody asked for that."""
    if induced is None and not task.is_papers:
        labels = escape(printable(task))
        console.print(f"The corpus has labels of its own: {labels}.", highlight=False, soft_wrap=True)


def tell_unreachable(sentences: Sequence[Sentence], task: EntityRelationTask) -> None:
    """Warns of gold labels that no valid answer has."""
    from hasten.tasks.entity_relation.scoring.gold import Unreachable

    found = Unreachable.of(sentences, task)
    if found.n:
        console.print(f"[yellow]Warning:[/] {escape(printable(found))}", highlight=False, soft_wrap=True)


def run_and_write(
    run: Callable[[Tell], dict[str, Any]],
    show: Callable[[dict[str, Any], Console], None],
    write_report: Callable[[dict[str, Any], Path], None],
    out: Path,
) -> None:
    """Runs an experiment, shows its results, then writes them, so that they are not lost if that fails."""
    with show_progress(errors) as tell:
        results = run(tell)
    show(results, console)
    write_whole(out / "results.json", json.dumps(results, indent=1).encode())
    write_report(results, out / "report.html")
    wrote(out / "results.json", out / "report.html")


def show_evaluation(found: Evaluation) -> None:
    """Prints the scores of each label."""
    from hasten.tasks.evaluation import evaluation_page

    evaluation_page.show_evaluation(found, console)


def write_evaluation(found: dict[str, Any], out: Path) -> None:
    """Writes an evaluation as JSON and as a page."""
    from hasten.tasks.evaluation import evaluation_page

    wrote(*evaluation_page.write_evaluation(found, out))


def wrote(*paths: Path) -> None:
    """Says which files were written."""
    console.print(f"Wrote {' and '.join(f'[bold]{escape(printable(path))}[/]' for path in paths)}", soft_wrap=True)


def seconds(limit: float) -> float | None:
    """Returns a limit, or None for none."""
    return None if math.isinf(limit) else limit


def telling(things: Iterable[T], tell: Tell, stage: str) -> Iterator[T]:
    """Yields things, and tells now and then how many there were."""
    for n, thing in enumerate(things):
        if n % 256 == 0:
            tell(stage, None, f"{n:,}")
        yield thing
