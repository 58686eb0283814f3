"""`hasten tag`: trains, applies, evaluates and compares taggers of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hasten
from hasten.commands import common
from hasten.commands.common import Command, CommandGroup, counted, errors, name_of, say, wrote
from hasten.commands.experiments import run_comparison
from hasten.errors import CorpusError, ProblemError
from hasten.solvers import check_solver
from hasten.speedup.parts import TextMode
from hasten.support.files import output_directory
from hasten.support.terminal import show_progress
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.tasks.tagging.tagger import SequenceTagger

app = typer.Typer(
    cls=CommandGroup,
    no_args_is_help=True,
    help="Tags words, such as parts of speech or entities in BIO, under rules for whole sentences (docs/tagging.md).",
)

Corpus = Annotated[str, typer.Argument(help="Tagged sentences: CoNLL-U, columns or JSON lines, plain or .gz.")]
Model = Annotated[Path, typer.Argument(help="Model file written by `hasten tag train`.")]
Rule = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help='Rule for each sentence, such as "at least 1 VERB", "at most 3 ADJ or ADV", "no I-PER after O". '
        "Repeatable.",
    ),
]
NoRules = Annotated[bool, typer.Option("--no-rules", help="Leave out the tagger's own rules.")]
Bio = Annotated[bool, typer.Option("--bio", help="Tags are BIO: I-x only after B-x or I-x.")]
Format = Annotated[str, typer.Option(help="Format of the files: auto, conllu, conll (columns) or jsonl.")]
Column = Annotated[
    str | None,
    typer.Option(help="Column of the tags: upos, xpos, …; a number from 1, or from the end (-1); or a JSON key."),
]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the sentences.")]


@app.command(cls=Command)
def train(
    corpus: Corpus,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the trained tagger.")],
    rule: Rule = None,
    bio: Bio = False,
    dev: Annotated[str | None, typer.Option(help="Tagged sentences to evaluate the tagger on.")] = None,
    epochs: Epochs = 8,
    seed: common.Seed = 0,
    format: Format = "auto",
    column: Column = None,
) -> None:
    """Trains a tagger."""
    from hasten.tasks.tagging.corpus import read_all
    from hasten.tasks.tagging.tagger import SequenceTagger, check_place

    check_place(out)
    with output_directory(out.parent):
        if dev is not None and dev != "-" and Path(dev).exists() and Path(dev).samefile(corpus):
            raise CorpusError(f"{dev} is the file to train on, and so no test of the tagger. Name another file.")
        with show_progress(errors) as progress:
            progress("Reading", None)
            sentences, held_out = read_all(corpus, format, column), read_all(dev, format, column) if dev else []
            common.check_enough(len(sentences), "tagged sentence")
            tagger = SequenceTagger.train(sentences, rule or (), bio=bio, epochs=epochs, seed=seed, progress=progress)
            n_broken = tagger.model.gold_broken(sentences)
            found = tagger.evaluate(held_out, progress=progress) if dev else None
        tagger.save(out)
    n_words = sum(len(sentence.words) for sentence in sentences)
    say(f"Trained on {count(len(sentences), 'sentence')}: {count(n_words, 'word')}, {len(tagger.tags)} tags.")
    if n_broken:
        say(f"The gold tags of {count(n_broken, 'sentence')} break the rules.")
    if found is not None:
        common.show_evaluation(found)
    wrote(out, more=f". Tag text with: hasten tag predict {out} INPUT OUTPUT.jsonl")


def _load(model: Path, source: str, solver: str, rule: list[str] | None, bio: bool, no_rules: bool) -> SequenceTagger:
    """Loads a tagger; rules given on the command line replace its own."""
    from hasten.tasks.tagging.tagger import FORMAT, SequenceTagger

    check_solver(solver)
    common.check_model(model, FORMAT, source)
    if no_rules and (rule or bio):
        raise ProblemError("Give rules, or --no-rules, not both.")
    tagger = SequenceTagger.load(model)
    if rule or bio or no_rules:
        return tagger.with_rules(rule or (), bio=bio or (tagger.model.rules.bio and not no_rules))
    return tagger


@app.command(cls=Command)
def predict(
    model: Model,
    source: Annotated[str, typer.Argument(help="Sentences, tagged or not, in any format; - is standard input.")],
    target: Annotated[str, typer.Argument(help="File for tagged JSON lines; - is standard output.")],
    rule: Rule = None,
    bio: Bio = False,
    no_rules: NoRules = False,
    mode: common.Mode = TextMode.CERTIFIED,
    width: Annotated[int, typer.Option(min=1, help="Beam width in search mode.")] = 8,
    solver: common.Solver = "highs",
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds for each sentence; then returns the best answer so far.")
    ] = None,
    format: Format = "auto",
) -> None:
    """Tags a stream of sentences, in constant memory.

    Rules given here replace the tagger's own. Each output line has "proved": true or false, for tags that are proved
    optimal without the solver. Where no tags keep all rules, "failed" says so.
    """
    from hasten.tasks.tagging.corpus import read_tagged, to_json
    from hasten.tasks.tagging.tagger import SequenceTagger
    from hasten.tasks.text.lines import write_objects

    common.check_apart(target, source, model)
    tagger = _load(model, source, solver, rule, bio, no_rules)
    tagger = SequenceTagger(tagger.model, mode, width, solver, time_limit)
    counts = Counter[str]()

    def tagged() -> Iterator[dict[str, object]]:
        with show_progress(errors, quiet=target == "-") as progress:
            sentences = counted(read_tagged(source, format, tags=False), progress, "Tagging sentences", source)
            for answer in tagger.predict(sentences):
                counts["proved"] += answer.proved
                counts["solver"] += answer.source is hasten.Source.SOLVER
                counts["failed"] += answer.tags is None
                more: dict[str, object] = {"proved": answer.proved}
                yield to_json(answer.sentence) | more | ({"failed": answer.reason} if answer.reason else {})

    n = write_objects(target, tagged())
    say(f"Tagged {count(n, 'sentence')}: {counts['proved']:,} proved, {counts['solver']:,} by the solver.", errors)
    if counts["failed"]:
        say(f"{count(counts['failed'], 'sentence')} without tags; their lines say why.", errors)


@app.command(cls=Command)
def evaluate(
    model: Model,
    corpus: Corpus,
    out: common.EvaluationOut = None,
    rule: Rule = None,
    bio: Bio = False,
    no_rules: NoRules = False,
    solver: common.Solver = "highs",
    format: Format = "auto",
    column: Column = None,
) -> None:
    """Scores a tagger against gold tags: accuracy, each tag, common confusions, unreachable gold."""
    from hasten.tasks.tagging.corpus import read_all
    from hasten.tasks.tagging.tagger import SequenceTagger

    tagger = _load(model, corpus, solver, rule, bio, no_rules)
    with show_progress(errors) as progress:
        progress("Reading", None)
        sentences = read_all(corpus, format, column)
        found = SequenceTagger(tagger.model, solver=solver).evaluate(sentences, progress=progress)
    common.show_evaluation(found, out, model=name_of(str(model)), source=name_of(corpus), mode="certified")


@app.command(cls=Command)
def compare(
    corpus: Annotated[
        str | None, typer.Argument(help="Tagged sentences, as for `train`. Default: synthetic news.")
    ] = None,
    out: common.Out = Path("results/tagging"),
    test: Annotated[str | None, typer.Option(help="Sentences to test on. Default: 30% of the corpus.")] = None,
    rule: Rule = None,
    bio: Bio = False,
    solver: common.IlpSolver = "highs",
    runs: common.Runs = 3,
    seed: common.Seed = 0,
    seeds: common.Seeds = 1,
    epochs: Epochs = 8,
    format: Format = "auto",
    column: Column = None,
) -> None:
    """Compares greedy search, beams, a speedup, Viterbi, certified answers and an ILP solver on a corpus."""
    from hasten.tasks.evaluation.comparison import Comparison
    from hasten.tasks.tagging.corpus import generate, read_all
    from hasten.tasks.tagging.model import Tagging

    hasten.make_solver(solver)  # fails now if it is missing
    task = Tagging(tuple(rule or ()), bio, epochs, format, column)
    if corpus is None:
        sentences, source = list(generate(600, seed, "bio" if bio else "pos")), "synthetic news"
    else:
        sentences = [each for each in read_all(corpus, format, column) if each.words]
        source = name_of(corpus)
    tests = None if test is None else read_all(test, format, column)
    run_comparison(
        Comparison(
            task, sentences, tests, solver=solver, runs=runs, seed=seed, seeds=seeds, source=source,
            synthetic=corpus is None,
        ),
        out,
    )  # fmt: skip
