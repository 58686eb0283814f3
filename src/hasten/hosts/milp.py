"""`milp` with the signature and the result of SciPy's, for one objective or many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.hosts.asking import Asking, Outcome, handed_over, in_words, missing, outcome, refuse_options, relative_gap
from hasten.programs.adopting.matrices import state_arrays
from hasten.support.arrays import FloatArray, floats

OPTIONS = ("disp", "time_limit", "mip_rel_gap", "presolve", "node_limit")
_CODES = {  # SciPy's
    Outcome.OPTIMAL: 0,
    Outcome.FEASIBLE: 1,
    Outcome.NOTHING: 1,
    Outcome.INFEASIBLE: 2,
    Outcome.UNBOUNDED: 3,
    Outcome.FAILED: 4,
}


def milp(
    c: Any,
    *,
    integrality: Any = None,
    bounds: Any = None,
    constraints: Any = None,
    options: Mapping[str, Any] | None = None,
) -> Any:
    """Minimises as `scipy.optimize.milp` does, and returns its result; `c` may be a matrix, an objective in each row.

    With a matrix, `x`, `fun`, `status`, `success`, `message`, `mip_dual_bound` and `mip_gap` have an entry for each
    objective; `x` and `fun` are nan without an answer. The same constraints are recognised when they come again.

    options
        SciPy's: `disp`, `time_limit`, `mip_rel_gap` (without, recognised programs are answered to optimality),
        `presolve`, `node_limit`. The last two are HiGHS': with them, as without whole variables or with semicontinuous
        ones, SciPy answers itself, and `message` says so.
    """
    try:
        from scipy import optimize
    except ImportError as error:
        raise missing("scipy", error) from None
    given, cost = dict(options or {}), _numbers(c)
    refuse_options(list(given), OPTIONS, "milp")
    rows = {"integrality": integrality, "bounds": bounds, "constraints": constraints}
    many = cost if cost is not None and cost.ndim == 2 else None
    first = c if many is None else many[0] if len(many) else np.zeros(many.shape[1])
    why = _not_ours(given, integrality)
    try:
        statement = None if why else state_arrays(first, **rows)
    except ProgramError as error:
        statement, why = None, str(error).rstrip(".")
    if statement is None:  # SciPy answers
        results = [optimize.milp(each, **rows, options=given) for each in ([c] if many is None else many)]
        for each in results:
            each.message = f"{each.message} {handed_over(why)}"
        if many is None:
            return results[0]
        names = ("fun", "mip_dual_bound", "mip_gap")
        found = {name: np.array([np.nan if each[name] is None else each[name] for each in results]) for name in names}
        x = [np.full(many.shape[1], np.nan) if each.x is None else each.x for each in results]
        found["x"] = np.array(x).reshape(many.shape)
        status, message = [each.status for each in results], [each.message for each in results]
    else:
        asking = Asking(given.get("time_limit"), given.get("mip_rel_gap"), None, print if given.get("disp") else None)
        if many is None:
            answer = asking.one(statement)
            code, there = _CODES[outcome(answer)], answer.values_found is not None
            return optimize.OptimizeResult(
                status=code,
                message=in_words(answer),
                success=code == 0,
                x=answer.values_found,
                fun=answer.objective if there else None,
                mip_node_count=None,
                mip_dual_bound=answer.bound if there else None,
                mip_gap=float(relative_gap(answer)) if there else None,
            )
        answers = asking.all(statement, many)
        found = {"x": answers.x, "fun": answers.objective, "mip_dual_bound": answers.bound}
        found["mip_gap"] = relative_gap(answers)
        status = [_CODES[outcome(answer)] for answer in answers]
        message = [f"{answer.how} {answer.reason}".rstrip() for answer in answers]
    codes = np.array(status, dtype=np.int64)
    return optimize.OptimizeResult(status=codes, success=codes == 0, message=message, mip_node_count=None, **found)


def _numbers(c: Any) -> FloatArray | None:
    try:
        return floats(c)
    except (TypeError, ValueError):
        return None  # SciPy says what is wrong with it


def _not_ours(options: Mapping[str, Any], integrality: Any) -> str:
    """Returns why SciPy answers itself, or ""."""
    if options.get("node_limit") is not None or options.get("presolve", True) is not True:
        return "node_limit and presolve are HiGHS' own options"
    kind = None if integrality is None else _numbers(integrality)
    if kind is None or not kind.any():
        return "no variable is whole"
    return "a variable is semicontinuous" if np.isin(kind, (2, 3)).any() else ""
