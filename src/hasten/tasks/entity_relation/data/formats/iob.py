"""Entity tags, a letter and a type for each token, as spans.

`I-x` is inside an entity of type x, `O` outside of any. In IOB2 each entity begins with `B-x`, in IOB1 only one that
follows another of its type. In BIOES, or BILOU, one ends with `E-x` or `L-x`, and `S-x` or `U-x` is one by itself. All
are read.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence, Span

PREFIXES = frozenset("BIESLU")


def spans_of(tags: Sequence[str], keep: Container[str] | None = None) -> tuple[list[Span], list[str]]:
    """Returns the spans of the entities to `keep`, or of all, and their types."""
    spans: list[Span] = []
    types: list[str] = []
    before, open_ = "", False  # the type of the token before, and whether its entity may go on
    for index, tag in enumerate(tags):
        prefix, _, entity = tag.partition("-")
        if tag != "O" and (prefix not in PREFIXES or not entity):
            raise CorpusError(f"Expected an entity tag such as O, B-x or I-x, not {tag!r}.")
        if tag != "O" and (keep is None or entity in keep):
            if prefix in "IEL" and before == entity and open_:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
                types.append(entity)
        before, open_ = entity, prefix in "BI"
    return spans, types


def from_tags(
    id: str,
    tokens: Sequence[str],
    pos: Sequence[str],
    tags: Sequence[str],
    keep: Container[str] | None = None,
) -> Sentence:
    """Builds an unlabeled sentence with the spans of the entities to `keep`, or of all."""
    return Sentence(id, tuple(tokens), tuple(spans_of(tags, keep)[0]), pos=tuple(pos))
