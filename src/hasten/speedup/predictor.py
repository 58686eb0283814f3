"""The product: a predictor that gives the black box's answers, faster, and keeps watch over itself.

It answers in one of three ways. *Certified*: each answer is proved (`hasten.proof.certifier`), or else the solver's;
always the solver's objective. *Learned*: the costs of the declared factors are learned from its answers, and problems
are proved with these tables, or answered by another method, if that agreed with the black box more often
(`hasten.speedup.choosing`). *Search*: the learned beam search is trusted (the paper's speedup), and may leave costs
uncomputed. The last two are audited (`hasten.speedup.strategy`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from hasten.errors import NotFittedError, ProblemError
from hasten.learning.gate import Cheap
from hasten.learning.heuristic import Heuristic
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem, check_one
from hasten.model.schema import Schema
from hasten.model.solution import Answers, Solution, Solutions
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import Searcher
from hasten.solvers import Solver, is_ours
from hasten.speedup import parameters
from hasten.speedup.audit import Agreement
from hasten.speedup.choosing import Choice
from hasten.speedup.oracle import Oracle
from hasten.speedup.parts import Answer, Certified, Limits, Search, Trust, as_answer
from hasten.speedup.skipping import Calibration, Calibrator
from hasten.speedup.state import Counters, History, State
from hasten.speedup.strategy import STRATEGIES, CertifiedStrategy, LearnedStrategy, SearchStrategy
from hasten.support.checks import brief, check_path, check_type, check_whole
from hasten.support.clock import deadline_after, now
from hasten.support.forms import digest_of, load_tensors, save_tensors

if TYPE_CHECKING:
    from hasten.certificates import Certificate


class Speedup(parameters.Estimator):
    """Answers problems of a schema as its black box would, in scikit-learn's manner; threads may share it.

    schema
        The schema of all problems that it will answer.
    solver
        The black box: its name, an object with `solve`, or a function (`make_solver`). "highs", the default, comes with
        the package; "auto" asks whichever installed one is fastest.
    solver_options
        Options that go with the name of a solver: ours, and those of its package (`make_solver`). None by default.
    answer
        How to answer: `Certified()`, the default, proves or solves every answer; `Learned()` learns what the declared
        factors cost, and proves with that; `Search()` trusts the search, as the paper does. "certified", "learned" and
        "search" stand for these with their defaults.
    trust
        How far proofs, the search, what was learned, and the solver are trusted: a `Trust`.
    limits
        How long an answer may take: `Limits`.
    learn
        Whether every answer of the black box teaches: the heuristic or, with `Learned()`, the tables. Off by default:
        `predict` then changes nothing that was learned.
    n_jobs
        How many threads share a batch, at least 1. Answers do not depend on it.
    seed
        Fixes what is drawn: audits, held-out problems and orders of examples.

    Settings may change at any time. As scikit-learn wants it, they are checked when first used after a change.
    """

    _settled = False  # whether the settings were checked as they are
    _quick = False  # whether a single problem is answered by the shortest path

    def __init__(
        self,
        schema: Schema,
        *,
        solver: str | Solver | Callable[[Problem], Any] = "highs",
        solver_options: Mapping[str, Any] | None = None,
        answer: str | Answer = "certified",
        trust: Trust = Trust(),  # noqa: B008, it is frozen
        limits: Limits = Limits(),  # noqa: B008
        learn: bool = False,
        n_jobs: int = 1,
        seed: int = 0,
        **unknown: object,
    ) -> None:
        if unknown:
            raise ProblemError(parameters.no_setting("Speedup", unknown, self._defaults))
        self.schema = schema
        self.solver = solver
        self.solver_options = solver_options
        self.answer = answer
        self.trust = trust
        self.limits = limits
        self.learn = learn
        self.n_jobs = n_jobs
        self.seed = seed
        self._state = State()
        self._oracle = Oracle(self)

    @classmethod
    def paper(cls, schema: Schema, width: int = 2, **settings: Any) -> Speedup:
        """Returns the paper's speedup: a search guided by weights alone, trusted and never repaired."""
        preset: dict[str, Any] = {"answer": Search.paper(width), "trust": Trust(audit=0.0, repair=False)}
        return cls(schema, **(preset | settings))

    @overload
    def predict(self, problems: Problem) -> Solution: ...
    @overload
    def predict(self, problems: Batch | Iterable[Problem]) -> Solutions: ...
    def predict(self, problems: Problem | Batch | Iterable[Problem]) -> Solution | Solutions:
        """Answers one problem or many.

        Trust changes between calls, not within one; but `Learned()` with `learn` takes a large batch in parts.
        """
        if not self._settled:
            self._settle()
        if self._quick and isinstance(problems, Problem):
            self._check_schema(problems.structure)
            return self._oracle.answer_one(problems)
        answers = self._strategy().answer(self._checked(problems))
        return answers.only(problems) if isinstance(problems, Problem) else answers

    def at_once(self, problems: Problem | Batch, *, max_nodes: int = 1000) -> tuple[Any, Any]:
        """Answers without the black box, by limited proofs, and tells which answers to give; `ask` answers the others.

        So a service never lets a quick answer wait for a slow one. Audits are drawn here, and made by `ask`.
        """
        check_whole("max_nodes", max_nodes)
        if not self._settled:
            self._settle()
        if isinstance(problems, Problem) and self._quick:
            self._check_schema(problems.structure)
            return self._oracle.prove_one(problems, max_nodes)
        found, done = self._strategy().at_once(self._checked(problems), max_nodes)
        return (found.only(problems), bool(done[0])) if isinstance(problems, Problem) else (found, done)

    def ask(self, problems: Batch) -> Solutions:
        """Answers problems that `at_once` left open: by the black box, comparing and learning from it."""
        batch, strategy = self._checked(problems), self._strategy()
        own = strategy.has_answers and strategy.trusted
        return strategy.answer_trusted(batch, audit=1.0) if own else strategy.answer(batch)

    @property
    def stateless(self) -> bool:
        """Whether no answer changes how others are answered: nothing is learned, audited or compared."""
        return not self._strategy().has_answers and self._oracle.alone

    def certificate(self, problem: Problem) -> Certificate:
        """Answers a problem, and writes down a proof that `python -m hasten.certificate` checks.

        Whoever answers, the upper limit is what the answer costs, and the proof is the certifier's. Where limits do not
        meet, the answer is not proved the best. Limits of time are those of both together.
        """
        check_one(problem)
        limits = [limit for limit in (self.limits.time_limit, self.limits.call_limit) if limit is not None]
        deadline = deadline_after(min(limits, default=None))
        answer = self.predict(problem)
        left = max(0.0, deadline - now()) if limits else None
        return Certifier(time_limit=left).certificate(problem, answer)

    def score(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> float:
        """Returns the share of problems whose answer costs what the black box's answer costs.

        With `Learned()` it must be the same labelling: the costs alone do not tell what the black box finds cheap.
        It looks at its own answers, trusted or not, and neither counts nor learns. `answers` are the black box's, as
        `fit` takes them, if they are there already; problems without are left out.
        """
        return self._strategy().score(self._checked(problems).resolved(), answers)

    def fit(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> Speedup:
        """Learns from scratch, from the black box's answers, and forgets all it counted.

        It learns the heuristic or, with `Learned()`, tables: `choice` says how it answers since then, and why.
        `answers` are the black box's, if they are there already: for each problem a `Solution`, its labels by number
        or name, or None; or one flat array of numbers (`Learner.fit`).
        """
        if not len(batch := self._checked(problems, learning=True).resolved()):
            raise ProblemError("There are no problems to learn from. Give at least one.")
        answers, calls = self._oracle.label(batch, answers)
        self._begin(self._strategy().fit(batch, answers, calls))
        return self

    def partial_fit(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> Speedup:
        """Goes on learning: one pass over more problems."""
        batch = self._checked(problems, learning=True).resolved()
        answers, calls = self._oracle.label(batch, answers)
        with self._state.lock:
            self._state.counts["solver_calls"] += calls
            numbers = np.full(len(batch), self._state.counts["problems"])
        self._strategy().learn(batch, answers, numbers, now=True)
        return self

    def calibrate(
        self,
        problems: Batch | Iterable[Problem],
        *,
        risk: float = 0.01,
        confidence: float | None = None,
        against: str | None = None,
    ) -> Calibration:
        """Chooses theta: the smallest that changes few answers.

        With a gate, chooses how much doubt that allows instead. `search` has the choice, until `answer` is set anew.

        problems
            New ones, which neither `fit` nor the model has seen, by the hundred; they need no labels.
        risk
            The share of answers that may be changed, between 0 and 1. 0.01 by default.
        confidence
            How sure of that to be, between 0 and 1. 0.95 by default, 0.99 with a gate.
        against
            "search" compares with the search that computes every cost, "solver" with the black box, as a gate must.
        """
        if against is not None and (not isinstance(against, str) or against not in ("search", "solver")):
            raise ProblemError(f"Calibrate against 'search' or 'solver', not {brief(against)}.")
        batch = self._checked(problems)
        return self._searching().calibrate(batch, Calibrator(risk, confidence, self.seed, self.n_jobs), against)

    @property
    def search(self) -> Searcher:
        """The search that `Search()` answers with: learned weights and the calibrated theta included."""
        return self._searching().search

    @property
    def trusted(self) -> bool:
        """Whether the search, or what was learned, answers; if not, the black box does."""
        return self._strategy().trusted

    @property
    def choice(self) -> Choice:
        """How `Learned()` answers, and why: what each method agreed on. `str` says it in a sentence."""
        return LearnedStrategy(self).choice

    @property
    def counters(self) -> Counters:
        """Counts of all that it did since it was made, or fitted."""
        with self._state.lock:
            return self._state.counters

    @property
    def agreement(self) -> Agreement:
        """How often its own answers agreed with the black box's of late, since trust last changed.

        To agree is to cost the same (or less, where the solver ran out of time); with `Learned()`, to be the same.
        """
        with self._state.lock:
            return self._state.audit.agreement

    @property
    def distrust(self) -> Agreement | None:
        """The agreement that ended the trust; None while there is trust."""
        with self._state.lock:
            return self._state.audit.distrust

    @property
    def suspect(self) -> range | None:
        """The answers, counted from 0, that may be wrong, once trust ended; None while it is trusted."""
        with self._state.lock:
            return self._state.audit.suspect

    @property
    def history(self) -> History:
        """The record so far: calls of the black box, agreement, shares proved and learned; `plot` draws it."""
        with self._state.lock:
            return self._state.history

    @property
    def heuristic(self) -> Heuristic:
        """The heuristic learned so far, as a value."""
        with self._state.lock:
            if self._state.learner is None:
                raise NotFittedError("This speedup has not learned anything yet. Call fit or partial_fit.")
            return self._state.learner.heuristic

    @property
    def digest(self) -> str:
        """Changes with all that a file would hold: settings, what was learned, counters and random state."""
        from hasten.speedup.persistence import content

        with self._state.lock:
            return digest_of(*content(self))

    def save(self, path: str | Path) -> None:
        """Writes settings, weights, counters, audits and random state to a file: whole, or not at all."""
        from hasten.speedup.persistence import FORMAT, content

        with self._state.lock:
            save_tensors(path, FORMAT, *content(self))

    @classmethod
    def load(
        cls,
        path: str | Path,
        schema: Schema,
        *,
        solver: str | Solver | Callable[[Problem], Any] | None = None,
        cheap: Mapping[str, Cheap | None] | None = None,
    ) -> Speedup:
        """Reads a speedup that was saved for this schema.

        A `solver` of your own must be given again, and so must the functions for the `cheap` features of a gate.
        """
        from hasten.speedup.persistence import FORMAT, of_content

        check_type(schema, Schema, "The second argument of Speedup.load, after a path,")
        return of_content(cls, check_path(path), load_tensors(path, FORMAT, "speedup"), schema, solver, cheap)

    def for_shard(self, shard: int) -> Speedup:
        """Returns a copy for one piece of the work: it counts from zero, and draws by the seed and the piece alone."""
        mine = deepcopy(self, {id(self.schema): self.schema})
        mine._state.rng, mine._state.history = np.random.default_rng([self.seed, shard]), History()
        mine._state.counts.clear()
        return mine

    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)
        if not name.startswith("_"):
            object.__setattr__(self, "_settled", False)
            if name == "answer" and "_state" in self.__dict__:
                self._state.calibrated = None

    def __sklearn_tags__(self) -> Any:
        return parameters.tags(requires_fit=not self.learn and not isinstance(as_answer(self.answer), Certified))

    def __sklearn_is_fitted__(self) -> bool:
        return self._strategy().fitted

    def _strategy(self) -> CertifiedStrategy:
        return STRATEGIES[type(as_answer(self.answer))](self)

    def _searching(self) -> SearchStrategy:
        strategy = self._strategy()
        if not isinstance(strategy, SearchStrategy):
            why = "computes every cost, so there is no theta to choose"
            raise ProblemError(f"answer={self.answer!r} has no search of its own: it {why}. Use answer='search'.")
        return strategy

    def _begin(self, state: State) -> None:
        """Goes on with a new state; how far the solver was compared with proofs is kept."""
        with self._state.lock:
            state.n_compared, self._state = self._state.n_compared, state

    def _checked(self, problems: Problem | Batch | Iterable[Problem], learning: bool = False) -> Batch:
        """Returns the problems as a batch; refuses those of another schema, and settings that make no sense."""
        if not self._settled:
            self._settle()
        if not (learning or self._quick or self._strategy().fitted):
            raise parameters.not_fitted(
                "This speedup has not learned anything yet. Call fit, set learn=True to let it learn as it works, or "
                "use answer='certified', which needs no learning."
            )
        batch = as_batch(problems)
        for structure in batch.structures:
            self._check_schema(structure)
        return batch

    def _check_schema(self, structure: Structure) -> None:
        if structure.schema is not self.schema and structure.schema.digest != self.schema.digest:
            raise ProblemError("These problems have another schema than this speedup. Make one for theirs.")

    def _settle(self) -> None:
        """Checks the settings, unless they were checked as they are; parts were checked when they were made."""
        self._settled = True  # first, so that what another thread changes meanwhile is checked again
        try:
            parameters.check_settings(self)
        except BaseException:
            self._settled = False
            raise
        answer = as_answer(self.answer)
        plain = isinstance(answer, Certified) and not answer.past and self.trust.prove and is_ours(self.solver)
        self._quick = plain and not self.learn and not self.limits.timed
