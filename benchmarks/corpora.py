"""Corpora of any size, made up: how exact, how fast and how large the entity-relation tools are on labels of their own.

A corpus has so many types, relations (each joins a few pairs of types, and some hold both ways) and spans a sentence.
Names hint at types and words between spans at relations, neither reliably; every fourth relation holds between most
pairs of spans that it fits, however far apart, and only their names hint at it. Three measurements:

    corpora.py speed    certified answers against the ILP at its first pass and against greedy search
    corpora.py stream   the memory of `hasten predict` on a long stream of sentences of many sizes
    corpora.py train    the memory and the time of `hasten train`
    corpora.py write    such a corpus, as JSON lines

Times are processor times of one thread.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

FILLERS = [f"w{n}" for n in range(400)]


@dataclass
class Language:
    """Made-up labels, and the words that hint at them."""

    n_types: int
    n_relations: int
    max_spans: int
    seed: int = 0
    noise: float = 0.15  # how often a name or a word between spans hints at the wrong label
    signatures: dict[str, list[tuple[str, str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        draw = random.Random(f"language {self.seed}")
        self.types = [f"type{n}" for n in range(self.n_types)]
        for n in range(self.n_relations):
            pairs = [(draw.choice(self.types), draw.choice(self.types)) for _ in range(draw.choice((1, 1, 2, 4)))]
            if n % 5 == 4:  # holds both ways
                pairs += [(target, source) for source, target in pairs]
            self.signatures[f"relation{n}"] = sorted(set(pairs))

    def sentences(self, n: int, seed: int = 0) -> Iterator[dict[str, Any]]:
        """Makes up labelled sentences, as objects of our JSON lines."""
        draw = random.Random(f"text {self.seed} {seed}")
        for number in range(n):
            yield {"id": f"{seed}-{number}", **self._sentence(draw)}

    def _sentence(self, draw: random.Random) -> dict[str, Any]:
        most = self.max_spans if draw.random() < 0.25 else min(6, self.max_spans)
        types: list[str] = []
        tokens: list[str] = []
        spans: list[list[int]] = []
        relations: list[list[Any]] = []
        for at in range(draw.randint(1, most)):
            name, tied = "", at > 0 and draw.random() < 0.5
            if tied:  # to the one before
                name = draw.choice(list(self.signatures))
                fits = [target for source, target in self.signatures[name] if source == types[-1]]
                tied = bool(fits)
            types.append(draw.choice(fits) if tied else draw.choice(self.types))
            if tied:
                relations.append([at - 1, at, name])
                if int(name.removeprefix("relation")) % 5 == 4 and draw.random() < 0.8:
                    relations.append([at, at - 1, name])
            tokens += [draw.choice(FILLERS) for _ in range(draw.randint(0, 2))]
            hint = name if tied else ""
            if draw.random() < self.noise:
                hint = draw.choice(list(self.signatures))
            tokens += [f"{hint}word{draw.randrange(3)}"] if hint else [draw.choice(FILLERS)]
            shown = draw.choice(self.types) if draw.random() < self.noise else types[-1]
            spans.append([len(tokens), len(tokens) + 1])
            tokens.append(f"{shown.capitalize()}name{draw.randrange(20)}")
        related = {(source, target) for source, target, _ in relations}
        for name in list(self.signatures)[::4]:
            for i, j in combinations(range(len(types)), 2):
                free = (i, j) not in related and (j, i) not in related
                if free and (types[i], types[j]) in self.signatures[name] and draw.random() < 0.7:
                    related.add((i, j))
                    relations.append([i, j, name])
        return {"tokens": [*tokens, "."], "spans": spans, "types": types, "relations": relations}


def write(path: Path, objects: Iterator[dict[str, Any]]) -> None:
    """Writes JSON lines."""
    with open(path, "w", encoding="utf-8") as file:
        for each in objects:
            file.write(json.dumps(each) + "\n")


def hasten(*arguments: str | Path) -> dict[str, Any]:
    """Runs a command in a process of its own; returns its seconds, its peak of memory in MB, and what it said."""
    started = time.perf_counter()
    code = "import resource, sys\nfrom hasten.cli import app\ntry:\n    app()\nfinally:\n" + (
        "    print('peak', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"hasten {' '.join(map(str, arguments))}\n{done.stdout}{done.stderr}")
    peak = int(done.stderr.split("peak")[-1]) / 1024
    return {"seconds": time.perf_counter() - started, "MB": peak, "said": done.stdout + done.stderr.split("peak")[0]}


def speed(language: Language, options: argparse.Namespace) -> None:
    """Prints exactness and times of certified answers, of the ILP at its first pass, and of greedy search."""
    from hasten.proof.certifier import Certifier
    from hasten.search.beam import greedy
    from hasten.solvers import make_solver
    from hasten.support.terminal import no_progress
    from hasten.tasks.entity_relation.data.formats.jsonl import from_json
    from hasten.tasks.entity_relation.scoring.features import intern
    from hasten.tasks.entity_relation.scoring.training import train_black_box
    from hasten.tasks.entity_relation.task import EntityRelationTask

    train = [from_json(json.dumps(each), "") for each in language.sentences(options.n)]
    test = [from_json(json.dumps(each), "") for each in language.sentences(options.n_test, seed=1)]
    task = EntityRelationTask.induced(train)
    for training in options.black_box:
        scorer = train_black_box(training, train, task, seed=0, progress=no_progress)
        text = intern(test)

        def batch(text: Any = text, scorer: Any = scorer) -> Any:
            return task.lean.batch(text.n_entities, scorer.costs(text)[0])

        rest = batch()
        for warm in (Certifier(), greedy()):
            warm(rest)  # compiles kernels, and plans
        features = median(lambda: scorer.costs(text), 5)  # noqa: B023
        certified = median(lambda: Certifier()(rest), 5)  # noqa: B023
        plain = median(lambda: greedy()(rest), 5)  # noqa: B023
        answers = Certifier()(rest)
        solver, exact, solving, late = make_solver(options.solver), 0, 0.0, 0
        for p in range(len(rest)):
            problem = rest[p]
            solver.prepare(problem)
            started = time.process_time()
            solved = solver.solve(problem, options.limit)
            solving += 1000 * (time.process_time() - started)
            late += not solved.status.optimal
            slack = 1e-6 * max(1.0, abs(solved.cost))
            same = solved.cost - answers.cost[p] <= slack or not solved.status.optimal
            exact += bool(answers.proved[p]) and same and answers.cost[p] - solved.cost <= slack
        print(
            f"{language.n_types} types, {language.n_relations} relations, up to {language.max_spans} spans, {training}:"
            f" proved and exact {exact / len(rest):.3f}; inference {solving / certified:,.0f} times as fast as "
            f"{options.solver} ({solving:,.0f} ms; {late} not within {options.limit:.0f} s) "
            f"and {certified / plain:.2f} of greedy's ({plain:.1f} ms); end to end"
            f" {(features + certified) / (features + plain):.2f} of greedy's (features {features:.1f} ms)",
            flush=True,
        )


def median(work: Callable[[], object], times: int) -> float:
    """Returns the median of the milliseconds that something takes."""
    taken = []
    for _ in range(times):
        started = time.process_time()
        work()
        taken.append(1000 * (time.process_time() - started))
    return sorted(taken)[times // 2]


def train(language: Language, options: argparse.Namespace) -> None:
    """Prints the memory and the time of `hasten train`."""
    with tempfile.TemporaryDirectory() as place:
        corpus = Path(place) / "corpus.jsonl"
        write(corpus, language.sentences(options.n))
        for training in options.black_box:
            model = Path(place) / f"{training}.hasten"
            found = hasten("train", "--corpus", corpus, "--induce", "--out", model, "--black-box", training)
            print(
                f"train, {training}, {language.n_types} types, {language.n_relations} relations, up to "
                f"{language.max_spans} spans, {options.n:,} sentences: {found['seconds']:.0f} s, {found['MB']:.0f} MB",
                flush=True,
            )


def stream(language: Language, options: argparse.Namespace) -> None:
    """Prints the memory of `hasten predict` on a long stream."""
    with tempfile.TemporaryDirectory() as place:
        corpus, text, model = (Path(place) / name for name in ("corpus.jsonl", "text.jsonl", "model.hasten"))
        write(corpus, language.sentences(options.n))
        write(text, language.sentences(options.lines, seed=2))
        hasten("train", "--corpus", corpus, "--induce", "--out", model)
        for mode in options.mode:
            found = hasten("predict", model, text, Path(place) / "out.jsonl", "--mode", mode)
            print(
                f"predict, {mode}, {options.lines:,} lines of up to {language.max_spans} spans: "
                f"{found['seconds']:.0f} s, {found['MB']:.0f} MB",
                flush=True,
            )


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "stream", "train", "write"])
    parser.add_argument("--types", type=int, default=40)
    parser.add_argument("--relations", type=int, default=20)
    parser.add_argument("--spans", type=int, default=30)
    parser.add_argument("-n", type=int, default=1000, help="labelled sentences")
    parser.add_argument("--n-test", type=int, default=100, help="sentences that are answered")
    parser.add_argument("--lines", type=int, default=1_000_000, help="of the stream")
    parser.add_argument("--black-box", nargs="+", default=["structured", "independent"])
    parser.add_argument("--mode", nargs="+", default=["certified", "search"])
    parser.add_argument("--solver", default="highs")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds that the solver may take for a sentence")
    parser.add_argument("--noise", type=float, default=0.15, help="how often a word hints at the wrong label")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="of write")
    options = parser.parse_args()
    language = Language(options.types, options.relations, options.spans, options.seed, options.noise)
    if options.what == "write":
        write(options.out or Path("corpus.jsonl"), language.sentences(options.n))
    else:
        {"speed": speed, "train": train, "stream": stream}[options.what](language, options)
    print(f"peak of this process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MB")


if __name__ == "__main__":
    main()
