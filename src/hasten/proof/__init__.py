"""The certifier: answers with a proof that nothing is cheaper. Each step of a proof is a module, or a room, of its own.

Imports `hasten.model` and the rooms below it, never `hasten.search`.
"""
