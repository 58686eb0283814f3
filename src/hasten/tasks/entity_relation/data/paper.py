"""How the paper's corpus is told from others: its protocol, and its figures, belong to that one alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from hasten.tasks.entity_relation.data.corpus import Sentence

PAPER_SENTENCES = 1441
PAPER_RELATIONS = {"LiveIn": 521, "OrgBasedIn": 452, "LocatedAt": 406, "WorkFor": 401, "Kill": 268}
PAPER_TYPES = {"location": 1968, "person": 1691, "organization": 984, "none": 706}


def is_papers_corpus(sentences: Iterable[Sentence]) -> bool:
    """Whether labelled sentences are those of the paper: as many, with as many of each relation and of each type."""
    sentences = list(sentences)
    relations = Counter(name for sentence in sentences for _, _, name in sentence.relations or ())
    types = Counter(name for sentence in sentences for name in sentence.types or ())
    return len(sentences) == PAPER_SENTENCES and relations == PAPER_RELATIONS and types == PAPER_TYPES
