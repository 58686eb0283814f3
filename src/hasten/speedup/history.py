"""What became of a speedup over its lifetime: calls of the black box, agreement, what was proved and learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hasten.errors import HastenError
from hasten.speedup.audit import Agreement, Counters
from hasten.support.words import count

FEWEST = 16  # problems between two moments
SHARE = 200  # of all problems so far: one moment for each such part
MOST_NOTES = 500  # moments with a note that are kept


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
        learned, calls = counters.by_learned, counters.solver_calls
        self.moments.append(
            Moment(counters.problems, calls, agreement, counters.proved, learned, counters.labelled, note)
        )
        noted = [x for x, each in enumerate(self.moments) if each.note] if note else []
        if len(noted) > MOST_NOTES:
            del self.moments[noted[0]]

    @property
    def notes(self) -> list[str]:
        """What changed, and after how many problems, in sentences."""
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
