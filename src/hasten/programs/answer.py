"""An answer in the model's own words: values by variable name, as a vector, or written back into the model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.errors import NoAnswerError
from hasten.model.solution import Status
from hasten.programs.libraries import front_end
from hasten.support.arrays import FloatArray

if TYPE_CHECKING:
    from hasten.programs.statement import Statement


@dataclass(frozen=True, slots=True, eq=False)
class Answer(Mapping[str, float]):
    """The best values of a program's variables, by name; `x` is the same as a vector, in the model's order.

    `objective` is the model's own, constant included, in its own sense; `bound` is what it cannot beat.
    """

    program: Statement = field(repr=False)
    status: Status
    values_found: FloatArray | None = field(repr=False)
    objective: float
    bound: float
    proved: bool  # whether it is optimal, or surely has no answer, without the solver
    how: str  # it came about, in words
    reason: str = ""

    @property
    def x(self) -> FloatArray:
        """The value of each variable."""
        if self.values_found is None:
            raise NoAnswerError(f"{self.status} {self.reason}".rstrip())
        return self.values_found

    @property
    def optimal(self) -> bool:
        """Whether nothing is left to find out."""
        return self.status.optimal

    @property
    def gap(self) -> float:
        """How far the objective may be from the best there is."""
        return math.inf if self.values_found is None else abs(self.objective - self.bound)

    def __getitem__(self, name: str) -> float:
        try:
            at = self.program.columns.index(name)
        except ValueError:
            raise KeyError(f"There is no variable {name!r}.") from None
        return self._plain(at)

    def __iter__(self) -> Iterator[str]:
        return iter(self.program.columns)

    def __len__(self) -> int:
        return self.program.n_columns

    def chosen(self) -> dict[str, float]:
        """Returns the variables that are not 0, by name."""
        return {self.program.columns[j]: self._plain(j) for j in np.flatnonzero(self.x).tolist()}

    def write_to(self, model: Any) -> None:
        """Writes the values into a model's own objects: see `hasten.adopt` for what each library can hold."""
        x = self.x
        front_end(model).write(model, x)

    def _plain(self, at: int) -> float:
        value = float(self.x[at])
        return int(value) if self.program.whole[at] else value

    def __repr__(self) -> str:
        found = "no values" if self.values_found is None else f"objective={self.objective:.10g}"
        return f"Answer({found}, {self.status.value!r})"
