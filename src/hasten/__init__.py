"""hasten makes a trained structured predictor faster over its lifetime without losing its answers.

The data's way through the package:

    schema -> structure -> problem -> batch -> search | certifier | solver -> solution -> learner -> speedup

The names listed here are public. Each folder is a room, whose own docstring says what it is for and what it may import;
no room imports this one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hasten.errors import (
    HastenError,
    ModelError,
    ProblemError,
    ProgramError,
    SchemaError,
    SolverError,
)
from hasten.learning.gate import Gate
from hasten.learning.learner import Learner
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.rules import Rule
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Source, Status
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch, greedy
from hasten.solvers import Solver, available_solvers, make_solver
from hasten.speedup.on_demand import Family, OnDemand
from hasten.speedup.parts import Certified, Learned, Limits, Search, Trust
from hasten.speedup.predictor import Speedup

if TYPE_CHECKING:
    from hasten.cascade import Cascade
    from hasten.hosts.milp import milp
    from hasten.padded.decoding import decode
    from hasten.programs.adopting import adopt, adopt_all
    from hasten.programs.program import Program
    from hasten.programs.reading import read, read_all
    from hasten.programs.requirements import Requirements

__version__ = "0.1.0"

__all__ = [
    "Batch",
    "BeamSearch",
    "Cascade",
    "Certified",
    "Certifier",
    "Family",
    "Gate",
    "HastenError",
    "Learned",
    "Learner",
    "Limits",
    "ModelError",
    "OnDemand",
    "Problem",
    "ProblemError",
    "Program",
    "ProgramError",
    "Requirements",
    "Rule",
    "Schema",
    "SchemaError",
    "Search",
    "Solution",
    "Solutions",
    "Solver",
    "SolverError",
    "Source",
    "Speedup",
    "Status",
    "Structure",
    "Trust",
    "adopt",
    "adopt_all",
    "available_solvers",
    "decode",
    "greedy",
    "make_solver",
    "milp",
    "read",
    "read_all",
]

_HOSTS = ("cvxpy", "linopy", "pulp", "pyepo", "pyomo")  # modules that are imported once somebody asks for them
_LATER = {  # names likewise, by their module: labelling text needs none of them
    "Cascade": "cascade",
    "milp": "hosts.milp",
    "decode": "padded.decoding",
    **dict.fromkeys(("adopt", "adopt_all"), "programs.adopting"),
    "Program": "programs.program",
    **dict.fromkeys(("read", "read_all"), "programs.reading"),
    "Requirements": "programs.requirements",
}


def __getattr__(name: str) -> Any:
    if name in _HOSTS:
        return import_module(f"hasten.{name}")
    if name in _LATER:
        found = globals()[name] = getattr(import_module(f"hasten.{_LATER[name]}"), name)
        return found
    raise AttributeError(f"module 'hasten' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Lists what is public, for completion: neither the rooms nor what they keep to themselves."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
