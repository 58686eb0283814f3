"""The paper's §5 from top to bottom, as measured results.

Imports `data`, `scoring`, the task and the core.
"""
