"""Amortized inference beside ours: what its theorems answer of the test sentences, and what a lookup takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from hasten.tasks.report.formatting import Entry, fixed, percent, text, whole

NAMES: Mapping[str, str] = {
    "exact": "exact: costs moved only in the answer’s favour",
    "margins": "margins: they moved against it by less than all others cost more",
    "cones": "cones: sums of past problems with one answer",
}
COLUMNS: tuple[tuple[str, Callable[[Entry], str]], ...] = (
    ("theorem", lambda row: text(NAMES.get(str(row.get("theorem")), row.get("theorem")))),
    ("learned from", lambda row: whole(row.get("learned_from"))),
    ("remembered", lambda row: whole(row.get("remembered"))),
    ("answered", lambda row: percent(row.get("answered"))),
    ("wrong", lambda row: whole(row.get("wrong"))),
    ("lookups, ms", lambda row: fixed(row.get("lookup_ms"), 1)),
    ("proofs, ms", lambda row: fixed(row.get("proof_ms"), 1)),
)


def amortized(results: Entry) -> str:
    """The table, with what it means."""
    rows = results.get("amortized") or ()
    if not rows:
        return '<p class="empty">Amortized inference was not measured.</p>'
    heads = "".join(f"<th>{head}</th>" for head, _ in COLUMNS)
    lines = "".join(f"<tr>{''.join(f'<td>{cell(row)}</td>' for _, cell in COLUMNS)}</tr>" for row in rows)
    return (
        "<p>The predecessor of the paper’s idea (Srikumar, Kundu and Roth 2012; Kundu, Srikumar and Roth 2013) "
        "remembers the black box’s answers to unlabeled sentences, up to 1,024 of each size, and answers a test "
        "sentence where a theorem proves that one of them is its answer. Times are CPU time of the whole test set, "
        "costs given: of looking everything up, and of proving everything without it.</p>"
        f'<div class="scroll"><table class="plain"><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table></div>'
    )
