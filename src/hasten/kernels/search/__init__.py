"""Beam search over partial labellings (paper §2.2, §4.1), one resumable search for all its forms.

A node is a partial labelling in the structure's search order. Its priority is `g + h`, smaller is better: `g` is the
path cost (costs of its labels, finite entries of the tables it completed), `h = -w·phi` the learned heuristic. Ties go
to the earlier candidate. Where the gap in `h` around the beam's edge exceeds `theta`, candidates are ranked by `h`
alone and the variable's cost stays *pending*; a later step that ranks by `g + h` first needs the pending costs on which
the nodes disagree. A search that needs costs that are not there returns `BLOCKED` with those variables marked as
wanted; put their costs in place and call `advance` again.

Each module builds on those before it: `nodes`, `loop` (one search), `drivers` (batches). `arcs` is the arc consistent
search. Imports `hasten.kernels` and, to search over the variables that elimination leaves, `hasten.proof.elimination`.
"""
