"""Compiled functions on flat arrays that searches, proofs and learning share: graphs, scores, rows and tolerances.

Imports `hasten.jit` and `hasten.support`. The rooms `search` and `learning` within, and `hasten.proof`, import this
room, never the other way.
"""
