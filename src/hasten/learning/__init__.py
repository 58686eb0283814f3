"""Learning a heuristic from a black box's answers, and what theory says of it.

Imports `hasten.search`, `hasten.model` and the rooms below them.
"""
