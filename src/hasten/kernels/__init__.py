"""Compiled functions on flat arrays: all that has to be fast, and nothing else.

Imports only `hasten.jit` and `hasten.support`; within, `proof`, `search` and `learning` rest on what stands here.
"""
