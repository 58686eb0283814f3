"""Writes the tables of docs/results.md and README.md from what `hasten reproduce` measured.

    python benchmarks/tables.py results/structured/results.json results/independent/results.json

Prints the full table of each black box, then the short one of both.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any

Row = dict[str, Any]
NAMES = {"1": "Table 1: every cost computed", "2": "Table 2: costs skipped", "ours": "ours"}
SHARES = ("entity_f1_gold", "relation_f1_gold", "entity_f1_ilp", "relation_f1_ilp")
SHORT = {
    ("ILP", None): "ILP (Gurobi)",
    ("search", None): "greedy search",
    ("constrained search", None): "constrained search",
    ("speedup, Algorithm 1", 1): "speedup, Algorithm 1, b=1 (the paper's preset)",
    ("speedup, Algorithm 1", 2): "speedup, Algorithm 1, b=2 (the paper's preset)",
    ("speedup, averaged", 2): "speedup, averaged, b=2 (ours)",
    ("calibrated, enforced", 1): "costs skipped by a calibrated θ, constraints enforced, b=1 (ours)",
    ("certified", None): "**certified** (ours)",
}


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("results", nargs=2, type=Path, help="results.json, of the structured and the independent one")
    both = [json.loads(path.read_text()) for path in options.parse_args().results]
    for results in both:
        print(f"{results['about']['black_box'].capitalize()} black box:\n\n{full(results)}\n")
    print(short(*both))


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
    return f"{row['theta']:.3g} (median)"


def paper_row(results: Row, row: Row) -> Row | None:
    """Returns the row of the paper that is the same thing; our averaged weights are not."""
    for theirs in results["paper"]:
        names = theirs["model"], theirs["beam"], theirs["relative_theta"], theirs["table"]
        ours = row["model"].removesuffix(", Algorithm 1"), row["beam"], row["relative_theta"], row["table"]
        if names in (ours, (row["model"], *ours[1:])):
            found: Row = theirs
            return found
    return None


def full(results: Row) -> str:
    """Returns all rows of one black box, the paper's below its own methods."""
    heads = "b", "θ", "entity F1 gold", "relation F1 gold", "entity F1 ILP", "relation F1 ILP", "valid", "exact"
    lines = [f"| | {' | '.join(heads)} | costs | CPU ms | × ILP |", "|---" * 12 + "|"]
    ilp, table = results["rows"][0]["time_ms"], ""
    ilp_then = next((row["time_ms"] for row in results["paper"] if row["model"] == "ILP"), math.nan)
    for row in results["rows"]:
        if row["table"] != table:
            table = row["table"]
            lines.append(f"| **{NAMES[table]}** |" + " |" * 11)
        limits = {key: "–".join(f"{limit:.2f}" for limit in row["interval"][key]) for key in SHARES}
        scores = [f"{share(row[key])} ± {share(row['std'][key])} ({limits[key]})" for key in SHARES]
        cells = [row["model"], row["beam"] or "", theta_of(row), *scores, f"{row['validity']:.2f}"]
        cells += [share(row["exact_match"]), f"{row['costs_computed']:.0%}"]
        cells += [f"{row['time_ms']:.1f} ± {row['time_ms_std']:.1f}", times(ilp / row["time_ms"])]
        lines.append(f"| {' | '.join(map(str, cells))} |")
        theirs = paper_row(results, row)
        if theirs is not None:
            cells = ["*in the paper*", "", "", *(share(theirs[key]) for key in SHARES), f"{theirs['validity']:.2f}"]
            cells += ["", "", f"{theirs['time_ms']:g} ± {theirs['time_ms_std']}", times(ilp_then / theirs["time_ms"])]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def times(ratio: float) -> str:
    """Returns how many times as fast something is."""
    return f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.1f}"


def short(structured: Row, independent: Row) -> str:
    """Returns the rows that matter most, of both black boxes and of the paper."""
    heads = "structured: F1 gold / ILP", "valid", "× ILP", "independent: F1 gold / ILP", "valid", "× ILP"
    lines = [f"| | {' | '.join(heads)} | the paper: F1 gold / ILP | valid | × ILP |", "|---" * 10 + "|"]
    for (model, beam), name in SHORT.items():
        cells = [name]
        for results in (structured, independent):
            row = next(row for row in results["rows"] if (row["model"], row["beam"]) == (model, beam))
            gold = f"{share(row['relation_f1_gold'])} ± {share(row['std']['relation_f1_gold'])}"
            cells += [f"{gold} / {share(row['relation_f1_ilp'])}", f"{row['validity']:.2f}"]
            cells += [times(results["rows"][0]["time_ms"] / row["time_ms"])]
        theirs = paper_row(structured, row)
        if theirs is None:
            cells += ["", "", ""]
        else:
            cells += [f"{share(theirs['relation_f1_gold'])} / {share(theirs['relation_f1_ilp'])}"]
            cells += [f"{theirs['validity']:.2f}", times(structured["paper"][0]["time_ms"] / theirs["time_ms"])]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
