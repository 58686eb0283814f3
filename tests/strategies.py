"""Random problems that can be enumerated: `small_problems` for Hypothesis, `random_problem` by the thousand.

Both throw the same dice in the same order, so they draw from one family; only the dice differ.
"""

from __future__ import annotations

from collections import Counter
from itertools import permutations
from typing import Any, Protocol

import naive
import numpy as np
from hypothesis import strategies as st

from hasten.model.kinds import FactorKind
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.structure import Structure

# The paper's schema, written out a second time on purpose: tests of the core stand without the task, and the task's own
# schema is tested against this one.
ENTITIES = ["person", "location", "organization", "none"]
ARGUMENTS = {  # the paper's five constraints: the kinds of entity that each relation joins
    "Kill": ("person", "person"),
    "LiveIn": ("person", "location"),
    "WorkFor": ("person", "organization"),
    "LocatedAt": ("location", "location"),
    "OrgBasedIn": ("organization", "location"),
}


class Dice(Protocol):
    """Where the randomness comes from."""

    def integer(self, low: int, high: int) -> int: ...

    def seed(self) -> int: ...


class DrawnDice:
    """Throws that Hypothesis chooses, and shrinks."""

    def __init__(self, draw: Any) -> None:
        self.draw = draw

    def integer(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def seed(self) -> int:
        return self.draw(st.integers(0, 2**16 - 1))


class NumpyDice:
    """Throws from a NumPy generator."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def seed(self) -> int:
        return int(self.rng.integers(2**16))


@st.composite
def small_problems(draw: Any, **family: Any) -> Problem:
    """Draws a problem of the family that `build` describes."""
    return build(DrawnDice(draw), **family)


def random_problem(rng: np.random.Generator, **family: Any) -> Problem:
    """Returns a problem of the family that `build` describes, without Hypothesis' overhead."""
    return build(NumpyDice(rng), **family)


def build(
    dice: Dice,
    max_variables: int = 5,
    max_labels: int = 4,
    max_factors: int = 5,
    rules: bool = True,
    soft: bool = True,
    hard: bool = True,
    infinite_costs: bool = True,
    ties: bool = True,
) -> Problem:
    """Builds a schema, a structure and a problem, each at random.

    `rules` includes linear rules; `soft` and `hard` include tables with costs and with forbidden tuples;
    `infinite_costs` sometimes forbids labels; `ties` sometimes makes all numbers small integers.
    """
    whole = ties and dice.integer(0, 1) == 1
    schema = _schema(dice, max_labels, rules, soft, hard, whole)
    structure = _structure(dice, schema, max_variables, max_factors, rules)
    costs = _cells(dice, structure.n_labels, whole)
    if infinite_costs and dice.integer(0, 3) == 0:
        costs[np.random.default_rng(dice.seed()).random(len(costs)) < 0.2] = np.inf
    tables = {}
    for f, factor in enumerate(structure.factors):
        if (soft or hard) and dice.integer(0, 7) == 0:
            tables[f] = _table(dice, factor.kind, soft, hard, whole)
    own_rules = []
    if rules and structure.n_variables and dice.integer(0, 7) == 0:
        own_rules.append(Rule.of("own", _terms(dice, structure), **_limits(dice, structure.n_variables)))
    return structure.problem(costs, tables=tables, rules=own_rules)


def unary(n_variables: int, n_labels: int) -> Structure:
    """Variables on their own, each with a feature per label."""
    schema = Schema()
    kind = schema.variable("kind", [f"label{i}" for i in range(n_labels)])
    alone = schema.factor("alone", variable=kind)
    shape = schema.structure()
    for _ in range(n_variables):
        shape.connect(alone, variable=shape.add(kind))
    return shape


def entity_relation(n_entities: int) -> Structure:
    """Returns the paper's structure: entities, a relation per ordered pair, the five argument constraints.

    The tables are `args` and `both`; `source` and `target` pair an entity with a relation for features alone.
    """
    schema = Schema()
    entity = schema.variable("entity", ENTITIES)
    relation = schema.variable("relation", [*ARGUMENTS, "NoRel"])
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    for name, (source, target) in ARGUMENTS.items():
        args.allow(relation=name, source=source, target=target)
    args.allow(relation="NoRel")
    both = schema.factor("both", forward=relation, backward=relation)
    both.allow(forward="NoRel").allow(backward="NoRel")
    starts = schema.factor("source", source=entity, relation=relation)
    ends = schema.factor("target", relation=relation, target=entity)
    shape = schema.structure()
    entities = [shape.add(entity) for _ in range(n_entities)]
    relations = {pair: shape.add(relation) for pair in permutations(entities, 2)}
    for (source, target), between in relations.items():
        shape.connect(args, source=source, relation=between, target=target)
        shape.connect(starts, source=source, relation=between)
        shape.connect(ends, relation=between, target=target)
        if source < target:
            shape.connect(both, forward=between, backward=relations[target, source])
    return shape


def _schema(dice: Dice, max_labels: int, rules: bool, soft: bool, hard: bool, whole: bool) -> Schema:
    schema = Schema()
    kinds = [
        schema.variable(f"kind{k}", [f"label{i}" for i in range(dice.integer(1, max_labels))])
        for k in range((1, 1, 2, 3)[dice.integer(0, 3)])
    ]
    for f in range((0, 1, 2, 2, 3, 3)[dice.integer(0, 5)]):
        arity = (1, 2, 2, 3, 3, 4)[dice.integer(0, 5)]
        roles = {f"role{a}": kinds[dice.integer(0, len(kinds) - 1)] for a in range(arity)}
        factor = schema.factor(f"factor{f}", learned=dice.integer(0, 3) > 0, **roles)
        if (soft or hard) and dice.integer(0, 3):
            factor.set_table(_table(dice, factor, soft, hard, whole))
    if rules and dice.integer(0, 3) == 0:
        kind = kinds[dice.integer(0, len(kinds) - 1)]
        weights = {label: dice.integer(-4, 4) / 2 for label in kind.labels}
        schema.rule("everywhere", **_limits(dice, 3), **{kind.name: weights})
    return schema


def _structure(dice: Dice, schema: Schema, max_variables: int, max_factors: int, rules: bool) -> Structure:
    structure = schema.structure()
    kinds = list(schema.variables.values())
    n_variables = dice.integer(1, max_variables) if dice.integer(0, 19) else 0
    for _ in range(n_variables):
        structure.add(kinds[dice.integer(0, len(kinds) - 1)])
    present = Counter(structure.kinds)
    factors = [kind for kind in schema.factors.values() if Counter(kind.roles.values()) <= present]
    for _ in range(dice.integer(0, max_factors) if factors else 0):
        kind = factors[dice.integer(0, len(factors) - 1)]
        roles: dict[str, int] = {}
        for role, wanted in kind.roles.items():
            fits = [v for v, of in enumerate(structure.kinds) if of is wanted and v not in roles.values()]
            roles[role] = fits[dice.integer(0, len(fits) - 1)]
        structure.connect(kind, **roles)
    n_rules = max(0, dice.integer(-2, 2)) if rules and structure.n_variables else 0
    for r in range(n_rules):
        structure.rule(f"rule{r}", _terms(dice, structure), **_limits(dice, structure.n_variables))
    if dice.integer(0, 2) == 0:
        structure.search_order(np.random.default_rng(dice.seed()).permutation(structure.n_variables).tolist())
    return structure


def _terms(dice: Dice, structure: Structure) -> list[tuple[int, str, float]]:
    terms = []
    for _ in range(dice.integer(1, 2 * structure.n_variables)):
        variable = dice.integer(0, structure.n_variables - 1)
        labels = structure.kinds[variable].labels
        terms.append((variable, labels[dice.integer(0, len(labels) - 1)], dice.integer(-4, 4) / 2))
    return terms


def _limits(dice: Dice, size: int) -> dict[str, float]:
    how = dice.integer(0, 5)
    if how == 0:
        return {"exactly": dice.integer(-1, 2)}
    if how <= 2:
        return {"at_least": dice.integer(-2 * size, size) / 2}
    if how <= 4:
        return {"at_most": dice.integer(-size, 2 * size) / 2}
    low = dice.integer(-2 * size, size)
    return {"at_least": low / 2, "at_most": (low + dice.integer(0, 2 * size)) / 2}


def _table(dice: Dice, kind: FactorKind, soft: bool, hard: bool, whole: bool) -> np.ndarray:
    mode = dice.integer(0, 2)  # hard, soft or mixed
    costs = _cells(dice, kind.size, whole) if soft and (mode or not hard) else np.zeros(kind.size)
    if hard and (mode != 1 or not soft):
        density = dice.integer(1, 6) / 10
        costs[np.random.default_rng(dice.seed()).random(kind.size) < density] = np.inf
    return costs.reshape(kind.shape)


def _cells(dice: Dice, size: int, whole: bool) -> np.ndarray:
    """Returns costs: small integers that Hypothesis may shrink one by one, or floats."""
    if whole and size <= 16:
        return np.array([dice.integer(-3, 3) for _ in range(size)], dtype=np.float64)
    rng = np.random.default_rng(dice.seed())
    return rng.integers(-3, 4, size).astype(np.float64) if whole else rng.normal(size=size) * 3


def rich_problems(**family: Any) -> st.SearchStrategy[Problem]:
    """Draws problems by their seed, most of them with tables: more varied than number by number."""

    def rich(seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        for _ in range(4):
            problem = random_problem(rng, **family)
            if len(naive.tables_of(problem)) > 1:
                break
        return problem

    return st.integers(0, 2**32 - 1).map(rich)
