"""The certifier: answers with a proof that nothing is cheaper.

Imports `hasten.kernels.proof`, `hasten.model` and the rooms below it, never `hasten.search`.
"""
