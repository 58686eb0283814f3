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
from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from hasten.errors import NotFittedError, ProblemError
from hasten.learning.gate import Cheap
from hasten.learning.heuristic import Heuristic
from hasten.learning.learner import Learner
from hasten.learning.mixing import LocalShards, Mixing, Shards
from hasten.learning.targets import Answers, read_answers
from hasten.model.batch import Batch
from hasten.model.problem import Problem
from hasten.model.schema import Schema
from hasten.model.solution import Solution, Solutions
from hasten.search.beam import BeamSearch
from hasten.solvers import Solver
from hasten.speedup.answering import Answering
from hasten.speedup.audit import Agreement, Counters
from hasten.speedup.calibration import Calibration, calibrate
from hasten.speedup.estimator import not_fitted
from hasten.speedup.gated import CONFIDENCE, GateCalibration, GatedSearch, calibrate_gate
from hasten.speedup.guidance import ENOUGH, learn_and_try
from hasten.speedup.history import History
from hasten.speedup.mode import Mode
from hasten.speedup.sharded import HELD, Labelling, Sharded, fit_to_shards
from hasten.speedup.state import Memory
from hasten.support.tensors import digest_of

log = logging.getLogger(__name__)


class Speedup(Answering):
    """Answers problems of a schema as its black box would, in scikit-learn's manner.

    schema
        The schema of all problems that it will answer.

    The black box:

    solver
        Its name, an object with `solve`, or a function (`make_solver`). "highs", the default, comes with the package;
        "auto" asks whichever installed one is fastest.
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

    def fit_shards(self, shards: Shards | Iterable[Batch], *, mixing: str = Mixing.EVENLY, n_jobs: int = 1) -> Sharded:
        """Learns from shards at the same time (`hasten.learning.mixing`); a tenth of each is held out.

        `shards` are batches, which `n_jobs` threads share, or where they are (`hasten.ray.shards`). What comes back
        says how far the search agrees on what was held out, and has it for `calibrate`.
        """
        if isinstance(shards, Shards):
            return fit_to_shards(self, shards, mixing)
        sources = [Labelling(self, self._checked(batch, learning=True)) for batch in shards]
        return fit_to_shards(self, LocalShards(sources, n_jobs, HELD, self.seed), mixing)

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
            return self._answer_one(problems)
        batch = self._checked(problems)
        if self.mode == Mode.LEARNED:
            answers = self._in_parts(batch)
        else:
            answers = self._by_search(batch) if self.mode == Mode.SEARCH and self.trusted else self._by_proof(batch)
        return answers.only(problems) if isinstance(problems, Problem) else answers

    def score(self, problems: Batch | Iterable[Problem], answers: Answers | None = None) -> float:
        """Returns the share of problems whose answer, in this mode, costs what the black box's answer costs.

        In learned mode it must be the same labelling: the costs alone do not tell what the black box finds cheap.
        It looks at the mode's own answers, trusted or not, and leaves no trace: it neither counts nor learns.
        `answers` are the black box's, as `fit` takes them, if they are there already; problems without are left out.
        """
        batch = self._checked(problems).resolved()
        if answers is None:
            exact, _ = self._answered(batch)
        else:
            labels, usable = read_answers(batch, answers)
            labels = labels[batch.places(usable)]
            batch = batch.select(usable)
            exact = Solutions.scored(batch, labels)
        if not len(batch):
            return 1.0
        if self.mode == Mode.CERTIFIED and answers is None:
            return float(self._judges(exact).mean())
        found = self._answered(batch)[0] if self.mode == Mode.CERTIFIED else self._found(batch)
        same = self._agrees(found, exact)
        if answers is not None:  # an answer that breaks a constraint costs nothing to compare with
            same &= exact.valid
        wrong = ~same & (found.valid | (not self.repair))
        return float(1 - wrong.mean())

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
            return self._calibrate_gate(batch, risk, CONFIDENCE if confidence is None else confidence)
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
    def distrust(self) -> Agreement | None:
        """The agreement that ended the trust in the search; None while it is trusted."""
        with self._lock:
            return self._memory.audit.distrust

    @property
    def history(self) -> History:
        """What became of it so far: calls of the black box, agreement, shares proved and learned; `plot` draws it."""
        with self._lock:
            return self._memory.history

    @property
    def search(self) -> BeamSearch:
        """The beam search of search mode, with the weights that guide it, if any do."""
        return self._beam(self._guide())

    @property
    def heuristic(self) -> Heuristic:
        """What was learned so far, as a value."""
        with self._lock:
            if self._memory.learned is None:
                raise NotFittedError("This speedup has not learned anything yet. Call fit or partial_fit.")
            return self._memory.learned.heuristic

    @property
    def digest(self) -> str:
        """Changes with all that a file would hold: settings, what was learned, counters and random state."""
        from hasten.speedup.persistence import content

        with self._lock:
            return digest_of(*content(self))

    def for_shard(self, shard: int) -> Speedup:
        """Returns a copy for one piece of the work: it counts from zero, and draws by the seed and the piece alone."""
        mine = deepcopy(self)
        memory = mine._memory
        memory.rng = np.random.default_rng([self.seed, shard])
        memory.counted, memory.history = Counters(), History()
        memory.single.clear()
        return mine

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

    def _repr_html_(self) -> str:
        from hasten.speedup.display import of_speedup

        return of_speedup(self)

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
                "What was learned agrees with the black box on %.3f of %d answers held out, surely less than "
                "min_agreement=%g: audits will end the trust in it. Learn from more answers, declare more factors, or "
                "lower min_agreement.",
                *(held.estimate, held.n, self.min_agreement),
            )
        with self._lock:
            new.n_compared, new.follows = self._memory.n_compared, self._memory.follows
            self._kept = new
        return self
