"""Learning from a black box's answers: a heuristic, tables, a gate; and what theory says of the first.

Imports `hasten.kernels.learning`, `hasten.kernels.search`, the searches, proofs and solvers, and the rooms below them.
"""
