"""Which library a model is of, and how its models are read and written: see `hasten.programs.adopting`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.support.forms import short

# By the package, and the class, that a model is of: the module and the class of its front end.
_LIBRARIES = {
    ("gurobipy", "Model"): ("modelling", "Gurobi"),
    ("pulp", "LpProblem"): ("modelling", "PuLP"),
    ("pyomo", "Block"): ("modelling", "Pyomo"),
    ("highspy", "Highs"): ("matrices", "Highspy"),
    ("linopy", "Model"): ("matrices", "Linopy"),
    ("ortools", "CpModel"): ("ortools", "CpSat"),
    ("ortools", "Solver"): ("ortools", "MPSolver"),
    ("ortools", "Model"): ("ortools", "MathOpt"),
}


def front_end(model: Any) -> Any:
    """Returns what reads and writes models of a library, by `state`, `names` and `write`."""
    for kind in type(model).__mro__:
        found = _LIBRARIES.get((kind.__module__.split(".")[0], kind.__name__))
        if found is not None:
            return getattr(import_module(f"hasten.programs.adopting.{found[0]}"), found[1])()
    if isinstance(model, str | os.PathLike):
        raise ProgramError(f"{short(model)} is not a model that can be adopted. Read files with hasten.read.")
    raise ProgramError(
        f"{type(model).__module__}.{type(model).__qualname__} is not a model that can be adopted. Give one of "
        "gurobipy, highspy, PuLP, Pyomo, OR-Tools or linopy, or SciPy's arrays: adopt(c=..., constraints=..., ...)."
    )


def check_variables(model: Any, given: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """Refuses a model whose variables are not those of a program."""
    if given == expected:
        return
    what = f"{len(given):,} variables, the program {len(expected):,}"
    if len(given) == len(expected):
        theirs, ours = next(pair for pair in zip(given, expected, strict=True) if pair[0] != pair[1])
        what = f"a variable {theirs!r} where the program has {ours!r}"
    raise ProgramError(
        f"This {type(model).__name__} has {what}: it is not the model of this program. Adopt it: hasten.adopt(model)."
    )


def place_of(variable: Any) -> int | str | Sequence[int | str]:
    """Returns the number or the name of a library's variable; for an array of variables, theirs."""
    package = type(variable).__module__.split(".")[0]
    if package == "gurobipy" and hasattr(variable, "tolist"):  # a matrix of Gurobi's
        return [each.index for each in np.ravel(variable.tolist()).tolist()]
    if package == "linopy":
        names: Sequence[str] = import_module("hasten.programs.adopting.matrices").names_of(variable)
        return names
    if package in ("gurobipy", "highspy", "ortools") and hasattr(variable, "index"):
        return int(variable.index() if callable(variable.index) else variable.index)
    name = getattr(variable, "name", None)
    if package not in ("pulp", "pyomo", "ortools") or not isinstance(name, str):
        raise ProgramError(
            f"{short(variable)} is not a variable of a model. Name variables, or give the library's own objects."
        )
    return name or f"x{variable.id}"  # MathOpt's without a name are numbered
