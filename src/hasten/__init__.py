"""hasten makes a trained structured predictor faster over its lifetime without losing its answers.

The data's way through the package:

    schema -> structure -> problem -> batch -> search | certifier | solver -> solution -> learner -> speedup
"""

from hasten.batch import Batch
from hasten.bound import Certifier
from hasten.calibrate import Calibration
from hasten.check import Check, Violation
from hasten.errors import (
    CorpusError,
    HastenError,
    ModelError,
    NoAnswerError,
    NotFittedError,
    ProblemError,
    SchemaError,
    SolverError,
    SolverMissing,
    SolverTooSmall,
    SolverWrong,
    WriteError,
)
from hasten.heuristic import Heuristic
from hasten.learner import Learner
from hasten.problem import Problem, Scorer
from hasten.schema import FactorKind, Schema, VariableKind
from hasten.search import BeamSearch, ConstrainedSearch, ReducedSearch, greedy
from hasten.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status
from hasten.solvers import Solver, available_solvers, make_solver
from hasten.speedup import Speedup
from hasten.structure import Rule, Structure

__version__ = "0.1.0"

__all__ = [
    "SOURCES",
    "STATUSES",
    "Batch",
    "BeamSearch",
    "Calibration",
    "Certifier",
    "Check",
    "ConstrainedSearch",
    "CorpusError",
    "FactorKind",
    "HastenError",
    "Heuristic",
    "Learner",
    "ModelError",
    "NoAnswerError",
    "NotFittedError",
    "Problem",
    "ProblemError",
    "ReducedSearch",
    "Rule",
    "Schema",
    "SchemaError",
    "Scorer",
    "Solution",
    "Solutions",
    "Solver",
    "SolverError",
    "SolverMissing",
    "SolverTooSmall",
    "SolverWrong",
    "Source",
    "Speedup",
    "Status",
    "Structure",
    "VariableKind",
    "Violation",
    "WriteError",
    "available_solvers",
    "greedy",
    "make_solver",
]
