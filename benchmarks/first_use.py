"""What a user waits for: the first use with an empty cache, and single calls; here and in another checkout.

    python benchmarks/first_use.py --promises           # all of the first use, beside what is promised
    python benchmarks/first_use.py                      # the first answer and single calls of this checkout
    python benchmarks/first_use.py --against OTHER      # side by side, in turns, with ratios

Times of the first use are of the processor, in a process of its own, the start of Python included except where only a
part is timed; single calls are the median, over problems, of the least time of several rounds. Costs are noise, which
is harder than what a trained model gives.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

HERE = str(Path(__file__).parents[1] / "src")
PAIRS = {
    "Kill": ("person", "person"),
    "LiveIn": ("person", "location"),
    "WorkFor": ("person", "organization"),
    "LocatedAt": ("location", "location"),
    "OrgBasedIn": ("organization", "location"),
}
SIZES = (2, 4, 6, 8)

ANSWERS = """
import sys, time
began = time.process_time()
import hasten
imported = time.process_time()
import numpy as np
sys.path.insert(0, {folder!r})
from first_use import entities, ruled
shape = {shape}
problem = shape.problem(np.random.default_rng(0).normal(size=shape.n_labels))
start = time.process_time()
assert {ask}(problem).labels is not None
end = time.process_time()
assert {numba} or "numba" not in sys.modules
print({what})
"""
HELP = """
import sys
from hasten.cli import main
sys.argv = ["hasten", "--help"]
try:
    main()
finally:
    assert "numba" not in sys.modules
"""
TRAIN = """
from itertools import islice
from hasten.tasks.entity_relation.data.formats.jsonl import write_jsonl
from hasten.tasks.entity_relation.data.synthetic import generate
from hasten.tasks.entity_relation.tagger import Tagger
sentences = list(generate(10300, seed=0))
Tagger.train(sentences[:300]).save("model")
write_jsonl("sentences.jsonl", sentences[300:])
"""


def entities(n: int) -> Any:
    """Returns the structure of `n` entities and all their relations, built with the public API alone."""
    import hasten

    schema = hasten.Schema()
    entity = schema.variable("entity", ["person", "location", "organization", "none"])
    relation = schema.variable("relation", [*PAIRS, "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    for name, (source, target) in PAIRS.items():
        args.allow(relation=name, source=source, target=target)
    args.allow(relation="NoRel")
    both = schema.factor("both", forward=relation, backward=relation)
    both.allow(forward="NoRel").allow(backward="NoRel")
    shape = schema.structure()
    each = [shape.add(entity) for _ in range(n)]
    for a in range(n):
        for b in range(a + 1, n):
            there, back = shape.add(relation), shape.add(relation)
            shape.connect(args, source=each[a], relation=there, target=each[b])
            shape.connect(args, source=each[b], relation=back, target=each[a])
            shape.connect(both, forward=there, backward=back)
    return shape


def ruled() -> Any:
    """Returns a structure with one `at_most` rule and one implication."""
    import hasten

    schema = hasten.Schema()
    word = schema.variable("word", ["noun", "verb", "other"])
    schema.rule("one verb", at_most=1, word="verb")
    shape = schema.structure()
    for _ in range(4):
        shape.add(word)
    shape.rule("a verb needs a noun", [(0, "verb"), (1, "noun", -1.0)], at_most=0)
    return shape


def promises() -> None:
    """Prints the seconds of each first use, and what is promised."""

    def ask(what: str, shape: str, how: str, numba: bool = False) -> tuple[str, ...]:
        script = ANSWERS.format(folder=str(Path(__file__).parent), shape=shape, ask=how, what=what, numba=numba)
        return ("-c", script)

    took, first = "end - start", "end - began"
    speedup, certifier = "hasten.Speedup(shape.schema).predict", "hasten.Certifier()"
    rows: list[tuple[str, float, tuple[str, ...], str, bool]] = [
        ("import hasten", 0.4, ask("imported - began", "entities(2)", "hasten.greedy()"), "auto", True),
        ("hasten --help, without Numba", 0.4, ("-c", HELP), "auto", False),
        ("a first greedy answer", 0.3, ask(took, "entities(4)", "hasten.greedy()"), "auto", True),
        ("a first proof, on tables", 0.3, ask(took, "entities(4)", certifier), "auto", True),
        ("a first prediction, with rules", 0.3, ask(took, "ruled()", speedup), "auto", True),
        ("the tour of the README", 4.0, (str(Path(HERE).parent / "examples" / "tour.py"),), "auto", False),
        ("a first proof with rules, compiled", 20.0, ask(first, "ruled()", certifier, True), "compiled", True),
        ("that proof in the next process", 0.7, ask(first, "ruled()", certifier), "auto", True),
        (
            "10,000 sentences labelled",
            20.0,
            ("-m", "hasten", "predict", "model", "sentences.jsonl", "out"),
            "auto",
            False,
        ),
        ("hasten demo", 35.0, ("-m", "hasten", "demo", "--out", "demo"), "auto", False),
    ]
    with tempfile.TemporaryDirectory() as folder:
        run(["-c", TRAIN], folder, f"{folder}/kernels", "compiled")
        for name, limit, command, tier, is_timed in rows:
            cache = f"{folder}/ruled" if "proof with rules" in name or "next process" in name else tempfile.mkdtemp()
            printed, used = run([*command], folder, cache, tier)
            seconds = float(printed.split()[-1]) if is_timed else used
            print(f"{name:36} {seconds:7.3f} s   (at most {limit:g})", flush=True)


def run(command: list[str], folder: str, cache: str, tier: str) -> tuple[str, float]:
    """Runs Python with a cache of kernels; returns what it printed, and the seconds of the processor."""
    environment = os.environ | {"PYTHONPATH": HERE, "NUMBA_CACHE_DIR": cache, "HASTEN_TIER": tier}
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, *command], env=environment, cwd=folder, stdout=said)
        _, status, used = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{command} ended with {status}")
        said.seek(0)
        return said.read(), used.ru_utime + used.ru_stime


def first_answer(n: int) -> dict[str, float]:
    """Returns the seconds of the processor until one problem is certified, from before the import on."""
    start = time.process_time()
    import numpy as np

    import hasten

    shape = entities(n)
    answer = hasten.Certifier()(shape.problem(np.random.default_rng(0).normal(size=shape.n_labels)))
    assert answer.proved
    return {f"first answer, {n} entities (s)": time.process_time() - start}


def single_calls(solver: str | None) -> dict[str, float]:
    """Returns microseconds of single calls: our predictions and, if there is one, a solver with reused models."""
    import numpy as np

    import hasten

    found = {}
    for n in SIZES:
        shape = entities(n)
        costs = np.random.default_rng(n).normal(size=(200, shape.n_labels))
        speedup = hasten.Speedup(shape.schema)
        found[f"predict one, {n} entities (µs)"] = typical(speedup.predict, shape, costs, 6)
        if solver is not None:
            peer = hasten.make_solver(solver)
            found[f"{solver}, reused, {n} entities (µs)"] = typical(peer.solve, shape, costs[:50], 2)
    return found


def typical(call: Any, shape: Any, rows: Any, rounds: int) -> float:
    """Returns the median, over problems, of the least microseconds that making and answering one takes."""
    call(shape.problem(rows[0]))
    least = [float("inf")] * len(rows)
    for _ in range(rounds):
        for i, row in enumerate(rows):
            start = time.perf_counter()
            call(shape.problem(row))
            least[i] = min(least[i], time.perf_counter() - start)
    return median(least) * 1e6


def measure(source: str, what: str, cache: str) -> dict[str, float]:
    """Measures something in a process of its own."""
    environment = os.environ | {"PYTHONPATH": source, "NUMBA_CACHE_DIR": cache}
    command = [sys.executable, __file__, "--measure", what]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--promises", action="store_true", help="measure all of the first use")
    parser.add_argument("--against", help="another checkout")
    parser.add_argument("--solver", help="a solver to compare single calls with, such as gurobi")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    settings = parser.parse_args()
    if settings.promises:
        promises()
        return
    if settings.measure is not None:
        kind, _, detail = settings.measure.partition(":")
        print(json.dumps(first_answer(int(detail)) if kind == "first" else single_calls(detail or None)))
        return
    sources = {"here": HERE} | ({"there": str(Path(settings.against).resolve() / "src")} if settings.against else {})
    best: dict[str, dict[str, float]] = {name: {} for name in sources}
    with tempfile.TemporaryDirectory() as warm:
        for turn in range(settings.rounds):
            for what in ("first:2", "first:8", f"calls:{settings.solver or ''}"):
                for name, source in sources.items():
                    with tempfile.TemporaryDirectory() as empty:
                        cache = empty if what.startswith("first") else f"{warm}/{name}"
                        for key, value in measure(source, what, cache).items():
                            best[name][key] = min(value, best[name].get(key, float("inf")))
                print(f"round {turn + 1}: {what}", file=sys.stderr)
    for key in best["here"]:
        row = [f"{best[name][key]:10.2f}" for name in sources]
        if settings.against:
            row.append(f"{best['there'][key] / best['here'][key]:8.1f}x")
        print(f"{key:34}", *row)


if __name__ == "__main__":
    main()
