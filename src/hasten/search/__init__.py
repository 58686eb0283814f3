"""The searches: quick, and without proof.

Imports `hasten.kernels.search`, `hasten.model` and the rooms below it, never `hasten.proof`.
"""
