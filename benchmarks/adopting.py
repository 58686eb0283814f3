"""Models as MPS files, with changing objectives, adopted without a word about their structure: us against Gurobi.

    python benchmarks/adopting.py [--out results/adopting.json] [--count 100] [--kind srl]

Each model is written as an MPS file by a generator here. Gurobi reads it once and is given one objective after the
other, with one thread; we read the same file with `hasten.read`. Measured are answers one by one (`program.solve`), as
a user of Gurobi gets them, and all at once (`program.solve_all`), end to end, from objectives to values of the model's
variables, in seconds of the processor, which a shared machine disturbs least; reading and recognition are not counted.
The ways take turns of a few objectives each, and every objective is compared.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hasten
from hasten.support.files import write_whole

Objectives = np.ndarray
Model = tuple[str, Callable[[np.random.Generator, int], Objectives]]  # the text of an MPS file, and its objectives
TURN = 50  # objectives before another way has its turn


class Mps:
    """Writes the rows and columns of a binary program as MPS text."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.columns: dict[str, list[tuple[str, float]]] = {}
        self.rows: list[tuple[str, str, float]] = []

    def column(self, name: str) -> str:
        self.columns[name] = []
        return name

    def row(self, sense: str, limit: float, terms: list[tuple[str, float]]) -> None:
        name = f"c{len(self.rows)}"
        self.rows.append((name, sense, limit))
        for column, weight in terms:
            self.columns[column].append((name, weight))

    def text(self) -> str:
        lines = [f"NAME {self.name}", "ROWS", " N obj", *(f" {sense} {name}" for name, sense, _ in self.rows)]
        lines += ["COLUMNS", " M1 'MARKER' 'INTORG'"]
        for column, terms in self.columns.items():
            lines.append(f" {column} obj 0")
            lines += [f" {column} {row} {weight:.17g}" for row, weight in terms]
        lines += [
            " M2 'MARKER' 'INTEND'",
            "RHS",
            *(f" rhs {name} {limit:.17g}" for name, _, limit in self.rows if limit),
        ]
        lines += ["BOUNDS", *(f" BV bnd {column}" for column in self.columns), "ENDATA"]
        return "\n".join(lines) + "\n"


def noise(model: Mps) -> Model:
    return model.text(), lambda rng, count: rng.normal(size=(count, len(model.columns)))


ENTITY = ("person", "place", "organization", "other")
RELATION = {
    "Kill": ("person", "person"),
    "LiveIn": ("person", "place"),
    "WorkFor": ("person", "organization"),
    "LocatedAt": ("place", "place"),
    "OrgBasedIn": ("organization", "place"),
}


def entity_relation(n: int) -> Model:
    """Entities and relations: a relation needs the types of its arguments."""
    model = Mps(f"entity_relation_{n}")
    for i in range(n):
        model.row("E", 1, [(model.column(f"e[{i},{label}]"), 1) for label in ENTITY])
    for i in range(n):
        for j in range(n):
            if i == j:
                continue
            names = {label: model.column(f"r[{i},{j},{label}]") for label in (*RELATION, "none")}
            model.row("E", 1, [(name, 1) for name in names.values()])
            for label, (source, target) in RELATION.items():
                model.row("L", 0, [(names[label], 1), (f"e[{i},{source}]", -1)])
                model.row("L", 0, [(names[label], 1), (f"e[{j},{target}]", -1)])
    return noise(model)


CORE, MORE = ("A0", "A1", "A2", "A3"), ("TMP", "LOC", "MNR")


def srl(n: int, harder: bool = False, seed: int = 0) -> Model:
    """Semantic roles: core roles once, references and continuations need what they refer to, spans do not overlap."""
    rng, model = np.random.default_rng(seed), Mps(f"srl_{n}")
    labels = (*CORE, *MORE, *(f"R-{role}" for role in CORE[:2]), *(f"C-{role}" for role in CORE[:2]), "none")
    for i in range(n):
        model.row("E", 1, [(model.column(f"a[{i},{label}]"), 1) for label in labels])
    for role in CORE:
        model.row("L", 1, [(f"a[{i},{role}]", 1) for i in range(n)])
    for role in CORE[:2]:
        for i in range(n):
            others = [(f"a[{j},{role}]", -1) for j in range(n) if j != i]
            model.row("L", 0, [(f"a[{i},R-{role}]", 1), *others])
            before = [(f"a[{j},{role}]", -1) for j in range(i)]
            model.row("L", 0, [(f"a[{i},C-{role}]", 1), *before])
    starts = rng.integers(0, 20, n)
    spans = list(zip(starts, starts + rng.integers(1, 6, n), strict=True))
    for i in range(n):
        for j in range(i):
            if spans[i][0] < spans[j][1] and spans[j][0] < spans[i][1]:
                model.row("G", 1, [(f"a[{i},none]", 1), (f"a[{j},none]", 1)])

    def objectives(rng: np.random.Generator, count: int) -> Objectives:
        """Costs of a sharp model: few candidates play a part, and for most the right label is cheapest, as chosen."""
        costs = rng.normal(size=(count, n, len(labels)))
        costs[:, :, -1] -= 5.0
        for each in costs:
            for i, role in zip(rng.permutation(n)[:3], rng.permutation(CORE)[:3], strict=True):
                each[i, labels.index(role)] -= 7.0
        return costs.reshape(count, -1)

    if harder:
        return noise(model)

    return model.text(), objectives


def time_slots(n: int, n_slots: int = 8, seed: int = 0) -> Model:
    """Courses in slots: courses that share students apart, and so many rooms."""
    rng, model = np.random.default_rng(seed), Mps(f"time_slots_{n}")
    for c in range(n):
        model.row("E", 1, [(model.column(f"x[{c},{s}]"), 1) for s in range(n_slots)])
    for c in range(n):
        for d in range(c):
            if rng.random() < 2.5 / n:
                for s in range(n_slots):
                    model.row("L", 1, [(f"x[{c},{s}]", 1), (f"x[{d},{s}]", 1)])
    for s in range(n_slots):
        model.row("L", -(-n // n_slots) + 2, [(f"x[{c},{s}]", 1) for c in range(n)])
    return noise(model)


def assignment(n_jobs: int, n_agents: int, seed: int = 0) -> Model:
    """Generalised assignment: each job to an agent, whose hours are limited."""
    rng, model = np.random.default_rng(seed), Mps(f"assignment_{n_jobs}x{n_agents}")
    hours = rng.integers(5, 26, (n_jobs, n_agents))
    for j in range(n_jobs):
        model.row("E", 1, [(model.column(f"x[{j},{a}]"), 1) for a in range(n_agents)])
    for a in range(n_agents):
        limit = int(0.8 * hours[:, a].sum() / n_agents)
        model.row("L", limit, [(f"x[{j},{a}]", float(hours[j, a])) for j in range(n_jobs)])
    return model.text(), lambda rng, count: rng.integers(10, 51, (count, n_jobs * n_agents)).astype(float)


MODELS: dict[str, Callable[[], Model]] = {
    "entity-relation 4": lambda: entity_relation(4),
    "entity-relation 6": lambda: entity_relation(6),
    "entity-relation 8": lambda: entity_relation(8),
    "srl 8": lambda: srl(8),
    "srl 16": lambda: srl(16),
    "srl 16, noise": lambda: srl(16, harder=True),
    "time slots 12": lambda: time_slots(12),
    "time slots 24": lambda: time_slots(24),
    "assignment 12x4": lambda: assignment(12, 4),
    "assignment 24x6": lambda: assignment(24, 6),
}


class Gurobi:
    """Gurobi with the model in a file, reused."""

    def __init__(self, path: Path) -> None:
        import gurobipy

        environment = gurobipy.Env(empty=True)
        environment.setParam("OutputFlag", 0)
        environment.start()
        environment.setParam("Threads", 1)
        environment.setParam("MIPGap", 0.0)  # our answers are exact, too
        self.model = gurobipy.read(str(path), env=environment)
        self.columns = self.model.getVars()

    def __call__(self, objectives: Objectives) -> np.ndarray:
        found = []
        for c in objectives:
            self.model.setAttr("Obj", self.columns, c.tolist())
            self.model.optimize()
            self.model.getAttr("X", self.columns)
            found.append(self.model.ObjVal)
        return np.array(found)


def _load(path: Path, objectives: Objectives) -> None:
    """Loads the kernels with a program of their own: what proofs are worth, the others do not learn from that."""
    program = hasten.read(path)
    program.solve_all(objectives, solver="gurobi")
    for objective in objectives:
        program.solve(objective=objective, solver="gurobi")


def _plan(program: hasten.Program, objectives: Objectives) -> None:
    """Plans proofs, without learning what they are worth."""
    hasten.Certifier()(program.batch(objectives))


def measure(path: Path, objectives: Objectives) -> dict[str, float]:
    """Returns the microseconds that each way takes for an objective, in turns of a few objectives each."""
    gurobi, one, many = Gurobi(path), hasten.read(path), hasten.read(path)
    ways: dict[str, Callable[[Objectives], np.ndarray]] = {
        "gurobi": gurobi,
        "one by one": lambda some: np.array([one.solve(objective=c, solver="gurobi").objective for c in some]),
        "all at once": lambda some: many.solve_all(some, solver="gurobi").objective,
    }
    _load(path, objectives[:20])  # what is loaded, built or planned is not counted
    for program in (one, many):
        _plan(program, objectives[:20])
    for run in ways.values():
        run(objectives[:2])
    taken = dict.fromkeys(ways, 0.0)
    for start in range(0, len(objectives), TURN):
        found = {}
        for way, run in ways.items():
            started = time.process_time()
            found[way] = run(objectives[start : start + TURN])
            taken[way] += time.process_time() - started
        for way in ("one by one", "all at once"):
            ours, truth = found[way], found["gurobi"]
            if not np.allclose(ours, truth, rtol=1e-6, atol=1e-6):  # Gurobi's values are whole within 1e-5
                raise SystemExit(f"{path}: our objectives are not Gurobi's.")
    return {way: 1e6 * seconds / len(objectives) for way, seconds in taken.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--kind", default="")
    asked = parser.parse_args()
    results = []
    print(f"{'model':20s} columns   rows  recognised  Gurobi, µs   one by one, µs     all at once, µs")
    for name, make in MODELS.items():
        if asked.kind not in name:
            continue
        text, draw = make()
        objectives = draw(np.random.default_rng(1), asked.count)
        with tempfile.TemporaryDirectory() as place:
            path = Path(place) / "model.mps"
            path.write_text(text)
            started = time.process_time()
            program = hasten.read(path)
            _ = program.structure.graph
            recognised = time.process_time() - started
            each = measure(path, objectives)
        n_columns, n_rows = program.statement.n_columns, program.statement.n_rows
        gurobi, one, many = each.values()
        print(
            f"{name:20s} {n_columns:7d} {n_rows:6d} {1e3 * recognised:8.1f} ms {gurobi:11.0f} "
            f"{one:9.0f} {gurobi / one:5.1f}x "
            f"{many:12.0f} {gurobi / many:5.1f}x",
            flush=True,
        )
        results.append({"model": name, "columns": n_columns, "rows": n_rows, "microseconds": each})
    if asked.out:
        asked.out.parent.mkdir(parents=True, exist_ok=True)
        write_whole(asked.out, json.dumps(results, indent=1).encode())


if __name__ == "__main__":
    main()
