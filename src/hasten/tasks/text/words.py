"""Words as numbers: hashes of what a word looks like, its lower-case form, its shape, its endings.

Hashes depend neither on the process nor on what was read before, so a model stores no vocabulary and texts read apart
agree. Kernels read the columns: this module is one of those that `hasten.jit` looks at.
"""

from collections.abc import Sequence
from itertools import chain, islice
from zlib import crc32

import numpy as np
import numpy.typing as npt

HashArray = npt.NDArray[np.int32]

# The columns of a token. All but the last belong to the word itself; the part of speech belongs to its place.
WORD, SHAPE, PREFIX2, PREFIX3, PREFIX4, SUFFIX2, SUFFIX3, SUFFIX4, FLAGS, POS = range(10)
N_COLUMNS = POS + 1

# What FLAGS holds, a bit each.
CAPITALISED, HAS_CAPITAL, HAS_SMALL, HAS_DIGIT, HAS_DOT, HAS_HYPHEN = 1, 2, 4, 8, 16, 32

MASK = 0x7FFFFFFF  # 31 bits
MAX_SHAPES = 100_000  # remembered
MAX_WORDS = 200_000  # likewise, between two texts
NO_POS = 0  # stands for the part of speech of a token that came without one


def hash_string(string: str) -> int:
    """Hashes a string to 31 bits, the same in every process and on every machine."""
    return crc32(string.encode("utf-8", "surrogatepass")) & MASK


class _Kinds(dict[int, str]):
    """What a character looks like: X, x or d for capitals, other letters and digits; itself otherwise."""

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


class _Numbers(dict[str, int]):
    """The number of each word met so far, in the order in which they came."""

    def __missing__(self, word: str) -> int:
        self[word] = number = len(self)
        return number


class _Tags(dict[str | None, int]):
    """The hash of each part of speech met so far."""

    def __missing__(self, tag: str | None) -> int:
        self[tag] = NO_POS if tag is None else hash_string(tag)
        return self[tag]


class Vocabulary:
    """Words already looked at. A stream of short texts that shares one is spared looking at them again."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._numbers, self._tags = _Numbers(), _Tags()
        self._attributes: HashArray = np.empty((1024, N_COLUMNS), np.int32)

    def __len__(self) -> int:
        return len(self._numbers)

    def columns(self, words: Sequence[str], tags: Sequence[str | None] | None = None) -> HashArray:
        """Returns a row for each word: its columns and, where tags are given, the hash of its part of speech."""
        if len(self._numbers) + len(self._tags) > MAX_WORDS:
            self._forget()
        first = len(self._numbers)
        numbers = np.fromiter(map(self._numbers.__getitem__, words), np.int64, len(words))
        end = len(self._numbers)
        if end > len(self._attributes):
            grown = np.empty((2 * end, N_COLUMNS), np.int32)
            grown[:first] = self._attributes[:first]
            self._attributes = grown
        hashes = chain.from_iterable(map(attributes_of, islice(self._numbers, first, None)))
        self._attributes[first:end, :POS] = np.fromiter(hashes, np.int32, POS * (end - first)).reshape(-1, POS)
        found = self._attributes[numbers]
        if tags is not None:
            found[:, POS] = np.fromiter(map(self._tags.__getitem__, tags), np.int32, len(words))
        return found
