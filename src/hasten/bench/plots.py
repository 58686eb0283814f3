"""Time against size, log-log: straight lines are powers of the size, and the legend names those powers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hasten.bench.families import FAMILIES
from hasten.bench.peers import OWN, PEERS

if TYPE_CHECKING:
    from hasten.bench.run import Results

# Hues that the colour-blind can tell apart, markers for print; hasten in black, drawn thickest.
STYLES = {
    "hasten": ("#000000", "o"),
    "hasten batch": ("#000000", "s"),
    "toulbar2": ("#d55e00", "^"),
    "gurobi": ("#0072b2", "v"),
    "highs": ("#009e73", "D"),
    "highs default": ("#009e73", "d"),
    "scip": ("#cc79a7", "P"),
    "scipy": ("#7f7f7f", "X"),
    "cpsat": ("#e69f00", "*"),
}


def draw(results: Results, out: Path) -> list[Path]:
    """Draws each family that was measured at two sizes or more; nothing without matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    written = []
    for family in dict.fromkeys(found.family for found in results.measurements):
        sizes = {found.size for found in results.measurements if found.family == family and found.seconds}
        if len(sizes) < 2:
            continue
        figure, axes = pyplot.subplots(figsize=(7.5, 5), layout="constrained")
        _draw_family(axes, results, family)
        path = out / f"{family}.png"
        figure.savefig(path, dpi=120)
        pyplot.close(figure)
        written.append(path)
    return written


def _draw_family(axes: Any, results: Results, family: str) -> None:
    ticks = set()
    for peer in PEERS:
        found = [
            (each.size, 1e3 * each.mean, each.n_solved == len(each.seconds))
            for each in results.measurements
            if each.family == family and each.peer == peer and each.seconds and each.status == "ok"
        ]
        if not found:
            continue
        sizes, means, whole = (list(column) for column in zip(*found, strict=True))
        ticks |= set(sizes)
        solved = [size for size, _, all_of in found if all_of], [mean for _, mean, all_of in found if all_of]
        color, marker = STYLES[peer]
        own = peer in OWN
        axes.plot(
            sizes,
            means,
            color=color,
            marker=marker,
            linestyle="--" if peer in ("hasten", "highs default") else "-",
            linewidth=2.5 if own else 1.3,
            markersize=6,
            zorder=3 if own else 2,
            label=f"{peer}{slope_of(*solved)}",
        )
        open_ones = [(size, mean) for size, mean, all_solved in zip(sizes, means, whole, strict=True) if not all_solved]
        if open_ones:  # a hollow mark: not all were solved within the limit
            axes.plot(*zip(*open_ones, strict=True), linestyle="", marker=marker, color=color, mfc="white", zorder=4)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sorted(ticks), [str(size) for size in sorted(ticks)])
    axes.set_xticks([], minor=True)
    axes.set_xlabel(f"{FAMILIES[family].unit} (log)")
    axes.set_ylabel("milliseconds a problem (log)")
    axes.set_title(f"{family}: {FAMILIES[family].about}", fontsize=10, loc="left")
    axes.grid(True, which="major", color="#e5e5e5")
    axes.spines[["top", "right"]].set_visible(False)
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(handles)), key=lambda h: -handles[h].get_ydata()[-1])
    axes.legend(
        [handles[h] for h in order],
        [labels[h] for h in order],
        loc="center left",
        bbox_to_anchor=(1.0, 0.5),
        frameon=False,
        fontsize=9,
        title="slope: power of the size\nhollow: some not solved in time",
        title_fontsize=8,
        alignment="left",
    )


def slope_of(sizes: Sequence[int], means: Sequence[float]) -> str:
    """Returns the power of the size with which the time grows, as a line fitted to the logarithms has it."""
    slope = slope_through(sizes, means)
    return "" if math.isnan(slope) else f" ({slope:.1f})"


def slope_through(sizes: Sequence[int], means: Sequence[float]) -> float:
    """Returns the slope of the least-squares line through the logarithms; nan for a single size."""
    if len(sizes) < 2:
        return math.nan
    return float(np.polyfit(np.log(sizes), np.log(means), 1)[0])
