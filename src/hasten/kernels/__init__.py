"""Compiled functions on flat arrays that searches, proofs and learning share: graphs, scores, rows and tolerances.

Imports `hasten.jit` and `hasten.support`. The room `search` within, `hasten.proof` and `hasten.learning` import this
room, never the other way.
"""
