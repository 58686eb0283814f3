"""Problems: costs for a saved speedup, and objectives for a program that was read from a file."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from hasten.errors import ProgramError
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions, Source
from hasten.model.structure import Structure
from hasten.programs.program import Program
from hasten.serve.served import ABOUT, Columns, Found, Refused, Served, Tensor
from hasten.speedup.parts import Limits
from hasten.speedup.predictor import Speedup
from hasten.support.arrays import FloatArray
from hasten.support.words import count

FEW = 4  # problems of one shape up to which single proofs take less than a batch
ROUNDING = 1e-9  # of a gap, relative to the cost
SMALL = 256  # answers that are taken apart as lists, which costs less than arrays
_SOURCES, _STATUSES = np.array([each.value for each in SOURCES]), np.array([each.value for each in STATUSES])


class Rows(NamedTuple):
    """Problems of one shape, by its name: a row of costs, or an objective, for each."""

    shape: str
    rows: FloatArray


class ServedRows(Served[Rows]):
    """The common part of speedups and programs: rows of one shape are answered together, a few alone."""

    answer, value = "labels", "cost"  # what the columns are called
    sign = 1.0  # of costs, as the model has them
    speedup: Speedup

    def size(self, part: Rows) -> int:
        """Returns how many problems there are."""
        return len(part.rows)

    @abstractmethod
    def batch(self, part: Rows) -> Batch:
        """Returns rows as problems."""

    @abstractmethod
    def answers(self, found: Solutions | Solution, part: Rows) -> Any:
        """Returns labels or values, a row for each problem."""

    def quick(self, parts: Sequence[Rows]) -> list[Found]:
        """Proves problems; those that this leaves open are left open."""
        groups: dict[str, list[int]] = {}
        for n, part in enumerate(parts):
            groups.setdefault(part.shape, []).append(n)
        found: dict[int, Found] = {}
        for name, numbers in groups.items():
            some = [parts[n] for n in numbers]
            if len(some) <= FEW and all(len(part.rows) == 1 for part in some):
                for n, part in zip(numbers, some, strict=True):
                    answer, done = self.speedup.at_once(self.problem(part)[0])
                    found[n] = Found(self._single(answer, part), open=() if done else (0,))
                continue
            whole = Rows(name, np.concatenate([part.rows for part in some])) if len(some) > 1 else some[0]
            answers, given = self.speedup.at_once(self.batch(whole))
            columns, at = self.columns(answers, whole), 0
            if len(answers) <= SMALL:
                columns = {key: column.tolist() for key, column in columns.items()}
            all_given = bool(given.all())
            for n, part in zip(numbers, some, strict=True):
                size = len(part.rows)
                left = () if all_given else np.flatnonzero(~given[at : at + size]).tolist()
                found[n] = Found(columns, at, size, left)
                at += size
        return [found[n] for n in range(len(parts))]

    def columns(self, found: Solutions, part: Rows) -> Columns:
        """Returns answers column by column."""
        gap, version = _gap(found.cost, found.bound), np.full(len(found), self.version)
        about = found.proved, _SOURCES[found.source], gap, _STATUSES[found.status], version
        own = {self.answer: self.answers(found, part), self.value: self.sign * found.cost}
        return own | dict(zip(NAMES, about, strict=True))

    def _single(self, answer: Solution, part: Rows) -> Columns:
        """Returns one answer in columns of one."""
        about = [answer.proved], [answer.source.value], [gap_of(answer)], [answer.status.value], [self.version]
        own = {self.answer: [self.answers(answer, part).tolist()], self.value: [self.sign * answer.cost]}
        return own | dict(zip(NAMES, about, strict=True))


NAMES = [tensor.name for tensor in ABOUT]


class CostRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One problem: flat costs, "inf" for a label that is forbidden, and the name of its structure if there are some."""

    costs: list[float | Literal["inf"]]
    structure: str = ""


class ServedSpeedup(ServedRows):
    """A saved speedup, with the structures of its problems by name."""

    kind, record = "speedup", CostRecord

    def __init__(self, name: str, version: str, speedup: Speedup, structures: Mapping[str, Structure]) -> None:
        super().__init__(name, version)
        self.speedup, self.structures, self.stateful = speedup, structures, not speedup.stateless
        self.labels = {name: [kind.labels for kind in shape.kinds] for name, shape in structures.items()}
        sizes = {(shape.n_labels, shape.n_variables) for shape in structures.values()}
        n_labels, n_variables = sizes.pop() if len(sizes) == 1 else (-1, -1)
        self.inputs = [Tensor("costs", "FP64", (-1, n_labels))]
        self.outputs = [Tensor("labels", "INT64", (-1, n_variables)), Tensor("cost", "FP64", (-1,)), *ABOUT]
        self._only = next(iter(structures)) if len(structures) == 1 else ""

    def read(self, record: CostRecord) -> Rows:
        """Returns one problem."""
        return self._checked(record.structure, np.array(record.costs, dtype=np.float64)[None])

    def of_tensors(self, tensors: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Rows]:
        """Returns problems from a matrix of costs; the parameter `structure` names their shape."""
        costs = tensors["costs"]
        if not costs.min(initial=0.0) > -np.inf:  # nan, too; in JSON there is neither
            raise Refused("Costs are finite numbers, or inf to forbid a label.")
        return [self._checked(parameters.get("structure", ""), costs)]

    def _checked(self, given: object, costs: FloatArray) -> Rows:
        name = given or self._only
        if not isinstance(name, str) or name not in self.structures:
            why = f"There is no structure {given!r:.60}" if given else "The input names no structure"
            raise Refused(f"{why}. There are {', '.join(sorted(self.structures))}.")
        n_labels = self.structures[name].n_labels
        if costs.ndim != 2 or costs.shape[1] != n_labels:
            raise Refused(f"Got {count(costs.shape[-1], 'cost')} for {count(n_labels, 'label')}. Give one for each.")
        return Rows(name, costs)

    def problem(self, part: Rows) -> tuple[Problem, None]:
        """Returns the first problem."""
        return self.structures[part.shape].problem(part.rows[0]), None

    def batch(self, part: Rows) -> Batch:
        """Returns the problems."""
        return self.structures[part.shape].batch(part.rows)

    def answers(self, found: Solutions | Solution, part: Rows) -> Any:
        """Returns labels by number; -1 where there is no answer."""
        n_variables = self.structures[part.shape].n_variables
        if isinstance(found, Solution):
            return np.full(n_variables, -1) if found.values is None else found.labels
        return found.labels.reshape(len(found), n_variables)

    def ask(self, part: Rows, items: Sequence[int], seconds: float) -> Columns:
        """Answers by the solver where nothing is proved, and audits."""
        speedup, chosen = self.speedup, Rows(part.shape, part.rows[list(items)])
        if not self.stateful:
            least = min(seconds, speedup.limits.time_limit or seconds)
            speedup.set_params(limits=Limits(least, max_nodes=speedup.limits.max_nodes))
        return self.columns(speedup.ask(self.batch(chosen)), chosen)

    def told(self, part: Rows, columns: Columns, at: int) -> dict[str, Any]:
        """Returns an answer with the names of its labels; without any, there is no valid labelling."""
        found = super().told(part, columns, at)
        named = zip(self.labels[part.shape], found["labels"], strict=True)
        found["labels"] = None if -1 in found["labels"] else [labels[label] for labels, label in named]
        return found

    def examples(self) -> list[Rows]:
        """Returns random problems of each structure."""
        rng = np.random.default_rng(0)
        shapes = self.structures.items()
        return [Rows(name, row[None]) for name, s in shapes for row in rng.normal(size=(8, s.n_labels))]

    def state(self) -> dict[str, Any]:
        """Returns its counters, agreement and notes."""
        speedup, agreement = self.speedup, self.speedup.agreement
        counters = speedup.counters
        if not self.stateful:
            return super().state()
        return {
            "version": self.version,
            "trusted": speedup.trusted,
            "allowed": speedup.trust.min_agreement,
            "agreement": [agreement.estimate, agreement.low, agreement.high, agreement.n] if agreement.n else None,
            "audits": counters.audits,
            "disagreements": counters.disagreements,
            "suspect": None if speedup.suspect is None else [speedup.suspect.start + 1, speedup.suspect.stop],
            "notes": speedup.history.notes,
        }


def _gap(cost: FloatArray, bound: FloatArray) -> FloatArray:
    gap: FloatArray = np.subtract(cost, bound, out=np.full(len(cost), np.inf), where=np.isfinite(cost))
    gap[gap <= ROUNDING * np.maximum(1.0, np.abs(cost))] = 0.0
    return gap


def gap_of(answer: Solution) -> float:
    """Returns the gap of an answer; 0 where rounding alone leaves one."""
    gap = float(answer.gap)
    return 0.0 if gap <= ROUNDING * max(1.0, abs(answer.cost)) else gap


class ObjectiveRecord(msgspec.Struct, forbid_unknown_fields=True):
    """One objective: a coefficient for each variable, in the order of the file or by name."""

    objective: list[float] | dict[str, float]


class ServedProgram(ServedRows):
    """A program from a file, asked with other objectives."""

    kind, record, answer, value = "program", ObjectiveRecord, "values", "objective"

    def __init__(self, name: str, version: str, program: Program, solver: str) -> None:
        super().__init__(name, version)
        self.program, self.solver, self.columns_of = program, solver, program.columns
        self.sign = program.statement.sign
        try:
            self.speedup = Speedup(program.schema)
        except ProgramError:  # only the solver can answer this one
            self.speedup = None  # type: ignore[assignment]
        n = len(program.columns)
        self.inputs = [Tensor("objective", "FP64", (-1, n))]
        self.outputs = [Tensor("values", "FP64", (-1, n)), Tensor("objective", "FP64", (-1,)), *ABOUT]

    def read(self, record: ObjectiveRecord) -> Rows:
        """Returns one objective."""
        given = record.objective
        if isinstance(given, dict):
            return Rows("", self.program._objectives.many([given]))
        return self._checked(np.array(given, dtype=np.float64)[None])

    def of_tensors(self, tensors: Mapping[str, Any], parameters: Mapping[str, Any]) -> list[Rows]:
        """Returns objectives from a matrix."""
        return [self._checked(tensors["objective"])]

    def _checked(self, objectives: FloatArray) -> Rows:
        n = len(self.columns_of)
        if objectives.ndim != 2 or objectives.shape[1] != n:
            raise Refused(f"Got {count(objectives.shape[-1], 'coefficient')} for {count(n, 'variable')}.")
        if not np.isfinite(objectives).all():
            raise Refused("Coefficients are finite numbers.")
        return Rows("", objectives)

    def problem(self, part: Rows) -> tuple[Problem, None]:
        """Returns the first program as a problem."""
        return self.program.problem(part.rows[0]), None

    def batch(self, part: Rows) -> Batch:
        """Returns the programs as problems."""
        return self.program.batch(part.rows)

    def quick(self, parts: Sequence[Rows]) -> list[Found]:
        """Proves what can be proved here."""
        if self.speedup is not None and not np.isfinite(self.program.statement.cutoff):
            return super().quick(parts)
        return [Found({}, 0, n, range(n)) for n in map(self.size, parts)]

    def answers(self, found: Solutions | Solution, part: Rows) -> Any:
        """Returns values; nan where there is no answer."""
        if isinstance(found, Solution) and found.values is None:
            return np.full(len(self.columns_of), np.nan)
        return self.program.values(found)

    def ask(self, part: Rows, items: Sequence[int], seconds: float) -> Columns:
        """Solves by whatever it takes."""
        found = self.program.solve_all(part.rows[list(items)], solver=self.solver, time_limit=seconds)
        n = len(found)
        about = (
            *(found.proved, np.full(n, Source.SOLVER.value), np.abs(found.objective - found.bound)),
            *(_STATUSES[found.status], np.full(n, self.version)),
        )
        return {"values": found.x, "objective": found.objective} | dict(zip(NAMES, about, strict=True))

    def told(self, part: Rows, columns: Columns, at: int) -> dict[str, Any]:
        """Returns an answer with the values that are not 0, by name."""
        found = super().told(part, columns, at)
        named = {c: v for c, v in zip(self.columns_of, found["values"], strict=True) if v}
        found["values"] = named if math.isfinite(found["objective"]) else None
        return found

    def examples(self) -> list[Rows]:
        """Returns random objectives, and the program's own."""
        own = self.program.statement.objective
        rng = np.random.default_rng(0)
        return [Rows("", c[None]) for c in (own, *(own * rng.uniform(0.5, 1.5, size=(7, len(own)))))]
