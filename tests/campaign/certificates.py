"""Checks certificates: of small problems against enumeration, of large ones against the checker, and mutated ones.

    python tests/campaign/certificates.py --count 1000 --seed 0 [--first 240]      # small ones, each also mutated
    python tests/campaign/certificates.py --large 100 --seed 0 [--first 40]

Small problems are those of `proofs.py`, of all families in turn. Every certificate must verify, bracket the optimum
and, where the answer is proved, meet it. Then one is changed, in up to three places: numbers, names and types, lines
that are dropped, repeated or exchanged, claims raised. If it still verifies, what it claims must be true of the problem
that it states, which is enumerated from its lines in fractions. Large problems have 200 to 2,000 variables: their
certificates must verify, and be refused as soon as they claim more (the lower limit is raised for every fourth, which
takes another check). A trial depends on the seed and its number alone.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import numpy as np
from problems import build_all
from proofs import FAMILIES, draw_trial
from truth import Truth, rounding

from hasten import Certifier, Problem, ProblemError, Schema, adopt
from hasten import certificate as checker
from hasten.bench.families import FAMILIES as BENCH
from hasten.kernels.tolerance import TOLERANCE
from hasten.programs.program import Program

EACH = 6  # problems of a trial: some of those that `proofs.py` draws
JUNK = ("sum", "count", "price", "inf", 0, 1, 2, -1, 0.5, 1e300, -1e300, 5e-324, None, [], [0], True, "0", {})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="small problems")
    parser.add_argument("--large", type=int, default=0, help="large problems, in place of small ones")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the first trial; the families take turns")
    options = parser.parse_args()
    counts = Counter[str]()
    n = options.large or -(-options.count // EACH)
    print(f"seed {options.seed}, trials {options.first} to {options.first + n - 1}", flush=True)
    said = time.monotonic()
    for number in range(options.first, options.first + n):
        (large if options.large else small)(options.seed, number, counts)
        if time.monotonic() - said > 60.0:
            said = time.monotonic()
            print(f"{number + 1 - options.first} trials: {told(counts)}", flush=True)
    print(f"all {n} trials: {told(counts)}", flush=True)
    sys.exit(1 if counts["failed"] else 0)


def told(counts: Counter[str]) -> str:
    """Returns the totals as text."""
    return ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))


def fail(counts: Counter[str], trial: str, wrong: str) -> None:
    """Tells what is wrong."""
    counts["failed"] += 1
    print(f"{trial}: {wrong}", file=sys.stderr, flush=True)


def small(seed: int, number: int, counts: Counter[str]) -> None:
    """Certifies some small problems of one family, and one mutated certificate of each."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    draw, described = Random(f"{family} {seed} {number} certificates"), draw_trial(family, seed, number)["problems"]
    described = draw.sample(described, EACH)
    for n, (problem, truth) in enumerate(zip(build_all(described), Truth.of_all(described), strict=True)):
        trial = f"{family}: trial {number}, problem {n} of seed {seed}"
        counts["problems"] += 1
        try:
            answer, found = Certifier()(problem), Certifier().certificate(problem)
            lower = checker.check(found.lines)[0]
        except ProblemError as error:
            counts["too large to certify"] += 1
            if "too large" not in str(error):
                fail(counts, trial, str(error))
            continue
        except Exception as error:
            fail(counts, trial, repr(error))
            continue
        wrong = complaint(truth, answer, found, lower)
        counts["infeasible" if truth.optimum is None else "proved" if answer.proved else "open"] += 1
        if wrong is not None:
            fail(counts, trial, wrong)
            continue
        lines = mutated(draw, list(found.lines))
        counts["mutated"] += 1
        try:
            _, low, high = checker.check(lines)
        except checker.RefusedError:
            counts["refused"] += 1
            continue
        except Exception as error:
            fail(counts, trial, f"mutated: {error!r}: {lines}")
            continue
        counts["verified, and true"] += 1
        if not is_true(lines, low, high):
            fail(counts, trial, f"mutated, yet verified {low} to {high}: {lines}")


def complaint(truth: Truth, answer: Any, found: Any, lower: int) -> str | None:
    """Returns what is wrong with a certificate, if something is."""
    if truth.optimum is None:
        proved = answer.status.name == "INFEASIBLE"
        return f"infeasible, but shown from {found.lower}" if proved and found.lower < math.inf else None
    if not is_between(found.lower, truth.optimum, found.upper):
        return f"{found.lower} to {found.upper} does not have the optimum {float(truth.optimum)} in it"
    if Fraction(lower, checker.UNIT) > truth.optimum:
        return f"shows more than the optimum {float(truth.optimum)}"
    allowed = TOLERANCE * max(abs(answer.cost), min(1.0, truth.size)) + rounding(truth)
    if answer.proved and found.upper - found.lower > allowed:
        return f"proved, but certified only from {found.lower} to {found.upper}"
    return None


def is_between(low: float, optimum: Fraction, high: float) -> bool:
    """Whether an optimum is between two limits, which may be infinite."""
    return low < math.inf and Fraction(low) <= optimum and (high == math.inf or optimum <= Fraction(high))


def is_true(lines: list[str], low: Any, high: Any) -> bool:
    """Enumerates the problem that some lines state, in fractions; whether its optimum is between two limits."""
    sizes, functions, rows = list[int](), list[Any](), list[Any]()
    for line in lines:
        name, *given = json.loads(line)
        if name == "variable":
            functions.append(((len(sizes),), given))
            sizes.append(len(given))
        elif name == "table":
            functions.append((given[0], given[1]))
        elif name == "row":
            rows.append(given)
        else:
            break
    least: Fraction | None = None
    for labels in product(*map(range, sizes)):
        total = Fraction(0)
        for scope, costs in functions:
            at = 0
            for v in scope:
                at = at * sizes[v] + labels[v]
            if costs[at] == "inf":
                break
            total += Fraction(costs[at])
        else:
            holds = all(
                (bottom is None or activity >= Fraction(bottom)) and (top is None or activity <= Fraction(top))
                for terms, bottom, top in rows
                for activity in [sum(Fraction(w) for v, i, w in terms if labels[v] == i)]
            )
            if holds and (least is None or total < least):
                least = total
    if least is None:
        return bool(high == "inf")  # nothing is claimed that could be false
    return low != "inf" and Fraction(low) <= least and (high == "inf" or least <= Fraction(high))  # of any length


def mutated(draw: Random, lines: list[str]) -> list[str]:
    """Returns lines changed in one to three places."""
    claim = next(n for n, line in enumerate(lines) if line.startswith('["claim"'))
    for _ in range(draw.choice((1, 1, 2, 3))):
        kind, n = draw.random(), draw.randrange(0 if draw.random() < 0.2 else claim, len(lines))
        if kind < 0.1 and len(lines) > 1:
            del lines[n]
            claim = min(claim, len(lines) - 1)
        elif kind < 0.2:
            lines.insert(draw.randrange(len(lines)), lines[n])
        elif kind < 0.3:
            other = draw.randrange(len(lines))
            lines[n], lines[other] = lines[other], lines[n]
        else:
            lines[n] = json.dumps(changed(draw, json.loads(lines[n])))
    for n, line in enumerate(lines):
        step = json.loads(line)
        if type(step) is list and step[:1] == ["claim"] and len(step) > 2 and draw.random() < 0.5:  # more than is true
            high = step[2]
            more = "inf" if high == "inf" or draw.random() < 0.2 else nudged(high) if type(high) is float else high
            lines[n] = json.dumps([*step[:1], more, *step[2:]])
    return lines


def nudged(x: float) -> float:
    """Returns a number a little larger."""
    return math.nextafter(x, math.inf) + 1e-9 * abs(x)


def changed(draw: Random, step: Any) -> Any:
    """Returns a step with one of its parts changed: a number a little, or anything to something else."""
    if type(step) is list and step and draw.random() < 0.95:
        at = draw.randrange(len(step))
        kind = draw.random()
        if kind < 0.05:
            return step[:at] + step[at + 1 :]
        if kind < 0.1:
            return [*step, step[at]]
        return [*step[:at], changed(draw, step[at]), *step[at + 1 :]]
    if type(step) in (int, float) and draw.random() < 0.7:
        return draw.choice((step + 1, step - 1, -step, 2 * step, step + 1e-9, 0.5 * step))
    return draw.choice(JUNK)


def _items(n: int, n_rules: int, rng: np.random.Generator) -> Problem:
    """Draws a knapsack of many items."""
    schema = Schema()
    item = schema.variable("item", ["out", "in"])
    shape = schema.structure()
    for _ in range(n):
        shape.add(item)
    for _ in range(n_rules):
        weights = rng.integers(5, 30, size=n)
        shape.rule("room", [(v, "in", float(w)) for v, w in enumerate(weights)], at_most=float(weights.sum() // 3))
    return shape.problem([[0.0, -float(x)] for x in rng.integers(5, 60, size=n)])


def _picture(rows: int, columns: int, rng: np.random.Generator) -> Problem:
    """Draws a picture of two regions with noise, to be cut; each pair of pixels has its own weight."""
    schema = Schema()
    pixel = schema.variable("pixel", ["back", "front"])
    same = schema.factor("same", one=pixel, other=pixel).set_table([[0.0, 1.0], [1.0, 0.0]])
    shape = schema.structure()
    cells = [[shape.add(pixel) for _ in range(columns)] for _ in range(rows)]
    pairs = []
    for r in range(rows):
        for c in range(columns):
            if c + 1 < columns:
                pairs.append(shape.connect(same, one=cells[r][c], other=cells[r][c + 1]))
            if r + 1 < rows:
                pairs.append(shape.connect(same, one=cells[r][c], other=cells[r + 1][c]))
    truth = np.add.outer(np.arange(rows), np.arange(columns)) % (rows // 2 + 3) < rows // 4 + 1
    front = rng.normal(size=truth.size) + np.where(truth.ravel(), -0.7, 0.7)
    weights = rng.uniform(0.2, 1.5, size=len(pairs))
    tables = {pair: [[0.0, w], [w, 0.0]] for pair, w in zip(pairs, weights.tolist(), strict=True)}
    return shape.problem(np.stack([np.zeros(truth.size), front], axis=1).ravel(), tables=tables)


def _timetable(n: int, n_slots: int, rng: np.random.Generator) -> Program:
    """Draws a program, adopted as SciPy states it: courses and slots; neighbours never meet, few are in the first."""
    from scipy.optimize import Bounds, LinearConstraint

    each = np.eye(n * n_slots).reshape(n, n_slots, n * n_slots)
    rows = np.concatenate(
        [each.sum(axis=1), (each[1:] + each[:-1]).reshape(-1, n * n_slots), each[:, 0].sum(axis=0)[None]]
    )
    low = np.concatenate([np.ones(n), np.full(len(rows) - n, -np.inf)])
    high = np.concatenate([np.ones(len(rows) - 1), [n // 8]])
    constraints, size = LinearConstraint(rows, low, high), n * n_slots
    return adopt(c=rng.normal(size=size), integrality=np.ones(size), bounds=Bounds(0, 1), constraints=constraints)


def _of(name: str, low: int, high: int) -> Callable[[np.random.Generator], Problem]:
    """Returns how to draw a problem of a family of `hasten bench`."""
    return lambda rng: BENCH[name].make(some(rng, low, high), 1, rng)[0]


def some(rng: np.random.Generator, low: int, high: int) -> int:
    """Draws a size between two, more often a small one."""
    return low + int((high + 1 - low) * rng.random() ** 3)


LARGE: dict[str, Callable[[np.random.Generator], Problem | Program]] = {
    "sentences, peaked": _of("peaked", 15, 30),
    "sentences, noise": _of("random", 15, 18),
    "chains": _of("chain5", 200, 2000),
    "chains with rules": _of("ruled", 200, 400),
    "trees with rules": _of("tree", 200, 600),
    "dags with rules": _of("dag", 200, 1000),
    "grids": _of("grid3", 15, 16),
    "pictures": lambda rng: _picture(some(rng, 15, 45), some(rng, 15, 44), rng),
    "grids of two labels": _of("potts", 15, 40),
    "spin glasses": _of("spin", 15, 16),
    "orders": _of("order", 21, 24),
    "matchings": _of("matching", 50, 120),  # a variable has a label for each task: 1,300 labels and more
    "assignments": _of("assignment", 20, 60),
    "programs": lambda rng: _timetable(some(rng, 40, 80), 5, rng),
    "knapsacks": lambda rng: _items(some(rng, 200, 2000), 1, rng),
}


def large(seed: int, number: int, counts: Counter[str]) -> None:
    """Certifies a large problem, and raises what its certificate claims."""
    family = list(LARGE)[number % len(LARGE)]
    problem = LARGE[family](np.random.default_rng([seed, number]))
    counts["problems"] += 1
    proved = problem.solve().proved if isinstance(problem, Program) else Certifier()(problem).proved
    if not proved:
        counts[f"open ({family})"] += 1
        return
    begin, trial = time.perf_counter(), f"{family}: trial {number} of seed {seed}"
    try:
        found = problem.certificate() if isinstance(problem, Program) else Certifier().certificate(problem)
        checker.check(found.lines)
    except Exception as error:
        fail(counts, trial, f"{error!r} after {time.perf_counter() - begin:.1f} s")
        return
    counts["verified"] += 1
    counts[f"verified ({family})"] += 1
    if found.upper - found.lower > TOLERANCE * max(1.0, abs(found.upper)):
        fail(counts, trial, f"proved, but certified only from {found.lower} to {found.upper}")
    lines = list(found.lines)
    at = next(n for n, line in enumerate(lines) if line.startswith('["claim"'))
    claim, less = json.loads(lines[at]), found.upper - 1e-6 * max(1.0, abs(found.upper))
    more = [nudged(found.upper), *claim[2:]]
    for wrong in ([claim[1], less, *claim[3:]], *([more] if number // len(LARGE) % 4 == 0 else [])):
        try:
            checker.check([*lines[:at], json.dumps(["claim", *wrong]), *lines[at + 1 :]])
        except checker.RefusedError:
            counts["raised, and refused"] += 1
        else:
            fail(counts, trial, f"verified though it claims {wrong[:2]}")


if __name__ == "__main__":
    main()
