"""Exact elimination, for proofs and for searches: plans of which variables go, and kernels that carry plans out.

`plan` says which variables go, and which sums that takes (`joins`); rules over pairs that are left make way for
`cliques`; `kernels` carries a plan out for one problem, `lanes` for eight of one structure at a time. The step of a
proof is `hasten.proof.eliminate`. Imports `hasten.model` and the rooms below it.
"""
