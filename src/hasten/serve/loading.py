"""The kinds of models that can be served, one entry each: how a file is recognised, and what loads it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hasten.errors import ModelError, ProblemError
from hasten.journal import Journal
from hasten.model.structure import Structure
from hasten.serve.served import Served
from hasten.solvers import check_solver
from hasten.support.environment import named
from hasten.support.forms import format_of


@dataclass(frozen=True)
class Source:
    """A model to be served: its file, and what the file does not hold.

    structures
        "module:name" of the structures of a speedup's problems: a `Structure`, a mapping of them by name, or a function
        without arguments that returns either.
    solver
        Who is asked where nothing is proved; None takes the model's own.
    name
        What the model is called in addresses; the name of its file by default.
    task, black_box, risk, per_hour, journal
        Of a cascade: its task (`hasten.cascade.boxes.TASKS`, or "module:name"), an address, a command or
        "module:name" of its black box, and what a new one gets, if the file is not there yet.
    """

    path: str
    structures: str | None = None
    solver: str | None = None
    name: str | None = None
    task: str | None = None
    black_box: str | None = None
    risk: float = 0.02
    per_hour: int | None = None
    journal: Journal | None = None
    seconds: float = 60.0  # that a black box may take

    def __call__(self) -> Served[Any]:
        """Loads the model."""
        path, name = Path(self.path), self.name or Path(self.path).name.partition(".")[0]
        if path.is_dir():
            raise ModelError(f"{path} is a directory. Name the file of a model.")
        if not re.fullmatch(r"[\w.-]+", name, re.ASCII):
            raise ProblemError(f"A model's name has letters, digits, dots, dashes and underscores; got {name!r}.")
        if self.solver is not None:
            check_solver(self.solver)
        if not path.is_file() and self.black_box is not None:
            return _cascade(self, name, "new")
        if not path.is_file():
            raise ModelError(f"There is no file {path}. A new cascade needs --task and --black-box.")
        version = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
        found = format_of(path) or path.name
        for recognises, load in KINDS.items():
            if re.search(recognises, found):
                if load is not _cascade and (self.task is not None or self.black_box is not None):
                    raise ProblemError(f"{path} is no cascade. Leave --task and --black-box out.")
                if load is not _speedup and self.structures is not None:
                    raise ProblemError(f"{path} is no speedup. Leave --structures out.")
                return load(self, name, version)
        raise ModelError(
            f"{path} cannot be served. Give a saved Speedup or cascade, what `hasten train` or `hasten tag train` "
            "wrote, or a program (.mps, .lp, .wcsp, .cfn, .uai, .wcnf)."
        )


def _speedup(source: Source, name: str, version: str) -> Served[Any]:
    from hasten.serve.problems import ServedSpeedup
    from hasten.speedup.predictor import Speedup

    if source.structures is None:
        raise ProblemError(
            f"{source.path} is a speedup; a file holds no structures. Say where they are: --structures module:name."
        )
    found = named(source.structures, "shop:structures")
    if callable(found):
        found = found()
    structures = {"problem": found} if isinstance(found, Structure) else found
    good = isinstance(structures, Mapping) and all(isinstance(each, Structure) for each in structures.values())
    if not good or not structures:
        raise ProblemError(f"{source.structures} should be a Structure, or a mapping of structures by name.")
    schema = next(iter(structures.values())).schema
    speedup = Speedup.load(source.path, schema, solver=source.solver)
    return ServedSpeedup(name, version, speedup, structures)


def _labeller(source: Source, name: str, version: str) -> Served[Any]:
    from hasten.serve.texts import ServedLabeller
    from hasten.tasks.entity_relation.tagger import Tagger

    tagger = Tagger.load(source.path)
    return ServedLabeller(name, version, tagger if source.solver is None else tagger.asking(solver=source.solver))


def _tagger(source: Source, name: str, version: str) -> Served[Any]:
    from dataclasses import replace

    from hasten.serve.texts import ServedTagger
    from hasten.tasks.tagging.tagger import SequenceTagger

    tagger = SequenceTagger.load(source.path)
    return ServedTagger(name, version, tagger if source.solver is None else replace(tagger, solver=source.solver))


def _program(source: Source, name: str, version: str) -> Served[Any]:
    from hasten.programs.reading import read
    from hasten.serve.problems import ServedProgram

    return ServedProgram(name, version, read(source.path), source.solver or "highs")


def _cascade(source: Source, name: str, version: str) -> Served[Any]:
    from hasten.cascade import Budget, Cascade, load
    from hasten.cascade.boxes import box_of, nobody, task_of
    from hasten.serve.texts import ServedCascade

    if source.task is None or source.black_box is None:
        raise ProblemError(f"{source.path} is a cascade. Say which --task it is for, and its --black-box.")
    task, path = task_of(source.task), Path(source.path)
    box = box_of(source.black_box, task, source.seconds)
    kept: dict[str, Any] = {"budget": Budget(per_hour=source.per_hour), "journal": source.journal}
    if path.is_file():
        cascade = load(path, task, box or nobody, **kept)
    else:
        cascade = Cascade(task, box or nobody, risk=source.risk, **kept)
    served = ServedCascade(name, version, cascade, path)
    served.box = None if box is not None else source.black_box
    return served


KINDS: dict[str, Callable[[Source, str, str], Served[Any]]] = {
    r"^hasten\.speedup/": _speedup,
    r"^hasten\.cascade/": _cascade,
    r"^hasten\.tagger/": _labeller,
    r"^hasten\.sequence-tagger/": _tagger,
    r"\.(mps|lp|wcsp|cfn|uai|cnf|wcnf)(\.gz)?$": _program,
}
