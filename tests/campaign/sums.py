"""Compares log-partitions, marginals and min-marginals with enumeration in exact arithmetic, on random small problems.

    python tests/campaign/sums.py --count 10000 --seed 0 [--family chains]

Problems are those of `proofs.py`, of all families. What a labelling costs is exact, and so is how much more it costs
than the best; only its exponential is a float. A structure that is too wide, or a rule that tells too much apart, is
counted as refused. Where rounding of the costs alone can put a probability off by more than 1%, the marginals must only
be probabilities.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
from problems import build_all
from proofs import FAMILIES, draw_trial
from truth import Truth

from hasten.errors import ProblemError, TooWide
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.sums import marginals, min_marginals

EPS = 2.0**-52


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=1000, help="problems in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--family", choices=FAMILIES, action="append")
    options = parser.parse_args()
    families, counts, number = options.family or list(FAMILIES), Counter[str](), 0
    print(f"seed {options.seed}, {options.count} problems of {len(families)} families", flush=True)
    while counts["problems"] < options.count:
        family = families[number % len(families)]
        trial = draw_trial(family, options.seed, number)["problems"]
        number += 1
        truths = Truth.of_all(trial)
        for problems, mine in alike(build_all(trial), truths):
            counts["problems"] += len(problems)
            check(problems, mine, counts, f"{family} {number - 1}")
    print(", ".join(f"{n} {what}" for what, n in sorted(counts.items())))
    sys.exit(1 if counts["wrong"] else 0)


def alike(problems: list[Problem], truths: list[Truth]) -> list[tuple[list[Problem], list[Truth]]]:
    """Returns problems of one structure together."""
    groups: dict[int, tuple[list[Problem], list[Truth]]] = {}
    for problem, truth in zip(problems, truths, strict=True):
        group = groups.setdefault(id(problem.structure.compiled), ([], []))
        group[0].append(problem)
        group[1].append(truth)
    return list(groups.values())


def check(problems: list[Problem], truths: list[Truth], counts: Counter[str], name: str) -> None:
    """Compares what is found of problems of one structure with the truth, together and one by one."""
    batch = Batch.of(problems)
    try:
        found, least = marginals(batch, factors=True), min_marginals(batch)
    except TooWide as error:
        counts["refused: " + " ".join(str(error).split()[:2])] += len(problems)
        return
    except ProblemError as error:
        counts["too large" if "1e301" in str(error) else "wrong"] += len(problems)
        return
    alone = marginals(problems[0], factors=True)
    if alone.log_partition[0] != found.log_partition[0] or not np.array_equal(
        alone.label, found.label[: len(alone.label)]
    ):
        counts["wrong"] += 1
        print(f"{name}: alone it is not what it is in a batch", flush=True)
    at = 0
    for p, truth in enumerate(truths):
        n = sum(truth.shape.sizes)
        excess = least.excess[at : at + n]
        at += n
        said = complaint(problems[p], truth, found, p, float(least.cost[p]), excess)
        if said is None:
            counts["right"] += 1
        elif said == "":
            counts["only probabilities"] += 1
        else:
            counts["wrong"] += 1
            print(f"{name}, problem {p}: {said}", flush=True)


def complaint(problem: Problem, truth: Truth, found: object, p: int, cost: float, excess: np.ndarray) -> str | None:
    """Returns what is wrong; an empty string if costs are too large to tell."""
    shares = found.of(p)
    if truth.optimum is None:
        fine = found.log_partition[p] == -math.inf and not any(each.any() for each in shares) and cost == math.inf
        return None if fine and np.isposinf(excess).all() else "it has no valid labelling"
    if not all(abs(each.sum() - 1.0) < 1e-9 and (each >= 0.0).all() for each in shares):
        return f"these are no probabilities: {shares}"
    sizes = truth.shape.sizes
    labels = np.array(np.unravel_index(truth.valid, sizes)).T if sizes else np.zeros((1, 0), dtype=int)
    gaps = [float(truth._number(truth.totals[:, x]) - truth.optimum) for x in range(truth.valid.size)]
    weights = np.array([math.exp(-gap) for gap in gaps])
    total, n_terms = math.fsum(weights), len(truth.costs) + 4
    slip = 8 * n_terms * EPS * truth.size
    error = found.log_partition[p] - math.log(total)
    if not abs(Fraction(float(error)) + truth.optimum) <= Fraction(1e-9 + 4 * slip):
        return f"log Z is {found.log_partition[p]!r}, not {math.log(total) - float(truth.optimum)!r}"
    at = 0
    for v, n in enumerate(sizes):
        least = [
            min((g for g, i in zip(gaps, labels[:, v], strict=True) if i == x), default=math.inf) for x in range(n)
        ]
        near = [
            a == b or abs(a - b) <= 1e-9 * abs(b) + slip
            for a, b in zip(excess[at : at + n].tolist(), least, strict=True)
        ]
        if not all(near):
            return f"variable {v} has the excess {excess[at : at + n]}, not {least}"
        at += n
    if slip > 0.01:
        return ""
    tolerance = 1e-9 + 10 * slip
    for v, n in enumerate(sizes):
        wanted = np.array([math.fsum(weights[labels[:, v] == i]) for i in range(n)]) / total
        if np.abs(wanted - shares[v]).max() > tolerance:
            return f"variable {v} has the marginals {shares[v]}, not {wanted}"
    entropy = math.log(total) + math.fsum(w * g for w, g in zip(weights, gaps, strict=True)) / total
    if abs(found.entropy[p] - entropy) > tolerance * (1 + sum(map(math.log, sizes))):
        return f"the entropy is {found.entropy[p]}, not {entropy}"
    for f, factor in enumerate(problem.structure.factors):
        if problem.graph.table_at[f] >= 0:
            wanted = np.zeros(factor.kind.shape)
            np.add.at(wanted, tuple(labels[:, v] for v in factor.scope), weights / total)
            if np.abs(wanted - found.factor(p, f)).max() > tolerance:
                return f"factor {f} has the marginals {found.factor(p, f)}, not {wanted}"
    return None


if __name__ == "__main__":
    main()
