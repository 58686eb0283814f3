"""Words as numbers: hashes of what a word looks like, its lower-case form, its shape, its endings.

Hashes depend neither on the process nor on what was read before, so a model stores no vocabulary and texts read apart
agree. Kernels read the columns: this module is one of those that `hasten.jit` looks at.
"""

import json
from collections.abc import Sequence
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np

from hasten.support.arrays import BoolArray, IntArray
from hasten.tasks.text.spelling import HashArray, Spellings

# The columns of a token. All but the last belong to the word itself; the part of speech belongs to its place.
WORD, SHAPE, PREFIX2, PREFIX3, PREFIX4, SUFFIX2, SUFFIX3, SUFFIX4, FLAGS, POS = range(10)
N_COLUMNS = POS + 1

# What FLAGS holds, a bit each.
CAPITALISED, HAS_CAPITAL, HAS_SMALL, HAS_DIGIT, HAS_DOT, HAS_HYPHEN = 1, 2, 4, 8, 16, 32

MASK = 0x7FFFFFFF  # 31 bits
MAX_SHAPES = 100_000  # remembered
NO_POS = 0  # stands for the part of speech of a token that came without one


def hash_string(string: str) -> int:
    """Hashes a string to 31 bits, the same in every process and on every machine."""
    return crc32(string.encode("utf-8", "surrogatepass")) & MASK


class _Kinds(dict[int, str]):
    """The shape of a character: X, x or d for capitals, other letters and digits; itself otherwise."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        self[code] = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c
        return self[code]


class _Shapes(dict[str, tuple[int, int]]):
    """The hash and the flags of each shape met so far, by the kinds of its characters: texts have few."""

    def __missing__(self, kinds: str) -> tuple[int, int]:
        if len(self) >= MAX_SHAPES:
            self.clear()
        shape = _collapsed(kinds)
        flags = (
            CAPITALISED * shape.startswith("X")
            | HAS_CAPITAL * ("X" in shape)
            | HAS_SMALL * ("x" in shape)
            | HAS_DIGIT * ("d" in shape)
            | HAS_DOT * ("." in shape)
            | HAS_HYPHEN * ("-" in shape)
        )
        self[kinds] = hash_string(shape), flags
        return self[kinds]


_KINDS = _Kinds()
_SHAPES = _Shapes()


def shape_of(word: str) -> str:
    """Returns a word's shape, runs of one kind written once: "McDonald-1987" is "XxXx-d"."""
    return _collapsed(word.translate(_KINDS))


def _collapsed(shape: str) -> str:
    for kind in "Xxd":
        while kind + kind in shape:
            shape = shape.replace(kind + kind, kind)
    return shape


def attributes_of(word: str) -> tuple[int, ...]:
    """Returns the columns that belong to a word, in the order of the constants above."""
    lower, (shape, flags) = word.lower(), _SHAPES[word.translate(_KINDS)]
    if lower.isascii():  # a letter is a byte
        text = lower.encode()
        parts = text[:2], text[:3], text[:4], text[-2:], text[-3:], text[-4:]
        return (crc32(text) & MASK, shape, *[crc32(part) & MASK for part in parts], flags)
    affixes = lower[:2], lower[:3], lower[:4], lower[-2:], lower[-3:], lower[-4:]
    return (hash_string(lower), shape, *map(hash_string, affixes), flags)


class Tokens(NamedTuple):
    """The tokens of some sentences."""

    counts: IntArray  # of each sentence, `NO_LIST` where its tokens are no list of strings
    columns: HashArray  # (n_tokens, N_COLUMNS)
    n_tags: IntArray  # of each sentence, likewise
    odd: BoolArray  # which sentences are not spelled as `json.dumps` would


class Vocabulary:
    """Words and parts of speech already looked at: a stream that shares one is spared looking at them again."""

    def __init__(self) -> None:
        self.words = Spellings(attributes_of, POS)
        self.tags = Spellings(lambda tag: (hash_string(tag),), 1)

    def read(self, words: Sequence[bytes], tags: Sequence[bytes | None] | None = None) -> Tokens:
        """Reads tokens, and parts of speech where they are known, given as lists of JSON."""
        counts, known, odd_words = self.words.read(words)
        n = np.maximum(counts, 0)
        columns = np.empty((len(known), N_COLUMNS), np.int32)
        columns[:, :POS], columns[:, POS] = known, NO_POS
        odd = np.zeros(len(words), dtype=bool)
        odd[np.repeat(np.arange(len(words)), n)[odd_words]] = True
        if tags is None:
            return Tokens(counts, columns, counts, odd)
        given = np.array([each is not None for each in tags], dtype=bool)
        n_tags = counts.copy()
        n_tags[given], hashes, odd_tags = self.tags.read([each for each in tags if each is not None])
        of_tags = np.repeat(np.flatnonzero(given), np.maximum(n_tags[given], 0))
        odd[of_tags[odd_tags]] = True
        fits = n_tags == counts
        columns[np.repeat(given & fits, n), POS] = hashes[fits[of_tags], 0]
        return Tokens(counts, columns, n_tags, odd)


def as_json(strings: Sequence[str]) -> bytes:
    """Returns a list of strings as JSON."""
    try:
        return msgspec.json.encode(strings)
    except UnicodeEncodeError:  # half of a surrogate pair, which only Python's own JSON writes
        return json.dumps(strings).encode()
