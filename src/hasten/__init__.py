"""hasten makes a trained structured predictor faster over its lifetime without losing its answers.

The data's way through the package:

    schema -> structure -> problem -> batch -> search | certifier | solver -> solution -> learner -> speedup

What is listed here is public. Each folder is a room, whose own docstring says what it is for and what it may import;
no room imports this one.
"""

from hasten.errors import (
    CorpusError,
    HastenError,
    MissingExtra,
    ModelError,
    NoAnswerError,
    NotFittedError,
    ProblemError,
    ProgramError,
    SchemaError,
    SolverDisagrees,
    SolverError,
    SolverMissing,
    SolverTooSmall,
    SolverWrong,
    WorkerError,
    WriteError,
)
from hasten.learning.gate import Gate
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.learning.tables import LearnedTables
from hasten.model.batch import Batch
from hasten.model.families import Family
from hasten.model.kinds import FactorKind, VariableKind
from hasten.model.problem import Problem, Scorer
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.shapes import RuleArrays
from hasten.model.solution import SOURCES, STATUSES, Solution, Solutions, Source, Status
from hasten.model.structure import Structure
from hasten.model.violations import Check, Violation
from hasten.programs.adopting import adopt, adopt_all
from hasten.programs.answer import Answer, Answers
from hasten.programs.program import Program
from hasten.programs.reading import read, read_all
from hasten.proof.certifier import Certifier
from hasten.proof.ranking import MinMarginals, Ranking
from hasten.search.beam import BeamSearch, greedy
from hasten.search.constrained import ConstrainedSearch
from hasten.search.reduced import ReducedSearch
from hasten.search.theta import FORCED
from hasten.solvers import Solver, available_solvers, make_solver
from hasten.speedup.calibration import Calibration
from hasten.speedup.choosing import Choice, Way
from hasten.speedup.gated import GateCalibration, GatedSearch, calibrate_gate
from hasten.speedup.history import History
from hasten.speedup.on_demand import OnDemand
from hasten.speedup.pool import AnswerPool
from hasten.speedup.predictor import Speedup
from hasten.trace.events import Trace

__version__ = "0.1.0"

__all__ = [
    "FORCED",
    "SOURCES",
    "STATUSES",
    "Answer",
    "AnswerPool",
    "Answers",
    "Batch",
    "BeamSearch",
    "Calibration",
    "Certifier",
    "Check",
    "Choice",
    "ConstrainedSearch",
    "CorpusError",
    "FactorKind",
    "Family",
    "Gate",
    "GateCalibration",
    "GatedSearch",
    "HastenError",
    "Heuristic",
    "History",
    "LearnedTables",
    "Learner",
    "MinMarginals",
    "MissingExtra",
    "ModelError",
    "NoAnswerError",
    "NotFittedError",
    "OnDemand",
    "Problem",
    "ProblemError",
    "Program",
    "ProgramError",
    "Ranking",
    "ReducedSearch",
    "Rule",
    "RuleArrays",
    "Schema",
    "SchemaError",
    "Scorer",
    "Solution",
    "Solutions",
    "Solver",
    "SolverDisagrees",
    "SolverError",
    "SolverMissing",
    "SolverTooSmall",
    "SolverWrong",
    "Source",
    "Speedup",
    "Status",
    "Structure",
    "Trace",
    "VariableKind",
    "Violation",
    "Way",
    "WorkerError",
    "WriteError",
    "adopt",
    "adopt_all",
    "available_solvers",
    "calibrate_gate",
    "greedy",
    "make_solver",
    "read",
    "read_all",
]


def __dir__() -> list[str]:
    """Lists what is public, for completion: neither the rooms nor what they keep to themselves."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
