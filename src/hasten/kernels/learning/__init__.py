"""Algorithm 1 of the paper, and what scales its steps.

Imports the kernels of the room around it and those of `search`.
"""
