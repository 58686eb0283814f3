"""Writes the tables of docs/results.md from what `hasten reproduce` measured.

python benchmarks/tables.py results/structured/results.json results/independent/results.json
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SHARES = ("relation_f1_gold", "relation_f1_ilp")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("results", nargs="+", type=Path, help="results.json, one of each black box")
    for path in options.parse_args().results:
        results = json.loads(path.read_text())
        print(f"{results['about']['black_box'].capitalize()} black box:\n\n{full(results)}\n")


def share(value: float) -> str:
    """Returns a share without the zero before its point."""
    return f"{value:.3f}".removeprefix("0")


def theta_of(row: Row) -> str:
    """Returns a row's theta, as the paper would print it."""
    if row["theta"] is None:
        return ""
    if row["theta"] > 1e300:
        return "forced"
    if row.get("relative_theta") is not None:
        return f"{row['relative_theta']:g}"
    return f"{row['theta']:.3g}"


def paper_row(results: Row, row: Row) -> Row | None:
    """Returns the row of the paper that is the same thing; our averaged weights are not."""
    same = ("table", "model", "beam", "relative_theta")
    return next((each for each in results["paper"] if all(each[key] == row[key] for key in same)), None)


def full(results: Row) -> str:
    """Returns all rows of one black box, the paper's figures beside its own methods."""
    heads = "b", "θ", "relation F1, gold", "relation F1, ILP", "valid", "exact", "costs", "CPU ms", "× ILP"
    lines = [f"| | {' | '.join(heads)} | the paper: F1 gold, ILP | valid | × ILP |", "|---" * 13 + "|"]
    ilp = results["rows"][0]["time_ms"]
    ilp_then = next((row["time_ms"] for row in results["paper"] if row["model"] == "ILP"), math.nan)
    for row in results["rows"]:
        scores = [f"{share(row[key])} ± {share(row['std'].get(key, 0.0))}" for key in SHARES]
        cells = [row["model"], row["beam"] or "", theta_of(row), *scores, f"{row['validity']:.2f}"]
        cells += [share(row["exact_match"]), f"{row['costs_computed']:.0%}"]
        cells += [f"{row['time_ms']:.1f} ± {row['time_ms_std']:.1f}", times(ilp / row["time_ms"])]
        theirs = paper_row(results, row)
        if theirs is None:
            cells += ["", "", ""]
        else:
            cells += [", ".join(share(theirs[key]) for key in SHARES), f"{theirs['validity']:.2f}"]
            cells += [times(ilp_then / theirs["time_ms"])]
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)


def times(ratio: float) -> str:
    """Returns how many times as fast something is."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


if __name__ == "__main__":
    main()
