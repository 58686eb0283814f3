"""The certifier: answers with a proof that no labelling is cheaper. Each step of a proof is a module or a room.

Imports `hasten.model` and the rooms below it, never `hasten.search`.
"""
