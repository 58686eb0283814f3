"""What is to be answered, step by step: schema, structure, problem, batch, and the solutions that come back.

Imports `hasten.kernels` and `hasten.support`.
"""
