"""Sums over all labellings: log-partition, marginals, entropy, exact samples and min-marginals of many problems at once.

`counters` turns rules into variables, `plan` plans the elimination of all of them, `kernels` carries it out in another
semiring, `drivers` for many problems; `marginals` is the door. Imports `hasten.model`, `hasten.proof.elimination` and
the rooms below them.
"""
