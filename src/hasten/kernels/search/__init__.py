"""Beam search over partial labellings (paper §2.2, §4.1), one resumable search for all its forms.

A node is a partial labelling in the structure's search order. Its priority is `g + h`, smaller is better: `g`
is the path cost (costs of its labels, finite entries of the tables it completed), `h = -w·phi` the learned
heuristic. Ties go to the earlier candidate. Switches:

- `enforce`: forbidden tuples, forbidden labels and rows that can no longer hold remove a candidate;
- `ahead`: adds, for each unassigned variable whose cost is known, the least it can still cost given the
  tables that are one variable short (zero learning; an admissible estimate where no table entry is negative,
  and elsewhere up to what the tables not yet counted can give back, which is the same for all nodes of a step);
- `spread`: drops nodes whose priority is more than this above the best: a beam that narrows when it is sure;
- `theta`: where the gap in `h` around the beam's edge exceeds it, candidates are ranked by `h` alone and the
  variable's cost stays *pending*. A later step that ranks by `g + h` first needs the pending costs on which the
  nodes disagree; where they all agree a cost shifts every `g` alike and is never needed. The answer is chosen
  among the last nodes by the same rule, with a beam of one. `theta = inf` always computes, `theta = 0` never.

A search that needs costs that are not there returns `BLOCKED` with those variables marked as wanted; put
their costs in place and call `advance` again.

Its kernels (`hasten.jit`), each file resting on those before it: `nodes` (what a search works in), `ahead`
(look-ahead), `candidates` (expand and rank), `advance` (one search), `walk` (one with a beam of one), `drivers`
(many). Searches of another kind, for learning or with costs of their own, take the same steps: `arcs` keeps
arc consistency, `reduced` searches what elimination leaves.

Imports the kernels of the room around it, never those of `proof` or `learning`.
"""

from hasten.kernels.rows import breaks_row
from hasten.kernels.search.advance import BLOCKED, DEAD_END, DONE, advance, begin, choose, keep_best, settle
from hasten.kernels.search.candidates import add_costs, expand, rank_by_heuristic, rank_by_priority
from hasten.kernels.search.drivers import Paused, search_some, search_wave
from hasten.kernels.search.nodes import (
    BITS,
    KNOWN,
    UNKNOWN,
    WANTED,
    Beam,
    Nodes,
    Options,
    Scratch,
    Sizes,
    beam_in,
    largest,
    n_floats,
    n_ints,
)
from hasten.kernels.search.walk import NONE, UNSEEN, assign_one, choose_one, choose_unseen, expand_one, start_walk

__all__ = [
    "BITS",
    "BLOCKED",
    "DEAD_END",
    "DONE",
    "KNOWN",
    "NONE",
    "UNKNOWN",
    "UNSEEN",
    "WANTED",
    "Beam",
    "Nodes",
    "Options",
    "Paused",
    "Scratch",
    "Sizes",
    "add_costs",
    "advance",
    "assign_one",
    "beam_in",
    "begin",
    "breaks_row",
    "choose",
    "choose_one",
    "choose_unseen",
    "expand",
    "expand_one",
    "keep_best",
    "largest",
    "n_floats",
    "n_ints",
    "rank_by_heuristic",
    "rank_by_priority",
    "search_some",
    "search_wave",
    "settle",
    "start_walk",
]
