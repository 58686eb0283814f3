"""Entity tags in IOB, of which the spans stay and the types do not.

`I-x` is inside an entity of type x, `O` outside of any. In IOB2 each entity begins with `B-x`, in IOB1 only one that
follows another of its type; both are read.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from hasten.errors import CorpusError
from hasten.tasks.entity_relation.data.corpus import Sentence


def from_tags(
    id: str,
    tokens: Sequence[str],
    pos: Sequence[str],
    tags: Sequence[str],
    keep: Container[str] | None = None,
) -> Sentence:
    """Builds an unlabeled sentence with the spans of the entities to `keep`, or of all."""
    spans: list[tuple[int, int]] = []
    before = ""
    for index, tag in enumerate(tags):
        prefix, _, entity = tag.partition("-")
        if tag != "O" and (prefix not in ("B", "I") or not entity):
            raise CorpusError(f"Expected an entity tag such as O, B-x or I-x, not {tag!r}.")
        if tag != "O" and (keep is None or entity in keep):
            if prefix == "I" and before == entity:
                spans[-1] = (spans[-1][0], index + 1)
            else:
                spans.append((index, index + 1))
        before = entity
    return Sentence(id, tuple(tokens), tuple(spans), pos=tuple(pos))
