"""What the paper reports (Pan & Srikumar 2018, Tables 1 and 2).

Its theta stands for a gap of path costs, and its costs have another scale than ours, so its theta is multiplied by
the scale of our costs before it is used. Its figures belong beside ours only on its own corpus
(`is_papers_corpus`).
"""

from __future__ import annotations

from typing import Any

from hasten.tasks.entity_relation.names import Model

PAPER_ROWS: tuple[dict[str, Any], ...] = tuple(
    dict(zip(
        ("table", "model", "beam", "relative_theta", "entity_f1_gold", "relation_f1_gold", "entity_f1_ilp",
         "relation_f1_ilp", "time_ms", "time_ms_std", "validity"),
        row, strict=True,
    ))
    for row in (
        ("1", Model.ILP, None, None, 0.827, 0.482, 1.0, 1.0, 239, 11.4, 1.0),
        ("1", Model.GREEDY, None, None, 0.822, 0.334, 0.877, 0.546, 170, 6.5, 0.29),
        ("1", Model.CONSTRAINED, None, None, 0.800, 0.572, 0.880, 0.741, 844, 31.0, 1.0),
        ("1", Model.PAPER_SPEEDUP, 1, None, 0.822, 0.447, 0.877, 0.674, 136, 2.1, 0.96),
        ("1", Model.PAPER_SPEEDUP, 2, None, 0.844, 0.484, 0.930, 0.752, 158, 19.8, 0.95),
        ("2", Model.PAPER_SPEEDUP, 1, 0.0, 0.21, 0.0, 0.173, 0.0, 39, 3.7, 1.0),
        ("2", Model.PAPER_SPEEDUP, 1, 0.25, 0.822, 0.435, 0.877, 0.546, 87, 2.5, 0.99),
        ("2", Model.PAPER_SPEEDUP, 1, 0.5, 0.822, 0.455, 0.877, 0.672, 114, 4.7, 0.98),
        ("2", Model.PAPER_SPEEDUP, 2, 0.0, 0.373, 0.152, 0.377, 0.139, 55, 2.5, 1.0),
        ("2", Model.PAPER_SPEEDUP, 2, 0.25, 0.819, 0.461, 0.893, 0.623, 130, 14.4, 0.99),
        ("2", Model.PAPER_SPEEDUP, 2, 0.5, 0.825, 0.494, 0.907, 0.689, 134, 4.0, 0.98),
    )
)  # fmt: skip
PAPER_THETAS = (0.0, 0.25, 0.5)  # of Table 2
PAPER_WIDTHS = (1, 2)
