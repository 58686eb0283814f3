"""Problems and their answers, step by step: schema, structure, problem, batch, solution.

Imports the kernels that stand in `hasten.kernels` itself, `hasten.support` and `hasten.errors`.
"""
