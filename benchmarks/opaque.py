"""Measures learned mode on black boxes that know more than the schema: whole labellings that are the black box's.

    python benchmarks/opaque.py --corpus en_ewt-ud-dev.conllu.gz --out results/opaque.json

Every task declares factors without tables; what these cost, only the black box knows. The rows are greedy search, the
default search, a simple rival, and `Speedup(schema, solver=box, answer="learned", trust=Trust(prove=False))`, fitted
with nothing else set. The rival forbids every label tuple that no answer shows, and proves with that; for tags it is a
structured perceptron with exact decoding.

- *transitivity*: relations between 6, 8 and 10 events; the black box knows which three can hold at once.
- *tags*: chains of part-of-speech tags, costs by a naive model of single words, transitions by counting. --corpus is
  a CoNLL-U file, plain or compressed; without it they are left out.
- *roles*: arguments of a predicate; no role of the core twice, no two overlapping arguments, and references and
  continuations only of roles that are there, which pairs of arguments cannot say.
- *lifetime*: 6,000 problems of transitivity that come in, a hundred at a time, with nothing learned before.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from boxes import Roles, Tags, Transitivity
from rich.console import Console
from rich.table import Table

import hasten
from hasten.learning.learner import typical_gap
from hasten.learning.perceptron import Perceptron, StepSize
from hasten.learning.tables import Changing, LearnedTables
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import same_labels

Box = Callable[[Problem], np.ndarray]


class Task(NamedTuple):
    """Problems to learn from and problems to try on, with the black box's answers to both."""

    name: str
    schema: hasten.Schema
    box: Box
    train: Batch
    test: Batch
    rival: str = "mined"

    @property
    def answers(self) -> tuple[np.ndarray, np.ndarray]:
        """The black box's flat answers."""
        return answers_of(self.box, self.train), answers_of(self.box, self.test)


def answers_of(box: Box, batch: Batch) -> np.ndarray:
    """Asks the black box about every problem."""
    return np.concatenate([box(batch[p]) for p in range(len(batch))])


def agreement(batch: Batch, labels: np.ndarray, answers: np.ndarray) -> float:
    """Returns the share of whole labellings that are the black box's."""
    return float(same_labels(batch, labels, answers).mean())


def by_mining(task: Task, answers: np.ndarray) -> np.ndarray:
    """The rival: forbids what no answer shows, and proves with that."""
    shown = np.zeros(task.schema.n_weights, dtype=bool)
    for p in range(len(task.train)):
        labels = answers[task.train.variable_at[p] : task.train.variable_at[p + 1]]
        graph = task.train[p].graph
        at = np.add.reduceat(graph.stride * labels[graph.scope], graph.scope_first[:-1])
        shown[graph.weight_at + at] = True
    tables = LearnedTables(task.schema, ~shown, np.zeros(len(shown)))
    return hasten.Certifier()(tables.added_to(task.test)).labels


def by_perceptron(task: Task, answers: np.ndarray, step: float = 0.01, epochs: int = 10) -> np.ndarray:
    """The other rival: a structured perceptron with exact decoding and averaged weights."""
    batch, nothing = task.train, np.zeros(task.schema.n_weights, dtype=bool)
    perceptron = Perceptron(Changing(batch, nothing), batch, answers, StepSize(step * typical_gap(batch), 0.0))
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        perceptron.run(rng.permutation(len(batch)))
    return hasten.Certifier()(perceptron.tables.added_to(task.test)).labels


def measure(task: Task) -> dict[str, Any]:
    """Returns the agreement of each row, and what learning took."""
    answers, truth = task.answers
    began, cpu = time.perf_counter(), time.process_time()
    speedup = hasten.Speedup(task.schema, solver=task.box, answer="learned", trust=hasten.Trust(prove=False)).fit(
        task.train, answers
    )
    seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
    learned = speedup.set_params(trust__audit=0.0).predict(task.test)
    began = time.process_time()
    speedup.predict(task.test)
    each = (time.process_time() - began) / len(task.test)
    default = hasten.Speedup(task.schema, solver=task.box, answer="search", trust=hasten.Trust(prove=False, audit=0.0))
    rival = by_perceptron if task.rival == "perceptron" else by_mining
    return {
        "task": task.name,
        "examples": len(task.train),
        "tried on": len(task.test),
        "greedy": agreement(task.test, hasten.greedy()(task.test).labels, truth),
        "default search": agreement(task.test, default.fit(task.train, answers).predict(task.test).labels, truth),
        "rival": agreement(task.test, rival(task, answers), truth),
        "learned": agreement(task.test, learned.labels, truth),
        "chosen": speedup.choice.method.value,
        "why": str(speedup.choice),
        "seconds to fit": seconds,
        "processor seconds to fit": cpu_seconds,
        "microseconds an answer": 1e6 * each,
        "optimal for the tables": float(learned.has(hasten.Status.LEARNED).mean()),
    }


def measure_lifetime(n: int, part: int = 100) -> dict[str, Any]:
    """Returns calls and agreement of a speedup that begins with nothing."""
    task = Transitivity()
    batch = task.problems(6, n, seed=11)
    speedup = hasten.Speedup(task.open, solver=task, answer="learned", trust=hasten.Trust(prove=False), learn=True)
    began = time.process_time()
    found = [speedup.predict(batch[at : at + part]).labels for at in range(0, n, part)]
    seconds = time.process_time() - began
    return {
        "task": "lifetime of transitivity, 6 events",
        "problems": n,
        "calls": speedup.counters.solver_calls,
        "share of calls": speedup.counters.solver_calls / n,
        "agreement": agreement(batch, np.concatenate(found), answers_of(task, batch)),
        "processor seconds, the black box included": seconds,
        "notes": speedup.history.notes,
    }


def tasks(corpus: Path | None, quick: bool) -> Iterable[Task]:
    """Yields every task, one after the other."""
    few, many = (200, 1000) if quick else (1000, 5000)
    time_ = Transitivity()
    test = time_.problems(6, few, seed=1)
    yield Task("transitivity, 6 events", time_.open, time_, time_.problems(6, 100, seed=0), test)
    six = time_.problems(6, many, seed=0)
    yield Task("transitivity, 6 events", time_.open, time_, six, test)
    yield Task("transitivity, 8 events", time_.open, time_, time_.problems(8, many // 5, 0), time_.problems(8, few, 1))
    yield Task("transitivity, learned at 6, tried at 10", time_.open, time_, six, time_.problems(10, few // 4, 1))
    if corpus is not None:
        tags = Tags(corpus)
        yield Task(
            "tags", tags.open, tags, tags.problems(slice(0, 1500)), tags.problems(slice(1500, None)), "perceptron"
        )
    roles = Roles()
    yield Task("roles", roles.open, roles, roles.problems(many, seed=0), roles.problems(few, seed=1))


def main() -> None:
    """Measures every task and shows a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", type=Path, help="a CoNLL-U file for the tags; without it they are left out")
    parser.add_argument("--only", default="", help="measure only tasks whose name has this in it")
    parser.add_argument("--quick", action="store_true", help="a fifth of the examples")
    parser.add_argument("--out", type=Path, help="where to write the results as JSON")
    options = parser.parse_args()
    console, results = Console(), []
    for task in tasks(options.corpus, options.quick):
        if options.only in task.name:
            results.append(measure(task))
            console.print(results[-1]["task"], results[-1]["examples"], results[-1]["why"], highlight=False)
    if options.only in "lifetime":
        results.append(measure_lifetime(1000 if options.quick else 6000))
        console.print(*results[-1]["notes"], sep="\n", highlight=False)
    columns = ["task", "examples", "greedy", "default search", "rival", "learned", "chosen", "processor seconds to fit"]
    table = Table(*columns, "µs an answer")
    for row in results:
        if "learned" in row:
            cells = [f"{row[name]:.3f}" if isinstance(row[name], float) else str(row[name]) for name in columns]
            table.add_row(*cells, f"{row['microseconds an answer']:.0f}")
        else:
            console.print(f"{row['task']}: {row['calls']} calls ({row['share of calls']:.1%}), {row['agreement']:.4f}")
    console.print(table)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
