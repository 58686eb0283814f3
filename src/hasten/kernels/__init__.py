"""Compiled functions on flat arrays: all that has to be fast, and nothing else.

Imports `hasten.jit` and `hasten.support`. The room `search` within imports what stands here,
never the other way.
"""
