"""The searches: quick, and without proof.

Imports `hasten.model` and the rooms below it.
"""
