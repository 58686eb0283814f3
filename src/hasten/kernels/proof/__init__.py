"""The steps of a proof: look, mend, eliminate, sweep, branch; each says how far it came.

Imports the kernels of the room above, never those of `search`.
"""
