"""Sentences to test with: one in full, any at all, and the real corpora where `HASTEN_DATA` says where they are."""

import itertools
import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from hasten.tasks.entity_relation.data.corpus import Sentence

MARLOW = Sentence(
    id="a",
    tokens=("Ada", "Marlow", "left", "Tarn", "."),
    spans=((0, 2), (3, 4)),
    pos=("NNP", "NNP", "VBD", "NNP", "."),
    types=("person", "location"),
    relations=((0, 1, "LiveIn"),),
)

NASTY = 'ab/é☃"\\\n\r\t \u2028\x00\x85\U0001f600'  # whatever might break a line, a string or an encoding
words = st.text(NASTY, min_size=1, max_size=3)


@st.composite
def sentences(draw):
    tokens = tuple(draw(st.lists(words, max_size=8)))
    cuts = sorted(draw(st.sets(st.integers(0, len(tokens)))))
    spans = tuple(cut for cut in itertools.pairwise(cuts) if draw(st.booleans()))
    pairs = list(itertools.permutations(range(len(spans)), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), max_size=4, unique=True)) if pairs else []
    relations = tuple((source, target, draw(words)) for source, target in chosen)
    return Sentence(
        id=draw(words),
        tokens=tokens,
        spans=spans,
        pos=draw(st.none() | st.just(tuple(draw(words) for _ in tokens))),
        types=draw(st.none() | st.just(tuple(draw(words) for _ in spans))),
        relations=draw(st.sampled_from([None, relations])),
    )


def installed(name: str) -> Path:
    """Returns where a file of the real corpora is; skips the test if it is nowhere."""
    path = Path(os.environ.get("HASTEN_DATA", "")) / name
    if "HASTEN_DATA" not in os.environ or not path.exists():
        pytest.skip(f"{name} is not installed: set HASTEN_DATA to the directory of the corpora")
    return path
