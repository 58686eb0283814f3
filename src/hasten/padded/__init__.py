"""Padded arrays of scores, as neural networks have them, to flat batches and back; one call of the certifier for all.

A `Field` says which cells of a padded array are variables of a kind, a `Layout` which structure an example has. Both
know NumPy alone: `hasten.torch`, `hasten.jax` and `hasten.decode` stand on them.

Imports the core, up to `hasten.speedup`.
"""
