"""How the answers of a speedup come about: one strategy for each part that `answer` may be.

Each has the same methods. A certified speedup lets the black box answer everything. The others have answers of their
own, which are audited: a share of them is compared with the black box's. While agreement is surely too low, the black
box answers everything and their own answers are only compared, until they have recovered (`hasten.speedup.audit`).

Learned mode keeps the black box's answers, and chooses its tables anew when there are half as many new ones as before.
When audits end the trust, answers from before the change that they point to are forgotten.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from hasten.errors import NotFittedError, ProblemError
from hasten.model.batch import Batch
from hasten.model.solution import Answers, Solutions, Status, read_answers, same_labels
from hasten.search.beam import Searcher
from hasten.speedup.audit import ALERT
from hasten.speedup.black_box import nothing_known, unlimited
from hasten.speedup.choosing import Choice, Examples, Inference, answer, choose
from hasten.speedup.parameters import not_fitted
from hasten.speedup.parts import Certified, Learned, Search, as_answer, search_of
from hasten.speedup.skipping import Calibration, Calibrator, GatedSearch, disagreeing
from hasten.speedup.state import State
from hasten.support.arrays import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from hasten.speedup.predictor import Speedup

log = logging.getLogger(__name__)
ENOUGH = 100  # problems from which on a tenth can be held out
Audits = tuple[BoolArray, IntArray]  # whether each agreed, and of which answer it is
Taught = tuple[Solutions, IntArray]  # answers of the black box, and which they are
NO_AUDITS: Audits = np.zeros(0, dtype=bool), np.zeros(0, dtype=np.int64)
PART, TRUSTED_PART = 64, 1024  # problems that it takes at a time while it learns: not trusted, trusted


class CertifiedStrategy:
    """The black box answers everything; with `learn`, it teaches a heuristic that a search can use later."""

    what = "search"  # whose trust is told of
    has_answers = False  # of its own

    def __init__(self, speedup: Speedup) -> None:
        self.speedup, self.state, self.oracle = speedup, speedup._state, speedup._oracle
        self.part = search_of(as_answer(speedup.answer))

    @property
    def fitted(self) -> bool:
        """Whether it has learned what it needs to answer, or learns as it works."""
        return True

    @property
    def ready(self) -> bool:
        """Whether it can answer by itself, as far as it can at all."""
        return True

    @property
    def trusted(self) -> bool:
        """Whether its own answers are trusted."""
        with self.state.lock:
            return self.state.audit.trusted and self.ready

    def at_once(self, batch: Batch, max_nodes: int) -> tuple[Solutions, BoolArray]:
        """Answers what needs no black box, and tells which problems that are; `max_nodes` limit proofs."""
        trust, state = self.speedup.trust, self.state
        if not self.has_answers:
            found = unlimited(max_nodes)(batch, n_jobs=self.speedup.n_jobs)
            done = found.optimal if self.oracle.alone else np.zeros(len(batch), dtype=bool)
        elif not self.trusted or state.audit.alert:
            return nothing_known(batch), np.zeros(len(batch), dtype=bool)
        else:
            found = self.find(batch)
            done = found.valid | (not trust.repair)
            with state.lock:
                done &= ~state.draw(len(batch), trust.audit, self.speedup.seed)
        if done.any():
            kept = found if done.all() else found.select(done)
            self._remember(kept, 0, NO_AUDITS, [])
        return found, done

    def find(self, batch: Batch) -> Solutions:
        """Answers by itself, trusted or not, and leaves no trace."""
        return self.oracle.answers(batch)[0]

    def agrees(self, found: Solutions, exact: Solutions) -> BoolArray:
        """Tells which answers are the black box's: they cost the same."""
        return ~disagreeing(found, exact)

    def answer(self, batch: Batch) -> Solutions:
        """Answers problems, audits the answers, and learns."""
        if self.has_answers and self.trusted:
            return self.answer_trusted(batch)
        batch = batch.resolved()
        exact, calls = self.oracle.ask(batch)
        audits = NO_AUDITS
        if self.has_answers and self.ready:
            found = self.find(batch)
            compared = np.flatnonzero(self.oracle.judges(exact))
            audits = self.agrees(found, exact)[compared], compared
        self._remember(exact, calls, audits, [(exact, np.arange(len(batch)))])
        return exact

    def answer_trusted(self, batch: Batch, audit: float | None = None) -> Solutions:
        """Gives its own answers; asks the black box where these are invalid or audited.

        The share `audit` is drawn, that of the settings by default. The answers after a disagreement are audited, too,
        and once trust ends the black box gives the rest.
        """
        state, trust = self.state, self.speedup.trust
        found = self.find(batch)
        given = found.valid | (not trust.repair)
        audited, judged, agreed, asked = np.zeros((4, len(batch)), dtype=bool)
        with state.lock:
            audited[given] = state.draw(int(given.sum()), trust.audit if audit is None else audit, self.speedup.seed)
            audited |= given & (np.cumsum(given) <= state.audit.alert)
        answers, taught, calls = found, list[Taught](), 0
        while (new := np.flatnonzero((audited | ~given) & ~asked)).size:
            mine = found.select(new).resolved()
            exact, n_calls = self.oracle.ask(mine.batch)
            failed = exact.has(Status.FAILED)  # which counts as a disagreement: nobody can say that it agreed
            judged[new], agreed[new] = self.oracle.judges(exact) | failed, self.agrees(mine, exact) & ~failed
            kept = self.oracle.outdone(exact, mine)
            answers = answers.replace(new, exact.replace(kept, mine.select(kept)) if kept.any() else exact)
            asked[new], calls = True, calls + n_calls
            taught.append((exact, new))
            audited |= given & self._suspected(given, asked, audited & judged, agreed)
        compared = np.flatnonzero(audited & judged)
        self._remember(answers, calls, (agreed[compared], compared), taught)
        return answers

    def _suspected(self, given: BoolArray, asked: BoolArray, compared: BoolArray, agreed: BoolArray) -> BoolArray:
        """Tells which answers to audit as well, after some were compared: those that follow a disagreement.

        Where these were asked, too, and together they end the trust, all answers from there on are.
        """
        wrong, level = compared & ~agreed, self.speedup.trust.min_agreement
        if level is None or not wrong.any():
            return np.zeros_like(wrong)
        order = np.cumsum(given)
        near = np.asarray(order - np.maximum.accumulate(np.where(wrong, order, -ALERT)) <= ALERT)
        if (near & given & ~asked).any():
            return near
        with self.state.lock:
            audit = deepcopy(self.state.audit)
        audit.allow(level)
        numbers = np.flatnonzero(compared)
        turned = audit.observe(agreed[numbers], numbers)
        if turned is not None:
            near[numbers[turned] :] = True
        return near

    def _remember(self, answers: Solutions, calls: int, audits: Audits, taught: Sequence[Taught]) -> None:
        """Counts answers, records which of those that were audited agreed, and learns from the black box's."""
        with self.state.lock:
            first = self.state.counts["problems"]
            self.state.count_answers(answers, calls)
            self.state.observe(audits[0], audits[1] + first, self.speedup.trust.min_agreement, self.what)
            self.state.note()
        if self.speedup.learn:
            for exact, at in taught:
                self.learn(exact.batch, exact, at + first)

    def score(self, batch: Batch, answers: Answers | None) -> float:
        """Returns the share of its own answers that are the black box's; those that would be repaired count."""
        if answers is None:
            exact = self.oracle.answers(batch)[0]
        else:
            labels, usable = read_answers(batch, answers)
            labels, batch = labels[batch.places(usable)], batch.select(usable)
            exact = Solutions.scored(batch, labels)
        if not len(batch):
            return 1.0
        if not self.has_answers and answers is None:
            return float(self.oracle.judges(exact).mean())
        found = self.find(batch)
        same = self.agrees(found, exact)
        if answers is not None:  # an answer that breaks a constraint costs nothing to compare with
            same &= exact.valid
        wrong = ~same & (found.valid | (not self.speedup.trust.repair))
        return float(1 - wrong.mean())

    def learn(self, batch: Batch, answers: Answers, numbers: IntArray, now: bool = False) -> None:
        """Goes on learning from the black box's answers, which have these numbers."""
        state = self.state
        with state.lock:
            if state.learner is None:
                state.learner = self.part.new_learner(self.speedup.seed)
            before = state.learner.n_mistakes
            state.learner.partial_fit(batch, answers)
            state.weights = state.learner.weights
            state.counts.update(labelled=len(batch), updates=state.learner.n_mistakes - before)

    def fit(self, batch: Batch, answers: Answers, calls: int) -> State:
        """Returns a state that has learned from scratch; whether weights help is tried on a tenth, held out."""
        learner, guided = self.part.new_learner(self.speedup.seed), None
        if self.part.guided is not None or len(batch) < ENOUGH:
            learner.fit(batch, answers)
        else:
            labels, usable = read_answers(batch, answers)
            labels[np.repeat(np.isin(np.arange(len(batch)), usable, invert=True), batch.n_variables)] = -1
            held = np.sort(np.random.default_rng(self.speedup.seed).permutation(usable)[: len(usable) // 10])
            kept = np.setdiff1d(np.arange(len(batch)), held)
            learner.fit(batch.select(kept), labels[batch.places(kept)])
            truth = Solutions.scored(batch.select(held), labels[batch.places(held)])
            searches = [self.part.with_weights(weights) for weights in (learner.weights, None)]
            wrong = [disagreeing(search(truth.batch, n_jobs=self.speedup.n_jobs), truth).sum() for search in searches]
            guided = bool(wrong[0] < wrong[1])
        counts = Counter(solver_calls=calls, labelled=len(batch), updates=learner.n_mistakes)
        return State(guided=guided, learner=learner, counts=counts)


class SearchStrategy(CertifiedStrategy):
    """The search answers: the beam, or the gate once it has learned."""

    has_answers = True

    def __init__(self, speedup: Speedup) -> None:
        super().__init__(speedup)
        self.part = self.state.calibrated or self.part

    @property
    def fitted(self) -> bool:
        """Whether it has learned, or learns as it works."""
        return self.speedup.learn or self.state.learner is not None

    def find(self, batch: Batch) -> Solutions:
        """Searches."""
        return self.search(batch, n_jobs=self.speedup.n_jobs)

    @property
    def search(self) -> Searcher:
        """The search that answers, with the weights as they are now; by the gate, if it has learned."""
        return self.gated or self.part.with_weights(self.weights)

    @property
    def gated(self) -> GatedSearch | None:
        """The search by the gate, if there is one that has learned about its kinds of variables."""
        gate, found = self.part.gate, self.state.gated
        if gate is None or found is None or gate.cheap.keys() != found.gate.cheap.keys():
            return None
        return replace(found, gate=found.gate.seeing(gate.cheap), certifier=self.speedup.limits.certifier())

    @property
    def weights(self) -> FloatArray | None:
        """The weights that guide the search, if they should."""
        with self.state.lock:
            guided = self.state.guided if self.part.guided is None else self.part.guided
            if guided is None:  # nobody tried: weights pay where constraints are not enforced
                guided = not self.part.enforce
            return self.state.weights if guided else None

    def calibrate(self, batch: Batch, calibrator: Calibrator, against: str | None) -> Calibration:
        """Chooses theta; with a gate, how much doubt that allows. The settings stay."""
        if self.part.gate is None:
            black_box = (lambda some: self.oracle.answers(some)[0]) if against == "solver" else None
            beam = self.part.beam(self.weights)
            chosen = calibrator.theta(beam, batch, black_box=black_box, run_as=self.part.reduced)
            with self.state.lock:
                self.state.calibrated = replace(self.part, theta=chosen.theta)
            return chosen
        gated = self.gated
        if gated is None:
            raise not_fitted("This speedup's gate has not learned to guess yet. Call fit before calibrate.")
        if against == "search":
            raise ProblemError("A gate is compared with the solver. Leave against out.")
        batch = batch.resolved()
        chosen = calibrator.max_doubt(gated, batch, self.oracle.answers(batch)[0])
        with self.state.lock:
            self.state.gated = replace(gated, max_doubt=chosen.max_doubt)
        return chosen

    def fit(self, batch: Batch, answers: Answers, calls: int) -> State:
        """Returns a state that has learned from scratch: the weights, and the gate."""
        self.part = search_of(as_answer(self.speedup.answer))  # a theta chosen before was for other weights
        state = super().fit(batch, answers, calls)
        if self.part.gate is not None:
            state.gated = GatedSearch(replace(self.part.gate).fit(batch, answers))
        return state


class LearnedStrategy(CertifiedStrategy):
    """Learned tables answer."""

    what = "learned method"
    has_answers = True

    @property
    def fitted(self) -> bool:
        """Whether it has learned, or learns as it works."""
        return self.speedup.learn or self.ready

    @property
    def ready(self) -> bool:
        """Whether it has chosen how to answer."""
        return self.state.choice is not None

    @property
    def choice(self) -> Choice:
        """How it answers, and why."""
        with self.state.lock:
            if self.state.choice is not None:
                return self.state.choice
        raise NotFittedError("This speedup has learned no tables yet. Call fit with answer='learned', or learn=True.")

    @property
    def inference(self) -> Inference:
        """How problems are answered, given a choice."""
        return Inference(self.speedup.limits, self.speedup.n_jobs)

    def answer(self, batch: Batch) -> Solutions:
        """Answers problems; while it learns, some at a time."""
        parts, at = list[Solutions](), 0
        while at < len(batch) or not parts:
            n = len(batch) if not self.speedup.learn else TRUSTED_PART if self.trusted else PART
            some = batch if at == 0 and n >= len(batch) else batch.select(range(at, min(at + n, len(batch))))
            parts.append(super().answer(some))
            at += max(n, 1)
        return parts[0] if len(parts) == 1 else Solutions.joined(batch, parts)

    def find(self, batch: Batch) -> Solutions:
        """Answers as was chosen."""
        return answer(self.choice, batch.resolved(), self.inference)

    def agrees(self, found: Solutions, exact: Solutions) -> BoolArray:
        """Tells which answers are the black box's: the costs alone do not tell which labelling it finds cheap."""
        return same_labels(found.batch, found.values, exact.values)

    def learn(self, batch: Batch, answers: Answers, numbers: IntArray, now: bool = False) -> None:
        """Keeps answers to learn from, and chooses anew how to answer when there are enough new ones, or now.

        Choosing takes a while; the lock is not held meanwhile, so that others can go on with what was learned before.
        """
        state, replay = self.state, self.state.replay
        with state.lock:
            state.counts["labelled"] += replay.add(batch, answers, numbers)
            if not replay.kept or not (now or replay.due):
                return
            known, labels = replay.taken()
        choice = self._choose(known, labels, np.arange(len(known)))
        with state.lock:
            state.adopt(choice, self.speedup.trust.min_agreement)

    def fit(self, batch: Batch, answers: Answers, calls: int) -> State:
        """Returns a state that has chosen how to answer."""
        labels, usable = read_answers(batch, answers)
        choice = self._choose(batch, labels, usable)
        new, level = State(counts=Counter(solver_calls=calls, labelled=len(usable))), self.speedup.trust.min_agreement
        new.adopt(choice, None)
        if self.speedup.learn:
            new.replay.add(batch, labels, np.zeros(len(batch), dtype=np.int64))
            new.replay.learned(len(usable))
        held = choice.agreement.get(choice.method)
        if held is not None and level is not None and held.high < level:
            log.warning(
                "What was learned agrees with the black box on %.3f of %d answers held out, surely less than "
                "min_agreement=%g: audits will end the trust in it. Learn from more answers, declare more factors, or "
                "lower min_agreement.",
                *(held.estimate, held.n, level),
            )
        return new

    def _choose(self, batch: Batch, labels: IntArray, usable: IntArray) -> Choice:
        speedup, examples = self.speedup, Examples(batch, labels, usable)
        timeless = replace(speedup.limits, time_limit=None, call_limit=None)  # learning must not depend on the clock
        return choose(speedup.schema, examples, self.inference._replace(limits=timeless), speedup.seed)


STRATEGIES = {Certified: CertifiedStrategy, Learned: LearnedStrategy, Search: SearchStrategy}
