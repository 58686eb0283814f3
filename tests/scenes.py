"""Structures to test layers on: a tagger with forbidden steps, entities and relations; and the truth by enumeration."""

from __future__ import annotations

from itertools import pairwise, permutations, product
from typing import Any

import numpy as np

from hasten import Schema, Structure

TAGS = ["B", "I", "O"]
ENTITIES, RELATIONS = ["person", "place", "none"], ["lives", "no"]


def tagger(rule: bool = False) -> tuple[Schema, Any]:
    """Tags of words: I never begins, and follows B or I; at most two B, if there is a rule."""
    schema = Schema()
    tag = schema.variable("tag", TAGS)
    step = schema.factor("step", before=tag, after=tag).forbid(before="O", after="I")
    step.cost(0.3, lambda before, after: before == after)
    start = schema.factor("start", first=tag).forbid(first="I")
    if rule:
        schema.rule("few", at_most=2, tag="B")

    def shape(n: int) -> Structure:
        structure = schema.structure(["tag"] * n, {"step": list(pairwise(range(n)))} if n > 1 else {})
        if n:
            structure.connect(start, first=0)
        return structure

    assert step.table is not None
    return schema, shape


def entity_relation(price: float | None = None) -> tuple[Schema, Any]:
    """Entities and the relations of each ordered pair; with a price, more than one relation costs that much."""
    schema = Schema()
    entity, relation = schema.variable("entity", ENTITIES), schema.variable("relation", RELATIONS)
    args = schema.factor("args", source=entity, relation=relation, target=entity)
    args.allow(relation="lives", source="person", target="place").allow(relation="no")
    if price is not None:
        schema.rule("one", at_most=1, price=price, relation="lives")

    def shape(n: int) -> Structure:
        structure = schema.structure(["entity"] * n)
        for i, j in permutations(range(n), 2):
            structure.connect(args, source=i, relation=structure.add(relation), target=j)
        return structure

    return schema, shape


FIELDS = {"tag": "n"}, {"entity": "n", "relation": "n n -diagonal"}


def labellings(structure: Structure) -> Any:
    """Every labelling of a structure, valid or not."""
    return product(*(range(len(kind)) for kind in structure.kinds))


def scores_of(structure: Structure, scores: dict[str, Any], b: int) -> list[Any]:
    """Returns the padded scores of one example as lists for its variables, cell by cell, the slow obvious way."""
    kinds = [kind.name for kind in structure.kinds]
    if "tag" in scores:
        return [scores["tag"][b, i] for i in range(len(kinds))]
    n = kinds.count("entity")
    pairs = permutations(range(n), 2)
    return [scores["entity"][b, i] for i in range(n)] + [scores["relation"][b, i, j] for i, j in pairs]


def table_scores(structure: Structure, tables: dict[str, Any], labels: Any) -> Any:
    """Returns the sum of given table scores over the factors of a labelling."""
    return sum(
        tables[factor.kind.name][tuple(labels[v] for v in factor.scope)]
        for factor in structure.factors
        if factor.kind.name in tables
    )


def best(structure: Structure, scores: list[Any], tables: dict[str, Any] | None = None, keep: Any = None) -> Any:
    """Returns the best score of valid labellings that have the labels to `keep` (-100: any); -inf without one."""
    problem = structure.problem([np.zeros(len(kind)) for kind in structure.kinds])
    found = -np.inf
    for labels in labellings(structure):
        if keep is not None and any(k not in (-100, label) for k, label in zip(keep, labels, strict=True)):
            continue
        if problem.check(labels).valid:
            total = sum(float(s[label]) for s, label in zip(scores, labels, strict=True)) - problem.total(labels)
            found = max(found, total + float(table_scores(structure, tables or {}, labels)))
    return found
