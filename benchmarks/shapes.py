"""Measures what a shape that was never seen before costs: to build, to compile, and to certify for the first time.

Each family draws shapes that differ from one another, so that no cache knows them. The steps are to *build* a
structure, to *compile* it with its first problem, and to *plan* its proof: what its first certified answer takes longer
than its second, which is *answer*. The first three together are *ready*. Times are by the clock; of
several rounds the fastest counts, and within a round the median over the shapes. `--against` runs the same file with
another checkout's `src`, round by round in turn, so this file uses only what `import hasten` offers.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np

import hasten

STEPS = ("build", "compile", "plan", "ready", "answer")
ROLES = ["none", "A0", "A1", "A2", "AM", "R-A0", "R-A1", "C-A1"]
ENTITIES = ["person", "location", "organization", "none"]
RELATIONS = {
    "Kill": ("person", "person"),
    "LiveIn": ("person", "location"),
    "WorkFor": ("person", "organization"),
    "LocatedAt": ("location", "location"),
    "OrgBasedIn": ("organization", "location"),
}
Shape = tuple[hasten.Structure, tuple[hasten.Rule, ...]]  # a structure, and the rules of its problem alone


@dataclass(frozen=True)
class Family:
    """Shapes of one kind: `draw` throws the dice, which does not count; `build` makes a shape of them."""

    about: str
    draw: Callable[[np.random.Generator], Any]
    build: Callable[[Any], Shape]
    n: int = 20  # shapes a round


def roles(n: int = 25, n_pairs: int = 12) -> Family:
    """Semantic roles: candidates, pairs that overlap or attract each other, at most one of each, referents."""
    schema = hasten.Schema()
    role = schema.variable("role", ROLES)
    overlap = schema.factor("overlap", one=role, other=role).allow(one="none").allow(other="none")
    table = np.random.default_rng(0).normal(size=(len(ROLES), len(ROLES)))
    near = schema.factor("near", one=role, other=role).set_table(table)

    def draw(rng: np.random.Generator) -> Any:
        pairs = [tuple(map(int, rng.choice(n, 2, replace=False))) for _ in range(2 * n_pairs)]
        return pairs, rng.choice(n, 10, replace=False).tolist()

    def build(drawn: Any) -> Shape:
        pairs, continued = drawn
        shape = schema.structure()
        for _ in range(n):
            shape.add(role)
        for one, other in pairs[:n_pairs]:
            shape.connect(overlap, one=one, other=other)
        for one, other in pairs[n_pairs:]:
            shape.connect(near, one=one, other=other)
        for name in ROLES[1:6]:
            shape.rule(f"at most one {name}", [(v, name) for v in range(n)], at_most=1)
        for v in range(n):
            terms = [(u, "A0") for u in range(n)] + [(v, "R-A0", -1.0)]
            shape.rule(f"R-A0 at {v} needs A0", terms, at_least=0)
        for v in continued:
            terms = [(u, "A1") for u in range(v)] + [(v, "C-A1", -1.0)]
            shape.rule(f"C-A1 at {v} needs A1", terms, at_least=0)
        return shape, ()

    return Family(f"{n} arguments, {2 * n_pairs} pairs, 40 rules", draw, build)


def sentences() -> hasten.Schema:
    """Returns the schema of entities and relations, and of what relations join."""
    schema = hasten.Schema()
    entity = schema.variable("entity", ENTITIES)
    relation = schema.variable("relation", [*RELATIONS, "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity).allow(relation="NoRel")
    for name, (source, target) in RELATIONS.items():
        args.allow(relation=name, source=source, target=target)
    return schema


def entity_relation(n: int) -> Family:
    """The paper's task: entities, and a relation for each ordered pair of them."""
    schema = sentences()
    (entity, relation), args = schema.variables.values(), schema.factors["args"]
    both = schema.factor("both", forward=relation, backward=relation)
    both.allow(forward="NoRel").allow(backward="NoRel")

    def draw(rng: np.random.Generator) -> Any:
        pairs = list(permutations(range(n), 2))
        return [pairs[i] for i in rng.permutation(len(pairs))]

    def build(drawn: Any) -> Shape:
        shape = schema.structure()
        for _ in range(n):
            shape.add(entity)
        between = {pair: shape.add(relation) for pair in drawn}
        for (source, target), label in between.items():
            shape.connect(args, source=source, relation=label, target=target)
            if source < target:
                shape.connect(both, forward=label, backward=between[target, source])
        return shape, ()

    return Family(f"{n} entities, {n * (n - 1)} relations", draw, build, n=10)


def chain(n: int = 40, n_labels: int = 17) -> Family:
    """A sequence, whose neighbours share one of two tables."""
    schema = hasten.Schema()
    tag = schema.variable("tag", [f"tag{i}" for i in range(n_labels)])
    rng = np.random.default_rng(0)
    steps = [
        schema.factor(f"step{i}", before=tag, after=tag).set_table(rng.normal(size=(n_labels, n_labels)))
        for i in range(2)
    ]

    def draw(rng: np.random.Generator) -> Any:
        return rng.integers(0, 2, n - 1).tolist()

    def build(drawn: Any) -> Shape:
        shape = schema.structure()
        shape.add(tag)
        for v, which in enumerate(drawn):
            shape.connect(steps[which], before=v, after=shape.add(tag))
        return shape, ()

    return Family(f"a chain of {n}, {n_labels} labels", draw, build)


def tree(n: int = 499) -> Family:
    """A tree of binary variables, each below a random earlier one."""
    schema = hasten.Schema()
    node = schema.variable("node", ["off", "on"])
    edge = schema.factor("edge", above=node, below=node).set_table(np.array([[0.0, 1.5], [1.0, -0.5]]))

    def draw(rng: np.random.Generator) -> Any:
        return [int(rng.integers(0, v)) for v in range(1, n)]

    def build(drawn: Any) -> Shape:
        shape = schema.structure()
        shape.add(node)
        for above in drawn:
            shape.connect(edge, above=above, below=shape.add(node))
        return shape, ()

    return Family(f"a tree of {n}, binary", draw, build, n=5)


def own_rules(n: int = 30) -> Family:
    """One structure, whose problems each bring rules of their own."""
    schema = hasten.Schema()
    item = schema.variable("item", ["small", "medium", "large", "none"])
    pair = schema.factor("pair", one=item, other=item).forbid(one="large", other="large").cost(0.3, one="none")
    shape = schema.structure()
    for v in range(n):
        shape.add(item)
        if v:
            shape.connect(pair, one=v - 1, other=v)

    def draw(rng: np.random.Generator) -> Any:
        return [rng.choice(n, n // 2, replace=False).tolist() for _ in range(4)]

    def build(drawn: Any) -> Shape:
        rules = [
            hasten.Rule.of(f"few of {some[0]}", [(v, label) for v in some for label in ("small", "large")], at_most=5)
            for some in drawn
        ]
        return shape, tuple(rules)

    return Family(f"{n} variables, 4 rules a problem", draw, build)


def many_rules(n_rules: int, n: int = 1000) -> Family:
    """Very many small rules."""
    schema = hasten.Schema()
    item = schema.variable("item", ["out", "in", "maybe"])

    def draw(rng: np.random.Generator) -> Any:
        return rng.integers(0, n, (n_rules, 3)).tolist()

    def build(drawn: Any) -> Shape:
        shape = schema.structure()
        for _ in range(n):
            shape.add(item)
        for one, two, three in drawn:
            shape.rule("few", [(one, "in"), (two, "in"), (three, "maybe")], at_most=2)
        return shape, ()

    return Family(f"{n_rules:,} rules over {n:,} variables", draw, build, n=1)


FAMILIES: dict[str, Callable[[], Family]] = {
    "roles": roles,
    "relations 8": lambda: entity_relation(8),
    "relations 12": lambda: entity_relation(12),
    "chain": chain,
    "tree": tree,
    "own rules": own_rules,
    "1,000 rules": lambda: many_rules(1000),
    "10,000 rules": lambda: many_rules(10_000),
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--against", type=Path, help="another checkout, to measure in turn with this one")
    options.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES), metavar="FAMILY")
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--memory", type=int, metavar="N", help="instead: the memory that N shapes leave behind")
    options.add_argument("--one-round", action="store_true", help=argparse.SUPPRESS)
    given = options.parse_args()
    if given.one_round:
        rounds = (
            {name: memory(FAMILIES[name](), given.memory) for name in given.families}
            if given.memory
            else {name: measure(FAMILIES[name]()) for name in given.families}
        )
        print(json.dumps(rounds))
        return
    if given.against and not (given.against / "src" / "hasten").is_dir():
        options.error(f"{given.against} is not a checkout: it has no src/hasten.")
    here = Path(__file__).resolve().parent.parent
    checkouts = {"this": here} | ({"other": given.against.resolve()} if given.against else {})
    found: dict[str, list[dict[str, dict[str, float]]]] = {which: [] for which in checkouts}
    for _ in range(1 if given.memory else given.rounds):
        for which, checkout in checkouts.items():
            found[which].append(run(checkout, given.families, given.memory))
    if given.memory:
        print_memory(found)
    else:
        print_times(found)


def run(checkout: Path, families: list[str], n_shapes: int | None) -> dict[str, dict[str, float]]:
    """Measures one round with a checkout, in a process of its own."""
    command = [sys.executable, __file__, "--one-round", "--families", *families]
    command += ["--memory", str(n_shapes)] if n_shapes else []
    environment = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    measured: dict[str, dict[str, float]] = json.loads(done.stdout)
    return measured


def measure(family: Family) -> dict[str, float]:
    """Returns the median seconds of each step, over some shapes."""
    rng = np.random.default_rng(0)
    certify = hasten.Certifier(max_nodes=0, max_sweeps=1)
    certify(first_problem(family, rng))  # compiles the kernels
    seconds: dict[str, list[float]] = {step: [] for step in STEPS}
    for _ in range(family.n):
        drawn = family.draw(rng)
        started = time.perf_counter()
        shape, rules = family.build(drawn)
        built = time.perf_counter()
        costs = rng.normal(size=shape.n_labels)
        ready = time.perf_counter()
        problem = shape.problem(costs, rules=rules)
        compiled = time.perf_counter()
        certify(problem)
        answered = time.perf_counter()
        certify(problem)
        again = time.perf_counter()
        answer = again - answered
        parts = [built - started, compiled - ready, max(0.0, answered - compiled - answer)]
        for step, spent in zip(STEPS, [*parts, sum(parts), answer], strict=True):
            seconds[step].append(spent)
    return {step: float(np.median(spent)) for step, spent in seconds.items()}


def first_problem(family: Family, rng: np.random.Generator) -> hasten.Problem:
    """Returns a problem of a new shape."""
    shape, rules = family.build(family.draw(rng))
    return shape.problem(rng.normal(size=shape.n_labels), rules=rules)


def memory(family: Family, n_shapes: int) -> dict[str, float]:
    """Returns the megabytes in use after a tenth, a half and all of some shapes, each certified and dropped."""
    rng = np.random.default_rng(0)
    certify = hasten.Certifier(max_nodes=0, max_sweeps=1)
    after = {}
    marks = {max(1, n_shapes // 10): "a tenth", max(1, n_shapes // 2): "half", n_shapes: "all"}
    started = time.perf_counter()
    for shape in range(1, n_shapes + 1):
        certify(first_problem(family, rng))
        if shape in marks:
            after[marks[shape]] = resident()
    return after | {"seconds": time.perf_counter() - started}


def resident() -> float:
    """Returns the megabytes that this process occupies now, or at most where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def print_times(found: dict[str, list[dict[str, dict[str, float]]]]) -> None:
    """Prints milliseconds a shape and, given another checkout, how many times as long that one takes."""
    print("milliseconds a shape" + (" (and how many times as long the other takes)" if "other" in found else ""))
    print(f"{'':52}" + "".join(f"{step:>18}" for step in STEPS))
    for family in found["this"][0]:
        cells = []
        for step in STEPS:
            own, *others = (min(one[family][step] for one in rounds) for rounds in found.values())
            ratio = f" ({others[0] / own:.1f}x)" if others and own else ""
            cells.append(f"{1e3 * own:.3f}{ratio}")
        print(f"{f'{family}: {FAMILIES[family]().about}':52}" + "".join(f"{cell:>18}" for cell in cells))


def print_memory(found: dict[str, list[dict[str, dict[str, float]]]]) -> None:
    """Prints the megabytes after some shapes."""
    for which, rounds in found.items():
        for family, after in rounds[0].items():
            said = ", ".join(f"{what}: {value:.0f}" for what, value in after.items())
            print(f"{which}, {family}: MB after {said}")


if __name__ == "__main__":
    main()
