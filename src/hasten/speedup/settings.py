"""The settings of a speedup: what they may be, and what they make of its parts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hasten.errors import ProblemError, SchemaError
from hasten.learning.gate import Gate
from hasten.learning.learner import Learner
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solutions
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.search.reduced import ReducedSearch
from hasten.search.searcher import Searcher
from hasten.solvers import Solver, check_solver, is_ours, make_solver
from hasten.solvers.failures import OnError
from hasten.speedup.agreeing import OnDisagreement
from hasten.speedup.audit import Audit
from hasten.speedup.estimator import Estimator, not_fitted
from hasten.speedup.gated import GatedSearch
from hasten.speedup.mode import Mode
from hasten.speedup.pool import AnswerPool
from hasten.speedup.state import Memory
from hasten.support.arrays import FloatArray
from hasten.support.checks import check_limit, check_number, check_switch, check_whole

MAX_PAST = 2**16
SWITCHES = ("prove", "enforce", "look_ahead", "reduce", "repair", "learn", "progress")


class Settings(Estimator):
    """Has what `Speedup` is made with, what it keeps from call to call, and the parts that these ask for."""

    def __init__(
        self,
        schema: Schema,
        *,
        solver: str | Solver | Callable[[Problem], Any] = "highs",
        prove: bool = True,
        on_error: str = OnError.KEEP.value,
        on_disagreement: str = OnDisagreement.RAISE.value,
        mode: str = Mode.CERTIFIED.value,
        width: int = 2,
        enforce: bool = True,
        look_ahead: bool = True,
        theta: float = math.inf,
        spread: float = math.inf,
        reduce: bool = True,
        guided: bool | None = None,
        repair: bool = True,
        learn: bool = False,
        audit: float = 0.02,
        min_agreement: float | None = 0.95,
        learner: Learner | None = None,
        gate: Gate | None = None,
        max_nodes: int | None = None,
        past: int = 0,
        time_limit: float | None = None,
        call_limit: float | None = None,
        solver_options: Mapping[str, Any] | None = None,
        n_jobs: int = 1,
        seed: int = 0,
        progress: bool = False,
    ) -> None:
        super().__init__()
        self.schema = schema
        self.solver = solver
        self.prove = prove
        self.on_error = on_error
        self.on_disagreement = on_disagreement
        self.mode = mode
        self.width = width
        self.enforce = enforce
        self.look_ahead = look_ahead
        self.theta = theta
        self.spread = spread
        self.reduce = reduce
        self.guided = guided
        self.repair = repair
        self.learn = learn
        self.audit = audit
        self.min_agreement = min_agreement
        self.learner = learner
        self.gate = gate
        self.max_nodes = max_nodes
        self.past = past
        self.time_limit = time_limit
        self.call_limit = call_limit
        self.solver_options = solver_options
        self.n_jobs = n_jobs
        self.seed = seed
        self.progress = progress
        self._made: tuple[object, object, Solver] | None = None
        self._kept: Memory | None = None
        self._certifier: Certifier | None = None
        self._compares = False  # whether the solver is the user's own, which proofs are compared with

    @property
    def _memory(self) -> Memory:
        """What it keeps from call to call; begun, with the settings as they are then, when it is first needed."""
        if self._kept is None:
            with self._lock:
                if self._kept is None:
                    check_whole("seed", self.seed, most=None)
                    self._kept = Memory(np.random.default_rng(self.seed), guided=not self.enforce)
        return self._kept

    def _requires_fit(self) -> bool:
        return self.mode != Mode.CERTIFIED and not self.learn

    def __sklearn_is_fitted__(self) -> bool:
        learned = self._memory.choice if self.mode == Mode.LEARNED else self._memory.learned
        return not self._requires_fit() or learned is not None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_made": None}  # a solver at work stays in its process

    def _search(self, batch: Batch) -> Solutions:
        """Searches as set, with the weights as they are now; by the gate, if it has learned."""
        search = self._gated() or self._search_by(self._guide())
        found = search(batch, n_jobs=self.n_jobs)
        pool = self._pool()
        if pool is None or batch.lazy or not self._proves:  # costs must be known, and be all that counts
            return found
        past = pool.best(batch)
        better = past.valid & (~found.valid | (past.cost < found.cost))
        return found.replace(better, past.select(better)) if better.any() else found

    def _gated(self) -> GatedSearch | None:
        """Returns the search by the gate, if there is one that has learned."""
        with self._lock:
            gated = None if self.gate is None else self._memory.gated
        if gated is None:
            return None
        certifier = Certifier(max_nodes=self.max_nodes, time_limit=self.time_limit, call_limit=self.call_limit)
        return replace(gated, certifier=certifier)

    def _guide(self) -> FloatArray | None:
        with self._lock:
            guided = self._memory.guided if self.guided is None else self.guided
            return self._memory.weights if guided else None

    def _search_by(self, weights: FloatArray | None) -> Searcher:
        return self._reduced(self._beam(weights))

    def _beam(self, weights: FloatArray | None) -> BeamSearch:
        return BeamSearch(self.width, weights, self.enforce, self.look_ahead, self.theta, self.spread)

    def _reduced(self, beam: BeamSearch) -> Searcher:
        """Returns the search over what elimination leaves, where that is the same problem."""
        whole = beam.enforce and beam.weights is None and beam.theta == beam.spread == math.inf
        return ReducedSearch(beam.width, beam.look_ahead) if self.reduce and whole else beam

    def _pool(self) -> AnswerPool | None:
        """Returns the past answers, if they are to be kept."""
        if not self.past:
            return None
        with self._lock:
            memory = self._memory
            if memory.pool is None or memory.pool.max_answers != self.past:
                memory.pool = AnswerPool(self.past)
            return memory.pool

    @property
    def _proves(self) -> bool:
        """Whether proofs count as the black box's answers: unless it is not exact, or turned out to know more."""
        return self.prove and not self._memory.follows

    def _solver(self) -> Solver:
        with self._lock:
            made, options = self._made, self.solver_options
            if made is None or made[0] is not self.solver or made[1] is not options:
                if made is not None and made[0] is not self.solver:  # another one, of which nothing is known
                    self._memory.n_compared, self._memory.follows = 0, False
                made = self._made = self.solver, options, make_solver(self.solver, **(options or {}))
            return made[2]

    def _new_learner(self) -> Learner:
        if self.learner is not None:
            return replace(self.learner)  # with a state of its own
        return Learner(
            self.width,
            enforce=self.enforce,
            look_ahead=self.look_ahead,
            seed=self.seed,
            progress=bool(self.progress),
        )

    def _checked(self, problems: Problem | Batch | Iterable[Problem], learning: bool = False) -> Batch:
        """Returns the problems as a batch; refuses those of another schema, and settings that make no sense."""
        self._settle()
        if not (learning or self.__sklearn_is_fitted__()):
            raise not_fitted(
                "This speedup has not learned anything yet. Call fit, set learn=True to let it learn as it "
                "works, or use mode='certified', which needs no learning."
            )
        batch = as_batch(problems)
        for structure in batch.structures:
            self._check_schema(structure)
        return batch

    def _check_schema(self, structure: Structure) -> None:
        if structure.schema is not self.schema and structure.schema.digest != self.schema.digest:
            raise ProblemError("These problems have another schema than this speedup. Make one for theirs.")

    def _check_settings(self) -> None:
        if not isinstance(self.schema, Schema):
            raise SchemaError(f"A speedup is for the problems of a schema; pass that first, not {self.schema!r}.")
        check_solver(self.solver)
        if self.mode not in list(Mode):
            raise ProblemError(f"mode must be {Mode.choices()}, got {self.mode!r}.")
        if self.on_error not in list(OnError):
            raise ProblemError(f"on_error must be {OnError.choices()}, got {self.on_error!r}.")
        if self.on_disagreement not in list(OnDisagreement):
            raise ProblemError(f"on_disagreement must be {OnDisagreement.choices()}, got {self.on_disagreement!r}.")
        self._compares = not is_ours(self.solver)
        self._beam(None)  # refuses width, theta and spread
        for name in SWITCHES:
            check_switch(name, getattr(self, name))
        check_switch("guided", self.guided, or_none=True)
        check_number("audit", self.audit)
        if self.audit > 1:
            raise ProblemError(f"audit must be a share between 0 and 1, got {self.audit}.")
        Audit(self.min_agreement)
        if self.learner is not None and not isinstance(self.learner, Learner):
            raise ProblemError(f"learner must be a Learner, or None for one as the search needs; got {self.learner!r}.")
        if self.gate is not None and not isinstance(self.gate, Gate):
            raise ProblemError(f"gate must be a Gate, or None for none; got {self.gate!r}.")
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)
        check_whole("past", self.past, most=MAX_PAST)
        check_limit("time_limit", self.time_limit)
        check_limit("call_limit", self.call_limit)
        if self.solver_options is not None and not isinstance(self.solver_options, Mapping):
            raise ProblemError(
                f'solver_options must map names to values, such as {{"max_models": 8}}; got {self.solver_options!r}.'
            )
        check_whole("n_jobs", self.n_jobs, least=1)
        check_whole("seed", self.seed, most=None)
