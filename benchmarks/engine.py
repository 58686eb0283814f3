"""Measures searches, proofs and solvers side by side on entity-relation problems: what `make bench` runs.

Everything runs in one process, one thread unless said, on the same problems. Of several rounds the fastest
counts, for each line by itself; every round takes each line in turn, so that a disturbance meets them alike.
Times are by the clock, as proofs may run in a thread beside the caller's: measure while nothing else runs.
Costs are given: nothing here computes features. Batches are built beforehand, and so are solvers' models.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.table import Table

from hasten.bench.families import FAMILIES
from hasten.bench.run import duration, wide_console
from hasten.errors import SolverError
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, ConstrainedSearch, greedy
from hasten.solvers import make_solver
from hasten.support.environment import describe_machine
from hasten.support.files import write_whole
from hasten.tasks.evaluation.page import times

SIZES = (2, 4, 6, 8, 12, 20)
Columns = dict[int, dict[str, dict[str, float]]]  # by size and line: seconds a problem, and more
SOLVERS = ("highs", "gurobi", "toulbar2")


@dataclass
class Line:
    """One thing measured: the problems of each call, and what it found."""

    name: str
    run: Callable[[int], np.ndarray]  # answers the first so many problems; returns their costs, inf where unproved
    n: int
    exact: bool = False
    seconds: float = math.inf  # a problem
    extra: dict[str, float] = field(default_factory=dict)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--out", type=Path, help="the JSON file to write")
    options.add_argument("--quick", action="store_true", help="fewer sizes and problems: under a minute")
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    sizes = (2, 4) if given.quick else SIZES
    console = wide_console()
    measured: dict[str, Columns] = {"random": {}, "peaked": {}}
    for family, columns in measured.items():
        for size in sizes:
            columns[size] = measure(family, size, given.quick, given.seed)
            console.print(f"{family}, {size} entities: measured.", style="dim")
        console.print(table(family, columns))
        console.print(quality(family, columns))
    verdicts = judge(measured)
    for verdict in verdicts:
        console.print(verdict)
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        said = {"machine": describe_machine(), "seed": given.seed, "measured": measured, "verdicts": verdicts}
        write_whole(given.out, json.dumps(said, indent=1).encode())
        console.print(f"Wrote {given.out}.")


def measure(family: str, size: int, quick: bool, seed: int) -> dict[str, dict[str, float]]:
    """Returns seconds a problem, and what else there is to say, for each line."""
    n = 50 if quick else {2: 2000, 4: 1000, 6: 300, 8: 200, 12: 100, 20: 40}[size]
    problems = FAMILIES[family].problems(size, n, seed)
    batch = Batch.of(problems)
    weights = np.random.default_rng(seed).normal(size=batch.structures[0].schema.n_weights) * 0.1
    lines = search_lines(problems, batch, weights) + proof_lines(problems, batch)
    n_solved = max(3, min(n, (10 if quick else 100) * 4 // size**2 + 5))
    lines += solver_lines(problems, n_solved, quick)
    best = {}
    rounds = 3 if quick else 5
    for turn in range(rounds):
        for line in lines:
            if turn >= 2 and line.seconds * line.n > 2.0:
                continue
            started = time.perf_counter()
            costs = line.run(line.n)
            line.seconds = min(line.seconds, (time.perf_counter() - started) / line.n)
            best[line.name] = costs
    check(lines, best)
    found = {line.name: {"seconds": line.seconds, "n": line.n, **line.extra} for line in lines}
    answers = Certifier()(batch)
    proved = answers.proved
    found["certifier"]["proved"] = float(proved.mean())
    found["bound and decode"]["proved"] = float(Certifier(max_nodes=0)(batch).proved.mean())
    optimum = np.where(proved, answers.cost, np.nan)
    for line in lines:
        if not line.exact and proved.any():
            right = np.abs(best[line.name] - optimum[: line.n]) <= TOLERANCE * np.maximum(
                1.0, np.abs(optimum[: line.n])
            )
            found[line.name]["optimal"] = float(right[proved[: line.n]].mean())
    return found


def search_lines(problems: list[Problem], batch: Batch, weights: np.ndarray) -> list[Line]:
    """Returns the searches, in batches and one by one."""
    searches = {
        "greedy": greedy(),
        "beam 1": BeamSearch(1, weights),
        "beam 2": BeamSearch(2, weights),
        "beam 8": BeamSearch(8, weights),
        "look-ahead beam 2": BeamSearch(2, weights, look_ahead=True),
        "constrained": ConstrainedSearch(),
    }
    n = len(problems)
    lines = [Line(name, lambda _, search=search: search(batch).cost, n) for name, search in searches.items()]
    lines.append(Line("beam 2, two threads", lambda _: searches["beam 2"](batch, n_jobs=2).cost, n))
    few = min(n, 200)
    for problem in problems[:few]:
        _ = problem.batch  # gathered once
    for name in ("greedy", "beam 2"):
        search = searches[name]
        lines.append(
            Line(
                f"{name}, one by one",
                lambda m, search=search: np.array([search(p).cost for p in problems[:m]]),
                few,
            )
        )
    return lines


def proof_lines(problems: list[Problem], batch: Batch) -> list[Line]:
    """Returns the proofs, in a batch and one by one."""
    bound, full = Certifier(max_nodes=0), Certifier()
    n, few = len(problems), min(len(problems), 200)

    def proved_cost(answers: object) -> np.ndarray:
        return np.where(answers.proved, answers.cost, np.inf)  # type: ignore[attr-defined]

    return [
        Line("bound and decode", lambda _: proved_cost(bound(batch)), n, exact=True),
        Line("certifier", lambda _: proved_cost(full(batch)), n, exact=True),
        Line("certifier, two threads", lambda _: proved_cost(full(batch, n_jobs=2)), n, exact=True),
        Line(
            "certifier, one by one",
            lambda m: np.array([a.cost if a.proved else np.inf for a in map(full, problems[:m])]),
            few,
            exact=True,
        ),
    ]


def solver_lines(problems: list[Problem], n: int, quick: bool) -> list[Line]:
    """Returns the solvers that are installed and large enough; their models are built here."""
    lines = []
    shape = problems[0].structure
    for name in SOLVERS:
        try:
            solver = make_solver(name, time_limit=10.0, interruptible=False)
            solver.solve(shape.problem(np.zeros(shape.n_labels)))
        except SolverError as error:
            print(f"{name} is left out: {error}")
            continue

        def run(m: int, solver: object = solver) -> np.ndarray:
            answers = [solver.solve(p) for p in problems[:m]]  # type: ignore[attr-defined]
            return np.array([a.cost if a.status.optimal else np.inf for a in answers])

        lines.append(Line(name, run, n, exact=True))
    return lines


def check(lines: list[Line], best: dict[str, np.ndarray]) -> None:
    """Makes sure that all that call themselves exact agree."""
    exact = [best[line.name] for line in lines if line.exact]
    for p in range(max(map(len, exact))):
        costs = [each[p] for each in exact if p < len(each) and each[p] < np.inf]
        if costs and max(costs) - min(costs) > TOLERANCE * max(1.0, abs(min(costs))):
            raise SystemExit(f"Problem {p} has several optima: {costs}. Something is wrong.")


def table(family: str, columns: Columns) -> Table:
    """Returns times and ratios: how many times as long Gurobi takes."""
    shown = Table(title=f"{family}: time a problem, and how many times as long Gurobi takes")
    shown.add_column("")
    for size in columns:
        shown.add_column(f"{size} entities", justify="right")
    for name in names_of(columns):
        cells = []
        for lines in columns.values():
            cell = duration(lines[name]["seconds"]) if name in lines else "-"
            if name in lines and "gurobi" in lines and name != "gurobi":
                cell += f" {times(lines['gurobi']['seconds'] / lines[name]['seconds']):>6}"
            cells.append(cell)
        shown.add_row(name, *cells)
    return shown


def quality(family: str, columns: Columns) -> Table:
    """Returns how many of the problems each line proved, or answered with an optimum."""
    shown = Table(title=f"{family}: problems proved, and searched with an optimal answer (of those proved)")
    shown.add_column("")
    for size in columns:
        shown.add_column(f"{size} entities", justify="right")
    for name in names_of(columns):
        shares = [lines.get(name, {}) for lines in columns.values()]
        if any("proved" in share or "optimal" in share for share in shares):
            cells = [share.get("proved", share.get("optimal", math.nan)) for share in shares]
            shown.add_row(name, *(f"{cell:.0%}" for cell in cells))
    return shown


def names_of(columns: Columns) -> list[str]:
    """Returns the names of all lines, in order."""
    return list(dict.fromkeys(name for lines in columns.values() for name in lines))


def judge(found: dict[str, Columns]) -> list[str]:
    """Says which of the expectations were met: ratios to Gurobi, and of batches to single calls."""
    expected = (
        ("certifier", "gurobi", 100.0),
        ("beam 1", "gurobi", 300.0),
        ("beam 2", "gurobi", 300.0),
        ("greedy", "greedy, one by one", 2.0),
        ("beam 2", "beam 2, one by one", 2.0),
        ("certifier", "certifier, one by one", 2.0),
    )
    said = []
    for ours, theirs, wanted in expected:
        for family, columns in found.items():
            ratios = {
                size: lines[theirs]["seconds"] / lines[ours]["seconds"]
                for size, lines in columns.items()
                if theirs in lines and ours in lines
            }
            met = "met" if all(ratio >= wanted for ratio in ratios.values()) else "NOT met everywhere"
            each = ", ".join(f"{size} entities {times(ratio)}" for size, ratio in ratios.items())
            said.append(f"{family}: {ours} against {theirs}, {wanted:.0f}× wanted, {met}: {each}.")
    return said


if __name__ == "__main__":
    main()
