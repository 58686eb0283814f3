"""How many inputs a student answers in front of a slow extractor, and whether its promise holds.

The extractor is a labeller of entities and relations, linear or neural, that shows nothing but its answers.

    python benchmarks/cascade.py answers --labelled CORPUS [--extractor neural] A.jsonl TEXT...
    python benchmarks/cascade.py student A.jsonl A.npz [--student neural] [--taught 20000]
    python benchmarks/cascade.py coverage A.npz... [--resamples 1000]
    python benchmarks/cascade.py curves DIRECTORY --coverage A.npz... --learning A-1250.npz...
    python benchmarks/cascade.py drift A.jsonl
    python benchmarks/cascade.py kill [--times 200]

*answers* labels sentences with two spans or more. *student* learns from the first of these answers, and writes what it
makes of the rest. *coverage*: again and again, 3,500 of the rest, drawn with replacement, fit and test the student's
confidence; all of the rest show what share is answered, and whether more than the risk is wrong. *drift*: a cascade
serves, and the extractor stops reporting relations, or mistakes two types for each other: wrong answers given until
trust ends, by audits alone and with the inputs that go to the extractor anyway. *kill*: a cascade under load is killed
with kill -9; every answer that it gave is in its journal, and it resumes.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from hasten.cascade import Cascade
from hasten.cascade.promise import WHOLE, promise
from hasten.cascade.student import SEEN, Confidence, Student
from hasten.journal import Journal
from hasten.proof.certifier import Certifier
from hasten.speedup.audit import Agreement, Audit
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.data.formats import read_corpus, write_jsonl
from hasten.tasks.entity_relation.extraction import Extraction

RISKS = 0.02, 0.05, 0.1
AT_ONCE = 500


def tell(stage: str, share: float | None = None, *more: object) -> None:
    """Prints a stage when it begins."""
    if not share:
        print(stage, flush=True)


def answers(args: argparse.Namespace) -> None:
    """Labels sentences with an extractor trained on those of a corpus that have relations."""
    labelled = [each for each in read_corpus(args.labelled) if each.relations]
    model = Extraction(args.extractor).train(labelled, seed=0, progress=tell)
    texts = [each for path in args.text for each in read_corpus(path) if len(each.spans) >= 2]
    random.Random(0).shuffle(texts)
    texts = [Sentence(str(n), each.tokens, each.spans, each.pos) for n, each in enumerate(texts)]
    found = list[Sentence]()
    for at in range(0, len(texts), AT_ONCE):
        some = texts[at : at + AT_ONCE]
        best = Certifier(max_nodes=20_000)(model.batch(some).resolved())
        found += [model.label(text, answer.names) for text, answer in zip(some, best, strict=True)]
    print(f"{write_jsonl(args.answers, found):,} answers of an extractor that learned from {len(labelled):,} sentences")


def student(args: argparse.Namespace) -> None:
    """Trains a student, and writes its margins on the rest of the answers, and where it is right."""
    if args.student != "structured":
        from hasten.support.threads import Cache
        from hasten.tasks.entity_relation.neural import encoder, training

        encoder._KEPT, training.EPOCHS = Cache(3 * 2**30), args.epochs  # all texts are encoded once
    texts = list(read_corpus(args.answers, "jsonl"))[: args.most]
    began = time.process_time()
    model = Extraction(args.student).train(texts[: args.taught], seed=0, progress=tell)
    print(f"trained on {args.taught:,} answers in {time.process_time() - began:.0f} s of processor time")
    version, rest, parts = Student("v1", model, args.taught), texts[args.taught :], []
    for at in range(0, len(rest), AT_ONCE):
        found = version(rest[at : at + AT_ONCE])
        same = list(map(version.same, rest[at : at + AT_ONCE], found.labels, found.kinds))
        valid = np.array([each is not None for each in found.labels])
        parts.append((np.concatenate(same), found.groups, found.margin, np.diff(found.variable_at), valid))
    names = "flat", "groups", "margin", "counts", "valid"
    np.savez(args.margins, **dict(zip(names, map(np.concatenate, zip(*parts, strict=True)), strict=True)))


class Rest:
    """The texts that a student did not learn from: its margins, and whether it is right."""

    def __init__(self, path: Path) -> None:
        kept = np.load(path)
        self.flat, self.groups, self.margin, self.valid = (kept[k] for k in ("flat", "groups", "margin", "valid"))
        self.at = np.concatenate([[0], np.cumsum(kept["counts"])])
        wrong = np.bincount(np.repeat(np.arange(len(self.valid)), kept["counts"]), ~self.flat, len(self.valid))
        self.right = self.valid & (wrong == 0)

    def log_p(self, seen: np.ndarray) -> np.ndarray:
        """Returns how sure the student is of each text, its confidence fitted to some."""
        some = np.concatenate([np.arange(self.at[p], self.at[p + 1]) for p in seen])
        fitted = Confidence.fit(self.groups[some], self.margin[some], self.flat[some])
        return np.where(self.valid, fitted.log_probability(self.at, self.groups, self.margin), -np.inf)

    def promises(self, n_held: int, resamples: int, risks: tuple[float, ...] = RISKS) -> np.ndarray:
        """Returns coverage and wrong share among all texts of promises from drawn ones: (resamples, risks, 2)."""
        rng, found = np.random.default_rng(0), np.zeros((resamples, len(risks), 2))
        for run in range(resamples):
            held = rng.integers(0, len(self.valid), n_held)
            seen, tested = held[::SEEN], np.delete(held, np.s_[::SEEN])
            log_p, right = self.log_p(seen), self.right[:, None]
            for k, risk in enumerate(risks):
                made = promise({WHOLE: risk}, 0.95, (log_p[seen], right[seen]), (log_p[tested], right[tested]))
                given = log_p >= made.threshold
                found[run, k] = given.mean(), (~self.right[given]).mean() if given.any() else 0.0
        return found


def coverage(args: argparse.Namespace) -> None:
    """Prints coverage, and how often the promise is broken."""
    for path in args.margins:
        rest = Rest(path)
        print(f"{path.stem}: {rest.right.mean():.3f} of {len(rest.right):,} whole answers are the extractor's")
        found = rest.promises(args.held, args.resamples)
        for k, risk in enumerate(RISKS):
            broken = Agreement.of(int((found[:, k, 1] > risk).sum()), args.resamples)
            print(
                f"  risk {risk:.0%}: coverage {found[:, k, 0].mean():.3f}; promise broken in {broken.estimate:.1%} "
                f"of {args.resamples:,} resamples (95% limits {broken.low:.1%} to {broken.high:.1%})"
            )


def curves(args: argparse.Namespace) -> None:
    """Draws coverage by risk, for each student, and by what it learned from."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    pyplot.rcParams.update({"font.size": 11})

    def draw(name: str, lines: dict[str, tuple[list[float], list[float]]], x: str, log: bool = False) -> None:
        figure, axes = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
        for label, line in lines.items():
            axes.plot(*line, marker="o", markersize=4, label=label)
        axes.set(xlabel=x, ylabel="answered by the student", ylim=(0, 1), xscale="log" if log else "linear")
        if log:
            places = next(iter(lines.values()))[0]
            axes.set_xticks(places, [f"{each:,.0f}" for each in places])
            axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        figure.savefig(args.directory / f"{name}.png", dpi=130)

    risks = (0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3)
    shares = {
        path.stem.replace("_", ", "): Rest(path).promises(3500, 5, risks).mean(axis=0)[:, 0] for path in args.coverage
    }
    percent = [100 * risk for risk in risks]
    draw("risk-coverage", {name: (percent, each.tolist()) for name, each in shares.items()}, "risk (%)")
    taught = sorted((int(path.stem.rpartition("-")[2]), path) for path in args.learning)
    found = np.array([Rest(path).promises(3500, 10).mean(axis=0)[:, 0] for _, path in taught])
    lines = {f"risk {risk:.0%}": ([float(n) for n, _ in taught], found[:, k].tolist()) for k, risk in enumerate(RISKS)}
    draw("learning-curve", lines, "answers learned from", log=True)
    print(*(f"{name}: {np.round(each, 3).tolist()}" for name, each in {**shares, "learning": found}.items()), sep="\n")


def drift(args: argparse.Namespace) -> None:
    """Prints how many wrong answers are given until a change of the extractor is noticed."""
    before = list(read_corpus(args.answers, "jsonl"))[:8000]
    before = [replace(each, id=str(n)) for n, each in enumerate(before)]
    (one, _), (other, _) = Counter(name for each in before for name in each.types or ()).most_common(2)
    swapped = {one: other, other: one}
    drifts = {
        "no relations any more": [replace(each, relations=()) for each in before],
        f"{one} and {other} swapped": [
            replace(each, types=tuple(swapped.get(name, name) for name in each.types or ())) for each in before
        ],
    }
    for name, after in drifts.items():
        changed = np.mean([a != b for a, b in zip(before, after, strict=True)])
        print(f"drift: {name}, which changes {changed:.1%} of the answers; risk 10%")
        for alone in (True, False):
            found = [stream(before, after, alone, seed) for seed in range(args.streams)]
            wrong, asked, false, held = (list(each) for each in zip(*found, strict=True))
            print(
                f"  {'audits alone' if alone else 'with unsure inputs'}: {np.mean(wrong):.1f} wrong answers (each "
                f"{wrong}), noticed after {np.mean(asked):.0f} inputs; {sum(false)} false alarms in "
                f"{1000 * len(found):,} inputs before; the stretch named holds {np.nanmean(held):.0%} of the wrong ones"
            )


def stream(before: list[Sentence], after: list[Sentence], alone: bool, seed: int) -> tuple[int, int, bool, float]:
    """Returns wrong answers and inputs until a change is noticed, whether it was before there was one, and the share
    of the wrong answers that the stretch holds."""
    order = random.Random(seed).sample(range(len(before)), len(before))
    now = before
    cascade = Cascade(Extraction(), lambda text: now[int(text.id)], risk=0.1, seed=seed)
    cascade.teach([before[n] for n in order[:5000]])
    if alone:
        cascade._unsure = Audit(None)
    inputs = [before[n].unlabeled() for n in order[5000:]]
    cascade.predict(inputs[:1000])
    false, now, wrong, asked = cascade.suspect is not None, after, list[int](), 0
    cascade.suspect = None
    for text in inputs[1000:]:
        (reply,) = cascade.predict([text])
        asked += 1
        truth = after[int(text.id)]
        if reply.source == "student" and reply.text is not None:
            same = reply.text.types == truth.types and set(reply.text.relations or ()) == set(truth.relations or ())
            wrong += [] if same else [reply.number]
        if cascade.suspect is not None:
            break
    named = cascade.suspect
    held = 1.0 if not wrong else np.nan if named is None else float(np.mean([n in named for n in wrong]))
    return len(wrong), asked, false, held


SERVE = """
import sys
from hasten.cascade import Cascade
from hasten.journal import Journal
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.extraction import Extraction
news = list(generate(500, seed=0))
cascade = Cascade(Extraction(), lambda text: news[int(text.id.split("-")[1])], journal=Journal(sys.argv[1]))
print("ready", flush=True)
while True:
    n = cascade.counters.inputs % 490
    print(cascade.predict([each.unlabeled() for each in news[n : n + 10]])[-1].number, flush=True)
"""


def kill(args: argparse.Namespace) -> None:
    """Kills a serving cascade again and again, and looks for what it acknowledged."""
    lost, given, rng, seconds = 0, 0, random.Random(0), list[float]()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.journal"
        for _ in range(args.times):
            began = time.perf_counter()
            process = subprocess.Popen([sys.executable, "-c", SERVE, str(path)], stdout=subprocess.PIPE, text=True)
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            seconds.append(time.perf_counter() - began)
            time.sleep(rng.random() * 0.3)
            os.kill(process.pid, signal.SIGKILL)
            numbers = process.stdout.read().rpartition("\n")[0].split()
            process.wait()
            with Journal(path, read_only=True) as journal:
                asked = {row.data["at"] for row in journal.rows() if row.kind in ("asked", "audit")}
            last = int(numbers[-1]) if numbers else -1
            given += 10 * len(numbers)
            lost += sum(n not in asked for n in range(last + 1))
            if len(asked) > 150:  # before it learns: everything is asked
                path.unlink()
    print(f"{args.times} kills, {given:,} answers given, {lost} lost; ready after {np.median(seconds):.1f} s (median)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(required=True)

    def way(run: object, *names: str, **settings: object) -> argparse.ArgumentParser:
        added = ways.add_parser(run.__name__)  # type: ignore[attr-defined]
        added.set_defaults(run=run)
        for name in names:
            added.add_argument(name, type=Path)
        for name, default in settings.items():
            added.add_argument(f"--{name}", default=default, type=type(default))
        return added

    labels = way(answers, "answers", extractor="structured", labelled="")
    labels.add_argument("text", nargs="+")
    way(student, "answers", "margins", student="structured", taught=20_000, most=10**6, epochs=12)
    way(coverage, held=3500, resamples=1000).add_argument("margins", nargs="+", type=Path)
    drawn = way(curves, "directory")
    for name in ("--coverage", "--learning"):
        drawn.add_argument(name, nargs="+", type=Path, default=[])
    way(drift, "answers", streams=10)
    way(kill, times=200)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
