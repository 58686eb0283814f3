"""Beam search over partial labellings (paper §2.2, §4.1), one resumable search for all its forms.

A node is a partial labelling in the structure's search order. Its priority is `g + h`, smaller is better: `g`
is the path cost (costs of its labels, finite entries of the tables it completed), `h = -w·phi` the learned
heuristic. Ties go to the earlier candidate. Switches:

- `enforce`: forbidden tuples, forbidden labels and rows that can no longer hold remove a candidate;
- `ahead`: adds, for each unassigned variable whose cost is known, the least it can still cost given the
  tables that are one variable short (zero learning; an admissible estimate where no table entry is negative,
  and elsewhere up to the negative entries of tables not yet counted, which are the same for all nodes of a step);
- `spread`: drops nodes whose priority is more than this above the best: a beam that narrows when it is sure;
- `theta`: where the gap in `h` around the beam's edge exceeds it, candidates are ranked by `h` alone and the
  variable's cost stays *pending*. A later step that ranks by `g + h` first needs the pending costs on which the
  nodes disagree; where they all agree a cost shifts every `g` alike and is never needed. The answer is chosen
  among the last nodes by the same rule, with a beam of one. `theta = inf` always computes, `theta = 0` never.

A search that needs costs that are not there returns `BLOCKED` with those variables marked as wanted; put
their costs in place and call `advance` again. So the loop is written once: searches with costs of their own, and
learning, which follows a reference (`Track`), call it too.

Its kernels (`hasten.jit`), each file resting on those before it: `nodes` (the state of a search), `candidates`
(expand, look ahead and rank), `loop` (one search), `drivers` (many). `arcs` is another search: greedy, and arc
consistent.

Imports the kernels of the room around it, never those of `proof` or `learning`.
"""

from hasten.kernels.search.drivers import Paused, observe_gaps, search_reduced, search_some, search_wave
from hasten.kernels.search.loop import BLOCKED, DEAD_END, DONE, FORBIDDEN, LOST, advance, begin
from hasten.kernels.search.nodes import (
    BITS,
    GIVEN,
    KNOWN,
    NOW,
    UNKNOWN,
    WANTED,
    Beam,
    Found,
    Nodes,
    Options,
    Sizes,
    Track,
    beam_in,
    largest,
    n_floats,
    n_ints,
    write_answer,
)

__all__ = [
    "BITS",
    "BLOCKED",
    "DEAD_END",
    "DONE",
    "FORBIDDEN",
    "GIVEN",
    "KNOWN",
    "LOST",
    "NOW",
    "UNKNOWN",
    "WANTED",
    "Beam",
    "Found",
    "Nodes",
    "Options",
    "Paused",
    "Sizes",
    "Track",
    "advance",
    "beam_in",
    "begin",
    "largest",
    "n_floats",
    "n_ints",
    "observe_gaps",
    "search_reduced",
    "search_some",
    "search_wave",
    "write_answer",
]
