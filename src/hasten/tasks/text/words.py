"""Words as numbers: hashes of what a word looks like, its lower-case form, its shape, its endings.

Hashes depend neither on the process nor on what was read before, so a model stores no vocabulary and texts read apart
agree. Words are read from lists of JSON without making a string of each: a *spelling* is what stands between two
quotes, escapes and all. Words repeat, so nearly every one is found in a hash table of the spellings met before; only a
new one becomes a string, whose columns are then computed. Kernels read the columns: this module is one of those that
`hasten.jit` looks at.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import NamedTuple
from zlib import crc32

import msgspec
import numpy as np
import numpy.typing as npt

from hasten.jit import driver
from hasten.support.arrays import BoolArray, FloatArray, IntArray

HashArray = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]

MOST = 200_000  # spellings that are remembered
QUOTE, BACKSLASH, OPENING, CLOSING, COMMA, NEWLINE = 34, 92, 91, 93, 44, 10
NO_LIST = -1
# The columns of a token. All but the last belong to the word itself; the part of speech belongs to its place.
WORD, SHAPE, PREFIX2, PREFIX3, PREFIX4, SUFFIX2, SUFFIX3, SUFFIX4, FLAGS, POS = range(10)
N_COLUMNS = POS + 1
# What FLAGS holds, a bit each.
CAPITALISED, HAS_CAPITAL, HAS_SMALL, HAS_DIGIT, HAS_DOT, HAS_HYPHEN = 1, 2, 4, 8, 16, 32
FULL, MASK = 0xFFFFFFFF, 0x7FFFFFFF  # 32 and 31 bits
REMAINDERS = np.array([crc32(bytes([n ^ 255])) ^ FULL ^ FULL >> 8 for n in range(256)])  # of CRC-32, byte by byte
ALIKE = "Xxd"  # kinds of characters whose runs are written once in a shape
NO_POS = 0  # stands for the part of speech of a token that came without one


class Known(NamedTuple):
    """The spellings met so far: spelling `k` is `letters[start[k]:start[k + 1]]`; `size` has how many there are."""

    slots: HashArray  # (a power of two,): the spelling in each place of the hash table, -1 for none
    letters: Bytes
    start: IntArray
    size: IntArray  # (1,)


@driver
def look_up(data: Bytes, known: Known, counts: IntArray, found: IntArray) -> int:
    """Reads a list a line; writes how many strings each has, and the number of each string; returns how many there are.

    A line that is no list of strings counts as `NO_LIST`. Every line is known to be well-formed JSON, as dense as lines
    are: it ends with a line feed, and there is none in it. The caller sees that there is room for new spellings.
    """
    mask, n_found, at = len(known.slots) - 1, 0, 0
    for line in range(len(counts)):
        first = n_found
        is_list = data[at] == OPENING
        at += 1
        while data[at - 1] != NEWLINE:
            if data[at] == QUOTE and is_list:  # besides strings, a list of them has commas, blanks and its end
                begin, state = at + 1, 0
                at += 1
                while data[at] != QUOTE:
                    if data[at] == BACKSLASH:
                        state = ((state ^ BACKSLASH) * 0x01000193) & 0xFFFFFFFF
                        at += 1
                    state = ((state ^ int(np.int64(data[at]))) * 0x01000193) & 0xFFFFFFFF
                    at += 1
                size = at - begin
                place = (state ^ (state >> 15)) & mask
                number = -1
                while number < 0:
                    k = int(np.int64(known.slots[place]))
                    if k < 0:
                        k = int(known.size[0])
                        known.slots[place] = k
                        known.size[0] = k + 1
                        known.start[k + 1] = known.start[k] + size
                        for n in range(size):
                            known.letters[known.start[k] + n] = data[begin + n]
                    same = known.start[k + 1] - known.start[k] == size
                    n = 0
                    while same and n < size:
                        same = known.letters[known.start[k] + n] == data[begin + n]
                        n += 1
                    number = k if same else -1
                    place = (place + 1) & mask
                found[n_found] = number
                n_found += 1
            elif data[at] > COMMA and data[at] != CLOSING:
                is_list = False
            at += 1
        if not is_list:
            n_found = first
        counts[line] = n_found - first if is_list else NO_LIST
    return n_found


@driver
def describe(letters: Bytes, start: IntArray, remainders: IntArray, columns: HashArray, plain: BoolArray) -> None:
    """Writes the columns of words of plain ASCII letters, as `attributes_of` has them, and says which words are."""
    for k in range(len(plain)):
        begin, end = start[k], start[k + 1]
        word = shape = FULL
        flags, last = 0, 0
        plain[k] = begin < end
        for n in range(begin, end):
            letter = int(np.int64(letters[n]))
            plain[k] &= letter < 128 and letter != BACKSLASH
            kind = 0
            if 65 <= letter <= 90:
                kind, letter, flags = 88, letter + 32, flags | HAS_CAPITAL | CAPITALISED * (n == begin)
            elif 97 <= letter <= 122:
                kind, flags = 120, flags | HAS_SMALL
            elif 48 <= letter <= 57:
                kind, flags = 100, flags | HAS_DIGIT
            flags |= HAS_DOT * (letter == 46) | HAS_HYPHEN * (letter == 45)
            if kind == 0 or kind != last:
                shape = remainders[(shape ^ (kind or letter)) & 255] ^ (shape >> 8)
            last = kind
            word = remainders[(word ^ letter) & 255] ^ (word >> 8)
            for column in range(max(PREFIX2, PREFIX2 + n - begin - 1), PREFIX4 + 1):
                columns[k, column] = (word ^ FULL) & MASK
        for size in range(2, 5):
            ending = FULL
            for n in range(max(begin, end - size), end):
                letter = int(np.int64(letters[n]))
                letter += 32 * (65 <= letter <= 90)
                ending = remainders[(ending ^ letter) & 255] ^ (ending >> 8)
            columns[k, SUFFIX2 + size - 2] = (ending ^ FULL) & MASK
        columns[k, WORD], columns[k, SHAPE], columns[k, FLAGS] = (word ^ FULL) & MASK, (shape ^ FULL) & MASK, flags


class Spellings:
    """Remembers spellings, with some columns of numbers for each, which `quick` computes for most of them."""

    def __init__(
        self, columns_of: Callable[[str], Sequence[int]], width: int, quick: Callable[..., None] | None = None
    ) -> None:
        self.columns_of, self.width, self.quick = columns_of, width, quick
        self._forget(0, 1 << 16)

    def _forget(self, n: int, n_letters: int) -> None:
        """Begins anew, with room for so many spellings and letters."""
        slots = np.full(1 << (2 * max(n, MOST)).bit_length(), -1, np.int32)
        start, size = np.zeros(max(n, MOST) + 1, np.int64), np.zeros(1, np.int64)
        self._known = Known(slots, np.empty(n_letters, np.uint8), start, size)
        self._columns, self._odd = np.empty((1, self.width), np.int32), np.zeros(1, dtype=bool)

    def __len__(self) -> int:
        return int(self._known.size[0])

    def read(self, lists: Sequence[bytes]) -> tuple[IntArray, HashArray, BoolArray]:
        """Returns how many strings each list of JSON has, `NO_LIST` for what is none; a row of columns for each string;
        and which strings are not spelled as `json.dumps` would.
        """
        data = b"\n".join([*lists, b""])
        most = int(np.count_nonzero(np.frombuffer(data, np.uint8) == QUOTE)) // 2
        n_letters = int(self._known.start[len(self)]) + len(data)
        if len(self) + most >= len(self._known.start):
            self._forget(most, len(data))
        elif n_letters > len(self._known.letters):
            letters = np.empty(2 * n_letters, np.uint8)
            letters[: len(self._known.letters)] = self._known.letters
            self._known = self._known._replace(letters=letters)
        counts, found, first = np.empty(len(lists), np.int64), np.empty(most, np.int64), len(self)
        n_found = look_up(np.frombuffer(bytearray(data), np.uint8), self._known, counts, found)
        self._look_at_new(first)
        return counts, self._columns[found[:n_found]], self._odd[found[:n_found]]

    def _look_at_new(self, first: int) -> None:
        """Computes the columns of spellings that are new."""
        start, letters = self._known.start[first : len(self) + 1], self._known.letters
        n = len(self) - first
        if len(self) > len(self._odd):
            self._columns = np.resize(self._columns, (2 * len(self), self.width))
            self._odd = np.resize(self._odd, 2 * len(self))
        columns, odd = self._columns[first : len(self)], self._odd[first : len(self)]
        plain = np.zeros(n, dtype=bool)
        if self.quick is not None:
            self.quick(letters, start, REMAINDERS, columns, plain)
        odd[:] = False
        for k in np.flatnonzero(~plain).tolist():
            spelled = letters[start[k] : start[k + 1]].tobytes()
            word = _word(spelled)
            columns[k], odd[k] = self.columns_of(word), _is_odd(spelled, word)


def _word(spelled: bytes) -> str:
    return str(json.loads(b'"%b"' % spelled)) if b"\\" in spelled else spelled.decode()


def _is_odd(spelled: bytes, word: str) -> bool:
    """Whether there is no word, or `json.dumps` spells it otherwise; letters beyond ASCII may be escaped or not."""
    if b"\\" not in spelled:
        return not spelled
    usual = json.dumps(word, ensure_ascii=spelled.isascii())
    return usual[1:-1].encode("utf-8", "surrogatepass") != spelled


def hash_string(string: str) -> int:
    """Hashes a string to 31 bits, the same in every process and on every machine."""
    return crc32(string.encode("utf-8", "surrogatepass")) & MASK


def _kind(c: str) -> str:
    """Returns what stands for a character in a shape: X, x or d for capitals, other letters and digits; or itself."""
    return "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c


def shape_of(word: str) -> str:
    """Returns a word's shape, runs of one kind written once: "McDonald-1987" is "XxXx-d"."""
    return "".join(kind if kind in ALIKE else "".join(run) for kind, run in groupby(map(_kind, word)))


def attributes_of(word: str) -> tuple[int, ...]:
    """Returns the columns that belong to a word, in the order of the constants above."""
    lower, shape = word.lower(), shape_of(word)
    flags = (
        CAPITALISED * shape.startswith("X")
        | HAS_CAPITAL * ("X" in shape)
        | HAS_SMALL * ("x" in shape)
        | HAS_DIGIT * ("d" in shape)
        | HAS_DOT * ("." in shape)
        | HAS_HYPHEN * ("-" in shape)
    )
    affixes = lower[:2], lower[:3], lower[:4], lower[-2:], lower[-3:], lower[-4:]
    return (hash_string(lower), hash_string(shape), *map(hash_string, affixes), flags)


class Tokens(NamedTuple):
    """The tokens of some sentences."""

    counts: IntArray  # of each sentence, `NO_LIST` where its tokens are no list of strings
    columns: HashArray  # (n_tokens, N_COLUMNS)
    n_tags: IntArray  # of each sentence, likewise
    odd: BoolArray  # which sentences are not spelled as `json.dumps` would


class Vocabulary:
    """Words and parts of speech already looked at: a stream that shares one is spared looking at them again."""

    def __init__(self) -> None:
        self.words = Spellings(attributes_of, POS, describe)
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


class Averaged(NamedTuple):
    """A table of weights: the current ones, and what their steps and their average need."""

    weights: FloatArray
    squares: FloatArray  # of all gradients so far, summed
    lag: FloatArray  # what each weight was moved by, times the step at which it was

    @classmethod
    def of(cls, n_rows: int, n_columns: int) -> Averaged:
        """Returns a table of zeros."""
        shape = n_rows, n_columns
        return cls(np.zeros(shape), np.full(shape, 1e-8), np.zeros(shape))

    def mean(self, steps: int) -> FloatArray:
        """Returns the average over all steps."""
        found: FloatArray = self.weights - self.lag / max(steps, 1)
        return found
