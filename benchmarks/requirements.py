"""The nearest labellings that keep requirements: clauses beside RC2 (MaxSAT), parities beside HiGHS.

    python benchmarks/requirements.py [--out results/requirements.json] [--boxes 10000] [--peer 100]

Clauses: 41 labels of road events (10 agents, 19 actions, 12 places) and 243 clauses of the kinds that such annotations
come with: agents exclude each other, an action or a place needs one of some agents, actions and places exclude each
other. Parities: surface codes of distance d. The errors of least weight that explain a syndrome, drawn with a rate of
8% and costs near the logarithm of its odds; the syndrome is given per problem. HiGHS has the same program, with an
integer for half of each sum, keeps its model, and is given new costs and limits. Times are of the wall clock, one call
for all of ours, median of three; the peer answers `--peer` of the problems one by one. Objectives are compared.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import hasten
from hasten.support.files import write_whole


def road_events(rng: np.random.Generator) -> tuple[list[str], list[list[str]]]:
    """Returns labels, and clauses of signed labels."""
    agents, actions, places = (
        [f"{what}{n}" for n in range(k)] for what, k in (("agent", 10), ("action", 19), ("place", 12))
    )
    clauses = [agents, places[:10]]
    clauses += [[f"-{agents[i]}", f"-{agents[j]}"] for i in range(10) for j in range(i)]
    for label in actions + places:
        able = rng.choice(10, int(rng.integers(3, 9)), replace=False)
        clauses.append([f"-{label}", *(agents[n] for n in sorted(able.tolist()))])
    known, others = {frozenset(clause) for clause in clauses}, actions + places
    while len(clauses) < 243:
        left, right, *more = rng.choice(len(others), 5, replace=False).tolist()
        clause = [f"-{others[left]}", f"-{others[right]}"]
        if rng.random() < 0.15:
            clause = [f"-{others[left]}", *(others[n] for n in more)]
        if frozenset(clause) not in known:
            known.add(frozenset(clause))
            clauses.append(clause)
    return agents + actions + places, clauses


def surface_code(d: int) -> list[list[int]]:
    """Returns the qubits of each check of one kind of a rotated surface code with d * d qubits."""
    checks = []
    for row in range(-1, d):
        for column in range(-1, d):
            cells = [(row + i, column + j) for i in (0, 1) for j in (0, 1)]
            qubits = [r * d + c for r, c in cells if 0 <= r < d and 0 <= c < d]
            if (row + column) % 2 and (len(qubits) == 4 or (len(qubits) == 2 and row in (-1, d - 1))):
                checks.append(qubits)
    return checks


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def clauses_beside_rc2(n_boxes: int, n_peer: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    labels, clauses = road_events(rng)
    scores = rng.normal(-1.5, 1.5, (n_boxes, len(labels))).round(4)

    def first() -> hasten.Requirements:
        rules = hasten.Requirements(labels)
        for clause in clauses:
            rules.clause(clause)
        rules.nearest(scores[:64])
        return rules

    first()  # compiles kernels
    setup, rules = timed(first)
    runs = [timed(lambda: rules.nearest(scores)) for _ in range(3)]
    found, ours = runs[0][1], median(seconds for seconds, _ in runs) / n_boxes
    line = {"family": f"{len(labels)} labels, {len(clauses)} clauses", "setup": setup, "us": 1e6 * ours}
    line |= {"proved": float(found.proved.mean()), "nodes": rules.diagram.n_nodes if rules.diagram else 0}
    try:
        from pysat.examples.rc2 import RC2
        from pysat.formula import WCNF
    except ImportError:
        print("python-sat is not installed")
        return line
    at = {label: n for n, label in enumerate(labels, start=1)}
    hard = [[-at[each[1:]] if each[0] == "-" else at[each] for each in clause] for clause in clauses]

    def ask(row: np.ndarray) -> float:
        formula = WCNF()
        formula.extend(hard)
        for n, score in enumerate(row.tolist(), start=1):
            if score:
                formula.append([n if score > 0 else -n], weight=round(abs(score) * 10_000))
        with RC2(formula) as solver:
            model = solver.compute()
        return float(sum(row[n] for n in range(len(labels)) if model[n] > 0))

    theirs, values = timed(lambda: [ask(row) for row in scores[:n_peer]])
    assert np.allclose(values, found.score[:n_peer])
    return line | {"peer": "RC2", "peer_us": 1e6 * theirs / n_peer, "ratio": theirs / n_peer / ours}


def parities_beside_highs(d: int, n_problems: int, n_peer: int) -> dict[str, Any]:
    import highspy

    rng, checks, n = np.random.default_rng(d), surface_code(d), d * d
    names = [f"q{j}" for j in range(n)] + [f"s{k}" for k in range(len(checks))]
    errors = rng.random((n_problems, n)) < 0.08
    syndromes = np.array([errors[:, check].sum(axis=1) % 2 for check in checks]).T
    weights = np.log(0.92 / 0.08) * rng.uniform(0.8, 1.2, (n_problems, n))
    scores = np.concatenate([-weights, np.zeros(syndromes.shape)], axis=1)
    measured = {f"s{k}": syndromes[:, k] for k in range(len(checks))}

    def first() -> hasten.Requirements:
        rules = hasten.Requirements(names)
        for k, check in enumerate(checks):
            rules.parity([*(f"q{j}" for j in check), f"s{k}"])
        rules.nearest(scores[:64], given={name: values[:64] for name, values in measured.items()})
        return rules

    setup, rules = timed(first)
    runs = [timed(lambda: rules.nearest(scores, given=measured)) for _ in range(3)]
    found, ours = runs[0][1], median(seconds for seconds, _ in runs) / n_problems
    highs = highspy.Highs()
    for option, value in {"output_flag": False, "threads": 1, "mip_rel_gap": 0.0}.items():
        highs.setOptionValue(option, value)
    for j in range(n + len(checks)):
        highs.addCol(0.0, 0.0, 1.0 if j < n else 2.0, 0, [], [])
        highs.changeColIntegrality(j, highspy.HighsVarType.kInteger)
    for k, check in enumerate(checks):
        highs.addRow(0.0, 0.0, len(check) + 1, [*check, n + k], [1.0] * len(check) + [-2.0])

    def ask(p: int) -> float:
        highs.changeColsCost(n, np.arange(n, dtype=np.int32), weights[p])
        for k in range(len(checks)):
            highs.changeRowBounds(k, float(syndromes[p, k]), float(syndromes[p, k]))
        highs.run()
        return float(highs.getInfo().objective_function_value)

    theirs, values = timed(lambda: [ask(p) for p in range(n_peer)])
    assert np.allclose(values, -found.score[:n_peer])
    line = {"family": f"surface code, d={d}", "setup": setup, "us": 1e6 * ours, "proved": float(found.proved.mean())}
    line["nodes"] = rules.diagram.n_nodes if rules.diagram else 0
    return line | {"peer": "HiGHS", "peer_us": 1e6 * theirs / n_peer, "ratio": theirs / n_peer / ours}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--boxes", type=int, default=10_000, help="problems of each family")
    parser.add_argument("--peer", type=int, default=100, help="problems that the peer answers")
    args = parser.parse_args()
    lines = []
    heads = ("nodes", 7), ("setup s", 8), ("us each", 9), ("proved", 7), ("peer", 6), ("us each", 9), ("ratio", 8)
    print(f"{'family':26s} " + " ".join(f"{head:>{width}s}" for head, width in heads))
    for work in (
        lambda: clauses_beside_rc2(args.boxes, args.peer),
        *(lambda d=d: parities_beside_highs(d, args.boxes, args.peer) for d in (3, 5, 7)),
    ):
        line = work()
        lines.append(line)
        ours = f"{line['family']:26s} {line['nodes']:7,} {line['setup']:8.3f} {line['us']:9.2f} {line['proved']:7.0%}"
        peer = f" {line['peer']:>6s} {line['peer_us']:9.1f} {line['ratio']:7.0f}x" if "peer" in line else ""
        print(ours + peer, flush=True)
    if args.out:
        write_whole(args.out, (json.dumps(lines, indent=1) + "\n").encode())


if __name__ == "__main__":
    main()
