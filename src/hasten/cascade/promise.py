"""The promise of a student: that few of the answers it gives are not the black box's.

An answer is given where its confidence reaches a threshold. Candidates come from answers that the test does not see;
they are tested one after the other, each by the exact binomial limit of the share of wrong answers among those given,
from the one with the most power on, until one fails (fixed-sequence testing). So with the stated confidence the share
is at most `risk` among inputs like those tested, which neither the student nor its confidence learned from. Several
risks, such as of wrong entities and of wrong relations, must pass together, which keeps the confidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from hasten.errors import ProblemError
from hasten.speedup.audit import upper_limit
from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.checks import brief, is_share

WHOLE = "answer"  # names the risk of whole answers, beside those of kinds of variables
N_CANDIDATES = 100
MOST_TIMES = 1024  # as many answers as there are: the most that `needed` looks ahead

Seen = tuple[FloatArray, BoolArray]  # log probabilities of answers, and (n_answers, n_risks) whether each was right


@dataclass(frozen=True, slots=True)
class Promise:
    """A threshold of confidence, and the test that it rests on; inf where nothing can be promised yet."""

    risks: Mapping[str, float] = field(default_factory=dict)  # of whole answers, or by kind of variable
    confidence: float = 1.0
    threshold: float = math.inf  # of the logarithm of the probability
    n_tested: int = 0
    n_given: int = 0  # of those tested, answers that reach the threshold
    wrong: Mapping[str, int] = field(default_factory=dict)  # how many of these were, for each risk
    needed: int | None = None  # about how many more tested answers a promise takes; None if nobody can tell

    @property
    def holds(self) -> bool:
        """Whether there is a promise."""
        return self.threshold < math.inf

    @property
    def coverage(self) -> float:
        """The share of inputs that the student answers."""
        return self.n_given / self.n_tested if self.n_tested else 0.0

    def __str__(self) -> str:
        limits = [f"{risk:.1%}" + (f" in {name}" if name != WHOLE else "") for name, risk in self.risks.items()]
        if not self.holds:
            more = "a better student" if self.needed is None else f"about {self.needed:,} more answers to test on"
            return f"no promise of at most {' and '.join(limits)} yet: that needs {more}, after {self.n_tested:,}"
        seen = " and ".join(f"{self.wrong[name]} of {self.n_given:,}" for name in self.risks)
        return (
            f"answers {self.coverage:.1%} of the inputs; at most {' and '.join(limits)} of these answers differ from "
            f"the black box's, with confidence {self.confidence:.0%} ({seen} did)"
        )


def risks_of(risk: float | Mapping[str, float]) -> dict[str, float]:
    """Returns risks by name, and refuses what is none."""
    risks = dict(risk) if isinstance(risk, Mapping) else {WHOLE: risk}
    check_shares(
        {"risk" if name == WHOLE else f"risk of {name!r}": each for name, each in risks.items()} or {"risk": {}}
    )
    return risks


def check_shares(shares: Mapping[str, object]) -> None:
    """Refuses what is not between 0 and 1."""
    for name, share in shares.items():
        if not is_share(share):
            raise ProblemError(f"{name} must be a share between 0 and 1, got {brief(share)}.")


def promise(risks: Mapping[str, float], confidence: float, seen: Seen, tested: Seen) -> Promise:
    """Returns what can be promised; candidates come from the answers `seen`.

    Those `tested` must be others, drawn from the inputs at random.
    """
    rates = np.array(list(risks.values()))
    log_p, right = tested
    best = None
    for threshold in candidates(rates, seen).tolist():
        given = log_p >= threshold
        n, wrong = int(given.sum()), (given[:, None] & ~right).sum(axis=0)
        if not _passes(rates, confidence, n, wrong):
            break
        best = Promise(risks, confidence, threshold, len(log_p), n, dict(zip(risks, wrong.tolist(), strict=True)))
    return best or Promise(risks, confidence, n_tested=len(log_p), needed=_needed(rates, confidence, tested))


def candidates(rates: FloatArray, seen: Seen) -> FloatArray:
    """Returns thresholds to test: from the one where the promise is surest, down."""
    rows = list(_cuts(seen))
    if not rows:
        return np.zeros(0)
    power = [((rates * n - wrong) / np.sqrt(rates * (1 - rates) * n)).min() for _, n, wrong in rows]
    return np.array([threshold for threshold, _, _ in rows[int(np.argmax(power)) :]])


def _cuts(seen: Seen) -> Iterator[tuple[float, int, IntArray]]:
    """Yields thresholds, downwards: how many answers reach each, and how many of these are wrong for each risk."""
    order = np.argsort(-seen[0], kind="stable")
    wrong = np.cumsum(~seen[1][order], axis=0)
    for n in np.unique(np.linspace(1, len(order), N_CANDIDATES, dtype=np.int64)).tolist() if len(order) else ():
        yield float(seen[0][order[n - 1]]), n, wrong[n - 1]


def _passes(rates: FloatArray, confidence: float, n: int, wrong: IntArray) -> bool:
    return all(upper_limit(k, n, confidence) <= rate for k, rate in zip(wrong.tolist(), rates.tolist(), strict=True))


def _needed(rates: FloatArray, confidence: float, tested: Seen) -> int | None:
    """Returns about how many more answers like these would allow a promise."""
    n_tested = len(tested[0])
    if not n_tested:
        return math.ceil(math.log1p(-confidence) / math.log1p(-float(rates.min())))
    shares = [(n, (wrong + 0.5) / (n + 1)) for _, n, wrong in _cuts(tested)]
    hopeful, times = [(n, share) for n, share in shares if (share < rates).all()], 1.0
    while hopeful and (times := times * 1.25) < MOST_TIMES:
        for n, share in hopeful:
            if _passes(rates, confidence, round(n * times), np.round(share * n * times).astype(np.int64)):
                return math.ceil(n_tested * (times - 1))
    return None
