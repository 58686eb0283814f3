"""The product: a predictor that gives the black box's answers, faster, and keeps watch over itself.

Three modes. *Certified*: each answer is proved (`hasten.proof.certifier`), or else the solver's; always the solver's
objective. *Learned*: what the declared factors cost is learned from the black box's answers, and problems are proved
with these tables, or answered in another way, if that agreed with the black box more often (`hasten.speedup.choosing`).
*Search*: the learned beam search is trusted (the paper's speedup), and may leave costs uncomputed.

The last two are audited: a share of their answers is compared with the black box's. While agreement is surely too low,
the black box answers everything and they are tried in its shadow, until they have recovered (`hasten.speedup.audit`).
With `learn`, every answer of the black box teaches; in learned mode the black box is then also asked where tables
learned from different answers disagree, which is where it teaches most.

The black box's answer is an optimum: proved where we can, the solver's elsewhere. For a solver that is exact
that is the same. One that is not, on purpose, is asked every time if `prove` is off.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np
from rich.console import Console

from hasten.errors import NotFittedError, ProblemError, SchemaError, SolverDisagrees
from hasten.learning.gate import Cheap, Gate
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions, Status, same_labels
from hasten.model.structure import Structure
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.search.reduced import ReducedSearch
from hasten.search.searcher import Searcher
from hasten.solvers import Progress, Solver, check_solver, is_ours, make_solver, solve_all
from hasten.solvers.failures import OnError, warn_of_failures
from hasten.speedup.agreeing import OnDisagreement, compare
from hasten.speedup.audit import Agreement, Audit, Counters
from hasten.speedup.black_box import prove_or_solve
from hasten.speedup.calibration import Calibration, calibrate, disagreeing
from hasten.speedup.choosing import Choice, Ways, answer, choose, doubted
from hasten.speedup.estimator import Estimator, not_fitted
from hasten.speedup.gated import GateCalibration, GatedSearch, calibrate_gate
from hasten.speedup.guidance import ENOUGH, learn_and_try
from hasten.speedup.history import History
from hasten.speedup.lifetime import learn_more
from hasten.speedup.mode import Mode
from hasten.speedup.pool import AnswerPool
from hasten.speedup.state import Memory
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.checks import check_limit, check_number, check_switch, check_whole
from hasten.support.progress import show_progress

log = logging.getLogger(__name__)
PART, TRUSTED_PART = 64, 1024  # problems that learned mode takes at a time while it learns: not trusted, trusted
MAX_PAST = 2**16
SWITCHES = ("prove", "enforce", "look_ahead", "reduce", "search_first", "repair", "learn", "progress")


class Speedup(Estimator):
    """Answers problems of a schema as its black box would, in scikit-learn's manner.

    schema
        The schema of all problems that it will answer.

    The black box:

    solver
        Its name, an object with `solve`, or a function (`make_solver`). "highs", the default, comes with the package.
    solver_options
        Options that go with the name of a solver: ours, and those of its package (`make_solver`). None by default.
    prove
        Whether an optimum that we prove ourselves counts as its answer, so that it is asked only for the rest. On by
        default, which is right for every exact solver. Turn it off if its answers are not always the cheapest valid
        labelling (it stops early, or prefers what no table states): then it is asked for everything.
    on_disagreement
        What to do where a solver of your own disagrees with a proof: it may know more than the schema, so the first 16
        proofs are compared with it, then a share `audit`. "raise", the default, or "follow" it, as without `prove`.
    on_error
        What to do where the solver fails on a problem: "keep" the other answers and say in this one's `reason` why, the
        default, or "raise".
    max_nodes
        How far a proof branches before the solver is asked (`Certifier`). None, the default, suits most problems.
    past
        How many past answers to keep of each structure (`AnswerPool`), though not in files: the best of them is where
        a proof and the solver start from, and a candidate in search mode. 0, the default, keeps none.
    search_first
        Whether a proof starts from what a search found. Off by default: a proof needs no search.

    How to answer:

    mode
        "certified", the default, proves or solves every answer; "learned" learns what the declared factors cost, and
        proves with that; "search" trusts the search, as the paper does.
    repair
        Whether, in the other modes, the black box answers what they leave invalid. On by default.

    The search (`BeamSearch`):

    width, enforce, look_ahead, theta, spread
        Those of the beam. The defaults (2, on, on, inf, inf) compute every cost; `calibrate` chooses theta.
    reduce
        Whether a search with neither weights nor skipped costs is over what elimination leaves (`ReducedSearch`). On
        by default: each of its nodes sees what eliminated variables will cost.

    Learning:

    guided
        Whether learned weights guide the search. None, the default, leaves it to `fit`, which tries both on
        problems that it holds out.
    learner
        How to learn: a `Learner`. None, the default, learns for the search as set here.
    learn
        Whether every answer of the black box teaches: the heuristic or, in learned mode, the tables. Off by default:
        `predict` then changes nothing that was learned.
    gate
        Which kinds of variables have dear costs, and cheap features of them: a `Gate`. `fit` teaches it, `calibrate`
        chooses how much doubt it allows, and search mode then answers by it (`GatedSearch`) in place of the beam; other
        modes compute every cost. None, the default, has none.

    Trust in what was learned, and in the search:

    audit
        The share, from 0 to 1, of unproved answers that is compared with the black box's. 0.02 by default.
    min_agreement
        The level of agreement, between 0 and 1, below which the search is not trusted. 0.95 by default; None always
        trusts it.

    Limits, in seconds of the wall clock; what runs out of time is the best found so far, and says so:

    time_limit
        How long a problem may take, half of it for the solver. None, the default, is no limit.
    call_limit
        How long all problems of a call may take to be proved or solved. None, the default, is no limit.

    Everything else:

    n_jobs
        How many threads share a batch, at least 1. Answers do not depend on it.
    seed
        Fixes what is drawn: audits, held-out problems and orders of examples.
    progress
        Whether to show bars while it labels and learns. Off by default.
    """

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
        search_first: bool = False,
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
        self.search_first = search_first
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

    @classmethod
    def paper(cls, schema: Schema, width: int = 2, **settings: Any) -> Speedup:
        """Returns the paper's speedup: a search guided by weights alone, trusted and never repaired."""
        preset: dict[str, Any] = {
            "mode": Mode.SEARCH.value,
            "guided": True,
            "enforce": False,
            "look_ahead": False,
            "repair": False,
            "audit": 0.0,
            "learner": Learner.paper(width),
        }
        return cls(schema, width=width, **(preset | settings))

    def fit(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> Speedup:
        """Learns from scratch, from the black box's answers, and forgets all it counted.

        It learns the heuristic or, in learned mode, tables: `choice` says how it answers since then, and why. The
        problems need no labels. `answers` are the black box's, if they are there already: for each problem
        a `Solution`, its labels by number or name, or None; or one flat array of numbers (`Learner.fit`).
        """
        batch = self._checked(problems, learning=True).resolved()
        answers, calls = self._label(batch, answers)
        if self.mode == Mode.LEARNED:
            return self._fit_tables(batch, answers, calls)
        learner, guided = self._new_learner(), not self.enforce
        if self.guided is None and len(batch) >= ENOUGH:
            guided = learn_and_try(learner, batch, answers, self._search_by, seed=self.seed, n_jobs=self.n_jobs)
        else:
            learner.fit(batch, answers)
        counters = Counters(solver_calls=calls, labelled=len(batch), updates=learner.n_mistakes)
        gated = None if self.gate is None else GatedSearch(replace(self.gate).fit(batch, answers))
        with self._lock:
            new = Memory(np.random.default_rng(self.seed), guided, learner, counters)
            new.n_compared, new.follows = self._memory.n_compared, self._memory.follows
            new.gated, new.pool = gated, self._memory.pool
            self._kept = new
        return self

    def partial_fit(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> Speedup:
        """Goes on learning: one pass over more problems."""
        batch = self._checked(problems, learning=True).resolved()
        answers, calls = self._label(batch, answers)
        with self._lock:
            self._memory.count(Counters(solver_calls=calls))
            if self.mode != Mode.LEARNED:
                self._memory.teach(batch, answers, self._new_learner)
        if self.mode == Mode.LEARNED:
            self._learn_tables(batch, answers, now=True)
        return self

    @overload
    def predict(self, problems: Problem) -> Solution: ...
    @overload
    def predict(self, problems: Batch | Iterable[Problem]) -> Solutions: ...
    def predict(self, problems: Problem | Batch | Iterable[Problem]) -> Solution | Solutions:
        """Answers one problem or many.

        Trust and what was learned change between calls, never within one; but learned mode with `learn` takes a large
        batch in parts, each of which is such a call.
        """
        if isinstance(problems, Problem) and self._proves_alone():
            answer = self._prove_one(problems)
            if answer is not None:
                return answer
        batch = self._checked(problems)
        if self.mode == Mode.LEARNED:
            answers = self._in_parts(batch)
        else:
            answers = self._by_search(batch) if self.mode == Mode.SEARCH and self.trusted else self._by_proof(batch)
        return answers.only(problems) if isinstance(problems, Problem) else answers

    def score(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> float:
        """Returns the share of problems whose answer, in this mode, costs what the black box's answer costs.

        In learned mode it must be the same labelling: what it costs the black box, the costs alone do not tell.
        It looks at the mode's own answers, trusted or not, and leaves no trace: it neither counts nor learns.
        `answers` is there for scikit-learn, and ignored: there are no gold labels.
        """
        batch = self._checked(problems).resolved()
        exact, _ = self._answered(batch)
        if self.mode == Mode.CERTIFIED:
            return float(self._judges(exact).mean()) if len(batch) else 1.0
        found = self._found(batch)
        wrong = ~self._agrees(found, exact) & (found.valid | (not self.repair))
        return float(1 - wrong.mean()) if len(batch) else 1.0

    def calibrate(
        self,
        problems: Batch | Iterable[Problem],
        *,
        risk: float = 0.01,
        confidence: float | None = None,
        widths: Iterable[int] | None = None,
        against: str = "search",
    ) -> Calibration | GateCalibration:
        """Sets theta, and the width if `widths` are given: the smallest that changes few answers.

        With a `gate`, sets how much doubt that allows instead, always against the black box.

        problems
            New ones, which neither `fit` nor the model has seen, by the hundred; they need no labels.
        risk
            The share of answers that theta may change, between 0 and 1. 0.01 by default.
        confidence
            How sure of that to be, between 0 and 1. 0.95 by default, 0.99 with a gate.
        widths
            Widths to choose from: the one that computes the fewest costs wins. None, the default, keeps the width.
        against
            "search", the default, compares with the search that computes every cost; "solver" with the black box.
        """
        if against not in ("search", "solver"):
            raise ProblemError(f"Calibrate against 'search' or 'solver', not {against!r}.")
        batch = self._checked(problems)
        if self.gate is not None:
            return self._calibrate_gate(batch, risk, 0.99 if confidence is None else confidence)
        chosen = calibrate(
            self._beam(self._guide()),
            batch,
            risk=risk,
            confidence=0.95 if confidence is None else confidence,
            widths=widths,
            black_box=(lambda some: self._answered(some)[0]) if against == "solver" else None,
            run_as=self._reduced,
            seed=self.seed,
            n_jobs=self.n_jobs,
        )
        if self.mode != Mode.SEARCH:
            unused = f"mode={str(self.mode)!r} computes every cost whatever theta is; theta is for mode='search'."
            chosen = replace(chosen, note=f"{unused} {chosen.note}".rstrip())
        with self._lock:
            self.theta, self.width = chosen.theta, chosen.width
        return chosen

    def _calibrate_gate(self, batch: Batch, risk: float, confidence: float) -> GateCalibration:
        gated = self._gated()
        if gated is None:
            raise not_fitted("This speedup's gate has not learned to guess yet. Call fit before calibrate.")
        batch = batch.resolved()
        exact, _ = self._answered(batch)
        chosen = calibrate_gate(gated, batch, exact, risk=risk, confidence=confidence, n_jobs=self.n_jobs)
        with self._lock:
            self._memory.gated = replace(gated, max_doubt=chosen.max_doubt)
        return chosen

    @property
    def counters(self) -> Counters:
        """What it did since it was made, or fitted."""
        with self._lock:
            return self._memory.counters

    @property
    def agreement(self) -> Agreement:
        """How often what was learned, or the search, agreed with the black box of late, where its answers were given.

        To agree is to cost what the black box's answer costs: the optimum, or without `prove` the solver's own
        answer (or less, where that ran out of time); in learned mode, to be the same labelling. When trust ends the
        count begins anew.
        """
        with self._lock:
            return self._memory.audit.agreement

    @property
    def trusted(self) -> bool:
        """Whether search mode answers by search, and learned mode by what it learned; if not, the black box answers."""
        with self._lock:
            learned = self.mode != Mode.LEARNED or self._memory.choice is not None
            return self._memory.audit.trusted and learned

    @property
    def distrust(self) -> Agreement | None:
        """The agreement that ended the trust in the search; None while it is trusted."""
        with self._lock:
            return self._memory.audit.distrust

    @property
    def choice(self) -> Choice:
        """How learned mode answers, and why: what each way agreed on. `str` says it in a sentence."""
        with self._lock:
            if self._memory.choice is None:
                raise NotFittedError(
                    "This speedup has learned no tables yet. Call fit with mode='learned', or let it learn as it works."
                )
            return self._memory.choice

    @property
    def history(self) -> History:
        """What became of it so far: calls of the black box, agreement, shares proved and learned; `plot` draws it."""
        with self._lock:
            return self._memory.history

    @property
    def heuristic(self) -> Heuristic:
        """What was learned so far, as a value."""
        with self._lock:
            if self._memory.learned is None:
                raise NotFittedError("This speedup has not learned anything yet. Call fit or partial_fit.")
            return self._memory.learned.heuristic

    def save(self, path: str | Path) -> None:
        """Writes settings, weights, counters, audits and random state to a file: whole, or not at all."""
        from hasten.speedup.persistence import save

        with self._lock:
            save(self, Path(path))

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
        from hasten.speedup.persistence import load

        return load(cls, Path(path), schema, solver, cheap)

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

    def _repr_html_(self) -> str:
        from hasten.speedup.display import of_speedup

        return of_speedup(self)

    # -- how answers come about -------------------------------------------------------------------------

    def _in_parts(self, batch: Batch) -> Solutions:
        """Answers by what was learned; while that goes on, some problems at a time."""
        parts: list[Solutions] = []
        at = 0
        while at < len(batch) or not parts:
            trusted = self.trusted
            n = len(batch) if not self.learn else TRUSTED_PART if trusted else PART
            some = batch if at == 0 and n >= len(batch) else batch.select(range(at, min(at + n, len(batch))))
            parts.append(self._by_search(some) if trusted else self._by_proof(some))
            at += max(n, 1)
        return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts)

    def _by_search(self, batch: Batch) -> Solutions:
        """Trusts the search, or what was learned; asks the black box where that is invalid, doubted or audited."""
        found = self._found(batch)
        doubt = self._doubted(found)
        given = (found.valid | (not self.repair)) & ~doubt
        audited = np.zeros(len(batch), dtype=bool)
        with self._lock:
            audited[given] = self._memory.draw(int(given.sum()), self.audit)
        asked = np.flatnonzero(audited | ~given)
        if not asked.size:
            with self._lock:
                self._memory.count(Counters.of(found))
                self._memory.note()
            return found
        mine = found.select(asked).resolved()
        exact, calls = self._exact(mine.batch)
        judged = audited[asked] & self._judges(exact)
        kept = self._outdone(exact, mine)
        answers = found.replace(asked, exact.replace(kept, mine.select(kept)) if kept.any() else exact)
        self._remember(Counters.of(answers, calls), self._agrees(mine, exact)[judged], mine.batch, exact)
        return answers

    def _by_proof(self, batch: Batch) -> Solutions:
        """Proves or solves everything; where the mode's own answers are not trusted, tries them in the shadow."""
        batch = batch.resolved()
        exact, calls = self._exact(batch)
        agreed = np.zeros(0, dtype=bool)
        if self.mode == Mode.SEARCH or (self.mode == Mode.LEARNED and self._memory.choice is not None):
            found = self._found(batch)
            agreed = self._agrees(found, exact)[self._judges(exact) & ~self._doubted(found)]
        self._remember(Counters.of(exact, calls), agreed, batch, exact)
        return exact

    def _proves_alone(self) -> bool:
        """Whether a single problem can be answered by a proof alone, the short way."""
        more = self.learn or self.search_first or self.past
        limited = self.time_limit is not None or self.call_limit is not None
        return self.mode == Mode.CERTIFIED and self.prove and not (more or limited)

    def _prove_one(self, problem: Problem) -> Solution | None:
        """Proves one problem without what only batches need; None if that takes the solver."""
        self._settle()
        if self._compares:
            return None
        self._check_schema(problem.structure)
        certifier = self._certifier
        if certifier is None or certifier.max_nodes != self.max_nodes:
            certifier = self._certifier = Certifier(max_nodes=self.max_nodes)
        answer = certifier(problem)
        if not answer.status.optimal:
            return None
        with self._lock:
            self._memory.count_one(answer)
        return answer

    def _exact(self, batch: Batch, progress: Progress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, and how often that took the solver; says where it failed."""
        deadline = math.inf if self.call_limit is None else time.monotonic() + self.call_limit
        try:
            exact, calls = self._answered(batch, progress)
            if self._compares and self._proves and time.monotonic() < deadline:
                calls += self._compare(exact, None if self.call_limit is None else deadline - time.monotonic())
        except SolverDisagrees as dispute:
            if self.on_disagreement == OnDisagreement.RAISE or not self._compares:
                raise
            log.warning("From now on the solver is asked about every problem: %s", dispute)
            with self._lock:
                self._memory.follows = True
            exact, calls = self._answered(batch, progress)
        warn_of_failures(exact)
        pool = self._pool()
        if pool is not None:
            pool.learn(exact)
        return exact, calls

    def _answered(self, batch: Batch, progress: Progress | None = None) -> tuple[Solutions, int]:
        """Returns the answers of the black box, without a look at whether it agrees with our proofs."""
        on_error = OnError(self.on_error)
        if not self._proves:
            limits = {"time_limit": self.time_limit, "call_limit": self.call_limit}
            return solve_all(self._solver(), batch, progress, on_error, **limits), len(batch)
        return prove_or_solve(
            batch,
            self._solver,
            found=self._start(batch),
            max_nodes=self.max_nodes,
            time_limit=self.time_limit,
            call_limit=self.call_limit,
            n_jobs=self.n_jobs,
            progress=progress,
            on_error=on_error,
        )

    def _start(self, batch: Batch) -> Solutions | None:
        """Returns what a proof starts from: what was searched, or else the best past answers, if that is wanted."""
        if self.search_first:
            return self._search(batch)
        pool = self._pool()
        return None if pool is None else pool.best(batch)

    def _pool(self) -> AnswerPool | None:
        """Returns the past answers, if they are to be kept."""
        if not self.past:
            return None
        with self._lock:
            memory = self._memory
            if memory.pool is None or memory.pool.max_answers != self.past:
                memory.pool = AnswerPool(self.past)
            return memory.pool

    def _compare(self, exact: Solutions, seconds: float | None) -> int:
        """Compares some proofs with a solver of the user's own; returns how many. One dispute is an error.

        Once `seconds` are over, it is asked no more.
        """
        proved = np.flatnonzero(exact.proved)
        with self._lock:
            drawn = proved[self._memory.draw_proofs(proved.size, self.audit)]
        if not drawn.size:
            return 0
        agreed, disputed = compare(exact, drawn, self._solver(), OnError(self.on_error), seconds)
        with self._lock:
            self._memory.count(Counters(audits=agreed.size, disagreements=int((~agreed).sum())))
        if disputed is not None:
            with self._lock:
                self._memory.count(Counters(solver_calls=drawn.size))
            raise disputed
        return int(drawn.size)

    @property
    def _proves(self) -> bool:
        """Whether proofs count as the black box's answers: unless it is not exact, or turned out to know more."""
        return self.prove and not self._memory.follows

    def _judges(self, exact: Solutions) -> BoolArray:
        """Tells which answers of the black box others can be held against: optima, or all, if its word is enough."""
        return exact.optimal if self._proves else ~(exact.has(Status.NO_TIME) | exact.has(Status.FAILED))

    def _outdone(self, exact: Solutions, mine: Solutions) -> BoolArray:
        """Tells where the black box, out of time or failing, has none, or (if only its optima count) none as good."""
        left = ~exact.optimal & (mine.cost < exact.cost) if self._proves else ~self._judges(exact)
        return np.asarray(mine.valid & left)

    def _label(self, batch: Batch, answers: Answers | None) -> tuple[Answers, int]:
        """Returns the black box's answers, unless they are there, and how often that took the solver."""
        if answers is not None:
            return answers, 0
        if not self.progress:
            return self._exact(batch)
        from rich.console import Console
        from rich.progress import Progress as Bar

        with Bar(console=Console(stderr=True)) as bar:
            labelling = bar.add_task("labelling", total=len(batch))
            return self._exact(batch, lambda done, of: bar.update(labelling, completed=done))

    def _remember(self, counters: Counters, agreed: BoolArray, batch: Batch, exact: Solutions) -> None:
        """Keeps what there is to know of some answers, and learns from those of the black box."""
        with self._lock:
            self._memory.count(counters)
            self._memory.observe(agreed, self.min_agreement, "search" if self.mode == Mode.SEARCH else "learned way")
            self._memory.note()
            if self.learn and self.mode != Mode.LEARNED:
                self._memory.teach(batch, exact, self._new_learner)
        if self.learn and self.mode == Mode.LEARNED:
            self._learn_tables(batch, exact)

    # -- learned mode -----------------------------------------------------------------------------------

    def _fit_tables(self, batch: Batch, answers: Answers, calls: int) -> Speedup:
        """Chooses how to answer, from some answers, and begins anew with that."""
        labels, usable = read_answers(batch, answers)
        choice, learner = self._chosen(batch, labels, usable)
        new = Memory(np.random.default_rng(self.seed), guided=not self.enforce)
        new.count(Counters(solver_calls=calls, labelled=len(usable)))
        new.adopt(choice, learner, None)
        if self.learn:
            new.lessons.add(batch, labels)
            new.lessons.learned(len(usable))
        held = choice.agreement.get(choice.way)
        if held is not None and self.min_agreement is not None and held.high < self.min_agreement:
            log.warning(
                "What was learned agrees with the black box on %s, surely less than min_agreement=%g: audits will end "
                "the trust in it. Learn from more answers, declare more factors, or lower min_agreement.",
                held, self.min_agreement,
            )  # fmt: skip
        with self._lock:
            new.n_compared, new.follows = self._memory.n_compared, self._memory.follows
            self._kept = new
        return self

    def _learn_tables(self, batch: Batch, answers: Answers, now: bool = False) -> None:
        """Keeps answers to learn from, and chooses anew how to answer when there are enough new ones, or now."""
        level = self.min_agreement
        learn_more(self._memory, self._lock, batch, answers, self._chosen, self._answer_as, level, now)

    def _answer_as(self, choice: Choice, batch: Batch) -> Solutions:
        return answer(choice, self._memory.weights, batch, self._ways)

    def _chosen(self, batch: Batch, labels: IntArray, usable: IntArray) -> tuple[Choice, Learner | None]:
        ways = self._ways._replace(time_limit=None, call_limit=None)  # what is learned must not depend on the clock
        with show_progress(Console(stderr=True), quiet=not self.progress) as tell:
            return choose(self.schema, batch, labels, usable, ways, seed=self.seed, tell=tell)

    @property
    def _ways(self) -> Ways:
        return Ways(self._search_by, self._quiet_learner, self.max_nodes, self.n_jobs, self.time_limit, self.call_limit)

    def _quiet_learner(self) -> Learner:
        return replace(self._new_learner(), progress=False)

    def _found(self, batch: Batch) -> Solutions:
        """Answers in the mode's own way, trusted or not: by search, or by what was learned."""
        if self.mode != Mode.LEARNED:
            return self._search(batch)
        return self._answer_as(self.choice, batch.resolved())

    def _doubted(self, found: Solutions) -> BoolArray:
        """Tells where the black box would teach most: what was learned from other answers says something else."""
        if self.mode != Mode.LEARNED or not self.learn:
            return np.zeros(len(found), dtype=bool)
        return doubted(self.choice, found, self._ways)

    def _agrees(self, found: Solutions, exact: Solutions) -> BoolArray:
        """Tells which answers are the black box's: of the same cost or, in learned mode, the same labellings."""
        if self.mode == Mode.LEARNED:
            return same_labels(found.batch, found.labels, exact.labels)
        return ~disagreeing(found, exact)

    # -- what the settings say --------------------------------------------------------------------------

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
