"""Measures hasten and other solvers side by side, on the same problems, in one run.

Imports the core, and the data and scoring of `hasten.tasks.entity_relation` for problems from text.
"""
