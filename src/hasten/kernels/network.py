"""What a cut knows of a structure: which variables have two labels, and what joins them two by two."""

from __future__ import annotations

from hasten.jit import Record, viewer
from hasten.support.arrays import FloatArray, IntArray


class Network(Record):
    """Variables of two labels at most, joined in P pairs, for one structure (`hasten.model.cuts` makes it).

    The cost of a pair's labels is the sum of its *parts*, each a table of the problem or, where a rule joins the two,
    one of `own`. An arc leads from each variable of a pair to the other; those that leave a variable are together.
    """

    pair_low: IntArray  # (P,) one variable of each pair
    pair_high: IntArray  # (P,) the other, of a higher number
    pair_arc: IntArray  # (P,) the arc from the first to the second
    plain: IntArray  # (P,) 1 where it has one part, a table of the problem, and both variables have two labels
    form: IntArray  # (P,) of these, which table it is: -1 if it is not plain, or few pairs share tables
    form_at: IntArray  # (F,) where that starts
    form_low: IntArray  # (F,) how far apart in it the labels of the first are
    form_high: IntArray  # (F,) and those of the second
    part_first: IntArray  # (P + 1,) pair k has the parts part_first[k]:part_first[k + 1]
    part_at: IntArray  # (parts,) where the table starts
    part_low: IntArray  # (parts,) how far apart in it the labels of the first are
    part_high: IntArray  # (parts,) and those of the second
    part_own: IntArray  # (parts,) 1 where it is one of `own`
    single: IntArray  # (singles,) variables with a table over them alone
    single_at: IntArray  # (singles,) where it starts
    single_step: IntArray  # (singles,) how far apart the labels are
    single_own: IntArray  # (singles,)
    own: FloatArray  # tables of rules: 0 or inf
    arc_first: IntArray  # (V + 1,) variable v is left by the arcs arc_first[v]:arc_first[v + 1]
    head: IntArray  # (2 P,) where each arc leads
    sister: IntArray  # (2 P,) the arc that leads back
    arc_pair: IntArray  # (2 P,) whose arc it is
    ruled: IntArray  # (1,) 1 where there are rules over more than two variables, which it leaves out


network_at = viewer(Network)
