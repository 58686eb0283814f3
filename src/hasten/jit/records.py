"""The memory that kernels read and write, in few pieces: *spans* of memory, *records* of named spans, and SIMD *lanes*.

Numba hands an array to a function as seven values, and a tuple of arrays as all of its arrays' values, at every call:
a graph of forty arrays would be three hundred arguments. So inside compiled code

- a `Record` is one pointer. Its fields, whole numbers and floats, lie one after the other in one buffer, which begins
  with where each field starts and how long it is. Those are read where a field is used, and never change;
- a *span* is a pointer and a length: `part(array, begin, end)` makes one, and each field of a record is one. It is
  read, written and asked for its `size`, nothing else: no negative indices, no copies, no counted references. `split`
  cuts scratch space into spans, one after the other; `grid` makes a span two-dimensional.

Neither owns anything: whoever makes a span keeps the array, and says so with `keep` after its last use; whoever hands
out a record's `address` keeps the record. In Python a span is simply the array, or a view of it, and a record's field
too, so that kernels also run uncompiled: this module is that side of them, `hasten.jit.lowering` the compiled one.

*Lanes* are eight problems side by side, whose numbers are added and compared eight at a time. A kernel does the same to
every problem of one shape, so it does it to eight at once: number `x` of problem `lane` lies at `WIDTH * x + lane` of a
span. Compiled, lanes are a vector register; in Python they are an array.
"""

from __future__ import annotations

import ctypes
from array import array as growing
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np

from hasten.support.arrays import IntArray

INT, FLOAT = np.dtype(np.int64), np.dtype(np.float64)


class Record:
    """Named arrays in one buffer. A subclass declares its fields as `IntArray`s and `FloatArray`s."""

    _fields: ClassVar[dict[str, bool]] = {}  # whether each field is of floats
    _places: ClassVar[dict[str, int]] = {}  # where in the buffer it says where each field starts
    _blank: ClassVar[IntArray]  # the buffer of a record without numbers

    def __init_subclass__(cls) -> None:
        cls._fields = {name: kind == "FloatArray" for name, kind in cls.__annotations__.items()}
        cls._places = {name: 2 * number for number, name in enumerate(cls._fields)}
        cls._blank = np.array([2 * len(cls._fields), 0] * len(cls._fields))

    def __init__(self, buffer: IntArray) -> None:
        self.buffer = buffer

    @classmethod
    def pack(cls, **fields: Any) -> Self:
        """Returns a record of these fields, copied one after the other."""
        if fields.keys() != cls._fields.keys():
            raise TypeError(f"{cls.__name__} has other fields: {sorted(fields.keys() ^ cls._fields.keys())}")
        return cls.start(**fields)

    @classmethod
    def start(cls, **fields: Any) -> Self:
        """Returns a record of some fields; the others are empty."""
        return cls(cls._blank).then(**fields)

    def then(self, **fields: Any) -> Self:
        """Returns a record with these fields in place of the first of them and all behind it; the others are empty."""
        n, begun = len(self._blank), False
        header, parts = growing("q", self.buffer[:n].tobytes()), list[Any]()
        for name, place in self._places.items():
            values = fields.get(name)
            if not begun and values is not None:
                begun, at = True, header[place]
                parts.append(self.buffer[n:at])
            if begun:
                header[place], header[place + 1] = at, 0
            if values is not None:
                part = np.ascontiguousarray(values, FLOAT if self._fields[name] else INT)
                header[place + 1] = part.size
                at += part.size
                parts.append(part)
        return type(self)(np.frombuffer(bytearray().join((header, *parts)), INT))

    @classmethod
    def at(cls, address: int) -> Self:
        """Returns the record that lies at an address: of one that is kept."""
        n, address = 2 * len(cls._fields), int(address)  # a number of NumPy's is not an address
        header = np.ctypeslib.as_array((ctypes.c_int64 * n).from_address(address))
        size = max((header[0::2] + header[1::2]).tolist(), default=0)
        return cls(np.ctypeslib.as_array((ctypes.c_int64 * size).from_address(address)))

    @property
    def address(self) -> int:
        """Where it lies, as long as it is kept."""
        return int(self.buffer.ctypes.data)

    def __getattr__(self, name: str) -> Any:
        place = self._places.get(name)
        if place is None:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}.")
        buffer = self.buffer
        start, size = buffer.item(place), buffer.item(place + 1)
        found = buffer[start : start + size]
        if self._fields[name]:
            found = found.view(FLOAT)
        self.__dict__[name] = found  # so that it is made once
        return found

    def __reduce__(self) -> Any:
        return type(self), (self.buffer,)


VIEWS: dict[Callable[[int], Any], Any] = {}  # every function that views records, with their class


def viewer(record: type[Record]) -> Callable[[int], Any]:
    """Returns a function that views the record at an address, for kernels to call."""

    def view(address: int) -> Any:
        return record.at(address)

    VIEWS[view] = record
    return view


def part(array: Any, begin: int, end: int) -> Any:
    """Returns `array[begin:end]` as a span."""
    return array[begin:end]


def split(array: Any, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """Returns the first entries of an array as spans of these sizes, one after the other."""
    ends = np.cumsum(sizes)
    return tuple(array[end - size : end] for end, size in zip(ends, sizes, strict=True))


def grid(span: Any, height: int, width: int) -> Any:
    """Returns the first entries of a span as rows: `grid[row, column]`; `grid[row]` is a span."""
    return span[: height * width].reshape(height, width)


def keep(arrays: Any) -> None:
    """Does nothing: what it is called with is still needed here, if only for the spans of it."""


WIDTH = 8


def load(span: Any, x: int) -> Any:
    """Returns number `x` of each problem."""
    return span[WIDTH * x : WIDTH * (x + 1)].copy()


def store(span: Any, x: int, lanes: Any) -> None:
    """Writes number `x` of each problem."""
    span[WIDTH * x : WIDTH * (x + 1)] = lanes


def gather(span: Any, start: Any, x: int) -> Any:
    """Returns number `x` of each problem, where those of problem `lane` start at `start[lane]`."""
    return np.array([span[start[lane] + x] for lane in range(WIDTH)])


def spread(value: float) -> Any:
    """Returns the same number for each problem."""
    return np.full(WIDTH, value)


def lesser(one: Any, other: Any) -> Any:
    """Returns the lesser of two numbers of each problem."""
    return np.where(one < other, one, other)


def greater(one: Any, other: Any) -> Any:
    """Returns the greater of two numbers of each problem."""
    return np.where(one > other, one, other)


def where_less(one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    """Returns `then` where one number is less than the other."""
    return np.where(one < other, then, otherwise)


def where_equal(one: Any, other: Any, then: Any, otherwise: Any) -> Any:
    """Returns `then` where two numbers are equal."""
    return np.where(one == other, then, otherwise)


def scale(one: Any, power: Any) -> Any:
    """Returns numbers times two to the power of whole numbers; neither they nor the products are subnormal."""
    return np.ldexp(one, power.astype(np.int64))


def exponent(one: Any) -> Any:
    """Returns the power of two at or below numbers that are positive and not subnormal."""
    return np.frexp(one)[1] - 1.0
