"""What is to be answered, step by step: schema, structure, problem, batch, and the solutions that come back.

Imports the kernels that stand in `hasten.kernels` itself, `hasten.support` and `hasten.errors`.
"""
