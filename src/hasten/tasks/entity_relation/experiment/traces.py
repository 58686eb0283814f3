"""Example sentences step by step: what the searches and the proof did with them, for the report to draw."""

from __future__ import annotations

from typing import Any

from hasten.model.problem import Problem
from hasten.model.solution import Solution
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.tasks.entity_relation.data.corpus import Sentence
from hasten.tasks.entity_relation.explain import variable_names

N_TRACED = 2  # examples that are told step by step


def traces_of(sentence: Sentence, problem: Problem, speedup: BeamSearch, reference: Solution) -> dict[str, Any]:
    """Returns the traces of greedy search, of the speedup and of the proof, as plain data."""
    names = variable_names([" ".join(sentence.tokens[first:last]) for first, last in sentence.spans])
    known = reference if reference.values is not None else None
    return {
        "searches": [search.trace(problem, known, names=names).to_dict() for search in (greedy(), speedup)],
        "proof": Certifier().trace(problem, names=names).to_dict(),
    }
