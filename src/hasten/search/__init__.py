"""Searches that are quick and prove nothing: beam search, greedy search, arc consistent search.

Imports `hasten.kernels.search`, `hasten.model` and, for plans of elimination, `hasten.proof.elimination`.
"""
