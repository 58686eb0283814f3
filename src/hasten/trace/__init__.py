"""Traces of searches and proofs: a log of events, told as text and drawn as pictures.

Searches and proofs have recorders (`hasten.trace.events`), which watch their kernels and write the events down.

Imports `hasten.model` and the rooms below it, and `hasten.jit`; never `hasten.search` or `hasten.proof`.
"""
