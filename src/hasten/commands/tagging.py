"""`hasten tag`: trains, applies, evaluates and compares taggers on the command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import hasten
from hasten.commands import common
from hasten.commands.common import Command, Group, errors, name_of, say, telling, wrote
from hasten.commands.experiments import run_comparison
from hasten.errors import CorpusError, ProblemError
from hasten.speedup.parts import TextMode
from hasten.support.files import output_directory
from hasten.support.terminal import show_progress
from hasten.support.words import count

if TYPE_CHECKING:
    from hasten.tasks.tagging.tagger import SequenceTagger

app = typer.Typer(
    cls=Group,
    no_args_is_help=True,
    help="Tags words, such as parts of speech or entities in BIO, under rules for whole sentences (docs/tagging.md).",
)

Corpus = Annotated[str, typer.Argument(help="Tagged sentences: CoNLL-U, columns or JSON lines, plain or .gz.")]
Model = Annotated[Path, typer.Argument(help="What `hasten tag train` wrote.")]
Rule = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help='Such as "at least 1 VERB", "at most 3 ADJ or ADV", "no I-PER after O". Repeatable.',
    ),
]
NoRules = Annotated[bool, typer.Option("--no-rules", help="Leave the tagger's own rules out.")]
Bio = Annotated[bool, typer.Option("--bio", help="Tags are BIO: I-x only after B-x or I-x.")]
Format = Annotated[str, typer.Option(help="Of the files: auto, conllu, conll (columns) or jsonl.")]
Column = Annotated[
    str | None, typer.Option(help="Where the tags are: upos, xpos…, a number from 1 or from the end (-1), a JSON key.")
]
Epochs = Annotated[int, typer.Option(min=1, help="Passes over the sentences.")]


@app.command(cls=Command)
def train(
    corpus: Corpus,
    out: Annotated[Path, typer.Option("--out", "-o", help="File for the trained tagger.")],
    rule: Rule = None,
    bio: Bio = False,
    dev: Annotated[str | None, typer.Option(help="Tagged sentences to evaluate it on.")] = None,
    epochs: Epochs = 8,
    seed: common.Seed = 0,
    format: Format = "auto",
    column: Column = None,
) -> None:
    """Trains a tagger for `hasten tag predict`."""
    from hasten.tasks.tagging.corpus import read_all
    from hasten.tasks.tagging.tagger import SequenceTagger, check_place

    check_place(out)
    with output_directory(out.parent):
        if dev is not None and dev != "-" and Path(dev).exists() and Path(dev).samefile(corpus):
            raise CorpusError(f"{dev} trains, and so says nothing about other sentences. Name a file of those.")
        with show_progress(errors) as progress:
            progress("Reading", None)
            sentences, held_out = read_all(corpus, format, column), read_all(dev, format, column) if dev else []
            common.check_enough(len(sentences), "tagged sentence")
            tagger = SequenceTagger.train(sentences, rule or (), bio=bio, epochs=epochs, seed=seed, progress=progress)
            broken = tagger.model.gold_broken(sentences)
            found = tagger.evaluate(held_out, progress=progress) if dev else None
        tagger.save(out)
    words = sum(len(sentence.words) for sentence in sentences)
    say(f"Trained on {count(len(sentences), 'sentence')}: {count(words, 'word')}, {len(tagger.tags)} tags.")
    if broken:
        say(f"The tags of {count(broken, 'sentence')} break the rules themselves.")
    if found is not None:
        common.show_evaluation(found)
    wrote(out, more=f". Tag text with: hasten tag predict {out} INPUT OUTPUT.jsonl")


@app.command(cls=Command)
def predict(
    model: Model,
    source: Annotated[str, typer.Argument(help="Sentences, tagged or not, in any format; - for standard input.")],
    target: Annotated[str, typer.Argument(help="Where tagged JSON lines go; - for standard output.")],
    rule: Rule = None,
    bio: Bio = False,
    no_rules: NoRules = False,
    mode: Annotated[TextMode, typer.Option(help="Prove every answer, or trust a beam.")] = TextMode.CERTIFIED,
    width: Annotated[int, typer.Option(min=1, help="Of the beam, in search mode.")] = 8,
    solver: common.Solver = "highs",
    time_limit: Annotated[
        float | None, typer.Option(min=0.0, help="Seconds that a sentence may take; then the best found has to do.")
    ] = None,
    format: Format = "auto",
) -> None:
    """Tags a stream of sentences, of any length, in constant memory.

    Rules given here take the place of the tagger's own. Each line says whether its tags were proved optimal without the
    solver; where there are none, because no tags keep all rules, "failed" says so.
    """
    from hasten.tasks.tagging.corpus import read_tagged, to_json
    from hasten.tasks.tagging.tagger import FORMAT, SequenceTagger
    from hasten.tasks.text.lines import write_objects

    hasten.make_solver(solver)  # one that is not there is refused now
    common.check_apart(target, source, model)
    common.check_model(model, FORMAT, source)
    tagger = _under(SequenceTagger.load(model), rule, bio, no_rules)
    tagger = SequenceTagger(tagger.model, mode, width, solver, time_limit)
    counts = {"proved": 0, "solver": 0, "failed": 0}

    def tagged() -> Iterator[dict[str, object]]:
        with show_progress(errors, quiet=target == "-") as progress:
            read = telling(read_tagged(source, format, tags=False), progress, "Tagging sentences", source)
            for answer in tagger.predict(read):
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
    """Compares a tagger's answers with gold tags: scores, each tag, what is confused, what is out of reach."""
    from hasten.tasks.tagging.corpus import read_all
    from hasten.tasks.tagging.tagger import FORMAT, SequenceTagger

    hasten.make_solver(solver)
    common.check_model(model, FORMAT, corpus)
    tagger = _under(SequenceTagger.load(model), rule, bio, no_rules)
    with show_progress(errors) as progress:
        progress("Reading", None)
        sentences = read_all(corpus, format, column)
        found = SequenceTagger(tagger.model, solver=solver).evaluate(sentences, progress=progress)
    common.show_evaluation(found, out, model=name_of(str(model)), source=name_of(corpus), mode="certified")


@app.command(cls=Command)
def compare(
    corpus: Annotated[
        str | None, typer.Argument(help="Tagged sentences, as for `train`; made-up news if there is none.")
    ] = None,
    out: common.Out = Path("results/tagging"),
    test: Annotated[str | None, typer.Option(help="Sentences to test on; 30% of the corpus by default.")] = None,
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
    """Compares greedy search, beams, a speedup, Viterbi, certified answers and an ILP solver on one corpus."""
    from hasten.tasks.evaluation.comparison import Comparison
    from hasten.tasks.tagging.corpus import generate, read_all
    from hasten.tasks.tagging.model import Tagging

    hasten.make_solver(solver)  # one that is not there is refused now
    task = Tagging(tuple(rule or ()), bio, epochs, format, column)
    if corpus is None:
        sentences, source = list(generate(600, seed, "bio" if bio else "pos")), "made-up news"
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


def _under(tagger: SequenceTagger, rule: list[str] | None, bio: bool, no_rules: bool) -> SequenceTagger:
    """Returns a tagger under the rules that were given, or under its own."""
    if no_rules and (rule or bio):
        raise ProblemError("Give rules, or --no-rules, not both.")
    if not rule and not bio and not no_rules:
        return tagger
    return tagger.with_rules(rule or (), bio=bio or (tagger.model.rules.bio and not no_rules))
