"""Words as numbers: hashes of what a word looks like, its lower-case form, its shape, its endings.

Kernels read the columns: this module is one of those that `hasten.jit` looks at.
"""

from zlib import crc32

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
    """What a character looks like: X, x or d for capitals, other letters and digits; itself otherwise."""

    def __missing__(self, code: int) -> str:
        c = chr(code)
        self[code] = "X" if c.isupper() else "x" if c.isalpha() else "d" if c.isdigit() else c
        return self[code]


class _Shapes(dict[str, tuple[int, int]]):
    """The hash and the flags of each shape met so far: texts have few."""

    def __missing__(self, shape: str) -> tuple[int, int]:
        if len(self) >= MAX_SHAPES:
            self.clear()
        flags = (
            CAPITALISED * shape.startswith("X")
            | HAS_CAPITAL * ("X" in shape)
            | HAS_SMALL * ("x" in shape)
            | HAS_DIGIT * ("d" in shape)
            | HAS_DOT * ("." in shape)
            | HAS_HYPHEN * ("-" in shape)
        )
        self[shape] = hash_string(shape), flags
        return self[shape]


_KINDS = _Kinds()
_SHAPES = _Shapes()


def shape_of(word: str) -> str:
    """Returns a word's shape, runs of one kind written once: "McDonald-1987" is "XxXx-d"."""
    shape = word.translate(_KINDS)
    for kind in "Xxd":
        while kind + kind in shape:
            shape = shape.replace(kind + kind, kind)
    return shape


def attributes_of(word: str) -> tuple[int, ...]:
    """Returns the columns that belong to a word, in the order of the constants above."""
    lower, (shape, flags) = word.lower(), _SHAPES[shape_of(word)]
    if lower.isascii():  # a letter is a byte
        text = lower.encode()
        parts = text[:2], text[:3], text[:4], text[-2:], text[-3:], text[-4:]
        return (crc32(text) & MASK, shape, *[crc32(part) & MASK for part in parts], flags)
    affixes = lower[:2], lower[:3], lower[:4], lower[-2:], lower[-3:], lower[-4:]
    return (hash_string(lower), shape, *map(hash_string, affixes), flags)
