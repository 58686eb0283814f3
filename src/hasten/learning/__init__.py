"""Learning from a black box's answers: a heuristic, the costs of label tuples, and which labels a gate may guess.

Kernels stand beside what calls them. Imports `hasten.jit`, `hasten.kernels.search`, the searches, proofs and solvers,
and the rooms below these.
"""
