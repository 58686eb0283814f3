"""Choosing theta (paper §4.1): how large a gap must be before the heuristic may decide without the costs.

A smaller theta saves more costs and changes more answers. `calibrate` returns the smallest theta of which it
is confident that it changes no more than a given share, `risk`, of the answers. The share need not fall as
theta grows, so a plain minimum over many candidates would be too lucky. Instead they are tested from the
largest down, each by the exact binomial upper limit of its share, until one fails: the first candidate that
is truly too risky passes with a chance of at most 1 - confidence, and so none that is too risky is
returned but with that chance. For this the candidates must not depend on the answers that test them: they
come from the gaps of other problems, a fifth of those given. Several widths share the doubt equally.

`theta = inf` computes every cost. The next candidate, `FORCED`, skips a cost only where the constraints leave no
more candidates than the beam can hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import numpy as np

from hasten.errors import ProblemError
from hasten.kernels import search as beam
from hasten.kernels.tolerance import TOLERANCE
from hasten.model.batch import Batch, as_batch
from hasten.model.problem import Problem
from hasten.model.solution import Solutions, Status
from hasten.search.beam import NO_WEIGHTS, BeamSearch
from hasten.search.searcher import Searcher
from hasten.search.theta import FORCED, theta_in_words
from hasten.speedup.audit import upper_limit
from hasten.support.arrays import BoolArray, FloatArray
from hasten.support.checks import check_width

N_CANDIDATES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """What testing a way to skip costs found: how many of `n` answers it changed, and what it computed."""

    n_changed: int
    n: int
    limit: float  # of the share that it changes
    share: float  # of the costs that it computes
    passed: bool

    @property
    def changed(self) -> float:
        """The share of answers that it changed."""
        return self.n_changed / self.n if self.n else math.nan

    @property
    def row(self) -> str:
        """What it found, as the end of a row below `HEADINGS`."""
        return f"{self.share:>8.1%} {self.changed:>8.2%} {self.limit:>8.2%}{'' if self.passed else '  too risky'}"


HEADINGS = f"{'costs':>8} {'changed':>8} {'at most':>8}"


def limit_in_words(limit: float, confidence: float, risk: float, met: bool) -> str:
    """Returns what a choice rests on, in words."""
    unmet = "" if met else ", which no candidate met"
    return f"(at most {limit:.2%}, with confidence {confidence:.0%}; the risk allowed is {risk:.2%}{unmet})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate(Tested):
    """A theta as tested, at a width."""

    width: int
    theta: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """The choice, and what it rests on. Where `met` is false, even theta = inf was not below the risk."""

    theta: float
    width: int
    met: bool
    risk: float
    confidence: float
    against: str
    changed: float  # the share of answers that the choice changed
    limit: float  # the upper limit of that share
    share: float  # of the costs that the choice computes
    table: tuple[Candidate, ...]  # the candidates tested, up to the first of each width that failed
    note: str = ""  # which settings kept theta from being finite, or make it useless

    def __str__(self) -> str:
        lines = [
            f"theta {theta_in_words(self.theta)} at width {self.width}: computes {self.share:.1%} of the costs, "
            f"changes {self.changed:.2%} of the answers against the {self.against}",
            limit_in_words(self.limit, self.confidence, self.risk, self.met),
            f"{'width':>5} {'theta':>10} {HEADINGS}",
        ]
        lines += [f"{each.width:>5} {theta_in_words(each.theta):>10} {each.row}" for each in self.table]
        lines += [self.note] if self.note else []
        return "\n".join(lines)


def calibrate(
    search: BeamSearch,
    problems: Batch | Iterable[Problem],
    *,
    risk: float = 0.01,
    confidence: float = 0.95,
    widths: Iterable[int] | None = None,
    black_box: Callable[[Batch], Solutions] | None = None,
    run_as: Callable[[BeamSearch], Searcher] = lambda search: search,
    seed: int = 0,
    n_jobs: int = 1,
) -> Calibration:
    """Returns the smallest theta that changes at most a share `risk` of the answers.

    Answers are compared with those of the same search with `theta = inf` (of the widest, if there are several
    `widths`): a change is another labelling. Given a `black_box`, they are compared with its: a change
    is a labelling that is invalid or does not cost the same (`disagreeing`). Among several widths the one that
    computes the fewest costs is chosen, then the smallest. The problems should be new to the search, and need
    no labels. `run_as` gives the search to run in place of one with some theta and width, if that is another.
    """
    if not 0 < risk < 1 or not 0 < confidence < 1:
        raise ProblemError(f"Risk and confidence are shares between 0 and 1; got risk={risk}, confidence={confidence}.")
    chosen_widths = [search.width] if widths is None else list(widths)
    for width in chosen_widths:
        check_width(width)
    chosen_widths = sorted(set(chosen_widths))
    if not chosen_widths:
        raise ProblemError("Give at least one width to choose from.")
    batch = as_batch(problems).resolved()
    if len(batch) < 2:
        raise ProblemError(f"Calibration needs problems to test on, by the hundred; got {len(batch)}.")
    order = np.random.default_rng(seed).permutation(len(batch))
    cut = max(1, len(batch) // 5)
    shown, tested = batch.select(np.sort(order[:cut])), batch.select(np.sort(order[cut:]))
    widest = replace(search, width=chosen_widths[-1], theta=math.inf)
    reference = black_box(tested) if black_box is not None else run_as(widest)(tested, n_jobs=n_jobs)
    changes = disagreeing if black_box is not None else relabelled
    sure = 1 - (1 - confidence) / len(chosen_widths)
    table: list[Candidate] = []
    for width in chosen_widths:
        for theta in candidates(replace(search, width=width), shown):
            found = run_as(replace(search, width=width, theta=theta))(tested, n_jobs=n_jobs)
            n_changed = int(changes(found, reference).sum())
            same = black_box is None and theta == math.inf and width == widest.width
            limit = 0.0 if same else upper_limit(n_changed, len(tested), sure)
            share = float(found.n_costs.sum()) / max(1, int(tested.variable_at[-1]))
            passed = limit <= risk
            table.append(
                Candidate(
                    width=width,
                    theta=theta,
                    n_changed=n_changed,
                    n=len(tested),
                    limit=limit,
                    share=share,
                    passed=passed,
                )
            )
            if not passed:
                break
    best = choose(table)
    met = best is not None
    if best is None:  # the widest search, which computes everything, is the safest there is
        best = next(row for row in table if row.width == widest.width and row.theta == math.inf)
    return Calibration(
        best.theta,
        best.width,
        met,
        risk,
        confidence,
        "search that computes every cost" if black_box is None else "black box",
        best.changed,
        best.limit,
        best.share,
        tuple(table),
        _note(search, run_as(widest)) if best.theta == math.inf else "",
    )


def choose(table: Iterable[Candidate]) -> Candidate | None:
    """Returns, of the smallest theta of each width that passed, the one with the fewest costs."""
    last = {row.width: row for row in table if row.passed}  # tested from the largest theta down
    return min(last.values(), key=lambda row: (row.share, row.width), default=None)


def problems_needed(risk: float, confidence: float = 0.95) -> int:
    """Returns how many problems calibration needs: fewer prove too little even if no answer is changed."""
    tested = math.ceil(math.log1p(-confidence) / math.log1p(-risk))
    n = tested + 1
    while n - n // 5 < tested:
        n += 1
    return n


def candidates(search: BeamSearch, batch: Batch) -> list[float]:
    """Returns thetas to test, largest first: inf, `FORCED`, quantiles of the gaps seen, and 0."""
    gap = gaps(search, batch)
    gap = gap[np.isfinite(gap) & (gap > 0)]
    inner = np.unique(np.quantile(gap, np.linspace(0, 1, N_CANDIDATES))) if gap.size else gap
    return [math.inf, FORCED, *inner[::-1].tolist(), 0.0]


def gaps(search: BeamSearch, batch: Batch) -> FloatArray:
    """Returns the heuristic's gap at each step of a search: inf where all candidates fit into the beam."""
    gap = np.empty(batch.variable_at[-1])
    weights = NO_WEIGHTS if search.weights is None else search.weights
    options = beam.Options(int(search.width), math.inf, float(search.spread), bool(search.enforce), False)
    beam.observe_gaps(batch.arrays, weights, options, batch.order, gap)
    return gap


def relabelled(found: Solutions, reference: Solutions) -> BoolArray:
    """Tells which answers have other labels."""
    owner = np.repeat(np.arange(len(found)), found.batch.n_variables)
    changed: BoolArray = np.bincount(owner[found.values != reference.values], minlength=len(found)) > 0
    return changed


def disagreeing(found: Solutions, reference: Solutions) -> BoolArray:
    """Tells which answers are invalid, or do not cost what those of the black box cost, within the tolerance.

    To cost less is to disagree as well: with a black box that does not answer with the cheapest labelling, on
    purpose. Only what a time limit cut short, or what was kept where the solver failed, may be bettered.
    """
    solvable = ~reference.has(Status.INFEASIBLE)
    cut_short = reference.has(Status.TIME_LIMIT) | reference.has(Status.FAILED)
    slack = TOLERANCE * np.maximum(1.0, np.abs(reference.cost))
    with np.errstate(invalid="ignore"):  # inf less inf, where there is no answer
        more = found.cost - reference.cost
    changed: BoolArray = np.where(solvable, ~found.valid | (more > slack) | ((more < -slack) & ~cut_short), found.valid)
    return changed


def _note(search: BeamSearch, whole: Searcher) -> str:
    """Returns what of a search needs every cost, so that one with a finite theta has to do without."""
    needs = ["look_ahead"] * search.look_ahead + ["reduce"] * (not isinstance(whole, BeamSearch))
    if not needs:
        return ""
    off = ", ".join(f"{name}=False" for name in needs)
    return (
        f"Each finite theta was tried without {' and '.join(needs)}: a search that skips costs cannot have what "
        f"needs all of them. If that is why none passed, set {off} and calibrate again."
    )
