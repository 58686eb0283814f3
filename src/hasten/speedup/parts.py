"""The parts that a speedup is made of: how it answers, what it trusts, and how long it may take.

Each part is a frozen value with a few settings of its own, checked when it is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from hasten.errors import ProblemError
from hasten.learning.gate import Gate
from hasten.learning.learner import Learner
from hasten.proof.certifier import Certifier
from hasten.search.beam import BeamSearch
from hasten.solvers.base import OnError
from hasten.support.arrays import FloatArray
from hasten.support.checks import (
    Choices,
    brief,
    check_limit,
    check_number,
    check_switch,
    check_type,
    check_whole,
    is_share,
)

MAX_PAST = 2**16


class TextMode(Choices):
    """How a labeller of text answers: its tables are known, so there are none to learn."""

    CERTIFIED = "certified"
    SEARCH = "search"


@dataclass(frozen=True, slots=True)
class Limits:
    """How long an answer may take. What runs out of time is the best labelling found so far, and says so.

    time_limit
        Seconds of the wall clock that a problem may take in all. The proof has at most half of them; the solver has
        what the proof leaves. An answer by a search, or by learned tables, that the black box then repairs or audits
        takes time of its own. None, the default, is no limit.
    call_limit
        Seconds that all problems of a call may take. None, the default, is no limit.
    max_nodes
        How far a proof branches before the solver is asked (`Certifier`). None, the default, branches as far as pays.
    """

    time_limit: float | None = None
    call_limit: float | None = None
    max_nodes: int | None = None

    def __post_init__(self) -> None:
        check_limit("time_limit", self.time_limit)
        check_limit("call_limit", self.call_limit)
        if self.max_nodes is not None:
            check_whole("max_nodes", self.max_nodes)

    def certifier(self) -> Certifier:
        """Returns a certifier within these limits, which has all of the time to itself."""
        return Certifier(max_nodes=self.max_nodes, time_limit=self.time_limit, call_limit=self.call_limit)

    @property
    def timed(self) -> bool:
        """Whether time is limited."""
        return self.time_limit is not None or self.call_limit is not None


@dataclass(frozen=True, slots=True)
class Trust:
    """How far proofs, the search, what was learned, and the solver are trusted.

    audit
        The share, from 0 to 1, of unproved answers that is compared with the black box's. 0.02 by default.
    min_agreement
        The level of agreement, between 0 and 1, below which the search is not trusted. 0.95 by default; None always
        trusts it.
    repair
        Whether the black box answers where the search, or what was learned, gives an invalid labelling. On by default.
    prove
        Whether an optimum that we prove ourselves counts as the black box's answer, so that the solver is asked only
        for the rest. On by default, which is right for every exact solver. Turn it off if the solver's answers are not
        always the cheapest valid labelling (it stops early, or prefers what no table states): then it is asked for
        everything. A solver of your own is compared with the first 16 proofs, then with a share `audit` of them: to
        disagree is an error, `SolverDisagrees`.
    on_error
        The reaction to a solver that fails on a problem: "keep" the other answers and say why in this one's `reason`,
        the default, or "raise".
    """

    audit: float = 0.02
    min_agreement: float | None = 0.95
    repair: bool = True
    prove: bool = True
    on_error: str = OnError.KEEP.value

    def __post_init__(self) -> None:
        check_number("audit", self.audit)
        if self.audit > 1:
            raise ProblemError(f"audit must be a share between 0 and 1, got {self.audit}.")
        level = self.min_agreement
        if level is not None and not is_share(level):
            raise ProblemError(f"The least agreement must be between 0 and 1, or None; got {brief(level)}.")
        check_switch("repair", self.repair)
        check_switch("prove", self.prove)
        if not isinstance(self.on_error, str) or self.on_error not in list(OnError):
            raise ProblemError(f"on_error must be {OnError.choices()}, got {brief(self.on_error)}.")


@dataclass(frozen=True, slots=True)
class Search:
    """Trusts a learned beam search (the paper's speedup), which may leave costs uncomputed.

    width, enforce, look_ahead, theta
        The settings of the beam (`BeamSearch`). The defaults (2, on, on, inf) compute every cost;
        `Speedup.calibrate` chooses another theta.
    reduce
        Whether a search with neither weights nor skipped costs is over what elimination leaves (`BeamSearch`). On by
        default: each of its nodes sees what eliminated variables will cost.
    guided
        Whether learned weights guide the search. None, the default, leaves it to `fit`, which tries both on
        problems that it holds out.
    learner
        How to learn the weights: a `Learner`. None, the default, learns for the search as set here.
    gate
        Which kinds of variables have expensive costs, and cheap features of them: a `Gate`. `fit` teaches it,
        `Speedup.calibrate` chooses how much doubt it allows, and it then answers in place of the beam (`GatedSearch`).
        None, the default, has none.
    """

    width: int = 2
    enforce: bool = True
    look_ahead: bool = True
    theta: float = math.inf
    reduce: bool = True
    guided: bool | None = None
    learner: Learner | None = None
    gate: Gate | None = None

    def __post_init__(self) -> None:
        self.beam(None)  # refuses width and theta
        for name in ("enforce", "look_ahead", "reduce"):
            check_switch(name, getattr(self, name))
        check_switch("guided", self.guided, or_none=True)
        if not isinstance(self.learner, Learner | None):
            given = brief(self.learner)
            raise ProblemError(f"learner must be a Learner, or None for one as the search needs; got {given}.")
        if not isinstance(self.gate, Gate | None):
            raise ProblemError(f"gate must be a Gate, or None for none; got {brief(self.gate)}.")

    @classmethod
    def paper(cls, width: int = 2) -> Search:
        """Returns the paper's search: guided by weights that Algorithm 1 learns, without constraints."""
        return cls(width, enforce=False, look_ahead=False, guided=True, learner=Learner.paper(width))

    def beam(self, weights: FloatArray | None) -> BeamSearch:
        """Returns the beam search with some weights, or with none."""
        return BeamSearch(self.width, weights, self.enforce, self.look_ahead, self.theta)

    def reduced(self, beam: BeamSearch) -> BeamSearch:
        """Returns the search over what elimination leaves, where that is the same problem."""
        complete = beam.enforce and beam.weights is None and beam.theta == math.inf
        return replace(beam, reduce=True) if self.reduce and complete else beam

    def with_weights(self, weights: FloatArray | None) -> BeamSearch:
        """Returns the search with some weights, or with none."""
        return self.reduced(self.beam(weights))

    def new_learner(self, seed: int) -> Learner:
        """Returns a learner for this search that has learned nothing yet."""
        if self.learner is not None:
            return replace(self.learner)
        return Learner(self.width, enforce=self.enforce, look_ahead=self.look_ahead, seed=seed)


@dataclass(frozen=True, slots=True)
class Certified:
    """Proves or solves every answer.

    past
        How many past answers of each structure to keep, though not in files: the cheapest that is valid is where a
        proof and the solver start from (`hasten.speedup.pool`). 0, the default, keeps none.
    search
        The search that a heuristic is learned for: certified answers need none, but they can teach one.
    """

    past: int = 0
    search: Search = field(default_factory=Search)

    def __post_init__(self) -> None:
        check_whole("past", self.past, most=MAX_PAST)
        check_type(self.search, Search, "search")


@dataclass(frozen=True, slots=True)
class Learned:
    """Learns what the declared factors cost from the black box's answers, and proves with that.

    The agreement that it states is true only if the model behind the costs was not trained on the same answers: fit it
    on other inputs (cross-fitting), or its held-out answers are not held out at all.
    """


Answer = Certified | Learned | Search
SHORTHANDS: dict[str, Answer] = {"certified": Certified(), "learned": Learned(), "search": Search()}


def as_answer(given: object) -> Answer:
    """Returns how to answer, given as a part or by its shorthand."""
    if isinstance(given, Certified | Learned | Search):
        return given
    if isinstance(given, str) and given in SHORTHANDS:
        return SHORTHANDS[given]
    names = ", ".join(type(part).__name__ for part in SHORTHANDS.values())
    raise ProblemError(
        f"answer must be {' or '.join(map(repr, SHORTHANDS))}, or one of {names} with settings; got {brief(given)}."
    )


def search_of(answer: Answer) -> Search:
    """Returns the search of a part; the default one of a part that has none."""
    return answer.search if isinstance(answer, Certified) else answer if isinstance(answer, Search) else Search()
