"""The record of a speedup over its lifetime: calls of the black box, agreement, proofs and learning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hasten.errors import HastenError
from hasten.speedup.audit import Agreement
from hasten.support.words import count

FEWEST = 16  # problems between two moments
SHARE = 200  # of all problems so far: one moment for each such part
MOST_NOTES = 500  # moments with a note that are kept
ASKED = "asked "  # begins the names of counters that tell whom `solver="auto"` asked


@dataclass(frozen=True, slots=True)
class Counters:
    """Counts of all that a speedup did so far."""

    problems: int = 0  # answered: the sum of the next five
    by_search: int = 0
    by_bound: int = 0
    by_branch: int = 0
    by_solver: int = 0
    by_learned: int = 0
    proved: int = 0  # without the solver, optimal or infeasible
    infeasible: int = 0
    solver_calls: int = 0  # for answers, audits and learning
    costs: int = 0  # variables whose costs were computed for the answers
    variables: int = 0  # of all problems answered
    audits: int = 0
    disagreements: int = 0
    labelled: int = 0  # problems learned from
    updates: int = 0  # mistakes that changed the weights
    asked: Mapping[str, int] = field(default_factory=dict)  # calls of each solver by `solver="auto"`

    @classmethod
    def from_dict(cls, counts: Mapping[str, int]) -> Counters:
        """Returns the counters of some counts by name; other names are passed over."""
        known: dict[str, Any] = {name: counts[name] for name in NAMES if name in counts}
        known["asked"] = {name.removeprefix(ASKED): n for name, n in counts.items() if name.startswith(ASKED)}
        return cls(**known)

    def __add__(self, other: Counters) -> Counters:
        counts = Counter(self.as_dict())
        counts.update(other.as_dict())
        return Counters.from_dict(counts)

    def as_dict(self) -> dict[str, int]:
        """Returns the counts by name."""
        counts = {name: getattr(self, name) for name in NAMES}
        return counts | {f"{ASKED}{name}": n for name, n in self.asked.items()}

    def __str__(self) -> str:
        share = self.costs / self.variables if self.variables else 1.0
        learned = f"{self.by_learned} by learned tables, " if self.by_learned else ""
        asked = ", ".join(f"{name} {count(n, 'time')}" for name, n in self.asked.items())
        return (
            f"{count(self.problems, 'problem')}: {learned}{self.by_search} by search, {self.by_bound} by bound, "
            f"{self.by_branch} by branching, {self.by_solver} by the solver; {share:.1%} of the costs "
            f"computed; {self.disagreements} of {count(self.audits, 'audit')} disagreed; "
            f"{count(self.updates, 'update')}{f'; asked {asked}' if asked else ''}"
        )


NAMES = tuple(each.name for each in fields(Counters) if each.name != "asked")


@dataclass(frozen=True, slots=True)
class Moment:
    """How things stood once some problems were answered; `note` says what changed, where something did."""

    problems: int
    calls: int  # of the black box, for answers, audits and learning
    agreement: Agreement
    proved: int  # answers, without the solver
    learned: int  # answers by learned tables
    labelled: int  # answers learned from
    note: str = ""


class History:
    """The moments of a lifetime, oldest first; `plot` draws them."""

    def __init__(self, moments: list[Moment] | None = None) -> None:
        self.moments = [] if moments is None else moments

    def is_due(self, n_problems: int) -> bool:
        """Whether enough problems were answered since the last moment."""
        since = n_problems - (self.moments[-1].problems if self.moments else 0)
        return since >= max(FEWEST, n_problems // SHARE)

    def record(self, counters: Counters, agreement: Agreement, note: str = "") -> None:
        """Adds a moment."""
        problems, calls, proved = counters.problems, counters.solver_calls, counters.proved
        self.moments.append(Moment(problems, calls, agreement, proved, counters.by_learned, counters.labelled, note))
        noted = [x for x, each in enumerate(self.moments) if each.note] if note else []
        if len(noted) > MOST_NOTES:
            del self.moments[noted[0]]

    @property
    def notes(self) -> list[str]:
        """The changes, and after how many problems each came, in sentences."""
        return [f"After {count(each.problems, 'problem')}: {each.note}" for each in self.moments if each.note]

    def __len__(self) -> int:
        return len(self.moments)

    def __iter__(self) -> Iterator[Moment]:
        return iter(self.moments)

    def __repr__(self) -> str:
        return f"History({len(self)} moments)"

    def plot(self, axes: Any = None) -> Any:
        """Draws agreement with its limits and the shares of problems so far; returns matplotlib's axes."""
        if axes is None:
            try:
                from matplotlib import pyplot
            except ImportError:
                raise HastenError("Drawing a history needs matplotlib: pip install 'hasten[plot]'.") from None
            _, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
        some = [each for each in self.moments if each.problems]
        x = [each.problems for each in some]
        audited = [each for each in some if each.agreement.n]
        at = [each.problems for each in audited]
        axes.fill_between(
            at, [each.agreement.low for each in audited], [each.agreement.high for each in audited], alpha=0.2
        )
        axes.plot(at, [each.agreement.estimate for each in audited], label="agreement of late, with its limits")
        axes.plot(x, [each.calls / each.problems for each in some], "--", label="calls of the black box, a problem")
        axes.plot(x, [each.learned / each.problems for each in some], "-.", label="answered by learned tables")
        if any(each.proved for each in some):
            axes.plot(x, [each.proved / each.problems for each in some], ":", label="proved without the solver")
        for each in some:
            if each.note:
                axes.axvline(each.problems, color="0.8", linewidth=0.8, zorder=0)
        axes.set_xlabel("problems answered (a grey line: something changed)")
        axes.set_ylabel("share")
        axes.set_ylim(bottom=0.0)
        axes.legend(loc="best", fontsize="small")
        return axes
