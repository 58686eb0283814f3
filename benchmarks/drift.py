"""How many wrong answers are given before a drift is noticed, and how often there is a false alarm.

Two measurements. *Simulated*: answers are wrong at a rate that jumps; they are audited as `Speedup` does it.
*Stream*: a black box with hidden rules about four events on a line of time answers 3,000 problems, and its rules change
after 1,500; `Speedup(answer="learned", learn=True)` learned the first rules from its answers.

    python benchmarks/drift.py [--runs 200] [--streams 10]
"""

from __future__ import annotations

import argparse
from itertools import combinations

import numpy as np

import hasten
from hasten.speedup.audit import Audit

SHARE, BEFORE = 0.02, 0.005  # audited; wrong before the drift
LABELS = ["before", "after", "equal"]


def simulate(level: float, rate: float, rng: np.random.Generator, n: int) -> tuple[int, bool]:
    """Returns how many wrong answers are given before trust ends, and whether it ended within `n` answers."""
    audit, wrong = Audit(level), 0
    for _ in range(n):
        right = rng.random() >= rate
        if audit.alert or rng.random() < SHARE:
            if audit.observe(np.array([right]), np.zeros(1, dtype=np.int64)) is not None:
                return wrong, True
        else:
            wrong += not right
    return wrong, False


def schema_of(reverse: bool | None) -> hasten.Schema:
    """Events in an order; `reverse` has them in a circle; None knows no rule."""

    def fits(ij: str, jk: str, ik: str) -> bool:
        if "equal" in (ij, jk):
            return ik == (jk if ij == "equal" else ij)
        return ij != jk or (ik == ij) != reverse

    schema = hasten.Schema()
    relation = schema.variable("relation", LABELS)
    triple = schema.factor("triple", ij=relation, jk=relation, ik=relation)
    if reverse is not None:
        triple.allow(fits)
    return schema


def shape_of(schema: hasten.Schema, n_events: int = 4) -> hasten.Structure:
    """Four events: a relation for each pair, a factor for each three."""
    shape = schema.structure()
    pair = {each: shape.add(schema.variables["relation"]) for each in combinations(range(n_events), 2)}
    for i, j, k in combinations(range(n_events), 3):
        shape.connect(schema.factors["triple"], ij=pair[i, j], jk=pair[j, k], ik=pair[i, k])
    return shape


def stream(seed: int, size: int = 10) -> tuple[int, int | None, range | None]:
    """Returns how many wrong answers were given after the change, when it was noticed, and the stretch named then."""
    shape, boxes = shape_of(schema_of(None)), [shape_of(schema_of(reverse)) for reverse in (False, True)]
    costs = np.random.default_rng(seed).normal(size=(3500, shape.n_labels))
    now = 0

    def black_box(problem: hasten.Problem) -> np.ndarray:
        return hasten.Certifier()(boxes[now].problem(problem.cost)).labels

    trust = hasten.Trust(prove=False)
    fast = hasten.Speedup(shape.schema, solver=black_box, answer="learned", trust=trust, learn=True, seed=seed)
    fast.fit(shape.batch(costs[3000:]))
    wrong, noticed, suspect = 0, None, None
    for at in range(0, 3000, size):
        now = int(at >= 1500)
        truth = hasten.Certifier()(boxes[now].batch(costs[at : at + size])).labels.reshape(size, -1)
        answers = fast.predict(shape.batch(costs[at : at + size])).labels.reshape(size, -1)
        wrong += int((answers != truth).any(axis=1).sum()) if now else 0
        if now and not fast.trusted and noticed is None:
            noticed, suspect = at + size - 1500, fast.suspect
    return wrong, noticed, suspect


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200, help="simulations of each drift")
    parser.add_argument("--streams", type=int, default=10, help="streams with hidden rules")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    print(f"wrong answers given until noticed, {SHARE:.0%} audited (mean of {args.runs} simulations)")
    for level in (0.98, 0.95):
        for rate in (0.6, 0.3, 0.1, 0.05):
            found = [simulate(level, rate, rng, 20_000) for _ in range(args.runs)] if rate > 1 - level else []
            if found:
                wrong, seen = np.mean([w for w, _ in found]), np.mean([s for _, s in found])
                print(f"  min_agreement {level}  errors {rate:4.0%}  wrong {wrong:6.1f}  noticed {seen:.0%}")
    for level in (0.98, 0.95):
        for rate in (BEFORE, 1 - level):
            n = 100_000
            audit, alarms = Audit(level), 0
            agreed = rng.random(n) >= rate
            while (turned := audit.observe(agreed, np.arange(len(agreed)))) is not None:
                alarms, agreed, audit = alarms + 1, agreed[turned + 1 :], Audit(level)
            print(f"  min_agreement {level}  errors {rate:4.1%}  false alarms in {n:,} audits: {alarms}")
    print("hidden rules that change after 1,500 of 3,000 problems: wrong answers, noticed after, answers named")
    streams = [stream(seed) for seed in range(args.streams)]
    for wrong, noticed, suspect in streams:
        print(f"  {wrong:5d} {noticed!s:>6} {suspect}")
    print(f"  mean {np.mean([wrong for wrong, _, _ in streams]):.1f}")


if __name__ == "__main__":
    main()
