"""The steps of a proof: look, mend, eliminate, cut, sweep, branch; each reports how far it got.

Imports the kernels of the room around it, never those of `search`.
"""
