"""hasten as a solver of PuLP: `problem.solve(hasten.pulp.HASTEN(timeLimit=10))`.

Importing this module lists it: `pulp.listSolvers()`, `pulp.getSolver("HASTEN")`. Imports `hasten.hosts` and the rooms
below it.
"""

from __future__ import annotations

from typing import Any

from hasten.hosts.asking import Asking, Outcome, activity, handed_over, missing, outcome, refuse_options, start_of
from hasten.programs.adopting.modelling import PuLP
from hasten.programs.answer import Answer
from hasten.programs.native import highs_is_elsewhere

try:
    import pulp
except ImportError as error:
    raise missing("pulp", error) from None

OPTIONS = ("mip", "msg", "timeLimit", "gapRel", "warmStart", "threads")
_CODES = {
    Outcome.OPTIMAL: (pulp.LpStatusOptimal, pulp.LpSolutionOptimal),
    Outcome.FEASIBLE: (pulp.LpStatusOptimal, pulp.LpSolutionIntegerFeasible),
    Outcome.INFEASIBLE: (pulp.LpStatusInfeasible, pulp.LpSolutionInfeasible),
    Outcome.UNBOUNDED: (pulp.LpStatusUnbounded, pulp.LpSolutionUnbounded),
    Outcome.NOTHING: (pulp.LpStatusNotSolved, pulp.LpSolutionNoSolutionFound),
    Outcome.FAILED: (pulp.LpStatusUndefined, pulp.LpSolutionNoSolutionFound),
}


class HASTEN(pulp.LpSolver):  # type: ignore[misc]
    """Answers with a proof where it can. A model that was solved before, with another objective, is recognised.

    mip
        False relaxes whole variables: such models, and those without any, are handed to HiGHS, for dual values too.
    msg
        Whether to print what was recognised and found.
    timeLimit
        Seconds.
    gapRel
        The relative gap that is enough. Without, recognised models are answered to optimality; others take HiGHS' own.
    warmStart
        Whether to start from the values that the variables have (`setInitialValue`).
    threads
        For HiGHS, where a model is handed over; all else takes one.

    `answer` is the last answer, with its bound and whether it is proved; None where the model was handed over, and
    `handed` says why.
    """

    name = "HASTEN"

    def __init__(
        self,
        mip: bool = True,
        msg: bool = True,
        timeLimit: float | None = None,
        gapRel: float | None = None,
        warmStart: bool = False,
        threads: int | None = None,
        **options: Any,
    ) -> None:
        refuse_options(list(options), OPTIONS, "pulp")
        given = {"gapRel": gapRel, "warmStart": warmStart, "threads": threads}
        super().__init__(mip=mip, msg=msg, timeLimit=timeLimit, **given)
        self.answer: Answer | None = None
        self.handed = ""

    def available(self) -> bool:
        """Whether it can be used: yes."""
        return True

    def copy(self) -> HASTEN:
        """Returns a solver with the same options."""
        given = {name: value for name, value in self.optionsDict.items() if name in OPTIONS}
        return HASTEN(mip=self.mip, msg=self.msg, timeLimit=self.timeLimit, **given)

    def actualSolve(self, lp: Any, callback: Any = None) -> int:  # noqa: N802
        """Solves a model of PuLP, and writes values, slacks and the status into it."""
        self.answer, self.handed = None, ""
        variables = lp.variables()
        if (
            not (self.mip and any(variable.cat == pulp.LpInteger for variable in variables))
            and not highs_is_elsewhere()
        ):
            return self._hand_over(lp, "no variable is whole" if self.mip else "mip=False relaxes it")
        start = start_of(each.varValue for each in variables) if self.optionsDict.get("warmStart") else None
        say = print if self.msg else None
        statement = PuLP().state(lp)
        answer = Asking(self.timeLimit, self.optionsDict.get("gapRel"), start, say).one(statement)
        self.answer, codes = answer, _CODES[outcome(answer)]
        if answer.values_found is not None:
            for variable, value in zip(variables, answer.x.tolist(), strict=True):
                variable.varValue = value
            sums = activity(statement, answer.x).tolist()
            for row, total in zip(lp.constraints.values(), sums, strict=True):
                slack = total + row.constant
                row.slack = -slack if row.sense == pulp.LpConstraintLE else slack
        lp.assignStatus(*codes)
        return int(codes[0])

    def _hand_over(self, lp: Any, why: str) -> int:
        self.handed = handed_over(why)
        if self.msg:
            print(self.handed)
        limits = {"timeLimit": self.timeLimit, "gapRel": self.optionsDict.get("gapRel")}
        threads = self.optionsDict.get("threads")
        return int(pulp.HiGHS(mip=self.mip, msg=self.msg, threads=threads, **limits).actualSolve(lp))


_listed = getattr(pulp.apis, "_all_solvers", [])
if HASTEN not in _listed:
    _listed.append(HASTEN)
