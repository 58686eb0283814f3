"""A model that can be served: it reads the inputs of a request, answers many of them at once, and says what it knows.

A request has *parts*, each of one item or more. An answer to a part is its *columns*: by name, one value an item.
`quick` answers many parts in the fast lane, without any black box and by limited proofs; the items that it leaves open
are answered by `ask`, in the slow lane (`hasten.serve.lanes`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np

from hasten.errors import HastenError
from hasten.model.problem import Problem

Part = TypeVar("Part")
Columns = dict[str, Any]  # by name, a list or an array with one value, or row, for each item


class Tensor(NamedTuple):
    """An input or output of the Open Inference Protocol; -1 in its shape is any number."""

    name: str
    datatype: str
    shape: tuple[int, ...]


ABOUT = (
    *(Tensor("proved", "BOOL", (-1,)), Tensor("source", "BYTES", (-1,)), Tensor("gap", "FP64", (-1,))),
    *(Tensor("status", "BYTES", (-1,)), Tensor("version", "BYTES", (-1,))),
)  # every answer says how it came about


@dataclass(slots=True)
class Found:
    """The answers to a part: the rows from `at` of columns, which several parts may share; and which are still open."""

    columns: Columns
    at: int = 0
    n: int = 1
    open: Sequence[int] = ()  # numbers of items of the part

    def column(self, name: str) -> Any:
        """Returns the values of the part's items."""
        column = self.columns[name]
        return column if len(column) == self.n else column[self.at : self.at + self.n]

    def merge(self, more: Columns) -> None:
        """Puts the answers to the open items in their places."""
        if len(self.open) == self.n:
            self.columns, self.at, self.open = more, 0, ()
            return
        for name, column in self.columns.items():
            if isinstance(column, np.ndarray):
                column = column.tolist()
            for n, value in zip(self.open, more[name], strict=True):
                column[self.at + n] = plain(value)
            self.columns[name] = column
        self.open = ()


class Refused(HastenError):  # noqa: N818
    """A request that cannot be answered as it is."""


class Served(ABC, Generic[Part]):
    """A model by its name and version.

    `record` is the type of one input in JSON. `stateful` says that answers of the slow lane change how others are
    answered, so that it must be a thread of this process.
    """

    kind: ClassVar[str]
    record: ClassVar[Any] = dict[str, Any]
    stateful = False
    keeps = False  # whether it writes to the journal itself
    box: str | None = None  # module:name of a black box that is asked in processes of the slow lane
    inputs: Sequence[Tensor]
    outputs: Sequence[Tensor]

    def __init__(self, name: str, version: str) -> None:
        self.name, self.version = name, version
        self.one = msgspec.json.Decoder(self.record)
        self.many = msgspec.json.Decoder(list[self.record])  # type: ignore[name-defined]

    def parts(self, body: bytes) -> tuple[list[Part], bool]:
        """Returns the parts of a body, one input or a list of them in JSON, and whether it was a list."""
        if body.lstrip()[:1] == b"[":
            return [self.read(record) for record in self.many.decode(body)], True
        return [self.read(self.one.decode(body))], False

    @abstractmethod
    def read(self, record: Any) -> Part:
        """Returns the part that an input in JSON stands for, checked."""

    @abstractmethod
    def of_tensors(self, tensors: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Part]:
        """Returns the parts that input tensors stand for, checked."""

    def size(self, part: Part) -> int:
        """Returns how many items a part has."""
        return 1

    @abstractmethod
    def quick(self, parts: Sequence[Part]) -> list[Found]:
        """Answers parts without a black box; items that it cannot answer so are left open."""

    @abstractmethod
    def ask(self, part: Part, items: Sequence[int], seconds: float) -> Columns:
        """Answers some items of a part with the help of the black box, in about so many seconds each."""

    def told(self, part: Part, columns: Columns, at: int) -> dict[str, Any]:
        """Returns the answer in a row of some columns, as JSON has it."""
        return {name: plain(column[at]) for name, column in columns.items()}

    @abstractmethod
    def problem(self, part: Part) -> tuple[Problem, Sequence[str] | None]:
        """Returns the first item of a part as a problem, to be explained, and what its variables are called."""

    @abstractmethod
    def examples(self) -> list[Part]:
        """Returns inputs to warm up with."""

    def warm(self) -> None:
        """Answers examples, one by one and together, so that no request waits for a compiler."""
        examples = self.examples()
        for n in (1, 1, len(examples), 64):
            self.quick((examples * (64 // len(examples) + 1))[:n])

    def state(self) -> dict[str, Any]:
        """Returns how it stands: version, and where there is trust to speak of, what that rests on."""
        return {"version": self.version}

    def use(self, box: Callable[[Any], Any]) -> None:
        """Takes the way to call its black box, if that is asked in processes."""

    def close(self) -> None:
        """Ends what it started."""


def plain(value: Any) -> Any:
    """Returns a value without NumPy."""
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value
