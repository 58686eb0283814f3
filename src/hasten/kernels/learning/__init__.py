"""Algorithm 1 of the paper, and what scales its steps; what a gate sees and learns.

Imports the kernels of the room around it and those of `search`.
"""
