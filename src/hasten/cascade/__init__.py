"""A fast front for a slow predictor: a student that learns from its answers, and answers where it is sure.

Imports `hasten.sums`, `hasten.tasks`, `hasten.speedup` and the rooms before them.
"""
