"""Algorithm 1 of the paper, and what scales its steps.

Imports the kernels of the room above and those of `search`.
"""
