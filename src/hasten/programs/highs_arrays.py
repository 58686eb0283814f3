"""The statement in the arrays that HiGHS holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from hasten.errors import ProgramError
from hasten.programs.statement import GivenColumns, GivenRows, Statement, make_statement

CONTINUOUS, INTEGER = 0, 1  # HiGHS' kinds of columns; others are semicontinuous and the like


def from_highs(said: dict[str, Any], name: str = "") -> Statement:
    """Returns the statement in the arrays that HiGHS holds."""
    kind = np.asarray(said["kind"], dtype=np.int64)
    odd = np.flatnonzero((kind != CONTINUOUS) & (kind != INTEGER))
    if odd.size:
        raise ProgramError(
            f"The variable {said['columns'][odd[0]]!r} is semicontinuous, which is not read. "
            "Say it with a binary variable."
        )
    m = len(said["row_low"])
    start, index = np.asarray(said["start"], dtype=np.int64), np.asarray(said["index"], dtype=np.int64)
    value = np.asarray(said["value"], dtype=np.float64)
    if not said["by_row"]:
        column = np.arange(len(said["low"])).repeat(np.diff(start))
        order = np.argsort(index, kind="stable")
        start = np.searchsorted(index[order], np.arange(m + 1))
        index, value = column[order], value[order]
    products: tuple[Any, Any, Any] = ((), (), ())
    if said.get("hessian"):
        first, right, weight = (np.asarray(each) for each in said["hessian"])
        left = np.arange(len(first) - 1).repeat(np.diff(first))
        products = left, right, np.where(left == right, 0.5, 1.0) * weight  # of the lower triangle of x'Qx / 2
    return make_statement(
        GivenColumns(said["columns"], said["low"], said["high"], kind == INTEGER, said["objective"]),
        GivenRows(start, index, value, said["row_low"], said["row_high"], said["rows"]),
        name=name,
        constant=said["constant"],
        maximize=said["maximize"],
        products=products,
    )
