"""hasten as a model of PyEPO: `optHastenModel(shortestPathModel(grid))`, in place of the model that it is given.

PyEPO's training loops solve a model again and again under predicted costs. They solve one of these a batch at a time.
Imports `hasten.hosts` and the rooms below it.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.hosts.asking import missing
from hasten.programs.libraries import front_end
from hasten.programs.program import Program
from hasten.support.arrays import FloatArray

try:
    import pyepo.func.utils as batches
    from pyepo.model._common import validate_objective_shape
    from pyepo.model.opt import ModelSpec, optModel
    from pyepo.utils import costToNumpy
except ImportError as error:
    raise missing("pyepo", error) from None


class optHastenModel(optModel):  # type: ignore[misc]  # noqa: N801
    """Any model of PyEPO's whose rows are in a model that `hasten.adopt` reads: of Gurobi, Pyomo or OR-Tools.

    Models that generate constraints while they are solved (the subtours of `tspDFJModel`, `vrpRCIModel`) are refused.
    A model that only a solver can answer is handed to its own solver;
    `handed` says why. `program` is the adopted model.
    """

    def __init__(self, model: optModel | ModelSpec) -> None:
        self.inner = model.build() if isinstance(model, ModelSpec) else model
        super().__init__()
        self.modelSense, self._extra_constrs = self.inner.modelSense, self.inner._extra_constrs
        self._costs: FloatArray = np.zeros(self.num_cost)

    @property
    def handed(self) -> str:
        """Why its own solver answers; "" where we do."""
        return f"hasten hands this to {self.inner!r}: {self.program.only_solver}" if self.program.only_solver else ""

    def _getModel(self) -> tuple[Any, Any]:  # noqa: N802
        """Adopts the model, and finds out which columns each cost goes to."""
        inner = self.inner
        if getattr(getattr(inner._model, "Params", None), "LazyConstraints", 0):
            raise ProgramError(
                f"{inner!r} generates constraints while Gurobi solves it. Use a formulation that states all of them, "
                "such as MTZ or GG."
            )
        end, n = front_end(inner._model), inner.num_cost
        probes = np.stack([np.zeros(n), np.arange(1.0, n + 1), np.arange(n, 0.0, -1)])
        objectives = []
        for probe in probes:
            inner.setObj(probe)
            statement = end.state(inner._model)
            objectives.append(statement.objective)
        self.program, self._base = Program(statement), objectives[0]
        place = np.rint(objectives[1] - self._base).astype(np.int64)
        self._columns = np.flatnonzero(place)
        self._cost = place[self._columns] - 1
        reversed_place = np.where(place != 0, n + 1 - place, 0)
        wrong = np.abs(objectives[2] - self._base - reversed_place).max(initial=0) > 1e-6
        if wrong or place.min(initial=0) < 0 or place.max(initial=0) > n:
            raise ProgramError(f"{inner!r} does not give each cost to variables of its own: it cannot be adopted.")
        return inner._model, inner.x

    def __repr__(self) -> str:
        return f"optHastenModel({self.inner!r})"

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet
            raise AttributeError(name)
        return getattr(self.inner, name)  # such as the arcs of a network

    def get_config(self) -> dict[str, Any]:
        """Returns the configuration of the model inside."""
        return dict(self.inner.get_config())

    def to_spec(self) -> ModelSpec:
        """Returns what builds it anew, in another process for example."""
        return ModelSpec(type(self), {"model": self.inner.to_spec()})

    @property
    def num_cost(self) -> int:
        """The number of costs to be predicted."""
        return int(self.inner.num_cost)

    @property
    def c_pred_index(self) -> Any:
        """Where predicted costs go, if not to all variables."""
        return self.inner.c_pred_index

    def _fullCost(self, pred_cost: Any) -> Any:  # noqa: N802
        return self.inner._fullCost(pred_cost)

    def _setFullObj(self, c: Any) -> None:  # noqa: N802
        self.setObj(c)

    def setObj(self, c: Any) -> None:  # noqa: N802
        """Sets the costs."""
        validate_objective_shape(c, self.num_cost)
        self._costs = np.array(costToNumpy(c), dtype=np.float64)

    def solve(self) -> tuple[FloatArray, float]:
        """Returns the best solution, and its objective."""
        solutions, values = self.solve_batch(self._costs[None])
        return solutions[0], float(values[0])

    def solve_batch(self, costs: Any) -> tuple[FloatArray, FloatArray]:
        """Returns the best solutions under many costs, a row each, and their objectives."""
        matrix, found = np.asarray(costToNumpy(costs), dtype=np.float64), []
        if self.handed:
            for each in matrix:
                self.inner.setObj(each)
                found.append(self.inner.solve())
            return np.array([x for x, _ in found]), np.array([value for _, value in found])
        objectives = np.repeat(self._base[None], len(matrix), axis=0)
        objectives[:, self._columns] += matrix[:, self._cost]
        answers = self.program.solve_all(objectives)
        for lost in np.flatnonzero(np.isnan(answers.objective)).tolist()[:1]:
            answer = answers[lost]
            raise RuntimeError(f"hasten found no solution under costs {lost}: {answer.status} {answer.reason}".rstrip())
        solutions = np.zeros((len(matrix), self.num_cost))  # in PyEPO's order
        np.add.at(solutions.T, self._cost, answers.x[:, self._columns].T)
        return solutions, answers.objective

    def copy(self) -> optHastenModel:
        """Returns a copy, with the same costs."""
        return self._around(self.inner.copy())

    def addConstr(self, coefs: Any, rhs: float) -> optHastenModel:  # noqa: N802
        """Returns a model with one more constraint."""
        return self._around(self.inner.addConstr(coefs, rhs))

    def relax(self) -> Any:
        """Returns the linear relaxation, which is no longer ours to answer."""
        return self.inner.relax()

    def _around(self, inner: Any) -> optHastenModel:
        made = optHastenModel(inner)
        made._costs = self._costs.copy()
        return made


def _solve_batches(one_by_one: Any) -> Any:
    """Returns PyEPO's function for a batch, which asks us for all of it at once where the model is ours."""

    @wraps(one_by_one)
    def solve(cp: Any, optmodel: Any, processes: int, pool: Any) -> Any:
        if not isinstance(optmodel, optHastenModel) or processes != 1:
            return one_by_one(cp, optmodel, processes, pool)
        found, dtype = optmodel.solve_batch(cp), np.result_type(cp.dtype, np.float32)
        return found[0].astype(dtype), found[1].astype(dtype)

    return solve


if hasattr(batches, "_solve_batch_np"):  # PyEPO batches models of one kind alone; others it solves one by one
    batches._solve_batch_np = _solve_batches(batches._solve_batch_np)
