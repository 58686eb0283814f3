"""Learning a heuristic from a black box's answers, and what theory says of it.

Imports `hasten.kernels.learning`, `hasten.kernels.search`, the searches, proofs and solvers, and the rooms below them.
"""
