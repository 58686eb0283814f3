"""How often an unproved answer agrees with the black box: estimated, limited, and acted upon.

Audits are independent draws: agreed or not. Their share over a sliding window, with exact binomial limits (Clopper and
Pearson), is the estimate. Trust ends and returns by *bets*, which may be looked at after every audit. With the allowed
rate of disagreement r, a bet on the rate p gets a new stake of 1 before each audit, and multiplies what it has by
1 + (p - r) (e - r) / (r (1 - r)), where e is 1 for a disagreement and 0 otherwise (Shiryaev and Roberts; e-detectors of
Shin, Ramdas and Rinaldo, 2022). While the rate is at most r, bets on higher rates gain nothing but their stakes on
average, so the mean of them reaches `ALARM` only after `ALARM` audits on average, or later. Trust ends when they do. It
returns when bets on lower rates have won as surely.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct

from hasten.support.arrays import BoolArray, FloatArray, IntArray
from hasten.support.forms import Count, Misfit, Share, Size

ALARM = 1e5  # audits, on average at least, to a false alarm
RECOVERED = 1e4  # comparisons, on average at least, until trust returns falsely
WINDOW = 1024  # audits that the estimate is of
CHANCE = 0.01  # that a drift began before the stretch that is named
ALERT = 50  # answers after a disagreement that are all audited
SAME = "level", "alarmed", "trusted", "distrust", "changed", "alert"  # as a file holds them
Alert = Annotated[int, Meta(ge=0, le=ALERT)]


class Agreement(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An estimate of a share, with its limits, from `n` audits; without any it is nan between 0 and 1."""

    estimate: float
    low: Share
    high: Share
    n: Count

    def __post_init__(self) -> None:
        if math.isnan(self.estimate) != (self.n == 0) or (self.n and not self.low <= self.estimate <= self.high):
            between = f"an agreement of {self.estimate} between {self.low} and {self.high}"
            raise ValueError(f"{between} from {self.n} audits makes no sense")

    @classmethod
    def of(cls, n_agreed: int, n: int, confidence: float = 0.95) -> Agreement:
        """Returns the estimate and both exact limits."""
        side = 1 - (1 - confidence) / 2
        low, high = lower_limit(n_agreed, n, side), upper_limit(n_agreed, n, side)
        return cls(n_agreed / n if n else math.nan, low, high, n)

    def __str__(self) -> str:
        if not self.n:
            return "not audited yet"
        return f"{self.estimate:.4f} (between {self.low:.4f} and {self.high:.4f}, {self.n} audits)"


@dataclass(slots=True)
class Bet:
    """A bet on another rate of disagreement than is allowed, and how long it has been winning.

    `share` says which rate: above 0, that share of the way from the allowed rate up to 1; below 0, down to 0.
    """

    share: float
    stake: float = 0.0
    run: float = 0.0  # the logarithm of what one stake would have become since it has been winning; at least 0
    n: int = 0  # audits since then

    @property
    def won(self) -> tuple[float, float, int]:
        """The winnings so far."""
        return self.stake, self.run, self.n

    def observe(self, allowed: float, agreed: bool) -> None:
        """Bets on an audit, where the rate `allowed` is allowed."""
        odds = self.share / (allowed if self.share > 0 else 1 - allowed)
        gain = 1 + odds * ((not agreed) - allowed)
        self.stake = (1 + self.stake) * gain
        self.run = max(0.0, self.run + math.log(gain)) if gain > 0 else 0.0
        self.n = self.n + 1 if self.run else 0


class AuditState(Struct, forbid_unknown_fields=True):
    """All of an `Audit`, as files hold it."""

    level: Share | None
    alarmed: Alert
    trusted: bool
    distrust: Agreement | None
    suspect: tuple[Count, Count] | None
    changed: Count
    alert: Alert
    recent: list[bool]
    numbers: list[Count]
    bets: list[tuple[Size, Size, Count]]


class Audit:
    """The last audits, and whether they leave the answers trusted; `level` None trusts them for ever.

    `distrust` is the agreement that ended the trust, until trust returns; `suspect` has the answers before that, by
    number, that may be wrong, and `changed` the first that most likely is. `alert` is how many of the next answers are
    all audited: `alarmed` after a disagreement.
    """

    def __init__(self, level: float | None = 0.95, alarmed: int = ALERT) -> None:
        self.level, self.alarmed = level, alarmed
        self.trusted = True
        self.distrust: Agreement | None = None
        self.suspect: range | None = None
        self.changed = 0
        self.alert = 0
        self.recent: BoolArray = np.zeros(0, dtype=bool)
        self.numbers: IntArray = np.zeros(0, dtype=np.int64)  # of the answers that were audited
        self.bets = self.new_bets()

    def plain(self) -> AuditState:
        """Returns all of it as a file holds it."""
        suspect = None if self.suspect is None else (self.suspect.start, self.suspect.stop)
        same = {name: getattr(self, name) for name in SAME}
        recent, numbers, bets = self.recent.tolist(), self.numbers.tolist(), [each.won for each in self.bets]
        return AuditState(**same, suspect=suspect, recent=recent, numbers=numbers, bets=bets)

    @classmethod
    def of_plain(cls, kept: AuditState) -> Audit:
        """Returns the audit that `plain` returned."""
        audit = cls(kept.level, kept.alarmed)
        audit.trusted, audit.distrust, audit.changed, audit.alert = (
            kept.trusted,
            kept.distrust,
            kept.changed,
            kept.alert,
        )
        audit.suspect = None if kept.suspect is None else range(*kept.suspect)
        audit.recent, audit.numbers = np.array(kept.recent, dtype=bool), np.array(kept.numbers, dtype=np.int64)
        audit.bets = audit.new_bets()
        same = len(kept.bets) == len(audit.bets) and len(kept.recent) == len(kept.numbers) <= WINDOW
        if not same or audit.trusted != (audit.distrust is None):
            raise Misfit("its audits contradict each other")
        audit.bets = [Bet(bet.share, *won) for bet, won in zip(audit.bets, kept.bets, strict=True)]
        return audit

    def allow(self, level: float | None) -> None:
        """Sets the level; bets against another one say nothing about it."""
        if level != self.level:
            self.level = level
            self.bets = self.new_bets()

    def new_bets(self) -> list[Bet]:
        """Returns new bets: that trust should end or, once it did, that it may return."""
        level = self.level or 0.0
        if not self.trusted:
            return [Bet(-1.0), Bet(-0.75), Bet(-0.5)]
        rates = (2 * (1 - level), 4 * (1 - level), 0.15, 0.35, 0.7)
        return [Bet((rate + level - 1) / level) for rate in rates if 1 - level < rate < 1] or [Bet(0.5)]

    @property
    def agreement(self) -> Agreement:
        """The estimate over the window. When trust ends that begins anew; until new audits come, what ended it."""
        if self.distrust is not None and not len(self.recent):
            return self.distrust
        return self._agreement(len(self.recent))

    def _agreement(self, n: int) -> Agreement:
        """Returns the agreement of the last `n` audits."""
        last = self.recent[max(0, len(self.recent) - n) :]
        return Agreement.of(int(np.count_nonzero(last)), len(last))

    def observe(self, agreed: BoolArray, at: IntArray, allowed: FloatArray | None = None) -> int | None:
        """Takes in audits, oldest first, of the answers with the numbers `at`, up to one that changes the trust.

        Returns which one that was. The audits after it are left: the answers were to be given in another way. Each may
        be `allowed` a rate of disagreement of its own.
        """
        rates = np.full(len(agreed), 1 - (self.level or 0.0)) if allowed is None else allowed
        for i, (right, rate) in enumerate(zip(agreed.tolist(), rates.tolist(), strict=True) if self.level else ()):
            self.alert = max(0, self.alert - 1) if right else self.alarmed
            if self._has_won(right, rate):
                self._keep(agreed[: i + 1], at[: i + 1])
                self._turn()
                return i
        self._keep(agreed, at)
        return None

    def _keep(self, agreed: BoolArray, at: IntArray) -> None:
        self.recent = np.concatenate([self.recent, agreed])[-WINDOW:]
        self.numbers = np.concatenate([self.numbers, at])[-WINDOW:]

    def _has_won(self, agreed: bool, allowed: float) -> bool:
        for bet in self.bets:
            bet.observe(allowed, agreed)
        return sum(bet.stake for bet in self.bets) >= len(self.bets) * (ALARM if self.trusted else RECOVERED)

    def _turn(self) -> None:
        n = min(max(self.bets, key=lambda bet: bet.stake).n, len(self.recent))
        if self.trusted:
            self.changed = int(self.numbers[len(self.recent) - n])
            self.end_trust(self._agreement(n), self._stretch())
        else:
            self.trusted, self.distrust, self.suspect, self.alert = True, None, None, 0
            self.recent, self.numbers = self.recent[len(self.recent) - n :], self.numbers[len(self.recent) - n :]
            self.bets = self.new_bets()

    def _stretch(self) -> range:
        """Returns the answers that may be wrong: since any bet has been winning, and a few agreements before.

        At the rate of disagreement since then so many agreements would be chance, with a probability of `CHANCE`.
        """
        n = min(max(bet.n for bet in self.bets), len(self.recent))
        right = (np.count_nonzero(self.recent[len(self.recent) - n :]) + 1) / (n + 2)
        first = len(self.recent) - n - math.ceil(math.log(CHANCE) / math.log(right))
        return range(int(self.numbers[first]) + 1 if first >= 0 else 0, int(self.numbers[-1]) + 1)

    def end_trust(self, agreement: Agreement, suspect: range | None = None) -> None:
        """Ends the trust, because of an agreement."""
        self.trusted, self.distrust, self.suspect, self.alert = False, agreement, suspect, 0
        self.recent, self.numbers = self.recent[:0], self.numbers[:0]  # they say nothing about the answers to come
        self.bets = self.new_bets()


@lru_cache(maxsize=65536)
def upper_limit(k: int, n: int, confidence: float) -> float:
    """Returns the upper limit of a share: that for which at most `k` of `n` has the chance 1 - confidence."""
    if k >= n:
        return 1.0
    terms = _log_choose(k, n)
    aim = math.log1p(-confidence)
    low, high = k / n, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _log_at_most(terms, n, middle) > aim:
            low = middle
        else:
            high = middle
    return high


def lower_limit(k: int, n: int, confidence: float) -> float:
    """Returns the exact lower limit of a share, of which `k` of `n` were seen."""
    return 1.0 - upper_limit(n - k, n, confidence)


def _log_choose(k: int, n: int) -> FloatArray:
    """Returns the logarithms of n over 0, 1, …, k."""
    i = np.arange(1, k + 1)
    return np.concatenate([[0.0], np.cumsum(np.log(n - i + 1) - np.log(i))])


def _log_at_most(terms: FloatArray, n: int, share: float) -> float:
    """Returns the logarithm of the chance of at most k successes."""
    if share >= 1.0:
        return -math.inf
    i = np.arange(len(terms))
    logs = terms + i * math.log(share) + (n - i) * math.log1p(-share) if share > 0 else terms[:1]
    top = float(logs.max())
    with np.errstate(under="ignore"):  # chances that are too small to count
        return top + math.log(float(np.exp(logs - top).sum()))
