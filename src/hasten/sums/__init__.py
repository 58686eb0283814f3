"""Sums over all labellings: log-partition, marginals, entropy, samples and min-marginals of many problems at once.

`counters` turns rules into variables, `plan` plans the elimination of all variables, `kernels` carries it out in
another semiring, `drivers` for many problems; `distribution` and `margins` are the doors. Imports `hasten.model`,
`hasten.proof` and the rooms below them.
"""

from hasten.sums.distribution import Marginals, log_partition, marginals, sample
from hasten.sums.margins import Margins, min_marginals

__all__ = ["Marginals", "Margins", "log_partition", "marginals", "min_marginals", "sample"]
