"""Compiled functions on flat arrays: all that has to be fast, and nothing else.

Imports `hasten.jit` and `hasten.support`. The rooms `search` and `learning` within, and `hasten.proof`, import what stands here,
never the other way.
"""
