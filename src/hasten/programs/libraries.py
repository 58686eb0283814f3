"""Which library a model is of, and how its models are read and written: see `hasten.programs.adopting`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from hasten.errors import ProgramError
from hasten.programs.statement import Statement
from hasten.support.arrays import FloatArray
from hasten.support.forms import short

# By the package, and the class, that a model is of: the module of its front end.
_LIBRARIES = {
    ("gurobipy", "Model"): "gurobi",
    ("highspy", "Highs"): "highs",
    ("pulp", "LpProblem"): "pulp",
    ("pyomo", "Block"): "pyomo",
    ("ortools", "CpModel"): "cpsat",
    ("ortools", "Solver"): "mpsolver",
    ("ortools", "Model"): "mathopt",
    ("linopy", "Model"): "linopy",
}


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """What is known of a library: how its models, and their variables' names, are read, and how values are written."""

    state: Callable[[Any], Statement]
    names: Callable[[Any], Sequence[str]]
    write: Callable[[Any, FloatArray, bool], None]  # the values, and whether they are optimal


def state(model: Any) -> Statement:
    """Returns what a model states."""
    return front_end(model).state(model)


def check_variables(model: Any, given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Refuses a model whose variables are not those of a program."""
    if len(given) != len(expected):
        what = f"{len(given):,} variables, the program {len(expected):,}"
    elif given != expected:
        at = next(j for j, name in enumerate(given) if name != expected[j])
        what = f"a variable {given[at]!r} where the program has {expected[at]!r}"
    else:
        return
    raise ProgramError(
        f"This {type(model).__name__} has {what}: it is not the model of this program. Adopt it: hasten.adopt(model)."
    )


def place_of(variable: Any) -> int | str | Sequence[str]:
    """Returns the number or the name of a library's variable; for an array of variables, their names."""
    package = type(variable).__module__.split(".")[0]
    if package == "linopy":
        names: Sequence[str] = import_module("hasten.programs.adopting.linopy").names_of(variable)
        return names
    if package in ("gurobipy", "highspy", "ortools") and hasattr(variable, "index"):
        return int(variable.index() if callable(variable.index) else variable.index)
    name = getattr(variable, "name", None)
    if package not in ("pulp", "pyomo", "ortools") or not isinstance(name, str):
        raise ProgramError(
            f"{short(variable)} is not a variable of a model. Name variables, or give the library's own objects."
        )
    return name or f"x{variable.id}"  # MathOpt's without a name are numbered


def front_end(model: Any) -> FrontEnd:
    """Returns the front end of the library that a model is of."""
    for kind in type(model).__mro__:
        module = _LIBRARIES.get((kind.__module__.split(".")[0], kind.__name__))
        if module is not None:
            end = import_module(f"hasten.programs.adopting.{module}")
            return FrontEnd(end.state, end.names, end.write)
    raise ProgramError(
        f"{type(model).__module__}.{type(model).__qualname__} is not a model that can be adopted. Give one of "
        "gurobipy, highspy, PuLP, Pyomo, OR-Tools or linopy, or SciPy's arrays: adopt(c=..., constraints=..., ...)."
    )
