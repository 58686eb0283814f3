"""Programs in the objects of modelling libraries, each imported only when one of its models comes.

Imports `hasten.programs` and the rooms below it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hasten.errors import ProgramError
from hasten.programs.adopting.matrices import state_arrays
from hasten.programs.libraries import front_end
from hasten.programs.program import Program, share_kinds
from hasten.support.checks import listed

ARRAYS = ("c", "integrality", "bounds", "constraints", "names")


def adopt(model: Any = None, /, *, like: Program | None = None, **arrays: Any) -> Program:
    """Returns the program that a model of another library states; the model is left as it is.

    model
        A model of gurobipy, highspy, PuLP, Pyomo, OR-Tools (CP-SAT, MPSolver, MathOpt) or linopy. Or none: then
        `c`, `integrality`, `bounds` and `constraints` are those of `scipy.optimize.milp`.
    like
        A program whose kinds to use, if they suffice: then what was learned for it applies to this one.
    """
    if model is None:
        unknown = [name for name in arrays if name not in ARRAYS]
        if unknown or "c" not in arrays:
            what = f"there is no {unknown[0]!r}" if unknown else "there is neither a model nor c"
            raise ProgramError(f"adopt takes a model, or SciPy's arrays: {', '.join(ARRAYS)}; {what}.")
        return Program(state_arrays(**arrays), like)
    if arrays:
        raise ProgramError(f"A model brings everything with it; {', '.join(arrays)} goes with SciPy's arrays alone.")
    return Program(front_end(model).state(model), like)


def adopt_all(models: Iterable[Any]) -> list[Program]:
    """Returns several models, of any sizes, as programs with one schema: what is learned on some applies to all."""
    return share_kinds([Program(front_end(model).state(model)) for model in listed(models, "The models", ProgramError)])
