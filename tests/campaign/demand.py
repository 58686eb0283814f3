"""Answers to described problems of which one kind of factor, `demanded`, is not stated but a family on demand."""

from __future__ import annotations

from typing import Any

import numpy as np
from problems import Described, build_all, shape_of

from hasten.model.solution import Solution
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.speedup.on_demand import Family, OnDemand


def answer_on_demand(descriptions: list[Described], certifier: Certifier, mends: bool) -> dict[int, Solution]:
    """Answers the problems that demand a kind, those of one shape together; returns the answers by problem."""
    demanding = [p for p, described in enumerate(descriptions) if described.get("demanded") is not None]
    problems = build_all([_without_members(descriptions[p]) for p in demanding])
    shapes: dict[int, list[int]] = {}
    for at, problem in enumerate(problems):
        shapes.setdefault(id(problem.structure), []).append(at)
    answers: dict[int, Solution] = {}
    for group in shapes.values():
        described = descriptions[demanding[group[0]]]
        shape = problems[group[0]].structure
        demand = OnDemand(shape, family_of(shape, described, mends), certifier)
        some = demand([problems[at] for at in group])
        answers |= {demanding[at]: answer for at, answer in zip(group, some, strict=True)}
    return answers


def n_stated(described: Described) -> int:
    """Returns how many members answering one problem states."""
    (problem,) = build_all([_without_members(described)])
    demand = OnDemand(problem.structure, family_of(problem.structure, described, mends=True))
    demand(problem)
    return demand.n_members


def family_of(shape: Structure, described: Described, mends: bool) -> Family:
    """Returns the members of the kind that a description demands, as a family."""
    f = described["demanded"]
    members = np.array([scope for kind, scope in described["scopes"] if kind == f], dtype=np.int64)
    table = np.array(described["factors"][f]["table"]).reshape(shape_of(described, f))

    def broken(labels: Any) -> Any:
        if not members.size:
            return members
        return members[table[tuple(labels[members].T)] > 0.0]

    def mend(labels: Any) -> Any:
        """Changes the label of a variable for as long as that leaves fewer members broken."""
        labels, left = labels.copy(), len(broken(labels))
        for v, k in enumerate(described["variables"]):
            for i in range(described["kinds"][k]):
                other = labels.copy()
                other[v] = i
                if len(broken(other)) < left:
                    labels, left = other, len(broken(other))
        return labels

    return Family(shape.schema.factors[f"factor{f}"], broken, mend if mends else None)


def _without_members(described: Described) -> Described:
    stated = [each for each in described["scopes"] if each[0] != described["demanded"]]
    return described | {"scopes": stated}
