"""`milp` with the signature and the result of SciPy's, for one objective or many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.hosts.asking import Asking, Outcome, handed_over, in_words, missing, outcome, refuse_options, relative_gap
from hasten.programs.adopting.matrices import state_arrays
from hasten.programs.answer import Answer, Answers
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
    given = dict(options or {})
    refuse_options(list(given), OPTIONS, "milp")
    rows, cost = (given, integrality, bounds, constraints), _numbers(c)
    many = cost if cost is not None and cost.ndim == 2 else None
    why = _not_ours(given, integrality)
    if not why:
        first = c if many is None else many[0] if len(many) else np.zeros(many.shape[1])
        try:
            statement = state_arrays(first, integrality=integrality, bounds=bounds, constraints=constraints)
        except ProgramError as error:
            why = str(error).rstrip(".")
    if why and many is not None:
        return _gathered(optimize, [_hand_over(optimize, each, rows, why) for each in many], many.shape[1])
    if why:
        return _hand_over(optimize, c, rows, why)
    asking = Asking(given.get("time_limit"), given.get("mip_rel_gap"), None, print if given.get("disp") else None)
    if many is not None:
        return _results(optimize, asking.all(statement, many))
    return _result(optimize, asking.one(statement))


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


def _hand_over(optimize: Any, c: Any, rows: tuple[Any, ...], why: str) -> Any:
    options, integrality, bounds, constraints = rows
    result = optimize.milp(c, integrality=integrality, bounds=bounds, constraints=constraints, options=options)
    result.message = f"{result.message} {handed_over(why)}"
    return result


def _result(optimize: Any, answer: Answer) -> Any:
    status, found = _CODES[outcome(answer)], answer.values_found is not None
    return optimize.OptimizeResult(
        status=status,
        message=in_words(answer),
        success=status == 0,
        x=answer.values_found,
        fun=answer.objective if found else None,
        mip_node_count=None,
        mip_dual_bound=answer.bound if found else None,
        mip_gap=float(relative_gap(answer)) if found else None,
    )


def _results(optimize: Any, answers: Answers) -> Any:
    status = np.array([_CODES[outcome(answer)] for answer in answers], dtype=np.int64)
    return optimize.OptimizeResult(
        status=status,
        message=[f"{answer.how} {answer.reason}".rstrip() for answer in answers],
        success=status == 0,
        x=answers.x,
        fun=answers.objective,
        mip_node_count=None,
        mip_dual_bound=answers.bound,
        mip_gap=relative_gap(answers),
    )


def _gathered(optimize: Any, results: list[Any], n: int) -> Any:
    names = ("fun", "mip_dual_bound", "mip_gap")
    numbers = {name: np.array([np.nan if each[name] is None else each[name] for each in results]) for name in names}
    status = np.array([each.status for each in results], dtype=np.int64)
    x = np.array([np.full(n, np.nan) if each.x is None else each.x for each in results]).reshape(len(results), n)
    message = [each.message for each in results]
    return optimize.OptimizeResult(
        status=status, success=status == 0, message=message, x=x, mip_node_count=None, **numbers
    )
